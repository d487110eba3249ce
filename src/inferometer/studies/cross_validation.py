"""One engine measured in several ways, side by side: its own timings and counters, streamed answers, and whole ones.

    recognise -> prepare (model, one generation) -> whole replies -> streamed ones, with scrapes around them -> tables

Both are runs like any other; all figures are from their sealed records. Whole replies go first: the first fills the prefix
cache with the prompt and is left out, so that every request that counts meets the same cache.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from inferometer import __version__
from inferometer.client.http_client import Unanswered
from inferometer.documents.bench import Remark
from inferometer.documents.cross_validation import (
    METHODS,
    SCHEMA,
    CrossValidation,
    Difference,
    Method,
    Overhead,
    Row,
    Table,
)
from inferometer.documents.part import to_json
from inferometer.documents.verdict import RunStatus
from inferometer.engines.adapters import registry
from inferometer.engines.adapters.adapter import Adapter, Counters, Reply
from inferometer.errors import PeerError, PlanError
from inferometer.journal.folder import RunFolder, write_atomically
from inferometer.journal.schema import RECORD, Outcome, Phase
from inferometer.journal.seal import read_table
from inferometer.measure.bench_metrics import client_durations, tok_per_sec
from inferometer.measure.engine_counters import Growth, growth
from inferometer.report.run.composition import moment
from inferometer.run.evaluate import RunResult
from inferometer.run.ui import Ui
from inferometer.studies.bench_engine import EngineFailed, LiveEngine, Prepared
from inferometer.studies.engine_client import EngineClient
from inferometer.telemetry.metrics.record import read
from inferometer.telemetry.metrics.series import collect
from inferometer.units import NS_PER_MS
from inferometer.workload.bench_prompts import BenchPrompt

FILE = "cross-validation.json"
RECOGNISE_S = 5.0
Figure = Literal["tok_per_sec", "ttft_ms", "total_ms"]
FIGURES: tuple[Figure, ...] = ("tok_per_sec", "ttft_ms", "total_ms")
_COLUMNS = (
    "phase", "outcome", "t_submit", "t_end", "event_ns", "first_text", "usage_output",
    "server_total_ns", "server_prefill_ns", "server_decode_ns",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure by one method: its mean over `n` requests, and their standard deviation."""

    n: int
    mean: float
    sd: float | None = None


Found = Mapping[tuple[Figure, Method], Measured]


@dataclass(frozen=True, slots=True)
class CrossValidated:
    """A cross-validation, as far as it went: its folder and its document."""

    folder: Path
    document: CrossValidation

    @property
    def exit_code(self) -> int:
        """130 interrupted, 5 the engine failed, 4 nothing of the engine's own to compare with, else 0."""
        if self.document.interrupted:
            return 130
        found = {row.method for table in self.document.tables for row in table.rows}
        if not {"streamed", "whole"} <= found:
            return 5
        return 0 if found & {"timings", "counters"} else 4


def recognise(
    url: str, headers: Mapping[str, str] | None = None
) -> tuple[Adapter | None, str | None, list[Remark]]:
    """The adapter of the engine there and the engine's version; None, with a remark, if it is none or several."""
    replies: dict[str, Reply] = {}
    with EngineClient(url, headers, timeout_s=RECOGNISE_S) as client:
        for ask in registry.asks():
            try:
                replies[ask.path] = client.call(ask)
            except Unanswered as why:
                if why.reason in ("refused", "unreachable", "unresolved"):
                    break
    found = registry.recognised(replies)
    if len(found) == 1:
        return found[0], found[0].read(replies).version, []
    names = ", ".join(one.title for one in found) or None
    return None, None, [Remark("engine_unknown", {"found": names})]


