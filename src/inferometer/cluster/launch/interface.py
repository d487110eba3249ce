"""What the conductor knows of a launcher: where load hosts are to join, and which of them have ended badly.

A *load host* is one process `inferometer worker` on one machine. A launcher starts as many as the run needs and collects
their exit codes and last words. Orders, load and records go over each host's own connection to the conductor.

| exit code of a load host | meaning                                             |
| ------------------------ | --------------------------------------------------- |
| 0                        | the conductor is done with it                       |
| 2                        | refused: wrong token, or another version            |
| 5                        | the conductor cannot be reached                     |
| 71                       | its machine ran out of something                    |
| 127                      | of the shell that starts it: no such command        |
| 128 + n                  | of the same: ended by signal n                      |
"""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from inferometer.cluster.join_token import TOKEN_VARIABLE as TOKEN_VARIABLE
from inferometer.errors import SHORTAGES, PlanError, Problem
from inferometer.printable import printable

NOT_FOUND = 127
LONGEST = 400
"""Characters of a host's last line that are repeated."""

LONGEST_NAME = 40

_ADDRESS = re.compile(r"(?:\w(?:[\w.-]*\w)?|\[[0-9A-Fa-f:.]+\]):(\d{1,5})", re.ASCII)
_TOKEN = re.compile(r"[\x21-\x7e]+")
_BY_CODE = {
    2: "it was refused",
    5: "it cannot reach the conductor",
    70: "a bug in inferometer",
    71: "its machine ran out of something",
    NOT_FOUND: "the command was not found there: install the same version of inferometer on that machine",
}


@dataclass(frozen=True)
class Join:
    """Where load hosts join, `HOST:PORT`, and the one-time `token` that admits them. Raises ValueError where one is none."""

    address: str
    token: str = field(repr=False)

    def __post_init__(self) -> None:
        if not is_address(self.address):
            raise ValueError("the address to join is not HOST:PORT")
        if not _TOKEN.fullmatch(self.token):
            raise ValueError(
                "the token to join with is empty, or holds characters other than printable ASCII"
            )

    def arguments(self, name: str) -> list[str]:
        """What a load host's command line ends with. The token is not on it."""
        return ["--join", self.address, "--name", name]


@dataclass(frozen=True)
class Ended:
    """The end of a load host's process: its exit code (negative: by that signal), and the last line that it wrote.

    `exit_code` None: the machine, or what watched the process there, is gone.
    """

    name: str
    exit_code: int | None
    said: str


class Launcher(Protocol):
    """Starts the load hosts of one run."""

    @property
    def hosts(self) -> int:
        """How many load hosts there will be."""
        ...

    def launch(self, join: Join) -> None:
        """Start all hosts; they join later. `close` is due afterwards, also if this fails.

        Raises:
            PeerError: what should start them cannot be reached, or cannot start them.
            OSError: this machine cannot start the processes.
        """
        ...

    def failures(self) -> list[str]:
        """Each host that has ended badly since `launch`, in words, by name. Cheap: for a loop that runs many times a second."""
        ...

    def said(self) -> dict[str, str]:
        """The last line of what each host, or what starts it, has written so far, by its name; of those that wrote any."""
        ...

    def close(self) -> None:
        """End what was started and still runs, politely, then not. Bounded; may be called again."""
        ...


def is_address(text: str) -> bool:
    """Whether a text is HOST:PORT, an IPv6 address in brackets."""
    found = _ADDRESS.fullmatch(text)
    return found is not None and 0 < int(found[1]) < 65_536


def host_name(text: str) -> str:
    """A text as the name of a load host: letters, digits, hyphens and underscores, LONGEST_NAME at most."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")[:LONGEST_NAME]


def last_line(output: bytes, secret: str) -> str:
    """The last line of a process's output that is not blank, as people may be shown it, without the secret."""
    text = output.decode("utf-8", "replace").replace(secret, "<redacted>")
    lines = [line for line in map(printable, text.split("\n")) if line.strip()]
    return lines[-1].strip()[:LONGEST] if lines else ""


def failure(ended: Ended, meanings: Mapping[int, str] | None = None) -> str | None:
    """Why a host's end is a failure, in words; None if it is none. `meanings`: of exit codes, of a launcher's own."""
    if ended.exit_code == 0:
        return None
    if ended.exit_code is None:
        return f"load host {ended.name}: {ended.said or 'it is gone'}"
    known = {**_BY_CODE, **(meanings or {})}
    meaning = known.get(ended.exit_code) or _by_signal(ended.exit_code) or "it failed"
    said = f": {ended.said}" if ended.said else ""
    return f"load host {ended.name}: {meaning} (exit code {ended.exit_code}){said}"


def _by_signal(code: int) -> str | None:
    number = -code if code < 0 else code - 128
    names = {one.value: one.name for one in signal.Signals}
    return f"it was killed ({names[number]}); {SHORTAGES['killed'][1]}" if number in names else None


def invalid(flag: str, words: str) -> PlanError:
    """The error of one flag that cannot be carried out."""
    return PlanError([Problem(flag, words)])
