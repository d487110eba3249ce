"""The passages that the reference systems search: what their index is made of, and what their answers cite."""

from __future__ import annotations

PASSAGES: tuple[tuple[str, str], ...] = (
    (
        "ttft",
        "Time to first token is the time from sending a request to the arrival of the first token of its answer. "
        "It contains the wait in the queue and the computation of the prompt.",
    ),
    (
        "itl",
        "Inter-token latency is the time between two tokens of one answer. It grows with the number of requests "
        "that are decoded together.",
    ),
    (
        "kv-cache",
        "The KV cache holds keys and values of all tokens of a context. When its blocks run out, a request is "
        "preempted and computed again later.",
    ),
    (
        "prefix-cache",
        "A prefix cache keeps the blocks of prompts that begin alike, so that a system prompt or a conversation is "
        "not computed twice.",
    ),
    (
        "batching",
        "Continuous batching admits a request as soon as there is room, iteration by iteration, and does not wait "
        "for the whole batch to end.",
    ),
    (
        "speculation",
        "Speculative decoding lets a small model draft tokens, which the large model verifies in a single step.",
    ),
    (
        "open-loop",
        "In an open loop requests arrive at instants fixed in advance, whether or not earlier ones have been "
        "answered. Overload then shows as a growing queue.",
    ),
    (
        "closed-loop",
        "In a closed loop a fixed number of clients each wait for an answer before they send the next request. "
        "A slow server slows its clients.",
    ),
    (
        "omission",
        "Coordinated omission is the error of a load generator that waits for a slow server and so leaves out "
        "exactly the requests that would have been slow.",
    ),
    (
        "littles-law",
        "Little's law: the mean number of requests in a system equals the arrival rate times the mean time that "
        "each spends there.",
    ),
    (
        "percentile",
        "The 99th percentile is the value that one request in a hundred exceeds. It cannot be averaged over "
        "several machines.",
    ),
    (
        "clock",
        "A monotonic clock never runs backwards and suits durations. A wall clock may be set, and suits dates.",
    ),
    (
        "guardrail",
        "A guardrail checks prompts before they are computed, or answers before they are shown, and may refuse them.",
    ),
    (
        "retrieval",
        "Retrieval turns a question into a vector, finds passages whose vectors are near, and puts them into the "
        "prompt so that the answer can cite them.",
    ),
    (
        "reranking",
        "A reranker orders passages anew that were found by a fast index, with a slower and more exact comparison.",
    ),
    (
        "tools",
        "An agent calls tools such as a calculator or a search, reads their results, and only then answers. Tools "
        "that do not need each other may run in parallel.",
    ),
)
"""Id and text of each passage."""