def cross_validate(
    engine: LiveEngine,
    prompt: BenchPrompt,
    requests: int,
    out: Path,
    ui: Ui,
    *,
    remarks: Sequence[Remark] = (),
    version: str | None = None,
) -> CrossValidated:
    """Measure `engine`, whose adapter is set if it is known, and write the document. Raises RecordError and InstrumentError."""
    folder = RunFolder.create(out, "cross-validation", time.time_ns()).path
    (folder / "journal").rmdir()
    started = time.time_ns()
    under_way = _UnderWay(engine, prompt, requests, folder, ui, list(remarks))
    try:
        under_way.measure()
    except KeyboardInterrupt:
        under_way.interrupted = True
    found = under_way.found()
    found_tables = tuple(table(figure, found) for figure in FIGURES)
    document = CrossValidation(
        schema=SCHEMA,
        id=folder.name,
        version=__version__,
        url=engine.url,
        engine=None if engine.adapter is None else engine.adapter.key,
        engine_version=version,
        model=None if under_way.prepared is None else under_way.prepared.model,
        prompt=prompt.name,
        requests=requests,
        started=moment(started),
        ended=moment(time.time_ns()),
        interrupted=under_way.interrupted,
        status=under_way.status,
        runs=tuple(f"runs/{one.folder.name}" for one in under_way.results),
        tables=found_tables,
        overhead=overhead(found),
        remarks=tuple(under_way.remarks),
    )
    write_atomically(folder / FILE, to_json(document).encode())
    return CrossValidated(folder, document)


@dataclass(slots=True)
class _UnderWay:
    engine: LiveEngine
    prompt: BenchPrompt
    requests: int
    folder: Path
    ui: Ui
    remarks: list[Remark]
    interrupted: bool = False
    prepared: Prepared | None = None
    streamed: RunResult | None = None
    whole: RunResult | None = None
    _rows: dict[Path, list[dict[str, Any]]] = field(default_factory=dict)

    @property
    def results(self) -> list[RunResult]:
        """The runs there are: streamed, whole."""
        return [one for one in (self.streamed, self.whole) if one is not None]

    @property
    def status(self) -> RunStatus | None:
        """The verdict of the streamed run."""
        return None if self.streamed is None else self.streamed.summary.verdict.status

    def measure(self) -> None:
        """Both runs. What the engine does wrong is a remark."""
        try:
            self.prepared = self.engine.prepare()
            self.remarks += self.prepared.remarks
            wholly = {**self.engine.options, "--no-stream": True}
            self.whole = self._run(replace(self.engine, label="whole", options=wholly), self.requests + 1)
            if not self.interrupted:
                self.streamed = self._run(replace(self.engine, label="streamed"), self.requests)
        except EngineFailed as why:
            self.remarks.append(why.remark)
        except PeerError as why:
            self.remarks.append(Remark("engine_failed", {"why": str(why)[:500]}))
        except PlanError as why:
            self.remarks.append(Remark("plan_refused", {"why": str(why)[:500]}))

    def _run(self, engine: LiveEngine, requests: int) -> RunResult:
        assert self.prepared is not None
        self.ui.note(f"{requests} {engine.label} answers")
        result = engine.measure(self.prepared, (self.prompt,), requests, self.folder / "runs", self.ui)
        self.interrupted = result.summary.run.interrupted
        rows = _measured(result.folder)
        if failed := sum(row["outcome"] != Outcome.OK for row in rows) + requests - len(rows):
            outcomes = sorted({row["outcome"] for row in rows if row["outcome"] != Outcome.OK})
            facts = {
                "failed": failed,
                "sent": len(rows),
                "planned": requests,
                "outcomes": ", ".join(outcomes) or None,
            }
            self.remarks.append(Remark("generations_failed", facts))  # fmt: skip
        self._rows[result.folder] = rows
        return result

    def found(self) -> Found:
        """What the runs show, with remarks on what they do not."""
        found: dict[tuple[Figure, Method], Measured] = {}
        if self.streamed is not None:
            rows = self._rows[self.streamed.folder]
            found.update(by_client(rows))
            own = by_timings(rows)
            if not own and self.engine.adapter is not None and self.engine.adapter.server_timings:
                self.remarks.append(Remark("timings_absent"))
            found.update(own)
            counters = None if self.engine.adapter is None else self.engine.adapter.counters
            path = RunFolder.open(self.streamed.folder).scrapes
            counted, remarks = by_counters(counters, path, rows)
            found.update(counted)
            self.remarks += remarks
        if self.whole is not None:
            whole = self._rows[self.whole.folder][1:]
            lengths = {
                row["usage_output"]
                for row in (*whole, *(self._rows[self.streamed.folder] if self.streamed else ()))
            }
            if len(lengths) > 1:
                self.remarks.append(Remark("lengths_differ"))
            found.update(of_whole(whole))
        if any(
            row["outcome"] == Outcome.OK and row["usage_output"] is None
            for rows in self._rows.values()
            for row in rows
        ):
            self.remarks.append(Remark("tokens_not_reported"))  # fmt: skip
        return found


