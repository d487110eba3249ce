"""Files of tokenizers, `tokenizer.json` and packed ranks: one that counts every text or refuses it in words, or a problem.

Ranks are read from the package alone and checked by their digest, so that any change of them is one of the installation.
"""

from __future__ import annotations

from fuzz.bounds import bounded_memory
from fuzz.place import lain
from inferometer.errors import InstrumentError, PlanError
from inferometer.workload.encodings import CL100K, expanded
from inferometer.workload.tokenizer_file import TokenizerFile

TEXTS = ("", "Hello world, 123456789", "naïve — ☃ \ud800 <s>\n", " " * 40 + "x" * 40)


def check(data: bytes) -> None:
    """The first byte chooses what it is; the rest is the file."""
    if not data:
        return
    with bounded_memory():
        if data[0] % 8:
            tokenizer_json(data[1:])
        else:
            ranks(data[1:])


def ranks(packed: bytes) -> None:
    """Nothing but the published file passes."""
    try:
        expanded(CL100K, packed)
    except InstrumentError:
        return
    raise AssertionError("ranks that nobody published")


def tokenizer_json(content: bytes) -> None:
    """Texts have ids of the vocabulary, alone and together, or none."""
    try:
        tokenizer = TokenizerFile(lain("tokenizer.json", content), "tokenizer.json")
    except PlanError as error:
        str(error).encode("utf-8", "replace")
        return
    assert tokenizer.vocab_size > len(tokenizer.reserved) >= 0
    counts = tokenizer.count_all(TEXTS)
    for text, count in zip(TEXTS, counts, strict=True):
        try:
            ids = tokenizer.encode(text)
            assert len(ids) == count
            tokenizer.decode(ids)
        except PlanError:
            continue
