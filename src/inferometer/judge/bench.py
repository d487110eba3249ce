"""Whether an engine's figures in a benchmark can be relied on, and which engine is ahead of which.

| reason           | when                                                                         | makes the result |
| ---------------- | ---------------------------------------------------------------------------- | ---------------- |
| a check's code   | it failed, or is unsure, in the engine's run, and says whether numbers are right | as in the run |
| `nothing_counts` | no generation is left for statistics                                         | INCONCLUSIVE     |
| `no_interval`    | a prompt has a single generation, or none: nothing tells how much it varies  | INCONCLUSIVE     |
| `not_finished`   | the engine's turn did not come to its end                                    | INCONCLUSIVE     |
| `clocks_differ`  | the engine's own durations are not those of the client's clock               | INCONCLUSIVE     |
| `early_text`     | in every run of a prompt, the next text came far later than the first        | INCONCLUSIVE     |
| `faster_later`   | all later runs of a prompt are twice as fast as the first, or more           | INCONCLUSIVE     |
| `held_back`      | the first text came long after a whole answer of one token would have ended  | INCONCLUSIVE     |
| `answers_repeated` | all runs of a prompt were twice as fast as an answer to a new text, or more | INCONCLUSIVE     |

What else a run's verdict is about (too few requests for a P99, a server that grows slower) is no figure of a benchmark, or has
its own rule there (drift). A benchmark states TTFT, total and speed of whole answers, and no gap between two tokens:

| check         | does not count                                                                                   |
| ------------- | ------------------------------------------------------------------------------------------------ |
| `error_bound` | if all headlines beyond their limit are gaps between tokens, or rates of the whole run              |
| `receive_lag` | if it counts gaps lost to late reading: what that does to the figures stated, `error_bound` bounds   |
| `streamed`    | if it is unsure because few answers were judged, none of which was held back                         |

An engine is ahead of another if its median is better and its interval lies entirely on that side of the other's. Otherwise
they tie. Who ties with an engine shares its place, and so do all between them.

| reason          | a pair of neighbours                                                                                |
| --------------- | --------------------------------------------------------------------------------------------------- |
| `ahead`         | the first is ahead                                                                                  |
| `ahead_within`  | the first is ahead, yet both tie with another, and so share a place                                  |
| `overlap`       | they tie: their intervals overlap                                                                   |
| `opposite`      | they tie: the first has the better median, and the second's interval lies entirely on the better side |

| has no place            | why                                                                                          |
| ----------------------- | -------------------------------------------------------------------------------------------- |
| an INVALID result       | its figures must not be relied on, so they stand neither before nor behind another's          |
| not measured to its end | what is missing might have changed it                                                         |
| an estimate of tokens   | by speed alone: it may be 25 % off                                                            |
| no interval             | it would tie with every engine, and through it engines that are apart would tie               |

An INCONCLUSIVE result with an interval keeps its place, with a remark: its figures may be right, and nothing better is known.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from inferometer.documents.bench import EngineResult, Figure, Rank, Ranking, Remark
from inferometer.documents.summary import Summary
from inferometer.documents.verdict import CheckResult, RunStatus
from inferometer.judge.judge import OF_THE_INSTRUMENT
from inferometer.judge.procedure_verdict import worst
from inferometer.measure.bench_metrics import pooled

Ranked = Literal["tok_per_sec", "ttft_client_ms"]
HIGHER_IS_BETTER: dict[Ranked, bool] = {"tok_per_sec": True, "ttft_client_ms": False}
CACHED_SHARE = 0.5
"""Of a prompt's tokens: from here on its TTFT is that of a cache, which a reader should know."""
CONTRADICTIONS = ("clocks_differ", "early_text", "faster_later", "held_back", "answers_repeated")
"""Remarks that make a result INCONCLUSIVE (measure/generation_checks.py)."""
STATED = ("ttft_ms", "e2e_ms", "tpot_ms")
"""Headlines of a run that a benchmark states too: TPOT is what a speed is the inverse of."""
_Rated = tuple[EngineResult, Figure, float]
"""An engine, its figure over the prompts that count, and the median of that."""


