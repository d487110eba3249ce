"""`inferometer simulate --fit RUN`: from a run folder to settings, a simulated run beside it, and what both say."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from commands import finish, only, run
from msgspec.structs import replace

from inferometer.documents.fit import SCHEMA, FitDocument
from inferometer.documents.part import to_data, to_json
from inferometer.documents.schemas.__main__ import generated
from inferometer.drive.progress_counters import Progress
from inferometer.errors import PlanError
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import PULSE, RECORD, EventClass, Phase
from inferometer.journal.seal import read_table, write_table
from inferometer.measure.record import Record
from inferometer.plan.parse import build
from inferometer.plan.saved import file_hash
from inferometer.report.fit import RESERVATIONS, lines
from inferometer.run.evaluate import RunResult
from inferometer.run.facts import read_facts, write_facts
from inferometer.run.simulate import simulate
from inferometer.server.engine.settings import Settings, changed, words
from inferometer.server.presets import PRESETS
from inferometer.simulation.client import PERFECT
from inferometer.simulation.engine import choose
from inferometer.simulation.fit import COSTS
from inferometer.studies.fit import FILE, fit_run, streams_of

FLAGS: dict[str, object] = {"--rate": "15", "--requests": "250", "--warmup": "20", "--seed": "5"}
LENGTHS: dict[str, object] = {"--input-tokens": "uniform(10,1200)", "--output-tokens": "uniform(8,90)"}
SHIPPED = json.loads(generated("fit"))
TRUTH = ("step_base=3ms", "kv_read_per_token=200ns", "prefill_per_token=20us", "input_check=1ms")


class Nobody:
    """A Ui that tells nobody."""

    def note(self, text: str) -> None:
        """See Ui."""

    def watch(self, phase: Phase, progress: Progress, total: int | None) -> None:
        """See Ui."""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """A simulated run of a known engine stands in for a measured one."""
    return simulate(
        build(None, FLAGS | LENGTHS), choose(None, TRUTH), tmp_path_factory.mktemp("runs"), Nobody()
    )


@pytest.fixture(scope="module")
def document(measured: RunResult, tmp_path_factory: pytest.TempPathFactory) -> FitDocument:
    """Its fit."""
    return fit_run(measured.folder, None, (), tmp_path_factory.mktemp("sims"), Nobody()).document


def like(measured: RunResult, to: Path) -> RunFolder:
    """A copy of the run, to be spoilt."""
    shutil.copytree(measured.folder, to)
    return RunFolder.open(to)


def rewritten(folder: RunFolder, **columns: Any) -> None:
    """Its record with other columns."""
    table = read_table(folder.record, RECORD)
    for name, values in columns.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, RECORD.field(name), pa.array(values, RECORD.field(name).type))
    write_table(table.cast(RECORD), folder.record)


def test_the_known_engine_is_found_and_does_what_the_run_did(document: FitDocument) -> None:
    """Each cost within a tenth, and every compared figure within 5 % of the run's."""
    truth = changed(PRESETS["tiny-cpu"], TRUTH)
    found = changed(PRESETS[document.engine.preset], document.engine.set)
    for field in (*COSTS, "jitter"):
        assert getattr(found, field) == pytest.approx(getattr(truth, field), rel=0.1, abs=0.01)
    assert len(document.comparison) == 14
    assert max(abs(row.difference or 0.0) for row in document.comparison) < 0.05
    assert all(row.difference is not None for row in document.comparison)
    assert document.run.simulated
    assert [one.code for one in document.reservations] == ["simulated"]


