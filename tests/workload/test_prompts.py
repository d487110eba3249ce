"""Prompts: the draft's reference stream to the number, exact lengths, and nonces that keep runs apart."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferometer.plan.lengths import Distribution, fixed, lognormal, normal, uniform
from inferometer.plan.schema import Tokenizer as Spec
from inferometer.plan.workload import LengthsWorkload, StandardWorkload
from inferometer.workload import nonces as spelled
from inferometer.workload import prompts as making
from inferometer.workload.nonces import NONCES, STRIDE
from inferometer.workload.parallel import DEFAULT, Processes
from inferometer.workload.prompts import Fingerprint, Prompt, below
from inferometer.workload.tokenizer_file import SPLITS, TokenizerFile
from inferometer.workload.tokenizers import Tokenizer, load

REFERENCE_100 = "30215c43f50446f13bd9372be8688aca3ad722142058b86797445c5bc9d4721f"
"""SHA-256 of the first 100 requests of the reference stream with seed 42, as `json.dumps([[ids, output], ...])`."""

FINGERPRINT_100 = "sha256:83c136a06f0953ae56395812590f7cd843e386a8c41ecc6c1f8621d3c0960c35"
"""`fingerprint` of the same."""

LENGTHS = st.lists(st.integers(1, 2000), min_size=1, max_size=3)
SEEDS = st.integers(0, 2**63 - 1)
few = settings(max_examples=40, deadline=None)


def reference_stream(n: int, seed: int) -> list[tuple[list[int], int]]:
    """Draft A.1.4 with nothing but `randint`: ids and output length of each request."""
    roll = random.Random(seed).randint
    stream = []
    for _ in range(n):
        asked, answer = roll(128, 512), roll(64, 256)
        stream.append(([roll(0, 100_255) for _ in range(asked)], answer))
    return stream


def generate(
    spec: StandardWorkload | LengthsWorkload,
    tokenizer: Tokenizer,
    n: int,
    salt: int,
    prompt_format: Literal["ids", "text"],
    processes: Processes = DEFAULT,
) -> list[Prompt]:
    return list(making.generate(spec, tokenizer, n, salt, prompt_format, processes=processes))


def nonces(
    tokenizer: Tokenizer, salt: int, prompt_format: Literal["ids", "text"], first: int, count: int
) -> list[str]:
    return list(spelled.nonces(tokenizer, salt, prompt_format, first, count))


def fingerprint(prompts: Iterable[Prompt]) -> str:
    found = Fingerprint()
    assert list(found.of(prompts)) == list(prompts)
    return str(found)


def ids_of(prompt: Prompt) -> list[int]:
    assert isinstance(prompt.content, list)
    return prompt.content


def text_of(prompt: Prompt) -> str:
    assert isinstance(prompt.content, str)
    return prompt.content


def custom(
    tokens: Distribution | int, seed: int = 42, repeatable: bool = False, output: Distribution | None = None
) -> LengthsWorkload:
    return LengthsWorkload(
        name="custom",
        input_tokens=fixed(tokens) if isinstance(tokens, int) else tokens,
        output_tokens=output or fixed(16),
        seed=seed,
        repeatable_prompts=repeatable,
    )


@given(SEEDS, st.integers(1, 2**32 - 1), st.integers(0, 300))
def test_fast_draws_are_randint_number_for_number(seed: int, bound: int, count: int) -> None:
    """`below` returns what randint would, and leaves the generator in the same state."""
    fast, plain = random.Random(seed), random.Random(seed)
    assert below(fast, bound, count).tolist() == [plain.randint(0, bound - 1) for _ in range(count)]
    assert fast.getstate() == plain.getstate()


@pytest.mark.parametrize("bound", [1, 2, 4096, 4097, 100_256, 2**31, 2**32 - 1])
def test_fast_draws_hold_at_powers_of_two(bound: int) -> None:
    """A bound that is a power of two takes one bit more than it needs, as randint does."""
    fast, plain = random.Random(1), random.Random(1)
    assert below(fast, bound, 1000).tolist() == [plain.randint(0, bound - 1) for _ in range(1000)]


@given(st.integers(0, 2**40))
@few
def test_synthetic_uniform_is_the_drafts_stream(cl100k: Tokenizer, seed: int) -> None:
    """With repeatable prompts the ids and output lengths equal draft A.1.4's for every seed."""
    prompts = generate(StandardWorkload(seed=seed, repeatable_prompts=True), cl100k, 5, 0, "ids")
    assert [(ids_of(p), p.output) for p in prompts] == reference_stream(5, seed)
    assert all(p.requested == p.sent == len(p.content) and p.nonce == "" for p in prompts)


