"""What the turns of a conversation say (places.py has which requests those are).

The messages of the turns are drawn as for requests of one turn, one after the other: conversations change nothing about what is
said, only who repeats it. A turn sends everything that was said in its session before, and adds its own messages. Nobody
knows the server's replies before the start, so the worker that sends the turns puts together what they repeat
(drive/share.py). Recorded replies come with the turn that they answer: those of a file, or for drawn prompts pieces of the
English corpus, as long as the answer asked for.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from inferometer.workload import corpora
from inferometer.workload.plain_words import ruler
from inferometer.workload.prompts import Message, Prompt, ruled
from inferometer.workload.turn_schedule import Place

if TYPE_CHECKING:
    from inferometer.plan.workload import AnyWorkload
    from inferometer.workload.tokenizers import Tokenizer


def chained(
    spec: AnyWorkload, tokenizer: Tokenizer, prompts: Iterable[Prompt], places: Sequence[Place]
) -> Iterator[Prompt]:
    """Drawn prompts as the turns at these places. Of a session only the first may have a prefix that others share."""
    reply = _recorded(spec, tokenizer) if spec.replies == "recorded" else None
    tokens_so_far = SessionTokens()
    for prompt, place in zip(prompts, places, strict=True):
        turn = prompt if prompt.messages else replace(prompt, messages=(("user", str(prompt.content)),))
        if reply is None:
            yield tokens_so_far.turn(turn, place, None, turn.output)
        else:
            text = reply(turn.output)
            yield tokens_so_far.turn(turn, place, (("assistant", text),), len(tokenizer.encode(text)))


def _recorded(spec: AnyWorkload, tokenizer: Tokenizer) -> Callable[[int], str]:
    corpus = corpora.load("english")
    digest = hashlib.sha256(b"inferometer replies %d" % spec.seed).digest()
    rng = random.Random(int.from_bytes(digest, "big"))  # noqa: S311 (a repeatable stream, not a secret one)
    cut, by = corpora.cut, ruler(tokenizer)
    return lambda tokens: cut(corpus, by, ruled(tokenizer, tokens, ""), rng.getrandbits(64))


class SessionTokens:
    """How many tokens have been said in a session, turn by turn, and what it shares with others from its first turn on."""

    def __init__(self) -> None:
        self._tokens = self._last = self._shared = 0
        self._group = -1

    def turn(self, prompt: Prompt, place: Place, reply: tuple[Message, ...] | None, tokens: int) -> Prompt:
        """The prompt at its place, with the recorded `reply` to it; that, or the server's, is to have so many tokens."""
        if place.turn == 0:
            self._tokens = self._last = 0
            self._shared, self._group = prompt.shared, prompt.group
        repeated, known = self._tokens, self._tokens - self._last
        self._tokens = repeated + prompt.sent + tokens
        self._last = 0 if reply is None else tokens
        return replace(
            prompt,
            place=place,
            reply=reply,
            repeated=repeated,
            known=known,
            shared=self._shared,
            group=self._group,
        )
