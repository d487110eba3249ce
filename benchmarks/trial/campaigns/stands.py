"""Systems in virtual time that are not as they say: other settings from run to run, switches that do nothing, false usage,
slowness within a run, answers longer than asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.played import Silent
from inferometer.errors import PeerError
from inferometer.journal.folder import RunFolder
from inferometer.plan.schema import Plan
from inferometer.plan.workload import LengthsWorkload, StandardWorkload
from inferometer.procedures.step import Switched
from inferometer.run.evaluate import RunResult, evaluate
from inferometer.run.simulate import simulate
from inferometer.server.engine.settings import Settings
from inferometer.simulation.engine import Chosen
from inferometer.studies.stand import Virtual

PRESET = "tiny-cpu"
"""Of the name alone: all engines here have their own settings."""
Alter = Callable[[str, int, Settings], Settings]
"""From a run's name (test and part), its number from 0 and the engine's settings to those it has in this run."""
Rewrite = Callable[[pa.Table], pa.Table]
"""From a run's record to what the server makes of it."""


def plain(engine: Settings) -> Virtual:
    """A system that is as it says."""
    return Virtual(Chosen(PRESET, engine), Silent())


class Changing(Virtual):
    """An engine whose settings change from run to run."""

    def __init__(self, engine: Settings, alter: Alter) -> None:
        super().__init__(Chosen(PRESET, engine), Silent())
        self._alter, self._number = alter, 0

    def measure(self, plan: Plan, out: Path) -> RunResult:
        """See Stand."""
        usual = self._engine
        self._engine = Chosen(PRESET, self._alter(plan.name, self._number, usual.settings))
        self._number += 1
        try:
            return super().measure(plan, out)
        finally:
            self._engine = usual


class Recalling(Virtual):
    """An engine that knows a prompt it had before, whatever that begins with, and is ten times as fast then: so are runs of a
    seed that was there before."""

    def __init__(self, engine: Settings) -> None:
        super().__init__(Chosen(PRESET, engine), Silent())
        self._known: set[int] = set()

    def measure(self, plan: Plan, out: Path) -> RunResult:
        """See Stand."""
        usual, seed = self._engine, plan.workload.seed
        if seed in self._known:
            engine = usual.settings
            times = {name: getattr(engine, name) / 10 for name in ("step_base_ns", "prefill_per_token_ns")}
            self._engine = Chosen(PRESET, replace(engine, **times))
        self._known.add(seed)
        try:
            return super().measure(plan, out)
        finally:
            self._engine = usual


class Inventing(Changing):
    """An engine without a cache that is slower while it is off, and reports what requests share as cached while it is on."""

    def __init__(self, engine: Settings, factor: float) -> None:
        times = {name: getattr(engine, name) * factor for name in ("step_base_ns", "prefill_per_token_ns")}
        slow = replace(engine, prefix_caching=False, **times)
        fast = replace(engine, prefix_caching=False)
        super().__init__(engine, lambda name, number, settings: fast if settings.prefix_caching else slow)

    def measure(self, plan: Plan, out: Path) -> RunResult:
        """See Stand."""
        finding = super().measure(plan, out)
        if plan.sut.prefix_caching != "enabled":
            return finding
        folder = RunFolder.open(finding.folder)
        shared = pq.read_table(folder.record).column("input_tokens_shared").to_pylist()
        rewritten(folder, column("usage_cached", lambda _: shared))
        return evaluate(folder)


class Stuck(Virtual):
    """An engine that stays in one state, whatever a command that reports success is to switch."""

    def __init__(self, engine: Settings, what: str, state: str) -> None:
        self._what, self._state = what, state
        super().__init__(Chosen(PRESET, engine), Silent())

    def switch(self, what: str, state: str) -> Switched:
        """See Stand."""
        if what != self._what:
            return super().switch(what, state)
        super().switch(what, self._state)
        return Switched("declared", "a command that does nothing")


class Rewriting(Virtual):
    """A server that reports something else than it did: the record of each run is rewritten and evaluated again."""

    def __init__(self, engine: Settings, rewrite: Rewrite) -> None:
        super().__init__(Chosen(PRESET, engine), Silent())
        self._rewrite = rewrite

    def measure(self, plan: Plan, out: Path) -> RunResult:
        """See Stand."""
        folder = RunFolder.open(super().measure(plan, out).folder)
        rewritten(folder, self._rewrite)
        return evaluate(folder)


def rewritten(folder: RunFolder, rewrite: Rewrite) -> None:
    """Put another record in the place of a run's."""
    pq.write_table(rewrite(pq.read_table(folder.record)), folder.record)


