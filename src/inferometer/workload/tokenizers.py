"""Tokenizers: who turns text into counts, and what a report must say about them (draft 4.4.1).

| declared                                 | what counts                   | `kind`    | name          | source                |
| ---------------------------------------- | ----------------------------- | --------- | ------------- | --------------------- |
| `cl100k_base`, `o200k_base`              | tiktoken, over our own ranks  | `shipped` | as declared   | `tiktoken`, the name  |
| a `tokenizer.json`, or a folder with one | the `tokenizers` package      | `file`    | its base name | `custom file`         |
| `org/name`, `org/name@revision`          | the same over the model's own | `hub`     | `org/name`    | Hugging Face, commit  |
| `server`                                 | the server's `/tokenize`      | `server`  | `server`      | in words              |
| `none`                                   | nobody but the server's usage | `none`    | `none`        | in words              |
| `auto`                                   | the server: see below         | see below | its kind      | in words              |

A path that exists comes before a hub id of the same spelling. `version` is the start of the SHA-256 of the bytes the
tokenizer was made from, so two reports that agree on it counted with the same tokenizer; it and the size of the vocabulary
are not known of a server's. Only base names are kept: a report does not carry the folders of the machine that made it.

Text is always counted as plain text. A marker such as `<|endoftext|>` inside a prompt or an answer is so many ordinary
tokens, never one special token, and nothing is put in front of or after the text (draft 4.4.3).

`auto` is settled by what a server offers (run/own_tokens.py): `server`; `ids`, where prompts are token ids; `learned`, a ratio
(tokenizer_learned.py); `none`. Without a server it is cl100k_base, with which the reference server and a simulation count.

With all four of those the vocabulary is not at hand. Prompts are then drawn as ids of cl100k_base and written with its
texts; `server` counts what comes of that, `learned` estimates it, and `none` leaves cl100k_base's count to stand as a
yardstick.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

from inferometer.documents.workload import TokenizerFacts
from inferometer.plan.schema import AUTO_TOKENIZER, NO_TOKENIZER, SERVER_TOKENIZER
from inferometer.plan.schema import Tokenizer as Spec
from inferometer.workload.encodings import CL100K, ENCODINGS, Shipped
from inferometer.workload.hub import fetched, held, hub_id
from inferometer.workload.tokenizer_file import FILE, TokenizerFile, refused
from inferometer.workload.tokenizer_learned import Learned
from inferometer.workload.tokenizer_none import Uncounted
from inferometer.workload.tokenizer_server import Ask, ServerTokenizer

Kind = Literal["shipped", "file", "hub", "server", "ids", "learned", "none"]


class Tokenizer(Protocol):
    """What the program asks of a tokenizer.

    `vocab_size`: ordinary tokens; ids are drawn from 0 to `vocab_size - 1`. `reserved`: those of them that are never
    drawn, because they are special tokens or no tokens at all. `ink`: what those ids are ids of, and whose texts prompts are
    written with: itself, where it knows its vocabulary. `source`: where it came from, in the words of draft 4.4.1.
    `splits_at_words`: text may be parted between an ASCII letter and a space before another, and each part be read by
    itself, with the same ids as the whole. `rate`: tokens for one of `ink`'s, where they are estimated by that; else 1.
    `lanes`: how many threads it may well be asked from at once; 1 where it keeps a core busy itself, and then it can be
    pickled.
    """

    name: str
    version: str | None
    vocab_size: int
    source: str
    reserved: frozenset[int]
    splits_at_words: bool
    rate: float
    lanes: int

    def __hash__(self) -> int:
        """Tokenizers serve as keys of caches."""

    @property
    def kind(self) -> Kind:
        """Which row of the table at the head."""

    @property
    def ink(self) -> Tokenizer:
        """See above."""

    def encode(self, text: str) -> list[int]:
        """The ids of `text`, taken as plain text; a lone surrogate counts as U+FFFD."""

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`; bytes that are no UTF-8 come out as U+FFFD. Empty where it cannot be told."""

    def count_all(self, texts: Sequence[str]) -> list[int | None]:
        """The tokens of each text, on all cores: for after the run, not during it. None where nobody here can count."""


