"""What is told to a peer and what is read from it: the shape of an adapter, and what all adapters share.

An adapter is two pure functions: `command` makes the command line for a load, `read` takes the figures from the text of the
result file that the peer wrote. Every figure is the one that the peer itself prints; nothing is computed anew from raw data.

| figure         | unit | what it is                                                                             |
| -------------- | ---- | -------------------------------------------------------------------------------------- |
| `ttft_mean_ms` | ms   | mean time to first token                                                               |
| `ttft_p99_ms`  | ms   | its 99th percentile                                                                    |
| `gap_p99_ms`   | ms   | 99th percentile over all gaps between tokens; None if the peer only has means a request |
| `completed`    |      | requests that succeeded                                                                |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

MODEL = "truth"
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
"""Nobody shall look for anything on a hub: the tokenizer is a folder, and the server is on this machine."""


@dataclass(frozen=True, slots=True)
class Load:
    """A closed loop: `streams` in flight, `requests` in all, after `warmup` more where the tool has a warm-up."""

    streams: int
    requests: int
    input_tokens: int
    output_tokens: int
    warmup: int


@dataclass(frozen=True, slots=True)
class Reported:
    """What a peer says it measured. None: it does not say."""

    completed: int
    ttft_mean_ms: float | None
    ttft_p99_ms: float | None
    gap_p99_ms: float | None


@dataclass(frozen=True, slots=True)
class Job:
    """One run to be made: the load, the server's URL, the folder of a tokenizer, and an empty folder to write into."""

    load: Load
    url: str
    tokenizer: Path
    out: Path


@dataclass(frozen=True, slots=True)
class Adapter:
    """How one peer is used. `result` is the result file's place in the folder to write into; `api` the interface it asks."""

    command: Callable[[Job], list[str]]
    result: str
    read: Callable[[bytes], Reported]
    api: str = "chat"
    env: Mapping[str, str] = field(default_factory=lambda: OFFLINE)


def milliseconds(seconds: float | None) -> float | None:
    """Seconds in ms."""
    return None if seconds is None else seconds * 1e3
