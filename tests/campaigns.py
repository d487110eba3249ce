"""Campaigns to report on: one simulated, quick and small, carried out once in a process, and what may become of it."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace
from procedures.driving import Silent

from inferometer.documents.campaign import (
    Campaign,
    MinimumReport,
    ProcedureDocument,
    ProcedureReason,
    ProcedureVerdict,
)
from inferometer.documents.statement import ComplianceLabel, ComplianceStatement
from inferometer.plan.campaign import campaign
from inferometer.report.campaign import deviations
from inferometer.report.campaign.document import NOT_MEASURED
from inferometer.server.engine.settings import Settings
from inferometer.simulation.engine import Chosen
from inferometer.studies.campaign import carry_out
from inferometer.studies.stand import Virtual

ENGINE = Settings(step_base_ns=5e6, max_batch=16)
NAMES = ("ttft", "capacity", "long-context")
SMALL = [
    "ttft.requests=40",
    "ttft.rates=[5, 10]",
    "capacity.maximum=8",
    "capacity.duration_s=2",
    "long-context.lengths=[64, 128]",
    "long-context.requests=3",
]


@functools.cache
def simulated() -> Campaign:
    """Quick tests in virtual time: two levels of load, a search, and lengths one after the other."""
    whole = campaign(NAMES, None, None, SMALL, simulated=True, quick=True)
    with tempfile.TemporaryDirectory() as folder:
        stand = Virtual(Chosen("tiny-cpu", ENGINE), Silent())
        return carry_out(whole, stand, Path(folder), Silent(), "inferometer test all --rate 13.37").document


def measured() -> Campaign:
    """The same as if a server had been measured at the draft's sizes: one test INVALID and partial, one INCONCLUSIVE, one
    without a statement."""
    one = simulated()
    tests = {test.test: replace(test, simulated=False, quick=False) for test in one.tests}
    reason = ProcedureReason(
        "error_rate", "INVALID", tests["capacity"].runs[0].run, "Failed requests: 18.2 % failed."
    )
    failed = ProcedureVerdict("INVALID", (reason,))
    tests["capacity"] = replace(
        tests["capacity"],
        ended_by="server",
        problem="The server refused connections at 150 % of capacity.",
        verdict=failed,
        compliance=labelled(tests["capacity"], "not compliant"),
    )
    tests["ttft"] = replace(
        tests["ttft"],
        verdict=ProcedureVerdict("VALID", ()),
        compliance=labelled(tests["ttft"], "conditionally compliant"),
    )
    tests["long-context"] = replace(
        tests["long-context"],
        verdict=ProcedureVerdict(
            "INCONCLUSIVE", (ProcedureReason("x", "INCONCLUSIVE", None, "Not settled."),)
        ),
        compliance=None,
    )
    return noted(replace(one, simulated=False, quick=False, tests=tuple(tests.values()), verdict=failed))


def noted(campaign: Campaign) -> Campaign:
    """With the notes that a campaign like it is composed with."""
    return replace(campaign, minimum=replace(campaign.minimum, notes=deviations.notes(campaign)))


def labelled(test: ProcedureDocument, label: ComplianceLabel) -> ComplianceStatement:
    """The test's statement with another label."""
    assert test.compliance is not None
    return replace(test.compliance, label=label)


def valid() -> Campaign:
    """One test, alone, all in order."""
    one = measured()
    tests = tuple(test for test in one.tests if test.test == "ttft")
    return noted(replace(one, tests=tests, verdict=ProcedureVerdict("VALID", ())))


def empty() -> Campaign:
    """It ended before anything was measured."""
    one = simulated()
    test = next(test for test in one.tests if test.test == "ttft")
    nothing = replace(
        test,
        ended_by="interrupted",
        problem="Interrupted before the first level.",
        parameters={},
        plan={},
        verdict=ProcedureVerdict("INCONCLUSIVE", ()),
        compliance=None,
        runs=(),
        values=(),
        tables=(),
        figures=(),
        notes=(),
        undecided=(),
    )
    return replace(
        one,
        sut=None,
        environment=None,
        tokenizer=None,
        disclosed=(),
        verdict=ProcedureVerdict("INCONCLUSIVE", ()),
        minimum=NOT_MEASURED,
        tests=(nothing,),
        compliance=None,
    )


SAMPLES: dict[str, Callable[[], Campaign]] = {
    "measured": measured,
    "valid": valid,
    "simulated": simulated,
    "empty": empty,
}


def filled(minimum: MinimumReport) -> MinimumReport:
    """With every line of draft C.1."""
    return replace(
        minimum,
        model="meta-llama/Llama-3.1-8B-Instruct (main@5f0b02c)",
        hardware="NVIDIA H100 SXM x 8",
        software="vLLM 0.10.1",
        boundary="engine",
        max_throughput_tok_s=2847.4,
        throughput_at_p99_ttft_500ms_tok_s=None,
        notes=("HTTP with SSE in place of gRPC.", "Guardrails: input filter off, output filter off"),
        few=(),
    )
