"""Tokenizers: the shipped one is the published one, a file is used as it says, and text is only ever text."""

from __future__ import annotations

import hashlib
import json
import lzma
from pathlib import Path

import pytest

from inferometer.errors import InstrumentError, PlanError
from inferometer.plan.schema import Tokenizer as Spec
from inferometer.workload.encodings import ENCODINGS, expanded, expanded_ranks
from inferometer.workload.tokenizers import Tokenizer, load

PUBLISHED = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
PUBLISHED_O200K = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"


@pytest.mark.parametrize(("name", "digest"), [("cl100k_base", PUBLISHED), ("o200k_base", PUBLISHED_O200K)])
def test_the_shipped_ranks_are_the_published_file(name: str, digest: str) -> None:
    """The copy in the package expands to the bytes tiktoken publishes, so counts equal everyone else's."""
    content = expanded_ranks(name)
    assert hashlib.sha256(content).hexdigest() == digest == ENCODINGS[name].sha256
    assert len(content.splitlines()) == ENCODINGS[name].ordinary


@pytest.mark.parametrize("name", list(ENCODINGS))
def test_patterns_and_special_tokens_are_tiktokens(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What tiktoken itself makes of these ranks: it finds them in its cache, under the address that it would fetch them from,
    and checks their SHA-256."""
    from tiktoken_ext import openai_public

    address = f"https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken"
    digest = hashlib.sha1(address.encode()).hexdigest()
    (tmp_path / digest).write_bytes(expanded_ranks(name))
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    theirs = getattr(openai_public, name)()
    ours = ENCODINGS[name]
    assert (theirs["pat_str"], theirs["special_tokens"]) == (ours.pattern, ours.special)
    assert len(theirs["mergeable_ranks"]) == ours.ordinary


def test_o200k_reads_texts_as_tiktokens_tests_have_it(o200k: Tokenizer) -> None:
    """Ids that tiktoken's own tests and documentation name."""
    assert o200k.encode("hello world") == [24912, 2375]
    assert o200k.encode("x19") == [87, 858]
    assert o200k.decode([24912, 2375]) == "hello world"
    assert o200k.vocab_size == 199_998
    assert (o200k.name, o200k.source) == ("o200k_base", "tiktoken o200k_base")


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("hello world", [15339, 1917]),
        ("tiktoken is great!", [83, 1609, 5963, 374, 2294, 0]),
        ("antidisestablishmentarianism", [519, 85342, 34500, 479, 8997, 2191]),
        ("2 + 2 = 4", [17, 489, 220, 17, 284, 220, 19]),
        ("お誕生日おめでとう", [33334, 45918, 243, 21990, 9080, 33334, 62004, 16556, 78699]),
    ],
)
def test_cl100k_reads_texts_as_tiktoken_documents(cl100k: Tokenizer, text: str, ids: list[int]) -> None:
    """The split pattern and the merges together give the ids printed in the public description of the encoding."""
    assert cl100k.encode(text) == ids
    assert cl100k.decode(ids) == text


def test_cl100k_says_what_it_is(cl100k: Tokenizer) -> None:
    """A report gets name, version, vocabulary size and source (draft 4.4.1); the size spans the ids of draft A.1.4."""
    assert (cl100k.name, cl100k.vocab_size, cl100k.source) == ("cl100k_base", 100_256, "tiktoken cl100k_base")
    assert cl100k.version == f"sha256:{PUBLISHED[:12]}"
    assert cl100k.reserved == frozenset()


def test_markers_in_a_text_are_ordinary_text(cl100k: Tokenizer, tiny: Tokenizer) -> None:
    """A marker that stands in a prompt or an answer never becomes one special token."""
    assert len(cl100k.encode("<|endoftext|>")) > 1
    assert max(cl100k.encode("<|endoftext|><|endofprompt|>")) < cl100k.vocab_size
    assert not tiny.reserved & set(tiny.encode("<s></s><pad>"))
    assert tiny.decode(tiny.encode("<s>x</s>")) == "<s>x</s>"


def test_nothing_is_put_around_a_text(cl100k: Tokenizer, tiny: Tokenizer) -> None:
    """An empty text has no tokens: no beginning or end marker is added."""
    assert cl100k.encode("") == []
    assert tiny.encode("") == []


def test_counting_many_is_counting_each(cl100k: Tokenizer, tiny: Tokenizer) -> None:
    """`count_all` is the length of `encode`, text by text, damaged texts included."""
    texts = [
        "",
        "one two",
        "naïve 日本語 🎉",
        "half \ud83c of a pair",
        "whole \ud83c\udf89 pair",
        "<|endoftext|>",
    ]
    for tokenizer in (cl100k, tiny):
        assert tokenizer.count_all(texts) == [len(tokenizer.encode(text)) for text in texts]


def test_a_lone_surrogate_counts_as_the_replacement_character(cl100k: Tokenizer, tiny: Tokenizer) -> None:
    """An answer's JSON may hold half a character; it is counted, not refused."""
    for tokenizer in (cl100k, tiny):
        assert tokenizer.encode("a\ud800b") == tokenizer.encode("a\ufffdb")


