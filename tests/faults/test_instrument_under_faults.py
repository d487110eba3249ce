"""The instrument against every fault of the reference server: real processes, and the truth log says which request met what.

Each run mixes several faults over few requests. The two records are joined by the nonce at the head of each prompt, so that
every measured request is held against the fault it truly met, and not against a number of them. A closed loop's lead-in and
lead-out meet faults too; they are sent again under the same nonce, and only counted.

The tokenizer is named: to learn the server's takes requests that no fault here is about, and that the faults would meet.
"""

from __future__ import annotations

import contextlib
import json
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trustme
from commands import only, run

from inferometer.calibration.join import nonces
from inferometer.drive.keep_alive import CLOSES
from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import Schedule
from inferometer.journal.schema import RECORD, EventClass, Phase
from inferometer.journal.seal import read_table
from inferometer.server.fault_specs import KINDS

MODEL = "modèle-模型"  # so that there is UTF-8 to cut through
ENGINE = [
    word
    for setting in ("prefill_base=1ms", "prefill_per_token=0us", "step_base=4ms", "jitter=0")
    for word in ("--set", setting)
]
TOKENS = 6
UNKNOWN = "unknown to the server"
PATIENCE = "5s"
"""How long a hanging answer is waited for; on a machine with twenty busy processes the probe itself took more than 2 s."""


@dataclass(frozen=True)
class Plan:
    """What one run is made of: the server's faults, what client and server are told beside the usual, and whether TLS is
    between them.
    """

    faults: tuple[str, ...]
    client: tuple[str, ...] = ("--requests", "20", "--concurrency", "8")
    server: tuple[str, ...] = ()
    tls: bool = False


FRESH = ("--requests", "40", "--concurrency", "8", "--connection", "new")

PLANS = {
    "failing": Plan(
        (
            "reset:after=2,share=0.1,skip=1",
            "hang:after=1,share=0.05,skip=1",
            "status:429=0.06,503=0.06,500=0.06,404=0.04,retry-after=7,skip=1",
            "html:share=0.07,skip=1",
            "html:status=502,share=0.07,skip=1",
            "malformed-json:share=0.1",
            "broken-chunk:share=0.1",
            "invalid-utf8:share=0.1",
            "huge-event:share=0.1",
        ),
        ("--requests", "180", "--concurrency", "16", "--timeout", PATIENCE),
    ),
    "odd": Plan(
        (
            "no-done:share=0.1",
            "double-done:share=0.1",
            "glue=3,share=0.1",
            "split=1,share=0.1",
            "trickle:bytes=60,ms=0.2,share=0.1",
            "comments:ms=2,share=0.15",
            "slow-headers:ms=15,share=0.15",
            "clock-skew:ms=-3600000,share=0.2",
            "huge-event:bytes=100000,share=0.2",
        ),
        ("--requests", "120", "--concurrency", "12"),
    ),
    "whole": Plan(
        (
            "reset:share=0.1,skip=1",
            "status:429=0.1,503=0.1,skip=1",
            "html:share=0.1,skip=1",
            "wrong-usage:by=3,share=0.15,skip=1",
            "slow-headers:ms=15,share=0.15,skip=1",
            "trickle:bytes=60,ms=0.2,share=0.15,skip=1",
            "split=7,share=0.2,skip=1",
            "clock-skew:share=0.3,skip=1",
            "malformed-json",  # not of whole answers: never met
        ),
        ("--requests", "120", "--concurrency", "8", "--no-stream", "--connection", "new"),
    ),
    "before the head": Plan(
        ("reset:after=0,share=0.2,skip=1", "hang:after=0,share=0.25,skip=1", "drop:share=0.3,skip=6"),
        (*FRESH, "--timeout", PATIENCE),
    ),
    "refused": Plan(("refuse:after=24",), ("--requests", "20", "--concurrency", "1", "--connection", "new")),
    "counting too few": Plan(("wrong-usage:by=-2,skip=1",)),
    "several a time": Plan(("tokens-per-event=3",)),
    "several a step": Plan(
        (
            "reset:after=2,share=0.15,skip=1",
            "hang:after=1,share=0.06,skip=1",
            "malformed-json:share=0.15",
            "broken-chunk:share=0.15",
            "tokens-per-event=5,share=0.2",
            "no-done:share=0.2",
            "glue=2,share=0.3",
            "comments:ms=2,share=0.4",
        ),
        ("--requests", "120", "--concurrency", "12", "--timeout", PATIENCE),
        ("--set", "draft_tokens=3", "--set", "acceptance=1"),  # events of one token, four and one
    ),
    "over TLS": Plan(
        (
            "reset:after=2,share=0.1,skip=1",
            "hang:after=1,share=0.05,skip=1",
            "status:503=0.08,skip=1",
            "html:share=0.08,skip=1",
            "malformed-json:share=0.1",
            "broken-chunk:share=0.1",
            "invalid-utf8:share=0.1",
            "huge-event:share=0.1",
            "split=1,share=0.15",
            "glue=3,share=0.2",
            "trickle:bytes=60,ms=0.2,share=0.2",
            "comments:ms=2,share=0.3",
            "slow-headers:ms=15,share=0.4",
            "no-done:share=0.5",
        ),
        ("--requests", "200", "--concurrency", "16", "--timeout", PATIENCE),
        tls=True,
    ),
    "closing": Plan(("close",), ("--requests", "120", "--concurrency", "8", "--workers", "2")),
    "closing, open loop": Plan(("close",), ("--requests", "120", "--rate", "60")),
    "closing, over TLS": Plan(("close",), ("--requests", "60", "--concurrency", "4"), tls=True),
    "sitting": Plan(("sit:ms=500,share=0.3,skip=4",), ("--requests", "60", "--concurrency", "4")),
    "before the head, over TLS": Plan(
        ("reset:after=0,share=0.2,skip=1", "hang:after=0,share=0.25,skip=1", "drop:share=0.3,skip=6"),
        (*FRESH, "--timeout", PATIENCE),
        tls=True,
    ),
}

