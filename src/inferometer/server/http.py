"""The reference server: one thread that reads requests, lets the engine's time pass, and sends each token at its instant.

A turn of the loop:

    wait     until a socket is ready or it is time to prepare the engine's next tokens (timerfd)
    read     every ready socket once; a complete request is answered, or submitted at the instant at which it arrived
    emit     make the tokens of one iteration ready to be sent; spin to their instant; send them, one `send` each

A request counts as there when the kernel has received its last byte, though it be read after tokens of a later instant have
gone: the engine settles what an iteration does when it is asked for what comes after it. Where the kernel does not say (TLS), a
request arrives when it is read.

Behind schedule (more tokens due than the core can send) nothing is skipped: operations are emitted back to back, sockets are
looked at between any two, and the truth log shows how late each token left.
"""

from __future__ import annotations

import contextlib
import heapq
import os
import random
import selectors
import socket
import sys
import traceback
from collections.abc import Callable

from inferometer.protocol.http_request import BadRequest, Request
from inferometer.protocol.websocket_handshake import SWITCHING
from inferometer.server import http2_session
from inferometer.server.answers import Answer
from inferometer.server.clock import Alarm, now, wall_offset, wall_seconds
from inferometer.server.connection import Connection, Outbox, Session, Socket
from inferometer.server.controls import State, controls_of
from inferometer.server.dialects import Dialects
from inferometer.server.engine.emission import Emission
from inferometer.server.engine_choice import engine_of
from inferometer.server.fault_injection import Trouble
from inferometer.server.gauges import Gauges
from inferometer.server.http_reply import CONTINUE, Reply
from inferometer.server.listener import listening
from inferometer.server.ollama import Lists
from inferometer.server.openai import ApiError, Ask, Tokenizer
from inferometer.server.options import Options
from inferometer.server.routes import Desk, Readers, overloaded, refusal
from inferometer.server.systems.chat import TaskAsk
from inferometer.server.systems.system_routes import System
from inferometer.server.timestamped_socket import StampedSocket
from inferometer.server.truth_log import Entry, TruthLog
from inferometer.server.voiced_answers import Loading
from inferometer.server.websocket_session import VERSION, WebSocketSession
from inferometer.units import NS_PER_S

LEAD_NS = 150_000
"""How long before its next tokens the loop wakes up: that takes 20 to 100 us on an idle core."""
_PREPARE_NS = 4_000  # making one token ready takes 2 to 3 us
_MOST_LEAD_NS = 2_000_000  # sockets are not looked at meanwhile
_READ = 1 << 18
_READS = 8  # sockets seen to between two emissions that are due already
_MOST_ROOM_NS = (
    1_000_000  # a request takes some 0.2 ms; a pause of the machine teaches nothing about the next
)
_PIPELINE = 16  # requests read ahead of the one being answered; beyond, the socket is left unread
_DISCARD = 1 << 26  # what a client may still send after we have hung up
_REQUEST_ID = 128  # characters of X-Request-Id kept
_SCATTER = 61  # how far apart two answers start in the passage
IN_PARTS = ("1.1", "2", VERSION)  # protocols in which an answer may be sent as it comes