def figure(by_prompt: Mapping[str, Sequence[float]]) -> Figure:
    """A figure over the values of each prompt."""
    values = [value for group in by_prompt.values() for value in group]
    if not values:
        return Figure(0, None, None, None, None, None)
    over = pooled(by_prompt)
    return Figure(
        n=len(values),
        median=statistics.median(values),
        mean=over.mean,
        min=min(values),
        max=max(values),
        ci95=over.ci95,
    )


def verdict(
    summary: Summary | None,
    by_prompt: Mapping[str, Sequence[float]],
    remarks: Iterable[str] = (),
    *,
    finished: bool,
) -> tuple[RunStatus, tuple[str, ...]]:
    """Whether to rely on an engine's figures. `by_prompt`: the speeds that count, of every prompt that was to be measured;
    `remarks`: the codes of what was found."""
    found = of_the_run(summary)
    found.update((code, "INCONCLUSIVE") for code in remarks if code in CONTRADICTIONS)
    if not any(by_prompt.values()):
        found["nothing_counts"] = "INCONCLUSIVE"
    elif any(len(values) < 2 for values in by_prompt.values()):
        found["no_interval"] = "INCONCLUSIVE"
    if not finished:
        found["not_finished"] = "INCONCLUSIVE"
    return worst(found.values()), tuple(sorted(found, key=lambda code: found[code] != "INVALID"))


def of_the_run(summary: Summary | None) -> dict[str, RunStatus]:
    """The checks of an engine's run that failed or are unsure, of those that say whether numbers are right."""
    return {} if summary is None else of_the_checks(summary.verdict.checks)


def of_the_checks(checks: Sequence[CheckResult]) -> dict[str, RunStatus]:
    """What they make of a benchmark's result, by code."""
    bounded = any(one.code == "error_bound" and one.status != "na" for one in checks)
    return {
        one.code: "INVALID" if one.status == "fail" else "INCONCLUSIVE"
        for one in checks
        if one.code in OF_THE_INSTRUMENT
        and one.status in ("fail", "unsure")
        and not _of_other_figures(one, bounded=bounded)
    }


def _of_other_figures(check: CheckResult, *, bounded: bool) -> bool:
    """Whether the check is about figures that a benchmark does not state; see the table above."""
    if check.code == "streamed":
        return check.facts.get("of") == "few" and not check.facts.get("held")
    if check.code == "receive_lag":
        return bounded and check.facts.get("source") in ("kernel", "modelled")
    if check.code == "error_bound":
        return not {words.partition(" ")[0] for words in check.facts.get("beyond", STATED)} & set(STATED)
    return False


def overall(engines: Sequence[EngineResult]) -> RunStatus:
    """The status of a whole benchmark; an engine without one leaves it INCONCLUSIVE, and so do no engines."""
    statuses: list[RunStatus] = [one.status or "INCONCLUSIVE" for one in engines]
    return worst(statuses) if statuses else "INCONCLUSIVE"


def ranking(name: Ranked, engines: Sequence[EngineResult]) -> Ranking:
    """The order of the engines whose figures allow one, over the prompts that all of those have samples of."""
    kept, without = _rankable(name, engines)
    prompts = _common(kept)
    rated = [
        (one, shown, shown.median)
        for one in kept
        if (shown := figure_over(one, prompts, name)).median is not None
    ]
    rated.sort(key=lambda entry: entry[2], reverse=HIGHER_IS_BETTER[name])
    groups: list[list[_Rated]] = []
    for entry in rated:
        tied = next((at for at, group in enumerate(groups) if _ties(name, group, entry[1])), len(groups))
        groups[tied:] = [[*(one for group in groups[tied:] for one in group), entry]]
    places, place = [], 1
    for group in groups:
        places.append(Rank(place, tuple(one.label for one, _, _ in group), len(group) > 1))
        place += len(group)
    placed = {one.label for one, _, _ in rated}
    unsure = (one for one, _, _ in rated if one.status == "INCONCLUSIVE")
    return Ranking(
        figure=name,
        prompts=prompts,
        places=tuple(places),
        decided=bool(places),
        reasons=(
            *_reasons(name, groups),
            *(Remark("place_unsure", {"engine": one.label, "why": _by(one)}) for one in unsure),
            *without,
        ),
        left_out=tuple(one.label for one in engines if one.label not in placed),
    )


