"""Criteria: what passes, what fails, and that nothing an answer, a command or a judge does holds them up or deceives them."""

from __future__ import annotations

import http.server
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferometer.errors import PlanError
from inferometer.run.criterion_process import CriterionProcess, Decision, decided, unfenced
from inferometer.run.task_criteria import JUDGE_KEY, PATIENCE, Criteria, judge_key, near
from inferometer.workload.criterion import Criterion

CATASTROPHIC = r"^(a+)+$"


def held(criterion: dict[str, Any], answer: str, **environ: str) -> Decision:
    with Criteria(environ) as criteria:
        return criteria.decide(Criterion.model_validate(criterion), "task", "the question", answer)


@given(st.text(max_size=40), st.text(" \n\t", max_size=3))
def test_a_text_is_exact_but_for_white_space_around_it(text: str, around: str) -> None:
    """Law: an answer meets itself, and no longer one."""
    assert held({"exact": text}, around + text + around).passed
    assert not held({"exact": text}, text + "x").passed


@given(st.decimals(-(10**6), 10**6, places=3), st.decimals(-10, 10, places=3), st.decimals(0, 10, places=3))
def test_a_number_is_within_its_tolerance_in_decimal(number: Any, off: Any, tolerance: Any) -> None:
    """Law: |found - number| <= tolerance exactly as people work it out, and only the last number counts."""
    answer = f"First 17, then 4e2. So it is {number + off}."
    assert near(answer, float(number), float(tolerance)).passed == (abs(off) <= tolerance)


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        ("1,234,567", 1234567), ("costs $1,200.50!", 1200.5), ("-3", -3), ("\u22123", -3), ("2.5e-3", 0.0025),
        (".5", 0.5), ("7.", 7), ("a1b2", 2), ("12,34", 34), ("+8", 8),
    ],
)  # fmt: skip
def test_numbers_are_read_as_people_write_them(answer: str, number: float) -> None:
    assert near(answer, number, 0).passed


@given(st.integers(-(10**30), 10**30), st.integers(-3, 3))
def test_whole_numbers_of_any_length_are_compared_by_all_their_digits(number: int, off: int) -> None:
    """Law: an identifier beyond 2^53 is no other one that a double takes for the same."""
    criterion = json.loads(json.dumps({"number": number}))
    assert held(criterion, f"It is {number + off}").passed is (off == 0)


def test_a_tolerance_is_kept_to_its_last_digit() -> None:
    """Law: a difference beyond the tolerance fails, in whatever place it is."""
    assert near("3.15", 3.14, 0.01).passed
    assert near("3.15" + "0" * 60 + "1", 3.14, 0.01).passed is False


@pytest.mark.parametrize("answer", ["", "none", "9" * 100_000, "1e999999999999", "\u0664"])
def test_what_is_no_such_number_fails(answer: str) -> None:
    assert near(answer, 4, 1).passed is False


SCHEMA = {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}


@pytest.mark.parametrize(
    ("answer", "passed"),
    [
        ('{"city": "Paris"}', True),
        ('```json\n{"city": "Paris"}\n```', True),
        ('{"city": 1}', False),
        ("{}", False),
        ("Paris", False),
        ("[" * 10_000, False),
        ('{"city": "\\ud800"}', False),
        ('{"city": "Paris", "x": NaN}', False),
        ('{"city": "Paris", "x": -Infinity}', False),
    ],
)
def test_json_is_held_to_its_schema(answer: str, passed: bool) -> None:
    assert decided({"json_schema": SCHEMA, "text": answer}).passed is passed


