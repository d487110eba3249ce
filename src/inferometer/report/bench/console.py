"""A benchmark in a terminal or a pipe: engines beside each other, prompts, the order, and what else to know."""

from __future__ import annotations

from rich.console import Console

from inferometer.documents.bench import Bench, EngineResult, Figure, Remark
from inferometer.report.bench import contents
from inferometer.report.bench.remarks import worded
from inferometer.report.figures import clean, figure, share
from inferometer.report.tables import VERDICT_STYLES, Screen

_ENDED = {"failed": "FAILED", "interrupted": "INTERRUPTED", "refused": "REFUSED"}


def render(document: Bench, console: Console, file: str | None = None) -> None:
    """Print the benchmark. `file`: where bench.html lies."""
    screen = Screen(console, most=100)
    protocol = document.protocol
    screen.say("")
    screen.say(
        f"{len(document.engines)} engine{'' if len(document.engines) == 1 else 's'}, {protocol.runs} runs of "
        f"{', '.join(protocol.prompts)}; one request at a time, temperature {protocol.temperature:g}."
    )
    if protocol.sized_by is not None:
        screen.say(f"Context fills were sized in tokens by {clean(protocol.sized_by)}.")
    screen.say("")
    _engines(document, screen)
    screen.say("")
    _prompts(document, screen)
    for order in contents.orders(document):
        _order(order, screen)
    _remarks(document, screen)
    screen.say("")
    screen.say(document.status, VERDICT_STYLES[document.status])
    if file is not None:
        screen.path("Report", file)


def _engines(document: Bench, screen: Screen) -> None:
    rows: list[tuple[str, ...]] = [
        (
            clean(one.label),
            _with_interval(one.tok_per_sec),
            _mean(one),
            _stability(one),
            _middle(one.ttft_client_ms),
            _server_ttft(one),
            one.status if one.ended == "measured" and one.status else _ENDED.get(one.ended, "-"),
        )
        for one in document.engines
    ]
    head = ["engine", "tokens/s (95 %)", "mean ± sd", "CV", "TTFT, ms", "server's", "verdict"]
    rank = [0, 1, 4, 6, 3, 2, 5]
    if any(one.answers for one in document.engines):
        head.append("answers")
        rows = [(*row, _answers(one)) for row, one in zip(rows, document.engines, strict=True)]
        rank.insert(4, 7)
    screen.table(head, rows, rank=rank)
    screen.say(
        "Speed and TTFT are medians; the interval is that of the mean. TTFT is the client's; the server's is its own time for "
        "the prompt and is not to be compared with another engine's.",
        "dim",
    )


def _answers(one: EngineResult) -> str:
    """The share of words in common, and what is wrong with answers."""
    shares = [check.overlap for check in one.answers if check.overlap is not None]
    faults = {
        "short": sum(check.early_stops for check in one.answers),
        "loop": sum(check.loops for check in one.answers),
    }
    words = [share(sum(shares) / len(shares))] if shares else []
    words += [f"{number} {name}" for name, number in faults.items() if number]
    return ", ".join(words) or "-"


def _mean(one: EngineResult) -> str:
    if one.tok_per_sec is None or one.tok_per_sec.mean is None:
        return "-"
    spread = None if one.spread is None else one.spread.bessel
    return figure(one.tok_per_sec.mean) + ("" if spread is None else f" ±{figure(spread, 2)}")


def _stability(one: EngineResult) -> str:
    spread = one.spread
    return "-" if spread is None or spread.cv is None else f"{share(spread.cv)} {spread.stability}"


def _server_ttft(one: EngineResult) -> str:
    own = sorted(
        sample.ttft_ms
        for sample in one.samples
        if sample.ttft_source == "server" and sample.ttft_ms is not None and sample.discarded is None
    )
    return figure(own[len(own) // 2]) if own else "-"


def _middle(shown: Figure | None) -> str:
    return "-" if shown is None or shown.median is None else figure(shown.median)


def _with_interval(shown: Figure | None) -> str:
    if shown is None or shown.ci95 is None:
        return _middle(shown)
    return f"{_middle(shown)} ({figure(shown.ci95[0])} to {figure(shown.ci95[1])})"


def _prompts(document: Bench, screen: Screen) -> None:
    """Speed and TTFT of each prompt, engines beside each other."""
    engines = [one for one in document.engines if one.prompts]
    if not engines:
        return
    names = [name for name in document.protocol.prompts if any(_of(one, name) for one in engines)]
    rows = [(name, *(_of(one, name) for one in engines)) for name in names]
    head = ("tokens/s, TTFT in ms", *(clean(one.label) for one in engines))
    screen.table(head, rows, cut=False)


def _of(one: EngineResult, name: str) -> str:
    mine = next((prompt for prompt in one.prompts if prompt.prompt == name), None)
    return "" if mine is None else f"{_middle(mine.tok_per_sec)}, {_middle(mine.ttft_client_ms)}"


def _order(order: contents.Order, screen: Screen) -> None:
    screen.say("")
    screen.say("; ".join(order.places) or "none", first=f"{order.title}: ")
    for reason in order.reasons:
        screen.say(reason, "dim", first="  ")


def _remarks(document: Bench, screen: Screen) -> None:
    lines: list[tuple[str | None, Remark]] = [(None, remark) for remark in document.remarks]
    lines += [(one.label, remark) for one in document.engines for remark in one.remarks]
    if lines or any(one.reasons for one in document.engines):
        screen.say("")
    for label, remark in lines:
        screen.say(worded(remark) + ".", first="NOTE  " if label is None else f"{clean(label)}: ")
    for one in document.engines:
        if one.reasons:
            screen.say(
                f"{', '.join(one.reasons)}.", first=f"{clean(one.label)}: {one.status or 'no verdict'} by "
            )
