"""A sequence of requests in a terminal or a pipe: what it is, its lengths as histograms, and what its prompts share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from rich.console import Console
from rich.text import Text

from inferometer.documents.workload import Lengths
from inferometer.documents.workload_listing import HashCheck, ListedRequests, WorkloadListing
from inferometer.plan.length_histogram import LengthHistogram
from inferometer.report.figures import THIN, ascii_only, clean, figure, share
from inferometer.report.workload import best_hits

_BAR, _BAR_ASCII = "█", "#"
_EIGHTHS = " ▏▎▍▌▋▊▉"
_LONGEST = 60
"""Columns of the longest bar."""
MOST_BARS = 15
_GROUPS = 10
"""Prefixes with a bar of their own."""
WORDS = {
    "rows": ("rows", "its header"),
    "digest": ("header", "it"),
    "fingerprint": ("measured requests", "its header"),
    "report": ("measured requests", "the report"),
}
"""Of each hash that is verified: what it is of, and who says it."""


def render(facts: WorkloadListing, console: Console) -> None:
    """Print it, no line wider than the console, in ASCII where the console knows no other."""
    ascii_ = not console.encoding.lower().startswith("utf")
    for line in lines(facts, console.width, ascii_=ascii_):
        console.print(Text(line), soft_wrap=True)


def lines(facts: WorkloadListing, width: int, *, ascii_: bool) -> list[str]:
    """The lines."""
    text_lines = [*_head(facts, width)]
    text_lines += _lengths("Input tokens asked for", facts.account, "input_tokens", width)
    text_lines += _lengths("Output tokens asked for", facts.account, "output_tokens", width)
    text_lines += ["", *_sharing(facts, width)]
    plain = [line.replace(THIN, " ") for line in text_lines]
    return [
        ascii_only(line.replace(_BAR, _BAR_ASCII).translate(_HALVES)) if ascii_ else line for line in plain
    ]


_HALVES = {ord(part): " " for part in _EIGHTHS}


def _head(facts: WorkloadListing, width: int) -> Iterator[str]:
    based = f" (based on {clean(facts.based_on)})" if facts.based_on else ""
    tokenizer = facts.tokenizer
    version = f" {clean(tokenizer.version)}" if tokenizer.version else ""
    vocabulary = tokenizer.vocab_size
    size = f", {figure(vocabulary)} tokens" if vocabulary is not None else ""
    rows = [
        ("File", clean(facts.name)),
        ("Workload", f"{clean(facts.workload)}{based}, seed {facts.seed}"),
        ("Requests", f"{figure(facts.requests)}, and {figure(facts.warmup)} of warm-up"),
        ("Sent as", f"{facts.prompt_format} to {facts.api}"),
        ("Tokenizer", f"{clean(tokenizer.name)}{version}{size}"),
        *([("Classes", ", ".join(map(clean, facts.classes)))] if facts.classes else []),
    ]
    for name, value in rows:
        yield from _wrapped(f"{name:12}", value, width)
    for name, digest in (("Fingerprint", facts.fingerprint), ("Digest", facts.digest)):
        if digest:  # never wrapped: it is there to be copied
            yield from (name, f"  {digest}")


def _wrapped(first: str, text: str, width: int) -> Iterator[str]:
    """Words behind a heading, further lines under the first; a word that is too long is cut in two."""
    room = max(width - len(first), 10)
    line = ""
    for word in text.split(" "):
        if line and len(line) + 1 + len(word) > room:
            yield first + line
            first, line = " " * len(first), ""
        line = f"{line} {word}" if line else word
        while len(line) > room:
            yield first + line[:room]
            first, line = " " * len(first), line[room:]
    yield first + line


def _lengths(
    title: str, account: ListedRequests, side: Literal["input_tokens", "output_tokens"], width: int
) -> Iterator[str]:
    histogram = account.histograms[side]
    yield ""
    yield from _titled(title, getattr(account, side), histogram, width)
    yield from _histogram(histogram, width)


def _titled(
    title: str, stats: Lengths | None, histogram: LengthHistogram | None, width: int
) -> Iterator[str]:
    title += " (bins grow)" if histogram is not None and histogram.log else ""
    if stats is None:
        yield title
        return
    named = (("P50", stats.p50), ("P95", stats.p95), ("P99", stats.p99))
    points = ", ".join(f"{name} {figure(point, trim=True)}" for name, point in named)
    said = f"mean {figure(stats.mean)}, {points}, {figure(stats.min)} to {figure(stats.max)}"
    yield f"{title}:"
    yield from _wrapped("  ", said, width)


def _histogram(histogram: LengthHistogram | None, width: int) -> Iterator[str]:
    """The lengths asked for in their bins (plan/length_histogram.py), merged until at most MOST_BARS are left."""
    if histogram is None:
        return
    edges, counts = histogram.edges, histogram.counts["asked"]
    step = -(-len(counts) // MOST_BARS)
    parts = range(0, len(counts), step)
    labels = [_range(edges[at], edges[min(at + step, len(counts))] - 1) for at in parts]
    yield from _bars(labels, [sum(counts[at : at + step]) for at in parts], width)


def _range(low: int, high: int) -> str:
    return figure(low) if low == high else f"{figure(low)} to {figure(high)}"


def _bars(labels: Sequence[str], counts: Sequence[int], width: int) -> Iterator[str]:
    """A bar a line: its label, its number, and as long as that is in proportion to the largest."""
    if not counts:
        return
    label, number = max(map(len, labels)), max(len(figure(count)) for count in counts)
    room = max(min(_LONGEST, width - label - number - 6), 1)
    for name, count in zip(labels, counts, strict=True):
        eighths = round(8 * room * count / max(counts))
        bar = _BAR * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")
        yield f"  {name:>{label}}  {figure(count):>{number}}  {bar}".rstrip()


def _sharing(facts: WorkloadListing, width: int) -> Iterator[str]:
    account, tokens = facts.account, facts.tokens
    shared = account.shared
    if shared.requests is None:
        yield from _wrapped("", "What the prompts share was not worked out.", width)
    elif shared.tokens is None:
        yield "No request shares a prefix by wish."
    else:
        said = f"{share(shared.fraction)} of the requests share one, {figure(shared.tokens.mean)} tokens on average"
        yield from _wrapped("Shared prefixes: ", said, width)
        if account.repeated_input_tokens is None:  # else a turn repeats most of what is not shared either
            own = tokens.input_tokens - tokens.shared_input_tokens
            yield "Prompt tokens"
            yield from _bars(["shared", "a request's own"], [tokens.shared_input_tokens, own], width)
        groups = shared.groups
        if groups is not None and len(groups) > 1:
            yield "Requests of each prefix" + (f", the first {_GROUPS}" if len(groups) > _GROUPS else "")
            yield from _bars([str(at + 1) for at in range(len(groups))][:_GROUPS], groups[:_GROUPS], width)
    yield from _wrapped("Best possible prefix hits: ", best_hits(account.prefix_hits), width)


def verified(name: str, checks: Sequence[HashCheck]) -> list[str]:
    """What verifying a file of this name found."""
    lines: list[str] = []
    for one in checks:
        what, who = WORDS[one.what]
        if one.said == one.found:
            lines += [f"same       {what}, as {who} says", f"  {one.found}"]
        else:
            lines += [
                f"DIFFERENT  {what}",
                f"  {'found':16} {one.found}",
                f"  {who + ' says':16} {one.said}",
            ]
    wrong = [one.what for one in checks if one.said != one.found]
    if not wrong:
        ours = ", and the one that the report names" if any(one.what == "report" for one in checks) else ""
        return [*lines, f"{clean(name)} is as it was made{ours}."]
    if wrong == ["report"]:
        return [*lines, f"{clean(name)} is as it was made, but the report is of other requests."]
    return [*lines, f"{clean(name)} is not as it was made."]
