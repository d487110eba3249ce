"""minimum.txt: draft C.1's text line by line, then the disclosures that every report must have and C.1 lacks.

Maximum throughput, and throughput at the operating point of 500 ms, come from a search; without one they were not measured.
C.1 alone claims no compliance.
"""

from __future__ import annotations

from collections.abc import Sequence

from inferometer.documents.campaign import Campaign, MinimumReport
from inferometer.report import checks
from inferometer.report.campaign import deviations, disclosure
from inferometer.report.campaign.cells import ROUGH, cell, is_number
from inferometer.report.campaign.overview import banners
from inferometer.report.figures import MARK, UNDECLARED, clean, figure
from inferometer.report.run.rows import BOUNDARIES

LINES = (
    ("System Identification:", None, ""),
    ("Model", "model", ""),
    ("Hardware", "hardware", ""),
    ("Software", "software", ""),
    ("SUT Boundary", "boundary", ""),
    ("Test Configuration:", None, ""),
    ("Workload", "workload", ""),
    ("Load Model", "load_model", ""),
    ("Request Count", "request_count", ""),
    ("Test Duration", "test_duration_s", "seconds"),
    ("Key Results:", None, ""),
    ("TTFT P50", "ttft_p50_ms", "ms"),
    ("TTFT P99", "ttft_p99_ms", "ms"),
    ("TPOT P50", "tpot_p50_ms", "ms"),
    ("TPOT P99", "tpot_p99_ms", "ms"),
    ("Max Throughput", "max_throughput_tok_s", "tok/s"),
    ("Throughput at P99 TTFT < 500ms", "throughput_at_p99_ttft_500ms_tok_s", "tok/s"),
)
"""The lines of draft C.1 between title and notes: a group, or (label, member of `minimum`, unit)."""


DECLARED = ("model", "hardware", "software", "boundary")
"""Members that are declared and not measured."""


def result(minimum: MinimumReport, name: str, unit: str) -> str:
    """A member with its unit, and MARK behind a percentile of too few samples; null was not measured, or not declared where
    nobody measures it."""
    value = getattr(minimum, name)
    if name == "boundary":
        value = BOUNDARIES.get(value, value)
    if value is None and name in DECLARED:
        return UNDECLARED
    mark = MARK if name in minimum.few else ""
    return f"{figure(value)} {unit}".rstrip() + mark if is_number(value) else cell(value)


def c1(minimum: MinimumReport, notes: Sequence[str]) -> list[str]:
    """The lines of draft C.1."""
    lines = ["=== LLM Benchmark Report (Minimum) ==="]
    for label, name, unit in LINES:
        lines += ["", label] if name is None else [f"- {label}: {result(minimum, name, unit)}"]
    rough = [ROUGH] if minimum.few else []
    return [
        *lines,
        "",
        "Notes:",
        *(f"- {clean(note)}" for note in (*rough, *notes)),
        "",
        "=== End Report ===",
    ]


def render_minimum(campaign: Campaign) -> str:
    """The whole of minimum.txt. What is simulated, quick or redacted is said above and below C.1's own lines."""
    above = [f"{word}: {means}" for word, means in banners(campaign, campaign.redacted)]
    lines = [
        *([*above, ""] if above else []),
        # A document of an earlier version has none.
        *c1(campaign.minimum, campaign.minimum.notes or deviations.notes(campaign)),
        "",
        "Disclosures (draft 4.3 to 4.8, 5.1.4):",
        *(f"- {name}: {words}" for name, words in disclosure.rows(campaign)),
        "",
        "The minimum report alone claims no compliance with the draft.",
        *([checks.SIMULATED] if campaign.simulated else []),
    ]
    return "\n".join(clean(line) for line in lines) + "\n"
