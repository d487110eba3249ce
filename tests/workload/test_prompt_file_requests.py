"""A file of prompts: read whole before anything is sent, refused with its line and field, sent as it is but for nonces."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import random
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferometer.errors import PlanError
from inferometer.plan.workload import PromptsWorkload
from inferometer.workload import prompt_file_requests
from inferometer.workload.context_limit import Room
from inferometer.workload.prompt_file import FIELDS, LONGEST_LINE, MOST_PROBLEMS, PromptFile, survey
from inferometer.workload.prompts import Fingerprint, Prompt
from inferometer.workload.tokenizers import Tokenizer
from inferometer.workload.turn_schedule import Place

few = settings(max_examples=30, deadline=None)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60).filter(
    str.strip
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {"output_tokens": st.integers(1, 999)},
        optional={
            "system": TEXT,
            "class": st.sampled_from(["gold", "free"]),
            "priority": st.integers(-5, 5),
            "sampling": st.just({"top_p": 0.5}),
            "extra_body": st.just({"tier": ["a,b", 'say "x"\n']}),
        },
    ).flatmap(
        lambda row: st.one_of(
            TEXT.map(lambda text: row | {"prompt": text}),
            st.lists(TEXT, min_size=1, max_size=3).map(
                lambda texts: row | {"messages": [{"role": "user", "content": text} for text in texts]}
            ),
        )
    ),
    min_size=1,
    max_size=6,
)


def jsonl(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def as_csv(rows: list[dict[str, Any]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, [name for name in FIELDS if any(name in row for row in rows)])
    writer.writeheader()
    for row in rows:
        writer.writerow(
            {
                name: json.dumps(value) if isinstance(value, dict | list) else value
                for name, value in row.items()
            }
        )
    return text.getvalue().encode()


def read(path: Path, content: bytes, *, chat: bool = True, needs_output: bool = True) -> PromptFile:
    path.write_bytes(content)
    return survey(path, chat=chat, needs_output=needs_output)


def problems(path: Path, content: bytes, **how: bool) -> list[str]:
    with pytest.raises(PlanError) as caught:
        read(path, content, **how)
    return [str(problem) for problem in caught.value.problems]


def sent(file: PromptFile, tokenizer: Tokenizer, n: int, salt: int = 5, **more: Any) -> list[Prompt]:
    spec = PromptsWorkload.model_validate({"prompts": str(file.path), **more})
    return list(prompt_file_requests.generate(spec, tokenizer, file, n, salt))


@given(ROWS, st.booleans())
@few
def test_rows_come_back_from_either_format_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], reverse: bool
) -> None:
    """Law: what was written is what is read, by row number, whatever quotes, breaks and signs it holds."""
    path = tmp_path_factory.mktemp("own") / "prompts"
    order = range(len(rows))[:: -1 if reverse else 1]
    for content in (jsonl(rows), as_csv(rows)):
        file = read(path, content)
        assert (len(file), file.sha256) == (len(rows), hashlib.sha256(content).hexdigest())
        for number, row in zip(order, file.rows(order), strict=True):
            want = rows[number]
            texts = [one["content"] for one in want["messages"]] if "messages" in want else [want["prompt"]]
            before = [("system", want["system"])] if "system" in want else []
            assert list(row.chat) == [*before, *(("user", text) for text in texts)]
            fields = {**want.get("sampling", {}), **want.get("extra_body", {})}
            fields |= {"priority": want["priority"]} if "priority" in want else {}
            assert (row.output_tokens, row.class_, row.fields) == (
                want["output_tokens"],
                want.get("class"),
                fields,
            )
        first_seen = dict.fromkeys(row["class"] for row in rows if "class" in row)
        assert file.classes == tuple(first_seen)
        assert file.systems == sum("system" in row for row in rows)


def test_everything_wrong_is_told_at_once_with_line_and_field_and_without_a_prompts_words(
    tmp_path: Path,
) -> None:
    """The file's base name, the line as an editor counts it, the field; never a text of the file's."""
    secret = "the words of a prompt"
    rows: list[object] = [
        {"prompt": secret, "output_tokens": 5},
        {"prompt": "  \n", "output_tokens": 5},
        {"prompt": secret, "messages": [{"role": "user", "content": secret}], "output_tokens": 5},
        {"output_tokens": 5},
        {"prompt": 7, "output_tokens": 0},
        {"messages": [{"role": "robot", "content": secret}], "output_tokens": 5},
        {"messages": [{"role": "system", "content": secret}], "output_tokens": 5},
        {"messages": [], "output_tokens": 5},
        {"prompt": secret, "promt": secret, "output_tokens": 5},
        {"prompt": secret},
        {"prompt": secret, "output_tokens": 5, "extra_body": {"max_tokens": 3}},
        {"prompt": secret, "output_tokens": 5, "extra_body": {"note": "Bearer abc"}},
        {"prompt": secret, "output_tokens": 5, "class": "no spaces, please"},
        {"prompt": "\ud800", "output_tokens": 5},
        [secret],
    ]
    lines = [json.dumps(row) for row in rows]
    lines.insert(1, "")
    content = ("\n".join([*lines, '{"prompt": "x"'])).encode() + b'\n{"prompt": "\xff"}\n'
    found = problems(tmp_path / "own.jsonl", content)
    places = [one.split(": ")[0] + ": " + one.split(": ")[1].split(",")[0] for one in found]
    assert [place.removeprefix("own.jsonl:") for place in places] == [
        "3: prompt", "4: prompt", "5: prompt", "6: prompt", "6: output_tokens", "7: messages[0].role",
        "8: messages", "9: messages", "10: promt", "11: output_tokens", "12: extra_body", "13: extra_body",
        "14: class", "15: prompt", "16: must be a JSON object", "17: is no JSON", "18: is not UTF-8 text",
    ]  # fmt: skip
    assert secret not in "".join(found)
    assert str(tmp_path) not in "".join(found)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "own: is empty"),
        (b"\n \r\n", "own: holds nothing but blank lines"),
        (b"\xef\xbb\xbf", "own: holds nothing but blank lines"),
        (b"output_tokens\n3\n", "own:1: a CSV file begins with a line of fields"),
        (b"prompt,output_tokens\n", "own: holds no prompt"),
        (b"question,output_tokens\nHi,3\n", "own:1: question: no such field"),
        (b"prompt,prompt\nHi,3\n", "own:1: names a field twice"),
        (b"prompt,output_tokens\nHi\n", "own:2: has 1 cells, where the first line names 2 fields"),
        (b"prompt,output_tokens\nHi,many\n", "own:2: output_tokens: must be a whole number, not 'many'"),
        (b'prompt,output_tokens\n"a\nb",3\n"c,4\n', "own:4: unexpected end of data"),
        (b"prompt,extra_body,output_tokens\nHi,{,3\n", "own:2: extra_body is no JSON"),
        (b"prompt,\xff\nHi,3\n", "own:1: is not UTF-8 text"),
        (b"prompt,output_tokens\n,3\n", "own:2: prompt: a row has either prompt or messages"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    """Each with what is wrong, at its line; lines inside a quoted cell count."""
    assert words in problems(tmp_path / "own", content)[0]


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        ([b"prompt,", (b"x", 200_000), b"\nHi,3\n"], f"own:1: {'x' * 60}: no such field"),
        ([b'prompt,output_tokens\n"', (b"x" * 65_535 + b"\n", LONGEST_LINE >> 16)], "own:2: is longer than 32 MiB"),
        ([b'prompt,output_tokens\n"', (b'a","', 3), (b"x" * 65_535 + b'\n","', LONGEST_LINE >> 16)], "own:2: is longer"),
        ([b"prompt,extra_body\nHi,", (b"[", 5_000), b"\n"], "own:2: extra_body is nested more than 100 levels deep"),
        ([b'{"prompt": "Hi", "output_tokens": ', (b"9", 5_000), b"}\n"], "own:1: holds a number of more than 4,300"),
        ([b'{"prompt": "Hi", "x": ', (b"[", 400), (b"]", 400), b"}\n"], "own:1: is nested more than 100 levels deep"),
    ],
)  # fmt: skip
def test_a_file_without_bounds_is_refused(
    tmp_path: Path, pieces: list[bytes | tuple[bytes, int]], words: str
) -> None:
    """Rows that do not end, depth and digits: in words, whatever the interpreter has against them."""
    content = b"".join(one if isinstance(one, bytes) else one[0] * one[1] for one in pieces)
    assert words in problems(tmp_path / "own", content)[0]


def test_mistakes_of_one_line_are_not_all_told(tmp_path: Path) -> None:
    """A line of some megabytes can hold millions, each of which would take its words in memory."""
    unknown = {f"x{number}": 1 for number in range(2_000)}
    for row, words in (
        (unknown, "own:1: an object in it has 2,000 members: at most 1,000"),
        ({"prompt": "Hi", "sampling": unknown}, "own:1: an object in it has 2,000 members"),
        ({"messages": [unknown]}, "own:1: messages[0]: an object in it has 2,000 members"),
        ({"messages": [0] * 2_000}, "own:1: messages[0]: must be"),
        (dict(list(unknown.items())[:900]), "own:1: x0: no such field"),
    ):
        found = problems(tmp_path / "own", json.dumps(row).encode())
        assert len(found) <= MOST_PROBLEMS + 1
        assert found[0].startswith(words)
    assert len(problems(tmp_path / "own", b"prompt" + b",x" * 2_000)) <= MOST_PROBLEMS


def test_a_file_of_nothing_but_mistakes_is_not_read_to_its_end(tmp_path: Path) -> None:
    """MOST_PROBLEMS and the word that there may be more; and a file that is not there is a problem too."""
    for content in (b'{"promt": 1, "output_tokens": 1}\n', b"{no JSON\n", b"prompt\n" + b'"a" b\n'):
        found = problems(tmp_path / "own", content * 1000)
        assert len(found) == MOST_PROBLEMS + 1
        assert "not read any further" in found[-1]
    with pytest.raises(PlanError, match="no such file"):
        survey(tmp_path / "nowhere", chat=True, needs_output=False)


def test_what_only_a_chat_has_is_refused_for_completions(tmp_path: Path) -> None:
    """Messages and system prompts have no place in a text completion."""
    rows: list[dict[str, Any]] = [
        {"prompt": "a", "system": "b", "output_tokens": 1},
        {"messages": [{"role": "user", "content": "c"}], "output_tokens": 1},
        {"prompt": "d", "output_tokens": 1},
    ]
    found = problems(tmp_path / "own", jsonl(rows), chat=False)
    assert [one.split(": ")[1] for one in found] == ["system", "messages"]


@given(st.integers(1, 30), st.integers(0, 70), st.integers(0, 2**40))
@few
def test_rows_are_taken_in_the_order_asked_for(rows: int, skip: int, seed: int) -> None:
    """File: as they stand, over and over. Shuffled: each pass holds every row once. Sampled: the standard library's draws."""
    n = 3 * rows

    def taken(order: str) -> list[int]:
        spec = PromptsWorkload.model_validate({"prompts": "x", "order": order, "seed": seed})
        return list(islice(prompt_file_requests.numbers(spec, rows, skip), n))

    assert taken("file") == [(skip + at) % rows for at in range(n)]
    shuffled = taken("shuffled")
    assert all(sorted(shuffled[at : at + rows]) == list(range(rows)) for at in range(0, n, rows))
    rng = random.Random(seed)
    assert taken("sampled") == [rng.randrange(rows) for _ in range(n)]


