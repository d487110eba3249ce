"""JSON nested as deep as a decoder takes it, and deeper: whatever reads it afterwards, it costs one request and no worker."""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path

import pytest
from wording import OF_JSON, body, ending, fed, reply, text, whole

from inferometer.engines.answer import Answer, error_text, names_a_policy
from inferometer.engines.dialect import load, messages_bytes
from inferometer.journal.redact import Redactor
from inferometer.journal.schema import OUTCOME
from inferometer.journal.seal import read_stream
from inferometer.journal.writer import Journal

PLACES = ("error", "usage", "message", "detail", "choices", "content")
ABOVE, BELOW = 60, 4
"""Frames of the interpreter by which its readers and writers of JSON give up apart from one another."""


def depths() -> list[int]:
    """Around the depth at which the interpreter gives up, from where this is called; and far from it."""
    limit = sys.getrecursionlimit()
    left = limit - len(inspect.stack(0))
    return [1, 50, *range(left - ABOVE, left + BELOW, 2), 5 * limit, 20_000]


def deep(depth: int, opening: str = "[", closing: str = "]") -> str:
    return opening * depth + "1" + closing * depth


def hostile(api: str, depth: int) -> list[bytes]:
    """Bodies that hold deep JSON: in each place by itself, beside a good answer, as the arguments of a call, and bare."""
    good = json.dumps(whole(api, "a"))[1:]
    nested = (deep(depth), deep(depth, '{"error":', "}"))
    found = [f'{{"{place}":{nested[0]},{good}' for place in PLACES]
    found += [
        f'{{"type":"response.failed","response":{{"error":{nested[0]}}}}}',
        f'{{"object":"response","status":"failed","error":{nested[0]}}}',
        f'{{"type":"message","content":[{{"type":"tool_use","name":"f","input":{nested[0]}}}]}}',
        f'{{"message":{{"tool_calls":[{{"function":{{"name":"f","arguments":{nested[0]}}}}}]}},"done":true}}',
        *nested,
    ]
    return [one.encode() for one in found]


@pytest.mark.parametrize("api", OF_JSON)
def test_a_deep_answer_has_an_outcome_and_a_row(api: str, tmp_path: Path) -> None:
    """Law: streamed, whole, of a foreign type and with an error's status, each response ends its exchange; and what becomes of
    the exchange, its row and the turn that repeats it, raises nothing."""
    (tmp_path / "journal").mkdir()
    journal = Journal(tmp_path / "journal", 0, Redactor(["secret-of-the-test"]), "run")
    count = 0
    for content in (one for depth in depths() for one in hostile(api, depth)):
        responses = [
            reply(api, body(api, text(api, "a"), content, *ending(api))),
            reply(api, body(api, content)),
            reply(api, content, "application/json"),
            reply(api, content, "text/plain"),
            reply(api, content).replace(b"200 OK", b"500 X"),
        ]
        for response in responses:
            exchange, channel = fed(api, [response], close=True)
            assert exchange.outcome
            assert channel.ended == [exchange]
            journal.add(exchange, 1)
            messages_bytes([("assistant", exchange.answer.reply())])
            count += 1
    journal.flush()
    journal.close()
    assert read_stream(tmp_path / "journal" / "worker-0.arrows", OUTCOME).num_rows == count


@pytest.mark.parametrize("api", OF_JSON)
def test_no_reader_of_a_whole_answer_raises(api: str) -> None:
    """The probe reads answers by these, without a channel around them."""
    for content in (one for depth in depths() for one in hostile(api, depth)):
        load(api).read_whole(Answer(), content, 0)
        error_text(content).encode()
        names_a_policy(content)


def test_an_answer_of_signs_that_nobody_sees_is_held_in_bounds() -> None:
    """Such events are put before the first text, and each would copy all before it: 20,000 of them are read, and told."""
    zero_width = [text("chat", "\u200b")] * 20_000
    exchange, _ = fed("chat", [reply("chat", body("chat", *zero_width, text("chat", "a"), *ending("chat")))])
    assert exchange.outcome == "ok"
    assert "".join(exchange.answer.texts) == "\u200b" * 20_000 + "a"
    assert len(exchange.answer.unseen) == 0
