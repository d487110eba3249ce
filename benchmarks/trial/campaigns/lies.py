"""Servers that report what is not so, refuse by length or have another model answer, and switches that do nothing: counts,
lengths, caches, filters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from benchmarks.trial.campaigns.carrying import ENGINE, FIXED, LENGTHS, as_on, asked, said
from benchmarks.trial.campaigns.situation import NO_TRUTH, Situation, Truth
from benchmarks.trial.campaigns.stands import (
    Filtering,
    Inventing,
    Overrunning,
    Rewrite,
    Rewriting,
    SilentAndStuck,
    Stuck,
    cached,
    column,
    naming,
    refusing,
)

COUNTS = ("token_counts", "output_length")
POINTS = 10.0
"""Per cent of TTFT, by which a reduction may be off."""


def counting(factor: float) -> Rewrite:
    """The server reports so many times the output tokens that it made."""
    return column(
        "usage_output", lambda values: [None if one is None else round(factor * one) for one in values]
    )


def _counts() -> Iterator[Situation]:
    family = "counts and lengths"
    wanted = asked("throughput")
    for name, factor in (("twice what was made", 2.0), ("four fifths of what was made", 0.8)):
        yield Situation(
            f"usage {name}, `throughput`", family, partial(said, wanted, partial(Rewriting, ENGINE, counting(factor))),
            as_on(wanted, ENGINE), COUNTS,
        )  # fmt: skip
    longer, shorter = (2.0, "makes twice as many tokens as asked"), (0.5, "makes half of the tokens asked")
    for test, (factor, does) in (
        ("throughput", longer),
        ("throughput", shorter),
        ("itl", longer),
        ("capacity", shorter),
    ):
        fixed = asked(test, flags=FIXED)
        yield Situation(
            f"{does}, `{test}`", family, partial(said, fixed, partial(Overrunning, ENGINE, factor)),
            as_on(fixed, ENGINE), COUNTS,
        )  # fmt: skip


def _caches() -> Iterator[Situation]:
    family = "prefix cache"
    wanted = asked("prefix-cache")
    truths = as_on(wanted, ENGINE, apart=POINTS)
    for state, name in (("enabled", "on though switched off"), ("disabled", "off though switched on")):
        for stand, reports in ((Stuck, ""), (SilentAndStuck, ", cached tokens not reported")):
            yield Situation(
                f"{name}{reports}", family, partial(said, wanted, partial(stand, ENGINE, "prefix_cache", state)),
                truths, ("cache_not_shown",) if reports else ("contradicted",),
            )  # fmt: skip


def _hits() -> Iterator[Situation]:
    """A cache, declared or not, that knows prompts which nobody sent before."""
    fast = replace(ENGINE, prefill_per_token_ns=0.2 * ENGINE.prefill_per_token_ns, prefix_caching=False)
    for test, flags in (("ttft", {}), ("throughput", {}), ("itl", {"--prefix-caching": "disabled"})):
        wanted = asked(test, flags=LENGTHS | flags)
        off = ", declared off" if flags else ""
        yield Situation(
            f"four fifths of every prompt from a cache{off}, `{test}`", "prefix cache",
            partial(said, wanted, partial(Rewriting, fast, cached(0.8))), as_on(wanted, ENGINE),
            ("cache_hits", "contradicted"), quick=test == "ttft",
        )  # fmt: skip


def _no_cache() -> Iterator[Situation]:
    wanted = asked("prefix-cache", parameters=["prefix-cache.requests=400"])
    yield Situation(
        "none at all, half as slow again while off, cached tokens invented", "prefix cache",
        partial(said, wanted, partial(Inventing, ENGINE, 1.5)),
        lambda: {"prefix-cache": Truth(0.0, apart=POINTS)}, ("control_quicker",),
    )  # fmt: skip


def _filters() -> Iterator[Situation]:
    family = "filters"
    wanted = asked("guardrail")
    truths = as_on(wanted, ENGINE)
    for state, name in (("full", "on in the baseline, undisclosed"), ("baseline", "off though switched on")):
        yield Situation(
            name, family, partial(said, wanted, partial(Stuck, ENGINE, "guardrails", state)), truths,
            ("filters_not_shown",),
        )  # fmt: skip
    refusing = replace(ENGINE, refusal_share=0.03)
    yield Situation(
        "on in the baseline, refuses 3 %", family, partial(said, wanted, partial(Stuck, refusing, "guardrails", "full")),
        truths, ("contradicted",),
    )  # fmt: skip


def _refusals() -> Iterator[Situation]:
    """What is refused is refused by its length, so that those answered are other requests."""
    family, wanted = "refusals", asked("ttft", parameters=["ttft.rates=[4]"])
    yield Situation(
        "a policy refuses prompts over 200 tokens, `ttft`", family,
        partial(said, wanted, partial(Rewriting, replace(ENGINE, prefill_per_token_ns=400e3), refusing(200))),
        lambda: {"ttft": NO_TRUTH}, ("failures",),
    )  # fmt: skip
    slow = replace(ENGINE, prefill_per_token_ns=200e3, input_check_ns=100e6)
    filters = asked(
        "guardrail",
        parameters=["guardrail.percent=[25]", "guardrail.duration_s=200", "guardrail.concurrency=16"],
    )
    yield Situation(
        "a filter of 100 ms refuses prompts over 200 tokens", family,
        partial(said, filters, partial(Filtering, slow, refusing(200))), lambda: {"guardrail": Truth(100.0, 0.05)},
    )  # fmt: skip


def _models() -> Iterator[Situation]:
    """Under load a smaller model answers, and every answer says so."""
    for test in ("ttft", "throughput"):
        yield Situation(
            f"every second answer is another model's, `{test}`", "model",
            partial(said, asked(test), partial(Rewriting, ENGINE, naming("a-model", "another"))),
            lambda test=test: {test: NO_TRUTH}, ("answered_as",),  # type: ignore[misc]  # bound here
        )  # fmt: skip


def situations() -> Iterator[Situation]:
    """All of them."""
    for part in (_counts, _caches, _no_cache, _hits, _refusals, _models, _filters):
        yield from part()