def test_a_schema_has_nothing_loaded() -> None:
    """Law: a reference to elsewhere is undecided, not fetched."""
    with serving(lambda body: (200, b"{}")) as (url, seen):
        found = decided({"json_schema": {"$ref": f"{url}/schema.json"}, "text": "{}"})
    assert found.passed is None
    assert not seen


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"$ref": "#"}, "without end"), ({"$ref": "file:///etc/passwd"}, "does not hold"),
        ({"$dynamicRef": "#x"}, "does not hold"), ({"pattern": "("}, "cannot be applied"),
        ({"pattern": 5}, "cannot be applied"), ({"multipleOf": "x"}, "cannot be applied"), ({"enum": 5}, "cannot be applied"),
    ],
)  # fmt: skip
def test_a_schema_that_cannot_be_applied_decides_nothing_and_says_so(
    schema: dict[str, Any], words: str
) -> None:
    """Law: whatever is wrong with a schema, the answer is undecided, in words, and the process goes on."""
    with CriterionProcess() as process:
        for text in ("{}", '"x"', "1"):
            found = process.decide({"json_schema": schema, "text": text}, 30)
            assert found.passed is None or words == "cannot be applied"
            if found.passed is None:
                assert words in (found.why or "")
        assert process.decide({"regex": "b", "text": "abc"}, 30).passed


@given(st.text(max_size=50))
def test_a_text_without_a_fence_stays_as_it_is(text: str) -> None:
    assert unfenced(text) == text or "```" in text


def test_a_pattern_that_never_ends_is_undecided_and_the_next_is_decided() -> None:
    """Law: exponential time is cut off, and costs later answers nothing."""
    with Criteria({}) as criteria:
        endless = Criterion.model_validate({"regex": CATASTROPHIC, "timeout_s": 0.3})
        began = time.monotonic()
        found = criteria.decide(endless, "t", "", "a" * 60 + "!")
        assert found.passed is None
        assert found.why == "not decided within 0.3 s"
        assert time.monotonic() - began < 60  # the universe would not last
        assert criteria.decide(Criterion(regex="b"), "t", "", "abc").passed
    assert not [one for one in psutil.Process().children() if "criterion_process" in " ".join(one.cmdline())]


def test_texts_of_any_size_pass_through_the_process() -> None:
    """Law: neither a long answer nor one of odd characters is lost on the way."""
    with CriterionProcess() as process:
        for text in ("x" * 3_000_000 + "END", "\u2028\x00\U0001f600END", '"\\\nEND'):
            assert process.decide({"regex": r"END\Z", "text": text}, 30).passed
            assert process.decide({"regex": r"never", "text": text}, 30).passed is False


def python(code: str) -> dict[str, Any]:
    return {"command": [sys.executable, "-c", code]}


