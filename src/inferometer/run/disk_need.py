"""What a run is going to write, estimated before its requests are made, and whether that fits the disk.

| file               | bytes of each request, of i prompt tokens and o output tokens                        |
| ------------------ | ------------------------------------------------------------------------------------ |
| `requests.arrow`   | SCHEDULED + PROMPT_TOKEN i                                                           |
| `journal/`         | ENDED + TEXT_TOKEN o, and EVENT (o + CLOSING) where answers are streamed             |
| `requests.parquet` | SEALED_SHARE of the journal, less what of the text it does not keep                  |

The last two exist side by side while the record is sealed. How many requests a closed loop sends in a given time is the
server's doing: of those nothing is estimated, nor of prompts whose lengths nobody knows before they are made.
"""

from __future__ import annotations

import math
import shutil
from dataclasses import dataclass

from inferometer.errors import MachineError
from inferometer.journal.folder import RunFolder
from inferometer.journal.kept_text import KeepText
from inferometer.plan.lengths import estimated_mean
from inferometer.plan.request_class import RequestClass
from inferometer.plan.schema import Plan
from inferometer.plan.workload import AnyWorkload, LengthsWorkload, MixtureWorkload, StandardWorkload
from inferometer.report.figures import size
from inferometer.run.ui import Ui
from inferometer.workload.sources import AnySource, TraceRows

SCHEDULED = 280.0
PROMPT_TOKEN = 6.0
ENDED = 230.0
EVENT = 9.0
CLOSING = 2.0
TEXT_TOKEN = 5.0
SEALED_SHARE = 0.6
TOLD_FROM = 1 << 30
"""Bytes from which on a need is announced."""


@dataclass(frozen=True, slots=True)
class Expected:
    """Requests that a run will send, and the mean tokens of their prompts and answers."""

    requests: int
    input_tokens: float
    output_tokens: float


@dataclass(frozen=True, slots=True)
class DiskNeed:
    """Bytes of the planned requests, the journal and the sealed record."""

    requests: float
    journal: float
    record: float

    @property
    def total(self) -> float:
        """All three."""
        return self.requests + self.journal + self.record


def expected(plan: Plan, source: AnySource) -> Expected | None:
    """What the plan is going to send; None where that is not known beforehand."""
    if isinstance(source, TraceRows):
        facts = source.trace.facts
        lengths = facts.input_tokens, facts.output_tokens
        if lengths[0] is None or lengths[1] is None:
            return None
        return Expected(facts.rows, lengths[0].mean, lengths[1].mean)
    requests, answers = _requests(plan), source.answers
    prompt = _prompt_tokens(plan.workload)
    if requests is None or answers is None or prompt is None:
        return None
    return Expected(requests + plan.load.warmup + plan.load.lead_in, prompt, answers.mean)


def _requests(plan: Plan) -> int | None:
    load = plan.load
    within = None
    if load.duration_s is not None and load.offered_rate is not None:
        within = math.ceil(load.duration_s * load.offered_rate)
    known = [number for number in (load.requests, within) if number is not None]
    return min(known) if known else None


def _prompt_tokens(workload: AnyWorkload) -> float | None:
    """Mean tokens of a prompt, shared prefixes included."""
    if isinstance(workload, MixtureWorkload):
        weights = math.fsum(one.weight for one in workload.classes)
        return math.fsum(one.weight * _class_tokens(one) for one in workload.classes) / weights
    if isinstance(workload, StandardWorkload | LengthsWorkload):
        return estimated_mean(workload.input_tokens)
    return None


def _class_tokens(one: RequestClass) -> float:
    prefix = one.shared_prefix
    return estimated_mean(one.input_tokens) + (0.0 if prefix is None else prefix.share * prefix.tokens)


def disk_need(run: Expected, keep_text: KeepText, *, streamed: bool) -> DiskNeed:
    """The estimate by the table above."""
    text = TEXT_TOKEN * run.output_tokens
    ended = ENDED + (EVENT * (run.output_tokens + CLOSING) if streamed else 0.0)
    kept = text if keep_text == "all" else 0.0
    return DiskNeed(
        run.requests * (SCHEDULED + PROMPT_TOKEN * run.input_tokens),
        run.requests * (ended + text),
        run.requests * SEALED_SHARE * (ended + kept),
    )


def announce_need(plan: Plan, source: AnySource, folder: RunFolder, ui: Ui) -> None:
    """Announce what a run needs of the disk of its folder, if that is much. Raises MachineError where it is not there."""
    run = expected(plan, source)
    if run is None:
        return
    need = disk_need(run, plan.instrument.keep_text, streamed=bool(plan.target.stream))
    line = announced(need, shutil.disk_usage(folder.path).free, str(folder.path.parent))
    if line is not None:
        ui.note(line)


def announced(need: DiskNeed, free: int, place: str) -> str | None:
    """A line about a large need; None: it is small. `free`: bytes on the disk that holds `place`. Raises MachineError where it
    is not enough."""
    parts = (
        f"planned requests {size(need.requests)}, journal {size(need.journal)}, record {size(need.record)}"
    )
    if need.total > free:
        raise MachineError(
            f"this run needs about {size(need.total)} ({parts}), and the disk of {place} has {size(free)} free: choose "
            "another disk (--out), fewer requests, shorter lengths, or --keep-text none",
            "disk",
        )
    if need.total < TOLD_FROM:
        return None
    return f"this run needs about {size(need.total)} of disk ({parts}); {size(free)} are free"
