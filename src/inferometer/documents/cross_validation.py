"""One engine's figures by several ways of measuring, side by side with their differences from a reference.

| method     | is                                                                                         |
| ---------- | ------------------------------------------------------------------------------------------ |
| `timings`  | the engine's own durations, in its answers to the streamed requests                         |
| `counters` | what its Prometheus counters grew by over the streamed requests, which gives means alone   |
| `streamed` | the client's clock over streamed answers, by the kernel's stamps where it gives any        |
| `whole`    | the client's clock over answers that come whole, of other requests with the same prompt    |

The reference of a figure is the first of these that has it. A method that does not have a figure has no row.
"""

from __future__ import annotations

from typing import Final, Literal

from inferometer.documents.bench import Remark
from inferometer.documents.part import Part
from inferometer.documents.verdict import RunStatus
from inferometer.metrics.statistics import Interval

SCHEMA: Final = "inferometer/cross-validation/1"

Method = Literal["timings", "counters", "streamed", "whole"]
METHODS: Final[tuple[Method, ...]] = ("timings", "counters", "streamed", "whole")


class Difference(Part, frozen=True):
    """From the reference's mean, in the figure's unit (`absolute`) and as a share of it (`share`; None: the reference is 0),
    each with its 95 % interval (judge/cross_validation.py); None where there are too few requests.

    `side`: where the interval of `absolute` lies. open: it holds 0, or there is none.
    """

    absolute: float
    ci95: Interval | None
    share: float | None
    share_ci95: Interval | None
    side: Literal["above", "below", "open"]


class Row(Part, frozen=True):
    """One method: the mean over `n` requests and their standard deviation (n - 1); None where only a total is known, or n is 1.
    `delta`: None of the reference itself, and where it is alone."""

    method: Method
    n: int
    mean: float
    sd: float | None
    delta: Difference | None


class Table(Part, frozen=True):
    """One figure by all methods that have it, the reference first.

    `tok_per_sec`: tokens over the time from the first one to the last; of `whole` over the whole time, prompt included.
    `ttft_ms`: of the client from the last byte of the request to the first text. `total_ms`: to the end of the answer.
    """

    figure: Literal["tok_per_sec", "ttft_ms", "total_ms"]
    reference: Method | None
    rows: tuple[Row, ...]


class Overhead(Part, frozen=True):
    """What lies between the engine and this client: the streamed TTFT less the engine's own (`ttft_ms`), the streamed speed
    less the engine's own (`tok_per_sec`), the total streamed less that of whole answers (`streaming_ms`). None: one side is
    missing. A TTFT below 0, or a speed above it: the engine's own figure holds something that the client does not see, and the
    difference is not what the client adds."""

    ttft_ms: Difference | None
    tok_per_sec: Difference | None
    streaming_ms: Difference | None


class CrossValidation(Part, frozen=True):
    """A whole cross-validation. `engine`: an adapter's key, None if it was not recognised; `status` and `reasons`:
    whether the figures by the client's clock can be relied on, and the codes of the checks that speak against it; `runs`: the
    folders of the records, relative to this document's: streamed, whole. The document is written anew after each step;
    `ended` is None until the last one, so of a process that was killed, too."""

    schema: Literal["inferometer/cross-validation/1"]
    id: str
    version: str
    url: str
    engine: str | None
    engine_version: str | None
    model: str | None
    prompt: str
    requests: int
    started: str
    ended: str | None
    interrupted: bool
    status: RunStatus | None
    reasons: tuple[str, ...]
    runs: tuple[str, ...]
    tables: tuple[Table, ...]
    overhead: Overhead
    remarks: tuple[Remark, ...]
