"""What `workload show` says of a sequence of requests: of a workload file, or of those of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from inferometer.documents.part import Part
from inferometer.documents.workload import Lengths, PrefixHits, TokenizerFacts
from inferometer.plan.length_histogram import LengthHistogram


class ListedSharing(Part, frozen=True):
    """As SharedPrefixes of documents/workload.py; `requests` None: not worked out."""

    requests: int | None
    fraction: float | None
    tokens: Lengths | None
    groups: tuple[int, ...] | None
    curve: tuple[tuple[int, ...], ...]


class ListedRequests(Part, frozen=True):
    """As DrawnRequests of documents/workload.py, without the published figures."""

    requests: int
    input_tokens: Lengths | None
    unshared_input_tokens: Lengths | None
    repeated_input_tokens: Lengths | None
    sent_tokens: Lengths | None
    output_tokens: Lengths | None
    shared: ListedSharing
    prefix_hits: PrefixHits | None
    histograms: Mapping[str, LengthHistogram | None]


class PromptTokens(Part, frozen=True):
    """Sums over the measured requests, in tokens."""

    input_tokens: int
    shared_input_tokens: int


class WorkloadListing(Part, frozen=True):
    """`name`: of the file or folder. `warmup`, `requests`: numbers of requests. `digest`: of the workload file, None for a run
    without one. `tokens`: of `account`'s prompts."""

    name: str
    workload: str
    based_on: str | None
    seed: int
    api: str
    prompt_format: str
    tokenizer: TokenizerFacts
    warmup: int
    requests: int
    fingerprint: str | None
    digest: str | None
    classes: tuple[str, ...]
    account: ListedRequests
    tokens: PromptTokens


class HashCheck(Part, frozen=True):
    """One hash of a file: what it says of itself, or a report of it, and what its rows come to."""

    what: Literal["rows", "digest", "fingerprint", "report"]
    said: str
    found: str
