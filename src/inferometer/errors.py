"""Whose fault it is decides the class of the error and the exit code of the program.

| class           | whose fault          | exit |
| --------------- | -------------------- | ---- |
| PlanError       | the user's words     | 2    |
| PeerError       | the server under test| 5    |
| TokenizerGone   | the same             | 5    |
| CannotSwitch    | the same             | 5    |
| RecordError     | a file on disk       | 2    |
| InstrumentError | ours                 | 70   |
| MachineError    | this machine's       | 71   |

71 is EX_OSERR of sysexits.h. A request that fails is not an error in this sense: it is a row of the record with its class.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass

MOST_PROBLEMS = 20


class InferometerError(Exception):
    """Anything the program reports in words instead of a traceback."""

    exit_code = 70


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a plan: `where` is the flag (`--rate`) or `plan.yaml:12 load.rate`."""

    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


class PlanError(InferometerError):
    """The flags or the plan file cannot be carried out. Carries every problem found, not just the first, and how many `more`
    there are that it does not carry.
    """

    exit_code = 2

    def __init__(self, problems: list[Problem], more: int = 0) -> None:
        self.problems, self.more = problems, more
        lines = [str(problem) for problem in self.problems]
        super().__init__("\n".join([*lines, f"and {more:,} more"] if more else lines))

    @classmethod
    def first(cls, problems: list[Problem], more: int = 0) -> PlanError:
        """With the first MOST_PROBLEMS only: a file can have thousands. `more`: those that are not in the list either."""
        different = list(dict.fromkeys(problems))
        return cls(different[:MOST_PROBLEMS], more + max(0, len(different) - MOST_PROBLEMS))

    def __reduce__(self) -> tuple[type[PlanError], tuple[list[Problem], int]]:
        """Out of another process it comes with its problems."""
        return type(self), (self.problems, self.more)


class PeerError(InferometerError):
    """The server cannot be reached or cannot serve this plan at all.

    `said`: what was tried, and the answer; `advice`: flags of a run that may mend it, which other commands lack; `status`:
    of HTTP, if it answered.
    """

    exit_code = 5

    def __init__(self, said: str, advice: str = "", status: int | None = None) -> None:
        self.said, self.status = said, status
        super().__init__(f"{said} {advice}" if advice else said)


class TokenizerGone(PeerError):
    """The server's /tokenize answered, and then did no more."""


class CannotSwitch(InferometerError):
    """The system under test cannot be brought into a state that a test needs."""

    exit_code = 5


class RecordError(InferometerError):
    """A file of a run folder is missing, damaged, or of a version this program does not read."""

    exit_code = 2


class InstrumentError(InferometerError):
    """Our own fault: a worker died, an invariant broke."""

    exit_code = 70


class MachineError(InstrumentError):
    """The machine ran out of something that measuring needs: `shortage`, a code of SHORTAGES. What handles an error of ours
    handles it too."""

    exit_code = 71

    def __init__(self, said: str, shortage: str) -> None:
        self.shortage = shortage
        super().__init__(said)


# What a machine can run out of: a code for documents, by the system's error number, and words for people.

