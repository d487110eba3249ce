"""The record's columns. This file is the format: change it only together with its version.

Times are integer nanoseconds on the run's monotonic clock; null where the request never got that far. The offset of that
clock to wall time is in the pulse stream. Three files of a run folder share these types:

`requests.arrow`           what was to be sent, one row a request (SCHEDULE)
`journal/worker-K.arrows`  what became of it, appended as requests end (OUTCOME); `pulse-K.arrows` the worker's own health
`requests.parquet`         the two joined, one row a request that ended, ordered by t_intended (RECORD)
"""

from __future__ import annotations

import enum

import pyarrow as pa

OUTCOME_VERSION = "10"
RECORD_VERSION = "11"
"""SCHEDULE and PULSE are as they were in version 3."""
READ = {
    "outcome": ("3", "4", "5", "6", "7", "8", "9", "10"),
    "record": ("3", "4", "5", "6", "7", "8", "9", "10", "11"),
    "schedule": ("3",),
    "pulse": ("3",),
}
"""The versions of each table that this program reads. Columns that an earlier one lacks are null (versions.py)."""


RUN = b"inferometer.run"
"""Key of the run's id in the metadata of a stream or a sealed table."""


def of_run(schema: pa.Schema, run: str) -> pa.Schema:
    """The schema of a file of the run with this id."""
    return schema.with_metadata({**schema.metadata, RUN: run.encode()})


class Phase(enum.IntEnum):
    """What a request was sent for. Only those of MEASURE are measured; the others are recorded like them and kept apart.

    PROBE: the single requests before and behind the warm-up (draft 4.5.2). LEAD: those that keep a closed loop's slots in use
    before the first measured request and after the last, cycle 0 and later ones (drive/pacer.py).
    """

    WARMUP = 0
    MEASURE = 1
    PROBE = 2
    LEAD = 3


class EventClass(enum.IntEnum):
    """What one stream event carried (docs/definitions.md). TEXT classes are content, reasoning and tool_call."""

    ROLE = 0
    """A role and no text; or what else opens or closes a part of a message."""
    CONTENT = 1
    REASONING = 2
    TOOL_CALL = 3
    FINISH = 4
    USAGE = 5
    ERROR = 6
    COMMENT = 7
    EMPTY = 8
    """A delta that carries no text at all: the server holds text back, or pads."""
    DONE = 9
    """The terminator: `[DONE]`, or what the dialect has in its place."""


class Outcome(enum.StrEnum):
    """How a request ended. Exactly one a request; only OK is a success (draft 4.2.6, docs/definitions.md)."""

    OK = "ok"
    REFUSED = "refused"  # refused by the model or a guardrail, by a structured signal
    EMPTY = "empty"  # ended normally without a single white-space-free token
    CONNECT_REFUSED = "connect_refused"
    CONNECT_TIMEOUT = "connect_timeout"
    CONNECT_ERROR = "connect_error"
    CLIENT_LIMIT = "client_limit"  # ours: out of descriptors, ports or buffers
    TLS_ERROR = "tls_error"
    TIMEOUT = "timeout"
    RESET = "reset"  # connection reset or closed before the response was complete
    HTTP_4XX = "http_4xx"
    HTTP_429 = "http_429"
    HTTP_5XX = "http_5xx"
    HTTP_OTHER = "http_other"  # any other status that is not 2xx
    NOT_JSON = "not_json"  # 2xx whose body is no event stream and no JSON: an HTML page, say
    BAD_HTTP = "bad_http"  # breaks RFC 9112: bad chunk size, endless headers
    BAD_EVENT = "bad_event"  # an event that is not the JSON it should be, or not UTF-8
    TOO_LARGE = "too_large"  # an event, header block or body over our limit
    TOO_MANY_EVENTS = "too_many_events"  # a stream of more events than our limit
    OVERRUN = "overrun"  # a stream that went on behind the tokens requested for longer than our limit
    ERROR_EVENT = "error_event"  # an error object inside a 200
    TRUNCATED = "truncated"  # ended cleanly by HTTP but without finish reason or terminator
    CANCELLED = "cancelled"  # by us: Ctrl-C or the drain limit


