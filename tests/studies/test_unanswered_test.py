"""A test whose runs answer nothing of what it asks."""

from __future__ import annotations

from pathlib import Path

from procedures.driving import Silent

from inferometer.plan.campaign import campaign
from inferometer.server.engine.settings import Settings
from inferometer.simulation.engine import Chosen
from inferometer.studies.campaign import carry_out
from inferometer.studies.stand import Virtual

FLAGS: dict[str, object] = {"--input-tokens": "20", "--output-tokens": "4", "--seed": "7"}


def test_a_test_without_a_headline_is_not_valid(tmp_path: Path) -> None:
    """However well its runs went: of filters that are never on, no overhead is measured."""
    parameters = ['guardrail.configurations=["baseline"]', "guardrail.percent=[50]"]
    wanted = campaign(["guardrail"], None, FLAGS, parameters, simulated=True, quick=True)
    stand = Virtual(
        Chosen("tiny-cpu", Settings(step_base_ns=20e6, max_batch=4, input_check_ns=5e6)), Silent()
    )
    (test,) = carry_out(wanted, stand, tmp_path, Silent(), "inferometer test").document.tests
    assert test.runs
    assert "no_headline" in [note.code for note in test.undecided]
    assert test.verdict.status == "INCONCLUSIVE"
