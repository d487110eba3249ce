"""The requests of a trace are made ahead of the clock: enough of them, all of them, and late ones counted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferometer.drive.pacer import Hit
from inferometer.drive.share import TailShare
from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import APPENDED, PIECE, Appender, Schedule, Scheduled, Tail, write
from inferometer.journal.schema import Phase
from inferometer.plan.schema import Load, Plan, Trace
from inferometer.run.replay import AHEAD_NS, PATIENCE_NS, Replayed
from inferometer.units import NS_PER_S
from inferometer.workload.encodings import Cl100k
from inferometer.workload.prompts import Prompt
from inferometer.workload.shared_prefixes import Composer
from inferometer.workload.sources import TraceRows
from inferometer.workload.traces.survey import survey

WARM = 5


class Clock:
    """Stands still unless told; `tick` passes at every look."""

    def __init__(self, tick: int = 0) -> None:
        self.now, self.tick = 0, tick

    def __call__(self) -> int:
        """What time it is."""
        self.now += self.tick
        return self.now


def make(
    phase: Phase, first: int, prompts: Iterable[Prompt], due: Iterable[int | None]
) -> Iterator[Scheduled]:
    """Bodies that tell their row."""
    for row, (prompt, at) in enumerate(zip(prompts, due, strict=True), first):
        yield Scheduled(row, int(phase), at, b"%d" % row, -1, 0, prompt.requested, prompt.sent, prompt.output)


def replayed(place: Path, seconds: Iterable[float], clock: Clock, warmup: int = WARM) -> Replayed:
    """A replay of requests at these instants."""
    rows = [json.dumps({"timestamp": at, "input_tokens": 4, "output_tokens": 2}) for at in seconds]
    path = place / "t.jsonl"
    path.write_text("\n".join(rows))
    plan = Plan(trace=Trace(file=str(path)), load=Load(arrival="trace", warmup=warmup))
    assert plan.trace is not None
    folder = RunFolder.create(place, "t", 0)

    def compose(salt: int) -> Composer:
        return Composer(plan.workload, Cl100k(), salt, "text")

    def probes(prompts: Sequence[Prompt], first: int) -> Iterator[Scheduled]:
        """As many as the plan has, each as its first prompt."""
        count = plan.load.warmup_probes
        return make(Phase.PROBE, first, list(prompts[:1]) * count, [0] * count)

    return Replayed(plan, TraceRows(plan.trace, survey(plan.trace)), folder, 1, compose, make, probes, clock)


def folder_of(place: Path) -> RunFolder:
    (path,) = (one for one in place.iterdir() if one.is_dir())
    return RunFolder(path)


def test_all_is_made_before_the_start_that_can_be(tmp_path: Path) -> None:
    """Law: nothing is left for the time of the load unless making it would take longer than PATIENCE_NS."""
    replay = replayed(tmp_path, [at / 10 for at in range(2000)], Clock())
    replay.warm_up()
    replay.measurement()
    assert replay.rows - replay.appended == 2000
    replay.began(0)
    assert not replay.write_on()
    replay.close()


def test_what_is_left_at_the_start_is_made_in_time(tmp_path: Path) -> None:
    """Law: after it never less than AHEAD_NS of the load is ready until the end, and nothing is unprepared."""
    clock, told = Clock(tick=PATIENCE_NS // 2), list[tuple[int, bool]]()
    replay = replayed(tmp_path, [at / 10 for at in range(2000)], clock)
    replay.warm_up()
    replay.measurement(lambda size, final: told.append((size, final)))
    clock.now = clock.tick = 0
    assert replay.rows - replay.appended == 2 * PIECE
    assert not replay.write_on()
    assert replay.fingerprint is None
    replay.began(NS_PER_S)
    for second in range(1, 205):
        clock.now = second * NS_PER_S
        while replay.write_on():
            pass
        reached = (replay.rows - replay.appended - 1) * NS_PER_S // 10
        assert replay.rows - replay.appended == 2000 or reached - (clock.now - NS_PER_S) >= AHEAD_NS
    assert (replay.measured, replay.rows - replay.appended, replay.unprepared) == (2000, 2000, 0)
    assert [final for _, final in told] == [False] * (len(told) - 1) + [True]
    assert [size for size, _ in told] == sorted({size for size, _ in told})
    assert (replay.fingerprint or "").startswith("sha256:")
    replay.close()
    table = Schedule(folder_of(tmp_path).schedule).table
    assert table.column("due_ns").to_pylist()[WARM:] == [round(at / 10 * NS_PER_S) for at in range(2000)]
    assert table.column("phase").to_pylist() == [0] * WARM + [1] * 2000
    assert table.column("index").to_pylist() == list(range(WARM + 2000))


def test_the_start_does_not_wait_for_a_slow_maker(tmp_path: Path) -> None:
    """After PATIENCE_NS it begins with what there is; what then comes after it was due is counted, the longest with it."""
    clock = Clock(tick=PATIENCE_NS)
    replay = replayed(tmp_path, [at / 1000 for at in range(3000)], clock, warmup=0)
    replay.measurement()
    assert replay.rows == PIECE
    replay.began(clock.now)
    while replay.write_on():
        pass
    assert replay.rows == 3000
    assert replay.unprepared == 3000 - PIECE
    assert replay.unprepared_ns >= PATIENCE_NS
    replay.close()


def test_the_fingerprint_is_the_requests_and_not_the_salt(tmp_path: Path) -> None:
    """Two replays of one trace agree on it; another trace has another."""
    found: list[str | None] = []
    for name, seconds in (("a", [0, 1]), ("b", [0, 1]), ("c", [0, 1, 2])):
        (tmp_path / name).mkdir()
        replay = replayed(tmp_path / name, seconds, Clock())
        replay.salt = len(found)
        replay.measurement()
        replay.write_all()
        found.append(replay.fingerprint)
        replay.close()
    assert found[0] == found[1] != found[2]


def test_a_warm_up_is_the_traces_first_requests_and_no_more_than_there_are(tmp_path: Path) -> None:
    """At their own instants, in the whole file."""
    replay = replayed(tmp_path, [0, 0.5], Clock())
    replay.warm_up()
    replay.measurement()
    replay.close()
    table = Schedule(folder_of(tmp_path).schedule).table
    assert table.column("due_ns").to_pylist() == [0, NS_PER_S // 2] * 2


# The appended schedule as workers read it.


@settings(deadline=None, max_examples=30)
@given(
    gaps=st.lists(st.integers(0, 5), min_size=1, max_size=3 * PIECE),
    workers=st.integers(1, 4),
    looks=st.lists(st.integers(0, 3), max_size=6),
    first=st.integers(0, 3),
)
def test_workers_that_read_on_share_out_an_appended_schedule(
    gaps: list[int], workers: int, looks: list[int], first: int
) -> None:
    """However often they look, and however many there are: each request once, in order, at its own instant, with its body."""
    import tempfile

    due = [sum(gaps[: at + 1]) for at in range(len(gaps))]
    rows = [Scheduled(first + at, 1, one, b"%d" % at, -1, 0, 1, 1, 1) for at, one in enumerate(due)]
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "requests.arrow"
        appender = Appender(path)
        shares = [TailShare(Tail(path), first, 1000, worker, workers) for worker in range(workers)]
        pieces = [rows[at : at + PIECE] for at in range(0, len(rows), PIECE)]
        hits: list[list[tuple[Hit, bytes]]] = [[] for _ in shares]
        for number, piece in enumerate(pieces):
            appender.append(piece)
            if number < len(pieces) - 1 and number in looks:
                continue
            for share, found in zip(shares, hits, strict=True):
                share.read_on(appender.size, final=number == len(pieces) - 1)
                while (
                    hit := share.pacer.take(1000 + due[min(len(due), (number + 1) * PIECE) - 1])
                ) is not None:
                    found.append((hit, share.body(hit)))
        assert all(share.pacer.exhausted and share.pacer.next_due() is None for share in shares)
        for worker, found in enumerate(hits):
            mine = range(worker, len(due), workers)
            assert [hit for hit, _ in found] == [Hit(first + at, 0, 1000 + due[at]) for at in mine]
            assert [body for _, body in found] == [b"%d" % at for at in mine]


def test_a_request_that_comes_late_keeps_its_instant(tmp_path: Path) -> None:
    """It is given out at once, and its lateness is on record; a pacer without requests waits unless it is finished."""
    path = tmp_path / "requests.arrow"
    appender = Appender(path)
    share = TailShare(Tail(path), 0, 1000)
    assert (share.pacer.take(5000), share.pacer.next_due(), share.pacer.exhausted) == (None, None, False)
    appender.append([Scheduled(0, 1, 10, b"a", -1, 0, 1, 1, 1)])
    share.read_on(appender.size, final=False)
    assert share.pacer.take(5000) == Hit(0, 0, 1010)
    assert not share.pacer.exhausted
    share.pacer.stop()
    assert share.pacer.exhausted
    share.pacer.extend([1], [20])
    assert share.pacer.take(9000) is None


@pytest.mark.parametrize("cut", [1, 100, 3000])
def test_what_a_killed_run_had_appended_can_be_read(cut: int, tmp_path: Path) -> None:
    """Whole pieces are there; the one that was being written is not, and nothing fails."""
    path = tmp_path / "requests.arrow"
    write(path, (Scheduled(at, 0, at, b"w", -1, 0, 1, 1, 1) for at in range(3)))
    appender = Appender(path)
    appender.append([Scheduled(3 + at, 1, at, b"%d" % at, -1, 0, 1, 1, 1) for at in range(PIECE)])
    whole = appender.size
    appender.append([Scheduled(3 + PIECE + at, 1, at, b"x", -1, 0, 1, 1, 1) for at in range(PIECE)])
    (tmp_path / APPENDED).write_bytes((tmp_path / APPENDED).read_bytes()[: whole + cut])
    back = Schedule(path)
    assert len(back) == 3 + PIECE
    assert [back.body(row) for row in (0, 2, 3, 2 + PIECE)] == [b"w", b"w", b"0", b"%d" % (PIECE - 1)]
