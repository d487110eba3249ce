"""The agentic benchmark in virtual time: planted truths about the prefix cache, its gates, and what goes wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa
import pytest
from procedures.driving import Silent
from studies.virtual_bench import PlantedMachine, VirtualClock

from inferometer.documents.agentic import SCHEMA, Agentic, AgenticEngine, Restart
from inferometer.documents.bench import Remark
from inferometer.documents.part import from_json, to_data
from inferometer.documents.schemas.__main__ import generated
from inferometer.engines.adapters.adapter import EngineFacts
from inferometer.errors import TokenizerGone
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import RECORD
from inferometer.journal.seal import read_table, write_table
from inferometer.run.evaluate import RunResult
from inferometer.run.simulate import simulate
from inferometer.run.ui import Ui
from inferometer.server.engine.settings import Settings
from inferometer.simulation.engine import Chosen
from inferometer.studies.agentic import FILE, AgenticBenched, AgenticQuestion, Surroundings, carry_out
from inferometer.studies.bench_engine import EngineProcesses, LiveEngine, OneToken, Prepared
from inferometer.studies.engine_tokens import TokenCounter
from inferometer.telemetry.machine_readings import Swap
from inferometer.workload.agentic_prompts import PHASES
from inferometer.workload.bench_prompts import BenchPrompt, Count

CACHING = Settings(
    step_base_ns=1e6,
    prefill_base_ns=5e6,
    prefill_per_token_ns=100_000,
    jitter=0,
    prefix_caching=True,
    kv_blocks=40_000,
)
PLAIN = Settings(
    step_base_ns=1e6, prefill_base_ns=5e6, prefill_per_token_ns=100_000, jitter=0, kv_blocks=40_000
)
Change = Callable[[dict[str, Any], str], None]
"""Changes a row of the record, whose phase is given."""


@dataclass
class VirtualEngine:
    """An engine in virtual time. `change` plants a truth in its record."""

    label: str
    settings: Settings = CACHING
    change: Change | None = None
    context: int | None = None
    stays: bool = False
    fails: dict[str, BaseException] = field(default_factory=dict)
    sent: tuple[BenchPrompt, ...] = ()
    url: str | None = None
    model: str | None = None
    counts: Count | None = None

    @property
    def name(self) -> str:
        """As of the real one."""
        return self.label

    def counting(self, model: str | None = None) -> AbstractContextManager[TokenCounter | None]:
        """By `counts`."""
        return nullcontext(None if self.counts is None else TokenCounter(self.counts, f"counts of {model}"))

    def prepare(self) -> Prepared:
        """As of the real one."""
        if "prepare" in self.fails:
            raise self.fails["prepare"]
        return Prepared("tiny", self.context, ())

    def measure(
        self, prepared: Prepared, prompts: tuple[BenchPrompt, ...], runs: int, out: Path, ui: Ui
    ) -> RunResult:
        """As of the real one."""
        self.sent = prompts
        plans = LiveEngine(self.label, self.label, "http://127.0.0.1:1")
        plan = plans.planned(prepared.model, prompts, runs, out.parent)
        result = simulate(plan, Chosen("tiny-cpu", self.settings), out, ui)
        if self.change is not None:
            path = RunFolder.open(result.folder).record
            table = read_table(path, RECORD)
            rows = table.to_pylist()
            for row in rows:
                self.change(row, prompts[row["index"]].name)
            write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
        return result

    def one_token(self, prepared: Prepared, prompt: BenchPrompt) -> OneToken | None:  # noqa: ARG002
        """As of the real one."""
        return None

    def facts(self, model: str) -> EngineFacts | None:  # noqa: ARG002
        """As of the real one."""
        return None

    def process(self) -> EngineProcesses | None:
        """As of the real one."""
        return None

    def unload(self, model: str) -> Remark | None:
        """As of the real one."""
        return Remark("unload_refused", {"model": model, "why": "busy"}) if self.stays else None


def benched(folder: Path, *engines: VirtualEngine, **more: Any) -> AgenticBenched:
    """`more`: members of Surroundings, and of AgenticQuestion."""
    folder.mkdir(exist_ok=True)
    names = ("swap", "duplicates", "restarts")
    around = {name: more.pop(name) for name in names if name in more}
    usual: dict[str, Any] = {"swap": Swap, "duplicates": lambda _: (), **around}
    surroundings = Surroundings(machine=PlantedMachine(), clock=VirtualClock(), **usual)
    question = AgenticQuestion("salt", **{"long_tokens": 2_000, **more})
    return carry_out(question, engines, surroundings, folder, Silent())


def silent(row: dict[str, Any], phase: str) -> None:
    """No count of cached tokens."""
    row["usage_cached"] = None


def claims(share: float) -> Change:
    """A cache that says to hold this share of every prompt."""

    def change(row: dict[str, Any], phase: str) -> None:
        row["usage_cached"] = round(share * row["usage_input"])

    return change


def of_the_tests(share: float) -> Change:
    """A cache that says to hold this share of the prefix tests, and nothing else."""

    def change(row: dict[str, Any], phase: str) -> None:
        row["usage_cached"] = round(share * row["usage_input"]) if phase.startswith("prefix-test") else 0

    return change


def stops_early(*phases: str) -> Change:
    """Short answers in these phases."""

    def change(row: dict[str, Any], phase: str) -> None:
        if phase in phases:
            row["usage_output"] = 199 if phase[:4] != "long" else 99

    return change


def greets(row: dict[str, Any], phase: str) -> None:
    """Nothing is said of the cache, and the first text of the prefix tests is a word sent ahead of the answer."""
    silent(row, phase)
    if phase.startswith("prefix-test"):
        first = row["first_text"]
        events = row["event_ns"]
        row["event_ns"] = [*events[:first], row["t_submit"] + 1_000_000, *events[first + 1 :]]


@pytest.fixture(scope="module")
def truths(tmp_path_factory: pytest.TempPathFactory) -> AgenticBenched:
    """Caching on and off, with the engine's word on it and without, and false words: of a part, of most, of all."""
    return benched(
        tmp_path_factory.mktemp("agentic"),
        VirtualEngine("on"),
        VirtualEngine("off", PLAIN),
        VirtualEngine("on-silent", change=silent),
        VirtualEngine("off-silent", PLAIN, silent),
        VirtualEngine("partial", PLAIN, of_the_tests(0.3)),
        VirtualEngine("liar", PLAIN, of_the_tests(0.9)),
        VirtualEngine("braggart", PLAIN, claims(0.9)),
        VirtualEngine("herald", PLAIN, greets),
    )


