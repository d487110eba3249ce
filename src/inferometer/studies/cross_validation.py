"""One engine measured in several ways, side by side: its own timings and counters, streamed answers, and whole ones.

    recognise -> prepare (model, one generation) -> whole replies -> streamed ones, with scrapes around them -> tables

Both are runs like any other; all figures are from their sealed records. Whole replies go first: the first fills the prefix
cache with the prompt and is left out, so that every request that counts meets the same cache.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from inferometer import __version__, whole_file
from inferometer.client.http_client import Unanswered
from inferometer.documents.bench import Remark
from inferometer.documents.cross_validation import SCHEMA, CrossValidation, Method
from inferometer.documents.part import from_json, to_data, to_json
from inferometer.documents.summary import SCHEMA as SUMMARY_SCHEMA
from inferometer.documents.summary import Summary
from inferometer.engines.adapters import registry
from inferometer.engines.adapters.adapter import Adapter, Counters, Reply
from inferometer.errors import InstrumentError, PeerError, PlanError, RecordError
from inferometer.journal.documents import holds
from inferometer.journal.folder import RunFolder, inside
from inferometer.journal.schema import RECORD
from inferometer.journal.seal import read_table
from inferometer.judge.cross_validation import Found, overhead, tables, verdict
from inferometer.measure.engine_counters import Growth, growth
from inferometer.measure.engine_figures import Figure, Figures, Measured, by_client, by_timings, of_whole
from inferometer.measure.measured_requests import MeasuredRequest, measured_requests
from inferometer.report.run.composition import moment
from inferometer.run.evaluate import RunResult
from inferometer.run.ui import Ui
from inferometer.studies.bench_engine import EngineFailed, LiveEngine, Prepared, told
from inferometer.studies.engine_client import EngineClient
from inferometer.telemetry.metrics.record import read
from inferometer.telemetry.metrics.series import collect_from
from inferometer.workload.bench_prompts import BenchPrompt

FILE = "cross-validation.json"
RECOGNISE_S = 5.0


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
    """Measure `engine`, whose adapter is set if it is known. The document is written after each step, so that a process that is
    killed leaves what it had measured. Raises RecordError and InstrumentError after it has been written."""
    folder = RunFolder.create(out, "cross-validation", time.time_ns()).path
    (folder / "journal").rmdir()
    under_way = _UnderWay(engine, prompt, requests, folder, ui, version, list(remarks))
    failure = None
    try:
        under_way.measure()
    except KeyboardInterrupt:
        under_way.interrupted = True
    except (RecordError, InstrumentError) as why:
        if isinstance(why.__cause__, KeyboardInterrupt):  # pressed while the record was read
            under_way.interrupted = True
        else:
            failure = why
            under_way.remarks.append(Remark("instrument_failed", {"why": str(why)[:500]}))
    if under_way.interrupted:
        under_way.read_rest()
    document = under_way.write(ended=True)
    if failure is not None:
        raise failure
    return CrossValidated(folder, document)


def reread(folder: Path) -> CrossValidated:
    """A cross-validation from its document. Raises RecordError, also for figures that are not those of its runs, where these
    are there."""
    path = folder / FILE
    try:
        text = whole_file.read(path)
    except OSError as cause:
        raise RecordError(f"{path}: cannot be read ({cause.strerror})") from cause
    document = from_json(text, CrossValidation, SCHEMA, str(path))
    runs = [inside(folder, one) for one in document.runs]
    if any(table.rows for table in document.tables) and not runs:
        raise RecordError(f"{path}: it has figures and no run: the file was changed")
    cut = document.ended is None or document.interrupted
    failed = any(one.code == "instrument_failed" for one in document.remarks)
    if not cut and not failed and len(runs) == 2 and all(map(_is_whole, runs)):
        _held_to_runs(document, runs[0], runs[1], path)
    return CrossValidated(folder, document)


def _is_whole(run: Path) -> bool:
    """Whether a run's folder is there with its record and its summary."""
    return all(holds(run, name) for name in ("plan.json", "requests.parquet", "summary.json"))


def _held_to_runs(document: CrossValidation, streamed: Path, whole: Path, path: Path) -> None:
    """Work figures and status out again from the runs. Raises RecordError where they are others."""
    adapter = None if document.engine is None else registry.ADAPTERS.get(document.engine)
    scrapes = RunFolder.open(streamed).scrapes
    found, _ = figures_of(adapter, _measured(whole), _measured(streamed), scrapes)
    if not _alike(to_data(document.tables), to_data(tables(found))) or not _alike(
        to_data(document.overhead), to_data(overhead(found))
    ):
        raise RecordError(f"{path}: its figures are not those of its runs: the file was changed")
    paths = [run / "summary.json" for run in (streamed, whole)]
    checks = [
        from_json(whole_file.read(one), Summary, SUMMARY_SCHEMA, str(one)).verdict.checks for one in paths
    ]
    if (follows := verdict(checks)[0]) != document.status:
        raise RecordError(
            f"{path}: its status is {document.status}, and that of its runs {follows}: the file was changed"
        )


