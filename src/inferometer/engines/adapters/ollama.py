"""Ollama, from its API documentation: `/api/version`, `/api/tags`, `/api/ps`, `/api/show`, `/api/generate`.

A model is loaded by a generation without a prompt, and unloaded by the same with `keep_alive` 0. Ollama's server starts a
process for each loaded model, whose command line names the runner:

| command line                 | runner                                    |
| ---------------------------- | ----------------------------------------- |
| `runner --mlx-engine ...`    | `mlx`                                     |
| `runner --ollama-engine ...` | `ollama`: Ollama's own models, on ggml    |
| `runner ...`, `llama-server` | `llama.cpp`                               |
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from inferometer.engines.adapters.adapter import Adapter, Ask, EngineFacts, Replies, ServedModel
from inferometer.engines.adapters.fields import Fields, body, count, inner, parameters, rows, text, version

_VERSION, _TAGS, _RUNNING, _SHOW, _GENERATE = (
    "/api/version",
    "/api/tags",
    "/api/ps",
    "/api/show",
    "/api/generate",
)
_RUNNER = re.compile(r"\brunner\b(?P<rest>.*)", re.DOTALL)


def runner_of(commands: Sequence[str]) -> str | None:
    """The runner that these command lines show: `mlx`, `ollama` or `llama.cpp`; several are joined; None if none shows."""
    found = {name for name in map(_runner, commands) if name}
    return ", ".join(sorted(found)) or None


def _runner(command: str) -> str | None:
    if "ollama" not in command.lower():
        return None
    if "llama-server" in command:
        return "llama.cpp"
    match = _RUNNER.search(command)
    if match is None:
        return None
    words = match["rest"].split()
    return "mlx" if "--mlx-engine" in words else "ollama" if "--ollama-engine" in words else "llama.cpp"


def _recognise(replies: Replies) -> bool:
    tags = body(replies, _TAGS).get("models", ...)
    return version(replies, _VERSION) is not None and (tags is None or isinstance(tags, list))


def _read(replies: Replies) -> EngineFacts:
    reply = replies.get(_RUNNING)
    asked = reply is not None and reply.ok
    running = {name: row for row in rows(body(replies, _RUNNING), "models") if (name := _name(row))}
    stored = {name: row for row in rows(body(replies, _TAGS), "models") if (name := _name(row))}
    models = tuple(_model(name, row, running.get(name), asked) for name, row in {**running, **stored}.items())
    return EngineFacts("ollama", version(replies, _VERSION), models=models)


def _name(row: Fields) -> str | None:
    return text(row.get("name")) or text(row.get("model"))


def _model(name: str, row: Fields, running: Fields | None, asked: bool) -> ServedModel:
    details, now = inner(row, "details"), running or {}
    return ServedModel(
        name,
        format=text(details.get("format")),
        quantization=text(details.get("quantization_level")),
        parameters=parameters(details.get("parameter_size")),
        context=count(now.get("context_length")),
        memory_bytes=count(now.get("size")),
        accelerator_bytes=count(now.get("size_vram")),
        loaded=running is not None if asked else None,
    )


def _describe(model: ServedModel, replies: Replies) -> ServedModel:
    """`/api/show` has the details too, and of a model that is not loaded the context it was trained for."""
    shown = body(replies, _SHOW)
    details, info = inner(shown, "details"), inner(shown, "model_info")
    lengths = (count(value) for key, value in info.items() if str(key).endswith(".context_length"))
    return replace(
        model,
        format=model.format or text(details.get("format")),
        quantization=model.quantization or text(details.get("quantization_level")),
        parameters=model.parameters or parameters(details.get("parameter_size")),
        context=model.context if model.context is not None else next(lengths, None),
    )


OLLAMA = Adapter(
    key="ollama",
    title="Ollama",
    ports=(11434,),
    processes=(r"\bollama(\.exe)?\s+(serve|runner)\b", r"^(?>.*?\bollama\b).*\bllama-server\b"),
    interface="ollama-generate",
    asks=(Ask(_VERSION), Ask(_TAGS), Ask(_RUNNING)),
    recognise=_recognise,
    read=_read,
    documentation="https://docs.ollama.com/api",
    model_asks=lambda name: (Ask(_SHOW, "POST", {"model": name}),),
    describe=_describe,
    runner_of=runner_of,
    load=lambda name: Ask(_GENERATE, "POST", {"model": name, "stream": False}),
    unload=lambda name: Ask(_GENERATE, "POST", {"model": name, "keep_alive": 0, "stream": False}),
    server_timings=True,
    quirks=(
        "It loads a model at its first request and unloads it after five minutes without one.",
        "It shortens a prompt that exceeds `num_ctx` without an error.",
        "It leaves `prompt_eval_count` out when the whole prompt was cached.",
    ),
)
