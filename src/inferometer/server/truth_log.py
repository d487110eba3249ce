"""The truth log: what this server did and when, kept to check what a client says it saw.

One JSON object a line for every generation that has ended, oldest first (`GET /inferometer/truth`):

| field            | is                                                                                       |
| ---------------- | ---------------------------------------------------------------------------------------- |
| `id`             | the response's `id`, as the client saw it                                                |
| `request_id`     | the request's `X-Request-Id`, or null                                                    |
| `api`, `stream`  | one of dialects.APIS, as `chat`; whether it was streamed                                 |
| `prompt_tokens`  | as counted here                                                                          |
| `max_tokens`     | as asked for                                                                             |
| `cached_tokens`  | prompt tokens that came from the prefix cache                                            |
| `prompt_head`    | the first 96 characters of the (last) prompt; of ids, the first 8 with commas between    |
| `arrived_ns`     | the kernel received the request's last byte; null where the kernel does not say          |
| `received_ns`    | the request's last byte had been read                                                    |
| `scheduled_ns`   | the first iteration that computed a part of the prompt began; null where none did        |
| `prefilled_ns`   | the iteration that completed the prompt ended; null likewise                             |
| `opened_ns`      | the first event (chat: the role) had been handed to the kernel; null if not streamed     |
| `model_ns`       | for each token: when the model says it came to be                                        |
| `sent_ns`        | for each token: after the `send` that took its last byte returned                        |
| `ended_ns`       | the response's last byte had been handed over, or the request given up                   |
| `outcome`        | `finished`, `cancelled` (the client went away, or a fault cut it off), `overflow` (it did |
|                  | not read) or `replaced` (a fault answered in its place)                                  |
| `fault`          | the fault that it met (fault_specs.py), `status` with its code as `status:429`; null if none  |

Times are ns on this machine's monotonic clock (CLOCK_MONOTONIC on Linux), so a client on the same machine can subtract. Tokens
that leave with one `send` share its time: those of one event, and all of a response that is not streamed. After `cancelled` and
`overflow`, `model_ns` may be longer than `sent_ns`: those tokens never left.

Memory is bounded by the tokens held: beyond the limit the oldest requests are forgotten, and their number is told in the
`X-Inferometer-Forgotten` header.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterator

import msgspec

from inferometer.server.http_reply import JsonObject

_ROW_COST = 64  # a row without tokens weighs about as much as this many token times


class Entry:
    """One generation, while it lasts and after. The arrays are what `Connection.send` stamps into."""

    __slots__ = (
        "api",
        "arrived_ns",
        "cached_tokens",
        "ended",
        "fault",
        "id",
        "max_tokens",
        "model_ns",
        "opened",
        "outcome",
        "prefilled_ns",
        "prompt_head",
        "prompt_tokens",
        "received_ns",
        "request_id",
        "scheduled_ns",
        "sent_ns",
        "stream",
    )

    def __init__(
        self,
        ident: str,
        request_id: str | None,
        api: str,
        stream: bool,
        prompt_tokens: int,
        max_tokens: int,
        received_ns: int,
        prompt_head: str = "",
        arrived_ns: int | None = None,
    ) -> None:
        self.id = ident
        self.request_id = request_id
        self.api = api
        self.stream = stream
        self.prompt_tokens = prompt_tokens
        self.max_tokens = max_tokens
        self.cached_tokens = 0
        self.prompt_head = prompt_head
        self.arrived_ns = arrived_ns
        self.received_ns = received_ns
        self.scheduled_ns: int | None = None
        self.prefilled_ns: int | None = None
        self.opened = array("q")
        self.model_ns = array("q")
        self.sent_ns = array("q")
        self.ended = array("q")
        self.outcome = ""
        self.fault: str | None = None

    @property
    def due_ns(self) -> int:
        """When the engine could have begun: its last byte was with the kernel, or had been read."""
        return self.received_ns if self.arrived_ns is None else min(self.arrived_ns, self.received_ns)

    @property
    def prefill_ns(self) -> int | None:
        """From the first iteration of its prompt to the end of the last; None where there was none."""
        if self.scheduled_ns is None or self.prefilled_ns is None:
            return None
        return self.prefilled_ns - self.scheduled_ns

    def as_dict(self) -> JsonObject:
        """The row, in the order of the table above."""
        return {
            "id": self.id,
            "request_id": self.request_id,
            "api": self.api,
            "stream": self.stream,
            "prompt_tokens": self.prompt_tokens,
            "max_tokens": self.max_tokens,
            "cached_tokens": self.cached_tokens,
            "prompt_head": self.prompt_head,
            "arrived_ns": self.arrived_ns,
            "received_ns": self.received_ns,
            "scheduled_ns": self.scheduled_ns,
            "prefilled_ns": self.prefilled_ns,
            "opened_ns": self.opened[0] if self.opened else None,
            "model_ns": self.model_ns.tolist(),
            "sent_ns": self.sent_ns.tolist(),
            "ended_ns": self.ended[0],
            "outcome": self.outcome,
            "fault": self.fault,
        }


class TruthLog:
    """The entries that have ended. `token_limit` bounds the token times kept (16 bytes each)."""

    def __init__(self, token_limit: int) -> None:
        self._token_limit = token_limit
        self._entries: deque[Entry] = deque()
        self._held = 0
        self.forgotten = 0

    def add(self, entry: Entry) -> None:
        """Keep an entry that has ended, and forget the oldest ones that no longer fit; the newest always stays."""
        self._entries.append(entry)
        self._held += _cost(entry)
        while self._held > self._token_limit and len(self._entries) > 1:
            self._held -= _cost(self._entries.popleft())
            self.forgotten += 1

    def reset(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._held = 0
        self.forgotten = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def json_lines(self) -> bytes:
        """The whole log as JSON Lines."""
        return msgspec.json.Encoder().encode_lines([entry.as_dict() for entry in self._entries])


def _cost(entry: Entry) -> int:
    return len(entry.model_ns) + _ROW_COST
