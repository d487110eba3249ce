"""Runs that the client's machine spoilt: by their failed checks alone."""

from __future__ import annotations

import pytest
from judge.compliant import changed, check, perfect

from inferometer.judge.judge import CHECKS
from inferometer.judge.spoilt import OF_THE_MACHINE, spoilt_by


@pytest.mark.parametrize(
    ("status", "failed", "spoilt"),
    [
        ("INVALID", ("lateness",), True),
        ("INVALID", ("error_bound", "lateness"), True),
        ("INVALID", ("lateness", "output_length"), False),
        ("INVALID", ("load_exact",), False),
        ("INCONCLUSIVE", (), False),
        ("VALID", (), False),
    ],
)
def test_only_a_run_that_failed_by_the_machine_alone_is_spoilt(
    status: str, failed: tuple[str, ...], spoilt: bool
) -> None:
    """Law: whatever else a run fails, it is kept, so that no answer of the system decides what is measured again."""
    checks = (*(check(code, "fail") for code in failed), check("samples_p99", "unsure"))
    paths = {"runs.0.summary.verdict.status": status, "runs.0.summary.verdict.checks": checks}
    assert spoilt_by(changed(perfect("ttft"), paths).runs[0].summary) == (failed if spoilt else ())


def test_what_spoils_a_run_are_checks_that_exist() -> None:
    assert {entry.code for entry in CHECKS} > OF_THE_MACHINE
