"""Mooncake's traces: JSON Lines, `{"timestamp": 27482, "input_length": 655, "output_length": 52, "hash_ids": [46, 47]}`.

`timestamp` is in milliseconds. A hash id stands for BLOCK tokens of the prompt and for all before them, so two requests share
their beginnings as far as their ids agree. The published files have ceil(input_length / BLOCK) ids, the last of which is
that of the block that is not full. Fewer are taken too: what they do not cover is shared with nobody.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from inferometer.units import NS_PER_MS
from inferometer.workload.traces.row import MOST_TOKENS, TOKENS, Row, Unfit, scaled_ns, unfit

BLOCK = 512

_WANTED = {
    "timestamp": "a number of milliseconds, 0 or more",
    "input_length": TOKENS,
    "output_length": TOKENS,
    "hash_ids": "a list of whole numbers",
}


class _Line(msgspec.Struct, gc=False):
    timestamp: Annotated[int, Meta(ge=0)] | Annotated[float, Meta(ge=0)]
    input_length: Annotated[int, Meta(ge=1, le=MOST_TOKENS)]
    output_length: Annotated[int, Meta(ge=1, le=MOST_TOKENS)]
    hash_ids: tuple[int, ...] = ()


_decode = msgspec.json.Decoder(_Line).decode


def read(number: int, line: bytes) -> Row:
    """See Read."""
    try:
        found = _decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as cause:
        raise unfit(line, cause, _WANTED) from cause
    if (len(found.hash_ids) - 1) * BLOCK >= found.input_length:
        blocks = -(-found.input_length // BLOCK)
        raise Unfit(
            "hash_ids",
            f"has {len(found.hash_ids)} ids, but {found.input_length} tokens are {blocks} blocks of {BLOCK}",
        )
    at_ns = scaled_ns(found.timestamp, NS_PER_MS, "timestamp")
    return Row(number, at_ns, found.input_length, found.output_length, None, found.hash_ids)