def test_prompts_are_sent_as_they_are_behind_a_line_with_their_nonce(
    tmp_path: Path, cl100k: Tokenizer
) -> None:
    """Every request has its own nonce before its first user message; a system prompt has the run's, the same for all."""
    rows: list[dict[str, Any]] = [
        {"prompt": "Say hello."},
        {"prompt": "And again.", "system": "Be kind."},
        {
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "One?"},
                {"role": "assistant", "content": "Two."},
                {"role": "user", "content": "Three?"},
            ]
        },
    ]
    file = read(tmp_path / "own.jsonl", jsonl(rows), needs_output=False)
    prompts = sent(file, cl100k, 9, output_tokens=4)
    assert len({prompt.nonce for prompt in prompts}) == 9
    commons = set()
    for at, prompt in enumerate(prompts):
        chat = prompt.messages or (("user", str(prompt.content)),)
        assert (prompt.messages is None) == (at % 3 == 0)
        plain = [text.split("\n", 1) if "\n" in text else ["", text] for _, text in chat]
        wanted = next(islice(file.rows([at % 3]), 1)).chat
        assert [(role, text) for (role, _), (_, text) in zip(chat, plain, strict=True)] == list(wanted)
        first = [role for role, _ in chat].index("user")
        assert plain[first][0] == prompt.nonce
        commons |= {plain[0][0]} if first else set()
        assert prompt.requested == prompt.sent == sum(len(cl100k.encode(text)) for _, text in chat)
    assert len(commons) == 1
    assert not commons & {prompt.nonce for prompt in prompts}
    again = sent(file, cl100k, 3, output_tokens=4, repeatable_prompts=True)
    assert [prompt.nonce for prompt in again] == [""] * 3
    assert again[0].content == "Say hello."


