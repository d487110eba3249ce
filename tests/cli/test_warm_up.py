"""The warm-up as runs carry it out: its volume, its probes, what it leaves in the server's cache, and what is told of it."""

from __future__ import annotations

from pathlib import Path

from inferometer.conductor import Finding, conduct
from inferometer.drive.live import Progress
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import Phase
from inferometer.plan import saved
from inferometer.plan.parse import build
from inferometer.server.embedded import Embedded
from inferometer.simulation.engine import choose
from inferometer.simulator import simulate

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


FLAGS: dict[str, object] = {
    "--input-tokens": "20", "--output-tokens": "uniform(3,9)", "--seed": "5", "--concurrency": "4", "--requests": "40",
    "--warmup": "10",
}  # fmt: skip


def simulated(out: Path, flags: dict[str, object], *settings: str, file: Path | None = None) -> Finding:
    """One simulation."""
    return simulate(build(file, flags), choose(None, settings), out, Nobody())


def test_a_warm_up_goes_on_until_its_tokens_are_there_and_three_probes_agree(tmp_path: Path) -> None:
    """Volume, drain, and a simulated engine without jitter: identical probes take equally long, so three are enough."""
    finding = simulated(tmp_path, FLAGS | {"--warmup-tokens": "200", "--warmup-probes": "12"}, "jitter=0")
    warm = finding.summary["warm_up"]
    assert (warm["asked"], warm["reached"], warm["drained"]) == (
        {"requests": 10, "output_tokens": 200},
        True,
        True,
    )
    assert warm["output_tokens"] >= 200
    assert warm["completed"] == warm["requests"] >= 10
    probes = warm["probes"]
    assert (probes["stable"], len(probes["after_ms"])) == (True, 3)
    assert probes["variation"] < 0.1
    assert finding.summary["requests"]["sent"] == 40
    assert finding.summary["requests"]["warmup"] == {"sent": warm["requests"], "completed": warm["completed"]}