def test_the_reference_stream_is_pinned(cl100k: Tokenizer) -> None:
    """The stream of seed 42 never changes, here or in the standard library: both digests are fixed."""
    prompts = generate(StandardWorkload(repeatable_prompts=True), cl100k, 100, 0, "ids")
    listed = json.dumps([[p.content, p.output] for p in prompts])
    assert hashlib.sha256(listed.encode()).hexdigest() == REFERENCE_100
    assert fingerprint(prompts) == FINGERPRINT_100


def test_a_nonce_replaces_the_first_ids_and_keeps_the_rest(cl100k: Tokenizer) -> None:
    """Apart from its nonce a salted prompt of ids is the reference stream, equally long."""
    prompts = generate(StandardWorkload(), cl100k, 20, 5, "ids")
    for prompt, (ids, output) in zip(prompts, reference_stream(20, 42), strict=True):
        front = [int(word) for word in prompt.nonce.split(",")]
        assert prompt.content == front + ids[len(front) :]
        assert (prompt.requested, prompt.sent, prompt.output) == (len(ids), len(ids), output)


def test_other_workloads_keep_the_draw_order(cl100k: Tokenizer) -> None:
    """Input length, output length, then ids, also where the lengths are log-normal."""
    skewed = StandardWorkload(
        name="synthetic-skewed",
        input_tokens=lognormal(5.5, 1.0, min=32, max=4096),
        output_tokens=lognormal(4.5, 1.2, min=16, max=2048),
        repeatable_prompts=True,
    )
    rng = random.Random(42)
    for prompt in generate(skewed, cl100k, 30, 0, "ids"):
        asked = min(max(round(rng.lognormvariate(5.5, 1.0)), 32), 4096)
        assert prompt.output == min(max(round(rng.lognormvariate(4.5, 1.2)), 16), 2048)
        assert prompt.content == [rng.randint(0, 100_255) for _ in range(asked)]


def test_the_articles_prompts_have_cut_normal_lengths(cl100k: Tokenizer) -> None:
    """The `normal` workload drops the fraction of a length and allows none below one."""
    article = StandardWorkload(
        name="normal", input_tokens=normal(20, 30), output_tokens=fixed(8), repeatable_prompts=True
    )
    rng = random.Random(42)
    prompts = generate(article, cl100k, 60, 0, "ids")
    for prompt in prompts:
        asked = max(1, int(rng.normalvariate(20, 30)))
        assert prompt.content == [rng.randint(0, 100_255) for _ in range(asked)]
    assert min(p.requested for p in prompts) == 1


@given(SEEDS, LENGTHS, st.booleans())
@few
def test_a_text_prompt_is_counted_as_sent(
    cl100k: Tokenizer, o200k: Tokenizer, tiny: Tokenizer, seed: int, asked: list[int], repeatable: bool
) -> None:
    """`sent` is what the tokenizer counts; it is what was asked unless the nonce alone is longer; the text is sound."""
    for tokenizer in (cl100k, o200k, tiny):
        for tokens in asked:
            [prompt] = generate(custom(tokens, seed, repeatable), tokenizer, 1, seed, "text")
            text = text_of(prompt)
            assert prompt.sent == len(tokenizer.encode(text))
            assert prompt.requested == tokens
            assert text.startswith(prompt.nonce)
            assert text == text.strip()
            assert "\0" not in text
            assert "\ufffd" not in text
            text.encode()  # raises where a surrogate stands alone
            if tokens > 12:  # the longest reading of nine digits, and a word or two
                assert prompt.sent == tokens


