"""A worker and a server in virtual time. Pure: no socket, no clock; time goes from one event to the next.

| event                        | what happens                                                          |
| ---------------------------- | --------------------------------------------------------------------- |
| something of the engine      | its tokens are noted; a request with its last token has ended         |
| a deadline                   | a request has lasted for its timeout, and is given up                 |
| a read                       | what has arrived is noted; see client.py                              |
| a request is due, and in a   | it is sent, taken by the server and submitted, all at that instant,   |
| closed loop `reaction` later | or as late as the client is                                           |
| the duration is over         | the time to drain begins                                              |
| the time to drain is over    | what is in flight is cancelled                                        |
| a pulse                      | every 250 ms, as a worker does                                        |

At one instant they happen in this order. So a slot that becomes free is filled after the engine has begun its next iteration,
as over a wire.

The loop is drive/worker.py's without what takes time there. Pacers, schedule, exchanges and journal are the same.
"""

from __future__ import annotations

import heapq
import zlib
from collections import Counter, deque
from collections.abc import Callable, Sequence
from operator import itemgetter
from random import Random
from typing import Protocol

from inferometer.drive.exchange import Exchange, outcome_of_status
from inferometer.drive.pacer import Ending, Hit, OpenPacer, Pacer
from inferometer.drive.progress_counters import Progress
from inferometer.drive.share import Share
from inferometer.engines.dialect import Dialect
from inferometer.errors import PlanError, Problem
from inferometer.journal.schema import Outcome, Phase
from inferometer.journal.writer import Journal
from inferometer.server.engine.emission import Emission
from inferometer.server.openai import ApiError, Ask, queue_full
from inferometer.server.options import Options
from inferometer.simulation.client import PERFECT, ClientModel
from inferometer.simulation.generation import Generation, Open
from inferometer.units import NS_PER_S

START_NS = 1_000_000_000
"""When virtual time begins: not 0, which in a record means that something did not happen."""
PAUSE_NS = 20_000_000
"""Between warm-up and measurement."""
PULSE_NS = 250_000_000
FLUSH_ROWS = 2048
LONGEST_NS = 30 * 86_400 * NS_PER_S
"""Of a phase. A closed loop's end depends on the engine and the client, and each of its pulses costs time and space."""
REFUSAL_NS = 1_000_000
"""A refused request holds its slot for this long: it takes no time, and a closed loop would never get past it."""
LOOK_EVERY = 4096
"""Turns of the loop between two looks at the one who watches."""
SCATTER = 61
"""How far apart two answers start in the passage, as in server/http.py."""


def _too_long(longest_ns: int) -> str:
    days = longest_ns / (86_400 * NS_PER_S)
    return (
        f"takes more than {days:g} days of virtual time, the most that is simulated: give fewer requests, or an engine and a "
        "client that take less time"
    )


class Engine(Protocol):
    """What is needed of a model of an engine; see server/engine/engine.py."""

    def submit(
        self,
        key: Generation,
        prompt_tokens: int,
        max_tokens: int,
        now: int,
        *,
        hashes: Sequence[int] = (),
        priority: int = 0,
    ) -> bool:
        """A request arrives. False where the queue is full."""

    def cancel(self, key: Generation, now: int) -> bool:
        """Its client is gone."""

    def next_due(self) -> int | None:
        """When the next tokens are due."""

    def advance(self, now: int) -> Emission[Generation] | None:
        """The tokens of the next event, if it is due."""


class Server:
    """The server's side: an engine behind a reader of bodies, in a dialect. `read` may raise ApiError."""

    def __init__(
        self, dialect: Dialect, engine: Engine, open_generation: Open, read: Callable[[Hit, bytes], Ask]
    ) -> None:
        self.dialect = dialect
        self.engine = engine
        self.open = open_generation
        self.read = read
        self.started = 0