def test_the_document_keeps_its_schema(document: FitDocument) -> None:
    """The schema ships with the package; a missing or an unknown member breaks it."""
    data = to_data(document)
    jsonschema.Draft202012Validator(SHIPPED).validate(data)
    assert document.schema == SCHEMA
    for wrong in (data | {"more": 1}, {key: data[key] for key in data if key != "held_out"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, SHIPPED)


def test_the_words_told_are_the_engine_simulated(measured: RunResult, tmp_path: Path) -> None:
    """fit.json lies in the simulated run's folder, whose run.json has what its words come to; the output tells them all."""
    fitted = fit_run(measured.folder, "a100-8b", ["max_batch=64"], tmp_path, Nobody())
    folder = fitted.finding.folder
    assert json.loads((folder / FILE).read_text()) == to_data(fitted.document)
    engine = json.loads((folder / "run.json").read_text())["engine"]
    asked = fitted.document.engine
    settings = changed(PRESETS["a100-8b"], asked.set)
    alone = {"preset": "a100-8b", "settings": asdict(settings), "client": asdict(PERFECT)}
    assert engine == alone | {"system": None, "system_settings": {}}
    assert (settings.max_batch, settings.prefix_caching) == (64, True)
    said = "\n".join(lines(fitted.document, "report.html"))
    assert all(f"--set {word}" in said for word in asked.set)


def test_the_command_prints_a_table_that_fits_and_writes_json(measured: RunResult, tmp_path: Path) -> None:
    """In a pipe: 80 columns, ASCII; with --json the document. Its exit code is the simulation's (P99 of 250: INCONCLUSIVE)."""
    code, stdout, stderr = run("simulate", "--fit", str(measured.folder), out=tmp_path / "a")
    assert (code, "fitting" in stderr) == (4, True)
    printed = [line for line in stdout.splitlines() if not line.startswith("Report of")]
    assert max(map(len, printed)) <= 80
    assert "\n".join(printed).isascii()
    code, stdout, stderr = run(
        "simulate", "--fit", str(measured.folder), "--json", "--quiet", out=tmp_path / "b"
    )
    assert (code, stderr) == (4, "")
    assert json.loads(stdout) == json.loads((only(tmp_path / "b") / FILE).read_text())


def test_a_run_on_the_embedded_server_can_be_fitted(tmp_path: Path) -> None:
    """The same model in real time, over sockets: every member is there, and its step is not shorter than the model's."""
    flags = [word for name, value in LENGTHS.items() for word in (name, str(value))]
    run("run", "--concurrency", "4", "--requests", "60", "--warmup", "4", *flags, out=tmp_path / "runs")
    code, stdout, stderr = run(
        "simulate", "--fit", str(only(tmp_path / "runs")), "--json", out=tmp_path / "sims"
    )
    if "the client could not follow" in stderr:
        pytest.skip("this machine is so busy that the run cannot be fitted, as the command says")
    assert stdout, stderr
    document = json.loads(stdout)
    assert code == 4
    jsonschema.validate(document, SHIPPED)
    assert not document["run"]["simulated"]
    found = changed(PRESETS["tiny-cpu"], document["engine"]["set"])
    assert found.step_base_ns + found.step_per_request_ns * 4 > 1_500_000
    # On a busy machine tokens are read together, and the run has no inter-token latency to compare.
    assert all(row["measured"] for row in document["comparison"] if row["metric"] != "itl_ms")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["plan.yaml"], "plan.yaml: cannot be combined with --fit"),
        (["--rate", "3", "--no-stream"], "--no-stream: cannot be combined with --fit"),
        (["--set", "speed=3"], "--set speed=3"),
        (["--preset", "none"], "--preset"),
    ],
)
def test_what_cannot_stand_beside_it_is_refused(
    more: list[str], told: str, measured: RunResult, tmp_path: Path
) -> None:
    """Exit 2, what it is, and no folder."""
    code, stdout, stderr = run("simulate", *more, "--fit", str(measured.folder), out=tmp_path)
    assert (code, stdout) == (2, "")
    assert told in stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    """Exit 2 in a sentence."""
    code, _, stderr = finish("simulate", "--fit", str(tmp_path))
    assert code == 2
    assert "not a run folder" in stderr


