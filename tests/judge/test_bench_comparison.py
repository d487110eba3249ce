"""Two benchmarks compared: planted differences are found, and nothing else."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as Xml

import jsonschema
import junit_schema
import pytest
from benches import around, bench, engine
from commands import finish
from msgspec.structs import replace
from rich.console import Console

from inferometer.documents.bench import Bench
from inferometer.documents.bench_comparison import BenchComparison
from inferometer.documents.part import to_data, to_json
from inferometer.documents.schemas.__main__ import generated
from inferometer.judge.bench_comparison import BenchCriteria, Named, compare_benches
from inferometer.report.bench.comparison import conclusion, render, render_junit, render_markdown


def of(speed: float, wait: float, *, runs: int = 3, name: str = "a", prompt: str = "code") -> Bench:
    return bench(engine(name, {prompt: around(speed, wait, runs)}), runs=runs)


def compared(first: Bench, second: Bench, *noise: Bench, threshold: float = 0.0) -> BenchComparison:
    again = tuple(Named("again", one) for one in noise)
    return compare_benches("1", Named("x", first), Named("y", second), BenchCriteria((), threshold, again))


@pytest.mark.parametrize(
    ("second", "outcome", "verdicts"),
    [
        (of(60.1, 50.1), "no_regression", ["no_difference", "no_difference"]),
        (of(80.0, 40.0), "no_regression", ["better", "better"]),
        (of(50.0, 50.0), "regression", ["worse", "no_difference"]),
        (of(60.0, 70.0), "regression", ["no_difference", "worse"]),
        (of(80.0, 50.0, runs=1), "no_claim", ["no_claim", "no_claim"]),
        (of(80.0, 50.0, runs=2), "no_claim", ["no_claim", "no_claim"]),
        (of(80.0, 50.0, name="b"), "not_comparable", []),
        (of(80.0, 50.0, prompt="long"), "not_comparable", []),
    ],
)
def test_a_planted_difference_is_found_in_its_direction(
    second: Bench, outcome: str, verdicts: list[str]
) -> None:
    """More tokens a second and less TTFT are better; fewer than three generations claim nothing, as with runs; what one side
    was not asked for is not compared."""
    document = compared(of(60.0, 50.0), second)
    assert (document.outcome, [one.verdict for one in document.figures]) == (outcome, verdicts)
    jsonschema.validate(json.loads(to_json(document)), json.loads(generated("bench-comparison")))
    file = io.StringIO()
    render(document, Console(file=file, width=80))
    for text in (file.getvalue(), render_markdown(document)):
        assert ("WORSE" in text) == (outcome == "regression")
    assert max(map(len, file.getvalue().splitlines())) <= 80


def noisy(chance: random.Random, prompts: Sequence[str], scale: float = 1.0) -> Bench:
    """One engine, four runs of each prompt, whose speed and TTFT vary by two percent."""
    planted = {
        prompt: [(60 * scale * chance.gauss(1, 0.02), 50 * chance.gauss(1, 0.02)) for _ in range(4)]
        for prompt in prompts
    }
    return bench(engine("a", planted), runs=4)


def test_many_figures_do_not_make_a_difference_where_there_is_none() -> None:
    """Law of Holm's correction: of 100 comparisons of an engine with itself in ten prompts, those with any figure better or
    worse stay about 5; without correction most would have one."""
    chance, prompts = random.Random(7), [f"p{at}" for at in range(10)]
    found, raw = 0, 0
    for _ in range(100):
        figures = compared(noisy(chance, prompts), noisy(chance, prompts)).figures
        found += any(one.verdict in ("better", "worse") for one in figures)
        raw += any(one.p is not None and one.p < 0.05 for one in figures)
    assert found <= 11
    assert raw >= 40


def test_a_difference_in_one_of_many_prompts_is_found_and_its_like_is_not() -> None:
    """Speed halved in all: each is worse, and TTFT, which is the same, is not."""
    chance, prompts = random.Random(8), [f"p{at}" for at in range(10)]
    figures = compared(noisy(chance, prompts), noisy(chance, prompts, 0.5)).figures
    assert {one.verdict for one in figures if one.figure == "tok_per_sec"} == {"worse"}
    assert "worse" not in {one.verdict for one in figures if one.figure == "ttft_client_ms"}


def test_threshold_and_noise_floor_hold_a_small_difference() -> None:
    """A change of 3 %: worse by itself, not beyond a threshold of 5 %, and not where the baseline's own engine moves as far."""
    old, new, again = of(60.0, 50.0), of(58.2, 50.0), of(62.0, 50.0)
    assert compared(old, new).outcome == "regression"
    held = compared(old, new, threshold=0.05)
    assert (held.outcome, held.figures[0].held, held.figures[0].equivalent) == (
        "no_regression",
        ("threshold",),
        True,
    )
    floored = compared(old, new, again)
    assert (floored.outcome, floored.figures[0].held) == ("no_regression", ("noise",))
    assert [(one.prompt, one.figure) for one in floored.method.noise_moves] == [("code", "tok_per_sec")]
    wide = [(60.0, 50.0), (50.0, 50.1), (70.0, 49.9)]
    unsure = compared(bench(engine("a", {"code": wide})), bench(engine("a", {"code": wide})), threshold=0.05)
    assert unsure.outcome == "no_claim"


