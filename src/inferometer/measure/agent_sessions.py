"""The measurement of recorded agent sessions: per session, by position in the session, and per agent.

| a session | when                                                                        |
| --------- | --------------------------------------------------------------------------- |
| finished  | all its steps succeeded                                                     |
| broken    | a step that was sent failed; what waited for it is not sent                 |
| cut       | neither: the load ended before its last step                                |

Figures of a session are those of finished ones, as latencies are those of successful requests. Their times begin when the
session was due. With the user's eyes: `ttft_ms` is the wait for the first content (no reasoning, no tool call) of a step whose
answer goes to the user, `last_answer_ms` for the end of the last of these answers.

The session is the unit of resampling: steps of one share its prompts, its luck and its place in time. So figures of a session
are samples in the order of their starts (stats.py); those of steps count the steps of one session as one event
(`describe_in_groups`); and shares, sums over sums, leave out stretches of sessions (jackknife.py). A session waits for the
server once a step of its critical path, so the allowance for waits that were not met is one request's times their mean number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from inferometer.measure.dependence import binned, effective_size
from inferometer.measure.jackknife import jackknife_intervals
from inferometer.measure.kv_reuse import BLOCK, Reuse, reuse_of, sample_of
from inferometer.measure.large_arrays import chosen
from inferometer.measure.lengths import TEMPLATE_TOKENS
from inferometer.measure.load import Span, within
from inferometer.measure.measurement import Window
from inferometer.measure.record import REST, Floats, Ints, Mask
from inferometer.measure.samples import Samples
from inferometer.measure.session_steps import SessionRuns
from inferometer.measure.session_time import PARTS, SessionTimes, session_times
from inferometer.measure.stats import describe, describe_in_groups, percentile, share_interval
from inferometer.measure.throughput import meets_objectives, rate_interval
from inferometer.metrics.statistics import Interval, Stats
from inferometer.units import NS_PER_MS, NS_PER_S

MOST_POSITIONS = 16
"""Positions told apart; the steps from the last of them on are taken together."""
MOST_AGENTS = 16
"""Agents told by name, those with the most steps; the others are taken together."""
UNNAMED = "(unnamed)"
"""Steps of no named agent, where others have one."""


@dataclass(frozen=True, slots=True)
class Share:
    """A share of one with its 95 % interval; None: too few sessions."""

    value: float
    ci95: Interval | None


@dataclass(frozen=True, slots=True)
class SessionRate:
    """Sessions per second over the steady span, with the 95 % interval."""

    value: float
    ci95: Interval | None


@dataclass(frozen=True, slots=True)
class TimeShares:
    """Where the wall time of finished sessions went, along their critical paths: shares of its sum."""

    model: Share
    tools: Share
    thinking: Share
    waiting: Share


@dataclass(frozen=True, slots=True)
class StepCounts:
    """Steps of the sessions that were begun. `skipped`: left out, because a step that they waited for, directly or not, had
    failed; `unsent`: the others without an outcome, most of them due after the end of the load, or behind one that was."""

    planned: int
    sent: int
    succeeded: int
    skipped: int
    unsent: int


@dataclass(frozen=True, slots=True)
class PrefixReuse:
    """Of the prompt tokens of steps whose server tells what it cached: all that was cached, and what the session had computed
    before: possible, the best that blocks allow, and seen (measure/kv_reuse.py)."""

    steps: int
    cached: Share
    possible: Share
    best: Share
    seen: Share


@dataclass(frozen=True, slots=True)
class StepGroup:
    """Steps at one position in their sessions (from 1; of the last one listed also all later ones), or of one `agent`.

    Latencies in ms, prompts in tokens.
    """

    position: int | None
    and_later: bool
    agent: str | None
    sent: int
    completed: int
    ttft_ms: Stats | None
    itl_ms: Stats | None
    e2e_ms: Stats | None
    input_tokens: Stats | None
    reuse: PrefixReuse | None


@dataclass(frozen=True, slots=True)
class ReusedTokens:
    """Sums of tokens that the checks of the cache are made of, over the steps whose server tells what it cached. `found`: of
    the `best` possible, those that were cached; `first_`: of steps that go on with none; `beyond`: cached in excess of what was
    possible and of TEMPLATE_TOKENS a step."""

    prompt: float
    best: float
    found: float
    first_prompt: float
    first_cached: float
    beyond: float


@dataclass(frozen=True, slots=True)
class AgentSessions:
    """All sessions of the measured phase; see the head.

    `broken_by`: outcomes of the first step of each broken session that failed. `good`: of the sessions that ended, those all of
    whose steps succeeded and met the plan's latency objectives; None without such an objective. `context_growth`: prompt tokens
    of the last step less those of the first. `block_tokens`: of a block of the prefix cache, which `reuse` was reckoned with;
    `block_stated`: the engine states them. Times in ms, lengths in tokens.
    """

    begun: int
    finished: int
    broken: int
    cut: int
    broken_by: Mapping[str, int]
    steps: StepCounts
    success: Share | None
    good: Share | None
    sessions_s: SessionRate | None
    goodput_s: SessionRate | None
    duration_ms: Stats | None
    ttft_ms: Stats | None
    last_answer_ms: Stats | None
    time: TimeShares | None
    path_steps: Stats | None
    steps_per_session: Stats | None
    first_input_tokens: Stats | None
    last_input_tokens: Stats | None
    context_growth: Stats | None
    reuse: PrefixReuse | None
    reused_tokens: ReusedTokens | None
    by_position: tuple[StepGroup, ...]
    by_agent: tuple[StepGroup, ...]
    block_tokens: int = BLOCK
    block_stated: bool = False


def agent_sessions(
    runs: SessionRuns, samples: Samples, window: Window, block_tokens: int | None = None
) -> AgentSessions:
    """Measure the sessions of a record. `samples`: its own; `window`: of its measurement; `block_tokens`: of the engine's
    prefix cache, if that is known."""
    ended = _Ended(runs, samples)
    finished = ended.finished
    times = session_times(runs, finished)
    reuse = reuse_of(runs, samples, block_tokens or BLOCK)
    steady = _steady(window)
    duration = times.wall_ns / NS_PER_MS
    wait = samples.wait_ms * float(times.depth.mean()) if len(times.depth) else 0.0
    first, last = ended.first_and_last_prompt()
    every = np.ones(len(runs.row), np.bool_)

    def timed(values: Floats) -> Stats | None:
        return describe(values, samples.states, wait)

    return AgentSessions(
        begun=len(runs),
        finished=int(finished.sum()),
        broken=int(ended.broken.sum()),
        cut=int((~finished & ~ended.broken).sum()),
        broken_by=ended.broken_by(),
        steps=_counts(runs),
        success=ended.share(finished),
        good=None if ended.good is None else ended.share(ended.good),
        sessions_s=_rate(ended.end_ns[finished], duration, steady, samples),
        goodput_s=None if ended.good is None else _rate(ended.end_ns[ended.good], duration, steady, samples),
        duration_ms=timed(duration),
        ttft_ms=timed(ended.first_visible_ms()),
        last_answer_ms=timed(ended.last_answer_ms()),
        time=_time(times),
        path_steps=describe(times.depth.astype(np.float64)),
        steps_per_session=describe(np.diff(runs.offsets)[finished].astype(np.float64)),
        first_input_tokens=describe(first),
        last_input_tokens=describe(last),
        context_growth=describe(last - first),
        reuse=_prefix_reuse(runs, reuse, every),
        reused_tokens=_reused(reuse),
        by_position=_by_position(runs, samples, reuse),
        by_agent=_by_agent(runs, samples, reuse),
        block_tokens=block_tokens or BLOCK,
        block_stated=block_tokens is not None,
    )


class _Ended:
    """What became of each run of a session; entries by run."""

    def __init__(self, runs: SessionRuns, samples: Samples) -> None:
        self._runs, self._samples = runs, samples
        self._sample = sample_of(runs, samples)
        sizes = np.diff(runs.offsets)
        self._count = len(sizes)
        self.finished: Mask = self._sums(runs.ok) == sizes
        self.broken: Mask = self._sums(runs.sent & ~runs.ok) > 0
        self.end_ns: Ints = np.maximum.reduceat(runs.end_ns, runs.offsets[:-1]) if self._count else sizes
        met = meets_objectives(samples)
        self.good: Mask | None = None
        if met is not None:
            missed = self._sample >= 0
            missed[missed] = ~met[self._sample[missed]]
            self.good = self.finished & (self._sums(missed) == 0)

    def _sums(self, these: Mask) -> Ints:
        return np.bincount(self._runs.run[these], minlength=self._count)

    def share(self, these: Mask) -> Share | None:
        """Of the sessions that ended, by themselves or with a failure, in order of their ends, with Wilson's interval."""
        over = np.flatnonzero(self.finished | self.broken)
        if not len(over):
            return None
        hits = these[over[np.argsort(self.end_ns[over], kind="stable")]].astype(np.float64)
        series = binned(hits)
        effective = len(hits) * min(1.0, effective_size(series) / len(series))
        return Share(float(hits.mean()), share_interval(float(hits.sum()), len(hits), effective))

    def broken_by(self) -> dict[str, int]:
        """The outcome of the first failed step of each broken session, and how often."""
        runs, outcome = self._runs, self._runs.record.outcome
        failed = np.flatnonzero(runs.sent & ~runs.ok)
        order = failed[np.lexsort((runs.end_ns[failed], runs.run[failed]))]
        _, first = np.unique(runs.run[order], return_index=True)
        chosen_rows = np.zeros(len(runs.record), np.bool_)
        chosen_rows[runs.row[order[first]]] = True
        return outcome.counts(chosen_rows)

    def _since_start_ms(self, instants: Ints, entries: Ints) -> Floats:
        begun: Floats = (instants - self._runs.start_ns[self._runs.run[entries]]) / NS_PER_MS
        return begun

    def _visible(self) -> Ints:
        """Entries of finished sessions whose answers go to the user."""
        runs = self._runs
        return np.flatnonzero(self.finished[runs.run] & runs.graph.visible[runs.place])

    def first_visible_ms(self) -> Floats:
        """From each finished session's start to the first answer content that its user would see, reasoning and tool calls left
        aside; NaN: none, or not streamed."""
        entries = self._visible()
        sample = self._sample[entries]
        submitted = self._samples.record.t_submit.values[self._runs.row[entries]]
        waited = self._since_start_ms(submitted, entries) + self._samples.ttfo[sample]
        found = np.full(self._count, np.inf)
        np.fmin.at(found, self._runs.run[entries], waited)
        return np.where(np.isinf(found), np.nan, found)[self.finished]

    def last_answer_ms(self) -> Floats:
        """From each finished session's start to the end of the last answer that its user would see; NaN: none."""
        entries = self._visible()
        waited = self._since_start_ms(self._samples.last_text_ns[self._sample[entries]], entries)
        found = np.full(self._count, -np.inf)
        np.fmax.at(found, self._runs.run[entries], waited)
        return np.where(np.isinf(found), np.nan, found)[self.finished]

    def first_and_last_prompt(self) -> tuple[Floats, Floats]:
        """Prompt tokens of the first and the last step of each finished session."""
        prompt, offsets = _prompt_tokens(self._samples), self._runs.offsets
        first, last = (self._sample[at[self.finished]] for at in (offsets[:-1], offsets[1:] - 1))
        return prompt[first], prompt[last]