def column(name: str, change: Callable[[list[int | None]], list[int | None]]) -> Rewrite:
    """Another column of whole numbers in the place of one."""

    def rewrite(table: pa.Table) -> pa.Table:
        at = table.schema.get_field_index(name)
        values = pa.array(change(table.column(name).to_pylist()), table.schema.field(name).type)
        return table.set_column(at, table.schema.field(name), values)

    return rewrite


def cached(share: float) -> Rewrite:
    """The server says that it took this share of every prompt from a cache."""

    def rewrite(table: pa.Table) -> pa.Table:
        prompts = table.column("usage_input").to_pylist()
        hits = column(
            "usage_cached", lambda _: [None if one is None else int(share * one) for one in prompts]
        )
        return hits(table)

    return rewrite


def slowing(factor: float) -> Rewrite:
    """The later half of the measured requests, as they were due, take so many times as long."""

    def rewrite(table: pa.Table) -> pa.Table:
        due, phase = (table.column(name).to_numpy() for name in ("t_intended", "phase"))
        measured = np.flatnonzero(phase == phase.max())
        late = {*measured[np.argsort(due[measured], kind="stable")][len(measured) // 2 :].tolist()}
        sent = table.column("t_submit").to_pylist()

        def later(row: int, at: int | None) -> int | None:
            return at if at is None or row not in late else int(sent[row] + factor * (at - sent[row]))

        for name in ("t_first_byte", "t_end"):
            table = column(name, lambda values: [later(*one) for one in enumerate(values)])(table)
        events = [
            [later(row, at) for at in one] for row, one in enumerate(table.column("event_ns").to_pylist())
        ]
        place = table.schema.get_field_index("event_ns")
        field = table.schema.field("event_ns")
        return table.set_column(place, field, pa.array(events, field.type))

    return rewrite


def refusing(over: int) -> Rewrite:
    """A policy refuses prompts of more tokens than that."""

    def rewrite(table: pa.Table) -> pa.Table:
        long = [length > over for length in table.column("input_tokens_asked").to_pylist()]
        for name, value in (("outcome", "refused"), ("status", 400), ("finish_reason", None)):
            place, field = table.schema.get_field_index(name), table.schema.field(name)
            kept = zip(long, table.column(name).to_pylist(), strict=True)
            values = [value if refused else one for refused, one in kept]
            table = table.set_column(place, field, pa.array(values, field.type))
        return table

    return rewrite


def naming(*models: str) -> Rewrite:
    """Answers say in turn that they are of these models."""

    def rewrite(table: pa.Table) -> pa.Table:
        place, field = table.schema.get_field_index("answered_as"), table.schema.field("answered_as")
        values = [models[row % len(models)] for row in range(len(table))]
        return table.set_column(place, field, pa.array(values, field.type))

    return rewrite


class Filtering(Rewriting):
    """The same, of the runs alone in which an input filter is on."""

    def measure(self, plan: Plan, out: Path) -> RunResult:
        """See Stand."""
        return (
            super().measure(plan, out)
            if plan.sut.guardrails.input_filter
            else Virtual.measure(self, plan, out)
        )


class SilentAndStuck(Stuck):
    """The same, of a server that does not report cached tokens."""

    def measure(self, plan: Plan, out: Path) -> RunResult:
        """See Stand."""
        folder = RunFolder.open(super().measure(plan, out).folder)
        rewritten(folder, column("usage_cached", lambda values: [None] * len(values)))
        return evaluate(folder)


class Overrunning(Virtual):
    """An engine that makes so many times as many tokens as it is asked for. Lengths have to be fixed."""

    def __init__(self, engine: Settings, times: float) -> None:
        super().__init__(Chosen(PRESET, engine), Silent())
        self._times = times

    def measure(self, plan: Plan, out: Path) -> RunResult:
        """See Stand."""
        workload = plan.workload
        assert isinstance(workload, LengthsWorkload | StandardWorkload), "of fixed lengths"
        lengths = round(workload.input_tokens.mean()), round(self._times * workload.output_tokens.mean())
        return simulate(plan, self._engine, out, Silent(), Every(lengths))


class Every(Mapping[int, tuple[int, int]]):
    """The same lengths of prompt and answer for every row of a schedule."""

    def __init__(self, lengths: tuple[int, int]) -> None:
        self._lengths = lengths

    def __getitem__(self, row: int) -> tuple[int, int]:
        return self._lengths

    def __iter__(self) -> Iterator[int]:
        return iter(())

    def __len__(self) -> int:
        return 0


class Vanishing(Virtual):
    """A system that is gone from the first run of a test on."""

    def __init__(self, engine: Settings, test: str) -> None:
        super().__init__(Chosen(PRESET, engine), Silent())
        self._test = test

    def measure(self, plan: Plan, out: Path) -> RunResult:
        """See Stand."""
        if plan.name.startswith(f"{self._test}-"):
            raise PeerError("http://127.0.0.1:8000: connection refused")
        return super().measure(plan, out)
