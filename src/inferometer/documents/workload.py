"""The workload in the summary and in `run.json`: its specification (draft 4.3.1), its sources, and what was drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from inferometer.documents.part import Part
from inferometer.plan.length_histogram import LengthHistogram


class DisclosureItem(Part, frozen=True):
    """One item of draft 4.3.1's list; `value` None: missing."""

    id: str
    name: str
    value: str | None


class WorkloadFile(Part, frozen=True):
    """The workload file that was sent."""

    file: str
    format: Literal["arrow", "jsonl"]
    digest: str


class LengthTally(Part, frozen=True):
    """Lengths requested in tokens, over the requests of the measurement. `std` divides by n - 1."""

    n: int
    mean: float
    std: float | None
    min: int
    max: int


class PromptFile(Part, frozen=True):
    """The user's file of prompts, without any of its text."""

    file: str
    format: Literal["jsonl", "csv"]
    sha256: str
    bytes: int
    rows: int
    with_system_prompt: int
    input_tokens: LengthTally | None = None
    output_tokens: LengthTally | None = None


class Corpus(Part, frozen=True):
    """A bundled corpus."""

    name: str
    sha256: str
    language: str
    source: str


class DatasetFile(Part, frozen=True):
    """A file of a dataset."""

    name: str
    bytes: int
    sha256: str


class Dataset(Part, frozen=True):
    """A dataset of the user's. `left_out`: rows by the reason for which they were not used."""

    kind: Literal["sharegpt", "the-stack"]
    name: str
    revision: str | None
    subset: str | None
    files: tuple[DatasetFile, ...]
    sha256: str
    rows: int
    texts: int
    sampled: int
    left_out: dict[str, int]
    preprocessing: str
    version: str | None


class TextSource(Part, frozen=True):
    """Where natural text came from: one of the two."""

    corpus: Corpus | None
    dataset: Dataset | None


class SourceFacts(Part, frozen=True):
    """Where the requests came from: of a file, all but its words."""

    classes: tuple[str, ...]
    prompts: PromptFile | None = None
    texts: TextSource | None = None
    made: WorkloadFile | None = None


class PrefixHits(Part, frozen=True):
    """Shares of the prompt tokens that a prefix cache without limit could find: token by token, and by blocks of
    `block_tokens`."""

    exact: float | None
    blocks: float | None
    block_tokens: int


class Lengths(Part, frozen=True):
    """A distribution of lengths in tokens."""

    mean: float
    p50: float
    p95: float
    p99: float
    min: int
    max: int


class SharedPrefixes(Part, frozen=True):
    """Prefixes that requests share. `curve`: (number of prefixes, requests that carry one of them), the most used first."""

    requests: int
    fraction: float | None
    tokens: Lengths | None
    groups: tuple[int, ...] | None
    curve: tuple[tuple[int, ...], ...]


class PublishedFigure(Part, frozen=True):
    """A figure that the workload's source publishes, beside what was drawn; `off`: the relative difference."""

    side: Literal["input", "output"]
    figure: Literal["mean", "p50", "p95", "p99"]
    published: float
    source: str
    drawn: float | None
    off: float | None


class RequestStatistics(Part, frozen=True):
    """What was drawn for the measured requests; lengths in tokens."""

    requests: int
    input_tokens: Lengths | None
    unshared_input_tokens: Lengths | None
    repeated_input_tokens: Lengths | None
    sent_tokens: Lengths | None
    output_tokens: Lengths | None
    shared: SharedPrefixes
    prefix_hits: PrefixHits
    published: tuple[PublishedFigure, ...]


class DrawnRequests(RequestStatistics, frozen=True):
    """What was drawn for the measured requests; the summary repeats all but the histograms."""

    histograms: Mapping[str, LengthHistogram | None]


class TraceLengths(Part, frozen=True):
    """Tokens, one entry a row of the trace."""

    sum: int
    mean: float
    min: int
    max: int
    p50: int
    p95: int
    p99: int


class TraceFacts(Part, frozen=True):
    """The trace that is replayed; the last four are known once all its requests are made."""

    file: str
    format: str
    sha256: str
    rows: int
    failed: int
    span_s: float
    first_second: int
    input_tokens: TraceLengths | None
    output_tokens: TraceLengths | None
    texts: int
    shares_prefixes: bool
    lasts_s: float
    rate: float | None
    unprepared: int = 0
    unprepared_ms: float = 0.0
    prefix_hits: PrefixHits | None = None


class TokenizerFacts(Part, frozen=True):
    """The tokenizer that measured the prompts (draft 4.4.1)."""

    kind: Literal["shipped", "file", "hub", "server", "none"] | None = None
    name: str | None = None
    version: str | None = None
    vocab_size: int | None = None
    source: str | None = None


class WorkloadAccount(Part, frozen=True):
    """`missing`: ids of the items of draft 4.3.1 without a value. `fingerprint`: SHA-256 of the measured requests without
    their nonces; None where not all were made. `prefix_hits`: None where it was not worked out."""

    items: tuple[DisclosureItem, ...]
    missing: tuple[str, ...]
    fingerprint: str | None
    made: WorkloadFile | None
    prompts: PromptFile | None
    deviations: tuple[str, ...]
    texts: TextSource | None
    drawn: RequestStatistics | None
    prefix_hits: PrefixHits | None
