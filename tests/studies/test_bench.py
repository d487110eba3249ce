"""The benchmark's protocol in virtual time: its gate, its pauses, planted truths, and what an engine does wrong."""

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

from inferometer.documents.bench import SCHEMA, Bench, Client, EngineResult, Remark
from inferometer.documents.part import from_json, to_data
from inferometer.documents.schemas.__main__ import generated
from inferometer.drive.progress_counters import Progress
from inferometer.engines.adapters.adapter import EngineFacts, ServedModel
from inferometer.errors import InstrumentError, PeerError, PlanError
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import RECORD, Phase
from inferometer.journal.seal import read_table, write_table
from inferometer.report.bench import contents
from inferometer.run.evaluate import RunResult
from inferometer.run.simulate import simulate
from inferometer.run.ui import Ui
from inferometer.server.engine.settings import Settings
from inferometer.simulation.engine import Chosen
from inferometer.studies.bench import FILE, Benched, Question, carry_out
from inferometer.studies.bench_answers import reference_answers
from inferometer.studies.bench_engine import EngineFailed, EngineProcesses, LiveEngine, OneToken, Prepared
from inferometer.studies.bench_gate import cool_down, gate
from inferometer.studies.engine_tokens import TokenCounter
from inferometer.workload.bench_prompts import BenchPrompt, context_fill

PROMPTS = (BenchPrompt("code", "Write a loop.", 40), BenchPrompt("long", "Write a book.", 60))
QUESTION = Question(PROMPTS)
ENGINE = Settings(step_base_ns=5e6, prefill_base_ns=20e6, jitter=0)
Change = Callable[[dict[str, Any], int], None]
"""Changes a row of the record, whose run is given, from 1."""


@dataclass
class Level:
    """A reading."""

    level: str | None = None
    speed_limit_percent: float | None = 100.0


@dataclass
class PlantedMachine:
    """A machine whose memory pressure follows a list, and stays at its last entry."""

    pressures: list[str | None] = field(default_factory=lambda: ["normal"])
    limit: float | None = 100.0

    def memory_pressure(self) -> Level:
        """As of the real one."""
        return Level(self.pressures.pop(0) if len(self.pressures) > 1 else self.pressures[0])

    def thermal(self) -> Level:
        """As of the real one."""
        return Level("nominal", self.limit)

    def chip(self) -> str | None:
        """As of the real one."""
        return "Planted M1"

    def os_version(self) -> str | None:
        """As of the real one."""
        return "PlantedOS 1"


@dataclass
class VirtualClock:
    """Time that passes by sleeping only."""

    at_ns: int = 0

    def now_ns(self) -> int:
        """As of the real one."""
        return self.at_ns

    def sleep(self, seconds: float) -> None:
        """As of the real one."""
        self.at_ns += round(seconds * 1e9)


