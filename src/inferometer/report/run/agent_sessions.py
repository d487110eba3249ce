"""Recorded agent sessions in words and rows, for all reports: what became of them, their figures, their steps."""

from __future__ import annotations

from collections.abc import Sequence

from inferometer.measure.agent_sessions import AgentSessions, SessionRate, Share, StepGroup
from inferometer.metrics.statistics import Stats
from inferometer.report.figures import ABSENT, DASH, THIN, clean, figure, marked, share, statistic_interval

TITLE = "Agent sessions"
FIGURE_HEAD = ("Per session", "n", "Mean", "95 % interval", "P50", "P90", "P99")
SHARE_HEAD = ("Of all sessions", "Value", "95 % interval")
POSITION_HEAD, AGENT_HEAD = "Step", "Agent"
STEP_HEAD = ("Sent", "Completed", "Prompt tokens", "From cache", "Reuse possible", "best", "seen")
_POINTS = ("p50", "p90", "p99")
_LATENCIES = tuple((name, key) for name in ("ttft_ms", "itl_ms", "e2e_ms") for key in ("p50", "p99"))
LATENCY_HEAD = tuple(f"{words} {key}" for words in ("TTFT", "ITL", "Latency") for key in ("P50", "P99"))

_FIGURES = {
    "duration_ms": "Duration (ms)",
    "ttft_ms": "TTFT of the task (ms)",
    "last_answer_ms": "Time to the last answer (ms)",
    "steps_per_session": "Steps",
    "path_steps": "Steps on the critical path",
    "first_input_tokens": "Prompt tokens of the first step",
    "last_input_tokens": "Prompt tokens of the last step",
    "context_growth": "Context growth (tokens)",
}
_TIMES = {
    "model": "Time in the model",
    "tools": "Time in tools",
    "thinking": "Time thinking",
    "waiting": "Time waiting to be sent",
}
_REUSE = {
    "cached": "Prompt tokens from the cache",
    "possible": "KV reuse possible",
    "best": "KV reuse at best",
    "seen": "KV reuse seen",
}
_EXPLAINED = (
    "Of sessions all of whose steps succeeded. Times begin when a session was due; those in the model, in tools, thinking and "
    "waiting follow its critical path and sum to its duration. The TTFT of a task is the first token that its user would see. "
    "KV reuse: prompt tokens that the session had sent or received before."
)
STEPS_EXPLAINED = "Latencies in ms; mean prompt tokens; shares of the prompt tokens."


def explained(sessions: AgentSessions) -> str:
    """What the figures are of."""
    return _EXPLAINED if sessions.reuse is None else f"{_EXPLAINED} {_blocks(sessions)}"


def _blocks(sessions: AgentSessions) -> str:
    stated = "as the engine states" if sessions.block_stated else "which is assumed: nothing states them"
    return f"At best is in blocks of {sessions.block_tokens} tokens, {stated}."


Latency = tuple[str, bool]
"""A figure, and whether its samples are few."""


def line(sessions: AgentSessions) -> str:
    """How many sessions there were, and how they ended."""
    many = "session" if sessions.begun == 1 else "sessions"
    ends = [f"{figure(sessions.finished)} had all their steps"]
    if sessions.broken:
        why = ", ".join(f"{clean(name)} {figure(count)}" for name, count in sessions.broken_by.items())
        ends.append(f"{figure(sessions.broken)} broke off with a step that failed ({why})")
    if sessions.cut:
        ends.append(
            f"{figure(sessions.cut)} {'was' if sessions.cut == 1 else 'were'} cut short by the end of the load"
        )
    steps = sessions.steps
    sent = f"{figure(steps.sent)} of {figure(steps.planned)} steps were sent"
    left = f", {figure(steps.skipped)} were left out after a failure" if steps.skipped else ""
    return f"{figure(sessions.begun)} {many}: {', '.join(ends)}; {sent}{left}."


