"""Numbers as people read them: one convention for console, Markdown and HTML.

Four significant digits, because a benchmark's interval is never narrower than one part in a thousand; whole numbers stay
whole; thousands are set apart from 10 000 on (ISO 80000-1, 7.3.1); an absent number is a dash, never a zero.

| value    | figure   |
| -------- | -------- |
| 0.012346 | 0.01235  |
| 31.2945  | 31.29    |
| 1116.43  | 1116     |
| 104832.0 | 104 832  |
| None     | (dash)   |
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

from inferometer.documents.summary import Summary
from inferometer.metrics.catalogue import RATES, TABLE, Rate
from inferometer.metrics.statistics import ENOUGH, Stats, Withheld
from inferometer.printable import printable

THIN = "\u202f"
"""Narrow no-break space."""
DASH = "\u2013"
MARK = "\u00b0"
"""Stands after a percentile that has too few samples behind it."""
ABSENT = DASH
UNDECLARED = "not declared"
UNMEASURED = "not measured"
UNKNOWN = "not known"

Row = tuple[str, str]
"""A name and what is said of it."""

_ASCII = str.maketrans(
    {THIN: "", "\u2009": "", "\u00a0": " ", DASH: "-", "\u2014": "-", "\u2212": "-", MARK: "*", "\u00d7": "x"}
    | {
        "\u00b7": "|",
        "\u2026": "...",
        "\u2265": ">=",
        "\u2264": "<=",
        "\u2018": "'",
        "\u2019": "'",
        "\u00b1": "+-",
    }
    | {"\u201c": '"', "\u201d": '"', "\u00b5": "u", "\u2501": "=", "\u2500": "-"}
)


def figure(value: float | None, digits: int = 4, *, trim: bool = False, filled: bool = False) -> str:
    """Write a number with `digits` significant digits, a dash for None, NaN and infinities; `trim` drops closing zeros, and
    `filled` gives a whole number its zeros, too: 5 is `5.000`."""
    if value is None or not math.isfinite(value):
        return ABSENT
    if float(value).is_integer() and not (filled and 1 <= abs(value) < 10 ** (digits - 1)):
        return _grouped(str(int(value)))
    places = digits - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, places)
    # 9.9996 has one digit less before the point than the 10.000 it rounds to.
    if rounded and math.floor(math.log10(abs(rounded))) > math.floor(math.log10(abs(value))):
        places -= 1
    text = f"{rounded:.{min(max(places, 0), 12)}f}"
    return _grouped(text.rstrip("0").rstrip(".") if trim and "." in text else text)


def _grouped(text: str) -> str:
    sign, body = ("\u2212", text[1:]) if text.startswith("-") else ("", text)
    whole, point, rest = body.partition(".")
    if len(whole) > 4:
        head = len(whole) % 3
        parts = ([whole[:head]] if head else []) + [whole[i : i + 3] for i in range(head, len(whole), 3)]
        whole = THIN.join(parts)
    return sign + whole + point + rest


def share(value: float | None) -> str:
    """A share of one as per cent: 0.0123 is `1.23 %`."""
    return ABSENT if value is None else f"{figure(value * 100, 3, trim=True)}{THIN}%"


def interval(bounds: Sequence[float] | None) -> str:
    """`[lo, hi]` as two figures with a dash between them, or a dash alone. Both ends are whole, or both have their four digits:
    5 beside 4.9998 is `5.000`. Zero is `0` beside anything."""
    if bounds is None:
        return ABSENT
    broken = not all(math.isfinite(end) and float(end).is_integer() for end in bounds)
    return f"{THIN}{DASH}{THIN}".join(figure(end, filled=broken) for end in bounds)


WITHHELD: dict[Withheld, str] = {
    "correlated": "none: too short",
    "skewed": "none: too skewed",
    "few": "none: too few",
}
"""Why a statistic has no interval (docs/statistics.md)."""


def statistic_interval(stats: Stats, name: str) -> str:
    """The interval of one of the statistics, or why there is none; a dash for those that never have one."""
    why = stats.ci95.withheld.get(name)
    return WITHHELD[why] if why else interval(getattr(stats.ci95, name, None))


def seconds(value: float | None) -> str:
    """A duration a person can grasp: `0.42 s`, `61.2 s`, `12 min 5 s`, `3 h 12 min`."""
    if value is None or not math.isfinite(value):
        return ABSENT
    if value < 120:
        return f"{figure(value, 3, trim=True)}\u00a0s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 120:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


def size(value: float | None) -> str:
    """Bytes in binary multiples: `125.6 GiB`."""
    if value is None:
        return ABSENT
    power = min(int(math.log2(value)) // 10, 4) if value >= 1 else 0
    return f"{figure(value / 1024**power, trim=True)} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


def moment(text: str | None) -> str:
    """An ISO instant in UTC, with its `T` and fraction taken out: `2026-08-01 10:11:12 UTC`."""
    if not text:
        return ABSENT
    with contextlib.suppress(ValueError, OverflowError):  # else it is shown as it is written
        at = datetime.fromisoformat(text)
        if at.utcoffset():
            text = at.astimezone(UTC).replace(tzinfo=None).isoformat()
    date, _, clock = text.partition("T")
    return clean(f"{date} {clock.split('.')[0].removesuffix('Z')} UTC")


def stats_of(summary: Summary, name: str) -> Stats | None:
    """The statistics of the metric of this name; None where it was not measured."""
    found: Stats | None = getattr(summary.metrics, name)
    return found


def table_of(summary: Summary) -> list[str]:
    """Metrics of the result table. Time between chunks stands in the place of ITL where tokens came in chunks; what the server
    stamped stands beside either."""
    hidden = {"chunk_gap_ms" if summary.metrics.chunk_gap_ms is None else "itl_ms"}
    if summary.metrics.itl_server_ms is None:
        hidden.add("itl_server_ms")
    return [name for name in TABLE if name not in hidden]


def rates_of(summary: Summary) -> list[tuple[str, Rate, float | None]]:
    """Every rate with its value, without those that not every run has where this one has none."""
    named = [(name, rate, getattr(summary.throughput, name)) for name, rate in RATES.items()]
    return [(name, rate, value) for name, rate, value in named if value is not None or not rate.optional]


class Counted(Protocol):
    """Statistics of n samples: `mean`, `p50` and so on are attributes."""

    @property
    def n(self) -> int:
        """How many samples."""


def statistic(stats: Counted | None, key: str) -> float | None:
    """One statistic by its name; None where there is none."""
    found: float | None = getattr(stats, key, None)
    return found


def marked(stats: Counted | None, key: str) -> tuple[str, bool]:
    """One statistic and whether too few samples stand behind it (percentiles only)."""
    value = statistic(stats, key)
    if stats is None or value is None:
        return ABSENT, False
    return figure(value), stats.n < ENOUGH.get(key, 0)


def with_mark(stats: Counted | None, key: str) -> str:
    """As `marked`, in one text: MARK stands behind a figure with too few samples."""
    text, few = marked(stats, key)
    return text + (MARK if few else "")


def clean(value: object) -> str:
    """Any outside text on one line, without control, format or surrogate characters: servers are not trusted."""
    # No-break spaces stay: they are ours, between the thousands and before units.
    return printable(re.sub(r"[^\S\u202f\u00a0]+", " ", str(value)).strip())


def ascii_only(text: str) -> str:
    """Our own signs in ASCII, everything else that is not ASCII as `?`."""
    return text.translate(_ASCII).encode("ascii", "replace").decode()


def text(value: object, absent: str = UNKNOWN) -> str:
    """Any value on one clean line; `absent` for None and for nothing."""
    if value is None or value in ("", [], {}, ()):
        return absent
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return figure(value, trim=True)
    if isinstance(value, list | tuple):
        return ", ".join(text(part, absent) for part in value)
    return clean(
        json.dumps(value, ensure_ascii=False, sort_keys=True) if isinstance(value, Mapping) else value
    )


def bucket(low: int, high: int | None) -> str:
    """A range of whole numbers from `low` up to but without `high`: `256 to 511`, `4096 and more`."""
    return f"{figure(low)} and more" if high is None else f"{figure(low)} to {figure(high - 1)}"
