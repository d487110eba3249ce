"""Checks of what a test shows, draft 5's measurements and reporting formats: the table is there, and no cell of it is null."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inferometer.judge.compliance.evidence import (
    Check,
    Evidence,
    Ran,
    Seen,
    Sheet,
    Shown,
    beside,
    broken,
    every,
    met,
    number,
    worst,
)
from inferometer.judge.compliance.sut_rules import guardrails, hardware, model

FIVE = ("p50", "p90", "p95", "p99", "p99_9")
FOUR = ("ttft_p50", "ttft_p99", "tpot_p50", "tpot_p99")
"""The draft's columns, in the spelling of procedures/."""
BUCKETS = (0, 256, 512, 1024, 2048, 4096)


def shown_in(document: Mapping[str, Any]) -> Shown:
    """What a test's document shows (members `values`, `tables`, `figures`)."""
    return Shown(
        {one["name"]: one["value"] is not None for one in document["values"]},
        _sheets(document["tables"]),
        frozenset(one["name"] for one in document["figures"]),
    )


def _sheets(tables: Sequence[Mapping[str, Any]]) -> dict[str, Sheet]:
    """By name; a table a level has one name, and each of them has to be whole."""
    found: dict[str, Sheet] = {}
    for table in tables:
        one = _sheet(table)
        same = found.get(str(table["name"]))
        if same is not None:
            one = Sheet(
                one.section, min(one.rows, same.rows), tuple(dict.fromkeys((*same.empty, *one.empty)))
            )
        found[str(table["name"])] = one
    return found


UNASKED = ("low", "high")
"""Columns of intervals, which stand in tables where the draft asks for none."""


def _sheet(table: Mapping[str, Any]) -> Sheet:
    rows: Sequence[Sequence[Any]] = table["rows"]
    empty = tuple(
        str(column["name"])
        for i, column in enumerate(table["columns"])
        if column["name"] not in UNASKED and any(row[i] is None for row in rows)
    )
    return Sheet(str(table["section"]), len(rows), empty)


def sheet(*sections: str, name: str | None = None, columns: Sequence[str] = ()) -> Check:
    """A table of one of these sections, or of this name, without a null in these columns, or in any."""

    def look(evidence: Evidence) -> Seen | None:
        if evidence.shown is None:
            return None
        tables = evidence.shown.tables
        found = {
            key: one
            for key, one in tables.items()
            if key == name or (name is None and one.section in sections)
        }
        if not found:
            return broken(f"no table {name or 'of ' + ' or '.join(sections)}")
        for key, one in found.items():
            if not one.rows:
                return broken(f"table {key} is empty")
            empty = [column for column in one.empty if not columns or column in columns]
            if empty:
                return broken(f"table {key}: not measured: {', '.join(empty)}")
        return met(f"table {', '.join(found)}")

    return look


def figure(name: str) -> Check:
    """A figure of this name."""

    def look(evidence: Evidence) -> Seen | None:
        if evidence.shown is None:
            return None
        return met(f"figure {name}") if name in evidence.shown.figures else broken(f"no figure {name}")

    return look


def values(section: str) -> Check:
    """A test's values, of which each has to be measured."""

    def look(evidence: Evidence) -> Seen | None:
        if evidence.shown is None:
            return None
        missing = [name for name, measured in evidence.shown.values.items() if not measured]
        if missing:
            return broken(f"not measured: {', '.join(missing)}")
        return (
            met(", ".join(evidence.shown.values))
            if evidence.shown.values
            else broken(f"no value of {section}")
        )

    return look


def percentiles(evidence: Evidence) -> Seen | None:
    """Draft 5.1.4.1: all five, of every level."""

    def wrong(one: Ran) -> str | None:
        found = one.measured("ttft_ms") or {}
        missing = [name for name in FIVE if found.get(name) is None]
        return f"TTFT without {', '.join(missing)}" if missing else None

    return worst(
        every(evidence.of("level"), wrong, "P50, P90, P95, P99 and P99.9"), sheet(name="ttft")(evidence)
    )


def moments(evidence: Evidence) -> Seen | None:
    """Draft 5.1.4.1."""

    def wrong(one: Ran) -> str | None:
        found = one.measured("ttft_ms") or {}
        missing = [name for name in ("mean", "min", "max") if found.get(name) is None]
        return f"TTFT without {', '.join(missing)}" if missing else None

    return every(evidence.of("level"), wrong, "mean, minimum and maximum")


def sample_count(evidence: Evidence) -> Seen | None:
    """Draft 5.1.4.3."""

    def wrong(one: Ran) -> str | None:
        return None if one.measured("ttft_ms") else "no sample of TTFT"

    def right(one: Ran) -> str:
        return f"{number((one.measured('ttft_ms') or {'n': 0})['n'])} samples"

    return worst(every(evidence.of("level"), wrong, right), sheet(name="ttft")(evidence))


