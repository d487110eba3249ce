"""The words for why a run of a test comes now: one entry a code of its step."""

from __future__ import annotations

from collections.abc import Callable

from inferometer.documents.note import Fact
from inferometer.report.fact_words import Words

PER_SECOND = "requests/s"
"""The unit of a rate, unless a note has another (`unit`)."""
REASONS = {
    "longer": "the same for longer: its intervals did not settle it",
    "confirm": "once more, with another seed, to confirm",
}
"""Why a search tries a load that is not simply the next one."""


def _tried(before: str, question: str) -> Callable[..., str]:
    """A level of a search: what it is, and why it comes now."""

    def level(reason: str, **facts: Fact) -> str:
        return f"{before.format_map({'unit': PER_SECOND, **facts})}: {REASONS.get(reason, question)}"

    return level


def _of_closed_loop(concurrency: int, part: str) -> str:
    words = {"confirm": "what the full system does", "reference": "what little load gives"}
    return f"{concurrency} in flight: {words.get(part, 'is the latency within its limit?')}"


def _cache_pass(requests: int, rate: float, configuration: str, unit: str = "requests") -> str:
    often = f"{rate:.4g} a second" if unit == "requests" else f"{rate:.4g} {unit} a second"
    return f"{requests} requests at {often}, {configuration.lower()}"


def _guardrail_level(
    configuration: str, rate: float, seconds: float, percent: float, unit: str = PER_SECOND
) -> str:
    return (
        f"{configuration.lower()}: {rate:.4g} {unit} for {seconds:g} s, "
        f"{percent:g} % of the baseline's saturation"
    )


def _guardrail_throughput(configuration: str, concurrency: int) -> str:
    return f"{configuration.lower()}: throughput with {concurrency} in flight"


STEPS: dict[str, Words] = {
    "warming_up": "warming up, and verifying that it is warm",
    "climb": "{concurrency} in flight: does throughput still rise?",
    "session_length": "{concurrency} in flight: how long do they last, with all their requests?",
    "full_system": "{concurrency} in flight for {seconds:.4g} s: what the full system does",
    "full_again": "{concurrency} in flight once more: does the full system do what it did at first?",
    "reference_level": "{rate:g} {unit} for {seconds:.4g} s: what little load gives",
    "limit_level": "{rate:g} {unit} for {seconds:.4g} s: is the latency within its limit?",
    "rate_level": _tried("{rate:g} {unit} for {seconds:.4g} s", "is this sustained?"),
    "concurrency_level": _of_closed_loop,
    "capacity_pilot": "{requests} requests, {concurrency} in flight: how many make a minute?",
    "capacity_level": _tried("{concurrency} in flight, {requests} requests", "are the criteria met?"),
    "ttft_level": "TTFT of {requests} requests, {level}",
    "itl_level": "gaps of {requests} requests at {percent:g} % of saturation, {rate:.4g} {unit}",
    "tradeoff_level": "{percent:g} % of capacity, {rate:.4g} {unit} for {seconds:g} s",
    "class_alone": "{class} requests alone, {rate:.4g} a second: as many tokens a second as the mix",
    "mix": "the mix for {seconds:.0f} s, {rate:.4g} requests/s: {percent:g} % of saturation",
    "cache_pass": _cache_pass,
    "cache_throughput": "throughput with {concurrency} in flight, cache {caching}",
    "pressure_level": "{concurrency} in flight for {seconds:g} s, {percent:g} % of the capacity",
    "context_level": "{requests} requests of {tokens:,} tokens, {concurrency} in flight",
    "guardrail_level": _guardrail_level,
    "guardrail_throughput": _guardrail_throughput,
    "first_request": "start {start}: the first request",
    "second_request": "start {start}: one more, to compare with",
}
"""Why a run comes now."""
