"""oMLX, from its documentation of routes: `/v1/models` (owner `omlx`), `/v1/models/status`, `/api/status`.

`/api/status` has the version; `/v1/models/status` lists every model with `loaded` and, while it is, `actual_size` in bytes.
Models are loaded and unloaded by `POST /v1/models/NAME/load` and `.../unload`.
"""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote

from inferometer.engines.adapters.adapter import Adapter, Ask, EngineFacts, Replies, ServedModel
from inferometer.engines.adapters.fields import (
    MODELS,
    Fields,
    body,
    count,
    listed,
    owned_by,
    rows,
    text,
    version,
)

_MODELS_STATUS, _STATUS = "/v1/models/status", "/api/status"


def _read(replies: Replies) -> EngineFacts:
    known = {
        name: row for row in rows(body(replies, _MODELS_STATUS), "models") if (name := text(row.get("id")))
    }
    public = {one.name: one for one in listed(replies)}
    names = dict.fromkeys((*public, *known))
    models = tuple(_model(public.get(name, ServedModel(name)), known.get(name)) for name in names)
    return EngineFacts("omlx", version(replies, _STATUS), "mlx", models)


def _model(model: ServedModel, row: Fields | None) -> ServedModel:
    if row is None:
        return replace(model, format="mlx")
    loaded = row.get("loaded")
    memory = count(row.get("actual_size")) if loaded is True else None
    lengths = (count(row.get("max_context_window")), model.context, count(row.get("model_context_length")))
    return replace(
        model,
        format="mlx",
        context=next((one for one in lengths if one is not None), None),
        memory_bytes=memory or None,
        loaded=loaded if isinstance(loaded, bool) else None,
    )


def _call(name: str, verb: str) -> Ask:
    return Ask(f"{MODELS}/{quote(name, safe='')}/{verb}", "POST", {})


OMLX = Adapter(
    key="omlx",
    title="oMLX",
    ports=(8000,),
    processes=(r"\bomlx\s+(serve|start)\b", r"\bomlx\.(cli|server)\b", r"\boMLX\.app/"),
    interface="chat",
    asks=(Ask(MODELS), Ask(_MODELS_STATUS), Ask(_STATUS)),
    recognise=lambda replies: owned_by(replies, "omlx"),
    read=_read,
    documentation="https://github.com/jundot/omlx",
    load=lambda name: _call(name, "load"),
    unload=lambda name: _call(name, "unload"),
    quirks=(
        "It keeps its prefix cache on disk too, so an unload does not empty it.",
        "It answers an unload of a model that is not loaded with status 400.",
    ),
)