def test_an_engine_that_fails_on_one_side_is_no_success() -> None:
    """Its figures are not comparable, and no regression is not claimed; INVALID results decide the outcome."""
    both = bench(engine("a", {"code": around(60.0, 50.0)}), engine("b", {"code": around(60.0, 50.0)}))
    lost = bench(engine("a", {"code": around(60.0, 50.0)}), engine("b", {}))
    document = compared(both, lost)
    assert document.outcome == "no_claim"
    assert {one.verdict for one in document.figures if one.engine == "b"} == {"not_comparable"}
    assert "b: failed" in render_markdown(document).replace("\\", "")
    false = bench(engine("a", {"code": around(60.0, 50.0)}, failing="INVALID"))
    assert compared(of(60.0, 50.0), false).outcome == "invalid"


def test_what_the_sides_do_not_have_in_common_is_named() -> None:
    """Another engine under the same label, another count of a prompt's tokens, a prompt from the cache: figures stand, and the
    reader learns what they are of. Where a side does not know, nothing differs."""
    base = of(60.0, 50.0)
    (one,) = base.engines
    (prompt,) = one.prompts

    def differing(**members: object) -> dict[str, tuple[object, object]]:
        metadata = replace(one.metadata, engine=members.pop("engine", one.metadata.engine))
        changed = replace(one, metadata=metadata, prompts=(replace(prompt, **members),))
        found = compared(base, replace(base, engines=(changed,))).differences
        return {other.name: (other.baseline, other.side) for other in found}

    assert differing() == {}
    assert differing(engine="ollama") == {"engine": ("a", "ollama")}
    assert differing(prompt_tokens=90) == {"prompt_tokens of code": (40, 90)}
    assert differing(prompt_tokens=None, cached=0.4) == {}
    assert differing(cached=0.9) == {"cached of code": (0.0, 0.9)}


def test_speeds_by_different_clocks_allow_no_claim_and_ttft_does() -> None:
    """The engine's own clock leaves out what HTTP takes of every token: 10 % between the two may be no engine's doing."""
    base, other = of(60.0, 50.0), of(54.0, 70.0)
    (one,) = other.engines
    samples = tuple(replace(sample, tok_per_sec_source="server") for sample in one.samples)
    document = compared(base, replace(other, engines=(replace(one, samples=samples),)))
    assert [figure.verdict for figure in document.figures] == ["no_claim", "worse"]
    assert [(one.name, one.baseline, one.side) for one in document.differences] == [
        ("tok_per_sec_source of code", "client", "server")
    ]


def test_junit_has_a_suite_for_each_engine_and_a_failure_for_each_figure_that_is_worse() -> None:
    """Counts add up; what is not comparable is an error, and what allows no claim is skipped."""
    old = bench(*(engine(name, {"code": around(60.0, 50.0)}) for name in ("a", "b", "c")))
    new = bench(
        engine("a", {"code": around(50.0, 50.0)}), engine("b", {}), engine("c", {"code": [(60.0, 50.0)]})
    )
    document = compared(old, new)
    root = Xml.fromstring(render_junit(document))
    suites = root.findall("testsuite")
    assert [one.get("name") for one in suites] == ["a: B against A", "b: B against A", "c: B against A"]
    for suite, tags in zip(suites, (["failure", "system-out"], ["error"] * 2, ["skipped"] * 2), strict=True):
        assert [case[0].tag for case in suite.findall("testcase")] == tags
    assert [root.get(name) for name in ("tests", "failures", "errors")] == ["6", "1", "2"]
    assert [one.get("skipped") for one in suites] == ["0", "0", "2"]
    assert junit_schema.problems(render_junit(document)) == []
    assert next(root.iter("failure")).text == conclusion(document)


def test_compare_takes_folders_flags_and_files_and_refuses_another_version_of_the_definitions(
    tmp_path: Path,
) -> None:
    """With the exit codes of a comparison of runs; a flag that is only for runs is refused by name."""
    sides = [tmp_path / "old", tmp_path / "new"]
    for side, speed in zip(sides, (60.0, 50.0), strict=True):
        side.mkdir()
        (side / "bench.json").write_text(to_json(of(speed, 50.0)))
    junit, markdown = tmp_path / "compare.xml", tmp_path / "compare.md"
    old, new = str(sides[0]), str(sides[1] / "bench.json")
    files = ("--junit", str(junit), "--markdown", str(markdown))
    code, stdout, _ = finish("compare", old, new, "--json", *files)
    assert (code, json.loads(stdout)["outcome"]) == (6, "regression")
    assert Xml.parse(junit).getroot().get("failures") == "1"
    assert "# REGRESSION" in markdown.read_text()
    assert finish("compare", old, new, "--threshold", "30")[0] == 0
    assert finish("compare", old, new, "--metric", "ttft_client_ms")[0] == 0
    for words, problem in (
        (("--metric", "tpot_p50"), "tok_per_sec"),
        (("--price", "A=1"), "--price"),
        (("--noise", old), "named twice"),
        (("--threshold", "-1"), "--threshold"),
    ):
        code, _, stderr = finish("compare", old, new, *words)
        assert code == 2
        assert problem in stderr
    other = to_data(of(60.0, 50.0))
    other["engines"][0]["metadata"]["metrics_version"] = "0.3.0"
    (sides[0] / "bench.json").write_text(json.dumps(other))
    code, _, stderr = finish("compare", *map(str, sides))
    assert code == 2
    assert "metrics_version 0.3.0" in stderr
