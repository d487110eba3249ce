"""The server's own tokenizer, asked over HTTP: before the clock starts, to make prompts, and after it, to count answers.

| server             | `POST /tokenize`                | answers  | `POST /detokenize` | answers            |
| ------------------ | ------------------------------- | -------- | ------------------ | ------------------ |
| vLLM, SGLang, ours | `model`, `prompt`, and          | `tokens` | `model`, `tokens`  | `prompt` or `text` |
|                    | `add_special_tokens`: false     |          |                    |                    |
| llama.cpp          | `content`                       | `tokens` | `tokens`           | `content`          |

Which of the two it is, the first question finds out. A server without the second interface only costs more of the first: a
text is then cut by proportion and counted until it is as long as it should be.

The vocabulary is not to be had this way, so prompts are drawn and written as cl100k_base does. The server may read a marker
such as `<|endoftext|>` in a text as one special token, which a tokenizer of ours never does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from inferometer.engines.interface import JsonObject
from inferometer.errors import PeerError, TokenizerGone
from inferometer.workload.encodings import CL100K, Shipped
from inferometer.workload.parallel import in_order
from inferometer.workload.tokenizer_file import FILE, refused

Ask = Callable[[str, JsonObject], JsonObject]
"""Puts a JSON question to a path of the server: its JSON answer, or {} where it gave none or another status than 200.

Raises PeerError where there is no connection. Several threads may ask at once."""

LANES = 8
"""Questions under way at once: enough to hide the way there and back, and few for a server that does nothing else."""

_FORMS: tuple[Callable[[str], JsonObject], ...] = (
    lambda text: {"prompt": text, "add_special_tokens": False},
    lambda text: {"content": text},
)


class ServerTokenizer:
    """See `tokenizers.Tokenizer`. `ask` names the model where the server wants it. Raises PlanError if it cannot be asked."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self.ink = Shipped(CL100K)
        self.kind: Literal["server"] = "server"
        self.name = "server"
        self.version: str | None = None
        self.vocab_size = self.ink.vocab_size
        self.source = f"the server's own /tokenize; prompts are drawn and written with {CL100K}"
        self.reserved = self.ink.reserved
        self.splits_at_words = False
        self.rate = 1.0
        self.lanes = LANES
        self._gone = False
        self._form = self._understood()
        self._detokenizes = True
        self._detokenizes = self.decode(self.encode("Hello there")).strip() == "Hello there"

    def _understood(self) -> Callable[[str], JsonObject]:
        for form in _FORMS:
            if _tokens(self._ask("/tokenize", form("Hello there"))):
                return form
        raise refused(
            f"the server does not answer /tokenize as vLLM, SGLang or llama.cpp do: give the model's own {FILE} or its name "
            f"on Hugging Face, {CL100K} as a yardstick, or none"
        )

    def encode(self, text: str) -> list[int]:
        """See `Tokenizer.encode`. Asks twice, for a server may be busy. Raises TokenizerGone where it no longer answers."""
        if not text:
            return []
        question = self._form(text)
        try:
            found = _tokens(self._ask("/tokenize", question)) or _tokens(self._ask("/tokenize", question))
        except PeerError as cause:
            raise TokenizerGone(
                f"the server's /tokenize answered before, and now does not ({cause})"
            ) from cause
        if not found:
            raise TokenizerGone("the server's /tokenize answered before, and now gives no tokens for a text")
        return found

    def decode(self, ids: Sequence[int]) -> str:
        """See `Tokenizer.decode`; empty where the server has no /detokenize."""
        if not ids or not self._detokenizes:
            return ""
        reply = self._ask("/detokenize", {"tokens": list(ids)})
        text = next((reply[key] for key in ("prompt", "text", "content") if key in reply), "")
        return text if isinstance(text, str) else ""

    def count_all(self, texts: Sequence[str]) -> list[int | None]:
        """The tokens of each text; None from where on the server is no longer there."""
        return list(in_order(self._count, texts, self.lanes))

    def _count(self, text: str) -> int | None:
        if self._gone:
            return None
        try:
            return len(self.encode(text))
        except PeerError:
            self._gone = True
            return None


def _tokens(reply: JsonObject) -> list[int]:
    found = reply.get("tokens")
    return found if isinstance(found, list) and all(type(one) is int for one in found) else []
