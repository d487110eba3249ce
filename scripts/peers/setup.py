"""Set up the peers the instrument is compared with: `python -m scripts.peers.setup [NAME...]`.

Each gets an environment of its own under `.peers/`, at pinned versions (`table.py`); what is done is skipped. One that cannot
be set up does not keep the others from being tried. They are big, 0.6 to 2.2 GB each, and need a package index; nothing here
runs in `make test`. The table at the end says what is there, and in a line why not. The exit status is 1 only if one failed
that the index has.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__" and __package__ is None:  # called by its path, not with -m
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.engines.environments import VLLM, install
from scripts.engines.places import SetupError
from scripts.engines.setup import make_model, megabytes, only_one
from scripts.peers.table import PEERS, PEERS_HOME, Peer


@dataclass(frozen=True)
class Outcome:
    """How one peer's set-up went. `wrong` is one line, empty if it is installed."""

    peer: Peer
    wrong: str

    def cells(self) -> list[str]:
        """Name, version, MB on disk, what is the matter."""
        version = self.peer.version
        size = f"{megabytes(self.peer.path.resolve()):,} MB" if version else ""
        return [self.peer.title, version or "-", size, self.wrong or "installed"]


def reason(error: Exception) -> str:
    """The line of an installer's words that says most: its first complaint, else its last line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or ["no reason given"]
    complaints = [line for line in lines if line.startswith(("error:", "ERROR:", "Because"))]
    return (complaints or lines[-1:])[0]


def set_up(peer: Peer) -> Outcome:
    """Install one peer, or say why not."""
    if peer.environment is None:
        return Outcome(peer, peer.absent)
    begun = time.monotonic()
    try:
        install(peer.environment)
        if peer.environment is VLLM and not peer.path.exists():
            PEERS_HOME.mkdir(exist_ok=True)
            peer.path.unlink(missing_ok=True)  # a link that led to an environment that is gone
            peer.path.symlink_to(os.path.relpath(VLLM.path, PEERS_HOME), target_is_directory=True)
    except (SetupError, OSError) as error:
        print(f"{peer.name}: cannot be set up. {error}", file=sys.stderr, flush=True)
        return Outcome(peer, reason(error))
    print(f"{peer.name}: there after {time.monotonic() - begun:.0f} s", flush=True)
    return Outcome(peer, "" if peer.version else f"installed, but {peer.command} is not there")


def table(outcomes: list[Outcome]) -> str:
    """One line a peer, in columns."""
    lines = [["peer", "version", "disk", "state"], *(outcome.cells() for outcome in outcomes)]
    widths = [max(len(line[i]) for line in lines) for i in range(3)]
    return "\n".join(
        f"{line[0]:<{widths[0]}}  {line[1]:<{widths[1]}}  {line[2]:>{widths[2]}}  {line[3]}" for line in lines
    )


def main() -> int:
    """Set up what was asked for, after the tokenizer that all of them use; 0 when all that can be had stands."""
    parser = argparse.ArgumentParser(description="Set up the peers to compare with, under .peers/.")
    parser.add_argument("peers", nargs="*", metavar="peer", help=f"of {', '.join(PEERS)}; default: all")
    wanted: list[str] = parser.parse_args().peers or list(PEERS)
    if unknown := set(wanted) - set(PEERS):
        parser.error(f"no such peer: {', '.join(sorted(unknown))}; there are {', '.join(PEERS)}")
    with only_one():
        try:
            make_model()  # for its tokenizer: the peers must not look for one on a hub
        except (SetupError, OSError) as error:
            print(f"the tokenizer cannot be made. {error}", file=sys.stderr, flush=True)
            return 1
        outcomes = [set_up(PEERS[name]) for name in wanted]
    print(table(outcomes))
    return 1 if any(outcome.wrong and outcome.peer.environment for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
