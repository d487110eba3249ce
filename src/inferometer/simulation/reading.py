"""How the simulated server reads a request: with the reference server's own reader, body by body.

Counting a prompt's tokens costs most of that, and the schedule has counted them once. Where it counted with the server's
tokenizer (cl100k_base), the server is told the count instead of finding it again. Where a run is carried out once more
(studies/fit.py), it is told what the server of that run counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from inferometer.drive.pacer import Hit
from inferometer.server import dialects
from inferometer.server.engine.settings import Settings
from inferometer.server.openai import Ask
from inferometer.server.options import Options


class Encoder(Protocol):
    """What is needed of a tokenizer."""

    def encode(self, text: str) -> list[int]:
        """The ids of `text`."""


class _Counted:
    """Stands in for the tokenizer where a prompt's tokens have been counted: as many ids, none of them its own.

    A chat's texts are asked for one by one, and counted together: the first one is given all of the ids.
    """

    def __init__(self, tokenizer: Encoder) -> None:
        self._names = {
            name: tokenizer.encode(name) for name in ("system", "user", "assistant")
        }  # a chat's roles
        self.tokens = 0

    def encode(self, text: str) -> list[int]:
        """See Encoder."""
        if text in self._names:
            return self._names[text]
        ids = [0] * self.tokens
        self.tokens = 0
        return ids


def reader(
    api: str,
    model: str,
    engine: Settings,
    tokenizer: Encoder,
    counted: Sequence[int] | None,
    lengths: Mapping[int, tuple[int, int]],
) -> Callable[[Hit, bytes], Ask]:
    """What the server makes of the body of a request that is due; may raise ApiError.

    `tokenizer`: the server's. `counted`: by row of the schedule, the tokens of its prompt in that tokenizer; None: to be
    counted. An engine with a prefix cache has to know the tokens themselves. `lengths`: by row, tokens of prompt and answer,
    whatever the body says.
    """
    known = None if counted is None or engine.prefix_caching else _Counted(tokenizer)
    limit = min(Options().max_model_len, engine.capacity_tokens)
    blocks = engine.block_tokens if engine.prefix_caching else 0
    read = dialects.reader(api, model, limit, known or tokenizer, blocks)

    def ask(hit: Hit, body: bytes) -> Ask:
        if known is not None and counted is not None:
            known.tokens = counted[hit.row]
        asked = read(body)
        if (both := lengths.get(hit.row)) is None:
            return asked
        return msgspec.structs.replace(asked, prompt_tokens=both[0], max_tokens=both[1])

    return ask
