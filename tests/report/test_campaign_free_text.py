"""Free text of the tester is in nothing that a redacted campaign shares (docs/reports.md): a word of its own is put into every
text of a plan that its types do not restrict, and looked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from procedures.driving import Silent
from pydantic.fields import FieldInfo

from inferometer.plan.campaign import Campaign, campaign
from inferometer.plan.part import Part, parts_in
from inferometer.plan.procedure_parameters import Tests
from inferometer.plan.published import ClassNames, in_own_words, workload
from inferometer.plan.schema import Plan
from inferometer.plan.workload import KINDS, MixtureWorkload, workload_of
from inferometer.report.campaign.redaction import redact
from inferometer.server.engine.settings import Settings
from inferometer.simulation.engine import Chosen
from inferometer.studies.campaign import SHAREABLE, carry_out
from inferometer.studies.campaign_runs import rewritten
from inferometer.studies.stand import Virtual

SYSTEM = {
    "target.model", "sut.model_version", "sut.quantization", "sut.software", "sut.accelerator",
    "sut.accelerator_memory", "sut.guardrails.names", "tokenizer.name",
}  # fmt: skip
"""What identifies the system under test and its tokenizer: a report without it is of nothing."""
ELSEWHERE = {
    "target.url", "target.api", "target.api_key_env", "target.api_key_file", "target.tls_ca_file", "trace.file",
    "trace.sha256", "workload.dataset", "workload.dataset_subset", "workload.dataset_version", "workload.prompts",
    "workload.prompts_sha256", "workload.prefix_sharing", "workload.file", "workload.file_sha256", "workload.sessions",
    "workload.sessions_sha256", "workload.tasks", "workload.tasks_sha256", "workload.spans", "target.session_header",
}  # fmt: skip
"""What names files, servers and secrets, which a simulation has none of; how messages of a server are read is another such. The
workload's are planted into its values below; of the other parts of a plan nothing is published but the tokenizer."""


def texts(kind: type[Part], where: str = "") -> Iterator[str]:
    """The fields of a part, dotted, that hold text and no word of a given vocabulary; those of all kinds of workload."""
    for name, field in kind.model_fields.items():
        place = f"{where}{name}"
        for inner in dict.fromkeys(parts_in(field.annotation)):
            yield from texts(inner, f"{place}.")
        if not list(parts_in(field.annotation)) and _textual(field):
            yield place


def _textual(field: FieldInfo) -> bool:
    return any(one is str for one in _leaves(field.annotation)) or "dict" in str(field.annotation)


def _leaves(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) is Literal:
        return
    inner = get_args(annotation)
    if not inner:
        yield annotation
    for one in inner:
        yield from _leaves(one)


