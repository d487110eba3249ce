"""The unit of a metric, from its HELP text and its exposed name. The first rule that knows one wins.

1. HELP names a range of 0 to 1, or says that 1 means 100 %: ratio; of 0 to 100: percent.
2. HELP has `(in X)` with a symbol: the table `SYMBOLS`.
3. HELP says `in <unit>` or `(<unit>`: the list `PHRASES`, in its order.
4. The name ends in a suffix: the table `SUFFIXES`, longest first.
5. The name contains `num_requests_`: requests.
"""

from __future__ import annotations

import re

from inferometer.telemetry.metrics.exposition import Family

_DASH = r"\s*(?:[-\u2010-\u2015]+|to)\s*"
_ONE = r"1(?:\.0)?"
_RATIO = re.compile(
    rf"(?:\(\s*0(?:\.0)?{_DASH}{_ONE}\s*\)|(?<![\w.])0(?:\.0)?{_DASH}{_ONE}(?![\w.]*\w))"
    rf"|\b{_ONE}\s*(?:means|is|equals?|==?)\s*100(?:\.0)?\s*(?:%|percent)",
    re.IGNORECASE,
)
_PERCENT = re.compile(
    rf"\(\s*0(?:\.0)?{_DASH}100(?:\.0)?\s*%?\s*\)|\brange\W+0(?:\.0)?{_DASH}100(?:\.0)?\b"
    rf"|\b0(?:\.0)?{_DASH}100(?:\.0)?\s*%",
    re.IGNORECASE,
)
_IN_SYMBOL = re.compile(r"\(in ([^\s)]+)\)")

SYMBOLS = {
    "B": "bytes", "bytes": "bytes", "KB": "kilobytes", "KiB": "kilobytes", "MB": "megabytes", "MiB": "megabytes",
    "GB": "gigabytes", "GiB": "gigabytes", "TB": "terabytes", "C": "celsius", "°C": "celsius", "F": "fahrenheit",
    "°F": "fahrenheit", "K": "kelvin", "Hz": "hertz", "MHz": "megahertz", "GHz": "gigahertz", "W": "watt",
    "mW": "milliwatt", "J": "joule", "mJ": "millijoule", "MJ": "megajoule", "s": "seconds", "sec": "seconds",
    "ms": "milliseconds", "us": "microseconds", "µs": "microseconds", "μs": "microseconds", "ns": "nanoseconds",
    "GB/s": "gb/s", "MB/s": "mb/s", "%": "percent", "percent": "percent",
}  # fmt: skip

PHRASES = tuple(
    (re.compile(pattern, re.IGNORECASE), unit)
    for words, unit, bracketed in (
        (r"seconds?", "seconds", True),
        (r"(?:milliseconds?|ms)", "milliseconds", True),
        (r"(?:nanoseconds?|ns)", "nanoseconds", True),
        (r"bytes?", "bytes", True),
        (r"GB/s", "gb/s", True),
        (r"MB/s", "mb/s", True),
        (r"tokens?/(?:second|sec|s)", "tokens/s", True),
        (r"requests?/(?:second|sec|s)", "requests/s", True),
        (r"tokens?", "tokens", False),
    )
    for pattern in [rf"\bin\s+{words}(?:\b|\))" + (rf"|\({words}(?:\b|\))" if bracketed else "")]
)

SUFFIXES = {
    "_seconds": "seconds", "_seconds_total": "seconds", "_milliseconds": "milliseconds", "_ms": "milliseconds",
    "_ms_total": "milliseconds", "_nanoseconds": "nanoseconds", "_ns": "nanoseconds", "_ns_total": "nanoseconds",
    "_bytes": "bytes", "_bytes_total": "bytes", "_kilobytes": "kilobytes", "_megabytes": "megabytes",
    "_gigabytes": "gigabytes", "_total": "count", "_count": "count", "_tokens": "tokens", "_tokens_total": "tokens",
    "_requests": "requests", "_requests_total": "requests", "_reqs": "requests", "request_success": "requests",
    "_errors": "errors", "_errors_total": "errors", "_error_count": "errors", "_error_count_total": "errors",
    "_blocks": "blocks", "_blocks_total": "blocks", "_block_count": "blocks", "_gb_s": "gb/s", "_ratio": "ratio",
    "_percent": "percent", "_perc": "percent", "_celsius": "celsius", "_joules": "joule", "_watts": "watt",
}  # fmt: skip
_BY_LENGTH = sorted(SUFFIXES, key=len, reverse=True)


def unit_of(name: str, description: str | None) -> str | None:
    """The unit as it stands in the export, None where no rule knows one."""
    text = description or ""
    if _RATIO.search(text):
        return "ratio"
    if _PERCENT.search(text):
        return "percent"
    symbol = _IN_SYMBOL.search(text)
    if symbol and symbol[1] in SYMBOLS:
        return SYMBOLS[symbol[1]]
    for phrase, unit in PHRASES:
        if phrase.search(text):
            return unit
    lower = name.lower()
    for suffix in _BY_LENGTH:
        if lower.endswith(suffix):
            return SUFFIXES[suffix]
    return "requests" if "num_requests_" in lower else None


def unit_for(family: Family) -> str | None:
    """A metric's unit: of the name it is kept under, then of the name exposed, where a counter ends in `_total`."""
    return unit_of(family.name, family.description) or unit_of(family.exposed, None)
