"""What the end of a gRPC response makes of a request: its status, as the outcome that HTTP has for the like.

Statuses are paired with those of HTTP as google/rpc/code.proto pairs them.

| status                                                                                        | outcome     |
| --------------------------------------------------------------------------------------------- | ----------- |
| OK                                                                                            | the answer's |
| INVALID_ARGUMENT, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED, UNAUTHENTICATED,              | `http_4xx`  |
| FAILED_PRECONDITION, OUT_OF_RANGE, ABORTED                                                    |             |
| RESOURCE_EXHAUSTED                                                                            | `http_429`  |
| UNKNOWN, INTERNAL, UNAVAILABLE, UNIMPLEMENTED, DATA_LOSS                                      | `http_5xx`  |
| DEADLINE_EXCEEDED                                                                             | `timeout`   |
| CANCELLED, which the server has done, not we                                                  | `reset`     |
| none                                                                                          | `truncated` |
| one that is no number                                                                         | `bad_http`  |
"""

from __future__ import annotations

from collections.abc import Mapping

from inferometer.journal.schema import Outcome
from inferometer.protocol.grpc import BadMessage, read_status

NO_STATUS = "the response ended without a grpc-status"
INSIDE = "the response ended inside a message"

_OUTCOMES = {
    "CANCELLED": Outcome.RESET,
    "INVALID_ARGUMENT": Outcome.HTTP_4XX,
    "DEADLINE_EXCEEDED": Outcome.TIMEOUT,
    "NOT_FOUND": Outcome.HTTP_4XX,
    "ALREADY_EXISTS": Outcome.HTTP_4XX,
    "PERMISSION_DENIED": Outcome.HTTP_4XX,
    "RESOURCE_EXHAUSTED": Outcome.HTTP_429,
    "FAILED_PRECONDITION": Outcome.HTTP_4XX,
    "ABORTED": Outcome.HTTP_4XX,
    "OUT_OF_RANGE": Outcome.HTTP_4XX,
    "UNAUTHENTICATED": Outcome.HTTP_4XX,
}


def failure(trailers: Mapping[bytes, bytes] | None, *, unfinished: bool) -> tuple[Outcome, str] | None:
    """The outcome and the detail of a response with these trailers; None: the answer decides. `unfinished`: its last message is
    not whole."""
    try:
        status = read_status(trailers or {})
    except BadMessage as cause:
        return Outcome.BAD_HTTP, str(cause)
    if status is None:
        return Outcome.TRUNCATED, NO_STATUS
    if status.code:
        return _OUTCOMES.get(status.name, Outcome.HTTP_5XX), str(status)
    return (Outcome.TRUNCATED, INSIDE) if unfinished else None