def test_the_fingerprint_of_own_prompts_leaves_nonces_out(tmp_path: Path, cl100k: Tokenizer) -> None:
    """Another salt changes nothing of it; another word, role or field does."""

    def of(salt: int, **row: Any) -> str:
        file = read(
            tmp_path / "own", jsonl([{"prompt": "Hi there", "system": "Be.", "output_tokens": 3} | row])
        )
        found = Fingerprint()
        prompts = sent(file, cl100k, 4, salt)
        assert list(found.of(prompts)) == prompts
        lengths = {prompt.sent for prompt in prompts}
        assert len(lengths) == 1
        return str(found)

    assert of(1) == of(2)
    assert len({of(1), of(1, prompt="Hi here"), of(1, priority=1), of(1, output_tokens=4)}) == 4


def test_answers_without_a_length_get_one_of_the_plans(tmp_path: Path, cl100k: Tokenizer) -> None:
    """A row's own length stands; the others' are drawn from the plan's, the same each time."""
    rows: list[dict[str, Any]] = [{"prompt": "a", "output_tokens": 77}, {"prompt": "b"}]
    file = read(tmp_path / "own", jsonl(rows), needs_output=False)
    outputs = [prompt.output for prompt in sent(file, cl100k, 40, output_tokens="uniform(1,9)")]
    assert set(outputs[::2]) == {77}
    assert set(outputs[1::2]) <= set(range(1, 10))
    assert len(Counter(outputs[1::2])) > 3
    assert outputs == [prompt.output for prompt in sent(file, cl100k, 40, output_tokens="uniform(1,9)")]


