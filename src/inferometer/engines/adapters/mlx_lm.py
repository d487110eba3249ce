"""mlx-lm's server: `/v1/models` without owners, from the plain HTTP server of Python's library.

It has no route of its own and reports no version, so it is recognised last: by the header `Server: BaseHTTP/...` and a list of
models whose rows have `id`, `object` and `created` alone.
"""

from __future__ import annotations

from inferometer.engines.adapters.adapter import Adapter, Ask, EngineFacts, Replies, ServedModel
from inferometer.engines.adapters.fields import MODELS, body, listed, rows

_FIELDS = {"id", "object", "created"}


def _recognise(replies: Replies) -> bool:
    reply, found = replies.get(MODELS), body(replies, MODELS)
    plain = reply is not None and reply.headers.get("server", "").startswith("BaseHTTP/")
    owned = any(set(row) - _FIELDS for row in rows(found, "data"))
    return plain and not owned and found.get("object") == "list" and isinstance(found.get("data"), list)


def _read(replies: Replies) -> EngineFacts:
    """It lists what the hub's cache holds and the model that it was started with; which one is loaded it does not say."""
    models = tuple(ServedModel(model.name, format="mlx") for model in listed(replies))
    return EngineFacts("mlx-lm", None, "mlx", models)


MLX_LM = Adapter(
    key="mlx-lm",
    title="mlx-lm",
    ports=(8080,),
    processes=(r"\bmlx_lm(\.|\s+)server\b",),
    interface="chat",
    asks=(Ask(MODELS),),
    recognise=_recognise,
    read=_read,
    documentation="https://github.com/ml-explore/mlx-lm/blob/main/mlx_lm/SERVER.md",
    cached_tokens=True,
    tried="real",
    quirks=(
        "It serves the model that it was started with as `default_model`; it looks any other name up on a model hub.",
        "It lists models of the hub's cache, whether or not they are loaded.",
        "It closes the connection after each answer (HTTP/1.0).",
        "It ignores `ignore_eos`.",
    ),
)