def _prompt_tokens(samples: Samples) -> Floats:
    """Of each sample by the server's usage, or as sent where that says nothing; NaN where neither is known."""
    server, sent = samples.counts.server_input, samples.record.input_tokens[samples.rows]
    return np.where(np.isnan(server), sent, server)


def _counts(runs: SessionRuns) -> StepCounts:
    skipped = runs.skipped
    return StepCounts(
        planned=len(runs.row),
        sent=int(runs.sent.sum()),
        succeeded=int(runs.ok.sum()),
        skipped=int(skipped.sum()),
        unsent=int((~runs.sent & ~skipped).sum()),
    )


def _steady(window: Window) -> Span | None:
    if window.start_ns is None or window.steady_start_s is None or window.steady_end_s is None:
        return None
    ends = (window.start_ns + round(at * NS_PER_S) for at in (window.steady_start_s, window.steady_end_s))
    return Span(*ends)


def _rate(at: Ints, duration: Floats, steady: Span | None, samples: Samples) -> SessionRate | None:
    """Sessions that ended within the steady span, per second; the interval by batch means of five long sessions and more."""
    if steady is None or steady.seconds <= 0:
        return None
    long_s = percentile(np.sort(duration), 0.9) / 1_000 if len(duration) else 0.0
    found = rate_interval(at, np.ones(len(at)), steady, long_s, samples.states.count)
    return SessionRate(float(within(at, steady).sum()) / steady.seconds, found)


