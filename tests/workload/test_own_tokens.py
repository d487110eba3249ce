"""Lengths and tokens without a tokenizer in the plan: the server's own, by whatever the server offers."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import finish, only, run
from peers import Script, Seen, chunked, scripted, whole

from inferometer.documents.workload import LearnedRatio
from inferometer.plan.lengths import fixed, uniform
from inferometer.plan.request_class import RequestClass
from inferometer.plan.schema import Plan
from inferometer.plan.workload import LengthsWorkload, MixtureWorkload, StandardWorkload
from inferometer.run import own_tokens
from inferometer.workload import mixture, natural_text, prompts
from inferometer.workload.prompts import Prompt
from inferometer.workload.shared_prefixes import Composer
from inferometer.workload.tokenizer_learned import Learned
from inferometer.workload.tokenizers import Tokenizer
from inferometer.workload.traces.row import Row

REQUESTS, ANSWER, TEMPLATE = 40, 5, 11
LOAD = [
    *("--requests", str(REQUESTS), "--concurrency", "4", "--warmup", "4", "--json"),
    *("--input-tokens", "uniform(150,400)", "--output-tokens", str(ANSWER)),
]


class Dressed:
    """A chat server that counts with a tokenizer of its own and adds a template; `count` may lie about a text's tokens."""

    def __init__(
        self,
        theirs: Tokenizer,
        *,
        tokenize: bool = False,
        usage: bool = True,
        count: Callable[[int, bool], int] = lambda tokens, streamed: tokens,
        reading: Callable[[list[int]], Script] | None = None,
    ) -> None:
        self.theirs, self.tokenize, self.usage, self.count = theirs, tokenize, usage, count
        self.reading = reading or counted

    def __call__(self, seen: Seen) -> Script:
        """The answer to any request."""
        if seen.method == "GET":
            return Script(whole(200, b'{"data":[{"id":"m"}]}'))
        body = json.loads(seen.body)
        if "tokenize" in seen.target:
            if not self.tokenize or "detokenize" in seen.target:
                return Script(whole(404, b'{"detail":"Not Found"}'))
            return self.reading(self.theirs.encode(body.get("prompt", "")))
        text = "".join(message["content"] for message in body["messages"])
        count = self.count(len(self.theirs.encode(text)) + TEMPLATE, body["stream"])
        made = body.get("max_tokens", 1)
        usage = {"prompt_tokens": count, "completion_tokens": made} if self.usage else None
        if not body["stream"]:
            choice = {"message": {"content": "hi"}, "finish_reason": "stop"}
            return Script(whole(200, json.dumps({"choices": [choice], "usage": usage}).encode()))
        return Script(chunked(*events(made, usage)))


def counted(ids: list[int]) -> Script:
    """What /tokenize answers."""
    return Script(whole(200, json.dumps({"tokens": ids, "count": len(ids)}).encode()))


def events(made: int, usage: dict[str, int] | None) -> Iterator[bytes]:
    """A chat's stream: so many words, the end, usage if there is any."""
    parts = [*[({"content": f" w{i}"}, None) for i in range(made)], ({}, "length")]
    for delta, reason in parts:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        yield b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"
    if usage is not None:
        yield b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\n"
    yield b"data: [DONE]\n\n"


def measured(server: Dressed, out: Path, *flags: str) -> tuple[dict[str, Any], list[Seen]]:
    """The summary of a run on that server, and what the server saw."""
    with scripted(server, limit=400, tokenize=True) as peer:
        url = ("--url", f"http://127.0.0.1:{peer.port}")
        _, stdout, stderr = run("run", *LOAD, *url, *flags, out=out)
    summary = json.loads(stdout or "null")
    assert summary is not None, stderr
    assert summary["requests"]["completed"] == REQUESTS
    return summary, peer.seen


def check(summary: dict[str, Any], code: str = "prompt_length") -> dict[str, Any]:
    [found] = [one for one in summary["verdict"]["checks"] if one["code"] == code]
    return dict(found)


def report(out: Path) -> str:
    return (only(out) / "report.md").read_text(encoding="utf-8")


def test_by_default_lengths_and_tokens_are_those_of_the_servers_tokenize(
    tiny: Tokenizer, tmp_path: Path
) -> None:
    """Every prompt is as long as requested by the server's count, template included, and answers are counted by it."""
    summary, _ = measured(Dressed(tiny, tokenize=True), tmp_path)
    tokens = summary["tokens"]
    assert (tokens["tokenizer"]["kind"], tokens["tokenizer"]["method"]) == ("server", "native")
    assert tokens["prompt"]["asked_mean"] == tokens["prompt"]["server_mean"]
    assert tokens["prompt"]["misses"] == 0
    assert summary["metrics"]["output_tokens"]["mean"] == ANSWER
    assert check(summary)["status"] == "pass"
    assert "cut until the server's /tokenize counted the requested length" in report(tmp_path)


