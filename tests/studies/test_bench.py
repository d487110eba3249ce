"""The benchmark's protocol in virtual time: planted truths, what an engine does wrong, and what is kept."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from procedures.driving import Silent
from studies.virtual_bench import (
    ENGINE,
    PROMPTS,
    PlantedMachine,
    VirtualClock,
    VirtualEngine,
    benched,
    codes,
    ends_late,
    held_back,
    kept_from_before,
    repeats_itself,
    says_something_first,
    slower_by,
    times_itself,
    uncounted,
)

from inferometer.documents.bench import SCHEMA, Bench, Client, EngineResult, Remark
from inferometer.documents.part import from_json, to_data
from inferometer.documents.schemas.__main__ import generated
from inferometer.errors import InstrumentError, PeerError
from inferometer.journal.schema import RECORD
from inferometer.journal.seal import read_table
from inferometer.report.bench import contents
from inferometer.server.engine.settings import Settings
from inferometer.studies.bench import FILE, Benched, Question, carry_out
from inferometer.studies.bench_engine import EngineFailed


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


def test_answers_kept_from_an_earlier_benchmark_are_told_by_one_to_a_new_text(tmp_path: Path) -> None:
    """Law: an engine whose answers all come from a store is never VALID with the store's speed; prompts are the same in every
    benchmark, so that its first run shows nothing."""
    done = benched(tmp_path / "b", VirtualEngine("honest"), VirtualEngine("kept", change=kept_from_before))
    kept = of(done, "kept")
    assert (kept.status, kept.reasons) == ("INCONCLUSIVE", ("answers_repeated",))
    assert "answers_repeated" in codes(kept)
    assert (of(done, "honest").status, codes(of(done, "honest"))) == ("VALID", set())


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