class Server:
    """Listens from construction on, serves while `run` runs.

    `wrap` puts TLS around an accepted socket; `key` is what clients must send as bearer token. Raises OSError where the
    address cannot be had.
    """

    def __init__(
        self,
        options: Options,
        wrap: Callable[[socket.socket], Socket] | None = None,
        key: str | None = None,
    ) -> None:
        self._options = options
        self._wrap = wrap
        self._key = key
        self._engine, self._residence = engine_of(options)
        self._gauges = Gauges(options.model)
        self._truth = TruthLog(options.truth_tokens)
        self._dialects = Dialects(options.model, stamped=options.token_timestamps)
        self._later: list[
            tuple[int, int, Answer]
        ] = []  # a heap: when the model is there, for those that wait for it
        self._random = random.Random(options.seed)  # noqa: S311 - ids are to be repeatable, not secret
        self._started = 0
        self._trouble = Trouble(options.faults, options.seed, options.body_limit) if options.faults else None
        self._connections: set[Connection] = set()
        self._outbox = Outbox()
        self._room = 0  # about the longest that seeing to one socket took lately, ns
        self._stopping = False
        self._desk: Desk
        self._listener = listening(options)
        self._address: tuple[str, int] = self._listener.getsockname()[:2]
        self._accepting = False
        self._alarm = Alarm() if Alarm.available else None
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_out.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wake_in, selectors.EVENT_READ, self._woken)
        if self._alarm is not None:
            self._selector.register(self._alarm.fd, selectors.EVENT_READ, None)
        self._accept_more()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port listened on."""
        return self._address

    def stop(self) -> None:
        """End `run` soon; answers under way are cut off. For any thread and for signal handlers."""
        self._stopping = True
        with contextlib.suppress(OSError):  # full or closed: `run` wakes up, or has ended, anyway
            self._wake_out.send(b"x")

    def stop_at_end_of(self, descriptor: int) -> None:
        """End `run` when this pipe or terminal has no writer left. Raises OSError for a plain file."""

        def readable() -> None:
            if not os.read(descriptor, 4096):
                self._selector.unregister(descriptor)
                self.stop()

        self._selector.register(descriptor, selectors.EVENT_READ, readable)

    def run(self, tokenizer: Tokenizer) -> None:
        """Serve until `stop`. Call once; everything is closed afterwards."""
        self._desk = self._furnish(tokenizer)
        self._refuse_more()
        if self._options.load_at_start:
            self._residence.tell(now())
            self._residence.start()
        try:
            while not self._stopping:
                self._wait_and_read()
                if self._trouble is not None:
                    for connection in self._trouble.wake(now()):
                        self._proceed(connection)
                self._emit_when_due()
        finally:
            self._close()

    def _furnish(self, tokenizer: Tokenizer) -> Desk:
        options, born = self._options, wall_seconds()
        limit, block_tokens = options.max_model_len, 0
        if options.beat is None:
            block_tokens = options.engine.block_tokens
        return Desk(
            Readers(options.model, limit, tokenizer, options.parts, block_tokens),
            Lists(options.model, limit, born, self._residence, lambda at: at + wall_offset()),
            self._engine,
            self._gauges,
            self._truth,
            State(controls_of(self._engine), self._residence, self._truth, self._longest_waiting),
            self._key,
            born,
            options.routes,
            sockets=not options.faults,
        )

    def _close(self) -> None:
        for connection in list(self._connections):
            self._drop(connection, "cancelled")
        self._selector.close()
        for closable in (self._listener, self._wake_in, self._wake_out, self._alarm):
            if closable is not None:
                closable.close()
        if isinstance(self._engine, System):
            self._engine.log.close()

    # Time.

    def _wait_and_read(self) -> None:
        due: int | None = self._engine.next_due()
        if self._later and (due is None or self._later[0][0] < due):
            due = self._later[0][0]
        if self._trouble is not None:
            due = self._trouble.sooner(due)
        timeout: float | None = None
        until: int | None = None
        if due is not None:
            until = due - self._lead()
            wait = until - now()
            if wait <= 0:
                timeout, until = 0, None
            elif self._alarm is None:
                timeout = wait / NS_PER_S
        if self._alarm is not None and timeout is None:
            self._alarm.set(until or 0)
        self._serve_ready(self._selector.select(timeout), until)

    def _serve_ready(self, ready: list[tuple[selectors.SelectorKey, int]], until: int | None) -> None:
        """See to sockets that are ready, as long as one more will be done by `until`, when tokens want preparing; where tokens
        are due already, to a few. The selector will name the others again.
        """
        before = now()
        for done, (key, mask) in enumerate(ready):
            if done >= _READS if until is None else before + self._room >= until:
                return
            target = key.data
            if isinstance(target, Connection):
                if mask & selectors.EVENT_WRITE:
                    target.flush()
                    self._proceed(target)
                if mask & selectors.EVENT_READ:
                    self._read(target)
                after = now()
                self._room = min(_MOST_ROOM_NS, max(after - before, self._room - (self._room >> 5)))
                before = after
            elif target is not None:
                target()

    def _lead(self) -> int:
        """How long before tokens are due it is time to make them ready, ns."""
        return min(LEAD_NS + self._engine.crowd * _PREPARE_NS, _MOST_LEAD_NS)

    def _emit_when_due(self) -> None:
        if self._later:
            self._begin_when_loaded()
        due = self._engine.next_due()
        if due is None or due - now() > self._lead():
            return
        emission = self._engine.advance(max(due, now()))
        if emission is not None and (emission.tokens or emission.prefilled):
            self._prepare(emission)
            while now() < emission.at:
                pass
            self._outbox.send()
            self._look_after(emission)

    def _prepare(self, emission: Emission[Answer]) -> None:
        """All that can be done of an emission before its instant."""
        at = emission.at
        seen = max(now(), at)
        observe = self._gauges.itl.observe
        for answer, cached in emission.cached:
            answer.entry.cached_tokens = cached
        for answer, scheduled in emission.prefilled:
            answer.entry.scheduled_ns, answer.entry.prefilled_ns = scheduled, at
        produced = 0
        for answer, index, count, end in emission.tokens:
            produced += count
            if index:
                observe(seen - answer.emitted_ns)
            elif count:  # none of a task that failed
                self._gauges.ttft.observe(seen - answer.entry.received_ns)
            answer.emitted_ns = seen
            answer.put(count, end, at)
        self._gauges.generation_tokens += produced

    def _look_after(self, emission: Emission[Answer]) -> None:
        """See to the connections of those that have ended or could not be sent to."""
        for answer, _, _, end in emission.tokens:
            connection = answer.connection
            if end or connection.backlog or connection.lost:
                self._proceed(connection)

    def _begin_when_loaded(self) -> None:
        """Those that waited for the model begin at the instant at which it is there. Nobody comes in between, so the queue,
        whose limit was kept among them, has room for all.
        """
        at: int | None = None
        while self._later and self._later[0][0] <= now():
            at, _, answer = heapq.heappop(self._later)
            if answer.connection.answer is answer:  # else its client has left
                if isinstance(answer, Loading):
                    answer.loaded()
                    self._proceed(answer.connection)
                else:
                    taken = self._submit(answer, at)
                    assert taken
        if at is not None:
            self._residence.let_in(at)

    def _longest_waiting(self) -> int:
        """Tokens of the longest request that waits for the model, prompt and answer together."""
        asks = (answer.ask for _, _, answer in self._later if answer.connection.answer is answer)
        return max((ask.prompt_tokens + ask.max_tokens for ask in asks), default=0)

    # Connections.

    def _woken(self) -> None:
        self._wake_in.recv(64)

    def _accept_more(self) -> None:
        if not self._accepting:
            self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
            self._accepting = True

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except BlockingIOError:
                return
            except ConnectionError:
                continue  # gone before we took it
            except OSError:  # out of descriptors: look again when one is given back
                self._selector.unregister(self._listener)
                self._accepting = False
                return
            if self._trouble is not None and not self._trouble.admits(sock):
                continue
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                wrapped: Socket = StampedSocket(sock) if self._wrap is None else self._wrap(sock)
            except OSError:
                sock.close()
                continue
            connection = (
                Connection(wrapped, self._options.body_limit, self._outbox)
                if self._trouble is None
                else self._trouble.connection(wrapped, self._outbox)
            )
            self._connections.add(connection)
            self._watch(connection)
            if self._refuse_more():
                return

    def _refuse_more(self) -> bool:
        """Stop listening, for good, where a fault says so."""
        if self._trouble is None or not self._trouble.refuses:
            return False
        self._selector.unregister(self._listener)
        self._listener.close()
        return True

    def _watch(self, connection: Connection) -> None:
        """Have the selector look for what this connection can use now."""
        connection = connection.carrier
        interest = selectors.EVENT_WRITE if connection.backlog else 0
        if connection.discarding or len(connection.requests) < _PIPELINE:
            interest |= selectors.EVENT_READ
        if interest == connection.interest:
            return
        if not interest:
            self._selector.unregister(connection.sock)
        elif not connection.interest:
            self._selector.register(connection.sock, interest, connection)
        else:
            self._selector.modify(connection.sock, interest, connection)
        connection.interest = interest

    def _drop(self, connection: Connection, outcome: str) -> None:
        """Close at once; a generation under way is taken from the engine and logged with `outcome`."""
        connection.lost = True
        answer, connection.answer = connection.answer, None
        if isinstance(answer, Answer):
            self._residence.tell(now())
            self._residence.end()
            if answer.ask.max_tokens:
                self._engine.cancel(answer, now())
                self._gauges.aborted += 1
                self._log(answer, outcome)
        if connection.carrier is not connection:
            connection.reset()
            if connection.carrier.lost:
                self._drop(connection.carrier, outcome)
        elif connection in self._connections:
            self._connections.remove(connection)
            if connection.session is not None:
                self._end_session(connection.session, outcome)
            self._hang_up(connection)

    def _end_session(self, session: Session, outcome: str) -> None:
        """All that it carries on one connection ends with it."""
        if self._stopping:
            session.leave()
        for stream in session.carried():
            self._drop(stream, outcome)
        session.close()

    def _hang_up(self, connection: Connection) -> None:
        if connection.interest:
            self._selector.unregister(connection.sock)
        connection.sock.close()
        self._accept_more()

    def _read(self, connection: Connection) -> None:
        if connection.lost:
            return
        try:
            data = connection.sock.recv(_READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        read_at = now()
        if not data:
            self._drop(connection, "cancelled")
        elif connection.closing:
            connection.discarded += len(data)
            if connection.discarded > _DISCARD:
                self._drop(connection, "cancelled")
        else:
            if connection.opening is not None:
                data = http2_session.recognised(connection, data, self._outbox, self._options)
            instants = read_at, connection.sock.arrived_ns
            if connection.session is not None:
                self._carry(connection, connection.session, data, *instants)
            else:
                connection.requests.extend((request, *instants) for request in connection.decoder.feed(data))
                self._proceed(connection)

    def _carry(
        self, connection: Connection, session: Session, data: bytes, read_at: int, arrived: int | None
    ) -> None:
        """Bytes of HTTP/2 or of a WebSocket have come: look after the streams that they concern."""
        for stream in session.receive(data, read_at, arrived):
            self._proceed(stream)
        if session.broken and not connection.lost:  # close it, as soon as the client has been told why
            self._end_session(session, "cancelled")
            connection.session, connection.closing = None, True
        self._proceed(connection)

    def _proceed(self, connection: Connection) -> None:
        """Do what this connection's state allows: settle what was sent, then answer what waits behind it."""
        if connection.session is not None:
            for stream in connection.session.take_drained():
                self._proceed(stream)
        while self._settled(connection) and connection.requests and not connection.closing:
            self._answer(connection, *connection.requests.popleft())
        if connection.lost:
            return
        free = connection.answer is None and not connection.backlog and not connection.closing
        if free and connection.decoder.take_continue():
            connection.send(CONTINUE)
        self._watch(connection)

    def _settled(self, connection: Connection) -> bool:
        """All that was sent is with the kernel and no generation is under way."""
        answer = connection.answer
        if connection.lost:
            self._drop(connection, "cancelled")
            return False
        if connection.backlog or connection.held:
            if answer is not None and not answer.done and connection.backlog > self._options.backlog_limit:
                self._drop(connection, "overflow")
            return False
        if isinstance(answer, Answer):
            if not answer.done:
                return False
            self._finish(answer)
        if connection.closing and not connection.discarding:
            connection.discarding = True
            connection.requests.clear()
            with contextlib.suppress(OSError):  # the client was faster
                connection.sock.shutdown(socket.SHUT_WR)
        return True

    # Requests.

    def _answer(
        self, connection: Connection, request: Request | BadRequest, read_at: int, arrived: int | None
    ) -> None:
        keep_alive = connection.carrier is not connection or (
            isinstance(request, Request) and request.keep_alive and request.version == "1.1"
        )
        if isinstance(request, BadRequest):
            result: Reply | Ask = refusal(ApiError(request.status, request.reason))
        else:
            self._residence.tell(read_at)
            try:
                result = self._desk.answer(request)
                if isinstance(result, Ask) and result.stream and request.version not in IN_PARTS:
                    result = refusal(
                        ApiError(505, "a stream is sent in chunks, which HTTP/1.0 does not know")
                    )
            except (
                BaseException
            ) as cause:  # our bug, or a package's panic, must not end the other clients' streams
                if isinstance(cause, KeyboardInterrupt | SystemExit):
                    raise
                traceback.print_exc(file=sys.stderr)
                result = refusal(ApiError(500, "the server has a bug; its standard error says more"))
        if isinstance(result, Ask):
            request_id = request.header(b"x-request-id") if isinstance(request, Request) else ""
            self._start(connection, result, request_id, read_at, arrived, keep_alive)
        else:
            connection.send(result.encode(keep_alive))
            connection.closing = not keep_alive
            if result.status == SWITCHING and isinstance(request, Request):
                connection.session = WebSocketSession(connection, request, self._outbox, self._options)

    def _start(
        self,
        connection: Connection,
        ask: Ask,
        request_id: str,
        read_at: int,
        arrived: int | None,
        keep_alive: bool,
    ) -> None:
        number = f"{self._random.getrandbits(128):032x}"
        entry = Entry(
            self._dialects.ident(ask.api, number),
            request_id[:_REQUEST_ID] or None,
            ask.api,
            ask.stream,
            ask.prompt_tokens,
            ask.max_tokens,
            read_at,
            ask.head,
            arrived,
        )
        place = self._started
        self._started += 1
        answer = self._dialects.answer(
            connection,
            ask,
            entry,
            number=number,
            wall_offset_ns=wall_offset(),
            start=place * _SCATTER,
            keep_alive=keep_alive,
        )
        reply = None if self._trouble is None else self._trouble.instead(entry, ask, place)
        if reply is not None:
            connection.send(reply.encode(keep_alive))
            connection.closing = not keep_alive
            self._log(answer, "replaced")
            return
        # A request that waited behind another on its connection begins when that one ends.
        at = max(read_at if arrived is None else min(arrived, read_at), self._engine.now)
        self._residence.tell(at)
        wait = self._residence.begin(ask.keep_ns, load=bool(ask.max_tokens or ask.keep_ns))
        if not self._admit(answer, at, wait):
            self._residence.end()
            connection.send(overloaded(ask, self._options.reject_status).encode(keep_alive))
            connection.closing = not keep_alive
            return
        if self._trouble is not None:
            self._trouble.meet(connection, entry, ask, place)
        connection.answer = answer
        if not isinstance(ask, TaskAsk):  # a task's calls have prompts of their own
            self._gauges.prompt_tokens += ask.prompt_tokens
        answer.open()
        if wait:
            answer.load_ns = wait
            heapq.heappush(self._later, (self._residence.now + wait, place, answer))
        elif isinstance(answer, Loading):
            answer.loaded()

    def _admit(self, answer: Answer, at: int, wait: int) -> bool:
        """Whether there is room for a request; one that need not wait for the model is with the engine then."""
        if not answer.ask.max_tokens:
            return True
        if wait:
            limit = 0 if self._options.beat is not None else self._options.engine.queue_limit
            return not limit or len(self._later) < limit
        return self._submit(answer, at)

    def _submit(self, answer: Answer, at: int) -> bool:
        """Have the engine generate, from `at` on. False where its queue is full."""
        ask = answer.ask
        at = max(at, self._engine.now)
        return self._engine.submit(
            answer, ask.prompt_tokens, ask.max_tokens, at, hashes=ask.hashes, priority=ask.priority
        )

    def _finish(self, answer: Answer) -> None:
        connection = answer.connection
        connection.answer = None
        connection.closing |= not answer.keep_alive
        self._residence.tell(now())
        self._residence.end()
        if not answer.ask.max_tokens:
            return
        answer.settle()
        self._gauges.finished += 1
        self._gauges.ended(answer.entry, answer.emitted_ns)
        self._log(answer, "finished")

    def _log(self, answer: Answer, outcome: str) -> None:
        entry = answer.entry
        entry.outcome = outcome
        if not entry.ended:
            entry.ended.append(now())
        if isinstance(answer.ask, TaskAsk):
            prompts, unseen = answer.ask.task.beyond_the_answer()
            self._gauges.prompt_tokens += prompts
            self._gauges.generation_tokens += unseen
        self._truth.add(entry)