def _time(times: SessionTimes) -> TimeShares | None:
    wall = times.wall_ns.astype(np.float64)
    if not wall.sum():
        return None
    return TimeShares(*(_ratio(times.parts_ns[:, at].astype(np.float64), wall) for at in range(len(PARTS))))


def _ratio(part: Floats, whole: Floats) -> Share:
    """A sum over another, of one value each a session in order of their starts; the interval by the grouped jackknife."""

    def figures(kept: Sequence[Ints]) -> dict[str, float | None]:
        total = float(whole[kept[0]].sum())
        return {"share": float(part[kept[0]].sum()) / total if total else None}

    found = jackknife_intervals([len(whole)], figures).get("share")
    value = float(part.sum()) / float(whole.sum())
    return Share(value, None if found is None else (max(found[0], 0.0), min(found[1], 1.0)))


def _prefix_reuse(runs: SessionRuns, reuse: Reuse, these: Mask) -> PrefixReuse | None:
    """Of `these` entries; None where the server told of none of them."""
    told = these & reuse.told
    which, run = np.unique(runs.run[told], return_inverse=True)
    if not len(which) or not reuse.prompt[told].sum():
        return None

    def of_each(values: Floats) -> Floats:
        return np.bincount(run, values[told]).astype(np.float64)

    prompt = of_each(reuse.prompt)
    return PrefixReuse(
        steps=int(told.sum()),
        cached=_ratio(of_each(reuse.cached), prompt),
        possible=_ratio(of_each(reuse.possible), prompt),
        best=_ratio(of_each(reuse.best), prompt),
        seen=_ratio(of_each(reuse.seen), prompt),
    )


