"""LM Studio, from its REST API documentation: `/api/v0/models` (0.3.6 and later), `/api/v1/models` (0.4.0 and later).

| fact         | v0                          | v1                                           |
| ------------ | --------------------------- | -------------------------------------------- |
| name         | `id`                        | `key`                                        |
| format       | `compatibility_type`        | `format`                                     |
| quantization | `quantization`              | `quantization.name`                          |
| parameters   | none                        | `params_string`                              |
| loaded       | `state` is `loaded`         | `loaded_instances` is not empty              |
| context      | `loaded_context_length`     | `loaded_instances[].config.context_length`   |
| its limit    | `max_context_length`        | `max_context_length`                         |

A file's size is reported, the memory in use is not. Paths that it does not know are answered with status 200 and an error.
"""

from __future__ import annotations

from inferometer.engines.adapters.adapter import Adapter, Ask, EngineFacts, Replies, ServedModel
from inferometer.engines.adapters.fields import Fields, body, count, inner, parameters, rows, text

_V0, _V1 = "/api/v0/models", "/api/v1/models"
_RUNNERS = {"gguf": "llama.cpp", "mlx": "mlx"}
_UNKNOWN_PATH = "Unexpected endpoint or method"


def _recognise(replies: Replies) -> bool:
    if any("compatibility_type" in row or "state" in row for row in rows(body(replies, _V0), "data")):
        return True
    if any("loaded_instances" in row and "key" in row for row in rows(body(replies, _V1), "models")):
        return True
    errors = (reply.body.get("error") for reply in replies.values() if isinstance(reply.body, dict))
    strange = any(isinstance(error, str) and error.startswith(_UNKNOWN_PATH) for error in errors)
    return strange and isinstance(body(replies, _V0).get("data"), list)


def _read(replies: Replies) -> EngineFacts:
    older = {model.name: model for row in rows(body(replies, _V0), "data") if (model := _of_v0(row))}
    newer = {model.name: model for row in rows(body(replies, _V1), "models") if (model := _of_v1(row))}
    models = tuple({**older, **newer}.values())
    runners = {_RUNNERS.get(model.format or "") for model in models if model.loaded}
    known = sorted(name for name in runners if name)
    return EngineFacts("lmstudio", None, ", ".join(known) or None, models)


def _of_v0(row: Fields) -> ServedModel | None:
    name, state = text(row.get("id")), row.get("state")
    if name is None:
        return None
    return ServedModel(
        name,
        format=text(row.get("compatibility_type")),
        quantization=text(row.get("quantization")),
        context=_first(count(row.get("loaded_context_length")), count(row.get("max_context_length"))),
        loaded=state == "loaded" if isinstance(state, str) else None,
    )


def _of_v1(row: Fields) -> ServedModel | None:
    name, instances = text(row.get("key")), row.get("loaded_instances")
    if name is None:
        return None
    lengths = (count(inner(one, "config").get("context_length")) for one in rows(row, "loaded_instances"))
    return ServedModel(
        name,
        format=text(row.get("format")),
        quantization=text(inner(row, "quantization").get("name")),
        parameters=parameters(row.get("params_string")),
        context=_first(next(lengths, None), count(row.get("max_context_length"))),
        loaded=bool(instances) if isinstance(instances, list) else None,
    )


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


LMSTUDIO = Adapter(
    key="lmstudio",
    title="LM Studio",
    ports=(1234,),
    processes=(r"\bLM[ -]Studio(\.app|\.exe|-\d)", r"\.lmstudio/(llmster|bin|extensions|\.internal)\b"),
    interface="chat",
    asks=(Ask(_V0), Ask(_V1)),
    recognise=_recognise,
    read=_read,
    documentation="https://lmstudio.ai/docs/developer/rest",
    load=lambda name: Ask("/api/v1/models/load", "POST", {"model": name}),
    unload=lambda name: Ask("/api/v1/models/unload", "POST", {"instance_id": name}),
    quirks=(
        "It loads a model at its first request, unless that is turned off.",
        "Load and unload exist from version 0.4.0 on; the first instance of a model has the model's name.",
        "It answers paths that it does not know with status 200.",
        "It reports its own timings on `/api/v0/` routes only, which are not used here.",
        "It reports the size of a model's file, not the memory in use.",
    ),
)