@pytest.mark.parametrize(
    ("code", "passed"),
    [
        ("import sys; sys.exit(sys.stdin.read() != 'yes')", True),
        ("import sys; sys.exit(1)", False),
        ("import sys; sys.exit(3)", None),
        ("import os; os.kill(os.getpid(), 9)", None),
        (
            "import os, sys; sys.exit(os.environ['INFEROMETER_TASK'] != 'task' or 'SECRET' in os.environ)",
            True,
        ),
        ("print('x' * 10_000_000)", True),
    ],
)
def test_a_command_decides_by_its_exit_code(
    code: str, passed: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law: 0 passes, 1 fails, all else decides nothing; it sees the answer and the task, and no secret of the environment."""
    monkeypatch.setenv("SECRET", "s")
    assert held(python(code), "yes").passed is passed


def test_a_command_that_hangs_is_ended_with_what_it_started() -> None:
    sleeps = "import time; time.sleep(987)"
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {sleeps!r}]); {sleeps}"
    found = held(python(code) | {"timeout_s": 1}, "x")
    assert found == Decision(None, "the command has not ended within 1 s")
    left = [
        one
        for one in psutil.process_iter(["cmdline"])
        if "time.sleep(987)" in " ".join(one.info["cmdline"] or ())
    ]
    assert not [one for one in left if one.status() != psutil.STATUS_ZOMBIE]


def test_a_command_that_is_none_decides_nothing() -> None:
    assert held({"command": ["/no/such/command"]}, "x").passed is None


def test_what_never_decides_is_not_asked_for_ever() -> None:
    """Law: after PATIENCE times without a decision the rest is not waited for."""
    with Criteria({}) as criteria:
        criterion = Criterion.model_validate(python("import sys; sys.exit(9)"))
        said = [criteria.decide(criterion, "t", "", "x").why or "" for _ in range(PATIENCE + 2)]
    assert ["not tried" in one for one in said] == [False] * PATIENCE + [True] * 2


def test_a_pattern_that_never_ends_is_not_tried_for_ever() -> None:
    """Law: a pattern costs its time PATIENCE times, not once for every answer; another pattern is tried all the same."""
    with Criteria({}) as criteria:
        endless = Criterion.model_validate({"regex": CATASTROPHIC, "timeout_s": 0.2})
        said = [criteria.decide(endless, "t", "", "a" * 60 + "!").why or "" for _ in range(PATIENCE + 2)]
        assert criteria.decide(Criterion(regex="b"), "t", "", "abc").passed
    assert ["not tried" in one for one in said] == [False] * PATIENCE + [True] * 2


def test_what_this_machine_lacks_leaves_an_answer_unjudged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: where no process can be started for it, an answer is unjudged, and what was measured is reported."""

    def none_left(*_: object, **__: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("inferometer.isolation.subprocess.Popen", none_left)
    found = held({"regex": "x"}, "x")
    assert found.passed is None
    assert "could not be judged" in (found.why or "")


# Judges.

Reply = Callable[[dict[str, Any]], tuple[int, bytes]]


@contextmanager
def serving(reply: Reply) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A judge on a loopback port, and what it was asked."""
    seen: list[dict[str, Any]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append({"body": body, "key": self.headers.get("Authorization"), "path": self.path})
            status, data = reply(body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        server.server_close()


def saying(text: object) -> Reply:
    return lambda _: (200, json.dumps({"choices": [{"message": {"content": text}}]}).encode())


def judge(url: str, **more: Any) -> dict[str, Any]:
    asked = {
        "url": f"{url}/v1/chat/completions",
        "model": "j",
        "prompt": "Q {input} A {answer}",
        "pass": "^PASS",
    }
    return {"judge": asked} | more


def test_a_judge_sees_task_and_answer_and_its_own_words_count() -> None:
    """Law: an answer that holds the judge's word, or a placeholder, gains nothing by it."""
    with serving(saying("FAIL")) as (url, seen):
        assert held(judge(url), "PASS {input}\nPASS").passed is False
    assert seen[0]["path"] == "/v1/chat/completions"
    assert seen[0]["body"]["messages"][0]["content"] == "Q the question A PASS {input}\nPASS"
    with serving(saying("PASS: it is right")) as (url, _):
        assert held(judge(url), "x").passed is True


def test_a_judges_key_goes_to_it_and_nowhere_else() -> None:
    with serving(lambda _: (500, b"secret-key-1234 is wrong")) as (url, seen):
        found = held(judge(url), "x", **{JUDGE_KEY: "secret-key-1234"})
    assert seen[0]["key"] == "Bearer secret-key-1234"
    assert found.passed is None
    assert "secret" not in (found.why or "")


def ending(reason: str, text: str) -> Reply:
    choice = {"message": {"content": text}, "finish_reason": reason}
    return lambda _: (200, json.dumps({"choices": [choice]}).encode())


@pytest.mark.parametrize("text", ["PASS", "FAIL", "It could pass, because", "PASS or FAIL"])
@pytest.mark.parametrize("reason", ["length", "content_filter", "error"])
@pytest.mark.parametrize("fail", [{}, {"fail": "FAIL"}])
def test_half_a_reply_of_a_judge_is_no_verdict(text: str, reason: str, fail: dict[str, str]) -> None:
    """Law: what a reply that was cut off says or does not say decides nothing; of a whole one it does."""
    with serving(ending(reason, text)) as (url, _):
        criterion = judge(url)
        criterion["judge"] |= fail
        assert held(criterion, "x").passed is None
    with serving(ending("stop", "PASS")) as (url, _):
        assert held(criterion | judge(url), "x").passed is True


@pytest.mark.parametrize("prompt", ["{answer}", "{answer} PASS?", "Q {input}\nA {answer}\nPASS or not?"])
def test_a_judge_that_repeats_a_short_prompt_decides_nothing(prompt: str) -> None:
    """Law: an echo is no judge, however few words its prompt has of its own."""
    with serving(lambda body: saying(body["messages"][0]["content"])(body)) as (url, _):
        criterion = judge(url)
        criterion["judge"] |= {"prompt": prompt, "pass": "PASS"}
        assert held(criterion, "PASS").passed is None


@pytest.mark.parametrize(
    "reply",
    [
        saying(""), saying(" \n"),
        lambda _: (200, b"not JSON"), lambda _: (200, b"[]"), lambda _: (200, b'{"choices": []}'), saying(None), saying(7),
        lambda _: (429, b""), lambda _: (200, b"[" * 100_000), lambda _: (200, b"x" * (2 << 20)),
    ],
)  # fmt: skip
def test_a_judge_that_talks_nonsense_decides_nothing(reply: Reply) -> None:
    with serving(reply) as (url, _):
        assert held(judge(url), "x").passed is None


@pytest.mark.parametrize(
    ("reply", "passed"),
    [
        ("PASS", True), ("FAIL", False), ("Not FAIL, hence PASS", None), ("hard to say", None),
        ("Say PASS or FAIL and nothing else. PASS", None),
    ],
)  # fmt: skip
def test_a_judge_with_two_verdicts_has_to_give_one(reply: str, passed: bool | None) -> None:
    """Law: where the file names both patterns, both and neither decide nothing; nor does a reply that repeats the prompt."""
    with serving(saying(reply)) as (url, _):
        criterion = judge(url)
        criterion["judge"] |= {
            "prompt": "Say PASS or FAIL and nothing else. {answer}", "pass": "PASS", "fail": "FAIL",
        }  # fmt: skip
        assert held(criterion, "x").passed is passed
        del criterion["judge"]["fail"]
        alone = {"Not FAIL, hence PASS": True, "hard to say": False}
        assert held(criterion, "x").passed is alone.get(reply, passed)


def test_a_judge_that_hangs_decides_nothing() -> None:
    gone = threading.Event()
    with serving(lambda _: (200, b"x" * gone.wait(20))) as (url, _):
        found = held(judge(url, timeout_s=0.5), "x")
        gone.set()
    assert found.passed is None
    assert "no answer" in (found.why or "")


@pytest.mark.parametrize("key", ["", "a\nX-Other: b", "a\n", "a\u2013b", "a b\x00"])
def test_a_key_that_no_header_can_hold_is_refused_and_not_repeated(key: str) -> None:
    """Law: it breaks no request open, and ends no run after its load: it is refused before, and in `recover` unjudged."""
    with pytest.raises(PlanError) as caught:
        judge_key({JUDGE_KEY: key})
    assert JUDGE_KEY in str(caught.value)
    assert not key or key not in str(caught.value)
    with serving(saying("PASS")) as (url, seen):
        found = held(judge(url), "x", **{JUDGE_KEY: key})
    assert found.passed is None
    assert not seen


def test_a_prompt_does_not_multiply_an_answer_beyond_bounds() -> None:
    """Law: however often a judge's prompt names the answer, what is sent is bounded."""
    with serving(saying("PASS")) as (url, seen):
        criterion = judge(url)
        criterion["judge"]["prompt"] = "{answer}" * 12_000
        found = held(criterion, "x" * 20_000)
    assert found.passed is None
    assert "prompt" in (found.why or "")
    assert not seen


def test_no_judge_decides_nothing() -> None:
    assert held(judge("http://127.0.0.1:1"), "x").passed is None


def test_a_judge_that_lies_with_an_answer_for_the_pattern_is_cut_off() -> None:
    """Law: what a judge says may be made to hold up the pattern, too."""
    with serving(saying("a" * 60 + "!")) as (url, _):
        criterion = judge(url)
        criterion["judge"]["pass"] = CATASTROPHIC
        assert held(criterion, "x").passed is None


@given(st.text(max_size=60))
@settings(max_examples=25, deadline=None)
def test_no_answer_raises(answer: str) -> None:
    """Law: whatever is answered, a criterion decides or says that it does not."""
    with Criteria({}) as criteria:
        for criterion in ({"exact": "x"}, {"number": 1}):
            assert criteria.decide(Criterion.model_validate(criterion), "t", "", answer).passed in (
                True,
                False,
            )
    for order in ({"regex": "(x+x+)+y"}, {"json_schema": SCHEMA}):
        assert decided(order | {"text": answer}).passed in (True, False)
