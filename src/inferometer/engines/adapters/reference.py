"""The reference server of this program (docs/server.md), recognised by `/inferometer/state`, which no engine has."""

from __future__ import annotations

from dataclasses import replace

from inferometer.engines.adapters.adapter import Adapter, Ask, Counters, EngineFacts, Replies
from inferometer.engines.adapters.fields import MODELS, body, listed

_STATE = "/inferometer/state"
_PRODUCT = "inferometer-reference/"


def _recognise(replies: Replies) -> bool:
    state = body(replies, _STATE)
    return "truth" in state and isinstance(state.get("loaded"), bool)


def _read(replies: Replies) -> EngineFacts:
    loaded = body(replies, _STATE).get("loaded")
    reply = replies.get(_STATE)
    name = reply.headers.get("server", "") if reply is not None else ""
    version = name.removeprefix(_PRODUCT) if name.startswith(_PRODUCT) else ""
    models = (replace(one, loaded=loaded if isinstance(loaded, bool) else None) for one in listed(replies))
    return EngineFacts("reference", version or None, "simulated", tuple(models))


REFERENCE = Adapter(
    key="reference",
    title="Inferometer's reference server",
    ports=(8000,),
    processes=(r"\binferometer\.server\b", r"\binferometer\s+serve\b"),
    interface="chat",
    asks=(Ask(_STATE), Ask(MODELS)),
    recognise=_recognise,
    read=_read,
    documentation="server.md",
    load=lambda _: Ask(_STATE, "PUT", {"loaded": True}),
    unload=lambda _: Ask(_STATE, "PUT", {"loaded": False}),
    counters=Counters(
        output_tokens="vllm:generation_tokens",
        prompt_tokens="vllm:prompt_tokens",
        cached_tokens="vllm:prefix_cache_hits",
        ttft_s="vllm:time_to_first_token_seconds",
        decode_s="vllm:inter_token_latency_seconds",
    ),
    cached_tokens=True,
    imitates=("ollama",),
    tried="real",
    quirks=("It is a model of an engine: its figures are not those of any hardware.",),
)