@dataclass
class VirtualEngine:
    """An engine's model in virtual time. `change` plants a truth in its record; `fails`: what a step raises, by its name."""

    label: str
    settings: Settings = ENGINE
    change: Change | None = None
    fails: dict[str, BaseException] = field(default_factory=dict)
    context: int | None = None
    refuses_unload: bool = False
    steps: list[str] = field(default_factory=list)
    one_token_ms: float | None = 6.0
    url: str | None = None
    model: str | None = None

    @property
    def name(self) -> str:
        """As of the real one."""
        return self.label

    def _step(self, name: str) -> None:
        self.steps.append(name)
        if name in self.fails:
            raise self.fails[name]

    def counting(self, model: str | None = None) -> AbstractContextManager[TokenCounter | None]:
        """As of one without."""
        del model
        return nullcontext()

    def prepare(self) -> Prepared:
        """As of the real one."""
        self._step("prepare")
        return Prepared("tiny", self.context, ())

    def measure(
        self, prepared: Prepared, prompts: tuple[BenchPrompt, ...], runs: int, out: Path, ui: Ui
    ) -> RunResult:
        """As of the real one."""
        self._step("measure")
        ui.watch(Phase.MEASURE, Progress(0, 0, 0, 0, 0), None)
        plans = LiveEngine(self.label, self.label, "http://127.0.0.1:1")
        plan = plans.planned(prepared.model, prompts, runs, out.parent)
        result = simulate(plan, Chosen("tiny-cpu", self.settings), out, ui)
        if self.change is not None:
            planted(result.folder, self.change, len(prompts))
        return result

    def one_token(self, prepared: Prepared, prompt: BenchPrompt) -> OneToken | None:  # noqa: ARG002
        """As of the real one."""
        self._step("one_token")
        return None if self.one_token_ms is None else OneToken(prompt.name, self.one_token_ms)

    def facts(self, model: str) -> EngineFacts | None:
        """As of the real one."""
        self._step("facts")
        served = ServedModel(model, "gguf", "Q4_K_M", memory_bytes=1 << 30)
        return EngineFacts(self.label, "1.2", "llama.cpp", (served,))

    def process(self) -> EngineProcesses | None:
        """As of the real one."""
        return EngineProcesses(None, 2 << 30)

    def unload(self, model: str) -> Remark | None:
        """As of the real one."""
        self._step("unload")
        return Remark("unload_refused", {"model": model, "why": "busy"}) if self.refuses_unload else None


