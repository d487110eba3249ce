"""The routes by which engines describe themselves, load and unload: the reference server as a counterpart of their adapters.

With `--routes ENGINE` the server answers generations as before and describes itself as that engine's documentation has it.
Routes of other engines and `/inferometer/state` are gone; `/inferometer/truth` stays. It shows that requests and replies of the
documented protocol are understood, and nothing of the engine itself.

| engine         | describes itself at                                  | loads and unloads at                          |
| -------------- | ---------------------------------------------------- | --------------------------------------------- |
| `ollama`       | `/api/version`, `/api/tags`, `/api/ps`               | `/api/generate` (ollama.py)                   |
| `lmstudio`     | `/api/v0/models`, `/api/v1/models`                   | `/api/v1/models/load`, `/api/v1/models/unload` |
| `llamacpp`     | `/props`, `/slots`, `/v1/models`, `Server`           | nothing: as a server of one model             |
| `mlx-lm`       | `/v1/models`, `Server`                               | nothing                                       |
| `vllm-mlx`     | `/v1/models`, `/v1/status`                           | nothing                                       |
| `omlx`         | `/v1/models`, `/v1/models/status`, `/api/status`     | `/v1/models/NAME/load`, `.../unload`          |
| `vllm`         | `/version`, `/v1/models`, `/metrics`                 | nothing                                       |
| `sglang`       | `/get_model_info`, `/get_server_info`, `/v1/models`  | nothing                                       |
| `tgi`          | `/info`, `/v1/models`                                | nothing                                       |
| `tensorrt-llm` | `/version`, `/v1/models`                             | nothing                                       |

A load answers at once; the next generation waits until it is done.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote

import msgspec

from inferometer.protocol.http_request import Request
from inferometer.server.http_reply import JsonObject, Reply
from inferometer.server.openai import ApiError

MODELS = "/v1/models"
_TRUTH = ("/inferometer/truth", "/inferometer/truth/reset")
_COMMON = ("/v1/chat/completions", "/v1/completions", "/health", *_TRUTH)
_OLLAMA = ("/api/generate", "/api/chat", "/api/tags", "/api/ps", "/api/version")
_MEMORY = 1_000_000_000
"""Bytes that the model is said to take where an engine reports that."""

Handler = Callable[[Request], Reply]
Routes = Mapping[str, Mapping[str, Handler]]


@dataclass(frozen=True, slots=True)
class Served:
    """What the routes describe. `limit`: of prompt and answer together, in tokens; `switch` loads the model or unloads it."""

    model: str
    born: int
    limit: Callable[[], int]
    loaded: Callable[[], bool]
    switch: Callable[[bool], None]


@dataclass(frozen=True, slots=True)
class Description:
    """One engine: what it says at each path, the paths kept of the reference server, the calls that load (True) and unload by
    path with the member of their body that names the model, and its header `Server`."""

    at: Callable[[Served], JsonObject]
    kept: tuple[str, ...] = ()
    calls: Callable[[Served], Mapping[str, tuple[bool, str | None]]] = lambda _: {}
    server: bytes | None = None


def _row(served: Served, owner: str | None, **more: object) -> JsonObject:
    owned = {} if owner is None else {"owned_by": owner}
    return {"id": served.model, "object": "model", "created": served.born, **owned, **more}


def _list(*rows: JsonObject) -> JsonObject:
    return {"object": "list", "data": list(rows)}


def _ollama(served: Served) -> JsonObject:
    return {MODELS: _list(_row(served, "library"))}


def _lmstudio(served: Served) -> JsonObject:
    loaded, limit = served.loaded(), served.limit()
    v0 = _row(
        served,
        None,
        type="llm",
        compatibility_type="gguf",
        quantization="Q4_K_M",
        state="loaded" if loaded else "not-loaded",
        max_context_length=limit,
    )
    v1 = {
        "type": "llm",
        "key": served.model,
        "format": "gguf",
        "quantization": {"name": "Q4_K_M", "bits_per_weight": 4},
        "params_string": "1B",
        "max_context_length": limit,
        "loaded_instances": [{"id": served.model, "config": {"context_length": limit}}] if loaded else [],
    }
    return {
        "/api/v0/models": _list(v0),
        "/api/v1/models": {"models": [v1]},
        MODELS: _list(_row(served, "organization_owner")),
    }


def _llamacpp(served: Served) -> JsonObject:
    limit = served.limit()
    meta = {"n_ctx": limit, "n_params": 1_000_000_000, "size": _MEMORY}
    return {
        "/props": {
            "default_generation_settings": {"n_ctx": limit},
            "total_slots": 1,
            "model_path": "/models/reference.gguf",
            "build_info": "b1-reference",
        },
        "/slots": [{"id": 0, "n_ctx": limit, "is_processing": False}],
        MODELS: _list(_row(served, "llamacpp", meta=meta)),
    }


def _mlx_lm(served: Served) -> JsonObject:
    return {MODELS: _list(_row(served, None))}


def _vllm_mlx(served: Served) -> JsonObject:
    status = {"status": "running", "model": served.model, "metal": {"active_memory_gb": _MEMORY / 1e9}}
    return {MODELS: _list(_row(served, "vllm-mlx")), "/v1/status": status}


def _omlx(served: Served) -> JsonObject:
    loaded = served.loaded()
    status = {"id": served.model, "loaded": loaded, "actual_size": _MEMORY if loaded else None}
    return {
        MODELS: _list(_row(served, "omlx", max_model_len=served.limit())),
        f"{MODELS}/status": {"models": [status]},
        "/api/status": {"status": "ok", "version": "0.6.4"},
    }


def _vllm(served: Served) -> JsonObject:
    row = _row(served, "vllm", root=served.model, parent=None, max_model_len=served.limit())
    return {"/version": {"version": "0.32.0"}, MODELS: _list(row)}


def _sglang(served: Served) -> JsonObject:
    row = _row(served, "sglang", root=served.model, parent=None, max_model_len=served.limit())
    return {
        "/get_model_info": {"model_path": served.model, "is_generation": True},
        "/get_server_info": {
            "model_path": served.model,
            "served_model_name": served.model,
            "quantization": None,
            "version": "0.5.9",
        },
        MODELS: _list(row),
    }


def _tgi(served: Served) -> JsonObject:
    info = {
        "model_id": served.model,
        "max_total_tokens": served.limit(),
        "router": "text-generation-router",
        "version": "3.3.6",
    }
    return {"/info": info, MODELS: _list(_row(served, served.model))}


def _tensorrt_llm(served: Served) -> JsonObject:
    return {"/version": {"version": "1.1.0"}, MODELS: _list(_row(served, "tensorrt_llm"))}


def _lmstudio_calls(_: Served) -> Mapping[str, tuple[bool, str | None]]:
    return {"/api/v1/models/load": (True, "model"), "/api/v1/models/unload": (False, "instance_id")}


def _omlx_calls(served: Served) -> Mapping[str, tuple[bool, str | None]]:
    name = f"{MODELS}/{quote(served.model, safe='')}"
    return {f"{name}/load": (True, None), f"{name}/unload": (False, None)}


ENGINES: Mapping[str, Description] = {
    "ollama": Description(_ollama, kept=_OLLAMA),
    "lmstudio": Description(_lmstudio, calls=_lmstudio_calls),
    "llamacpp": Description(_llamacpp, kept=("/tokenize",), server=b"llama.cpp"),
    "mlx-lm": Description(_mlx_lm, server=b"BaseHTTP/0.6 Python/3.11.0"),
    "vllm-mlx": Description(_vllm_mlx),
    "omlx": Description(_omlx, calls=_omlx_calls),
    "vllm": Description(_vllm, kept=("/tokenize", "/metrics")),
    "sglang": Description(_sglang, kept=("/tokenize",)),
    "tgi": Description(_tgi),
    "tensorrt-llm": Description(_tensorrt_llm),
}
"""By the name that `--routes` has for it."""


def hidden(engine: str, path: str) -> bool:
    """Whether a route of the reference server is not one of this engine."""
    return path not in (*_COMMON, *ENGINES[engine].kept)


def routes(engine: str, served: Served) -> Routes:
    """The further routes of this engine: handlers by path and method."""
    one = ENGINES[engine]
    return {**dict(_described(one, served)), **dict(_calls(one, served))}


def _described(one: Description, served: Served) -> Iterator[tuple[str, Mapping[str, Handler]]]:
    for path in one.at(served):
        yield path, {"GET": functools.partial(_describe, one, served, path)}


def _describe(one: Description, served: Served, path: str, _: Request) -> Reply:
    headers = () if one.server is None else ((b"Server", one.server),)
    return Reply(200, _encode(one.at(served)[path]), headers=headers)


def _calls(one: Description, served: Served) -> Iterator[tuple[str, Mapping[str, Handler]]]:
    for path, (load, member) in one.calls(served).items():
        yield path, {"POST": functools.partial(_switch, served, load, member)}


def _switch(served: Served, load: bool, member: str | None, request: Request) -> Reply:
    """Raises ApiError for a body that is no object, or names another model."""
    try:
        body = msgspec.json.decode(request.body, type=JsonObject)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ApiError(400, "the request body must be a JSON object") from error
    if member is not None and body.get(member) != served.model:
        raise ApiError(404, f"{member} {body.get(member)!r} not found", member)
    served.switch(load)
    return Reply(200, _encode({"status": "loaded" if load else "unloaded", "instance_id": served.model}))


def _encode(value: object) -> bytes:
    return msgspec.json.encode(value)
