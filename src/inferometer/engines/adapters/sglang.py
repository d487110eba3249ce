"""SGLang, from its native API: `/get_model_info`, `/get_server_info` (in newer versions `/model_info`, `/server_info`), and
`/v1/models` (owner `sglang`, `max_model_len`).

`/get_server_info` has the server's arguments, among them `quantization` (null: as the model's own), and the `version`.
"""

from __future__ import annotations

from dataclasses import replace

from inferometer.engines.adapters.adapter import Adapter, Ask, Counters, EngineFacts, Replies, ServedModel
from inferometer.engines.adapters.fields import MODELS, Fields, body, count, listed, owned_by, text

_MODEL_INFO = ("/get_model_info", "/model_info")
_SERVER_INFO = ("/get_server_info", "/server_info")


def _either(replies: Replies, paths: tuple[str, ...]) -> Fields:
    return next((found for path in paths if (found := body(replies, path))), {})


def _recognise(replies: Replies) -> bool:
    info = _either(replies, _MODEL_INFO)
    return owned_by(replies, "sglang") or ("model_path" in info and "is_generation" in info)


def _read(replies: Replies) -> EngineFacts:
    info, server = _either(replies, _MODEL_INFO), _either(replies, _SERVER_INFO)
    named = text(server.get("served_model_name")) or text(info.get("model_path"))
    models = listed(replies) or ((ServedModel(named),) if named else ())
    return EngineFacts(
        "sglang", text(server.get("version")), None, tuple(_model(one, server) for one in models)
    )


def _model(model: ServedModel, server: Fields) -> ServedModel:
    context = model.context if model.context is not None else count(server.get("context_length"))
    return replace(model, quantization=text(server.get("quantization")), context=context, loaded=True)


SGLANG = Adapter(
    key="sglang",
    title="SGLang",
    ports=(30000,),
    processes=(r"\bsglang\.launch_server\b", r"\bsglang\s+serve\b", r"\bsglang::"),
    interface="chat",
    asks=(*map(Ask, _MODEL_INFO), *map(Ask, _SERVER_INFO), Ask(MODELS)),
    recognise=_recognise,
    read=_read,
    documentation="https://docs.sglang.io/basic_usage/native_api.html",
    counters=Counters(
        output_tokens="sglang:generation_tokens",
        prompt_tokens="sglang:prompt_tokens",
        cached_tokens="sglang:cached_tokens",
        ttft_s="sglang:time_to_first_token_seconds",
        decode_s="sglang:inter_token_latency_seconds",
        decode_tok_s="sglang:gen_throughput",
    ),
    cached_tokens=True,
    quirks=(
        "It reports cached tokens only if started with its option enable-cache-report.",
        "It exposes `/metrics` only if started with its option enable-metrics.",
        "It reserves its memory at the start; `/flush_cache` empties its prefix cache.",
    ),
)