CASES = [
    ("failing", "reset", "reset"),
    ("failing", "hang", "timeout"),
    ("failing", "status:429", "http_429"),
    ("failing", "status:503", "http_5xx"),
    ("failing", "status:500", "http_5xx"),
    ("failing", "status:404", "http_4xx"),
    ("failing", "html", "not_json http_5xx"),
    ("failing", "malformed-json", "bad_event"),
    ("failing", "broken-chunk", "bad_http"),
    ("failing", "invalid-utf8", "bad_event"),
    ("failing", "huge-event", "too_large"),
    ("odd", "no-done", "ok"),
    ("odd", "double-done", "ok"),
    ("odd", "glue", "ok"),
    ("odd", "split", "ok"),
    ("odd", "trickle", "ok"),
    ("odd", "comments", "ok"),
    ("odd", "slow-headers", "ok"),
    ("odd", "clock-skew", "ok"),
    ("odd", "huge-event", "ok"),
    ("whole", "reset", "reset"),
    ("whole", "status:429", "http_429"),
    ("whole", "status:503", "http_5xx"),
    ("whole", "html", "not_json"),
    ("whole", "wrong-usage", "ok"),
    ("whole", "slow-headers", "ok"),
    ("whole", "trickle", "ok"),
    ("whole", "split", "ok"),
    ("whole", "clock-skew", "ok"),
    ("before the head", "reset", "reset"),
    ("before the head", "hang", "timeout"),
    ("before the head", UNKNOWN, "reset connect_error"),
    ("refused", UNKNOWN, "connect_refused"),
    ("counting too few", "wrong-usage", "ok"),
    ("several a time", "tokens-per-event", "ok"),
    ("several a step", "reset", "reset"),
    ("several a step", "hang", "timeout"),
    ("several a step", "malformed-json", "bad_event"),
    ("several a step", "broken-chunk", "bad_http"),
    ("several a step", "tokens-per-event", "ok"),
    ("several a step", "no-done", "ok"),
    ("several a step", "glue", "ok"),
    ("several a step", "comments", "ok"),
    ("over TLS", "reset", "reset"),
    ("over TLS", "hang", "timeout"),
    ("over TLS", "status:503", "http_5xx"),
    ("over TLS", "html", "not_json"),
    ("over TLS", "malformed-json", "bad_event"),
    ("over TLS", "broken-chunk", "bad_http"),
    ("over TLS", "invalid-utf8", "bad_event"),
    ("over TLS", "huge-event", "too_large"),
    ("over TLS", "split", "ok"),
    ("over TLS", "glue", "ok"),
    ("over TLS", "trickle", "ok"),
    ("over TLS", "comments", "ok"),
    ("over TLS", "slow-headers", "ok"),
    ("over TLS", "no-done", "ok"),
    ("closing", "close", "ok"),
    ("closing, open loop", "close", "ok"),
    ("closing, over TLS", "close", "ok"),
    ("sitting", "sit", "reset"),
    ("before the head, over TLS", "reset", "reset"),
    ("before the head, over TLS", "hang", "timeout"),
    ("before the head, over TLS", UNKNOWN, "reset connect_error tls_error"),
]


