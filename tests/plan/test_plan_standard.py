"""The standard workloads as a plan has them: whose lengths, whose name, and what is said where they are not the draft's."""

from __future__ import annotations

from typing import Any

import pytest

from inferometer.errors import PlanError
from inferometer.plan.lengths import Empirical, parse
from inferometer.plan.parse import build
from inferometer.plan.standard import CONTENTS, STAND_INS, WITHOUT_DATASET
from inferometer.plan.workload import AnyWorkload, workload_of


def workload(**given: Any) -> AnyWorkload:
    return workload_of(given)


@pytest.mark.parametrize("name", WITHOUT_DATASET)
def test_a_stand_in_never_goes_by_the_standards_name(name: str) -> None:
    """Without its dataset the workload is custom, based on the standard, with the deviation in words; with it, the standard."""
    bare = workload(name=name)
    assert (bare.name, bare.based_on) == ("custom", name)
    assert (bare.input_tokens, bare.output_tokens) == STAND_INS[name]
    assert WITHOUT_DATASET[name] in bare.deviations
    whole = workload(name=name, dataset="somewhere.json")
    assert (whole.name, whole.based_on, whole.deviations) == (name, None, ())
    assert whole.input_tokens == Empirical()
    for one in (bare, whole):
        assert one.content == CONTENTS[name]
        assert workload_of(one.model_dump(mode="json")) == one


def test_the_cap_of_code_completions_answers_is_free_and_the_rest_is_not() -> None:
    """The draft gives no cap, so any is as standard; another mu, another floor or another kind is a deviation."""
    assert str(workload(name="code-completion").output_tokens) == "lognormal(4.0,1.5,min=1,max=2048)"
    other = workload(name="code-completion", dataset="x", output_tokens="lognormal(4.0,1.5,min=1,max=512)")
    assert (other.name, other.deviations) == ("code-completion", ())
    for spelled in ("lognormal(4.1,1.5,min=1,max=512)", "lognormal(4.0,1.5,min=9,max=512)", "256"):
        changed = workload(name="code-completion", dataset="x", output_tokens=spelled)
        assert (changed.name, len(changed.deviations)) == ("custom", 1)


def test_the_drafts_other_long_lengths_are_a_declared_deviation() -> None:
    """A.5.1's five targets can be named, keep the document and its question, and are not 4.3.2.5's lengths."""
    targets = "histogram(8192:1,16384:1,32768:1,65536:1,131072:1)"
    found = workload(name="long-context", input_tokens=targets)
    assert (found.name, found.based_on, str(found.input_tokens)) == ("custom", "long-context", targets)
    assert found.deviations == (f"input_tokens is {targets}; long-context has uniform(8192,32768)",)
    assert found.content.question


def test_the_stand_in_has_exactly_the_drafts_quantiles() -> None:
    """Draft A.3.2, to the token."""
    sent, answered = STAND_INS["conversation"]
    assert [round(sent.at(p)) for p in (0.5, 0.95, 0.99)] == [156, 892, 2134]  # type: ignore[union-attr]
    assert [round(answered.at(p)) for p in (0.5, 0.95, 0.99)] == [234, 789, 1567]  # type: ignore[union-attr]


def test_figures_are_published_of_lengths_that_are_the_standards_own() -> None:
    """A side whose length was changed is held to nothing."""
    assert len(workload(name="conversation").published) == 6
    assert {one.side for one in workload(name="conversation", output_tokens="7").published} == {"input"}
    assert workload(name="custom", input_tokens="7", output_tokens="7").published == ()
    for name in ("synthetic-uniform", "synthetic-skewed", "code-completion", "long-context"):
        assert {one.side for one in workload(name=name, input_tokens="7").published} <= {"output"}
        assert workload(name=name, input_tokens="7", output_tokens="7").published == ()


@pytest.mark.parametrize(
    ("given", "where", "words"),
    [
        ({"--dataset": "x.json"}, "--dataset", "conversation"),
        ({"--workload": "conversation", "--dataset-subset": "a"}, "--dataset-subset", "--dataset"),
        ({"--input-tokens": "empirical"}, "--input-tokens", "uniform(128,512)"),
        ({"--workload": "conversation", "--input-tokens": "empirical"}, "--input-tokens", "--dataset"),
        (
            {"--workload": "code-completion", "--dataset": "x", "--output-tokens": "empirical"},
            "--output-tokens",
            "distribution",
        ),
        ({"--cache-state": "hot"}, "--cache-state", "cold"),
        ({"--workload": "conversations"}, "--workload", "did you mean conversation?"),
    ],
)
def test_what_has_no_texts_behind_it_is_refused(given: dict[str, object], where: str, words: str) -> None:
    """Each at its flag, with what to do about it."""
    with pytest.raises(PlanError) as caught:
        build(None, given)
    assert [problem.where for problem in caught.value.problems] == [where]
    assert words in str(caught.value)


def test_a_length_in_words_means_the_same_as_the_standards() -> None:
    """Spelling the stand-in's quantiles out changes nothing."""
    spelled = str(STAND_INS["conversation"][0])
    assert parse(spelled) == STAND_INS["conversation"][0]
    assert workload(name="conversation", input_tokens=spelled) == workload(name="conversation")
