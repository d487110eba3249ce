"""Traces of one's own: JSON Lines, `{"timestamp": 0.25, "input_tokens": 300, "output_tokens": 40}`, or with the text itself,
`{"timestamp": 0.25, "prompt": "Say hello.", "output_tokens": 40}`. `timestamp` is in seconds.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from inferometer.units import NS_PER_S
from inferometer.workload.traces.row import MOST_TOKENS, TOKENS, Row, Unfit, scaled_ns, unfit

_WANTED = {
    "timestamp": "a number of seconds, 0 or more",
    "input_tokens": TOKENS,
    "output_tokens": TOKENS,
    "prompt": "text",
}


class _Line(msgspec.Struct, gc=False):
    timestamp: Annotated[int, Meta(ge=0)] | Annotated[float, Meta(ge=0)]
    output_tokens: Annotated[int, Meta(ge=1, le=MOST_TOKENS)]
    input_tokens: Annotated[int, Meta(ge=1, le=MOST_TOKENS)] | None = None
    prompt: str | None = None


_decode = msgspec.json.Decoder(_Line).decode


def read(number: int, line: bytes) -> Row:
    """See Read."""
    try:
        found = _decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as cause:
        raise unfit(line, cause, _WANTED) from cause
    if found.prompt is None and found.input_tokens is None:
        raise Unfit("input_tokens", f"is missing: it must be {TOKENS}, unless there is a prompt")
    if found.prompt is not None and found.input_tokens is not None:
        raise Unfit("input_tokens", "contradicts prompt: a row has one of them")
    if found.prompt is not None and not found.prompt.strip():
        raise Unfit("prompt", "is empty")
    at_ns = scaled_ns(found.timestamp, NS_PER_S, "timestamp")
    return Row(number, at_ns, found.input_tokens, found.output_tokens, found.prompt)