def planted(folder: Path, change: Change, prompts: int) -> None:
    """Change the sealed record of a run."""
    path = RunFolder.open(folder).record
    table = read_table(path, RECORD)
    rows = table.to_pylist()
    for row in rows:
        change(row, row["index"] // prompts + 1)
    write_table(pa.Table.from_pylist(rows, schema=table.schema), path)


def slower_by(share: float) -> Change:
    """Each run's generation lasts so much longer that its speed is lower by `share` than in the run before."""

    def change(row: dict[str, Any], run: int) -> None:
        first = row["event_ns"][row["first_text"]]
        row["t_end"] = first + round((row["t_end"] - first) / (1 - share) ** (run - 1))

    return change


def times_itself(decode: float = 1.0) -> Change:
    """An engine that reports its durations, as long as the client saw them but for `decode`, by this factor."""

    def change(row: dict[str, Any], run: int) -> None:
        first = row["event_ns"][row["first_text"]]
        span = round((row["t_end"] - first) * decode)
        row |= {"server_prefill_ns": first - row["t_submit"], "server_decode_ns": span}
        row["server_total_ns"] = row["server_prefill_ns"] + span

    return change


def says_something_first(row: dict[str, Any], run: int) -> None:
    """The first text is sent a third of a second before the answer begins."""
    first = row["first_text"]
    late = [at + 333_000_000 for at in row["event_ns"][first + 1 :]]
    row |= {"event_ns": [*row["event_ns"][: first + 1], *late], "t_end": row["t_end"] + 333_000_000}


def held_back(row: dict[str, Any], run: int) -> None:
    """The answer is kept until it is whole, and then sent on at three times the speed."""
    begun, end = row["event_ns"][row["first_text"]], row["t_end"]
    later = [end + (at - begun) // 3 for at in row["event_ns"]]
    row |= {"event_ns": later, "t_end": end + (end - begun) // 3}


def ends_late(row: dict[str, Any], run: int) -> None:
    """The stream stays open for a third of a second."""
    row["t_end"] += 333_000_000


def repeats_itself(row: dict[str, Any], run: int) -> None:
    """Answers of the first run are kept, and sent again ten times as fast."""
    if run > 1:
        for name in ("t_end", "event_ns"):
            at = row[name]
            begun = row["t_submit"]
            row[name] = (
                [begun + (one - begun) // 10 for one in at]
                if name == "event_ns"
                else begun + (at - begun) // 10
            )


def uncounted(row: dict[str, Any], run: int) -> None:
    """No usage at all."""
    row["usage_output"] = row["usage_input"] = None


def benched(
    folder: Path, *engines: VirtualEngine, machine: PlantedMachine | None = None, **more: Any
) -> Benched:
    folder.mkdir(exist_ok=True)
    question = Question(PROMPTS, **more)
    return carry_out(question, engines, machine or PlantedMachine(), VirtualClock(), folder, Silent())


def codes(result: EngineResult) -> set[str]:
    return {one.code for one in result.remarks}


@pytest.fixture(scope="module")
def truths(tmp_path_factory: pytest.TempPathFactory) -> Benched:
    """Two equal engines, one at half their speed, one that slows down by 6 % a run, and one that counts no tokens."""
    slow = Settings(step_base_ns=10e6, prefill_base_ns=40e6, jitter=0)
    return benched(
        tmp_path_factory.mktemp("bench"),
        VirtualEngine("one"),
        VirtualEngine("two"),
        VirtualEngine("slow", slow),
        VirtualEngine("fading", change=slower_by(0.06)),
        VirtualEngine("silent", change=uncounted),
    )


def of(truths: Benched, label: str) -> EngineResult:
    return next(one for one in truths.document.engines if one.label == label)


def test_the_document_keeps_to_its_schema_and_is_read_back_the_same(truths: Benched) -> None:
    """As it lies on disk."""
    text = (truths.folder / FILE).read_bytes()
    jsonschema.validate(json.loads(text), json.loads(generated("bench")))
    assert to_data(from_json(text, Bench, SCHEMA, FILE)) == to_data(truths.document)


def test_equal_engines_tie_and_one_at_half_the_speed_is_behind(truths: Benched) -> None:
    """By speed, and by TTFT the other way round."""
    by_speed, by_ttft = truths.document.rankings
    first, *_, last = by_speed.places
    assert {"one", "two"} <= set(first.labels)
    assert first.tie
    assert last.labels == ("slow",)
    assert by_speed.left_out == ("silent",)
    assert by_ttft.places[-1].labels == ("slow",)
    one, slow = (of(truths, name).tok_per_sec for name in ("one", "slow"))
    assert one is not None
    assert slow is not None
    assert slow.median == pytest.approx((one.median or 0) / 2, rel=0.05)


def test_an_engine_under_two_names_ties_with_itself_and_is_called_one(tmp_path: Path) -> None:
    """An A/A test, under two names of one address; other engines' addresses are their own."""
    jittery = replace(ENGINE, jitter=0.02)
    same = [
        VirtualEngine("a", jittery, url="http://127.0.0.1:1"),
        VirtualEngine("b", jittery, url="http://localhost:1/v1"),
        VirtualEngine("c", jittery, url="http://localhost:2"),
    ]
    done = benched(tmp_path / "b", *same)
    assert [one.code for one in done.document.remarks] == ["same_engine"]
    assert done.document.remarks[0].facts["second"] == "b"
    for order in done.document.rankings:
        assert any({"a", "b"} <= set(place.labels) and place.tie for place in order.places)


def test_two_engines_at_one_address_are_no_test_of_one(tmp_path: Path) -> None:
    """Two names of adapters: one of them is not what answers there."""
    named = [VirtualEngine(name, url="http://127.0.0.1:1") for name in ("vllm", "omlx")]
    assert [one.code for one in benched(tmp_path / "b", *named).document.remarks] == ["same_address"]


def test_an_engine_that_slows_by_six_percent_a_run_is_found_as_drift(truths: Benched) -> None:
    """In each prompt, by 1 - 0.94^2 over three runs; and no other engine drifts."""
    fading = of(truths, "fading")
    assert [one.drift for one in fading.prompts] == [pytest.approx(1 - 0.94**2, rel=1e-3)] * 2
    assert [one.code for one in fading.remarks].count("drift") == 2
    assert all("drift" not in codes(one) for one in truths.document.engines if one.label != "fading")


def test_a_speed_that_is_the_engines_word_alone_is_not_relied_on(tmp_path: Path) -> None:
    """An engine whose own durations are not the client's, one that repeats answers that it keeps, and one whose first text is
    no answer."""
    done = benched(
        tmp_path / "b",
        VirtualEngine("honest", change=times_itself()),
        VirtualEngine("boaster", change=times_itself(0.5)),
        VirtualEngine("modest", change=times_itself(1.3)),
        VirtualEngine("parrot", change=repeats_itself),
        VirtualEngine("herald", change=says_something_first),
    )
    honest = of(done, "honest")
    assert (honest.status, codes(honest)) == ("VALID", set())
    assert {one.tok_per_sec_source for one in honest.samples} == {"server"}
    for label, code in (
        ("boaster", "clocks_differ"),
        ("modest", "clocks_differ"),
        ("parrot", "faster_later"),
    ):
        one = of(done, label)
        assert (one.status, one.reasons) == ("INCONCLUSIVE", (code,))
        assert code in codes(one)
    assert "sooner_later" in codes(of(done, "parrot"))


def test_an_answer_that_is_kept_until_it_is_whole_is_told_by_one_of_one_token(tmp_path: Path) -> None:
    """At whatever pace it is sent on; and where no short answer came, nothing is claimed."""
    engines = [
        VirtualEngine("honest"),
        VirtualEngine("held", change=held_back),
        VirtualEngine("unknown", change=held_back, one_token_ms=None),
    ]
    done = benched(tmp_path / "b", *engines)
    held = of(done, "held")
    assert (held.status, held.reasons, codes(held)) == ("INCONCLUSIVE", ("held_back",), {"held_back"})
    assert [codes(of(done, label)) for label in ("honest", "unknown")] == [set(), set()]


def test_a_stream_that_stays_open_is_named_and_counts(tmp_path: Path) -> None:
    """The definition of M5 takes it in, so the speed is right, and a reader is told."""
    late = of(benched(tmp_path / "b", VirtualEngine("late", change=ends_late)), "late")
    assert (late.status, codes(late)) == ("VALID", {"late_end"})
    assert [round(float(one.facts["wait"] or 0)) for one in late.remarks if one.code == "late_end"] == [
        333
    ] * 2


def test_a_single_prompt_of_three_runs_is_enough_for_a_verdict(tmp_path: Path) -> None:
    """Three answers that came token by token do not show how other answers would come, and nobody asks."""
    folder = tmp_path / "b"
    folder.mkdir()
    engine = VirtualEngine("one")
    done = carry_out(Question(PROMPTS[:1]), [engine], PlantedMachine(), VirtualClock(), folder, Silent())
    assert (of(done, "one").status, of(done, "one").reasons) == ("VALID", ())


def test_an_engine_that_reports_no_usage_is_marked_as_an_estimate(truths: Benched) -> None:
    """In every sample, and in one remark."""
    silent = of(truths, "silent")
    assert {one.tokens_source for one in silent.samples} == {"estimate"}
    assert "tokens_estimated" in codes(silent)
    assert {one.tokens_source for one in of(truths, "one").samples} == {"server"}


def test_every_result_has_all_metadata(truths: Benched) -> None:
    """What the methodology wants stored; power is not measured, and says so by null."""
    metadata = to_data(of(truths, "one").metadata)
    assert metadata == {
        "engine": "one", "engine_version": "1.2", "runner": "llama.cpp", "model": "tiny", "model_format": "gguf",
        "model_quantization": "Q4_K_M", "memory_bytes": 1 << 30, "memory_source": "engine", "hw_chip": "Planted M1",
        "os_version": "PlantedOS 1", "thermal_level": "nominal", "thermal_speed_limit": 100.0, "power_watts": None,
        "power_source": None, "metrics_version": "0.4.0",
    }  # fmt: skip


def test_of_an_engine_elsewhere_no_chip_is_claimed_and_of_one_that_failed_the_model_is_known(
    tmp_path: Path,
) -> None:
    """This machine's chip, system and heat are the client's; a model that was asked for is stored whatever came of it."""
    failing = VirtualEngine("b", model="asked", fails={"prepare": EngineFailed("unreachable", why="gone")})
    done = benched(tmp_path / "b", VirtualEngine("a", url="http://10.1.2.3:8000"), failing)
    far, lost = (one.metadata for one in done.document.engines)
    assert (far.hw_chip, far.os_version, far.thermal_level, far.thermal_speed_limit) == (None,) * 4
    assert done.document.client == Client("Planted M1", "PlantedOS 1")
    assert (lost.model, lost.hw_chip) == ("asked", "Planted M1")
    assert (
        contents.machines(done.document) == "Planted M1, PlantedOS 1; measured from Planted M1, PlantedOS 1"
    )


def test_a_sample_is_a_row_of_the_sealed_record(truths: Benched) -> None:
    """Its time to first token and its total are those of the run's record."""
    one = of(truths, "one")
    rows = read_table(truths.folder / one.runs[0] / "requests.parquet", RECORD).to_pylist()
    assert len(one.samples) == 6
    for sample in one.samples:
        row = rows[sample.row or 0]
        assert sample.ttft_client_ms == (row["event_ns"][row["first_text"]] - row["t_submit"]) / 1e6
        assert sample.total_duration_ms == (row["t_end"] - row["t_submit"]) / 1e6
        assert sample.tokens_generated == row["usage_output"]


def test_a_turn_goes_from_the_gate_to_the_unloaded_model(tmp_path: Path) -> None:
    """And a refused unload is a remark, which spoils nothing."""
    engine = VirtualEngine("a", refuses_unload=True)
    done = benched(tmp_path / "b", engine, VirtualEngine("b"))
    assert engine.steps == ["prepare", "measure", "one_token", "facts", "unload"]
    first, second = done.document.engines
    assert codes(first) == {"unload_refused"}
    assert (first.ended, second.ended) == ("measured", "measured")


@pytest.mark.parametrize(
    ("fails", "code"),
    [
        ({"prepare": EngineFailed("unreachable", why="refused")}, "unreachable"),
        ({"prepare": EngineFailed("warm_up_hung", why="no answer in time")}, "warm_up_hung"),
        ({"prepare": EngineFailed("model_missing", why="404", model="x")}, "model_missing"),
        ({"measure": PeerError("it died")}, "engine_failed"),
    ],
)
def test_what_fails_is_named_and_the_others_are_measured(
    fails: dict[str, BaseException], code: str, tmp_path: Path
) -> None:
    """The exit code says that an engine failed."""
    done = benched(tmp_path / "b", VirtualEngine("bad", fails=fails), VirtualEngine("good"))
    bad, good = done.document.engines
    assert (bad.ended, good.ended, done.exit_code) == ("failed", "measured", 5)
    assert code in codes(bad)
    assert (bad.status, bad.tok_per_sec, bad.samples) == (None, None, ())
    assert done.document.rankings[0].left_out == ("bad",)


def died(row: dict[str, Any], run: int) -> None:
    """From its second run on, nobody is there."""
    if run > 1:
        row.update(outcome="connect_refused", t_submit=None, event_ns=[], event_class=b"", first_text=-1)


def test_an_engine_that_dies_between_runs_keeps_what_was_measured(tmp_path: Path) -> None:
    """Its first run's samples are there; it is marked, and has no place."""
    done = benched(tmp_path / "b", VirtualEngine("bad", change=died), VirtualEngine("good"))
    bad, _ = done.document.engines
    assert bad.ended == "failed"
    assert [one.discarded for one in bad.samples].count("failed") == 4
    assert bad.tok_per_sec is not None
    assert bad.tok_per_sec.n == 2
    assert "generations_failed" in codes(bad)
    assert "not_finished" in bad.reasons


@pytest.mark.parametrize("step", ["prepare", "measure", "facts", "unload"])
def test_ctrl_c_ends_the_benchmark_and_loses_nothing(step: str, tmp_path: Path) -> None:
    """What was measured before is written, and who was not measured is named."""
    stopped = VirtualEngine("b", fails={step: KeyboardInterrupt()})
    done = benched(tmp_path / "b", VirtualEngine("a"), stopped, VirtualEngine("c"))
    assert (done.exit_code, done.document.interrupted) == (130, True)
    measured = "measured" if step in ("facts", "unload") else "interrupted"
    assert [one.ended for one in done.document.engines] == ["measured", measured]
    assert done.document.remarks == (Remark("not_measured", {"engine": "c"}),)
    on_disk = from_json((done.folder / FILE).read_bytes(), Bench, SCHEMA, FILE)
    assert on_disk.engines[0].samples == done.document.engines[0].samples


def test_a_fault_of_the_instrument_is_reported_after_what_was_measured_is_written(tmp_path: Path) -> None:
    """The program ends with it, as a bug does."""
    broken = VirtualEngine("b", fails={"measure": InstrumentError("a worker died")})
    with pytest.raises(InstrumentError):
        benched(tmp_path / "b", VirtualEngine("a"), broken)
    on_disk = from_json((tmp_path / "b" / FILE).read_bytes(), Bench, SCHEMA, FILE)
    assert [one.ended for one in on_disk.engines] == ["measured", "failed"]


@pytest.mark.parametrize(
    ("machine", "code"),
    [
        (PlantedMachine(["critical"]), "pressure_critical"),
        (PlantedMachine(limit=79.9), "speed_limited"),
    ],
)
def test_the_gate_refuses_unless_it_is_overridden(machine: PlantedMachine, code: str, tmp_path: Path) -> None:
    """Nothing is sent then; overridden, the result carries both remarks."""
    engine = VirtualEngine("a")
    done = benched(tmp_path / "b", engine, machine=machine)
    assert (engine.steps, done.exit_code) == ([], 3)
    assert done.document.engines[0].ended == "refused"
    forced = benched(tmp_path / "c", engine, machine=machine, force=True)
    assert forced.document.engines[0].ended == "measured"
    assert {code, "gate_overridden"} <= codes(forced.document.engines[0])


def test_what_the_gate_cannot_read_is_said_to_be_unread() -> None:
    """A gate that did not look must not look passed."""
    looked = gate(PlantedMachine([None], None))
    assert not looked.refuses
    assert looked.remarks == (Remark("gate_unread", {"what": "memory pressure and speed limit"}),)
    assert gate(PlantedMachine(limit=80.0)).remarks == ()


@pytest.mark.parametrize(
    ("pressures", "seconds", "code"),
    [
        (["normal"], 5, None),
        ([None], 5, None),
        (["warning", "warning", "warning", "normal"], 8, None),
        (["warning"], 35, "pressure_remains"),
    ],
)
def test_the_cool_down_waits_for_memory_and_then_five_seconds(
    pressures: list[str | None], seconds: int, code: str | None
) -> None:
    """Thirty seconds at most for normal pressure; five in any case."""
    clock = VirtualClock()
    remark = cool_down(PlantedMachine(pressures), clock)
    assert clock.at_ns == seconds * 10**9
    assert (None if remark is None else remark.code) == code


def test_throttling_during_a_run_is_a_warning_and_in_every_sample(tmp_path: Path) -> None:
    """From any limit below 100 % on."""
    done = benched(tmp_path / "b", VirtualEngine("a"), machine=PlantedMachine(limit=95.0))
    (only,) = done.document.engines
    assert "throttled" in codes(only)
    assert only.metadata.thermal_speed_limit == 95.0


def test_an_engine_elsewhere_is_not_judged_by_the_clients_machine_without_a_word(tmp_path: Path) -> None:
    """The gate and the warning of throttling read the client's, which has to be fit too; both say so, and only then."""
    machine = PlantedMachine(limit=95.0)
    far, near = VirtualEngine("a", url="http://10.1.2.3:8000"), VirtualEngine("b", url="http://127.0.0.1:1")
    there, here = benched(tmp_path / "b", far, near, machine=machine).document.engines
    assert {"gate_of_client", "client_throttled"} <= codes(there)
    assert "throttled" not in codes(there)
    assert "throttled" in codes(here)
    assert not {"gate_of_client", "client_throttled"} & codes(here)
    assert gate(PlantedMachine(["critical"]), elsewhere=True).refuses


def test_a_prompt_that_the_model_has_no_room_for_is_left_out(tmp_path: Path) -> None:
    """And the engine is compared over the others."""
    done = benched(tmp_path / "b", VirtualEngine("a", context=50), VirtualEngine("b"))
    first, _ = done.document.engines
    assert "prompt_too_long" in codes(first)
    assert [one.prompt for one in first.prompts] == ["code"]
    assert done.document.rankings[0].prompts == ("code",)


def counting_prompts(tokens: int) -> Change:
    """The engine counts so many tokens in every prompt."""

    def change(row: dict[str, Any], run: int) -> None:
        row["usage_input"] = tokens

    return change


@pytest.mark.parametrize(("tokens", "missed"), [(1_000, False), (1_160, False), (1_170, True), (895, True)])
def test_a_context_fill_of_another_size_than_planned_is_named(
    tokens: int, missed: bool, tmp_path: Path
) -> None:
    """By the engine's own count, whatever sized it; a chat template is no miss."""
    engine = VirtualEngine("a", change=counting_prompts(tokens))
    folder = tmp_path / "b"
    folder.mkdir()
    question = Question((context_fill(1_000),), runs=2)
    done = carry_out(question, [engine], PlantedMachine(), VirtualClock(), folder, Silent())
    (result,) = done.document.engines
    assert ("fill_missed" in codes(result)) == missed
    assert (result.prompts[0].sized_to, result.prompts[0].prompt_tokens) == (1_000, tokens)


def answering(text: str, finish_reason: str = "stop") -> Change:
    """Answers all prompts with this text."""

    def change(row: dict[str, Any], run: int) -> None:
        row.update(text=text, finish_reason=finish_reason)

    return change


STORY = " ".join(f"word{at}" for at in range(60))


def test_wrong_answers_are_found_beside_their_speed(tmp_path: Path) -> None:
    """Another text, one that stops early and one that repeats itself; engines of the first one's words have no remark."""
    texts = {"first": STORY, "same": STORY, "other": STORY.replace("word", "x"), "short": STORY[:60]}
    engines = [VirtualEngine(label, change=answering(text)) for label, text in texts.items()]
    looping = VirtualEngine("loop", change=answering(STORY + " again and" * 20, "length"))
    done = benched(tmp_path / "b", *engines, looping, answers={})
    found = {
        one.label: codes(one) & {"answers_differ", "early_stop", "loop"} for one in done.document.engines
    }
    assert found == {
        "first": set(), "same": set(), "other": {"answers_differ"}, "short": {"answers_differ", "early_stop"},
        "loop": {"loop"},
    }  # fmt: skip
    first, same, *_ = (one.answers[0] for one in done.document.engines)
    assert (first.against, first.exact, first.overlap) == (None, None, None)
    assert (same.against, same.exact, same.overlap, same.n) == ("first", 3, 1.0, 3)
    assert first.sha256 == same.sha256
    assert b"word1" not in (done.folder / FILE).read_bytes()


def test_answers_are_held_against_a_file_where_it_has_the_prompt(tmp_path: Path) -> None:
    """Also those of a single engine; other prompts are compared across engines."""
    done = benched(tmp_path / "b", VirtualEngine("a", change=answering("short")), answers={"code": STORY})
    code, long = done.document.engines[0].answers
    assert (code.against, code.exact, code.overlap, code.early_stops) == ("reference file", 0, 0.0, 3)
    assert (long.against, long.early_stops) == (None, 0)


def test_a_file_that_holds_no_answers_is_refused(tmp_path: Path) -> None:
    """Before anything is sent."""
    path = tmp_path / "answers.json"
    for text in ("{", "[]", '{"code": 1}'):
        path.write_text(text)
        with pytest.raises(PlanError, match="--check-output"):
            reference_answers(path)