def _rankable(name: Ranked, engines: Sequence[EngineResult]) -> tuple[list[EngineResult], list[Remark]]:
    """The engines that can have a place, and why others that were measured have none."""
    kept, without = [], []
    for one in engines:
        if one.ended != "measured" or one.tok_per_sec is None:
            continue  # its own remarks say why
        if one.status == "INVALID":
            without.append(Remark("place_invalid", {"engine": one.label, "why": _by(one)}))
        elif name == "tok_per_sec" and _estimated(one):
            without.append(Remark("tokens_not_counted", {"engine": one.label}))
        else:
            kept.append(one)
    while prompts := _common(kept):  # without one of them, the others may have more prompts in common
        bare = [one for one in kept if figure_over(one, prompts, name).ci95 is None]
        if not bare:
            break
        without += (Remark("place_without_interval", {"engine": one.label}) for one in bare)
        kept = [one for one in kept if one not in bare]
    return kept, without


def _by(one: EngineResult) -> str | None:
    return ", ".join(one.reasons) or None


def figure_over(engine: EngineResult, prompts: Sequence[str], name: Ranked) -> Figure:
    """An engine's figure over some of its prompts: what a ranking compares."""
    return figure({prompt: values_of(engine, prompt, name) for prompt in prompts})


def _estimated(engine: EngineResult) -> bool:
    return any(one.tokens_source == "estimate" and one.discarded is None for one in engine.samples)


def _common(engines: Sequence[EngineResult]) -> tuple[str, ...]:
    counting = [{one.prompt for one in engine.samples if one.discarded is None} for engine in engines]
    first = engines[0].prompts if engines else ()
    return tuple(one.prompt for one in first if all(one.prompt in some for some in counting))


def values_of(engine: EngineResult, prompt: str, name: Ranked) -> list[float]:
    """A figure of an engine's generations of a prompt, of those that count."""
    mine = (one for one in engine.samples if one.prompt == prompt and one.discarded is None)
    return [value for value in (getattr(one, name) for one in mine) if value is not None]


def _ties(name: Ranked, group: Sequence[_Rated], later: Figure) -> bool:
    return any(not _ahead(name, one, later) for _, one, _ in group)


def _ahead(name: Ranked, first: Figure, second: Figure) -> bool:
    """Whether the first, whose median is as good or better, is ahead."""
    assert first.ci95 is not None
    assert second.ci95 is not None
    if HIGHER_IS_BETTER[name]:
        return first.ci95[0] > second.ci95[1]
    return first.ci95[1] < second.ci95[0]


def _reasons(name: Ranked, groups: Sequence[Sequence[_Rated]]) -> Iterable[Remark]:
    """Why each pair of neighbours stands so."""
    places = [(entry, at) for at, group in enumerate(groups) for entry in group]
    for (first, before), (second, after) in itertools.pairwise(places):
        share = abs(first[2] / second[2] - 1) if second[2] else None
        facts = {"first": first[0].label, "second": second[0].label, "figure": name, "share": share}
        if _ahead(name, first[1], second[1]):
            yield Remark("ahead" if before != after else "ahead_within", facts)
        else:
            # The better median may go with the worse mean, since prompts weigh alike in the one and not in the other.
            yield Remark("opposite" if _ahead(name, second[1], first[1]) else "overlap", facts)
