"""vllm-mlx, from its server guide: `/v1/models` (owner `vllm-mlx`), `/v1/status`.

`/v1/status` names the model and has Metal's active memory in 10^9 bytes, rounded to hundredths: that of the whole server, with
its caches.
"""

from __future__ import annotations

from dataclasses import replace

from inferometer.engines.adapters.adapter import Adapter, Ask, EngineFacts, Replies, ServedModel
from inferometer.engines.adapters.fields import MODELS, body, bytes_of, inner, listed, owned_by, text

_STATUS = "/v1/status"


def _read(replies: Replies) -> EngineFacts:
    status = body(replies, _STATUS)
    current = text(status.get("model"))
    memory = bytes_of(inner(status, "metal").get("active_memory_gb"), 1e9)
    return EngineFacts(
        "vllm-mlx", None, "mlx", tuple(_model(one, current, memory) for one in listed(replies))
    )


def _model(model: ServedModel, current: str | None, memory: int | None) -> ServedModel:
    if model.name != current:
        return replace(model, format="mlx")
    return replace(model, format="mlx", memory_bytes=memory, accelerator_bytes=memory, loaded=True)


VLLM_MLX = Adapter(
    key="vllm-mlx",
    title="vllm-mlx",
    ports=(8000,),
    processes=(r"\bvllm-mlx\s+serve\b", r"\bvllm_mlx\.(cli|server)\b"),
    interface="chat",
    asks=(Ask(MODELS), Ask(_STATUS)),
    recognise=lambda replies: owned_by(replies, "vllm-mlx"),
    read=_read,
    documentation="https://github.com/waybarrios/vllm-mlx/blob/main/docs/guides/server.md",
    quirks=(
        "It reports memory for the whole server, rounded to 10 MB.",
        "It exposes `/metrics` only if started with its option enable-metrics.",
    ),
)
