"""The warm-up as runs carry it out: its volume, its probes, what it leaves in the server's cache, and what is told of it."""

from __future__ import annotations

from pathlib import Path

from inferometer.conductor import conduct
from inferometer.drive.live import Progress
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import Phase
from inferometer.plan import saved
from inferometer.plan.parse import build
from inferometer.server.embedded import Embedded

SMALL: dict[str, object] = {"--input-tokens": "20", "--output-tokens": "5", "--requests": "8"}


class Nobody:
    """A Ui that tells nobody."""

    def note(self, text: str) -> None:
        """See Ui."""

    def watch(self, phase: Phase, progress: Progress, total: int | None) -> None:
        """See Ui."""


def test_a_reference_server_that_runs_already_is_measured_and_goes_on_running(tmp_path: Path) -> None:
    """Two runs find their requests in one server's log; neither ends it, and both plans name no server."""
    with Embedded(tmp_path / "server.txt") as server:
        for _ in range(2):
            finding = conduct(
                build(None, SMALL | {"--warmup": "2"}), tmp_path / "runs", Nobody(), embedded=server
            )
            assert finding.summary["requests"]["completed"] == 8
            assert saved.read(RunFolder.open(finding.folder).plan).target.url is None
            assert finding.summary["sut"]["software"].endswith("embedded reference server")
        assert len(server.truth().splitlines()) >= 2 * (8 + 2)
