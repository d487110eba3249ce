"""The generations of an engine benchmark, from the sealed record: one for each measured request, with M1 to M5.

The client's durations are those of measured_requests.py. Where one of the engine's own three durations is missing, or they
contradict each other, the client's are used. llama.cpp reports no total: by the specification an OpenAI-compatible engine is
measured by the client's clock alone.

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

import pyarrow as pa

from inferometer.measure.bench_metrics import (
    Durations,
    server_durations,
    tok_per_sec,
    tokens_generated,
)
from inferometer.measure.measured_requests import MeasuredRequest, Pause, measured_requests
from inferometer.units import NS_PER_MS

HIGH_TTFT_MS = 60_000.0
HIGH_SPEED = 500.0
"""asiai's methodology, Protocol 7."""


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
    pause: Pause | None = None
    last_text_ns: int | None = None

    @property
    def counts(self) -> bool:
        """Whether statistics hold it."""
        return self.discarded is None


def generations(record: pa.Table, prompts: int, *, fast_is_odd: bool) -> tuple[Generation, ...]:
    """The measured requests of a record in order of sending; `prompts` of them make a round, in the order of their file.

    `fast_is_odd`: more than HIGH_SPEED tokens a second are worth a warning.
    """
    return tuple(_generation(one, prompts, fast_is_odd=fast_is_odd) for one in measured_requests(record))


def _generation(one: MeasuredRequest, prompts: int, *, fast_is_odd: bool) -> Generation:
    warnings: list[str] = []
    ok = one.answered
    client = one.client if ok else None
    by = _by_engine(one, warnings) or client if client is not None else None
    tokens, source = tokens_generated(one.output_tokens, one.characters) if ok else (None, "server")
    speed = None if tokens is None or by is None else tok_per_sec(tokens, by.generation_ms)
    if ok and source == "estimate":
        warnings.append("tokens_estimated")
    if by is not None and client is not None and max(by.ttft_ms, client.ttft_ms) > HIGH_TTFT_MS:
        warnings.append("ttft_high")
    if fast_is_odd and speed is not None and speed > HIGH_SPEED:
        warnings.append("speed_high")
    return Generation(
        prompt=one.index % prompts,
        run=one.index // prompts + 1,
        row=one.row,
        outcome=one.outcome,
        submitted_ns=one.submitted_ns,
        ended_ns=one.ended_ns,
        by=by,
        client=client,
        speed=speed,
        tokens=tokens,
        tokens_counted=source == "server" and tokens is not None,
        prompt_tokens=one.prompt_tokens,
        cached_tokens=one.cached_tokens,
        finish_reason=one.finish_reason,
        discarded=_discarded(speed, tokens, ok=ok, timed=by is not None),
        warnings=tuple(warnings),
        pause=one.pause,
        last_text_ns=one.last_text_ns,
    )


def _discarded(speed: float | None, tokens: int | None, *, ok: bool, timed: bool) -> str | None:
    if not ok:
        return "failed"
    if not timed:
        return "not_streamed"
    if not tokens:
        return "no_tokens"
    return None if speed else "too_short"


def _by_engine(one: MeasuredRequest, warnings: list[str]) -> Durations | None:
    """None where the engine does not report all three; of three that contradict each other, with a warning."""
    total, prefill, decode = one.own_total_ns, one.own_prefill_ns, one.own_decode_ns
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
