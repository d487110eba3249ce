"""What turns say: their own messages as drawn, and what they repeat counted as far as it can be known."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from inferometer.documents.part import to_data
from inferometer.errors import PlanError
from inferometer.plan.schema import Load, Plan
from inferometer.workload.agent_sessions.source import SessionRows
from inferometer.workload.context_limit import SLACK, Room
from inferometer.workload.prompt_file import segments
from inferometer.workload.prompts import Fingerprint, Prompt
from inferometer.workload.request_statistics import Account
from inferometer.workload.sources import Batch, Rendering, RequestSource, TraceRows, sourced
from inferometer.workload.tokenizers import Tokenizer
from inferometer.workload.turn_schedule import Place, arranged

CLASSES = [
    {"name": "a", "input_tokens": 20, "output_tokens": 3, "content": "english",
     "shared_prefix": {"tokens": 30, "share": 1.0}},
    {"name": "b", "input_tokens": 12, "output_tokens": 4},
]  # fmt: skip
LOAD = Load(concurrency=4, requests=40)


def talk(tokenizer: Tokenizer, salt: int = 1, load: Load = LOAD, **workload: Any) -> list[Prompt]:
    plan, source = sourced(Plan.model_validate({"load": load, "workload": workload}))
    assert not isinstance(source, TraceRows | SessionRows)
    return said(plan, source, tokenizer, salt)


def said(plan: Plan, source: RequestSource, tokenizer: Tokenizer, salt: int) -> list[Prompt]:
    spec, load = plan.workload, plan.load
    places = arranged(
        load, spec.seed, source.sessions(spec.seed), load.requests, warm=False, alone=spec.turns is None
    )
    batch = Batch(len(places), salt, spec.seed, places=places)
    return list(source.prompts(Rendering(tokenizer, "text"), batch))


def place(prompt: Prompt) -> Place:
    assert prompt.place is not None
    return prompt.place


@pytest.mark.parametrize(
    "workload",
    [{"input_tokens": "uniform(8,30)", "output_tokens": 5}, {"classes": CLASSES}, {"name": "conversation"}],
    ids=["lengths", "classes", "conversation"],
)
@pytest.mark.parametrize("replies", ["server", "recorded"])
def test_every_turn_is_as_long_as_asked_and_repeats_all_before_it(
    workload: dict[str, Any], replies: str, cl100k: Tokenizer
) -> None:
    """A turn's own messages end with a user's, of the length drawn; it repeats all before it and the answers to that."""
    prompts = talk(cl100k, turns="uniform(1,4)", replies=replies, **workload)
    for _, turns in groupby(prompts, lambda prompt: place(prompt).session):
        before, of, shared, last = 0, set(), set(), 0
        for prompt in turns:
            assert prompt.messages is not None
            assert prompt.messages[-1][0] == "user"
            own = sum(len(cl100k.encode(text)) for _, text in prompt.messages)
            assert (prompt.sent, prompt.repeated) == (own, before)
            assert prompt.sent == prompt.requested
            assert len(prompt.messages) == 1 or place(prompt).turn == 0
            assert prompt.known == before - last  # the newest recorded reply is new to everybody
            answered = prompt.output
            if replies == "recorded":
                assert prompt.reply is not None
                [(role, text)] = prompt.reply
                assert role == "assistant"
                assert len(cl100k.encode(text)) == prompt.output
            else:
                assert prompt.reply is None
            before += own + answered
            last = answered if replies == "recorded" else 0
            shared.add((prompt.shared, prompt.group))
            of.add(prompt.request_class)
        assert len(of) == len(shared) == 1


def test_turns_change_nothing_about_what_is_said(cl100k: Tokenizer) -> None:
    """The same seed, the same texts: turns decide only who repeats them."""
    lengths: dict[str, Any] = {"input_tokens": "uniform(8,30)", "output_tokens": "uniform(2,9)"}
    alone = talk(cl100k, **lengths)
    turns = talk(cl100k, turns=3, **lengths)
    assert [(one.content, one.requested, one.output) for one in turns] == [
        (one.content, one.requested, one.output) for one in alone
    ]


def test_the_fingerprint_is_that_of_the_conversations_whatever_the_salt_and_the_load(
    cl100k: Tokenizer,
) -> None:
    """Turns, think times and recorded replies are in it; nonces, arrivals and users are not."""

    def fingerprint(salt: int = 1, load: Load = LOAD, **changes: Any) -> str:
        lengths = {"input_tokens": 20, "output_tokens": 5, "turns": 2} | changes
        found = Fingerprint()
        list(found.of(talk(cl100k, salt, load, **lengths)))
        return str(found)

    same = fingerprint()
    assert same == fingerprint(salt=77)
    assert same == fingerprint(load=Load(rate=9, requests=40))
    others = [fingerprint(turns=4), fingerprint(think_ms=5), fingerprint(replies="recorded")]
    assert len({same, *others}) == 4


def test_a_conversation_can_be_found_in_a_cache_but_for_its_newest_words(cl100k: Tokenizer) -> None:
    """The best possible rate: all that was repeated, but for the newest of recorded replies, over all that was sent."""
    for replies, new in (("server", 0), ("recorded", 5)):
        prompts = talk(cl100k, turns=4, replies=replies, input_tokens=20, output_tokens=5)
        account = Account()
        list(account.of(prompts))
        known = sum(one.repeated - new for one in prompts if one.repeated)
        facts = to_data(account.facts())
        assert facts["prefix_hits"]["exact"] == known / sum(one.sent + one.repeated for one in prompts)
    assert facts["repeated_input_tokens"]["max"] == 3 * 25
    assert facts["unshared_input_tokens"]["mean"] == 20


ROWS = [
    {"messages": [
        {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Name a river."},
        {"role": "assistant", "content": "The Rhine."}, {"role": "user", "content": "Another?"},
        {"role": "assistant", "content": "The Po."}, {"role": "user", "content": "A third?"},
    ], "output_tokens": 7},
    {"prompt": "Name a lake.", "output_tokens": 3},
]  # fmt: skip


def test_rows_of_a_file_are_conversations_whose_answers_can_be_repeated(
    tmp_path: Path, cl100k: Tokenizer
) -> None:
    """Each turn has the messages up to an answer; nonces stand in the first turn alone; `turns` is the most of a row."""
    path = tmp_path / "talks.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    own: dict[str, Any] = {"prompts": str(path), "turns": 2, "replies": "recorded"}
    prompts = talk(cl100k, load=Load(concurrency=1, requests=6), **own)
    assert [(place(one).session, place(one).turn, place(one).turns) for one in prompts] == [
        (0, 0, 2), (0, 1, 2), (1, 0, 1), (2, 0, 2), (2, 1, 2), (3, 0, 1),
    ]  # fmt: skip
    first, second, third = prompts[:3]
    assert first.messages is not None
    assert [text.rpartition("\n")[2] for _, text in first.messages] == ["Be brief.", "Name a river."]
    assert first.nonce in first.messages[1][1]
    assert (first.reply, second.messages) == ((("assistant", "The Rhine."),), (("user", "Another?"),))
    assert (second.nonce, second.repeated) == ("", first.sent + len(cl100k.encode("The Rhine.")))
    assert (third.reply, third.repeated) == ((), 0)
    live = talk(cl100k, load=Load(concurrency=1, requests=6), **own | {"replies": "server"})
    assert [one.reply for one in live] == [None] * 6
    assert [one.messages for one in live] == [one.messages for one in prompts]
    assert live[1].repeated == live[0].sent + 7


def test_segments_lose_no_message_and_end_where_somebody_answers() -> None:
    """Whatever the roles."""
    chat = tuple(
        (role, str(at)) for at, role in enumerate(["system", *["assistant", "user", "user", "assistant"] * 2])
    )
    found = segments(chat)
    assert tuple(one for own, answer in found for one in own + answer) == chat
    assert [[role for role, _ in own] for own, _ in found] == [
        ["system", "assistant", "user", "user"],
        ["user", "user"],
    ]
    assert [len(answer) for _, answer in found] == [2, 1]


def test_a_turn_needs_room_for_all_that_it_repeats(cl100k: Tokenizer) -> None:
    """The bounds tell before anything is drawn whether one could be too long; the first that is blames the turns."""
    lengths: dict[str, Any] = {"input_tokens": 20, "output_tokens": 5, "turns": "uniform(1,6)"}
    plan, source = sourced(Plan.model_validate({"workload": lengths}))
    spec, most = plan.workload, 6 * 20 + 6 * 5
    assert source.limit(cl100k, Room(most + 6 * SLACK, exact=True, counter="t")) is None
    assert source.limit(cl100k, Room(most - 1, exact=True, counter="t")) is not None
    prompts = talk(cl100k, **lengths)
    with pytest.raises(PlanError) as raised:
        list(Room(most - 1, exact=True, counter="t").checked(spec, prompts, ""))
    assert "--turns" in str(raised.value)
    assert "is 145 tokens long" in str(raised.value)
    assert list(Room(most, exact=True, counter="t").checked(spec, prompts, "")) == prompts
