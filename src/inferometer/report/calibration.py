"""A calibration in a terminal or a pipe: a rung a line, at most 80 columns, then what is certified."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from inferometer.documents.certificate import CalibrationRung, Certificate, CertifiedLimits
from inferometer.report.run.rows import ENDS
from inferometer.report.tables import text_table

FAULTS = {
    "ttft_mean": "TTFT",
    "ttft_p99": "TTFT",
    "itl_p99": "ITL",
    "e2e_p99": "E2E",
    "missing": "missing",
    "merged": "merged",
    "verdict": "INVALID",
    "nothing_measured": "empty",
}
"""A limit's name to the word behind `no:`; a + stands for further ones, `behind` for a server that fell behind."""

_HEAD = (
    ("", "load", "offered", "got", "CPU", "TTFT", "TTFT", "ITL", "E2E", "good"),
    ("", "", "tok/s", "tok/s", "%", "mean", "P99", "P99", "P99", ""),
)
WIDTH = 80
"""Columns of the narrowest usual terminal."""

_UNITS = {"streams": "streams", "requests": "req/s", "whole": "whole/s", "plan": "plan"}


def lines(certificate: Certificate, stored: str | None) -> list[str]:
    """The table and the words under it. `stored`: the certificate's file, None if there is none."""
    rows = [*_HEAD, *(_row(rung) for rung in certificate.rungs)]
    text_lines = ["Errors in ms: the instrument's figure less the server's own.", ""]
    text_lines += text_table(rows, [False, *[True] * (len(_HEAD[0]) - 2), False])
    reasons = [
        line for rung in certificate.rungs if "verdict" in rung.faults for line in _folded(_invalid(rung))
    ]
    text_lines += ["", *reasons] if reasons else []
    text_lines += ["", *_limits(certificate.limits), ""]
    if stored is None:
        return [*text_lines, "Not certified: not even the lowest load was measured right."]
    failed = [rung for rung in certificate.rungs if rung.kind == "plan" and rung.faults]
    if failed:
        text_lines.append("The plan's own load was not measured right on this machine.")
    of = f"for {certificate.workers} worker(s) over {certificate.transport}"
    return [*text_lines, f"Certificate {certificate.id}, {of}: {stored}"]


def _folded(text: str) -> list[str]:
    return wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def _invalid(rung: CalibrationRung) -> str:
    return f"{rung.load:.0f} {_UNITS[rung.kind]}: the run is INVALID ({', '.join(rung.reasons)})"


def _limits(limits: CertifiedLimits) -> list[str]:
    named = (
        ("Token events a second", limits.token_events_s),
        ("Requests a second", limits.requests_s),
        ("Whole answers a second", limits.whole_answers_s),
    )
    texts = (
        f"{name}, a worker: {limit.per_worker:.0f} ({ENDS[limit.ended_by]})"
        for name, limit in named
        if limit is not None
    )
    return [line for text in texts for line in _folded(text)]


def _row(rung: CalibrationRung) -> Sequence[str]:
    return (
        _UNITS[rung.kind],
        f"{rung.load:.0f}",
        f"{rung.offered_tok_s:.0f}",
        f"{rung.tok_s:.0f}",
        "-" if rung.cpu is None else f"{rung.cpu * 100:.0f}",
        _ms(rung.ttft_ms.mean if rung.ttft_ms else None),
        _ms(rung.ttft_ms.p99 if rung.ttft_ms else None),
        _ms(rung.itl_ms.p99 if rung.itl_ms else None),
        _ms(rung.e2e_ms.p99 if rung.e2e_ms else None),
        _word(rung),
    )


def _word(rung: CalibrationRung) -> str:
    if rung.server_behind:
        return "yes, behind" if not rung.faults else "no: behind"
    words = list(dict.fromkeys(FAULTS.get(name, name) for name in rung.faults))
    return f"no: {words[0]}" + ("+" if len(words) > 1 else "") if words else "yes"


def _ms(value: float | None) -> str:
    """Three decimals where they mean something: a large error, of a busy machine, must not widen the table."""
    if value is None:
        return "-"
    size = abs(value)
    return f"{value:.3f}" if size < 10 else f"{value:.1f}" if size < 1_000 else f"{value:.0f}"