class Driver:
    """Runs phases, one after the other. `offset_ns`: wall clock minus virtual time, for the pulses. `client`: how much time the
    client takes; its chances are drawn from `seed`. `longest_ns`: of a phase.

    `heard` gives the time to drain (ns) when somebody has asked to stop, else None; `watch` is told the totals now and then.
    """

    def __init__(
        self,
        server: Server,
        journal: Journal,
        *,
        timeout_ns: int,
        drain_ns: int,
        offset_ns: int = 0,
        client: ClientModel = PERFECT,
        seed: int = 0,
        longest_ns: int = LONGEST_NS,
        heard: Callable[[], int | None] = lambda: None,
        watch: Callable[[int, Progress], None] = lambda *_: None,
    ) -> None:
        self._server, self._engine, self._journal = server, server.engine, journal
        self._timeout_ns, self._drain_ns, self._offset_ns = timeout_ns, drain_ns, offset_ns
        self._heard, self._watch = heard, watch
        self._longest_ns = longest_ns
        self._client, self._draw = client, Random(f"client {seed}")  # noqa: S311 - chances of a model
        self._held: deque[tuple[int, Hit]] = deque()  # due, and to be sent at these instants
        self._unread: list[tuple[Generation, int, int, int]] = []  # tokens, how it stands then, instant
        self._read_at: int | None = None
        self._emptied_at = START_NS  # the latest read
        self.now = START_NS
        self._phase = 0
        self._pacer: Pacer = OpenPacer([], [])
        self._share: Share | None = None
        self._reaction = 0
        self._flying: list[tuple[int, int, Generation]] = []  # a heap, by deadline and order; some have ended
        self._in_flight = self._sent = self._ok = self._failed = self._events = self._led = 0
        self._next_pulse = self.now
        self._pulses = 0
        self._duration = 0
        self._drain_by: int | None = None

    def run(self, phase: int, share: Share, *, duration_ns: int = 0, again: bool = False) -> None:
        """A phase from its start, which is now, to its end. See Share.pacer for the times. Raises PlanError where it has none
        within the longest that a phase may take."""
        self._phase, self._reaction, self._share = phase, self._client.reaction(share.slots), share
        start = self._next_pulse = self.now
        self._pacer = pacer = share.pacer(start, duration_ns, again=again)
        self._duration, self._drain_by = duration_ns, None
        turns = 0
        while True:
            self._operate()
            self._read()
            self._expire()
            self._send_due(share)
            self._mind_the_end()
            if self.now >= self._next_pulse:
                self._pulse()
            if pacer.exhausted and not self._in_flight and not self._held:
                break
            turns += 1
            if turns % LOOK_EVERY == 0:
                self._look()
            self.now = self._next_instant()
            if self.now - start > self._longest_ns:
                raise PlanError([Problem("load", _too_long(self._longest_ns))])
        self._pulse()
        self._journal.flush()
        self._watch(phase, self._progress())
        self.now += PAUSE_NS

    def _next_instant(self) -> int:
        """The earliest of all that is known to come; never before now."""
        flying, due = self._flying, self._pacer.next_due()
        while flying and flying[0][2].ended:
            heapq.heappop(flying)
        earliest = self._next_pulse
        for at in (
            self._engine.next_due(),
            None if due is None else due + self._reaction,
            self._held[0][0] if self._held else None,
            self._read_at,
            flying[0][0] if flying else None,
            self._end() if self._duration else None,
            self._drain_by,
        ):
            if at is not None and at < earliest:
                earliest = at
        return earliest if earliest > self.now else self.now

    # The events, in their order.

    def _operate(self) -> None:
        engine, now = self._engine, self.now
        while (emission := engine.advance(now)) is not None:
            at = emission.at
            for generation, cached in emission.cached:
                generation.cached = cached
            for generation, scheduled in emission.prefilled:
                generation.prefill_ns = at - scheduled
            if self._client.read_lag_ns:
                self._unread += [
                    (generation, count, end, at) for generation, _, count, end in emission.tokens
                ]
                if self._unread and self._read_at is None:
                    self._read_at = at + self._client.read_lag(self._draw)
                continue
            for generation, _, count, end in emission.tokens:
                generation.put(count, end, at)
                if end:
                    self._finish(generation, at, at)

    def _read(self) -> None:
        """One read finds all that has arrived, and gives what it finds of a stream the instant of the last of it."""
        if self._read_at is None or self._read_at > self.now:
            return
        unread, self._unread, self._read_at = self._unread, [], None
        arrived = {id(generation): at for generation, _, _, at in unread}
        self._mark_merged(unread, arrived)
        for generation, count, end, _ in unread:
            if generation.ended:  # it was given up
                continue
            at = arrived[id(generation)]
            exchange = generation.exchange
            exchange.lag_ns = max(exchange.lag_ns, self.now - at)
            generation.put(count, end, at)
            if end:
                self._finish(generation, at, self.now)

    def _mark_merged(self, unread: list[tuple[Generation, int, int, int]], arrived: dict[int, int]) -> None:
        """Where a read finds a stream's tokens of several instants, the first may have come since the read before."""
        since, self._emptied_at = self._emptied_at, self.now
        packets = Counter(id(generation) for generation, *_ in unread)
        for generation in {id(generation): generation for generation, *_ in unread}.values():
            if packets[id(generation)] > 1 and not generation.ended:
                generation.merged.append((generation.text_events, arrived[id(generation)] - since))

    def _expire(self) -> None:
        while self._flying and (self._flying[0][2].ended or self._flying[0][0] <= self.now):
            _, _, generation = heapq.heappop(self._flying)
            if not generation.ended:
                self._give_up(generation, Outcome.TIMEOUT, "no complete response in time")

    def _send_due(self, share: Share) -> None:
        pacer, by, held = self._pacer, self.now - self._reaction, self._held
        while (hit := pacer.take(by)) is not None:
            last = held[-1][0] if held else 0
            held.append((max(last, self.now + self._client.late(self._draw)), hit))
        while held and held[0][0] <= self.now:
            hit = held.popleft()[1]
            self._send(hit, share.body(hit))

    def _end(self) -> int | None:
        """When the duration will be over; None: not known yet, or over."""
        began = self._pacer.measured_from() if self._duration else None
        return None if began is None else began + self._duration

    def _mind_the_end(self) -> None:
        end = self._end()
        if end is not None and self.now >= end:
            by = end + self._drain_ns
            self._drain_by = by if self._drain_by is None else min(self._drain_by, by)
            self._duration = 0
        if self._drain_by is not None and self.now >= self._drain_by:
            self._pacer.stop()
            self._held.clear()
            for _, _, generation in sorted(self._flying, key=itemgetter(1)):
                if not generation.ended:
                    self._give_up(generation, Outcome.CANCELLED, "cancelled: the time to drain was over")

    # One request.

    def _send(self, hit: Hit, body: bytes) -> None:
        now, server = self.now, self._server
        limit = None if self._share is None else self._share.timeout_ns(hit)
        deadline = now + (self._timeout_ns if limit is None else min(limit, self._timeout_ns))
        exchange = Exchange(hit.row, hit.cycle, hit.due_ns, b"", b"", deadline, server.dialect)
        exchange.t_taken = exchange.t_send = exchange.t_submit = now
        if self._share is not None and self._share.listens:
            exchange.body_crc = zlib.crc32(body)
        self._sent += 1
        try:
            ask = server.read(hit, body)
            generation = server.open(exchange, ask, server.started * SCATTER)
            server.started += 1
            if not self._engine.submit(
                generation, ask.prompt_tokens, ask.max_tokens, now, hashes=ask.hashes, priority=ask.priority
            ):
                raise queue_full(Options().reject_status)
        except ApiError as refused:
            exchange.status = refused.status
            exchange.t_first_byte = exchange.t_end = now
            exchange.fail(outcome_of_status(refused.status), str(refused))
            self._record(exchange, 0, now + REFUSAL_NS)
            return
        self._in_flight += 1
        heapq.heappush(self._flying, (deadline, self._sent, generation))

    def _finish(self, generation: Generation, at: int, read_at: int) -> None:
        """The last token arrived at `at`, and its slot is free when it is read."""
        self._in_flight -= 1
        events = generation.finish(at)
        generation.exchange.conclude()
        self._record(generation.exchange, events, read_at)

    def _give_up(self, generation: Generation, outcome: Outcome, detail: str) -> None:
        self._engine.cancel(generation, self.now)
        self._in_flight -= 1
        events = generation.finish(self.now)
        generation.exchange.fail(outcome, detail)
        self._record(generation.exchange, events, self.now)

    def _record(self, exchange: Exchange, events: int, free_at: int) -> None:
        ok = exchange.outcome == Outcome.OK
        if ok:
            self._ok += 1
        else:
            self._failed += 1
        self._events += events
        assert self._share is not None, "no phase has begun"
        phase = self._share.phase_of(exchange.index)
        self._led += ok and phase == Phase.LEAD
        self._journal.add(exchange, phase)
        if self._journal.pending >= FLUSH_ROWS:
            self._journal.flush()
        by_end = ok and self._share.by_end
        end = Ending(exchange.index, exchange.cycle, exchange.t_end if by_end else free_at, ok)
        if self._share.listens:
            self._share.ended(end, exchange.answer.reply())
        self._pacer.ended(end)

    # Who watches.

    def _look(self) -> None:
        self._watch(self._phase, self._progress())
        drain = self._heard()
        if drain is not None:
            self._pacer.stop()
            self._drain_by = self.now + drain

    def _progress(self) -> Progress:
        return Progress(self._sent, self._ok, self._failed, self._in_flight, self._events, self._led)

    def _pulse(self) -> None:
        """What costs a worker time costs nothing here: no CPU, no reads, no lag, no stall."""
        self._next_pulse = self.now + PULSE_NS
        ended = self._ok + self._failed
        self._journal.add_pulse(
            self.now, 0, None, 0, 0, 0, 0, self._offset_ns, self._in_flight, self._sent, ended, self._events
        )
        self._pulses += 1
        if self._pulses % FLUSH_ROWS == 0:
            self._journal.flush()
