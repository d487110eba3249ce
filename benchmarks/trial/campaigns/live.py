"""A real server over sockets that is gone, or another one, when the second test of a campaign begins; or dies within the first.

Loads are small, and no latency is held against anything: what counts is that no test is VALID of a server that was not there.
"""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.played import Silent
from benchmarks.trial.campaigns.situation import CAMPAIGN, NO_TRUTH, Situation, Statement, statements
from inferometer.plan.campaign import campaign
from inferometer.server.embedded import Embedded
from inferometer.studies.campaign import conduct_campaign

TESTS = ("ttft", "long-context")
LOAD = {
    "--api": "completions", "--rate": "20", "--input-tokens": "100", "--output-tokens": "8", "--connection": "new",
    "--timeout": "5s",
}  # fmt: skip
PARAMETERS = (
    "ttft.requests=60", "long-context.lengths=[64, 128, 256]", "long-context.requests=3", "long-context.output_tokens=4",
)  # fmt: skip
SECOND = "test 2 of"
"""How the line begins that is shown when the second test does."""


class Replacing(Silent):
    """Ends the server when the second test begins, and starts another one on its port."""

    def __init__(self, log: Path, first: Sequence[str], then: Sequence[str] | None) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = str(free.getsockname()[1])
        self._log, self._then = log, then
        self._server: Embedded | None = Embedded(log, "--port", self._port, *first)
        self.url = self._server.url()

    def note(self, text: str) -> None:
        """See Ui."""
        if text.startswith(SECOND):
            self.end()
            if self._then is not None:
                self._server = Embedded(self._log, "--port", self._port, *self._then)
                self._server.url()

    def end(self) -> None:
        """End the server, if it is there."""
        running, self._server = self._server, None
        if running is not None:
            running.__exit__()


def measured(first: Sequence[str], then: Sequence[str] | None) -> tuple[Statement, ...]:
    """What a campaign says of a server with these flags that is replaced by one with those, or by none."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ui = Replacing(folder / "log.txt", first, then)
        try:
            whole = campaign(TESTS, None, LOAD | {"--url": ui.url}, PARAMETERS, quick=True)
            return statements(conduct_campaign(whole, folder, ui, _nobody, "inferometer test").document)
        finally:
            ui.end()


def _nobody(what: str) -> None:
    raise EOFError(what)


def situations() -> Iterator[Situation]:
    """All of them."""
    gone = {"long-context": NO_TRUTH, CAMPAIGN: NO_TRUTH}
    for name, first, then, truths, named in (
        ("gone between two tests", (), None, gone, ("partial",)),
        ("another model between two tests", (), ("--model", "other"), {CAMPAIGN: NO_TRUTH}, ("model_changed",)),
        (
            "refuses connections within the first test", ("--fault", "refuse:after=180"), None,
            gone | {"ttft": NO_TRUTH}, ("failures", "partial"),
        ),
    ):  # fmt: skip
        yield Situation(
            name, "over sockets", partial(measured, first, then), lambda truths=truths: truths, named  # type: ignore[misc]  # bound here
        )  # fmt: skip
