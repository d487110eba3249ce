"""Folders of several runs (campaigns of tests, benchmarks, cross-validations) that were cut off, damaged, or made by somebody
who means harm: as test_fuzzed_folders.py has it of the folder of one run. INFEROMETER_FUZZ has the same effect."""

from __future__ import annotations

import os
from pathlib import Path

import agentics
import benches
import pytest
from commands import finish, only
from fuzzed_folders import MUTATIONS, Mutation, keep_the_law
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from serving import serving

from inferometer.cli.app import run
from inferometer.documents.part import to_json
from inferometer.server.engine.settings import Settings

EXAMPLES = int(os.environ.get("INFEROMETER_FUZZ", "25"))
OTHERS = {
    "compliance": ("compliance", "FOLDER"),
    "recover": ("recover", "FOLDER"),
    "rerun": ("rerun", "FOLDER", "--quiet", "--out", "NOWHERE"),
}
"""Commands that read each of the folders, or say what they would read."""
COMMANDS = {
    "campaign": {
        "report": ("report", "FOLDER"),
        "redact": ("report", "FOLDER", "--redact", "capacity"),
        "compliance of a test": ("compliance", "FOLDER", "--test", "ttft", "--json"),
        "compare": ("compare", "OTHER_CAMPAIGN", "FOLDER"),
        "compare repeats": ("compare", "PARENT", "OTHER_CAMPAIGN"),
        **OTHERS,
    },
    "bench": {
        "report": ("report", "FOLDER", "--json"),
        "compare": ("compare", "FOLDER", "OTHER_BENCH"),
        **OTHERS,
    },
    "agentic": {"report": ("report", "FOLDER"), **OTHERS},
    "cross-validation": {"report": ("report", "FOLDER"), **OTHERS},
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two simulated campaigns, one of whose tests looks at single requests; benchmarks whose samples are planted; and a
    cross-validation with its runs."""
    place = tmp_path_factory.mktemp("whole")
    words = ["--quick", "--simulate", "--param", "ttft.requests=20", "--param", "ttft.rates=[5]", "--quiet"]
    run(["test", "ttft", "fairness", *words, "--out", str(place / "campaign")])
    run(["test", "ttft", *words, "--seed", "43", "--out", str(place / "OTHER_CAMPAIGN")])
    for name, document in (
        ("bench", benches.usual()), ("OTHER_BENCH", benches.usual()), ("agentic", agentics.usual()),
    ):  # fmt: skip
        folder = place / name / "20260102T030405Z-planted"
        folder.mkdir(parents=True)
        (folder / f"{'agentic' if name == 'agentic' else 'bench'}.json").write_text(to_json(document))
    with serving(engine=Settings(step_base_ns=1_000_000, prefill_base_ns=20_000_000, jitter=0)) as port:
        url = f"http://127.0.0.1:{port}"
        short = ("--prompt", "tool-call", "--runs", "2", "--quiet", "--out", str(place / "cross-validation"))
        finish("cross-validate", "--url", url, *short)
    names = ("campaign", "OTHER_CAMPAIGN", "bench", "OTHER_BENCH", "agentic", "cross-validation")
    return {name: only(place / name) for name in names}


@seed(0)
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), database=None)
@given(st.data())
def test_a_damaged_folder_ends_in_a_result_or_in_words(
    whole: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
    data: st.DataObject,
) -> None:
    """Law: that of keep_the_law, whichever file of whichever run it is."""
    kind = data.draw(st.sampled_from(list(COMMANDS)))
    command = data.draw(st.sampled_from(list(COMMANDS[kind])))
    mutation = st.tuples(st.sampled_from(MUTATIONS), st.integers(0, 2**32))
    mutations: list[tuple[Mutation, int]] = data.draw(st.lists(mutation, min_size=1, max_size=3))
    place = tmp_path_factory.mktemp("fuzzed")
    keep_the_law(COMMANDS[kind][command], whole[kind], whole, mutations, place, capsys)
