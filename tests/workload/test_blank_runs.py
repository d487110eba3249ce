"""Texts with long runs of white space, and texts that an encoding cannot read."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.workload import blank_runs
from inferometer.workload.blank_runs import MOST_BLANKS, parts
from inferometer.workload.encodings import ENCODINGS, Shipped, UnreadableText

NAMES = tuple(ENCODINGS)
BLANKS = " \t\xa0\u2003\u3000\x85\v"
TOO_MANY = 1_100_000
"""More than a pattern's engine notes down before it gives up."""

mixed = st.lists(
    st.one_of(
        st.text(BLANKS, max_size=12),
        st.text("aA1é!/'s\u0301\x1c\u200b", max_size=3),
        st.text("\r\n ", max_size=5),
    ),
    max_size=8,
).map("".join)


@pytest.mark.parametrize("name", NAMES)
@given(text=mixed, most=st.integers(1, 5))
def test_a_text_read_in_parts_has_the_tokens_of_the_whole(name: str, text: str, most: int) -> None:
    """Wherever a text is cut, the ids are those of the published encoding, which reads it whole."""
    shipped = Shipped(name)
    cut = list(parts(text, most))
    assert "".join(part for part, _ in cut) == text
    ids = [one for part, blank in cut for one in (shipped._piece(part) if blank else shipped._whole(part))]
    assert ids == shipped._encoding.encode_ordinary(text)


@given(text=mixed, most=st.integers(1, 5))
def test_no_long_run_of_blanks_is_left_to_a_pattern(text: str, most: int) -> None:
    """What is not a piece of blanks holds a run of more than `most` only before a line end, or the last blank of one."""
    for part, blank in parts(text, most):
        if blank:
            assert part
            assert not part.strip(BLANKS)
            continue
        for line in part.replace("\r", "\n").split("\n")[-1:]:
            run = longest_run(line)
            assert run <= most


def longest_run(text: str) -> int:
    longest = now = 0
    for one in text:
        now = now + 1 if one in BLANKS else 0
        longest = max(longest, now)
    return longest


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "text",
    [
        " " * TOO_MANY + "x",
        "a" + " " * TOO_MANY,
        " " * TOO_MANY,
        "\xa0" * TOO_MANY + "x",
        " \t" * (TOO_MANY // 2) + "\nx",
    ],
    ids=["before a letter", "at the end", "alone", "no-break", "before a line end"],
)
def test_a_million_blanks_are_counted(name: str, text: str) -> None:
    """White space in an answer, however much, has a count, the same for one text and for many."""
    shipped = Shipped(name)
    ids = shipped.encode(text)
    assert shipped.decode(ids) == text
    assert shipped.count_all(["a b", text, ""]) == [2, len(ids), 0]


@pytest.mark.parametrize("name", NAMES)
def test_the_longest_run_that_is_read_whole_counts_as_in_parts(name: str) -> None:
    """The limit itself changes no count."""
    shipped, rng = Shipped(name), random.Random(7)
    for size in (MOST_BLANKS - 1, MOST_BLANKS, MOST_BLANKS + 1, 2 * MOST_BLANKS + 1):
        text = f"a{rng.choice(BLANKS) * size}b{' ' * size}\nc"
        assert shipped.encode(text) == shipped._encoding.encode_ordinary(text)


def test_the_work_on_a_text_grows_with_its_length_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A place is looked at every MOST_BLANKS characters, and none in a run that is known."""
    looked: list[int] = []
    found: Callable[[str, int], int] = blank_runs._end_of_run

    def end_of_run(text: str, place: int) -> int:
        looked.append(place)
        return found(text, place)

    monkeypatch.setattr("inferometer.workload.blank_runs._end_of_run", end_of_run)
    assert len(list(parts("a " * 500, 10))) == 1
    assert len(looked) == 99
    looked.clear()
    assert len(list(parts(" " * 1000 + "\n", 10))) == 1
    assert len(looked) == 2


class PanicException(BaseException):
    """A panic of a package that is not of Python."""


class Panicking:
    """An encoding that cannot read a text with a zero in it."""

    def encode_ordinary(self, text: str) -> list[int]:
        """As tiktoken's."""
        if "0" in text:
            raise PanicException("StackOverflow")
        return [1] * len(text)

    def encode_ordinary_batch(self, texts: list[str], *, num_threads: int) -> list[list[int]]:
        """As tiktoken's."""
        assert num_threads > 0
        return [self.encode_ordinary(text) for text in texts]


def test_a_text_that_cannot_be_read_has_no_count_and_the_others_have_theirs() -> None:
    """A panic is a text without a count; nothing else is lost with it."""
    shipped = Shipped(NAMES[0])
    shipped._encoding = Panicking()  # type: ignore[assignment]
    assert shipped.count_all(["ab", "0", "", "a" * (MOST_BLANKS + 1), "0" * (MOST_BLANKS + 1)]) == [
        2, None, 0, MOST_BLANKS + 1, None,
    ]  # fmt: skip
    with pytest.raises(UnreadableText, match="StackOverflow"):
        shipped.encode("0")