def of(done: AgenticBenched, label: str) -> AgenticEngine:
    return next(one for one in done.document.engines if one.label == label)


def codes(one: AgenticEngine) -> set[str]:
    return {remark.code for remark in one.remarks}


@pytest.mark.parametrize(
    ("label", "verdict", "source"),
    [
        ("on", "yes", "cached_tokens"),
        ("off", "no", "cached_tokens"),
        ("on-silent", "yes", "ttft"),
        ("off-silent", "no", "ttft"),
        ("partial", "partial", "cached_tokens"),
    ],
)
def test_the_verdict_is_the_planted_truth(
    truths: AgenticBenched, label: str, verdict: str, source: str
) -> None:
    """By cached tokens where each reply reports them, and otherwise by TTFT; the source is named."""
    reuse = of(truths, label).prefix_cache_reuse
    assert (reuse.verdict, reuse.source) == (verdict, source)


def test_an_engine_that_is_not_to_be_believed_is_found(truths: AgenticBenched) -> None:
    """Tokens said to be cached while TTFT stays that of an empty cache; and of text that is new."""
    assert codes(of(truths, "liar")) == codes(of(truths, "partial")) == {"cached_but_slow"}
    assert "cached_impossible" in codes(of(truths, "braggart"))
    assert of(truths, "herald").prefix_cache_reuse.verdict == "yes"
    assert codes(of(truths, "herald")) == {"early_first_text"}
    for label in ("liar", "partial", "braggart", "herald"):
        assert of(truths, label).status == "INCONCLUSIVE"
    assert {of(truths, one).status for one in ("on", "off", "on-silent", "off-silent")} == {"VALID"}


