"""What is said where a server's counts contradict what was sent or what arrived; the form is that of check_sentences.py."""

from __future__ import annotations

from collections.abc import Mapping

from inferometer.report.server_check_sentences import Wording

_MEANS: Mapping[tuple[str, ...], str] = {
    (
        "asked_mean",
        "server_mean",
    ): "Requested {asked_mean} tokens on average, the server counted {server_mean}.",
}
_UNCUT = (
    "Check whether the server truncates prompts (a context or truncation limit), or plan with shorter ones; otherwise name "
    "the model's own tokenizer (--tokenizer PATH)."
)
_BY_HAND = "Compare the server's usage with the text of one answer by hand; do not rely on figures per token until they agree."

CONTENT: dict[str, Wording] = {
    "prompt_length:count": Wording(
        "Prompt length",
        "share",
        {
            "fail": "The server counted {value} of the prompt tokens that were sent; no tokenizer makes fewer than {limit}: it "
            "truncates prompts.",
            "unsure": "The server counted {value} of the prompt tokens that were sent; few tokenizers make fewer than {limit}: "
            "it may truncate prompts.",
        },
        {"fail": _UNCUT, "unsure": _UNCUT},
        _MEANS,
    ),
    "prompt_length:pile": Wording(
        "Prompt length",
        "share",
        {
            "fail": "For {value} of the prompts, which differ, the server counted the same number of tokens, fewer than were "
            "sent; up to {limit} is accepted: it truncates prompts.",
            "unsure": "For {value} of the prompts, which differ, the server counted the same number of tokens; up to {limit} "
            "is accepted: it may truncate prompts, or put text of its own before them.",
        },
        {"fail": _UNCUT, "unsure": _UNCUT},
        _MEANS,
    ),
    "token_counts:reasoning": Wording(
        "Token counts",
        "share",
        {
            "unsure": "By {value} of its output tokens the server counted more than arrived; up to {limit} is accepted. "
            "They may be reasoning that was not sent, which cannot be checked.",
        },
        {
            "unsure": "Ask for answers without reasoning, or have the server send it; until then output tokens per second "
            "rest on the server's word.",
        },
        {
            (
                "server",
                "reasoning",
                "events",
            ): "Server: {server} tokens, {reasoning} of them reasoning; client: {events} events with text.",
        },
    ),
    "output_length:text": Wording(
        "Output length",
        "share",
        {
            "unsure": "In {value} of the answers the text that can be seen cannot hold as many tokens as the server counted; "
            "up to {limit} is accepted. The server may repeat the number that was requested, or send tokens that nobody sees.",
        },
        {
            "unsure": "Compare the server's usage with the text of one answer by hand, or name the model's own tokenizer "
            "(--tokenizer PATH)."
        },
        {
            (
                "server_mean",
                "local_mean",
            ): "The server counted {server_mean} tokens on average, the tokenizer {local_mean} in the text.",
        },
    ),
    "output_length:capped": Wording(
        "Output length",
        "share",
        {
            "unsure": "The server cut {value} of the answers for their length before the requested one was reached; up to "
            "{limit} is accepted. Neither the model nor the plan ended them.",
        },
        {
            "unsure": "Look for a limit of the server's own (a context length, a cap on new tokens, thinking that counts "
            "against it), or plan with shorter answers."
        },
        {
            (
                "asked_mean",
                "server_mean",
            ): "Requested {asked_mean} tokens on average at most, the server counted {server_mean}.",
            ("finish_reasons",): "Finish reasons: {finish_reasons}.",
        },
    ),
    "token_counts:ids": Wording(
        "Token counts",
        "share",
        {"pass": "Answers are token ids, which the client counts itself."},
        {},
        {("ids",): "Token ids that came: {ids}."},
    ),
    "token_counts:words": Wording(
        "Token counts",
        "share",
        {
            "unsure": "Answers have {value} more words than the server counted tokens in them; {limit} is accepted. No "
            "tokenizer in use makes one token of two words: the server counts steps or events, or a part of its tokens.",
        },
        {"unsure": _BY_HAND},
        {("server", "words"): "Server: {server} tokens; words in the text: {words}."},
    ),
    "token_counts:encoded": Wording(
        "Token counts",
        "share",
        {
            "unsure": "The model's own tokenizer finds {value} more tokens in the answers than the server counted; {limit} is "
            "accepted, since a text that is encoded again may have more tokens than it was made of.",
        },
        {"unsure": _BY_HAND},
        {("server", "tokenizer"): "Server: {server} tokens; the tokenizer: {tokenizer}."},
    ),
    "token_counts:parts": Wording(
        "Token counts",
        "share",
        {
            "unsure": "The server counted {value} more tokens than the model's own tokenizer finds in the answers; {limit} is "
            "accepted, since a text that is encoded again may have fewer tokens than it was made of. It may send its tokens in "
            "parts, and count those.",
        },
        {"unsure": _BY_HAND},
        {("server", "tokenizer"): "Server: {server} tokens; the tokenizer: {tokenizer}."},
    ),
    "token_counts:estimate": Wording(
        "Token counts",
        "share",
        {
            "unsure": "Nobody counted {value} of the answers or of their tokens; up to {limit} is accepted. They were "
            "estimated by their characters, and figures per token rest on that.",
        },
        {
            "unsure": "Find out why these answers have no usage, or name the model's own tokenizer (--tokenizer PATH), which "
            "counts them."
        },
        {("by_source",): "Answers counted by: {by_source}."},
    ),
}