def test_a_file_is_known_by_its_base_name_and_digest(tiny_file: Path) -> None:
    """What goes into a report names the file, its digest and its kind, and no folder of this machine."""
    tokenizer = load(Spec(name=str(tiny_file)))
    assert tokenizer.name == "tokenizer.json"
    assert tokenizer.version == "sha256:" + hashlib.sha256(tiny_file.read_bytes()).hexdigest()[:12]
    assert tokenizer.source == "custom file"
    assert tokenizer.vocab_size == 4096
    assert not any("/" in field for field in (tokenizer.name, tokenizer.version, tokenizer.source))


def test_a_folder_stands_for_the_file_in_it(tiny_file: Path) -> None:
    """A model's folder is as good as its tokenizer.json, and lends it its own name."""
    from_file, from_folder = load(Spec(name=str(tiny_file))), load(Spec(name=str(tiny_file.parent)))
    assert from_folder.name == tiny_file.parent.name
    assert from_folder.version == from_file.version


def test_special_tokens_are_reserved(tiny: Tokenizer) -> None:
    """Ids that steer the model are never drawn for a prompt."""
    assert tiny.reserved == {0, 1, 2}


def test_truncation_and_padding_of_a_file_are_switched_off(tiny_file: Path, tmp_path: Path) -> None:
    """A file that cuts or pads its input still counts a text in full."""
    from tokenizers import Tokenizer as Inner

    inner = Inner.from_file(str(tiny_file))
    inner.enable_truncation(4)
    inner.enable_padding(length=64)
    inner.save(str(tmp_path / "tokenizer.json"))
    plain, cutting = load(Spec(name=str(tiny_file))), load(Spec(name=str(tmp_path)))
    text = "many more words than four of them"
    assert cutting.encode(text) == plain.encode(text)
    assert cutting.count_all([text, "x"]) == plain.count_all([text, "x"])


def test_an_unknown_name_is_the_users_to_mend() -> None:
    """The message names the flag, the name given and the ways out."""
    with pytest.raises(PlanError, match=r"--tokenizer.*'gpt-9'.*cl100k_base.*tokenizer\.json"):
        load(Spec(name="gpt-9"))


def test_a_folder_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    """A folder is only as good as the tokenizer.json in it."""
    with pytest.raises(PlanError, match=r"holds no tokenizer\.json"):
        load(Spec(name=str(tmp_path)))


@pytest.mark.parametrize(
    "content", [b"", b"{", b"{}", b"\xff\xfe\x00", b'{"version": "1.0", "model": {"type": "None"}}']
)
def test_a_damaged_file_is_refused_in_words(tmp_path: Path, content: bytes) -> None:
    """Whatever the bytes, the user hears which file is no tokenizer, and sees no traceback of ours."""
    path = tmp_path / "broken.json"
    path.write_bytes(content)
    with pytest.raises(PlanError, match=r"'broken\.json' is not a usable tokenizer\.json"):
        load(Spec(name=str(path)))


def test_a_vocabulary_too_small_for_nonces_is_refused(tmp_path: Path) -> None:
    """A file with next to no ordinary tokens cannot make prompts that differ."""
    from tokenizers import Tokenizer as Inner
    from tokenizers import models

    Inner(models.WordLevel({"a": 0, "b": 1}, unk_token="a")).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(PlanError, match="fewer than 8 ordinary tokens"):
        load(Spec(name=str(tmp_path)))


def test_a_file_that_cannot_read_a_text_says_so(tmp_path: Path) -> None:
    """The package raises bare errors, and panics that are none; answers that were measured are left without a count."""
    from tokenizers import Tokenizer as Inner
    from tokenizers import models, pre_tokenizers

    inner = Inner(models.WordLevel({str(number): number for number in range(9)}, unk_token="none"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    inner.save(str(tmp_path / "tokenizer.json"))
    tokenizer = load(Spec(name=str(tmp_path)))
    assert tokenizer.encode("1 2") == [1, 2]
    with pytest.raises(PlanError, match=r"is not a usable tokenizer\.json: .*UNK"):
        tokenizer.encode("three")
    assert tokenizer.count_all(["1 2", "three", "3"]) == [2, None, 1]


def test_a_file_laid_out_otherwise_is_read_whole(tiny_file: Path, tmp_path: Path) -> None:
    """Steps of no step, and names that mean something else to the package."""
    for changed in (
        {"pre_tokenizer": {"type": "Sequence", "pretokenizers": []}},
        {
            "pre_tokenizer": {
                "type": "Sequence",
                "pretokenizers": [{"type": "Digits", "individual_digits": True}],
            }
        },
        {"normalizer": {"type": "Sequence", "normalizers": []}},
    ):
        path = tmp_path / "tokenizer.json"
        path.write_text(json.dumps(json.loads(tiny_file.read_text()) | changed))
        assert not load(Spec(name=str(path))).splits_at_words


def test_damaged_ranks_are_the_installations_fault() -> None:
    """Cut off, changed, or something else altogether."""
    for packed in (b"", b"\xfd7zXZ\x00", lzma.compress(b"IQ== 0\n")):
        with pytest.raises(
            InstrumentError, match="the rank file of cl100k_base in this installation is damaged"
        ):
            expanded("cl100k_base", packed)