@dataclass(frozen=True)
class Measured:
    """A run: its summary, the measured rows of its record with the `fault` that each truly met, the rows of its lead-in and
    lead-out, the schedule's measured rows, and the truth's rows by nonce.
    """

    summary: dict[str, Any]
    requests: list[dict[str, Any]]
    lead: list[dict[str, Any]]
    scheduled: list[int]
    truth: dict[str, dict[str, Any]]

    def met(self, label: str | None) -> list[dict[str, Any]]:
        """The measured requests that met this fault; None: that met none."""
        return [one for one in self.requests if one["fault"] == label]

    def check(self, code: str) -> dict[str, Any]:
        """A check of the verdict."""
        (found,) = (one for one in self.summary["verdict"]["checks"] if one["code"] == code)
        return dict(found)


def contents(row: dict[str, Any]) -> int:
    """Events with text."""
    return list(row["event_class"]).count(EventClass.CONTENT)


def secured(folder: Path) -> tuple[list[str], list[str], str]:
    """A certificate for this machine: what server and client are told of it, and the authority's file."""
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    cert, key, ca = (str(folder / name) for name in ("cert.pem", "key.pem", "ca.pem"))
    issued.cert_chain_pems[0].write_to_path(cert)
    issued.private_key_pem.write_to_path(key)
    authority.cert_pem.write_to_path(ca)
    return ["--tls-cert", cert, "--tls-key", key], ["--ca-file", ca], ca


def measure(plan: Plan, folder: Path) -> Measured:
    """Serve with the faults, measure, and join."""
    out = folder / "runs"
    out.mkdir()
    serving, trusting, ca = secured(folder) if plan.tls else ([], [], None)
    faults = [part for fault in plan.faults for part in ("--fault", fault)]
    command = [sys.executable, "-m", "inferometer.server", "--until-stdin-closes", "--model", MODEL]
    with subprocess.Popen(
        [*command, *ENGINE, *plan.server, *serving, *faults],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        url = server.stdout.readline().split()[1]
        client = ["--url", url, "--model", MODEL, *plan.client, *trusting, "--json", "--warmup", "0"]
        lengths = ["--input-tokens", "20", "--output-tokens", str(TOKENS), "--tokenizer", "cl100k_base"]
        code, stdout, stderr = run("run", *client, *lengths, out=out)
        assert code in (3, 4), stderr
        truth = b"" if plan is PLANS["refused"] else told(f"{url}/inferometer/truth", ca)
        _, complaints = server.communicate(timeout=30)
    assert (server.returncode, complaints) == (0, "")
    return joined(json.loads(stdout), RunFolder.open(only(out)), truth)


def told(url: str, ca: str | None) -> bytes:
    """What the server says there; a server that drops connections is asked again."""
    trust = ssl.create_default_context(cafile=ca)
    for _ in range(20):
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=30, context=trust) as response:
            return bytes(response.read())
    raise AssertionError("the server never let us in")