def test_a_short_long_message_is_compared_with_a_prompt_that_was_not_cached(tmp_path: Path) -> None:
    """Most of long-context is then the cached system prompt: that long-prefix takes as long says nothing, unless it is as slow
    as the cold phases."""
    slow_to_begin = replace(CACHING, prefill_base_ns=150e6)

    def in_the_long_phases(row: dict[str, Any], phase: str) -> None:
        row["usage_cached"] = round(0.9 * row["usage_input"]) if phase.startswith("long") else 0

    honest, liar = VirtualEngine("honest", slow_to_begin), VirtualEngine("liar", PLAIN, in_the_long_phases)
    done = benched(tmp_path / "b", honest, liar, long_tokens=1_000)
    waits = {one.phase: one.ttft_ms or 0 for one in of(done, "honest").samples}
    assert waits["long-prefix"] > waits["long-context"] / 2
    assert (codes(of(done, "honest")), of(done, "honest").status) == (set(), "VALID")
    assert codes(of(done, "liar")) == {"cached_but_slow"}


def test_samples_are_rows_of_the_sealed_record(truths: AgenticBenched) -> None:
    """Each phase once, in order, with the engine's counts and the client's TTFT."""
    one = of(truths, "on")
    rows = read_table(truths.folder / one.runs[0] / "requests.parquet", RECORD).to_pylist()
    assert [sample.phase for sample in one.samples] == [phase.name for phase in PHASES]
    for sample in one.samples:
        row = rows[sample.row]
        assert sample.prompt_tokens == row["usage_input"]
        assert sample.cached_tokens == row["usage_cached"]
        assert sample.ttft_ms == (row["event_ns"][row["first_text"]] - row["t_submit"]) / 1e6
    cold, warm, *_ = one.samples
    assert cold.cached_tokens == 0
    assert (warm.cached_share or 0) > 0.9


def test_the_document_keeps_to_its_schema_and_is_read_back_the_same(truths: AgenticBenched) -> None:
    """As it lies on disk."""
    text = (truths.folder / FILE).read_bytes()
    jsonschema.validate(json.loads(text), json.loads(generated("agentic")))
    assert to_data(from_json(text, Agentic, SCHEMA, FILE)) == to_data(truths.document)


def test_repetitions_have_text_of_their_own_and_give_the_verdict_an_interval(tmp_path: Path) -> None:
    """What is cached in one does not help the next: each begins cold."""
    engine = VirtualEngine("on")
    reuse = of(benched(tmp_path / "b", engine, repeats=3), "on").prefix_cache_reuse
    assert len({one.system for one in engine.sent}) == 6
    assert [one.verdict for one in reuse.repeats] == ["yes"] * 3
    assert reuse.ci95 is not None
    assert reuse.decided is True


def test_two_short_answers_trip_the_gate_and_one_does_not(tmp_path: Path) -> None:
    """Below half of max_tokens."""
    done = benched(
        tmp_path / "b",
        VirtualEngine("two", change=stops_early("warm", "long-prefix")),
        VirtualEngine("one", change=stops_early("warm")),
        VirtualEngine("none"),
    )
    stops = [one.quality_gates.early_stop for one in done.document.engines]
    assert [(one.tripped, one.short) for one in stops] == [(True, 2), (False, 1), (False, 0)]
    assert stops[0].phases == ("warm", "long-prefix")
    assert "early_stop" in of(done, "two").reasons


def test_swap_that_grows_trips_the_gate_and_swap_that_cannot_be_read_leaves_it_open(tmp_path: Path) -> None:
    """Unknown is neither alarm nor all-clear."""
    pages = iter(range(0, 10**9, 2_000))
    grown = benched(tmp_path / "a", VirtualEngine("on"), swap=lambda: Swap(0, next(pages), 4096))
    assert of(grown, "on").quality_gates.memory_pressure.tripped is True
    assert "memory_pressure" in of(grown, "on").reasons
    still = benched(tmp_path / "b", VirtualEngine("on"), swap=lambda: Swap(0, 0, 4096))
    assert of(still, "on").quality_gates.memory_pressure.tripped is False
    unread = benched(tmp_path / "c", VirtualEngine("on"))
    assert of(unread, "on").quality_gates.memory_pressure.tripped is None