def brief(sessions: AgentSessions) -> list[str]:
    """The figures of most interest, a line each."""
    found = []
    timed = [
        f"{words} P50 {figure(stats.p50)} ms, P99 {figure(stats.p99)} ms"
        for words, stats in (
            ("TTFT of the task", sessions.ttft_ms),
            ("time to the last answer", sessions.last_answer_ms),
            ("duration", sessions.duration_ms),
        )
        if stats is not None
    ]
    if timed:
        found.append(f"{'; '.join(timed)}.")
    if sessions.time is not None:
        parts = (
            f"{words.lower()} {share(getattr(sessions.time, name).value)}" for name, words in _TIMES.items()
        )
        found.append(f"Critical path: {', '.join(parts)}.")
    if sessions.reuse is not None:
        parts = (f"{words} {share(getattr(sessions.reuse, name).value)}" for name, words in _REUSE.items())
        found.append(f"Of the prompt tokens: {', '.join(parts)}.".replace("Prompt tokens from", "from"))
        found.append(_blocks(sessions))
    if sessions.goodput_s is not None:
        found.append(f"Session goodput: {figure(sessions.goodput_s.value)} sessions/s.")
    return found


def figure_rows(sessions: AgentSessions) -> list[tuple[str, list[str], list[Latency]]]:
    """Under FIGURE_HEAD: what it is, then n, mean and the mean's interval, then the percentiles."""
    found = []
    for name, words in _FIGURES.items():
        stats: Stats | None = getattr(sessions, name)
        if stats is not None:
            cells = [figure(stats.n), figure(stats.mean), statistic_interval(stats, "mean")]
            found.append((words, cells, [marked(stats, key) for key in _POINTS]))
    return found


def share_rows(sessions: AgentSessions) -> list[list[str]]:
    """Under SHARE_HEAD: success, rates, where the time went, and what was cached."""
    found = [_share("Sessions that succeeded", sessions.success)]
    if sessions.good is not None:
        found.append(_share("Sessions that met every objective", sessions.good))
    found.append(_rate("Sessions finished (1/s)", sessions.sessions_s))
    if sessions.goodput_s is not None:
        found.append(_rate("Session goodput (1/s)", sessions.goodput_s))
    for whole, names in ((sessions.time, _TIMES), (sessions.reuse, _REUSE)):
        if whole is not None:
            found += [_share(words, getattr(whole, name)) for name, words in names.items()]
    return found


def _share(words: str, value: Share | None) -> list[str]:
    if value is None:
        return [words, ABSENT, ABSENT]
    bounds = ABSENT if value.ci95 is None else f"{THIN}{DASH}{THIN}".join(map(share, value.ci95))
    return [words, share(value.value), bounds]


def _rate(words: str, rate: SessionRate | None) -> list[str]:
    if rate is None:
        return [words, ABSENT, ABSENT]
    bounds = ABSENT if rate.ci95 is None else f"{THIN}{DASH}{THIN}".join(map(figure, rate.ci95))
    return [words, figure(rate.value), bounds]


def step_rows(groups: Sequence[StepGroup]) -> list[tuple[list[str], list[Latency]]]:
    """Of each group what it is of and its counts under STEP_HEAD, and its latencies under LATENCY_HEAD."""
    return [
        (_counts(group), [marked(getattr(group, name), key) for name, key in _LATENCIES]) for group in groups
    ]


def _counts(group: StepGroup) -> list[str]:
    named = clean(group.agent) if group.position is None else figure(group.position)
    reuse = group.reuse
    shares = [ABSENT] * 4 if reuse is None else [share(getattr(reuse, name).value) for name in _REUSE]
    return [
        f"{named}{' and later' if group.and_later else ''}",
        figure(group.sent),
        figure(group.completed),
        ABSENT if group.input_tokens is None else figure(group.input_tokens.mean),
        *shares,
    ]