def test_no_text_ends_in_white_space(cl100k: Tokenizer) -> None:
    """Chat templates may strip a message, which must not change its length, however short it is."""
    for prompt in generate(custom(uniform(1, 4), repeatable=True), cl100k, 400, 0, "text"):
        assert text_of(prompt) == text_of(prompt).strip() != ""


@pytest.fixture(scope="module")
def converted(tiny_file: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Tokenizer]:
    """The small tokenizer's file behind each pattern that is known to part text between words."""
    found: list[Tokenizer] = []
    for number, pattern in enumerate(sorted(SPLITS)):
        file = json.loads(tiny_file.read_text(encoding="utf-8"))
        split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
        level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
        file["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, level]}
        file["normalizer"] = {"type": "NFC"}
        path = tmp_path_factory.mktemp("converted") / f"{number}.json"
        path.write_text(json.dumps(file), encoding="utf-8")
        found.append(TokenizerFile(path, "converted"))
    return found


@given(st.text(), st.sampled_from("aZ"), st.sampled_from("bY"), st.text())
def test_tokenizers_that_split_at_words_read_text_parted_there_as_the_whole(
    cl100k: Tokenizer,
    o200k: Tokenizer,
    tiny: Tokenizer,
    converted: list[Tokenizer],
    before: str,
    letter: str,
    initial: str,
    after: str,
) -> None:
    """What `splits_at_words` promises, and what lets a long prompt be counted by its last words alone."""
    left, right = before + letter, f" {initial}{after}"
    for tokenizer in (cl100k, o200k, tiny, *converted):
        assert tokenizer.splits_at_words
        assert tokenizer.encode(left) + tokenizer.encode(right) == tokenizer.encode(left + right)


OTHERWISE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "another pattern": lambda file: file.update(
        pre_tokenizer={
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": "[a-z ]+"}, "behavior": "Isolated", "invert": False},
                {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
            ],
        }
    ),
    "one text from end to end": lambda file: file["pre_tokenizer"].update(use_regex=False),
    "a space in front of each text": lambda file: file["pre_tokenizer"].update(add_prefix_space=True),
    "spaces changed before": lambda file: file.update(
        normalizer={"type": "Replace", "pattern": {"String": " "}, "content": "_"}
    ),
    "pieces by chance": lambda file: file["model"].update(dropout=0.1),
    "no way of parting": lambda file: file.update(pre_tokenizer=None),
    "an added token of two words": lambda file: file["added_tokens"].append(
        {**file["added_tokens"][0], "id": 4096, "content": "New York", "special": False}
    ),
}


@pytest.mark.parametrize("what", OTHERWISE)
def test_a_file_that_is_not_known_to_split_at_words_is_read_whole(
    what: str, tiny_file: Path, tmp_path: Path
) -> None:
    """One thing otherwise, and nothing is known of it."""
    file = json.loads(tiny_file.read_text(encoding="utf-8"))
    OTHERWISE[what](file)
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(file), encoding="utf-8")
    assert not TokenizerFile(path, what).splits_at_words


@pytest.mark.parametrize("repeatable", [False, True])
@pytest.mark.parametrize("tokens", [fixed(320), uniform(128, 512), uniform(16, 64)])
def test_more_than_99_percent_of_text_prompts_are_exact(
    cl100k: Tokenizer, tiny: Tokenizer, tokens: Distribution, repeatable: bool
) -> None:
    """Misses are rarer than one in a hundred, with the reference tokenizer and with a small one."""
    for tokenizer in (cl100k, tiny):
        prompts = generate(custom(tokens, 8, repeatable), tokenizer, 200, 9, "text")
        assert sum(p.requested != p.sent for p in prompts) < 2
        assert [p.sent for p in prompts] == tokenizer.count_all([text_of(p) for p in prompts])


