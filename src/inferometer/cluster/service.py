"""`inferometer worker`: join a conductor, serve it, and come back to it after a break."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path

from inferometer import __version__
from inferometer.cluster.admission import join, split
from inferometer.cluster.clock_probe import ClockProber
from inferometer.cluster.join_token import JoinToken
from inferometer.cluster.link import LinkLost
from inferometer.cluster.load_host import LoadHost, kept_runs
from inferometer.cluster.messages import PROTOCOL, Hello
from inferometer.errors import PeerError, PlanError
from inferometer.telemetry.clock_state import clock_synchronisation
from inferometer.telemetry.host import environment

JOIN_S = 60.0
"""For so long a conductor is looked for that does not listen yet."""
REJOIN_S = 120.0
"""The same of one that was there and was lost, while this host holds what it measured."""


def state_folder(environ: Mapping[str, str]) -> Path:
    """Where a load host keeps what it measures (XDG base directories)."""
    state = environ.get("XDG_STATE_HOME") or os.path.join(environ.get("HOME", "."), ".local", "state")
    return Path(state) / "inferometer" / "load-host"


def work(address: str, token: JoinToken, name: str | None, root: Path, note: Callable[[str], None]) -> None:
    """Serve the conductor at `HOST:PORT` until it needs nothing more. Raises PlanError (token, version), PeerError (nobody is
    there, or it was lost for good), MachineError."""
    patience_s, process = JOIN_S, secrets.token_hex(8)
    while True:
        hello = Hello(
            PROTOCOL,
            __version__,
            token.secret,
            name,
            environment(),
            clock_synchronisation(),
            kept_runs(root),
            process,
        )
        try:
            link, welcome = join(address, token, hello, patience_s)
        except PeerError as cause:
            raise _with_kept(cause, root) from cause
        except PlanError:
            if words := _kept_words(root):
                note(words)
            raise
        name = welcome.name
        note(f"joined {address} as {name}")
        prober = ClockProber((split(address, "--join")[0], welcome.clock_port), token.probe_key())
        try:
            LoadHost(link, prober, root, name, note).serve()
            if words := _kept_words(root):
                note(words)
            return
        except LinkLost as cause:
            if not kept_runs(root):
                raise
            note(f"{cause}. What was measured is kept in {root}; trying for {REJOIN_S:.0f} s to hand it over")
            patience_s = REJOIN_S
        except (KeyboardInterrupt, OSError) as cause:
            if words := _kept_words(root):
                cause.add_note(words)
            raise
        finally:
            prober.close()


def _with_kept(cause: PeerError, root: Path) -> PeerError:
    words = _kept_words(root)
    return PeerError(f"{cause}. {words}") if words else cause


def _kept_words(root: Path) -> str:
    """Where what was measured is, and how it gets to the conductor; nothing if there is none."""
    runs = kept_runs(root)
    if not runs:
        return ""
    return (
        f"What was measured of {', '.join(runs)} is kept in {root}: `inferometer recover RUN --listen HOST:PORT` "
        f"there and `inferometer worker --join HOST:PORT --folder {root}` here hand it over"
    )
