"""llama.cpp's server, from the README of its tools/server: `/props`, `/slots`, `/v1/models`, the header `Server: llama.cpp`.

A server of one model cannot unload it. A router (`llama-server` without a model) can: `/models/load`, `/models/unload`; its
`/props` has the role `router`, and its models a `status`.
"""

from __future__ import annotations

from inferometer.engines.adapters.adapter import Adapter, Ask, Counters, EngineFacts, Replies, ServedModel
from inferometer.engines.adapters.fields import (
    MODELS,
    Fields,
    body,
    count,
    inner,
    owned_by,
    parameters,
    rows,
    text,
)

_PROPS, _SLOTS = "/props", "/slots"


def _recognise(replies: Replies) -> bool:
    if any(reply.headers.get("server") == "llama.cpp" for reply in replies.values()):
        return True
    props = body(replies, _PROPS)
    own = "default_generation_settings" in props and ("build_info" in props or "total_slots" in props)
    return own or owned_by(replies, "llamacpp")


def _read(replies: Replies) -> EngineFacts:
    props = body(replies, _PROPS)
    build = props.get("build_info")
    found = (_model(row, props, replies) for row in rows(body(replies, MODELS), "data"))
    return EngineFacts(
        "llamacpp",
        text(build),
        "llama.cpp",
        tuple(model for model in found if model is not None),
        manages_models=_router(props),
    )


def _router(props: Fields) -> bool:
    return props.get("role") == "router"


def _model(row: Fields, props: Fields, replies: Replies) -> ServedModel | None:
    name, meta, status = text(row.get("id")), inner(row, "meta"), inner(row, "status").get("value")
    if name is None:
        return None
    return ServedModel(
        name,
        format="gguf",
        quantization=text(meta.get("ftype")) or (None if _router(props) else text(props.get("model_ftype"))),
        parameters=parameters(meta.get("n_params")),
        context=_context(meta, props, replies),
        loaded=status == "loaded" if isinstance(status, str) else None if _router(props) else True,
    )


def _context(meta: Fields, props: Fields, replies: Replies) -> int | None:
    """Of one slot: a request gets no more."""
    reply = replies.get(_SLOTS)
    slots = rows({"slots": reply.body}, "slots") if reply is not None and reply.ok else ()
    settings = inner(props, "default_generation_settings")
    given = (meta.get("n_ctx"), settings.get("n_ctx"), *(slot.get("n_ctx") for slot in slots[:1]))
    return next((length for value in given if (length := count(value))), None)


LLAMACPP = Adapter(
    key="llamacpp",
    title="llama.cpp",
    ports=(8080,),
    processes=(r"^(?!.*\bollama\b).*\bllama-server\b",),
    interface="chat",
    asks=(Ask(_PROPS), Ask(_SLOTS), Ask(MODELS)),
    recognise=_recognise,
    read=_read,
    documentation="https://github.com/ggml-org/llama.cpp/tree/master/tools/server",
    load=lambda name: Ask("/models/load", "POST", {"model": name}),
    unload=lambda name: Ask("/models/unload", "POST", {"model": name}),
    counters=Counters(
        output_tokens="llamacpp:tokens_predicted",
        prompt_tokens="llamacpp:prompt_tokens",
        cached_tokens="llamacpp:prompt_tokens_cached",
        decode_s="llamacpp:tokens_predicted_seconds",
        decode_tok_s="llamacpp:predicted_tokens_seconds",
    ),
    server_timings=True,
    cached_tokens=True,
    imitates=("ollama",),
    tried="real",
    quirks=(
        "It serves one model under any name, unless it is a router; only a router loads and unloads.",
        "It has its counters at `/metrics` only if started with its option metrics.",
        "It counts cached prompt tokens apart from the others in its counters.",
    ),
)
