"""The prompts of a trace: as long as traced, and alike where the trace says that they are.

A prompt is put together from blocks of 512 tokens. What a block says is decided by the plan's seed and by its name alone:

| block                         | its name                            | so it is the same                        |
| ----------------------------- | ----------------------------------- | ---------------------------------------- |
| one that has a hash id        | the id                              | wherever the id stands                   |
| any other                     | the row's line in the file, and the | nowhere else                             |
|                               | block's place in the prompt         |                                          |

The last block of a prompt is cut to the length that is left. Over ids a block is 512 ids of the vocabulary. Over text it is
512 plain words of one token each, every one behind a space: so it counts 512 tokens whatever stands before and behind it, and
equal blocks are equal text. A row that brings its own text is sent that text, and nothing else.

The nonce takes the place of a prompt's first tokens, as in prompts.py. It depends on the run's salt and on what the prompt
begins with: its first hash id, or its line. So prompts that begin alike by the trace's wish have the same nonce and share all
that they should; no others do; and nothing is shared with another run.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from inferometer.errors import PlanError, Problem
from inferometer.workload.nonces import NONCES, speller
from inferometer.workload.plain_words import ruler
from inferometer.workload.prompts import Prompt, allowed_ids, plain_words, ruled
from inferometer.workload.traces.mooncake import BLOCK
from inferometer.workload.traces.row import Row

if TYPE_CHECKING:
    from inferometer.plan.workload import AnyWorkload
    from inferometer.workload.tokenizers import Tokenizer

_KEPT = 4096
"""Blocks remembered as text: some 12 MB."""
_TRIES = 8


class Composer:
    """Makes the prompts of a trace's rows, in any order, each from its row alone. Raises PlanError for a tokenizer that has no
    plain words.

    `salt` as in prompts.py; `spec.repeatable_prompts` leaves the nonces out.
    """

    def __init__(
        self, spec: AnyWorkload, tokenizer: Tokenizer, salt: int, prompt_format: Literal["ids", "text"]
    ) -> None:
        self._seed, self._salt, self._tokenizer = spec.seed, salt, tokenizer
        self._spell = None if spec.repeatable_prompts else speller(tokenizer, prompt_format)
        self._ids = np.array(allowed_ids(tokenizer), np.int64) if prompt_format == "ids" else None
        self._words: Sequence[str] = plain_words(tokenizer) if prompt_format == "text" else ()
        if prompt_format == "text" and not self._words:
            raise PlanError(
                [Problem("--tokenizer", "has no plain words of one token to write a trace's prompts with")]
            )
        self._array = np.array(self._words, object)
        self._ruler = ruler(tokenizer)
        self._heads = [word for word in self._words if len(self._ruler.encode(word.lstrip())) == 1]
        self._whole = ruled(tokenizer, BLOCK, "")
        self._kept: OrderedDict[bytes, str] = OrderedDict()

    def prompt(self, row: Row) -> Prompt:
        """What is sent for a row."""
        if row.prompt is not None:
            count = len(self._tokenizer.encode(row.prompt))
            return Prompt(row.prompt, count, count, row.output_tokens, "")
        assert row.input_tokens is not None
        names = self._names(row, row.input_tokens)
        nonce = self._spell(self._value(names[0])) if self._spell is not None else ""
        if self._ids is not None:
            return self._of_ids(row, row.input_tokens, names, nonce, self._ids)
        return self._of_words(row, row.input_tokens, names, nonce)

    def _names(self, row: Row, length: int) -> list[bytes]:
        own = range(len(row.hash_ids), -(-length // BLOCK))
        return [b"hash %d" % one for one in row.hash_ids] + [b"line %d %d" % (row.line, at) for at in own]

    def _value(self, name: bytes) -> int:
        digest = hashlib.sha256(b"inferometer nonce " + name).digest()
        return (self._salt + int.from_bytes(digest[:8], "big")) % NONCES

    def _numbers(self, name: bytes, count: int) -> NDArray[np.uint32]:
        """`count` numbers that belong to the block: the first ones are the same whatever the count."""
        stream = hashlib.shake_128(b"inferometer block %d " % self._seed + name).digest(4 * count)
        return np.frombuffer(stream, "<u4")

    def _of_ids(
        self, row: Row, length: int, names: list[bytes], nonce: str, allowed: NDArray[np.int64]
    ) -> Prompt:
        front = [int(word) for word in nonce.split(",")] if nonce else []
        ids: list[int] = []
        for at, name in enumerate(names):
            numbers = self._numbers(name, min(BLOCK, length - at * BLOCK))
            ids += allowed[numbers % len(allowed)].tolist()
        ids = front + ids[len(front) :]
        return Prompt(ids, length, len(ids), row.output_tokens, nonce)

    def _of_words(self, row: Row, length: int, names: list[bytes], nonce: str) -> Prompt:
        *full, last = names
        texts = [self._block(name) for name in full]
        rest = ruled(self._tokenizer, length - BLOCK * len(full), "" if full else nonce)
        head = self._block_words(names[0], self._whole if full else rest)
        marked = len(self._ruler.encode(nonce))
        if nonce:
            head[:marked] = [nonce]
        else:  # neither end of a prompt is white space: a chat template may strip that
            heads = self._heads or self._words
            head[0] = heads[self._numbers(names[0], 1)[0] % len(heads)].lstrip()
        tail = self._block_words(last, rest) if full else []
        sent = max(length, marked, 1)
        if self._ruler is not self._tokenizer:
            text = "".join([*head, *texts[1:], *tail])
            sent = len(self._tokenizer.encode(text))
        elif not self._tokenizer.splits_at_words:  # not known to count as its parts do
            text, sent = self._counted("".join([*head, *texts[1:]]), tail, length)
        else:
            text = "".join([*head, *texts[1:], *tail])
        return Prompt(text, length, sent, row.output_tokens, nonce)

    def _block_words(self, name: bytes, count: int) -> list[str]:
        words: list[str] = self._array[self._numbers(name, count) % len(self._array)].tolist()
        return words

    def _block(self, name: bytes) -> str:
        kept = self._kept.get(name)
        if kept is None:
            kept = self._kept[name] = "".join(self._block_words(name, self._whole))
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(name)
        return kept

    def _counted(self, front: str, tail: list[str], length: int) -> tuple[str, int]:
        """The text and its tokens; words are taken off its end, or put there, until they are as many as asked.

        Where there is no tail to take from, the words of the front serve.
        """
        if not tail:
            first, *rest = re.split(r"(?= )", front)
            front, tail = first, rest
        for _ in range(_TRIES):
            text = front + "".join(tail)
            sent = len(self._tokenizer.encode(text))
            if sent == length or (sent > length and not tail):
                break
            if sent > length:
                del tail[max(0, len(tail) - (sent - length)) :]
            else:
                tail += [self._words[n % len(self._words)] for n in range(length - sent)]
        return text, sent