def test_without_tokenize_lengths_are_the_servers_by_a_learned_ratio(tiny: Tokenizer, tmp_path: Path) -> None:
    """The mean is as requested by the server's count, which judges it; at most seven short requests taught the ratio, and the
    report names it and them."""
    summary, seen = measured(Dressed(tiny), tmp_path)
    tokens = summary["tokens"]
    learned = tokens["tokenizer"]["learned"]
    assert tokens["tokenizer"]["kind"] == "learned"
    assert learned["ratio"] > 1.5  # or cl100k_base could be taken for it
    assert learned["template"] in range(TEMPLATE, TEMPLATE + 3)  # a greeting of up to three tokens
    assert abs(tokens["prompt"]["server_mean"] / tokens["prompt"]["asked_mean"] - 1) <= 0.02
    assert (check(summary)["status"], check(summary)["facts"]["judged_by"]) == ("pass", "mean")
    unmeasured = [one for one in seen if one.method == "POST" and b'"stream":false' in one.body]
    assert len(unmeasured) == learned["requests"] <= own_tokens.MOST_REQUESTS
    assert all(json.loads(one.body)["max_tokens"] == 1 for one in unmeasured)
    assert "learned before the load from 7 unmeasured requests" in report(tmp_path)
    assert tokens["count_source"] == "server usage"
    assert summary["metrics"]["output_tokens"]["mean"] == ANSWER


@pytest.mark.parametrize("by", [0.9, 1.1])
def test_a_server_that_counts_otherwise_in_the_load_fails_by_its_own_count(
    by: float, tiny: Tokenizer, tmp_path: Path
) -> None:
    """A miss of the mean by a tenth is INVALID, whatever the prompts are by our count."""
    liar = Dressed(tiny, count=lambda tokens, streamed: round(tokens * by) if streamed else tokens)
    summary, _ = measured(liar, tmp_path)
    assert check(summary)["status"] == "fail"
    assert summary["verdict"]["status"] == "INVALID"


def test_without_usage_the_length_of_prompts_is_undecided(tiny: Tokenizer, tmp_path: Path) -> None:
    """Our own count of a prompt does not pass it; figures per token are marked as estimated."""
    summary, _ = measured(Dressed(tiny, usage=False), tmp_path)
    assert summary["tokens"]["tokenizer"]["kind"] == "none"
    assert (check(summary)["status"], check(summary)["facts"]["judged_by"]) == ("unsure", "client")
    assert summary["verdict"]["status"] != "VALID"
    assert "(tokens/s, estimated)" in report(tmp_path)


def test_usage_that_does_not_grow_teaches_nothing(tiny: Tokenizer, tmp_path: Path) -> None:
    """A constant count is no tokenizer's: prompts are sized by the yardstick, and growth or a note says what came of it."""
    summary, _ = measured(Dressed(tiny, count=lambda tokens, streamed: 60), tmp_path)
    assert summary["tokens"]["tokenizer"]["kind"] == "none"
    assert check(summary)["status"] == "fail"
    assert check(summary)["facts"]["judged_by"] == "growth"


