"""Nonces: whatever the tokenizer, equally many tokens, so that two runs of one plan say the same behind them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferometer.plan.lengths import uniform
from inferometer.plan.schema import Tokenizer as Spec
from inferometer.plan.workload import LengthsWorkload, MixtureWorkload, PromptsWorkload, StandardWorkload
from inferometer.workload import mixture, natural_text, prompt_file, prompt_file_requests, prompts
from inferometer.workload.nonces import NONCES, spelling
from inferometer.workload.prompts import Fingerprint, Prompt
from inferometer.workload.shared_prefixes import Composer
from inferometer.workload.tokenizers import Tokenizer, load
from inferometer.workload.traces.row import Row

few = settings(max_examples=3, deadline=None)
SALTS = st.lists(st.integers(0, NONCES - 1), min_size=2, max_size=2, unique=True)
MIXED = MixtureWorkload.model_validate(
    {
        "classes": [
            {"name": "drawn", "input_tokens": "uniform(20,90)", "output_tokens": "5",
             "shared_prefix": {"tokens": 30, "groups": 2, "share": 0.7}},
            {"name": "prose", "input_tokens": "uniform(30,90)", "output_tokens": "5", "content": "english",
             "shared_prefix": {"tokens": 40, "groups": 1, "share": 0.5}},
        ],
    }
)  # fmt: skip


def trained(path: Path, cl100k: Tokenizer, kind: str) -> Tokenizer:
    """A small tokenizer.json, learned from words and from numbers, so that its digits merge as they come."""
    from tokenizers import Tokenizer as Inner
    from tokenizers import decoders, models, pre_tokenizers, trainers

    rng = random.Random(5)
    texts = [cl100k.decode([rng.randrange(20_000) for _ in range(400)]) for _ in range(40)]
    texts += [str(rng.randrange(10**9)) for _ in range(5_000)]
    special: dict[str, Any] = {"special_tokens": ["<unk>"], "show_progress": False}
    trainer: Any
    if kind == "unigram":
        inner = Inner(models.Unigram())
        trainer = trainers.UnigramTrainer(vocab_size=1500, unk_token="<unk>", **special)
    else:
        inner = Inner(models.BPE(unk_token="<unk>"))
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=4096, initial_alphabet=alphabet, **special)
    if kind in ("bytes", "digits"):
        inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        inner.decoder = decoders.ByteLevel()
    else:
        inner.pre_tokenizer, inner.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    if kind == "digits":
        apart = pre_tokenizers.Digits(individual_digits=True)
        inner.pre_tokenizer = pre_tokenizers.Sequence([apart, inner.pre_tokenizer])
    inner.train_from_iterator(texts, trainer)
    inner.save(str(path / "tokenizer.json"))
    return load(Spec(name=str(path)))


@pytest.fixture(
    scope="module", params=["cl100k_base", "o200k_base", "bytes", "pieces", "unigram", "digits", "server"]
)
def tokenizer(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    cl100k: Tokenizer,
    tiny: Tokenizer,
) -> Tokenizer:
    """Byte pairs that merge digits, pieces as SentencePiece makes them, digits one by one, and a server that counts."""
    kind: str = request.param
    if kind == "server":
        return load(
            Spec(name="server"), lambda _, question: {"tokens": tiny.encode(str(question.get("prompt", "")))}
        )
    if kind in ("cl100k_base", "o200k_base"):
        return load(Spec(name=kind))
    return trained(tmp_path_factory.mktemp(kind), cl100k, kind)


def random_tokens(tokenizer: Tokenizer, salt: int, place: Path) -> Iterator[Prompt]:
    del place
    spec = LengthsWorkload(name="custom", input_tokens=uniform(20, 200), output_tokens=uniform(1, 9))
    return prompts.generate(spec, tokenizer, 12, salt, "text")


def conversation(tokenizer: Tokenizer, salt: int, place: Path) -> Iterator[Prompt]:
    del place
    return natural_text.generate(StandardWorkload(name="conversation"), tokenizer, 4, salt, "text", chat=True)


def completion(tokenizer: Tokenizer, salt: int, place: Path) -> Iterator[Prompt]:
    del place
    return natural_text.generate(StandardWorkload(name="code-completion"), tokenizer, 4, salt, "text")


def mixed(tokenizer: Tokenizer, salt: int, place: Path) -> Iterator[Prompt]:
    del place
    return mixture.generate(MIXED, tokenizer, 12, salt, "text")


def traced(tokenizer: Tokenizer, salt: int, place: Path) -> Iterator[Prompt]:
    del place
    composer = Composer(StandardWorkload(), tokenizer, salt, "text")
    rows = [
        Row(line=line, at_ns=0, input_tokens=700, output_tokens=3, hash_ids=(7, line)) for line in range(1, 5)
    ]
    return map(composer.prompt, rows)


def from_a_file(tokenizer: Tokenizer, salt: int, place: Path) -> Iterator[Prompt]:
    path = place / "prompts.jsonl"
    rows = [{"prompt": "7 and so on", "system": "Be brief."}, {"prompt": "\n go"}]
    path.write_text("".join(json.dumps(row | {"output_tokens": 4}) + "\n" for row in rows))
    spec = PromptsWorkload.model_validate({"prompts": str(path)})
    return prompt_file_requests.generate(
        spec, tokenizer, prompt_file.survey(path, chat=True, needs_output=True), 4, salt
    )


@pytest.mark.parametrize("make", [random_tokens, conversation, completion, mixed, traced, from_a_file])
@given(SALTS)
@few
def test_runs_of_one_plan_say_the_same_whatever_the_salt(
    tmp_path_factory: pytest.TempPathFactory,
    tokenizer: Tokenizer,
    make: Callable[[Tokenizer, int, Path], Iterator[Prompt]],
    salts: list[int],
) -> None:
    """Law: the lengths in tokens and the fingerprint of a run's requests do not depend on its salt."""
    lengths, prints = set(), set()
    for salt in salts:
        fingerprint = Fingerprint()
        made = list(fingerprint.of(make(tokenizer, salt, tmp_path_factory.mktemp("rows"))))
        lengths.add(tuple((one.requested, one.sent) for one in made))
        prints.add(str(fingerprint))
    assert len(lengths) == len(prints) == 1


@given(st.lists(st.integers(0, NONCES - 1), min_size=1, max_size=50))
@few
def test_a_nonce_is_of_one_length_and_tells_its_value(tokenizer: Tokenizer, values: list[int]) -> None:
    """Law: nonces are equally many characters and tokens, at the head of a text and before a line, and each has one value."""
    known = spelling(tokenizer)
    spelled = [known.spell(value) for value in values]
    assert [known.value(nonce) for nonce in spelled] == values
    assert {len(nonce) for nonce in spelled} == {len(known.spell(0))}
    assert {len(tokenizer.encode(nonce)) for nonce in spelled} == {known.tokens}
    assert len({len(tokenizer.encode(f"{nonce}\nThen")) for nonce in spelled}) == 1
    assert all(nonce == nonce.strip() and nonce.isascii() and "\\" not in nonce for nonce in spelled)