def _alike(one: object, other: object) -> bool:
    """Whether two parts of a document are equal, but for how numbers are rounded on another machine."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9)
    return one == other


@dataclass(slots=True)
class _UnderWay:
    engine: LiveEngine
    prompt: BenchPrompt
    requests: int
    folder: Path
    ui: Ui
    version: str | None
    remarks: list[Remark]
    interrupted: bool = False
    prepared: Prepared | None = None
    streamed: RunResult | None = None
    whole: RunResult | None = None
    started: int = field(default_factory=time.time_ns)
    _read: dict[Path, tuple[MeasuredRequest, ...]] = field(default_factory=dict)

    @property
    def results(self) -> list[RunResult]:
        """The runs there are: streamed, whole."""
        return [one for one in (self.streamed, self.whole) if one is not None]

    def measure(self) -> None:
        """Both runs. What the engine does wrong is a remark."""
        try:
            self.write()
            self.prepared = self.engine.prepare()
            self.remarks += self.prepared.remarks
            self.write()
            wholly = {**self.engine.options, "--no-stream": True}
            self.whole = self._run(replace(self.engine, label="whole", options=wholly), self.requests + 1)
            self._read[self.whole.folder] = _measured(self.whole.folder)
            self.write()
            if not self.interrupted:
                self.streamed = self._run(replace(self.engine, label="streamed"), self.requests)
                self._read[self.streamed.folder] = _measured(self.streamed.folder)
        except EngineFailed as why:
            self.remarks.append(why.remark)
        except PeerError as why:
            self.remarks.append(Remark("engine_failed", {"why": told(why)}))
        except PlanError as why:
            self.remarks.append(Remark("plan_refused", {"why": str(why)[:500]}))

    def _run(self, engine: LiveEngine, requests: int) -> RunResult:
        assert self.prepared is not None
        self.ui.note(f"{requests} {engine.label} answers")
        result = engine.measure(self.prepared, (self.prompt,), requests, self.folder / "runs", self.ui)
        self.interrupted = result.summary.run.interrupted
        return result

    def read_rest(self) -> None:
        """Read the records whose reading was interrupted; one that cannot be read stays in its folder."""
        for one in self.results:
            with contextlib.suppress(RecordError):
                self._read.setdefault(one.folder, _measured(one.folder))

    def write(self, *, ended: bool = False) -> CrossValidation:
        """The document of what there is so far, in its place. Raises RecordError."""
        whole, streamed = (
            None if one is None else self._read.get(one.folder) for one in (self.whole, self.streamed)
        )
        found, remarks = figures_of(self.engine.adapter, whole, streamed, self._scrapes())
        failed = [
            one
            for requests, planned in ((whole, self.requests + 1), (streamed, self.requests))
            if requests is not None and (one := _failures(requests, planned)) is not None
        ]
        status, reasons = verdict([one.summary.verdict.checks for one in self.results])
        document = CrossValidation(
            schema=SCHEMA,
            id=self.folder.name,
            version=__version__,
            url=self.engine.url,
            engine=None if self.engine.adapter is None else self.engine.adapter.key,
            engine_version=self.version,
            model=None if self.prepared is None else self.prepared.model,
            prompt=self.prompt.name,
            requests=self.requests,
            started=moment(self.started),
            ended=moment(time.time_ns()) if ended else None,
            interrupted=self.interrupted,
            status=status,
            reasons=reasons,
            runs=tuple(f"runs/{one.folder.name}" for one in self.results),
            tables=tables(found),
            overhead=overhead(found),
            remarks=(*self.remarks, *failed, *remarks),
        )
        whole_file.write(self.folder / FILE, to_json(document).encode())
        return document

    def _scrapes(self) -> Path | None:
        return None if self.streamed is None else RunFolder.open(self.streamed.folder).scrapes


def _measured(folder: Path) -> tuple[MeasuredRequest, ...]:
    """The measured requests of a run, in order of sending. Raises RecordError."""
    return measured_requests(read_table(RunFolder.open(folder).record, RECORD))


def _failures(requests: Sequence[MeasuredRequest], planned: int) -> Remark | None:
    """What did not succeed of the planned requests of one run."""
    failed = sum(not one.answered for one in requests) + planned - len(requests)
    if not failed:
        return None
    outcomes = ", ".join(sorted({one.outcome for one in requests if not one.answered})) or None
    facts = {"failed": failed, "sent": len(requests), "planned": planned, "outcomes": outcomes}
    return Remark("generations_failed", facts)


def figures_of(
    adapter: Adapter | None,
    whole: Sequence[MeasuredRequest] | None,
    streamed: Sequence[MeasuredRequest] | None,
    scrapes: Path | None,
) -> tuple[Found, list[Remark]]:
    """What the runs show, with remarks on what they do not. The first whole answer filled the cache and is left out."""
    found: dict[tuple[Figure, Method], Measured] = {}
    remarks: list[Remark] = []

    def add(method: Method, figures: Figures) -> None:
        found.update({(name, method): one for name, one in figures.items()})

    if streamed is not None and scrapes is not None:
        add("streamed", by_client(streamed))
        own = by_timings(streamed)
        if not own and adapter is not None and adapter.server_timings:
            remarks.append(Remark("timings_absent"))
        add("timings", own)
        counted, on_counters = by_counters(None if adapter is None else adapter.counters, scrapes, streamed)
        add("counters", counted)
        remarks += on_counters
    if whole is not None:
        add("whole", of_whole(whole[1:]))
    answered = [one for one in (*(whole or ())[1:], *(streamed or ())) if one.answered]
    lengths = {one.output_tokens for one in answered}
    if len(lengths - {None}) > 1:
        remarks.append(Remark("lengths_differ"))
    if None in lengths:
        remarks.append(Remark("tokens_not_reported"))
    return found, remarks


def by_counters(
    counters: Counters | None, scrapes: Path, requests: Sequence[MeasuredRequest]
) -> tuple[Figures, list[Remark]]:
    """What the engine counted over these requests, and remarks on counters that are not there or cannot be right.

    Left out are counters that went back, the time for writing tokens if it is not of as many requests as were sent, and all of
    them if they counted other requests or other tokens than were answered, or if nothing shows whether they did: then they may
    be of something else than these requests.
    """
    if counters is None:
        return {}, [Remark("counters_unknown")]
    names = {
        "output_tokens": counters.output_tokens,
        "decode_s": counters.decode_s,
        "ttft_s": counters.ttft_s,
    }
    wanted = {key: name for key, name in names.items() if name is not None}
    store = collect_from(lambda: read(scrapes)) if scrapes.is_file() else None
    grown = {key: None if store is None else growth(store, name) for key, name in wanted.items()}
    remarks: list[Remark] = []
    absent = [wanted[key] for key, one in grown.items() if one is None]
    back = [wanted[key] for key, one in grown.items() if one is not None and one.went_back]
    if absent:
        remarks.append(Remark("counters_absent", {"families": ", ".join(absent), "path": counters.path}))
    if back:
        remarks.append(Remark("counters_went_back", {"families": ", ".join(back)}))
    good = {key: one for key, one in grown.items() if one is not None and not one.went_back}
    if disagreement := _disagreement(good, requests):
        return {}, [*remarks, disagreement]
    if late := _late(counters, good, requests):
        del good["decode_s"]
        remarks.append(late)
    tokens, decode, ttft = good.get("output_tokens"), good.get("decode_s"), good.get("ttft_s")
    found: dict[Figure, Measured] = {}
    if tokens is not None and decode is not None and decode.total > 0:
        found["tok_per_sec"] = Measured(len(requests), tokens.total / decode.total)
    if ttft is not None and ttft.count:
        found["ttft_ms"] = Measured(round(ttft.count), ttft.total / ttft.count * 1_000)
    return found, remarks


def _disagreement(good: Mapping[str, Growth], requests: Sequence[MeasuredRequest]) -> Remark | None:
    """Why the counters are not of these requests alone; None: nothing speaks against it."""
    ttft, tokens = good.get("ttft_s"), good.get("output_tokens")
    if failed := sum(not one.answered for one in requests):
        return Remark("counters_of_failed", {"failed": failed, "sent": len(requests)})
    counts_requests = ttft is not None and ttft.count is not None
    if ttft is not None and ttft.count is not None and ttft.count != len(requests):
        return Remark("counters_of_others", {"counted": round(ttft.count), "sent": len(requests)})
    usages = [one.output_tokens for one in requests if one.output_tokens is not None]
    if len(usages) < len(requests):
        return None if counts_requests or not good else Remark("counters_unchecked")
    if tokens is not None and tokens.total != sum(usages):
        return Remark("counters_differ", {"counted": tokens.total, "usage": sum(usages)})
    return None


def _late(
    counters: Counters, good: Mapping[str, Growth], requests: Sequence[MeasuredRequest]
) -> Remark | None:
    """An engine that has not yet counted the time of the last answer, or counts it for some requests only: its tokens over its
    time would be too fast."""
    decode = good.get("decode_s")
    if decode is None or decode.count is None or not counters.decode_by_request:
        return None
    if decode.count == len(requests):
        return None
    return Remark("counters_late", {"counted": round(decode.count), "sent": len(requests)})