SCHEDULE = pa.schema(
    [
        pa.field("index", pa.int64(), nullable=False),
        pa.field("phase", pa.int8(), nullable=False),
        pa.field("due_ns", pa.int64()),  # from the phase's start; null in closed loop
        pa.field("body", pa.binary(), nullable=False),
        pa.field("nonce_at", pa.int32(), nullable=False),  # byte offset of the nonce in the body; -1: none
        pa.field("nonce_len", pa.int32(), nullable=False),
        pa.field("input_tokens_asked", pa.int32(), nullable=False),
        pa.field("input_tokens_sent", pa.int32(), nullable=False),  # by the declared tokenizer
        pa.field("output_tokens_asked", pa.int32(), nullable=False),
        pa.field("request_class", pa.int8()),  # index into `classes` of run.json; null: it has none
        pa.field("input_tokens_shared", pa.int32(), nullable=False),  # of those asked, in common with others
        pa.field(
            "input_tokens_repeated", pa.int32(), nullable=False
        ),  # said before in its session, beside those
        pa.field("session", pa.int32()),  # the conversation that it is a turn of; null: of none
        pa.field("turn", pa.int16(), nullable=False),  # counted from 0; a session's rows stand together
        pa.field("turns", pa.int16(), nullable=False),  # of its session
        pa.field("think_ns", pa.int64(), nullable=False),  # from the answer before to this request
        pa.field("user", pa.int32()),  # who waits for the answer before asking again; null: nobody
        pa.field(
            "own_at", pa.int32(), nullable=False
        ),  # byte offset of a turn's own messages; -1: it is none
        pa.field("own_len", pa.int32(), nullable=False),
        pa.field(
            "reply", pa.binary()
        ),  # as messages, what later turns repeat as its answer; null: the server's
        pa.field("timeout_ns", pa.int64()),  # its own time limit; null: the plan's
    ],
    metadata={"inferometer": "schedule/4"},
)

_TIMES = [
    ("t_intended", False),
    ("t_taken", False),  # the loop took the request up
    ("t_connect", True),  # null: a connection was reused
    ("t_connected", True),
    ("t_tls", True),
    ("t_send", True),  # first byte handed to the kernel
    ("t_submit", True),  # the kernel accepted the last byte (draft B.1.1)
    ("t_first_byte", True),  # first byte of the response
    ("t_end", False),  # end of the response, or of our patience
]

TIMES = tuple(name for name, _ in _TIMES)
"""The columns that hold an instant."""