_BY_ERRNO = {
    errno.ENOSPC: "disk",
    errno.EDQUOT: "disk_quota",
    errno.EFBIG: "file_size",
    errno.EIO: "disk_error",
    errno.EMFILE: "files",
    errno.ENFILE: "files_of_system",
    errno.ENOMEM: "memory",
    errno.EAGAIN: "processes",
}
_BY_WORDS = {
    "failed to map segment": "memory",  # the dynamic loader, of a library that Python imports
    "annot allocate memory": "memory",
    "can't start new thread": "processes",
}
"""What a shortage says where it comes without an error number."""
_BY_SQLITE = {7: "memory", 13: "disk", 266: "disk_error", 778: "disk_error", 1034: "disk_error", 4874: "disk"}
"""By SQLite's result code: NOMEM, FULL, IOERR_READ, IOERR_WRITE, IOERR_FSYNC, and IOERR_SHMSIZE, which is a full disk's."""
_SPACE = "free some space, or write to another disk"
SHORTAGES = {
    "disk": ("the disk is full", _SPACE),
    "disk_quota": ("the disk quota is used up", _SPACE),
    "file_size": ("a file may not grow further", "raise the limit (ulimit -f)"),
    "disk_error": ("the disk reports an input/output error", "see the system's log (dmesg)"),
    "files": ("the limit of open files is reached", "raise it (ulimit -n)"),
    "files_of_system": (
        "the system's limit of open files is reached",
        "end other programs, or raise fs.file-max",
    ),
    "memory": ("memory ran out", "end other programs, raise the limit, or request less at once"),
    "processes": (
        "no more processes or threads can be started",
        "end other programs, or raise the limit (ulimit -u)",
    ),
    "killed": (
        "a process of the run was killed",
        "see in the system's log (dmesg) whether that was for memory, and run again",
    ),
}
"""What ran out, and what to do. A folder that may not be written to is none of these: the user chose that folder."""


def shortage_of(cause: BaseException | None) -> str | None:
    """The code of what the machine ran out of, if that is why `cause` was raised."""
    if isinstance(cause, MachineError):
        return cause.shortage
    if isinstance(cause, MemoryError):
        return "memory"
    if isinstance(cause, ImportError | RuntimeError):
        return next((code for words, code in _BY_WORDS.items() if words in str(cause)), None)
    if isinstance(cause, OSError):
        # An ssl.SSLError is one too, with a number of OpenSSL's.
        return None if hasattr(cause, "library") else _BY_ERRNO.get(cause.errno or 0)
    return _BY_SQLITE.get(getattr(cause, "sqlite_errorcode", 0))


def _short_link(wrong: BaseException | None) -> BaseException | None:
    """The first of an error and the causes that it was raised from that is this machine's fault."""
    while wrong is not None and shortage_of(wrong) is None:
        wrong = wrong.__cause__
    return wrong


def machine_fault(wrong: BaseException) -> MachineError | None:
    """What to report in place of an error that blames the user or a file, where the machine's shortage is behind it: one of
    the causes that it was raised from. None if there is none.

    A file that could not be opened for lack of descriptors is neither missing nor damaged, whoever says so.
    """
    cause = _short_link(wrong) if isinstance(wrong, PlanError | RecordError) else None
    shortage = shortage_of(cause)
    if cause is None or shortage is None:
        return None
    said = in_words(cause)
    if not isinstance(cause, InferometerError | OSError | MemoryError):  # SQLite's own words lack the file
        said = f"{wrong}: {said}"
    return MachineError(said, shortage)


def in_words(cause: BaseException) -> str:
    """What failed, on one line: what the machine ran out of and what to do about it, else the system's own words."""
    if isinstance(cause, InferometerError):
        return str(cause)
    file = cause.filename if isinstance(cause, OSError) else None
    where = "" if file is None else f"{file}: "
    if (shortage := shortage_of(cause)) is not None:
        return where + "; ".join(SHORTAGES[shortage])
    said = cause.strerror if isinstance(cause, OSError) else None
    return f"{where}{said or cause or type(cause).__name__}"


def check_machine(cause: BaseException) -> None:
    """Raise MachineError where this machine's fault is behind `cause`, before it is put down as a problem of a file."""
    if (link := _short_link(cause)) is not None and (shortage := shortage_of(link)) is not None:
        raise MachineError(in_words(link), shortage) from cause


def file_error(said: str, cause: BaseException) -> RecordError | MachineError:
    """What to raise where `cause` ended the work on a file: `said`, which blames the file, unless it is the machine's fault."""
    shortage = shortage_of(cause)
    return RecordError(said) if shortage is None else MachineError(in_words(cause), shortage)