def joined(summary: dict[str, Any], folder: RunFolder, log: bytes) -> Measured:
    """The record's measured rows with what the truth says of each, and its others."""
    schedule = Schedule(folder.schedule)
    names = nonces(schedule.table, schedule.body)
    length = len(names[0])
    truth = {row["prompt_head"][:length]: row for row in map(json.loads, log.splitlines())}
    record = read_table(folder.record, RECORD).to_pylist()
    requests = [one for one in record if one["phase"] == Phase.MEASURE]
    lead = [one for one in record if one["phase"] == Phase.LEAD]
    assert len(requests) + len(lead) == len(record)
    rows = schedule.table.select(["index", "phase"]).to_pylist()
    scheduled = [row["index"] for row in rows if row["phase"] == Phase.MEASURE]
    for one in requests:
        one["nonce"] = names[one["index"]]
        one["fault"] = truth[one["nonce"]]["fault"] if one["nonce"] in truth else UNKNOWN
    return Measured(summary, requests, lead, scheduled, truth)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Measured]:
    """A run by its name, carried out once."""
    done: dict[str, Measured] = {}

    def get(name: str) -> Measured:
        if name not in done:
            done[name] = measure(PLANS[name], tmp_path_factory.mktemp("runs"))
        return done[name]

    return get


@pytest.mark.parametrize(("name", "label", "outcome"), CASES)
def test_a_request_that_met_a_fault_ends_as_the_fault_says(
    measured: Callable[[str], Measured], name: str, label: str, outcome: str
) -> None:
    """Every one of them, whatever happened beside it; and each outcome that is possible was seen."""
    hit = measured(name).met(label)
    if name == "refused":  # the server cannot be asked: those that got in are those that ended well
        hit = [one for one in hit if one["outcome"] != "ok"]
    assert hit
    seen, possible = {one["outcome"] for one in hit}, set(outcome.split())
    # Whether a connection dropped at once is found out before or after the request was handed over is a matter of luck.
    assert seen <= possible if label == UNKNOWN and "before the head" in name else seen == possible
    assert all(one["detail"] for one in hit if one["outcome"] != "ok")


@pytest.mark.parametrize("name", PLANS)
def test_no_other_request_is_harmed_and_none_is_lost(measured: Callable[[str], Measured], name: str) -> None:
    """What met no fault is ok with all its tokens; every request asked for has one row; the summary counts the same. Those of
    the lead-in and lead-out, which only several slots have, are in no count, and none of them has two rows.
    """
    run_ = measured(name)
    asked = int(PLANS[name].client[1])
    assert len(run_.scheduled) == asked
    assert sorted(one["index"] for one in run_.requests) == run_.scheduled
    load, amount = PLANS[name].client[2:4]
    assert bool(run_.lead) == (load == "--concurrency" and int(amount) > 1)
    assert len({(one["index"], one["cycle"]) for one in run_.lead}) == len(run_.lead)
    for one in run_.met(None):
        assert (one["outcome"], one["usage_output"], one["output_tokens_local"]) == ("ok", TOKENS, TOKENS)
    good = sum(one["outcome"] == "ok" for one in run_.requests)
    assert run_.summary["requests"]["sent"] == asked
    assert run_.summary["requests"]["completed"] == good
    assert sum(run_.summary["requests"]["by_error"].values()) == asked - good


@pytest.mark.parametrize("name", ["odd", "whole", "over TLS"])
def test_odd_answers_are_read_whole(measured: Callable[[str], Measured], name: str) -> None:
    """However the bytes are cut, glued, padded or commented: every token is there, once."""
    for one in measured(name).requests:
        if one["outcome"] == "ok":
            assert one["output_tokens_local"] == TOKENS, one["fault"]
            assert one["usage_output"] == TOKENS + 3 * (one["fault"] == "wrong-usage")
            assert contents(one) == (1 if name == "whole" else TOKENS)


def test_comments_are_events_without_text(measured: Callable[[str], Measured]) -> None:
    """They are in the record as what they are, and in no other answer."""
    for one in measured("odd").requests:
        commented = EventClass.COMMENT in one["event_class"]
        assert commented == (one["fault"] == "comments")