@pytest.mark.parametrize(
    ("flags", "settings", "told"),
    [
        ({"--no-stream": True}, (), "not streamed"),
        ({"--requests": "4", "--warmup": "0"}, (), "100 are needed: measure for longer"),
        ({"--output-tokens": "1"}, (), "no request got a second token"),
        ({}, ("draft_tokens=3", "acceptance=0.9"), "--set draft_tokens=3"),
    ],
)
def test_a_run_that_tells_too_little_is_refused(
    flags: dict[str, object], settings: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    """In words that say what would help, before anything is simulated."""
    asked = {"--concurrency": "2", "--requests": "40", "--output-tokens": "8", "--input-tokens": "20"} | flags
    finding = simulate(build(None, asked), choose(None, settings), tmp_path / "runs", Nobody())
    code, _, stderr = run("simulate", "--fit", str(finding.folder), out=tmp_path / "sims")
    assert code == 2
    assert told in " ".join(stderr.split())
    assert not (tmp_path / "sims").exists()


def test_drafts_can_be_fitted_once_they_are_told(tmp_path: Path) -> None:
    """The refused run above, with what the engine is known to do."""
    drafts = ("draft_tokens=2", "acceptance=0.6")
    truth = (*drafts, "step_per_request=200us")
    finding = simulate(build(None, FLAGS | LENGTHS), choose(None, truth), tmp_path / "runs", Nobody())
    document = fit_run(finding.folder, None, drafts, tmp_path / "sims", Nobody()).document
    found = changed(PRESETS["tiny-cpu"], document.engine.set)
    assert found.step_per_request_ns == pytest.approx(200_000, rel=0.05)


def test_a_server_that_does_not_batch_by_iteration_is_refused(measured: RunResult, tmp_path: Path) -> None:
    """Each stream with a rhythm of its own."""
    folder = like(measured, tmp_path / "run")
    table = read_table(folder.record, RECORD)
    times = [
        [start + (n + 1) * (9_000_000 + row * 370_001 % 7_000_000) for n in range(len(one))]
        for row, (start, one) in enumerate(
            zip(table.column("t_submit").to_pylist(), table.column("event_ns").to_pylist(), strict=True)
        )
    ]
    rewritten(folder, event_ns=times)
    code, _, stderr = run("simulate", "--fit", str(folder.path), out=tmp_path / "sims")
    assert code == 2
    assert "does not batch by iteration" in " ".join(stderr.split())


def test_what_lessens_a_fit_is_said(measured: RunResult, tmp_path: Path) -> None:
    """An interrupted, INVALID run with a tenth of failures, cached prompts, and a budget smaller than the engine's."""
    folder = like(measured, tmp_path / "run")
    write_facts(folder, replace(read_facts(folder), interrupted=True))
    verdict = replace(measured.summary.verdict, status="INVALID")
    (folder.path / "summary.json").write_text(to_json(replace(measured.summary, verdict=verdict)))
    table = read_table(folder.record, RECORD)
    outcomes = ["timeout" if row % 10 == 0 else "ok" for row in range(table.num_rows)]
    cached = pc.divide(table.column("usage_input"), 4).to_pylist()
    rewritten(folder, outcome=outcomes, usage_cached=cached)
    document = fit_run(folder.path, None, ["token_budget=200"], tmp_path / "sims", Nobody()).document
    codes = {one.code for one in document.reservations}
    assert codes == {"simulated", "incomplete", "invalid", "over_budget", "failed", "cached"}
    assert codes | {"irregular", "stalled"} == set(RESERVATIONS)
    said = "\n".join(lines(document, "x"))
    assert said.count("\n! ") == len(codes)


def test_tokens_without_text_are_tokens_where_the_server_counted_them(measured: RunResult) -> None:
    """An empty delta is one if the count needs it, and so is the event with the finish reason; padding is none."""
    folder = RunFolder(measured.folder)
    table = read_table(folder.record, RECORD).slice(0, 3)
    classes = [
        bytes((EventClass.CONTENT, EventClass.EMPTY, EventClass.FINISH)),
        bytes((EventClass.CONTENT, EventClass.EMPTY, EventClass.CONTENT)),
        bytes((EventClass.CONTENT, EventClass.CONTENT, EventClass.FINISH)),
    ]
    counts = [3, 2, 2]
    columns = {"event_class": classes, "event_ns": [[10, 20, 30]] * 3, "usage_output": counts}
    columns |= {name: [0] * 3 for name in ("first_text", "first_visible", "first_answer")}
    for name, values in columns.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, RECORD.field(name), pa.array(values, RECORD.field(name).type))
    streams = streams_of(Record.from_tables(table, PULSE.empty_table()))
    assert streams.token_ns.tolist() == [10, 20, 30, 10, 30, 10, 20]
    assert streams.offsets.tolist() == [0, 3, 5, 7]