def test_two_instances_of_an_engine_are_refused_unless_forced(tmp_path: Path) -> None:
    """Nothing is sent then; forced, the gate has tripped all the same."""
    twice: dict[str, Any] = {"duplicates": lambda _: (41, 42)}
    refused = benched(tmp_path / "a", VirtualEngine("on"), **twice)
    assert (of(refused, "on").ended, refused.exit_code) == ("refused", 3)
    forced = benched(tmp_path / "b", VirtualEngine("on"), force=True, **twice)
    assert of(forced, "on").ended == "measured"
    assert of(forced, "on").quality_gates.duplicate_processes.processes == (41, 42)


@pytest.mark.parametrize(
    ("context", "code", "phases"),
    [
        (20_000, None, 8),
        (9_900, "long_shortened", 8),
        (8_000, "long_left_out", 6),
        (6_000, "context_short", 0),
    ],
)
def test_a_model_with_a_short_context_gets_less_and_the_result_says_so(
    context: int, code: str | None, phases: int, tmp_path: Path
) -> None:
    """A smaller long message, none, or no benchmark."""
    engine = VirtualEngine("on", context=context)
    one = of(benched(tmp_path / "b", engine, long_tokens=1_500), "on")
    assert len(one.samples) == phases
    assert codes(one) == ({code} if code else set())


def test_an_engine_that_was_not_restarted_is_named_or_not_measured(tmp_path: Path) -> None:
    """As `restart_required` says."""
    stays: dict[str, Any] = {"restarts": {"on": lambda _: Restart(False, 30.0, "old_server_stays")}}
    went_on = of(benched(tmp_path / "a", VirtualEngine("on"), **stays), "on")
    assert (went_on.ended, codes(went_on)) == ("measured", {"restart_old_server_stays"})
    for number, restarts in enumerate((stays, {})):
        aborted = benched(tmp_path / f"b{number}", VirtualEngine("on"), restart_required=True, **restarts)
        assert (of(aborted, "on").ended, aborted.exit_code) == ("failed", 5)


def test_ctrl_c_loses_nothing(tmp_path: Path) -> None:
    """Who was not measured is named."""
    stopped = VirtualEngine("b", fails={"prepare": KeyboardInterrupt()})
    done = benched(tmp_path / "b", VirtualEngine("a"), stopped, VirtualEngine("c"))
    assert done.exit_code == 130
    assert [one.ended for one in done.document.engines] == ["measured", "interrupted"]
    assert done.document.remarks == (Remark("not_measured", {"engine": "c"}),)


def test_a_model_that_stays_in_memory_is_named(tmp_path: Path) -> None:
    """It takes memory from the next engine; this one's verdict stands."""
    one = of(benched(tmp_path / "b", VirtualEngine("on", stays=True)), "on")
    assert (one.status, codes(one)) == ("VALID", {"unload_refused"})


def words(text: str) -> int:
    """A tokenizer of whole words."""
    return len(text.split())


def gone() -> Count:
    """A tokenizer that no longer answers after its first few counts."""
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        if len(counted) > 30:
            raise TokenizerGone("it went away")
        return words(text)

    return count


def test_prompts_are_sized_in_the_models_own_tokens_where_it_counts_them(tmp_path: Path) -> None:
    """Each engine by its own tokenizer, else by characters, also where that ends in the middle; the result names which."""
    engines = (
        VirtualEngine("words", counts=words),
        VirtualEngine("none"),
        VirtualEngine("gone", counts=gone()),
    )
    done = benched(tmp_path / "b", *engines)
    sizes = {one.label: one.sizes for one in done.document.engines}
    assert {label: one.sized_by for label, one in sizes.items() if one is not None} == {
        "words": "counts of tiny",
        "none": "5.3 characters a token",
        "gone": "5.3 characters a token",
    }
    own, plain = sizes["words"], sizes["none"]
    assert own is not None
    assert plain is not None
    assert 6_400 <= own.system_a < 6_500
    assert own.system_a == words(engines[0].sent[0].system or "")
    assert own.long_tokens == words(engines[0].sent[-1].text)
    assert len(engines[0].sent[0].system or "") > len(engines[1].sent[0].system or "")
    assert sizes["gone"] == plain
    assert engines[2].sent == engines[1].sent