@pytest.mark.parametrize(
    ("name", "fault", "tokens"),
    [
        ("failing", "reset", 2),
        ("failing", "hang", 1),
        ("failing", "malformed-json", TOKENS - 1),
        ("failing", "invalid-utf8", TOKENS - 1),
        ("failing", "broken-chunk", 1),
        ("failing", "huge-event", 1),
        ("before the head", "reset", 0),
        ("before the head", "hang", 0),
        ("several a step", "reset", 2),  # of five tokens
        ("several a step", "hang", 1),
        ("several a step", "malformed-json", 2),
        ("several a step", "broken-chunk", 1),
        ("over TLS", "reset", 2),
        ("over TLS", "hang", 1),
        ("over TLS", "malformed-json", TOKENS - 1),
        ("over TLS", "invalid-utf8", TOKENS - 1),
        ("over TLS", "broken-chunk", 1),
        ("over TLS", "huge-event", 1),
    ],
)
def test_what_was_measured_before_a_fault_is_kept(
    measured: Callable[[str], Measured], name: str, fault: str, tokens: int
) -> None:
    """The events whose tokens left the server unharmed are in the record, each with its time."""
    for one in measured(name).met(fault):
        assert contents(one) == tokens
        assert len(one["event_ns"]) == len(one["event_class"])
        assert one["t_end"] >= max(one["event_ns"], default=0)


@pytest.mark.parametrize("name", [name for name in PLANS if name.startswith("closing")])
def test_a_server_that_closes_after_each_answer_is_learned_and_named(
    measured: Callable[[str], Measured], name: str
) -> None:
    """In both loops, by each worker and over TLS: a few requests are sent twice and hold that wait, then none; the note says
    so, and nearly all had a fresh connection from before they were taken up."""
    run_ = measured(name)
    sent = run_.lead + run_.requests
    check = run_.check("stale_connections")
    assert (check["status"], check["facts"]["kept"]) == ("note", "single_use")
    twice = [one for one in sent if one["attempts"] > 1]
    at_most = 2 * (CLOSES + 4)  # by each of two workers, and with four in flight when it learns
    assert len(twice) <= at_most
    assert all(one["t_send"] <= one["t_submit"] < one["t_first_byte"] for one in twice)
    ahead = [one for one in sent if one["t_connect"] and one["t_connect"] < one["t_taken"]]
    assert len(ahead) >= len(sent) - 2 * at_most


def test_a_server_that_sits_on_requests_and_drops_them_has_no_second_chance(
    measured: Callable[[str], Measured],
) -> None:
    """A close long after the request is an error of the server's; no quick answer to a second attempt stands for the first."""
    run_ = measured("sitting")
    for one in run_.met("sit"):
        assert (one["outcome"], one["attempts"]) == ("reset", 1)
        assert one["t_end"] - one["t_submit"] >= 450_000_000
    assert run_.check("error_rate")["status"] == "fail"
    assert run_.summary["verdict"]["status"] == "INVALID"


def test_retry_after_is_on_record_where_the_server_said_it(measured: Callable[[str], Measured]) -> None:
    """Of 429 and 503, and of nothing else."""
    for one in measured("failing").requests:
        said = one["fault"] in ("status:429", "status:503")
        assert one["retry_after_s"] == (7.0 if said else None)


def test_a_server_that_miscounts_is_found_out(measured: Callable[[str], Measured]) -> None:
    """Fewer tokens than events with text is a contradiction, and the run is INVALID by it."""
    assert measured("counting too few").check("token_counts")["status"] == "fail"


def test_several_tokens_an_event_are_noted(measured: Callable[[str], Measured]) -> None:
    """The check says so with their number, and ITL is named a time between chunks."""
    run_ = measured("several a time")
    check = run_.check("tokens_per_event")
    assert check["status"] == "note"
    assert check["facts"]["tokens_per_event"] == 3
    for one in run_.requests:
        assert contents(one) == TOKENS // 3
        assert len(run_.truth[one["nonce"]]["sent_ns"]) == TOKENS


def test_events_of_several_tokens_are_read_whole(measured: Callable[[str], Measured]) -> None:
    """Three events for six tokens, or two where they were merged; the server noted when each token left."""
    run_ = measured("several a step")
    for one in run_.requests:
        if one["outcome"] == "ok":
            assert one["output_tokens_local"] == one["usage_output"] == TOKENS
            assert contents(one) == (2 if one["fault"] == "tokens-per-event" else 3)
            assert len(run_.truth[one["nonce"]]["sent_ns"]) == TOKENS


def test_every_fault_is_tried_here() -> None:
    """A new fault needs its case."""
    tried = {label.partition(":")[0] for _, label, _ in CASES} | {"drop", "refuse"}
    assert tried - {UNKNOWN} == set(KINDS)