def load(spec: Spec, ask: Ask | None = None) -> Tokenizer:
    """The tokenizer a plan declares. `ask` puts a question to the server that is measured; without it there is none to ask.

    Raises PlanError where there is none of that name, or its file cannot be used, and PeerError where the server that is to
    count does not answer. A shipped one takes 0.25 to 0.5 s the first time and nothing after that.
    """
    if spec.name in ENCODINGS or spec.name == AUTO_TOKENIZER:
        return Shipped(CL100K if spec.name == AUTO_TOKENIZER else spec.name)
    if spec.name == NO_TOKENIZER:
        return Uncounted()
    if spec.name == SERVER_TOKENIZER:
        if ask is None:
            raise refused(f"there is no server to ask here: give {CL100K}, or the model's own {FILE}")
        return ServerTokenizer(ask)
    path = Path(spec.name).expanduser()
    if path.is_dir():
        if not (path / FILE).is_file():
            raise refused(f"the folder {spec.name!r} holds no {FILE}")
        return TokenizerFile(path / FILE, path.resolve().name)
    if path.is_file():
        return TokenizerFile(path, path.name)
    found = hub_id(spec.name)
    if found is not None:
        return _of_hub(found[0], *fetched(*found))
    raise refused(
        f"there is no tokenizer {spec.name!r}: give {', '.join(ENCODINGS)}, the path of a {FILE} or of a folder that holds "
        f"one, the model's name on Hugging Face (org/name or org/name@revision), {SERVER_TOKENIZER} (its own /tokenize), "
        f"{NO_TOKENIZER} or {AUTO_TOKENIZER}"
    )


def facts(tokenizer: Tokenizer) -> TokenizerFacts:
    """What run.json and the reports say of it (draft 4.4.1). `vocab_size` is None where it is not known."""
    known = tokenizer.kind in ("shipped", "file", "hub")
    return TokenizerFacts(
        kind=tokenizer.kind,
        name=tokenizer.name,
        version=tokenizer.version,
        vocab_size=tokenizer.vocab_size if known else None,
        source=tokenizer.source,
        learned=tokenizer.learned if isinstance(tokenizer, Learned) else None,
        unsound=isinstance(tokenizer, Uncounted) and tokenizer.unsound,
    )


def counter(spec: Spec, known: TokenizerFacts, named: str | None = None) -> tuple[Tokenizer, str | None]:
    """What counts the answers of a run that was cut off, and why nobody does, where that was not so in the run: without a
    server to ask, nobody counts for it.

    `spec` and `known`, what the plan and the record of the run say, may be a stranger's: nobody is contacted for them, and no
    file is opened but a tokenizer of the local cache of Hugging Face that is the record's. `named`: the tokenizer that the user
    names, which has to be the record's. Raises PlanError.
    """
    if named is not None:
        found = load(Spec(name=named))
        if found.version is None or found.version != known.version:
            raise refused(f"{named!r} is {found.version}, and the run has {known.version} of {known.name!r}")
        return found, None
    if spec.name == SERVER_TOKENIZER or known.kind in ("server", "ids", "learned", "none"):
        return Uncounted(), None
    if spec.name in (*ENCODINGS, AUTO_TOKENIZER, NO_TOKENIZER):
        return load(spec), None
    model = hub_id(spec.name)
    cached = held(*model) if model is not None and known.kind == "hub" else None
    if model is not None and cached is not None:
        found = _of_hub(model[0], *cached)
        if found.version == known.version:
            return found, None
    where = "in the local cache of Hugging Face" if known.kind == "hub" else "opened unless you name it"
    return Uncounted(), f"the run's tokenizer ({known.name}) is not {where}"


def _of_hub(name: str, file: Path, commit: str) -> TokenizerFile:
    return TokenizerFile(file, name, kind="hub", source=f"Hugging Face {name}@{commit}")
