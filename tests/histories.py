"""Entries of a history with planted figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from msgspec.structs import replace

from inferometer.documents.history import ENTRY_SCHEMA, HistoryEntry, HistoryFigure, NumberedEntry

CONDITIONS = {
    "sut.model": "llama",
    "sut.engine": "vllm",
    "sut.accelerator": "H100",
    "sut.quantization": "fp8",
}
START = datetime(2026, 1, 1, tzinfo=UTC)


def figure(name: str, value: float, **changes: Any) -> HistoryFigure:
    """A latency in ms that decides."""
    made = HistoryFigure(name, name.upper(), "ms", "less", "ratio", True, value, (value * 0.9, value * 1.1))
    return replace(made, **changes)


def entry(number: int, values: Mapping[str, float], **changes: Any) -> HistoryEntry:
    """A VALID run, on a day of its own."""
    made = HistoryEntry(
        schema=ENTRY_SCHEMA,
        kind="run",
        id=f"run-{number}",
        part="",
        name="run",
        started=(START + timedelta(days=number)).isoformat().replace("+00:00", "Z"),
        verdict="VALID",
        reasons=(),
        interrupted=False,
        folder=f"run-{number}",
        seed=number,
        fingerprint=f"sha256:{number}",
        conditions=CONDITIONS,
        versions={"engine": "vLLM 0.10.1"},
        figures=tuple(figure(name, value) for name, value in values.items()),
    )
    return replace(made, **changes)


def history(values: Sequence[float], name: str = "ttft_p50") -> list[NumberedEntry]:
    """A run for each value of one figure, numbered from 1."""
    return [NumberedEntry(at, entry(at, {name: value})) for at, value in enumerate(values, start=1)]


def noisy(n: int, seed: int = 0, noise: float = 0.02, level: float = 100.0) -> list[float]:
    """A level with log-normal noise between results."""
    return [float(one) for one in level * np.exp(np.random.default_rng(seed).normal(0, noise, n))]