def test_settings_in_words_are_read_back() -> None:
    """Any value, in the unit that fits, to five digits."""
    values = {"step_base_ns": 1.0, "prefill_per_token_ns": 12_345.678, "load_ns": 8.03e9, "max_batch": 7.0}
    found = changed(Settings(), words(values | {"jitter": 0.123456, "kv_read_per_token_ns": 0.0}))
    for field, value in (values | {"jitter": 0.123456, "kv_read_per_token_ns": 0.0}).items():
        assert getattr(found, field) == pytest.approx(value, rel=1e-4)


def test_a_run_of_several_classes_is_fitted_and_simulated_class_by_class(tmp_path: Path) -> None:
    """Its record is read with its classes, and the simulation beside it has as many requests of each."""
    path = tmp_path / "plan.yaml"
    both = "input_tokens: 'uniform(10,1200)', output_tokens: 'uniform(8,90)'"
    path.write_text(f"workload: {{classes: [{{name: a, {both}}}, {{name: b, {both}}}]}}\n")
    mixed = simulate(build(path, FLAGS), choose(None, TRUTH), tmp_path / "runs", Nobody())
    fitted = fit_run(mixed.folder, None, (), tmp_path / "sims", Nobody())
    seen = [{one.name: one.requests.sent for one in run.summary.by_class} for run in (mixed, fitted.finding)]
    assert seen[0] == seen[1]
    assert set(seen[0]) == {"a", "b"}
    assert sum(seen[0].values()) == 250


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"workload": {"kind": "prompts", "prompts": "PRIVATE", "output_tokens": "8"}}, "workload.prompts"),
        ({"tokenizer": {"name": "PRIVATE", "method": "native"}}, "tokenizer.name"),
        ({"tokenizer": {"name": "some-org/some-model", "method": "native"}}, "tokenizer.name"),
    ],
)
def test_what_the_run_s_plan_names_is_listed_and_not_read(
    measured: RunResult, tmp_path: Path, part: dict[str, Any], said: str
) -> None:
    """Law: the folder may be a stranger's. Without --trust nothing beyond it is read or fetched, and no run is made."""
    private = tmp_path / "private.txt"
    private.write_text("prompt\nfirst line\nsecond line\n")
    folder = like(measured, tmp_path / "gift")
    plan = json.loads(folder.plan.read_text()) | json.loads(json.dumps(part).replace("PRIVATE", str(private)))
    folder.plan.write_text(json.dumps(plan))
    write_facts(folder, replace(read_facts(folder), plan_hash=file_hash(folder.plan)))
    out = tmp_path / "out"
    code, _, stderr = finish("simulate", "--fit", str(folder.path), "--out", str(out), "--quiet")
    assert code == 2, stderr
    assert f"{said}: " in stderr
    assert "--trust" in stderr
    assert not out.exists()
    with pytest.raises(PlanError):
        fit_run(folder.path, None, (), out, Nobody())


def test_with_trust_the_run_s_own_prompts_are_read(measured: RunResult, tmp_path: Path) -> None:
    """Law: what is listed is done once the user has agreed; without a run there is nothing to agree to."""
    folder = like(measured, tmp_path / "own")
    plan = json.loads(folder.plan.read_text())
    (tmp_path / "prompts.csv").write_text("prompt\nfirst line\nsecond line\n")
    plan["workload"] = {"kind": "prompts", "prompts": str(tmp_path / "prompts.csv"), "output_tokens": "8"}
    folder.plan.write_text(json.dumps(plan))
    write_facts(folder, replace(read_facts(folder), plan_hash=file_hash(folder.plan)))
    code, _, stderr = finish("simulate", "--fit", str(folder.path), "--out", str(tmp_path / "out"), "--trust")
    assert code in (0, 3, 4), stderr
    assert "workload.prompts: " in stderr
    assert b"second line" in (only(tmp_path / "out") / "requests.arrow").read_bytes()
    assert finish("simulate", "--trust", "--out", str(tmp_path / "none"))[0] == 2
