"""What a compound system says of its own tokens, as reports show it: beside the figures of its user, never among them."""

from __future__ import annotations

from inferometer.documents.summary import Summary
from inferometer.report.figures import figure


def line(summary: Summary) -> str | None:
    """In a sentence; None: the system is no compound one."""
    system = summary.tokens.system
    if system is None:
        return None
    parts = [
        f"{words} {figure(stats.mean)} on average (P50 {figure(stats.p50)}, at most {figure(stats.max)})"
        for words, stats in (
            ("input", system.input_tokens),
            ("output", system.output_tokens),
            ("cached", system.cached_tokens),
        )
        if stats is not None
    ]
    if not parts:
        return "The system reports no usage of its own."
    return (
        f"By the system's own usage, all its steps included, tokens per request: {'; '.join(parts)}; reported for "
        f"{figure(system.reported)} of {figure(system.requests)}. No other figure rests on them."
    )