def test_a_prompt_longer_than_the_model_takes_is_refused(tmp_path: Path, cl100k: Tokenizer) -> None:
    """By the model's own tokenizer exactly, answer included; by a yardstick only where no tokenizer could make it fit."""
    word = " hello"
    rows = [{"prompt": "a", "output_tokens": 9}, {"prompt": "b" + word * 99, "output_tokens": 10}]
    file = read(tmp_path / "own.jsonl", jsonl(rows))
    spec = PromptsWorkload(prompts=str(file.path))
    prompt_file_requests.check_lengths(spec, cl100k, file, Room(110, True, cl100k.name))
    prompt_file_requests.check_lengths(spec, cl100k, file, Room(60, False, cl100k.name))
    with pytest.raises(
        PlanError, match=r"own\.jsonl:2: prompt: is 100 tokens long by cl100k_base.*takes 109"
    ):
        prompt_file_requests.check_lengths(spec, cl100k, file, Room(109, True, cl100k.name))
    with pytest.raises(PlanError, match=r"own\.jsonl:2: prompt"):
        prompt_file_requests.check_lengths(spec, cl100k, file, Room(59, False, cl100k.name))
    with pytest.raises(PlanError, match=r"100 tokens long by cl100k_base and 3 of the chat template"):
        prompt_file_requests.check_lengths(spec, cl100k, file, Room(112, True, cl100k.name, 3))


def test_a_file_is_tight_where_a_drawn_answer_or_a_nonce_could_lack_room(
    tmp_path: Path, cl100k: Tokenizer
) -> None:
    """Rows that fit as they stand, and may not once an answer's length is drawn: then each request has to be looked at."""
    file = read(tmp_path / "own.jsonl", jsonl([{"prompt": "hello " * 50}]), needs_output=False)
    spec = PromptsWorkload.model_validate({"prompts": str(file.path), "output_tokens": "uniform(1,200)"})
    assert prompt_file_requests.check_lengths(spec, cl100k, file, Room(200, True, cl100k.name))
    assert not prompt_file_requests.check_lengths(spec, cl100k, file, Room(400, True, cl100k.name))


def test_a_file_that_changes_after_it_was_read_is_noticed(tmp_path: Path, cl100k: Tokenizer) -> None:
    """Rows that are no rows any more are a PlanError, not a traceback."""
    file = read(tmp_path / "own.jsonl", jsonl([{"prompt": "a", "output_tokens": 9}] * 3))
    file.path.write_bytes(b"{")
    with pytest.raises(PlanError, match=r"own\.jsonl:1: has changed"):
        sent(file, cl100k, 2)


def test_a_turn_in_which_no_user_says_anything_is_refused_with_its_line(
    tmp_path: Path, cl100k: Tokenizer
) -> None:
    """As one request such a chat is sent as it is; as a conversation it has a turn that nobody asks."""
    said = ["user", "assistant", "system", "assistant", "user"]
    rows = [{"prompt": "hi", "output_tokens": 3}]
    rows.append({"messages": [{"role": role, "content": "x"} for role in said], "output_tokens": 3})
    file = read(tmp_path / "rows.jsonl", jsonl(rows))
    assert len(sent(file, cl100k, 2)) == 2
    spec = PromptsWorkload.model_validate({"prompts": str(file.path), "replies": "recorded"})
    places = [Place(0, 0, 1, 0), *(Place(1, turn, 3, 0) for turn in range(3))]
    with pytest.raises(PlanError, match=r"rows\.jsonl:2: messages: .*role user"):
        list(prompt_file_requests.conversations(spec, cl100k, file, places, 5))
