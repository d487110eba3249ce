"""What is said of the checks of how text arrives. The form is that of check_sentences.py, which holds the others."""

from __future__ import annotations

from collections.abc import Mapping

from inferometer.report.server_check_sentences import Wording

_CHUNKS: Mapping[tuple[str, ...], str] = {
    ("method",): "ITL method: {method}.",
    ("itl_zero_share",): "Gaps of zero: {itl_zero_share}.",
    (
        "chunk_mean",
        "chunk_p50",
        "chunk_p99",
        "chunk_max",
    ): "Tokens per chunk: {chunk_mean} on average, P50 {chunk_p50}, P99 {chunk_p99}, at most {chunk_max}.",
}


DELIVERY: dict[str, Wording] = {
    "streamed": Wording(
        "Streaming",
        "share",
        {
            "pass": "{value} of the multi-token answers were held back; up to {limit} is accepted.",
            "fail": "{value} of the multi-token answers were held back, more than the accepted {limit}: a proxy buffers the "
            "stream or the server does not stream, so TTFT is the time of a later token, and TPOT is not the pace.",
            "unsure": "{value} of the multi-token answers were held back, more than {limit}: for these TTFT includes the wait "
            "for later tokens, and whether the server or something in front of it held them cannot be observed.",
            "unsure unknown": "No multi-token answer was read promptly enough to tell whether the server streams.",
            "na": "No multi-token answer was streamed.",
        },
        {
            "fail": "Look for a buffering proxy (nginx: proxy_buffering off) and measure without it, or request "
            "non-streaming answers (--no-stream).",
            "unsure": "Look for a buffering proxy (nginx: proxy_buffering off) and measure without it; if the client read "
            "late, use more workers (--workers).",
        },
        {
            ("held", "judged"): "Held back: {held} of {judged}.",
            ("at_once",): "Arrived whole: {at_once}.",
        },
    ),
    "streamed:few": Wording(
        "Streaming",
        "share",
        {
            "unsure": "{value} of the multi-token answers that were read promptly were held back, and they are too few to "
            "tell whether more than {limit} are.",
        },
        {"unsure": "Send more requests, or use more workers (--workers) if the client read late."},
        {("held", "judged"): "Held back: {held} of {judged}."},
    ),
    "streamed:filter": Wording(
        "Streaming",
        "share",
        {
            "note": "Some of the multi-token answers were held back, as an output filter does, and the plan discloses one: "
            "TTFT is the time to the first text that it lets through, and TPOT is the pace after it.",
            "unsure": "{value} of the multi-token answers were held back, as an output filter does, and the plan discloses "
            "one: TTFT is the time to the first text that it lets through, and TPOT is not the pace of the model.",
        },
        {
            "unsure": "Take TTFT and the end-to-end time from this run; measure TPOT with the output filter off, or report "
            "what the filter costs with `inferometer test guardrail`.",
        },
        {("held", "judged"): "Held back: {held} of {judged}."},
    ),
    "streamed:p99": Wording(
        "Streaming",
        "share",
        {
            "unsure": "P99 of TTFT is longer by {value} with the answers that were held back than without them, more than the "
            "accepted {limit}: whether the server or something in front of it held them cannot be observed.",
        },
        {"unsure": "Look for a buffering proxy (nginx: proxy_buffering off) and measure without it."},
        {("held", "judged"): "Held back: {held} of {judged}."},
    ),
    "streamed:length": Wording(
        "Streaming",
        "share",
        {
            "unsure": "In the {value} of the answers with the longest TTFT, TTFT grows with the length of the answer that "
            "follows, which nothing before the first token of a stream depends on: answers were collected until they were "
            "whole and then sent on, or requests are admitted by the length that they ask for.",
        },
        {
            "unsure": "Look for a proxy or a layer of the server that collects answers and measure without it; if the server "
            "orders requests by length, say so beside the figures.",
        },
        {
            (
                "token_ms",
                "pace_ms",
                "z",
            ): "TTFT has {token_ms} ms more for each token, and the tokens come {pace_ms} ms apart "
            "(z = {z}).",
        },
    ),
    "tokens_per_event": Wording(
        "Tokens per event",
        "share",
        {
            "pass": "{value} of the stream events carried exactly one token (more than {limit} is required), so gaps between "
            "events are gaps between tokens.",
            "note": "{value} of the stream events carried exactly one token, not more than {limit}, "
            "so ITL is not measured; the time between chunks is.",
            "unsure": "The number of tokens per event is unknown, so ITL is not measured; the time between chunks is.",
            "na": "No streamed answer completed.",
        },
        {
            "note": "Compare TPOT between servers rather than ITL.",
            "unsure": "Name the model's own tokenizer (--tokenizer PATH), and use TPOT rather than ITL.",
        },
        _CHUNKS,
    ),
    "tokens_per_event:alone": Wording(
        "Tokens per chunk",
        "share",
        {
            "note": "{value} of the text events arrived alone, not more than {limit}: tokens arrive in chunks, so ITL is not "
            "measured; the time between chunks is.",
        },
        {"note": "Compare end-to-end latency between servers rather than ITL."},
        _CHUNKS,
    ),
    "tokens_per_event:lumped": Wording(
        "Tokens per chunk",
        "share",
        {
            "note": "In {value} of the answers half of the text events or more arrived together with others, more than the "
            "accepted {limit}: ITL is not measured; the time between chunks is.",
        },
        {"note": "Compare end-to-end latency between servers rather than ITL."},
        _CHUNKS,
    ),
}