OUTCOME = pa.schema(
    [
        pa.field("index", pa.int64(), nullable=False),
        pa.field("cycle", pa.int32(), nullable=False),  # how often the schedule had been used up before
        pa.field("phase", pa.int8(), nullable=False),
        pa.field("worker", pa.int16(), nullable=False),
        *(pa.field(name, pa.int64(), nullable=nullable) for name, nullable in _TIMES),
        pa.field("event_ns", pa.list_(pa.int64()), nullable=False),
        pa.field("event_class", pa.binary(), nullable=False),  # one byte an event
        pa.field("emitted_ns", pa.list_(pa.int64())),  # text events by the server's own clock; empty: not all
        pa.field("first_text", pa.int32(), nullable=False),  # index of the first event with text; -1: none
        pa.field("first_visible", pa.int32(), nullable=False),  # ... that is visible (ttft)
        pa.field("first_answer", pa.int32(), nullable=False),  # ... of class content (ttfo)
        pa.field("outcome", pa.string(), nullable=False),
        pa.field("detail", pa.string()),  # at most 200 characters, secrets struck out
        pa.field("status", pa.int16()),
        pa.field("finish_reason", pa.string()),
        pa.field("answered_as", pa.string()),  # the model that the answer names; null: none
        pa.field("text", pa.string()),  # generated text, all classes joined
        pa.field("usage_input", pa.int32()),
        pa.field("usage_output", pa.int32()),
        pa.field("usage_cached", pa.int32()),
        pa.field("usage_reasoning", pa.int32()),
        pa.field("server_total_ns", pa.int64()),  # the server's own durations, where it reports them: of all,
        pa.field("server_load_ns", pa.int64()),  # ... of loading the model,
        pa.field("server_prefill_ns", pa.int64()),  # ... of reading the prompt,
        pa.field("server_decode_ns", pa.int64()),  # ... of writing the answer
        pa.field("retry_after_s", pa.float32()),
        pa.field("attempts", pa.int16(), nullable=False),  # 2: sent again, see keep_alive.py
        pa.field("lag_ns", pa.int64(), nullable=False),  # largest user time minus kernel time of its reads
        # Of each read that held several events in several packets: the index of its first event, and how long that may have
        # waited before the stamp; below 0 (since version 7 and 8) where it held events of other requests too, so that the last
        # one of this request may have waited as well.
        pa.field("merged_event", pa.list_(pa.int32())),
        pa.field("merged_ns", pa.list_(pa.int64())),
        pa.field(
            "submit_ns", pa.int64()
        ),  # length of the call that handed over the last byte, from t_submit on
        pa.field(
            "body_crc", pa.int64()
        ),  # CRC-32 of the body that was sent, where it was put together from answers
        pa.field("content", pa.string()),  # of `text`, what is class content; null: all of it, or none
        pa.field(
            "usage_steps", pa.string()
        ),  # steps that the usage lists, as JSON [kind, prompt, output]; null: none
    ],
    metadata={"inferometer": f"outcome/{OUTCOME_VERSION}"},
)

RECORD = pa.schema(
    [
        *OUTCOME,
        pa.field("input_tokens_asked", pa.int32(), nullable=False),
        pa.field("input_tokens_sent", pa.int32(), nullable=False),
        pa.field("output_tokens_asked", pa.int32(), nullable=False),
        pa.field("request_class", pa.int8()),
        pa.field("input_tokens_shared", pa.int32(), nullable=False),
        pa.field("input_tokens_repeated", pa.int32(), nullable=False),  # of those asked and sent
        pa.field("session", pa.int32()),
        pa.field("turn", pa.int16(), nullable=False),
        pa.field("turns", pa.int16(), nullable=False),
        pa.field("user", pa.int32()),
        pa.field("due_ns", pa.int64()),
        pa.field("output_tokens_local", pa.int32()),  # the declared tokenizer over the text
        pa.field("text_chars", pa.int32()),  # of the text, whether it is kept or not: see text_counts.py
        pa.field("text_bytes", pa.int32()),
        pa.field("text_lossy", pa.bool_()),
        pa.field("text_unseen", pa.int32()),
        pa.field("text_words", pa.int32()),
    ],
    metadata={"inferometer": f"record/{RECORD_VERSION}"},
)

PULSE = pa.schema(
    [
        pa.field("worker", pa.int16(), nullable=False),
        pa.field("t_ns", pa.int64(), nullable=False),
        pa.field("cpu_ns", pa.int64(), nullable=False),  # CPU time of the worker so far
        pa.field(
            "run_delay_ns", pa.int64()
        ),  # time it was ready to run and had no core, so far; null: not known
        pa.field("reads", pa.int64(), nullable=False),  # reads with a kernel stamp since the last pulse
        pa.field("lag_sum_ns", pa.int64(), nullable=False),
        pa.field("lag_max_ns", pa.int64(), nullable=False),
        pa.field("stall_max_ns", pa.int64(), nullable=False),  # longest time between two polls
        pa.field("clock_offset_ns", pa.int64(), nullable=False),  # CLOCK_REALTIME minus CLOCK_MONOTONIC
        pa.field("in_flight", pa.int32(), nullable=False),
        pa.field("sent", pa.int64(), nullable=False),
        pa.field("finished", pa.int64(), nullable=False),
        pa.field("events", pa.int64(), nullable=False),  # with text, of the requests that have ended
    ],
    metadata={"inferometer": "pulse/3"},
)
