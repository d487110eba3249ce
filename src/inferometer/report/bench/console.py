"""A benchmark in a terminal or a pipe: engines beside each other, prompts, the order, and what else to know."""

from __future__ import annotations

from rich.cells import cell_len
from rich.console import Console

from inferometer.documents.bench import Bench, EngineResult, Figure, PromptResult, Remark
from inferometer.report.bench import contents
from inferometer.report.bench.names import Names, shortened
from inferometer.report.bench.remarks import reasons, worded
from inferometer.report.figures import clean, figure, share
from inferometer.report.tables import VERDICT_STYLES, Screen


def render(document: Bench, console: Console, file: str | None = None) -> None:
    """Print the benchmark. `file`: where bench.html lies."""
    screen = Screen(console, most=100)
    # Three tenths of a line: beside a name, figures and verdict must find room.
    names = shortened([one.label for one in document.engines], max(screen.width * 3 // 10, 12))
    protocol = document.protocol
    screen.say("")
    screen.say(contents.condition(document))
    if protocol.sized_by is not None:
        screen.say(f"Context fills were sized in tokens by {clean(protocol.sized_by)}.")
    screen.say("")
    _engines(document, names, screen)
    _whole_names(names, screen)
    screen.say("")
    _prompts(document, names, screen)
    for order in contents.orders(document, names):
        _order(order, screen)
    _remarks(document, names, screen)
    screen.say("")
    screen.say(document.status, VERDICT_STYLES[document.status])
    if file is not None:
        screen.path("Report", file)


HEAD = ("engine", "tokens/s", "95 %", "mean ± sd", "CV", "TTFT, ms", "server's", "answers", "verdict")
RANK = (0, 1, 8, 5, 7, 2, 4, 3, 6)
"""Its columns, those that are kept longest first: a figure is never without its verdict."""


def _engines(document: Bench, names: Names, screen: Screen) -> None:
    rows: list[tuple[str, ...]] = [
        (
            names[one.label],
            _middle(one.tok_per_sec),
            contents.span(one.tok_per_sec),
            _mean(one),
            _stability(one),
            _middle(one.ttft_client_ms),
            _server_ttft(one),
            contents.answers(one) or "-",
            contents.verdict(one),
        )
        for one in document.engines
    ]
    kept = [at for at, name in enumerate(HEAD) if name != "answers" or contents.checked(document)]
    screen.table(
        [HEAD[at] for at in kept],
        [[row[at] for at in kept] for row in rows],
        rank=[kept.index(at) for at in RANK if at in kept],
    )
    screen.say(
        "Speed and TTFT are medians; the interval is that of the mean. TTFT is the client's; the server's is its own time for "
        "the prompt and is not to be compared with another engine's.",
        "dim",
    )
    if contents.checked(document):
        screen.say(
            "Answers: words in common with those of the first engine, or of the file, and faults.", "dim"
        )


def _whole_names(names: Names, screen: Screen) -> None:
    """What the names that were shortened stand for."""
    for label, name in names.items():
        if name != clean(label):
            line = f"{name} = {clean(label)}"
            screen.say(line if len(line) <= screen.width else f"{name} =", "dim")
            if len(line) > screen.width:
                screen.say(clean(label), "dim", first="  ")


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


def _prompts(document: Bench, names: Names, screen: Screen) -> None:
    """Speed and TTFT of each prompt: as many engines beside each other as there is room for, the next ones below."""
    found = {
        one.label: {prompt.prompt: _of(prompt) for prompt in one.prompts}
        for one in document.engines
        if one.prompts
    }
    if not found:
        return
    prompts = [name for name in document.protocol.prompts if any(name in one for one in found.values())]
    screen.say("Tokens/s, and client TTFT in ms, by prompt (medians):")
    first = max(map(cell_len, ("prompt", *prompts)))
    waiting = list(found)
    while waiting:
        shown: list[str] = []
        room = screen.width - first
        while waiting:
            room -= 2 + max(
                cell_len(screen.text(one).plain) for one in (names[waiting[0]], *found[waiting[0]].values())
            )
            if shown and room < 0:
                break
            shown.append(waiting.pop(0))
        rows = [(clean(name), *(found[label].get(name, "") for label in shown)) for name in prompts]
        screen.table(("prompt", *(names[label] for label in shown)), rows, cut=False)
        if waiting:
            screen.say("")


def _of(prompt: PromptResult) -> str:
    return f"{_middle(prompt.tok_per_sec)}, {_middle(prompt.ttft_client_ms)}"


def _order(order: contents.Order, screen: Screen) -> None:
    """On one line where that is enough, else a line for each place."""
    screen.say("")
    line = f"{order.title}: {'; '.join(order.places) or 'none'}"
    if len(line) <= screen.width:
        screen.say(line)
    else:
        screen.say(f"{order.title}:")
        for place in order.places:
            number, _, engines = place.partition(" ")
            screen.say(engines, first=f"  {number:3} ")
    for reason in (*order.pairs, *order.reasons):
        screen.say(reason, "dim", first="  ")


def _remarks(document: Bench, names: Names, screen: Screen) -> None:
    lines: list[tuple[str | None, Remark]] = [(None, remark) for remark in document.remarks]
    lines += [(one.label, remark) for one in document.engines for remark in one.remarks]
    if lines or any(one.reasons for one in document.engines):
        screen.say("")
    for label, remark in lines:
        screen.say(worded(remark, names) + ".", first="NOTE  " if label is None else f"{names[label]}: ")
    for one in document.engines:
        if one.reasons:
            status = one.status or "no verdict"
            screen.say(f"{status} ({reasons(one.reasons)}).", first=f"{names[one.label]}: ")