def planted(places: Iterator[str] | list[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Values with a word at each of the places, and the words by place."""
    values: dict[str, Any] = {}
    words: dict[str, str] = {}
    for place in dict.fromkeys(places):
        *parts, last = place.split(".")
        at: Any = values
        for one in parts:
            at = at.setdefault(one, {})
        word = words[place] = f"qz{len(words)}word"
        listed = last in ("stop", "names")
        at[last] = [word] if listed else {f"X-{word}": word} if last in ("headers", "extra_body") else word
    return values, words


def plan_of_words() -> tuple[dict[str, Any], dict[str, str]]:
    """A plan file with a word in every text that a simulated campaign can have; of two classes."""
    places = [
        place
        for place in dict.fromkeys(texts(Plan))
        if place not in ELSEWHERE
        and not place.startswith(("server_metrics.", "host_telemetry.", "target.websocket."))
    ]
    values, words = planted([place for place in places if place != "tokenizer.name"])
    one = values["workload"].pop("classes")
    values["workload"]["classes"] = [
        {**one, "input_tokens": 40, "output_tokens": 10},
        {"name": "qzotherword", "input_tokens": 20, "output_tokens": 5},
    ]
    values["sut"] |= {"boundary": "gateway", "accelerator_count": 1}
    return values, words | {"workload.classes.name of another": "qzotherword"}


def carried(folder: Path) -> tuple[Path, dict[str, str]]:
    """A simulated campaign of such a plan, with its copy for sharing."""
    values, words = plan_of_words()
    lengths = {"input_tokens": [64, 256], "output_tokens": [32, 128], "share": 0.5}
    classes = [{"name": f"qz{name}word", **lengths} for name in ("fair", "unfair")]
    words |= {"fairness.classes.name": "qzfairword", "fairness.classes.name of another": "qzunfairword"}
    values["tests"] = {"fairness": {"classes": classes}}
    path = folder / "plan.yaml"
    path.write_text(json.dumps(values))
    small = ["ttft.requests=40", "ttft.rates=[5, 10]", "capacity.maximum=8", "capacity.duration_s=2"]
    whole: Campaign = campaign(
        ("ttft", "capacity", "fairness"), path, None, small, simulated=True, quick=True, redact=("capacity",)
    )
    stand = Virtual(Chosen("tiny-cpu", Settings(step_base_ns=5e6, max_batch=16)), Silent())
    out = folder / "out"
    out.mkdir()
    carry_out(whole, stand, out, Silent(), "inferometer test")
    return out, words


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    return carried(tmp_path_factory.mktemp("words"))


def surviving(folder: Path, words: dict[str, str]) -> set[str]:
    """The places whose word is in a file of a folder, in whatever case."""
    whole = "\n".join(path.read_text().lower() for path in folder.iterdir() if path.is_file())
    return {place for place, word in words.items() if word in whole}


def test_no_word_of_the_tester_is_in_a_shareable_file(shared: tuple[Path, dict[str, str]]) -> None:
    """Nothing but what identifies the system survives, in JSON, text, Markdown or HTML; classes are numbers."""
    folder, words = shared
    assert surviving(folder / SHAREABLE, words) <= SYSTEM
    text = (folder / SHAREABLE / "report.md").read_text()
    assert "Class 3 Starvation" in text
    assert "Class 4 Starvation" in text


def test_the_words_are_in_the_report_that_is_not_shared(shared: tuple[Path, dict[str, str]]) -> None:
    """The law above is about something: each word is in the campaign's own document."""
    folder, words = shared
    assert surviving(folder, words) == set(words)


def test_a_report_written_again_shares_no_more(shared: tuple[Path, dict[str, str]]) -> None:
    """What is read from campaign.json is redacted alike."""
    folder, words = shared
    first = (folder / SHAREABLE / "campaign.json").read_bytes()
    document = rewritten(folder, ("capacity",)).document
    assert (folder / SHAREABLE / "campaign.json").read_bytes() == first
    assert redact(document, "capacity").redacted == ("capacity",)
    assert surviving(folder / SHAREABLE, words) <= SYSTEM


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_of_a_workload_is_published(kind: str) -> None:
    """Of each kind of workload: whatever its types do not restrict is withheld, and what they restrict stays."""
    values, words = planted(list(texts(KINDS[kind])))
    if "classes" in values:
        values["classes"] = [values["classes"]]
    found = workload(values | {"kind": kind}, ClassNames(), "withheld")
    assert found["kind"] == kind
    assert not [place for place, word in words.items() if word in str(found)]


def test_a_workload_of_the_drafts_words_is_published_whole() -> None:
    """Random lengths, and a mixture of the draft's classes, hold no word of the tester's; a declared language is one."""
    lengths = {"input_tokens": 10, "output_tokens": 10}
    drafted = workload_of({"classes": [{"name": "short", **lengths}, {"name": "long", **lengths}]})
    assert isinstance(drafted, MixtureWorkload)
    plain = [workload_of({"name": "custom", **lengths}), workload_of({}), drafted]
    assert not any(map(in_own_words, plain))
    assert in_own_words(workload_of({"language": "Klingon"}))
    assert in_own_words(workload_of({"classes": [{"name": "ours", **lengths}]}))


def test_parameters_of_tests_hold_no_text_but_names_of_classes() -> None:
    """So publishing those marked as harmless publishes no words; one that does has to be decided on here."""
    assert set(texts(Tests)) == {"fairness.classes.name"}