def _reused(reuse: Reuse) -> ReusedTokens | None:
    told = reuse.told
    if not told.any():
        return None
    first = told & ~reuse.extending
    beyond = np.maximum(reuse.cached - reuse.possible - TEMPLATE_TOKENS, 0.0)
    return ReusedTokens(
        prompt=float(reuse.prompt[told].sum()),
        best=float(reuse.best[told].sum()),
        found=float(np.minimum(reuse.cached, reuse.best)[told].sum()),
        first_prompt=float(reuse.prompt[first].sum()),
        first_cached=float(reuse.cached[first].sum()),
        beyond=float(beyond[told].sum()),
    )


def _by_position(runs: SessionRuns, samples: Samples, reuse: Reuse) -> tuple[StepGroup, ...]:
    position = np.minimum(runs.graph.step[runs.place], MOST_POSITIONS - 1)
    highest = int(position.max()) + 1 if len(position) else 0
    return tuple(_group(runs, samples, reuse, position == at, position=at + 1) for at in range(highest))


def _by_agent(runs: SessionRuns, samples: Samples, reuse: Reuse) -> tuple[StepGroup, ...]:
    """Those with the most steps by name, in the order of the file; empty where no step names its agent."""
    agents = runs.graph.agents
    code = agents.codes[runs.place]
    if not (code >= 0).any():
        return ()
    tally = np.bincount(code[code >= 0], minlength=len(agents.names))
    named = sorted(np.argsort(-tally, kind="stable")[:MOST_AGENTS].tolist())
    groups = [(agents.names[one], code == one) for one in named if tally[one]]
    rest = (code >= 0) & ~np.isin(code, named)
    groups += [(REST, rest)] if rest.any() else []
    groups += [(UNNAMED, code < 0)] if (code < 0).any() else []
    return tuple(_group(runs, samples, reuse, these, agent=name) for name, these in groups)


def _group(
    runs: SessionRuns,
    samples: Samples,
    reuse: Reuse,
    these: Mask,
    *,
    position: int | None = None,
    agent: str | None = None,
) -> StepGroup:
    entries = np.flatnonzero(these & runs.ok)
    sample = sample_of(runs, samples)[entries]
    session = runs.run[entries]

    def of_steps(values: Floats, wait: float = 0.0) -> Stats | None:
        return describe_in_groups(values[sample], session, samples.states, wait)

    return StepGroup(
        position=position,
        and_later=position == MOST_POSITIONS,
        agent=agent,
        sent=int((these & runs.sent).sum()),
        completed=len(entries),
        ttft_ms=of_steps(samples.ttft, samples.wait_ms),
        itl_ms=_gaps(samples, sample, session),
        e2e_ms=of_steps(samples.e2e, samples.wait_ms),
        input_tokens=of_steps(_prompt_tokens(samples)),
        reuse=_prefix_reuse(runs, reuse, these),
    )


def _gaps(samples: Samples, sample: Ints, session: Ints) -> Stats | None:
    """Of the gaps between the tokens of these samples, pooled; None where events hold several tokens each."""
    if not samples.streamed or samples.itl_method != "direct" or not len(sample):
        return None
    sizes = np.diff(samples.gap_offsets)
    mine, group = np.zeros(len(samples), np.bool_), np.zeros(len(samples), np.int64)
    mine[sample], group[sample] = True, session
    values = chosen(samples.gaps, np.repeat(mine, sizes))
    return describe_in_groups(values, np.repeat(group[mine], sizes[mine]), samples.states)
