"""What a run does not load before its load begins."""

from __future__ import annotations

import subprocess
import sys


def test_a_run_begins_without_scipy() -> None:
    """It takes longer to import than all the rest, and is only needed when results are computed."""
    code = "import sys, inferometer.run.conduct; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_a_worker_starts_without_the_library_of_the_plans_schema() -> None:
    """Law: it reads schedules alone. Pydantic and the schema's classes would double the time in which each worker starts."""
    code = "import sys, inferometer.drive.worker; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
