"""Arrow files of a run's folder, the workers' streams and the schedule: what is whole of a stream, in order, or what is wrong.

| first byte | the file is                                                                              |
| ---------- | ---------------------------------------------------------------------------------------- |
| 0          | a worker's outcomes, sealed with a schedule of ROWS requests, and the sealed record read |
| 1          | a worker's pulses                                                                        |
| 2          | the schedule                                                                             |
| 3          | what was appended to a schedule                                                          |
"""

from __future__ import annotations

from collections.abc import Sequence

from fuzz.bounds import bounded_memory
from fuzz.place import FOLDER, lain
from inferometer.errors import RecordError
from inferometer.journal import schedule
from inferometer.journal.folder import RunFolder
from inferometer.journal.outcomes import Outcomes
from inferometer.journal.schedule import Scheduled, asked
from inferometer.journal.schema import OUTCOME, PULSE, RECORD
from inferometer.journal.seal import JOINED, read_stream, read_table, seal

ROWS = 4
RUN = RunFolder(FOLDER / "run")
"""Its journal is the input's."""
APPENDED = FOLDER / "appended"

RUN.journal.mkdir(parents=True)
APPENDED.mkdir()
for place in (RUN.schedule, APPENDED / "requests.arrow"):
    schedule.write(place, (Scheduled(at, 1, None, b"{}", -1, 0, 3, 3, 9) for at in range(ROWS)))


def check(data: bytes) -> None:
    """Read it as the first byte says."""
    if not data:
        return
    reader = (outcomes, pulses, whole_schedule, appended)[data[0] % 4]
    with bounded_memory():
        try:
            reader(data[1:])
        except RecordError as error:
            str(error).encode("utf-8", "replace")


def outcomes(data: bytes) -> None:
    """The pieces are the stream in order, and what is sealed of it is read."""
    path = RUN.journal / "worker-0.arrows"
    path.write_bytes(data)
    found = Outcomes([path])
    stream = read_stream(path, OUTCOME)
    pieces = list(found.pieces(3, 1_000))
    assert sum(map(len, pieces)) == len(found) <= len(stream)
    due = [
        row
        for piece in pieces
        for row in zip(*(piece[key].to_pylist() for key in ("t_intended", "index")), strict=True)
    ]
    assert due == sorted(due)
    RUN.record.unlink(missing_ok=True)  # of an input before, which holds more and would stay
    seal(RUN, count, "r")
    assert len(read_table(RUN.record, RECORD)) == len(found)


def count(texts: Sequence[str]) -> list[int | None]:
    """As a tokenizer would."""
    return [len(text) for text in texts]


def pulses(data: bytes) -> None:
    """Whole batches alone."""
    assert read_stream(lain("pulse-0.arrows", data), PULSE).schema == PULSE


def whole_schedule(data: bytes) -> None:
    """What was asked of each request."""
    assert asked(lain("requests.arrow", data), JOINED).column_names == [*JOINED, "recorded"]


def appended(data: bytes) -> None:
    """Behind what was there before."""
    (APPENDED / schedule.APPENDED).write_bytes(data)
    assert len(asked(APPENDED / "requests.arrow", JOINED)) >= ROWS