def _measured(folder: Path) -> list[dict[str, Any]]:
    """The measured requests of a run, in order of sending."""
    rows = read_table(RunFolder.open(folder).record, RECORD).select(_COLUMNS).to_pylist()
    return [row for row in rows if row["phase"] == Phase.MEASURE]


def _over(values: Sequence[float]) -> Measured | None:
    if not values:
        return None
    sd = statistics.stdev(values) if len(values) > 1 else None
    return Measured(len(values), math.fsum(values) / len(values), sd)


def _speed(pairs: Sequence[tuple[int, float]]) -> Measured | None:
    """Of tokens and ms of each answer: all tokens over all time, as counters have it, so that short answers weigh little."""
    good = [(tokens, ms) for tokens, ms in pairs if tok_per_sec(tokens, ms)]
    over = _over([tok_per_sec(*one) for one in good])
    if over is None:
        return None
    return replace(over, mean=sum(tokens for tokens, _ in good) / math.fsum(ms for _, ms in good) * 1_000)


def _table_of(
    method: Method, speed: Measured | None, **values: Sequence[float]
) -> dict[tuple[Figure, Method], Measured]:
    known: dict[Figure, Measured | None] = {"tok_per_sec": speed}
    known.update((figure, _over(values[figure])) for figure in FIGURES if figure in values)
    return {(figure, method): one for figure, one in known.items() if one is not None}


def by_client(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[Figure, Method], Measured]:
    """Streamed answers by the client's clock. Tokens are the engine's count; without one there is no speed."""
    timed = []
    for row in rows:
        first = row["first_text"]
        if row["outcome"] == Outcome.OK and row["t_submit"] is not None and 0 <= first < len(row["event_ns"]):
            begin = row["t_submit"]
            spans = (row["event_ns"][first] - begin) / NS_PER_MS, (row["t_end"] - begin) / NS_PER_MS
            timed.append((client_durations(*spans), row["usage_output"]))
    return _table_of(
        "streamed",
        _speed([(tokens, one.generation_ms) for one, tokens in timed if tokens]),
        ttft_ms=[one.ttft_ms for one, _ in timed],
        total_ms=[one.total_ms for one, _ in timed],
    )


def of_whole(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[Figure, Method], Measured]:
    """Whole answers by the client's clock: their speed is over their whole time, since no first token shows."""
    ended = [row for row in rows if row["outcome"] == Outcome.OK and row["t_submit"] is not None]
    totals = [((row["t_end"] - row["t_submit"]) / NS_PER_MS, row["usage_output"]) for row in ended]
    speed = _speed([(tokens, total) for total, tokens in totals if tokens])
    return _table_of("whole", speed, total_ms=[total for total, _ in totals])


def by_timings(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[Figure, Method], Measured]:
    """The engine's own durations, of the answers that have them."""
    ended = [row for row in rows if row["outcome"] == Outcome.OK]
    speeds = [
        (row["usage_output"], row["server_decode_ns"] / NS_PER_MS)
        for row in ended
        if row["usage_output"] and row["server_decode_ns"] is not None
    ]
    waits = [row["server_prefill_ns"] / NS_PER_MS for row in ended if row["server_prefill_ns"] is not None]
    totals = [row["server_total_ns"] / NS_PER_MS for row in ended if row["server_total_ns"] is not None]
    return _table_of("timings", _speed(speeds), ttft_ms=waits, total_ms=totals)


