"""A small byte-level BPE, trained on the spot: the stand-in for a model's own `tokenizer.json`."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from inferometer.plan.schema import Tokenizer as Spec
from inferometer.workload.tokenizers import Tokenizer, load


@pytest.fixture(scope="session")
def cl100k() -> Tokenizer:
    """The tokenizer that ships with the package."""
    return load(Spec(name="cl100k_base"))


@pytest.fixture(scope="session")
def o200k() -> Tokenizer:
    """The other one."""
    return load(Spec(name="o200k_base"))


@pytest.fixture(scope="session")
def tiny_file(tmp_path_factory: pytest.TempPathFactory, cl100k: Tokenizer) -> Path:
    """A tokenizer.json of 4,096 entries, three of them special tokens, learned from random common words."""
    from tokenizers import Tokenizer as Inner
    from tokenizers import decoders, models, pre_tokenizers, trainers

    rng = random.Random(5)
    texts = [cl100k.decode([rng.randrange(20_000) for _ in range(400)]) for _ in range(150)]
    inner = Inner(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=4096,
        special_tokens=["<s>", "</s>", "<pad>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    inner.train_from_iterator(texts, trainer)
    path = tmp_path_factory.mktemp("tiny-model") / "tokenizer.json"
    inner.save(str(path))
    return path


@pytest.fixture(scope="session")
def tiny(tiny_file: Path) -> Tokenizer:
    """The 4,096-entry tokenizer."""
    return load(Spec(name=str(tiny_file)))
