"""One engine's turn in a benchmark, as far as both kinds of benchmark take it alike: gate, failures, last questions, unload.

| what is raised while it is measured              | what becomes of it                                             |
| ------------------------------------------------ | -------------------------------------------------------------- |
| EngineFailed, PeerError, PlanError               | a remark: the engine's fault ends its own turn                 |
| RecordError, InstrumentError                     | a remark, and `failure`: it ends the benchmark                 |
| the same, from Ctrl-C while the record was read  | a remark, and `interrupted`                                    |
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from inferometer.addresses import is_loopback
from inferometer.documents.bench import Remark
from inferometer.engines.adapters.adapter import EngineFacts
from inferometer.errors import InstrumentError, PeerError, PlanError, RecordError
from inferometer.run.evaluate import RunResult
from inferometer.run.ui import Ui
from inferometer.studies.bench_engine import Engine, EngineFailed, EngineProcesses, OneToken, Prepared, told
from inferometer.studies.bench_gate import Machine, gate
from inferometer.studies.bench_results import Limits, Turn
from inferometer.workload.bench_prompts import BenchPrompt


@dataclass(slots=True, kw_only=True)
class BenchTurn:
    """A turn under way. `force`: measure even where the gate refuses; `folder`: of the benchmark."""

    engine: Engine
    machine: Machine
    folder: Path
    ui: Ui
    force: bool
    remarks: list[Remark] = field(default_factory=list)
    interrupted: bool = False
    refused: bool = False
    failure: RecordError | InstrumentError | None = None
    prepared: Prepared | None = None
    prompts: tuple[BenchPrompt, ...] = ()
    result: RunResult | None = None
    facts: EngineFacts | None = None
    process: EngineProcesses | None = None
    one_token: OneToken | None = None

    def may_begin(self, *against: Remark) -> bool:
        """Pass the gate (asiai's methodology, Protocol 1). `against`: what else speaks against measuring now."""
        url = self.engine.url
        looked = gate(self.machine, elsewhere=url is not None and not is_loopback(url))
        self.remarks += (*looked.remarks, *against)
        if not looked.refuses and not against:
            return True
        if self.force:
            self.remarks.append(Remark("gate_overridden"))
            return True
        self.refused = True
        return False

    @contextlib.contextmanager
    def failing(self) -> Iterator[None]:
        """What fails inside is a remark on this engine (see the table above)."""
        try:
            yield
        except EngineFailed as why:
            self.failed(why.remark)
        except PeerError as why:
            self.failed(Remark("engine_failed", {"why": told(why)}))
        except PlanError as why:
            self.failed(Remark("plan_refused", {"why": str(why)[:500]}))
        except (RecordError, InstrumentError) as why:
            if isinstance(why.__cause__, KeyboardInterrupt):  # pressed while the record was read
                self.interrupted = True
            else:
                self.failure = why
            self.failed(Remark("instrument_failed", {"why": str(why)[:500]}))

    def failed(self, remark: Remark) -> None:
        """Say why the engine is not measured."""
        self.remarks.append(remark)
        self.ui.note(f"{self.engine.label} is not measured: {remark.facts.get('why') or remark.code}")

    def measure(self, prepared: Prepared, runs: int, ui: Ui) -> None:
        """Its run."""
        self.result = self.engine.measure(prepared, self.prompts, runs, self.folder / "runs", ui)
        self.interrupted = self.result.summary.run.interrupted

    def finish(self) -> None:
        """Read the engine's facts, then unload its model (Protocol 5): also if interrupted, for it would stay in memory."""
        if self.prepared is None:
            return
        model = self.prepared.model
        self.facts, self.process = self.engine.facts(model), self.engine.process()
        self.ui.note(f"unloading {model}")
        if (remark := self.engine.unload(model)) is not None:
            self.remarks.append(remark)

    def turn(self, runs: int, limits: Limits = (), *, fast_is_odd: bool = False) -> Turn:
        """What it came to so far."""
        return Turn(
            label=self.engine.label,
            name=self.engine.name,
            url=self.engine.url,
            model=self.engine.model if self.prepared is None else self.prepared.model,
            prompts=self.prompts,
            runs=runs,
            folder=None if self.result is None else self.result.folder,
            summary=None if self.result is None else self.result.summary,
            facts=self.facts,
            process=self.process,
            limits=tuple(limits),
            remarks=tuple(self.remarks),
            fast_is_odd=fast_is_odd,
            one_token=self.one_token,
            interrupted=self.interrupted,
            refused=self.refused,
            meters=() if self.prepared is None else self.prepared.meters,
        )