def test_text_keeps_nearly_all_of_the_drawn_ids(cl100k: Tokenizer) -> None:
    """A text begins with its drawn ids' own texts, and at least nine in ten of them are in it."""
    for prompt, (ids, _) in zip(
        generate(StandardWorkload(repeatable_prompts=True), cl100k, 50, 0, "text"),
        reference_stream(50, 42),
        strict=True,
    ):
        text = text_of(prompt)
        whole = [cl100k.decode([i]) for i in ids]
        kept = sum(piece in text for piece in whole if "\ufffd" not in piece)
        assert kept > 0.9 * len(ids)
        if "\ufffd" not in "".join(whole[:20]):
            assert text.startswith("".join(whole[:20]).lstrip())


@given(SEEDS, st.integers(1, 2000))
@few
def test_a_prompt_of_ids_is_as_long_as_asked(tiny: Tokenizer, seed: int, tokens: int) -> None:
    """Ids need no counting: the length is exact unless the nonce is longer, and no reserved id is sent."""
    [prompt] = generate(custom(tokens, seed), tiny, 1, seed, "ids")
    ids = ids_of(prompt)
    assert prompt.sent == len(ids) == max(tokens, len(prompt.nonce.split(",")))
    assert all(0 <= i < tiny.vocab_size and i not in tiny.reserved for i in ids)


@given(st.integers(0, 2**64), st.integers(0, 10**9), st.sampled_from(["ids", "text"]))
@few
def test_nonces_are_unique_and_equally_long(
    cl100k: Tokenizer, tiny: Tokenizer, salt: int, first: int, prompt_format: Literal["ids", "text"]
) -> None:
    """Within a run no two requests share a nonce, at one index no two runs do, and all are equally long."""
    for tokenizer in (cl100k, tiny):
        made = nonces(tokenizer, salt, prompt_format, first, 200)
        other = nonces(tokenizer, salt + 1, prompt_format, first, 200)
        assert len(set(made)) == 200
        assert {len(nonce) for nonce in made + other} == {len(made[0])}
        assert not any(a == b for a, b in zip(made, other, strict=True))


def test_the_nonce_is_read_apart_from_the_text_behind_it(cl100k: Tokenizer, tiny: Tokenizer) -> None:
    """No token spans the end of the nonce, so writing another over it leaves the rest of the prompt as counted."""
    for tokenizer in (cl100k, tiny):
        for prompt in generate(custom(30), tokenizer, 400, 6, "text"):
            nonce = tokenizer.encode(prompt.nonce)
            assert tokenizer.encode(text_of(prompt))[: len(nonce)] == nonce


def test_the_stride_reaches_every_nonce() -> None:
    """Coprime to 10^9, it comes back to the start only after 10^9 requests."""
    assert STRIDE % 2
    assert STRIDE % 5
    assert NONCES == 10**9


def test_cl100k_reads_every_nonce_as_three_tokens(cl100k: Tokenizer) -> None:
    """One nonce may be written over another without changing the count of the prompt."""
    assert {len(cl100k.encode(nonce)) for nonce in nonces(cl100k, 1, "text", 0, 3000)} == {3}
    [prompt, *_] = generate(custom(40), cl100k, 10, 77, "text")
    text = text_of(prompt)
    for nonce in nonces(cl100k, 31, "text", 500, 200):
        assert len(cl100k.encode(nonce + text[len(nonce) :])) == 40


@pytest.mark.parametrize("prompt_format", ["ids", "text"])
def test_two_runs_share_no_block_of_16_tokens_at_the_front(
    cl100k: Tokenizer, prompt_format: Literal["ids", "text"]
) -> None:
    """A cache that keeps blocks of 16 tokens finds nothing of the first run in the second."""

    def blocks(salt: int) -> set[tuple[int, ...]]:
        prompts = generate(StandardWorkload(), cl100k, 100, salt, prompt_format)
        return {
            tuple((p.content if isinstance(p.content, list) else cl100k.encode(p.content))[:16])
            for p in prompts
        }

    first, second = blocks(1), blocks(2)
    assert len(first) == len(second) == 100
    assert not first & second