RUBBISH: dict[str, Callable[[list[int]], Script]] = {
    "no JSON": lambda _: Script(whole(200, b"<html>welcome</html>")),
    "JSON without end": lambda _: Script(whole(200, b"[" * 200_000)),
    "no HTTP": lambda _: Script([b"SSH-2.0-OpenSSH_9.2\r\n"], then="close"),
    "nothing": lambda _: Script(then="hang"),
    "closed at once": lambda _: Script(then="close"),
    "reset": lambda _: Script(then="reset"),
    "no list": lambda _: Script(whole(200, b'{"tokens": 7}')),
    "numbers that are no integers": lambda ids: Script(
        whole(200, json.dumps({"tokens": [one + 0.5 for one in ids]}).encode())
    ),
    "one token for any text": lambda _: counted([7]),
    "the same id for each": lambda ids: counted([7] * len(ids)),
    "a token for each eighth of one": lambda ids: counted(ids * 8),
    "a redirection": lambda _: Script(whole(302, b"", b"Location: /")),
    "declared and never sent": lambda _: Script(
        [b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n{"]
    ),
}


@pytest.mark.parametrize("what", RUBBISH)
def test_a_tokenize_that_is_none_is_not_used(what: str, tiny: Tokenizer, tmp_path: Path) -> None:
    """Whatever it answers: the run is sized by the ratio of usage, and is right by the server's count, to four standard
    deviations of what five prompts to learn from and forty to measure leave."""
    summary, _ = measured(Dressed(tiny, tokenize=True, reading=RUBBISH[what]), tmp_path)
    tokens = summary["tokens"]
    assert tokens["tokenizer"]["kind"] == "learned"
    assert abs(tokens["prompt"]["server_mean"] / tokens["prompt"]["asked_mean"] - 1) <= 0.026


@pytest.mark.parametrize("by", [0.5, 0.95, 1.05, 2.0])
def test_a_tokenize_that_contradicts_usage_leaves_the_length_of_prompts_undecided(
    by: float, tiny: Tokenizer, tmp_path: Path
) -> None:
    """Usage and /tokenize cannot both count what the model reads: figures follow usage, and no run is VALID by that."""
    liar = Dressed(tiny, tokenize=True, count=lambda tokens, streamed: round(tokens * by))
    summary, seen = measured(liar, tmp_path)
    learned = summary["tokens"]["tokenizer"]["learned"]
    assert abs(learned["disputed"] * by - 1) < 0.02
    assert check(summary)["status"] == "unsure"
    assert check(summary)["facts"]["judged_by"] == "dispute"
    assert summary["verdict"]["status"] != "VALID"
    assert "The server contradicts itself" in report(tmp_path)
    unmeasured = [one for one in seen if b'"stream":false' in one.body]
    assert len(unmeasured) == learned["requests"] <= own_tokens.MOST_REQUESTS


def test_a_tokenize_is_held_to_usage_by_one_more_request_alone(tiny: Tokenizer, tmp_path: Path) -> None:
    """Beside the greeting; and a server whose usage has a token more for some prompts (a beginning of sequence) agrees."""
    odd = Dressed(tiny, tokenize=True, count=lambda tokens, streamed: tokens + tokens % 2)
    summary, seen = measured(odd, tmp_path)
    assert summary["tokens"]["tokenizer"]["kind"] == "server"
    assert check(summary)["status"] == "pass"
    assert sum(b'"stream":false' in one.body for one in seen) == 2


def test_a_template_longer_than_the_prompts_is_refused_with_its_length(
    tiny: Tokenizer, tmp_path: Path
) -> None:
    """2,000 tokens around every prompt of 400 leave no room, with and without /tokenize: exit 2, before any load."""
    for tokenize in (True, False):
        server = Dressed(tiny, tokenize=tokenize, count=lambda tokens, streamed: tokens + 2000)
        with scripted(server, limit=100, tokenize=True) as peer:
            url = ("--url", f"http://127.0.0.1:{peer.port}")
            code, _, stderr = run("run", *LOAD, *url, out=tmp_path)
        assert code == 2
        assert f"chat template adds {2000 + TEMPLATE + (0 if tokenize else 2)}" in stderr  # a greeting of 3
        assert "--count-template no" not in stderr  # a surplus that is no template fails there
        assert not any(b'"stream":true' in one.body for one in peer.seen)


def test_usage_that_is_no_count_confirms_no_length(tiny: Tokenizer, tmp_path: Path) -> None:
    """A server that says 300 of any prompt is not believed where 300 were requested."""
    liar = Dressed(tiny, count=lambda tokens, streamed: 300)
    summary, _ = measured(liar, tmp_path, "--input-tokens", "300")
    assert summary["tokens"]["prompt"]["server_mean"] == 300
    assert (check(summary)["status"], check(summary)["facts"]["judged_by"]) == ("unsure", "usage")
    assert summary["verdict"]["status"] != "VALID"


def test_another_tokenizer_is_a_choice_named_beside_each_headline(tiny: Tokenizer, tmp_path: Path) -> None:
    """Console, report.md and report.html name it for TPOT and throughput, and not for TTFT; by default nothing is named."""
    for flags, named in ((("--tokenizer", "o200k_base"), True), ((), False)):
        out = tmp_path / str(named)
        measured(Dressed(tiny, tokenize=True), out, *flags)
        folder = only(out)
        _, console, _ = finish("report", str(folder), COLUMNS="160")
        page = (folder / "report.html").read_text(encoding="utf-8")
        assert ("Time per Output Token (ms, o200k" in console) == named
        for text in (console, report(out)):
            assert ("Output Token Throughput (tokens/s, o200k" in text) == named
            assert "Time to First Token (ms, o200k" not in text
        assert ("tok/s, o200k_base" in page) == named


def taught(plan: Plan, theirs: Tokenizer, seed: int) -> Learned:
    """What would be learned for a plan of a server with that tokenizer."""
    sample = own_tokens.sampler(plan, None)
    assert sample is not None

    def count(text: str) -> int:
        return len(theirs.encode(text)) + TEMPLATE

    found = own_tokens.learn(count, count("Hello"), sample, own_tokens.LONG, random.Random(seed))
    assert isinstance(found, LearnedRatio)
    return Learned(found)


KINDS: dict[str, Any] = {
    "random": LengthsWorkload(input_tokens=uniform(150, 400), output_tokens=fixed(5)),
    "natural": StandardWorkload(name="conversation", input_tokens=uniform(150, 400), output_tokens=fixed(5)),
    "mixture": MixtureWorkload(
        classes=(
            RequestClass(name="a", input_tokens=uniform(80, 200), output_tokens=fixed(5), content="english"),
            RequestClass(name="b", input_tokens=uniform(150, 400), output_tokens=fixed(5), content="english"),
        )
    ),
}


def made(kind: str, workload: Any, by: Tokenizer, n: int) -> Iterator[Prompt]:
    """The prompts of a kind, written by that tokenizer."""
    if kind == "natural":
        return natural_text.generate(workload, by, n, 7, "text")
    generate = mixture.generate if kind == "mixture" else prompts.generate
    return generate(workload, by, n, 7, "text")


@pytest.mark.parametrize(
    ("kind", "name"),
    [*product(KINDS, ["o200k"]), ("random", "tiny"), ("mixture", "tiny")],
)
def test_prompts_of_each_kind_reach_their_mean_length_by_the_ratio(
    kind: str, name: str, request: pytest.FixtureRequest
) -> None:
    """Of 200 prompts the mean by the server's tokenizer is within 2 % of what was requested, in at least 9 of 10 lessons.

    A tokenizer of 4,096 entries counts two texts of one kind so differently that a few shared prefixes, as `conversation` has,
    may be off by more than that.
    """
    theirs: Tokenizer = request.getfixturevalue(name)
    plan = Plan(workload=KINDS[kind])
    off = []
    for seed in range(10):
        by = taught(plan, theirs, seed)
        found = list(made(kind, KINDS[kind], by, 200))
        server = np.mean([len(theirs.encode(str(prompt.content))) for prompt in found])
        off.append(server / np.mean([prompt.requested for prompt in found]) - 1)
        sent = np.mean([prompt.sent for prompt in found])
        assert abs(sent / np.mean([prompt.requested for prompt in found]) - 1) < 0.01
    assert sum(abs(one) <= 0.02 for one in off) >= 9, off


def test_a_trace_reaches_its_lengths_by_the_ratio_and_shares_what_it_says(tiny: Tokenizer) -> None:
    """Rows of many lengths, some with the same first blocks: as long as traced by the server in the mean, and alike there."""
    sample = own_tokens.trace_sample
    learned = own_tokens.learn(
        lambda text: len(tiny.encode(text)), 1, sample, own_tokens.LONG, random.Random(3)
    )
    assert isinstance(learned, LearnedRatio)
    by = Learned(learned)
    rows = [Row(line, 0, 300 + 37 * line, 5, None, (1, line + 9)) for line in range(1, 41)]
    composer = Composer(KINDS["random"], by, 7, "text")
    texts = [str(composer.prompt(row).content) for row in rows]
    traced = np.mean([row.input_tokens or 0 for row in rows])
    assert abs(np.mean([len(tiny.encode(text)) for text in texts]) / traced - 1) <= 0.03
    heads = {text[: len(texts[0]) // 3] for text in texts[20:]}
    assert len(heads) == 1


def test_a_ratio_of_one_changes_no_prompt(cl100k: Tokenizer) -> None:
    """A server that counts as cl100k_base does gets the very prompts that cl100k_base makes."""
    exact = Learned(LearnedRatio(1.0, 1.0, 1.0, 3, 0, 5, 3000))
    for kind in ("random", "natural"):
        by_ratio, by_count = (list(made(kind, KINDS[kind], by, 40)) for by in (exact, cl100k))
        assert [prompt.content for prompt in by_ratio] == [prompt.content for prompt in by_count]
