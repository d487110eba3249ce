"""The prompts of the agentic benchmark: what its phases share, and that nothing else is shared."""

from __future__ import annotations

from itertools import takewhile

import pytest

from inferometer.errors import PlanError
from inferometer.workload.agentic_prompts import PHASES, SYSTEM_TOKENS, agentic_prompts, sentinel
from inferometer.workload.encodings import Cl100k

ONE = agentic_prompts("salt", long_tokens=2_000)


def shared(one: str, other: str) -> int:
    """Characters at the start that are the same."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def whole(phase: str, salt: str = "salt", repeat: int = 1) -> str:
    """A phase's system prompt and message."""
    prompts = agentic_prompts(salt, repeat, 2_000).prompts
    (found,) = (one for one in prompts if one.name == phase)
    return f"{found.system}{found.text}"


def test_the_phases_are_those_of_the_protocol() -> None:
    """Names, order, parts and max_tokens."""
    assert [(one.name, one.system[-1], one.user[-1], one.max_tokens) for one in PHASES] == [
        ("cold", "A", "X", 400), ("warm", "A", "X", 400), ("prefix-test-1", "A", "Y", 400), ("prefix-test-2", "A", "X", 400),
        ("prefix-test-3", "A", "Y", 400), ("cold-prefix", "B", "X", 400), ("long-context", "A", "L", 200),
        ("long-prefix", "A", "L", 200),
    ]  # fmt: skip
    assert [one.name for one in ONE.prompts] == [one.name for one in PHASES]


def test_one_salt_gives_one_text_and_another_shares_no_beginning_with_it() -> None:
    """Nor does another repetition, nor the other system prompt."""
    assert agentic_prompts("salt", long_tokens=2_000) == ONE
    cold = whole("cold")
    others = (whole("cold", "other"), whole("cold", repeat=2), whole("cold-prefix"))
    for other in others:
        assert shared(cold, other) < 4


def test_phases_share_exactly_the_parts_that_the_protocol_says() -> None:
    """The same request, the same system prompt, or nothing."""
    system = ONE.prompts[0].system or ""
    assert whole("cold") == whole("warm") == whole("prefix-test-2")
    assert whole("prefix-test-1") == whole("prefix-test-3")
    assert whole("long-context") == whole("long-prefix")
    assert shared(whole("cold"), whole("prefix-test-1")) >= len(system)


def test_each_part_has_its_sentinel_at_its_start_and_in_its_middle() -> None:
    """And no other part's."""
    first, _, test, *_, cold_prefix, long, _ = ONE.prompts
    parts = {
        "SYS_A": first.system,
        "SYS_B": cold_prefix.system,
        "USER_X": first.text,
        "USER_Y": test.text,
        "USER_L": long.text,
    }
    for name, text in parts.items():
        assert text is not None
        for other in parts:
            assert text.count(sentinel("salt", 1, other)) == (2 if other == name else 0)
        begin, middle = (at for at in range(len(text)) if text.startswith(sentinel("salt", 1, name), at))
        assert begin == 1
        assert 0.1 < middle / len(text) < 0.7


def test_parts_are_as_long_as_asked_for_by_characters_or_by_a_tokenizer() -> None:
    """To a few sentences, and never shorter."""
    tokenizer = Cl100k()
    counted = agentic_prompts("salt", long_tokens=2_000, count=lambda text: len(tokenizer.encode(text)))
    for made in (ONE, counted):
        for part, size in (("SYS_A", SYSTEM_TOKENS), ("SYS_B", SYSTEM_TOKENS), ("USER_L", 2_000)):
            assert size <= made.tokens[part] <= size + 60
    assert len(tokenizer.encode(counted.prompts[0].system or "")) == counted.tokens["SYS_A"]


@pytest.mark.parametrize("size", [0, 999, 1_000_001])
def test_a_long_message_has_a_size_that_can_be(size: int) -> None:
    """Anything else is refused by name."""
    with pytest.raises(PlanError, match="--long-tokens"):
        agentic_prompts("salt", long_tokens=size)
