"""What a detection found, on a terminal or in a pipe: a table of places, one of models, and a sentence for what is odd."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Console

from inferometer.addresses import short
from inferometer.documents.detection import DetectedEndpoint, DetectedModel, Detection, PortProcess
from inferometer.report.figures import ABSENT, clean, figure, size
from inferometer.report.tables import Screen

_SENTENCES = {
    "proxy": "answers as several engines: {others}. It is a proxy in front of them; detect each at its own address",
    "locked": "is an HTTP server that requires a key. Give its URL and --api-key-env",
    "unknown": "is an HTTP server, and no engine that is known",
    "too_large": "answers with more than an engine does, and was not read to the end",
    "not_http": "does not speak HTTP, or only over TLS",
    "hangs": "takes connections and does not answer in time",
    "closed": "closes connections without an answer",
    "refused": "nothing listens there",
    "failed": "cannot be reached",
}
MOST_MODELS = 20
"""Models shown of one engine: those that are loaded first."""
MOST_DIGITS = 19
"""Of a number that is shortened: an adapter reads no more."""


def render(document: Detection, console: Console) -> None:
    """Print it."""
    screen = Screen(console)
    cut: list[str] = []
    engines = [one for one in document.endpoints if one.state == "engine"]
    if engines:
        head = ("address", "engine", "version", "runner", "measure with", "adapter tried on", "process")
        cut = screen.table(
            head, [_row(one) for one in engines], right=[False] * 7, rank=(0, 1, 2, 6, 3, 5, 4)
        )
    models = [(one, model) for one in engines for model in _first(one.models)]
    if models:
        console.print()
        columns = ("address", "model", "loaded", "format", "quantization", "parameters", "context", "memory")
        rows = [_model(one, model) for one, model in models]
        right = [False] * 5 + [True] * 3
        cut += screen.table(columns, rows, right=right, words=1, rank=(0, 1, 2, 4, 7, 3, 6, 5))
    room = [f"Not shown for lack of room: {', '.join(cut)}; --json has all."] if cut else []
    lines = [*room, *_hidden(engines), *(line for one in document.endpoints for line in sentences(one))]
    if lines and engines:
        console.print()
    for line in lines:
        screen.say(line)
    if not document.endpoints:
        ports = ", ".join(map(str, document.ports))
        screen.say(
            f"Nothing listens on these ports of this machine: {ports}. Name others with --ports, or --url."
        )


def _row(one: DetectedEndpoint) -> tuple[str, ...]:
    tried = {"real": "the engine", "documented": "its documentation", None: ABSENT}[one.tried]
    interface = ABSENT if one.interface is None else f"--api {one.interface}"
    known = (clean(text) if text else ABSENT for text in (one.title, one.version, one.runner))
    return (clean(short(one.url)), *known, interface, tried, _processes(one.processes))


def _processes(several: tuple[PortProcess, ...] | None) -> str:
    return ", ".join(f"{clean(one.name)} ({one.pid})" for one in several or ()) or ABSENT


def _first(models: Iterable[DetectedModel]) -> list[DetectedModel]:
    return sorted(models, key=lambda model: not model.loaded)[:MOST_MODELS]


def _model(one: DetectedEndpoint, model: DetectedModel) -> tuple[str, ...]:
    loaded = {True: "yes", False: "no", None: ABSENT}[model.loaded]
    texts = (model.format, model.quantization, _parameters(model.parameters))
    known = (clean(text) if text else ABSENT for text in texts)
    return (
        clean(short(one.url)), clean(model.name), loaded, *known, figure(model.context), size(model.memory_bytes)
    )  # fmt: skip


def _parameters(text: str | None) -> str | None:
    """Their number as engines write it, or in millions or billions where one writes all digits."""
    if text is None or not text.isdecimal() or len(text) > MOST_DIGITS:
        return text
    unit, letter = (1e9, "B") if int(text) >= 10**9 else (1e6, "M")
    return f"{figure(int(text) / unit, 3, trim=True)}{letter}"


def _hidden(engines: Iterable[DetectedEndpoint]) -> Iterator[str]:
    for one in engines:
        if len(one.models) > MOST_MODELS:
            yield (
                f"{clean(short(one.url))}: {MOST_MODELS} of the {len(one.models)} models that were read are shown; --json has "
                "the others. No more than 1,000 are read."
            )


def sentences(one: DetectedEndpoint) -> Iterator[str]:
    """What is odd about one place."""
    place = clean(short(one.url))
    if one.state != "engine":
        yield f"{place}: {_SENTENCES[one.state].format(others=', '.join(one.others))}{_detail(one)}."
    several = one.processes or ()
    if len(several) > 1:
        yield f"{place}: {len(several)} processes listen on this port: {_processes(several)}."
    owners = sorted({process.engine for process in several if process.engine})
    if one.state != "engine" and owners:
        yield f"{place}: the process that listens there is {', '.join(owners)}."


def _detail(one: DetectedEndpoint) -> str:
    if one.detail is None or one.state in ("too_large", "hangs", "closed", "refused", "not_http"):
        return ""
    words = "it calls itself " if one.state in ("unknown", "locked", "proxy") else ""
    return f" ({words}{clean(one.detail)})"