def buckets(evidence: Evidence) -> Seen | None:
    """Draft 5.1.4.2: of those, the ones that prompts fell into."""

    def wrong(one: Ran) -> str | None:
        found = [bucket["from"] for bucket in one.summary["ttft_by_input"]]
        if not found:
            return "no TTFT by input length"
        return None if set(found) <= set(BUCKETS) else f"other buckets: from {', '.join(map(number, found))}"

    return every(evidence.of("level"), wrong, "the draft's six")


def by_length(evidence: Evidence) -> Seen | None:
    """Draft 5.1.4.2: where prompts fall into several ranges."""
    several = [one for one in evidence.levels if sum(bool(b["n"]) for b in one.summary["ttft_by_input"]) > 1]
    if evidence.levels and not several:
        return beside("prompts are of one range of lengths")
    return sheet(name="ttft_by_input")(evidence)


def variants(evidence: Evidence) -> Seen | None:
    """Draft 5.1.3.1: TTFT is to the first content; that to anything stands beside it."""

    def wrong(one: Ran) -> str | None:
        return None if one.measured("ttft_any_ms") else "TTFT to any token is not told beside it"

    def right(one: Ran) -> str:
        check = one.check("ttft_variants")
        return "to the first content" if check is None else f"to the first content; {check['message']}"

    return every(evidence.of("level"), wrong, right)


def load(evidence: Evidence) -> Seen | None:
    """Draft 5.1.5.1."""

    def wrong(one: Ran) -> str | None:
        offered = one.summary["load"]["offered"]
        known = offered.get("rate") is not None or offered.get("concurrency") is not None
        return None if known else "neither rate nor concurrency is told"

    return every(
        evidence.levels, wrong, lambda one: f"{one.summary['load']['model']} loop with its parameters"
    )


def extent(evidence: Evidence) -> Seen | None:
    """Draft 5.1.5.1."""

    def wrong(one: Ran) -> str | None:
        told = one.summary["requests"]["sent"] and one.summary["window"]["duration_s"] is not None
        return None if told else "request count or duration is not told"

    def right(one: Ran) -> str:
        return f"{number(one.summary['requests']['sent'])} requests in {number(one.summary['window']['duration_s'])} s"

    return every(evidence.levels, wrong, right)


def shape(*names: str) -> Check:
    """Draft 5.4.4.3: what is said of the form of the gaps' distribution."""

    def look(evidence: Evidence) -> Seen | None:
        def wrong(one: Ran) -> str | None:
            found = one.summary.get("itl_shape") or {}
            missing = [name for name in names if found.get(name) in (None, "undetermined")]
            return f"{missing[0]}: {found.get(missing[0]) or 'not told'}" if missing else None

        return every(evidence.of("level"), wrong, ", ".join(names))

    return look


def configured(evidence: Evidence) -> Seen | None:
    """Draft 5.1.5.1: model and hardware are told."""
    return worst(model(evidence), hardware(evidence))


CHECKS: dict[str, Check] = {
    "D-5.1.3.1-noncontent": variants,
    "D-5.1.4.1-percentiles": percentiles,
    "D-5.1.4.1-moments": moments,
    "D-5.1.4.2-by-length": by_length,
    "D-5.1.4.2-buckets": buckets,
    "D-5.1.4.3-samples": sample_count,
    "D-5.1.5.1-model": configured,
    "D-5.1.5.1-load": load,
    "D-5.1.5.1-extent": extent,
    "D-5.1.5.1-guardrail": guardrails,
    "D-5.1.5.2-table": sheet(name="ttft"),
    "D-5.1.5.4-plot": figure("ttft_cdf"),
    "D-5.2.4.3-latency": sheet(name="latency"),
    "D-5.2.5.1-table": sheet(name="summary"),
    "D-5.3.3-plot": figure("curve"),
    "D-5.3.5-table": sheet(name="levels", columns=("rate", "achieved", *FOUR, "success")),
    "D-5.4.4.2-per-request": sheet(name="per_request"),
    "D-5.4.4.3-modality": shape("modality"),
    "D-5.4.4.3-tail": shape("tail"),
    "D-5.4.5-table": sheet(name="itl"),
    "D-5.5.4-max": values("5.5.4"),
    "D-5.5.5-table": sheet(
        "5.5.5", columns=("concurrency", "completion", "ttft_p99", "tpot_p99", "errors", "status")
    ),
    "D-5.6.4-inflation": values("5.6.4"),
    "D-5.6.5-class-table": sheet("5.6.5", "5.6.5.1", "5.6.5.2", columns=("class", "count", "value", *FOUR)),
    "D-5.7.4-reduction": values("5.7.4"),
    "D-5.7.5-table": sheet("5.7.5"),
    "D-5.8.5-table": sheet("5.8.5"),
    "D-5.9.5-table": sheet("5.9.5", columns=("context", "ttft_mean", "ttft_p95", "ms_per_1k")),
    "D-5.9.5-fit": values("5.9.5"),
    "D-5.10.4-throughput": sheet("5.10.5", "5.10.4"),
}
