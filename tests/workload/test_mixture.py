"""Mixtures of classes: as many of each as their weights say, as long as asked, and alike only where that was asked for."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from inferometer.plan.rules import check
from inferometer.plan.schema import Plan
from inferometer.plan.workload import MixtureWorkload
from inferometer.workload import mixture
from inferometer.workload.encodings import Shipped
from inferometer.workload.prompts import Fingerprint, Prompt
from inferometer.workload.sources import Mixture
from inferometer.workload.tokenizers import Tokenizer

Format = Literal["ids", "text"]
FORMATS: tuple[Format, ...] = ("ids", "text")
ALPHA = 1e-4
few = settings(max_examples=25, deadline=None)


def mixed(*classes: dict[str, Any], **more: Any) -> MixtureWorkload:
    """A workload of these classes, named a, b and so on, of 20 and 2 tokens where they say nothing else."""
    named = [
        {"name": "abcdefgh"[at], "input_tokens": 20, "output_tokens": 2} | one
        for at, one in enumerate(classes)
    ]
    workload = MixtureWorkload.model_validate({"classes": named, **more})
    check(Plan(workload=workload))
    return workload


def made(
    spec: MixtureWorkload,
    tokenizer: Tokenizer,
    n: int,
    salt: int = 7,
    prompt_format: Format = "text",
    template: int = 0,
) -> list[Prompt]:
    return list(mixture.generate(spec, tokenizer, n, salt, prompt_format, template))


def ids_of(prompt: Prompt, tokenizer: Tokenizer) -> list[int]:
    return prompt.content if isinstance(prompt.content, list) else tokenizer.encode(prompt.content)


def common(one: list[int], other: list[int]) -> int:
    """How many tokens two prompts begin with in common."""
    return next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def fingerprint(prompts: list[Prompt]) -> str:
    found = Fingerprint()
    assert list(found.of(prompts)) == prompts
    return str(found)


@pytest.mark.parametrize("weights", [(1, 1), (7, 2, 1), (0.5, 0.25, 0.125, 0.125)])
def test_classes_come_as_often_as_their_weights_say(weights: tuple[float, ...]) -> None:
    """Chi-square over 20,000 requests; the seed is fixed."""
    spec = mixed(*({"weight": weight, "input_tokens": 1} for weight in weights))
    drawn = Counter(draw.number for draw in mixture.drawn(spec, 1000, 20_000))
    expected = [20_000 * weight / sum(weights) for weight in weights]
    assert chisquare([drawn[at] for at in range(len(weights))], expected).pvalue > ALPHA


@pytest.mark.parametrize(("share", "zipf"), [(0.5, None), (0.8, 1.5), (1.0, 1.0)])
def test_prefixes_are_shared_as_often_as_asked_and_groups_as_their_law_says(
    share: float, zipf: float | None
) -> None:
    """Of 20,000 requests: chi-square of sharing or not, and of the groups among those that share."""
    prefix = {"tokens": 9, "share": share, "groups": 10, "zipf": zipf}
    spec = mixed({"shared_prefix": prefix, "input_tokens": 1})
    groups = Counter(draw.group for draw in mixture.drawn(spec, 1000, 20_000))
    shared = 20_000 - groups[-1]
    if share < 1:
        assert chisquare([shared, groups[-1]], [20_000 * share, 20_000 * (1 - share)]).pvalue > ALPHA
    else:
        assert shared == 20_000
    weights = [1.0 if zipf is None else rank**-zipf for rank in range(1, 11)]
    expected = [shared * weight / sum(weights) for weight in weights]
    assert chisquare([groups[at] for at in range(10)], expected).pvalue > ALPHA


def test_what_is_drawn_comes_in_the_order_told() -> None:
    """Class, lengths, sharing, group, content, of one `random.Random`, written again with the standard library alone."""
    spec = mixed(
        {"weight": 3, "input_tokens": "uniform(5,9)", "output_tokens": "uniform(1,4)"},
        {"input_tokens": 6, "content": "code", "shared_prefix": {"tokens": 4, "share": 0.3, "groups": 3}},
        seed=11,
    )
    rng = random.Random(11)
    for draw in mixture.drawn(spec, 500, 200):
        number = rng.choices([0, 1], [3, 1])[0]
        assert draw.number == number
        if number == 0:
            asked, output = rng.randint(5, 9), rng.randint(1, 4)
            assert (draw.requested, draw.output, draw.group) == (asked, output, -1)
            assert draw.ids.tolist() == [rng.randint(0, 499) for _ in range(asked)]
        else:
            carries, group = rng.random() < 0.3, rng.choices([0, 1, 2], [1, 1, 1])[0]
            assert (draw.requested, draw.output, draw.group) == (6, 2, group if carries else -1)
            assert draw.at == rng.getrandbits(64)


CLASSES = st.fixed_dictionaries(
    {
        "content": st.sampled_from(["random", "english", "code"]),
        "input_tokens": st.integers(15, 400),
        "output_tokens": st.integers(1, 50),
        "weight": st.floats(0.1, 10),
    },
    optional={
        "shared_prefix": st.fixed_dictionaries(
            {"tokens": st.integers(12, 300), "share": st.floats(0.1, 1), "groups": st.integers(1, 4)}
        )
    },
)


@given(
    st.lists(CLASSES, min_size=1, max_size=3), st.integers(0, 2**40), st.booleans(), st.sampled_from([0, 7])
)
@few
def test_prompts_are_as_long_as_drawn_with_their_prefix_on_top(
    cl100k: Tokenizer, classes: list[dict[str, Any]], seed: int, repeatable: bool, template: int
) -> None:
    """Law: asked is the class's length and its prefix's; sent is what the tokenizer counts; they agree, less the template."""
    spec = mixed(*classes, seed=seed, repeatable_prompts=repeatable)
    for prompt_format in FORMATS:
        less = template if prompt_format == "text" else 0
        prompts = made(spec, cl100k, 6, seed, prompt_format, less)
        for prompt, draw in zip(prompts, mixture.drawn(spec, cl100k.vocab_size, 6), strict=True):
            one = spec.classes[draw.number]
            prefix = one.shared_prefix.tokens if one.shared_prefix is not None and draw.group >= 0 else 0
            assert (prompt.request_class, prompt.output) == (draw.number, draw.output)
            assert prompt.requested == draw.requested + prefix
            assert prompt.sent == len(ids_of(prompt, cl100k))
            assert abs(prompt.sent - (prompt.requested - less)) <= 1
            if isinstance(prompt.content, str):
                assert prompt.content == prompt.content.strip()


@pytest.mark.parametrize("content", ["random", "english", "code"])
@pytest.mark.parametrize("prompt_format", FORMATS)
def test_nearly_all_prompts_are_exact(
    cl100k: Tokenizer, tiny: Tokenizer, content: str, prompt_format: Format
) -> None:
    """At most one in a hundred misses its length, with prefixes and without, over a large and a small vocabulary."""
    spec = mixed(
        {"input_tokens": "uniform(20,200)", "content": content},
        {"input_tokens": "uniform(20,200)", "content": content, "shared_prefix": {"tokens": 60, "groups": 3}},
    )
    for tokenizer in (cl100k, tiny):
        prompts = made(spec, tokenizer, 100, prompt_format=prompt_format)
        assert sum(prompt.sent != prompt.requested for prompt in prompts) <= 1


@pytest.mark.parametrize("prompt_format", FORMATS)
@pytest.mark.parametrize("content", ["random", "english"])
def test_a_group_shares_its_prefix_and_nothing_beyond_and_two_runs_share_nothing(
    cl100k: Tokenizer, content: str, prompt_format: Format
) -> None:
    """Law: prompts of one group agree in just the prefix's tokens (and at most the first of a nonce's digits, or a break);
    all others, of this run and of another, not in a block of 16."""
    spec = mixed(
        {"content": content, "input_tokens": 60, "shared_prefix": {"tokens": 40, "share": 0.6, "groups": 2}},
        {"content": content, "input_tokens": 60},
    )
    draws = list(mixture.drawn(spec, cl100k.vocab_size, 40))
    first, second = (
        [ids_of(prompt, cl100k) for prompt in made(spec, cl100k, 40, salt, prompt_format)] for salt in (1, 2)
    )
    for at, one in enumerate(first):
        for to, other in enumerate(first[:at]):
            together = draws[at].group >= 0 and draws[at].group == draws[to].group
            assert 40 <= common(one, other) <= 43 if together else common(one, other) < 16
        assert max(common(one, other) for other in second) < 16


@pytest.mark.parametrize("prompt_format", FORMATS)
def test_the_same_seed_gives_the_same_bytes_and_the_fingerprint_leaves_nonces_out(
    cl100k: Tokenizer, prompt_format: Format
) -> None:
    """Same seed and salt: the same prompts. Another salt: the same fingerprint. Another seed, weight or field: another one."""
    classes: list[dict[str, Any]] = [
        {"shared_prefix": {"tokens": 20, "share": 0.5}, "priority": 1},
        {"content": "english"},
    ]
    spec = mixed(*classes)
    once = made(spec, cl100k, 30, 1, prompt_format)
    assert made(spec, cl100k, 30, 1, prompt_format) == once
    same = fingerprint(once)
    assert fingerprint(made(spec, cl100k, 30, 2, prompt_format)) == same
    others = [
        mixed(*classes, seed=43),
        mixed({**classes[0], "weight": 9}, classes[1]),
        mixed({**classes[0], "priority": 2}, classes[1]),
    ]
    assert all(fingerprint(made(one, cl100k, 30, 1, prompt_format)) != same for one in others)
    repeatable = mixed(*classes, repeatable_prompts=True)
    assert made(repeatable, cl100k, 30, 1, prompt_format) == made(repeatable, cl100k, 30, 2, prompt_format)


def test_each_class_brings_its_own_fields(cl100k: Tokenizer) -> None:
    """Sampling, priority and further fields, as the body is to have them; a class without any brings none."""
    spec = mixed(
        {"sampling": {"temperature": 0.7, "stop": ["END"]}, "priority": -3, "extra_body": {"tier": "gold"}},
        {},
    )
    found = {prompt.request_class: prompt.fields for prompt in made(spec, cl100k, 20)}
    assert found == {0: {"temperature": 0.7, "stop": ["END"], "priority": -3, "tier": "gold"}, 1: None}


class Threaded(Shipped):
    """cl100k_base, used as if each text had to wait for a server's answer."""

    def __init__(self) -> None:
        super().__init__("cl100k_base")
        self.lanes = 4


def test_any_number_of_lanes_writes_the_same_prompts(cl100k: Tokenizer) -> None:
    """Which thread makes a prefix first changes nothing."""
    spec = mixed({"content": "code", "shared_prefix": {"tokens": 30, "groups": 8}})
    assert cl100k.lanes == 1
    assert made(spec, Threaded(), 60) == made(spec, cl100k, 60)


@few
@given(
    st.lists(st.tuples(st.floats(1e-6, 1e6), st.integers(1, 4096)), min_size=3, max_size=8),
    st.randoms(use_true_random=False),
)
def test_the_mean_answer_does_not_depend_on_the_order_of_the_classes(
    classes: list[tuple[float, int]], shuffle: random.Random
) -> None:
    """Sums are correctly rounded, so a figure has the same digits in any order and on any version of Python."""

    def mean(order: list[tuple[float, int]]) -> float:
        answers = Mixture(mixed(*({"weight": weight, "output_tokens": n} for weight, n in order))).answers
        assert answers is not None
        return answers.mean

    assert mean(classes) == mean(shuffle.sample(classes, len(classes)))