def by_counters(
    counters: Counters | None, scrapes: Path, rows: Sequence[Mapping[str, Any]]
) -> tuple[dict[tuple[Figure, Method], Measured], list[Remark]]:
    """What the engine counted over these requests, and remarks on counters that are not there or cannot be right.

    Left out are counters that went back, and all of them if they counted other requests or other tokens than were answered:
    then they are of something else than these requests.
    """
    if counters is None:
        return {}, [Remark("counters_unknown")]
    names = {
        "output_tokens": counters.output_tokens,
        "decode_s": counters.decode_s,
        "ttft_s": counters.ttft_s,
    }
    wanted = {key: name for key, name in names.items() if name is not None}
    store = collect(read(scrapes)) if scrapes.is_file() else None
    grown = {key: None if store is None else growth(store, name) for key, name in wanted.items()}
    remarks: list[Remark] = []
    absent = [wanted[key] for key, one in grown.items() if one is None]
    back = [wanted[key] for key, one in grown.items() if one is not None and one.went_back]
    if absent:
        remarks.append(Remark("counters_absent", {"families": ", ".join(absent), "path": counters.path}))
    if back:
        remarks.append(Remark("counters_went_back", {"families": ", ".join(back)}))
    good = {key: one for key, one in grown.items() if one is not None and not one.went_back}
    if disagreement := _disagreement(good, rows):
        return {}, [*remarks, disagreement]
    tokens, decode, ttft = good.get("output_tokens"), good.get("decode_s"), good.get("ttft_s")
    found: dict[tuple[Figure, Method], Measured] = {}
    if tokens is not None and decode is not None and decode.total > 0:
        found["tok_per_sec", "counters"] = Measured(len(rows), tokens.total / decode.total)
    if ttft is not None and ttft.count:
        found["ttft_ms", "counters"] = Measured(round(ttft.count), ttft.total / ttft.count * 1_000)
    return found, remarks


def _disagreement(good: Mapping[str, Growth], rows: Sequence[Mapping[str, Any]]) -> Remark | None:
    """Why the counters are not of these requests alone; None: nothing speaks against it."""
    ttft, tokens = good.get("ttft_s"), good.get("output_tokens")
    if ttft is not None and ttft.count is not None and ttft.count != len(rows):
        return Remark("counters_of_others", {"counted": round(ttft.count), "sent": len(rows)})
    usages = [row["usage_output"] for row in rows]
    if tokens is not None and None not in usages and tokens.total != sum(usages):
        return Remark("counters_differ", {"counted": tokens.total, "usage": sum(usages)})
    return None


def table(figure: Figure, found: Found) -> Table:
    """One figure by all methods that have it, against the first of them."""
    rows = [(method, found[figure, method]) for method in METHODS if (figure, method) in found]
    if not rows:
        return Table(figure, None, ())
    reference, base = rows[0]
    return Table(
        figure,
        reference,
        tuple(
            Row(method, one.n, one.mean, one.sd, None if method == reference else _delta(one.mean, base.mean))
            for method, one in rows
        ),
    )


def _delta(mean: float, base: float) -> Difference:
    return Difference(mean - base, (mean - base) / base if base > 0 else None)


def overhead(found: Found) -> Overhead:
    """What lies between the engine and the client."""

    def own(figure: Figure) -> Measured | None:
        return found.get((figure, "timings")) or found.get((figure, "counters"))

    ttft, own_ttft = found.get(("ttft_ms", "streamed")), own("ttft_ms")
    speed, own_speed = found.get(("tok_per_sec", "streamed")), own("tok_per_sec")
    total, whole = found.get(("total_ms", "streamed")), found.get(("total_ms", "whole"))
    return Overhead(
        ttft_ms=None if ttft is None or own_ttft is None else ttft.mean - own_ttft.mean,
        speed=None if speed is None or own_speed is None else speed.mean / own_speed.mean - 1,
        streaming_ms=None if total is None or whole is None else total.mean - whole.mean,
    )