@pytest.mark.parametrize("prompt_format", ["ids", "text"])
def test_repeatable_prompts_are_the_same_in_every_run(
    cl100k: Tokenizer, prompt_format: Literal["ids", "text"]
) -> None:
    """With a cache to be hit on purpose, the salt changes nothing."""
    plan = StandardWorkload(repeatable_prompts=True)
    assert generate(plan, cl100k, 30, 1, prompt_format) == generate(plan, cl100k, 30, 2, prompt_format)


@pytest.mark.parametrize("prompt_format", ["ids", "text"])
def test_the_fingerprint_ignores_the_salt_and_nothing_else(
    cl100k: Tokenizer, prompt_format: Literal["ids", "text"]
) -> None:
    """Runs of one plan agree on it; another seed, output length or order does not."""
    prompts = generate(StandardWorkload(), cl100k, 20, 1, prompt_format)
    assert fingerprint(prompts) == fingerprint(generate(StandardWorkload(), cl100k, 20, 2, prompt_format))
    others = [
        generate(StandardWorkload(seed=43), cl100k, 20, 1, prompt_format),
        generate(StandardWorkload(output_tokens=uniform(65, 257)), cl100k, 20, 1, prompt_format),
        prompts[::-1],
        prompts[:19],
    ]
    assert len({fingerprint(prompts), *map(fingerprint, others)}) == 5


@pytest.mark.parametrize("kind", ["cl100k_base", "none", "file"])
def test_many_prompts_are_made_in_processes_to_the_same_bytes(
    cl100k: Tokenizer, tiny_file: Path, kind: str
) -> None:
    """How a prompt is made does not depend on where: the same list, whatever tokenizer goes to the other process."""
    tokenizer = load(Spec(name=str(tiny_file) if kind == "file" else kind))
    here = generate(StandardWorkload(), tokenizer, 50, 3, "text")
    split = Processes(above=0, count=2)
    assert generate(StandardWorkload(), tokenizer, 50, 3, "text", processes=split) == here


@pytest.mark.parametrize("kind", ["metaspace", "wordpiece", "characters"])
def test_tokenizers_of_other_kinds_are_counted_rightly(tmp_path: Path, cl100k: Tokenizer, kind: str) -> None:
    """Decoders that drop spaces, normalizers that lose case, and vocabularies without words never falsify `sent`."""
    write_tokenizer(tmp_path / "tokenizer.json", kind, cl100k)
    tokenizer = load(Spec(name=str(tmp_path)))
    for repeatable in (False, True):
        prompts = generate(custom(uniform(20, 200), 3, repeatable), tokenizer, 50, 4, "text")
        for prompt in prompts:
            assert prompt.sent == len(tokenizer.encode(text_of(prompt)))
            assert text_of(prompt).startswith(prompt.nonce)
        assert sum(p.requested != p.sent for p in prompts) <= 2


def write_tokenizer(path: Path, kind: str, cl100k: Tokenizer) -> None:
    """A trained tokenizer of a kind that does not give texts back byte for byte, or has no words."""
    from tokenizers import Tokenizer as Inner
    from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

    rng = random.Random(6)
    texts = [cl100k.decode([rng.randrange(8000) for _ in range(300)]) for _ in range(60)] + ["0123456789 abc"]
    if kind == "wordpiece":
        inner = Inner(models.WordPiece(unk_token="[UNK]"))
        inner.normalizer = normalizers.BertNormalizer(lowercase=True)
        inner.pre_tokenizer, inner.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
        words = trainers.WordPieceTrainer(
            vocab_size=2000, special_tokens=["[UNK]", "[CLS]"], show_progress=False
        )
        inner.train_from_iterator(texts, words)
    else:
        inner = Inner(models.BPE(unk_token="<unk>", byte_fallback=kind == "metaspace"))
        inner.decoder = decoders.Metaspace() if kind == "metaspace" else decoders.Fuse()
        if kind == "metaspace":
            inner.pre_tokenizer = pre_tokenizers.Metaspace()
        size = 2000 if kind == "metaspace" else 10
        pairs = trainers.BpeTrainer(vocab_size=size, special_tokens=["<unk>", "<s>"], show_progress=False)
        inner.train_from_iterator(texts, pairs)
    inner.save(str(path))
