"""The checks of lengths: were prompts and answers as long as requested, and who says so?"""

from __future__ import annotations

from inferometer.documents.verdict import CheckStatus
from inferometer.documents.workload import TokenizerFacts
from inferometer.judge.verdict import Check, Facts
from inferometer.measure.lengths import PROMPT_MISS, Lengths
from inferometer.measure.measurement import Measurement
from inferometer.measure.tokens import CountSource
from inferometer.plan.schema import Plan
from inferometer.plan.workload import AnyRows

LENGTH_MISSES = 0.05
"""One request in twenty of another length moves means by less than the intervals are wide."""

PROMPT_GROWN = 0.8
"""Tokenizers and texts differ by a few per cent between short and long prompts, not by a fifth."""

FEWER_TOKENS = (0.25, 0.5)
"""No tokenizer makes one token of four of another's in a text, and hardly any one of two."""


def _within(value: float, limit: float) -> CheckStatus:
    return "pass" if value <= limit else "fail"


def inside(code: str) -> Check:
    """A check of lengths that does not apply to a compound system: what it makes of a task is inside its boundary (draft
    4.1.3), and its usage counts that."""
    fact = "against" if code == "token_counts" else "judged_by"
    return Check(code, "na", None, LENGTH_MISSES, facts={fact: "inside"})


def prompt_length(plan: Plan, measurement: Measurement, tokenizer: TokenizerFacts) -> Check:
    """Share of prompts not as long as asked; of those sized by a learned ratio, by how much their mean is off. Where the
    server's counts cannot say it, whether they are those of prompts that were read to their end (measure/truncation.py).

    Our own count acquits nobody where the figures are to be in the server's tokens: without its counts it is unsure, and a
    yardstick that differs from them is noted. Usage that was found to be no count of prompts, or that the server's /tokenize
    contradicts, acquits nobody either.
    """
    if measurement.tokens.system is not None:
        return inside("prompt_length")
    prompt = measurement.tokens.prompt
    facts: Facts = {
        "grown_share": prompt.grown,
        "counted_share": prompt.counted_share,
        "piled_share": prompt.piled,
    }
    check = _length("prompt_length", prompt, facts)
    if prompt.judged_by == "mean":
        check = _mean_length(prompt, check)
    native = plan.tokenizer.method == "native" and not isinstance(plan.workload, AnyRows)
    if native and check.status == "pass" and not prompt.by_server:
        check = _own_word(prompt, check)
    if check.status != "fail":
        check = _cut(prompt, check)
    disputed = None if tokenizer.learned is None else tokenizer.learned.disputed
    # That chance explains a mean of disputed counts leaves the dispute as what is to be settled: more prompts would not do it.
    by_chance = (check.status, check.facts.get("judged_by")) == ("unsure", "mean")
    if (check.status in ("pass", "note") or by_chance) and (tokenizer.unsound or disputed is not None):
        off = None if disputed is None else abs(disputed - 1)
        facts = check.facts | {"judged_by": "usage" if disputed is None else "dispute"}
        return Check(check.code, "unsure", off, PROMPT_MISS[1], facts=facts)
    return check


def _cut(prompt: Lengths, check: Check) -> Check:
    """The check that lengths passed, or what says that the server does not read prompts to their end."""
    if prompt.grown is not None and prompt.grown < PROMPT_GROWN:
        facts = check.facts | {"judged_by": "growth"}
        return Check(check.code, "fail", prompt.grown, PROMPT_GROWN, facts=facts)
    few = prompt.counted_share
    if few is not None and few < FEWER_TOKENS[1]:
        limit = FEWER_TOKENS[0] if few < FEWER_TOKENS[0] else FEWER_TOKENS[1]
        status: CheckStatus = "fail" if few < FEWER_TOKENS[0] else "unsure"
        return Check(check.code, status, few, limit, facts=check.facts | {"judged_by": "count"})
    if prompt.piled is not None and prompt.piled > LENGTH_MISSES:
        # Counts below what was sent are cut; above, a hidden prompt of constant length would look the same.
        status = "fail" if few is not None and few < 1 else "unsure"
        facts = check.facts | {"judged_by": "pile"}
        return Check(check.code, status, prompt.piled, LENGTH_MISSES, facts=facts)
    return check


def _mean_length(prompt: Lengths, check: Check) -> Check:
    """The same tolerance as each prompt's, of their mean. Beyond it, but within the chance of as many prompts, it is unsure."""
    asked, counted = prompt.asked_mean, prompt.judged_mean
    facts = check.facts | {"judged_by": "mean"}
    if not asked or counted is None:
        facts = check.facts | {"judged_by": "client"}
        return Check(check.code, "unsure", None, PROMPT_MISS[1], facts=facts)
    limit = max(PROMPT_MISS[1], PROMPT_MISS[0] / asked)
    off = abs(counted - asked) / asked
    status = _within(off, limit)
    if status == "fail" and prompt.chance is not None and off - prompt.chance / asked <= limit:
        status = "unsure"
    return Check(check.code, status, off, limit, facts=facts)


def _own_word(prompt: Lengths, check: Check) -> Check:
    """A check that our own count passed."""
    asked, server = prompt.asked_mean, prompt.server_mean
    if server is None:
        facts = check.facts | {"judged_by": "client"}
        return Check(check.code, "unsure", None, check.limit, facts=facts)
    if asked and abs(server - asked) > max(PROMPT_MISS[0], PROMPT_MISS[1] * asked):
        facts = check.facts | {"judged_by": "yardstick"}
        return Check(check.code, "note", abs(server - asked) / asked, PROMPT_MISS[1], facts=facts)
    return check


def output_length(measurement: Measurement, *, native: bool) -> Check:
    """Share of outputs not as long as asked. A tokenizer that is not the model's can acquit, not convict."""
    tokens = measurement.tokens
    if tokens.system is not None:
        return inside("output_length")
    by_server = tokens.output.by_server
    judge = str(CountSource.SERVER) if by_server * 2 >= tokens.output.judged > 0 else tokens.count_source
    facts = {"finish_reasons": dict(measurement.requests.finish_reasons), "count_source": judge}
    check = _length("output_length", tokens.output, facts)
    trusted = by_server + (tokens.by_source.get(CountSource.TOKENIZER, 0) if native else 0)
    if check.status == "fail" and trusted * 2 < tokens.output.judged:
        return Check(check.code, "unsure", check.value, check.limit, check.unit, check.facts)
    if check.status == "pass" and tokens.output.unsupported > LENGTH_MISSES * tokens.output.judged:
        share = tokens.output.unsupported / tokens.output.judged
        facts = check.facts | {"judged_by": "text", "local_mean": tokens.output.local_mean}
        return Check(check.code, "unsure", share, LENGTH_MISSES, facts=facts)
    if check.status == "pass" and tokens.output.capped > LENGTH_MISSES * tokens.output.judged:
        share = tokens.output.capped / tokens.output.judged
        return Check(check.code, "unsure", share, LENGTH_MISSES, facts=check.facts | {"judged_by": "capped"})
    return check


def _length(code: str, lengths: Lengths, extra: Facts) -> Check:
    facts = {
        **extra,
        "asked_mean": lengths.asked_mean,
        "counted_mean": lengths.judged_mean,
        "server_mean": lengths.server_mean,
        "misses": lengths.misses,
        "judged": lengths.judged,
    }
    if lengths.judged == 0:
        return Check(code, "na", None, LENGTH_MISSES, facts=facts)
    share = lengths.misses / lengths.judged
    return Check(code, _within(share, LENGTH_MISSES), share, LENGTH_MISSES, facts=facts)
