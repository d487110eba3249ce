"""The generations of an engine benchmark, from the sealed record: one for each measured request, with M1 to M5.

| by the client's clock | is                                                                          |
| --------------------- | --------------------------------------------------------------------------- |
| TTFT                  | from the last byte of the request (`t_submit`) to the first text of any kind |
| total                 | from the same instant to the end of the stream (`t_end`)                    |

Arrivals are the kernel's stamps where it gives any. An engine's own durations are `server_total_ns`, `server_prefill_ns` and
`server_decode_ns`; where one is missing, or they contradict each other, the client's are used. llama.cpp reports no total: by
the specification an OpenAI-compatible engine is measured by the client's clock alone.

| `discarded`      | no statistic holds the generation, because                                     |
| ---------------- | ------------------------------------------------------------------------------ |
| `failed`         | the request did not succeed; `outcome` says how                                |
| `not_streamed`   | the answer came whole: it has no time to the first token                       |
| `no_tokens`      | the engine counted none                                                        |
| `too_short`      | its generation took less than 10 ms, so it has no speed (M1)                   |

| `warnings`          | the generation counts, but                                                  |
| ------------------- | --------------------------------------------------------------------------- |
| `tokens_estimated`  | the engine counted no tokens: they are a quarter of the characters (M4)     |
| `durations_differ`  | the engine's own parts are longer than its total: the client's are used     |
| `ttft_high`         | its TTFT is over 60 s: swapping, or an error                                |
| `speed_high`        | its speed is over 500 tokens/s, which one stream on such a machine never has |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from inferometer.journal.schema import Outcome, Phase
from inferometer.measure.bench_metrics import (
    Durations,
    client_durations,
    server_durations,
    tok_per_sec,
    tokens_generated,
)
from inferometer.units import NS_PER_MS

HIGH_TTFT_MS = 60_000.0
HIGH_SPEED = 500.0
"""asiai's methodology, Protocol 7."""

_COLUMNS = (
    "phase",
    "cycle",
    "index",
    "t_submit",
    "t_end",
    "event_ns",
    "first_text",
    "outcome",
    "finish_reason",
    "text",
    "usage_input",
    "usage_output",
    "usage_cached",
    "server_total_ns",
    "server_prefill_ns",
    "server_decode_ns",
)


@dataclass(frozen=True, slots=True)
class Generation:
    """One measured request. `prompt`: its place in the list of prompts; `run`: from 1; `row`: in the sealed record.

    `by`: the durations that count, the engine's own or the client's; `client`: the client's. Times are in ms; `submitted_ns`
    and `ended_ns` on the run's clock.
    """

    prompt: int
    run: int
    row: int
    outcome: str
    submitted_ns: int | None
    ended_ns: int
    by: Durations | None
    client: Durations | None
    speed: float | None
    tokens: int | None
    tokens_counted: bool
    prompt_tokens: int | None
    cached_tokens: int | None
    finish_reason: str | None
    discarded: str | None
    warnings: tuple[str, ...]

    @property
    def counts(self) -> bool:
        """Whether statistics hold it."""
        return self.discarded is None


def generations(record: pa.Table, prompts: int, *, fast_is_odd: bool) -> tuple[Generation, ...]:
    """The measured requests of a record in order of sending; `prompts` of them make a round, in the order of their file.

    `fast_is_odd`: more than HIGH_SPEED tokens a second are worth a warning.
    """
    rows = record.select(_COLUMNS).to_pylist()
    measured = [(at, row) for at, row in enumerate(rows) if row["phase"] == Phase.MEASURE]
    return tuple(_generation(at, row, prompts, fast_is_odd=fast_is_odd) for at, row in measured)


def _generation(at: int, row: dict[str, Any], prompts: int, *, fast_is_odd: bool) -> Generation:
    warnings: list[str] = []
    ok = row["outcome"] == Outcome.OK
    client = _by_client(row) if ok else None
    by = _by_engine(row, warnings) or client if client is not None else None
    tokens, source = tokens_generated(row["usage_output"], len(row["text"] or "")) if ok else (None, "server")
    speed = None if tokens is None or by is None else tok_per_sec(tokens, by.generation_ms)
    if ok and source == "estimate":
        warnings.append("tokens_estimated")
    if by is not None and client is not None and max(by.ttft_ms, client.ttft_ms) > HIGH_TTFT_MS:
        warnings.append("ttft_high")
    if fast_is_odd and speed is not None and speed > HIGH_SPEED:
        warnings.append("speed_high")
    return Generation(
        prompt=row["index"] % prompts,
        run=row["index"] // prompts + 1,
        row=at,
        outcome=row["outcome"],
        submitted_ns=row["t_submit"],
        ended_ns=row["t_end"],
        by=by,
        client=client,
        speed=speed,
        tokens=tokens,
        tokens_counted=source == "server" and tokens is not None,
        prompt_tokens=row["usage_input"],
        cached_tokens=row["usage_cached"],
        finish_reason=row["finish_reason"],
        discarded=_discarded(speed, tokens, ok=ok, timed=by is not None),
        warnings=tuple(warnings),
    )


def _discarded(speed: float | None, tokens: int | None, *, ok: bool, timed: bool) -> str | None:
    if not ok:
        return "failed"
    if not timed:
        return "not_streamed"
    if not tokens:
        return "no_tokens"
    return None if speed else "too_short"


def _by_client(row: dict[str, Any]) -> Durations | None:
    """None without a first text of a stream."""
    submit, first = row["t_submit"], row["first_text"]
    if submit is None or not 0 <= first < len(row["event_ns"]):
        return None
    return client_durations(
        (row["event_ns"][first] - submit) / NS_PER_MS, (row["t_end"] - submit) / NS_PER_MS
    )


def _by_engine(row: dict[str, Any], warnings: list[str]) -> Durations | None:
    """None where the engine does not report all three; of three that contradict each other, with a warning."""
    total, prefill, decode = (row[f"server_{part}_ns"] for part in ("total", "prefill", "decode"))
    if total is None or prefill is None or decode is None:
        return None
    if total < prefill + decode:
        warnings.append("durations_differ")
        return None
    # Rounding to ms must not make of equal nanoseconds a total below its parts.
    parts = prefill / NS_PER_MS, decode / NS_PER_MS
    return server_durations(*parts, max(total / NS_PER_MS, parts[0] + parts[1]))


def of_prompt(found: Sequence[Generation], prompt: int) -> list[Generation]:
    """Those of one prompt that count, in order of their runs."""
    return sorted((one for one in found if one.prompt == prompt and one.counts), key=lambda one: one.run)
