"""What a run does not load before its load begins."""

from __future__ import annotations

import subprocess
import sys


def test_a_run_begins_without_scipy() -> None:
    """It takes longer to import than all the rest, and is only needed when results are computed."""
    code = "import sys, inferometer.run.conduct; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
