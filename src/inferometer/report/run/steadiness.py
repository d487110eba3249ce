"""The shape of the gaps between tokens, and whether the load was steady, in a line each. They state, and judge nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inferometer.report.figures import THIN, figure, interval, marked, share

MODALITY = {
    "unimodal": "one mode, at {modes} ms",
    "multimodal": "several modes, at {modes} ms",
    "undetermined": "number of modes undetermined",
}
TAILS = {
    "exponential or lighter": "a tail no heavier than exponential",
    "heavy": "a tail heavier than exponential",
    "undetermined": "tail undetermined",
}
SOURCES = {"server": "waiting at the server", "in_flight": "in flight"}
GROWING = {True: "growing", False: "not growing", None: "held by the closed loop"}
STABLE = {True: "stable", False: "not stable", None: "there was none"}


def gaps(shape: Mapping[str, Any] | None) -> str:
    """The summary's `itl_shape`: jitter, longest pause, modes and tail (draft 5.4.4.2, 5.4.4.3)."""
    if shape is None:
        return "none: nothing was streamed, or nothing succeeded"
    modes = ", ".join(figure(one) for one in shape["modes_ms"])
    spread = (
        f"{name} {_percentiles(shape[key])}"
        for name, key in (("jitter", "jitter_ms"), ("longest pause", "max_pause_ms"))
    )
    return (
        f"{', '.join(spread)}; {MODALITY[shape['modality']].format(modes=modes)}; "
        f"P99 / P50 {figure(shape['tail_ratio'])}, {TAILS[shape['tail']]}. "
        f"Of {figure(shape['answers'])} answers of at least {figure(shape['least_output_tokens'])} tokens; "
        f"{figure(shape['short_answers'])} shorter ones ({share(shape['short_share'])}) left out"
    )


def _percentiles(stats: Mapping[str, Any] | None) -> str:
    return f"P50 {marked(stats, 'p50')[0]} and P99 {marked(stats, 'p99')[0]} ms"


def steady(seen: Mapping[str, Any] | None) -> str:
    """The summary's `steady`: completion ratio, queue and output over the steady window (draft 5.2.3.1, 5.2.3.2)."""
    if seen is None:
        return "not known: there was no steady window"
    queue, ratio = seen["queue"], seen["completion_ratio"]
    parts = [f"{figure(seen['arrivals'])} requests sent, {figure(seen['completions'])} completed"]
    if ratio is not None:
        parts[0] += (
            f" (of those due {figure(ratio)}, 95{THIN}% interval {interval(seen['completion_ratio_ci95'])})"
        )
    if queue is not None:
        thirds = ", ".join(figure(one) for one in queue["thirds"])
        parts.append(f"requests {SOURCES[queue['source']]} by thirds {thirds}: {GROWING[queue['growing']]}")
    output = ", ".join(figure(one) for one in seen["output_thirds_tok_s"])
    parts.append(f"output tokens/s by thirds {output}: {STABLE[seen['stable']]}")
    return "; ".join(parts)
