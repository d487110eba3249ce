"""Text Generation Inference, from its API reference: `/info`.

`/info` of its relative for embeddings has another `router` and no `max_total_tokens`.
"""

from __future__ import annotations

from inferometer.engines.adapters.adapter import Adapter, Ask, Counters, EngineFacts, Replies, ServedModel
from inferometer.engines.adapters.fields import body, count, text, version

_INFO = "/info"


def _recognise(replies: Replies) -> bool:
    info = body(replies, _INFO)
    router = text(info.get("router")) or ""
    named = router.startswith("text-generation-router") or not router
    return named and text(info.get("model_id")) is not None and "max_total_tokens" in info


def _read(replies: Replies) -> EngineFacts:
    info = body(replies, _INFO)
    name = text(info.get("model_id"))
    context = count(info.get("max_total_tokens"))
    models = (ServedModel(name, context=context, loaded=True),) if name else ()
    return EngineFacts("tgi", version(replies, _INFO), None, models)


TGI = Adapter(
    key="tgi",
    title="TGI",
    ports=(3000, 8080),
    processes=(r"\btext-generation-(launcher|router|server)\b",),
    interface="chat",
    asks=(Ask(_INFO),),
    recognise=_recognise,
    read=_read,
    documentation="https://huggingface.co/docs/text-generation-inference/reference/api_reference",
    counters=Counters(output_tokens="tgi_request_generated_tokens", prompt_tokens="tgi_request_input_length"),
    quirks=(
        "Its token counters are histograms, of which the sum counts.",
        "It reserves its memory at the start, whatever the model needs.",
    ),
)
