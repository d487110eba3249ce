"""The sentences of the check of prompt lengths, by what judged them; see `check_sentences`."""

from __future__ import annotations

from inferometer.report.server_check_sentences import Wording

LENGTHS: dict[str, Wording] = {
    "prompt_length": Wording(
        "Prompt length",
        "share",
        {
            "pass": "{value} of the prompts missed the requested length; up to {limit} is accepted.",
            "fail": "{value} of the prompts missed the requested length, more than the accepted {limit}: the server did "
            "different prefill work than the plan specifies.",
            "na": "No prompt length could be counted.",
        },
        {
            "fail": "Name the model's own tokenizer (--tokenizer PATH), or use an endpoint that accepts token ids."
        },
        {("asked_mean", "counted_mean"): "Requested {asked_mean} tokens on average, counted {counted_mean}."},
    ),
    "prompt_length:mean": Wording(
        "Prompt length",
        "share",
        {
            "pass": "By the server's count, the mean prompt length differs from the requested one by {value}; up to {limit} is "
            "accepted.",
            "fail": "By the server's count, the mean prompt length differs from the requested one by {value}, more than the "
            "accepted {limit}: the ratio learned before the load does not hold for these prompts.",
            "unsure": "By the server's count, the mean prompt length differs from the requested one by {value}, more than the "
            "accepted {limit}; the lengths of so few prompts may scatter by that much around the learned ratio.",
        },
        {
            "fail": "Name the model's own tokenizer (--tokenizer PATH), or use a server with /tokenize.",
            "unsure": "Send more requests, or name the model's own tokenizer (--tokenizer PATH).",
        },
        {
            (
                "asked_mean",
                "counted_mean",
            ): "Requested {asked_mean} tokens on average; the server counted {counted_mean}."
        },
    ),
    "prompt_length:client": Wording(
        "Prompt length",
        "share",
        {
            "unsure": "The server did not report how many tokens its prompts have, so their length in its tokens is unknown.",
        },
        {
            "unsure": "Let the server report usage, or choose to count with a reference tokenizer (--tokenizer cl100k_base)."
        },
        {("asked_mean",): "Requested {asked_mean} tokens on average."},
    ),
    "prompt_length:usage": Wording(
        "Prompt length",
        "share",
        {
            "unsure": "The server's usage is no count of its prompts: before the load it did not grow with them as a "
            "tokenizer's count does. Prompts were sized by cl100k_base, and their length in the server's tokens is unknown.",
        },
        {
            "unsure": "Let the server report its prompt tokens, or name the model's own tokenizer (--tokenizer PATH)."
        },
        {
            (
                "asked_mean",
                "server_mean",
            ): "Requested {asked_mean} tokens on average; its usage says {server_mean}."
        },
    ),
    "prompt_length:dispute": Wording(
        "Prompt length",
        "share",
        {
            "unsure": "The server contradicts itself: before the load, its /tokenize and its usage differed by {value} on the "
            "length of a prompt, where {limit} is accepted. Prompts were sized by its usage, and their length is uncertain.",
        },
        {
            "unsure": "Find out which of the two describes the model that is served, and name the model's own tokenizer "
            "(--tokenizer PATH)."
        },
        {
            (
                "asked_mean",
                "server_mean",
            ): "Requested {asked_mean} tokens on average; its usage counted {server_mean}."
        },
    ),
    "prompt_length:yardstick": Wording(
        "Prompt length",
        "share",
        {
            "note": "Prompts were sized by cl100k_base, and by the server's count their mean length differs from the requested "
            "one by {value}.",
        },
        {"note": "Leave out --tokenizer, or name the model's own, to get lengths in the server's tokens."},
        {
            (
                "asked_mean",
                "server_mean",
            ): "Requested {asked_mean} tokens on average; the server counted {server_mean}."
        },
    ),
    "prompt_length:growth": Wording(
        "Prompt length",
        "share",
        {
            "fail": "For the longest prompts the server counted only {value} of the tokens expected from its counts of the "
            "shortest; at least {limit} is required: it truncates long prompts, or forgets earlier turns of conversations.",
        },
        {
            "fail": "Check whether the server truncates prompts (a context or truncation limit), or plan with shorter ones; "
            "otherwise name the model's own tokenizer (--tokenizer PATH)."
        },
        {
            (
                "asked_mean",
                "server_mean",
            ): "Requested {asked_mean} tokens on average, the server counted {server_mean}."
        },
    ),
    "prompt_length:inside": Wording(
        "Prompt length",
        "share",
        {
            "na": "What a compound system makes of a prompt is inside its boundary, and its usage counts that: no count of it "
            "says how long the prompt was."
        },
    ),
    "output_length:inside": Wording(
        "Output length",
        "share",
        {
            "na": "A compound system decides itself how long its answer is, and its usage counts steps that its user never "
            "sees."
        },
    ),
    "token_counts:inside": Wording(
        "Token counts",
        "share",
        {
            "na": "A compound system's usage counts steps that its user never sees, so it is compared with nothing; figures "
            "per token are of the text that was streamed, by the declared tokenizer."
        },
    ),
    "cache_hits:inside": Wording(
        "Prefix cache",
        "share",
        {"na": "Cached tokens are of a compound system's own calls, which are inside its boundary."},
    ),
    "tokens_per_event:inside": Wording(
        "Tokens per event",
        "share",
        {
            "note": "A compound system's usage does not say how many tokens its events carry, so ITL is not measured; the time "
            "between chunks is."
        },
        {
            "note": "Compare TPOT between systems rather than ITL, or name the model's own tokenizer (--tokenizer PATH)."
        },
    ),
}
