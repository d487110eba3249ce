"""Plans from files and flags: what is implied, what overrides what, and every problem at once with its place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import trustme
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inferometer.errors import PlanError, Problem
from inferometer.plan.flags import BY_NAME, FLAGS
from inferometer.plan.parse import build
from inferometer.plan.schema import Plan
from inferometer.plan.wording import every_key
from inferometer.plan.workload import StandardWorkload

Write = Callable[[str], Path]

CANARY = "sk-CANARY0123456789"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a plan file; gives its path."""

    def write_text(text: str) -> Path:
        path = tmp_path / "plan.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write_text


def refused(path: Path | None, given: dict[str, object] | None = None) -> list[Problem]:
    """The problems of a plan; none if it can be carried out. A PlanError without problems fails the test."""
    try:
        build(path, given)
    except PlanError as error:
        return error.problems or [Problem("nowhere", "no problem named")]
    return []


def problems(
    path: Path | None = None, flags: dict[str, object] | None = None, environ: dict[str, str] | None = None
) -> dict[str, str]:
    """Where and message of every problem of a plan that must be refused; the folder is left out of file names."""
    with pytest.raises(PlanError) as caught:
        build(path, flags, environ=environ)
    folder = "" if path is None else f"{path.parent}/"
    found: dict[str, str] = {}
    for problem in caught.value.problems:
        where = problem.where.removeprefix(folder)
        found[where] = f"{found[where]} | {problem.message}" if where in found else problem.message
    return found


def test_nothing_given_is_a_closed_loop_of_a_thousand_requests_on_the_embedded_server() -> None:
    """The defaults are complete: load, workload, tokenizer, and no url."""
    plan = build()
    assert plan == Plan()
    assert (plan.load.model, plan.load.concurrency, plan.load.requests, plan.load.rate) == (
        "closed",
        16,
        1000,
        None,
    )
    assert (plan.workload.name, str(plan.workload.input_tokens)) == ("synthetic-uniform", "uniform(128,512)")
    assert (plan.tokenizer.name, plan.tokenizer.method, plan.target.url) == ("auto", "native", None)


def test_every_flag_reaches_its_key() -> None:
    """A right value for each flag of the table gives a plan that holds it, and the table has no key the schema lacks."""
    given: dict[str, object] = {
        "--url": "https://Example.com:8443/proxy/v1/",
        "--model": "m",
        "--api": "completions",
        "--rate": "20",
        "--arrival": "gamma",
        "--burstiness": "0.5",
        "--requests": "2000",
        "--duration": "5m",
        "--warmup": "100",
        "--warmup-tokens": "10000",
        "--warmup-probes": "12",
        "--drain": "10s",
        "--workload": "code-completion",
        "--input-tokens": "normal(550,150)",
        "--output-tokens": "150",
        "--dataset": "stack.jsonl",
        "--dataset-subset": "python",
        "--dataset-version": "v1.2",
        "--seed": "7",
        "--prompt-format": "ids",
        "--repeatable-prompts": True,
        "--no-ignore-eos": True,
        "--min-tokens": True,
        "--tokenizer": "./tok",
        "--token-count": "reference",
        "--count-template": "no",
        "--slo": ["ttft_p99<500ms", "success_rate>99%"],
        "--workers": "2",
        "--hosts": "4",
        "--subtract-rtt": True,
        "--host-telemetry": True,
        "--host-telemetry-interval": "500ms",
        "--power": ["auto", "command:echo 7"],
        "--keep-text": "errors",
        "--connection": "new",
        "--http": "2",
        "--streams-per-connection": "1",
        "--name": "nightly",
        "--timeout": "90s",
        "--probe-timeout": "2m",
        "--max-answer": "0.5",
        "--max-events": "100",
        "--max-overrun": "500ms",
        "--no-stream": True,
        "--header": ["X-A: one", "X-B: two: three"],
        "--extra-body": '{"top_p": 0.9}',
        "--api-key-env": "KEY",
        "--ca-file": "ca.pem",
        "--boundary": "engine",
        "--quantization": "fp8",
        "--hardware": "H100x4:80GB",
        "--prefix-caching": "disabled",
        "--cache-state": "cold",
        "--guardrails": "both:Llama Guard,Filter",
    }
    # Each excludes another flag of the list; the trace's are in tests/plan/test_plan_trace.py.
    elsewhere = {"--concurrency", "--api-key-file", "--insecure", "--prompts", "--prompts-order"}
    elsewhere |= {"--users", "--user-rate", "--turns", "--think-ms", "--replies"}  # in test_plan_turns.py
    elsewhere |= {
        "--sessions",
        "--sessions-format",
        "--tool-ms",
        "--session-header",
    }  # in test_plan_sessions.py
    elsewhere |= {"--tasks", "--task-commands", "--spans"}  # in test_plan_tasks.py
    elsewhere |= {"--workload-file", "--declare"}  # the latter in test_plan_declarations.py
    elsewhere |= {name for name in BY_NAME if name.startswith("--trace")}
    elsewhere |= {
        name for name in BY_NAME if "metrics" in name
    }  # these and the next in test_plan_server_metrics.py
    elsewhere |= {"--slice-duration", "--histogram-estimator"}
    assert set(given) | elsewhere == set(BY_NAME)
    assert {flag.key for flag in FLAGS} <= set(every_key())
    plan = build(None, given)
    host = plan.host_telemetry
    assert (host.enabled, host.interval_s, host.power) == (True, 0.5, ("auto", "command:echo 7"))
    target, load, workload, sut = plan.target, plan.load, plan.workload, plan.sut
    assert (target.url, target.model, target.api) == ("https://example.com:8443/proxy", "m", "completions")
    assert (target.timeout_s, target.stream, target.connection) == (90, False, "new")
    assert (target.http, target.streams_per_connection) == ("2", 1)
    assert (target.probe_timeout_s, target.max_overrun_s) == (120, 0.5)
    assert (target.max_answer_mib, target.max_events) == (0.5, 100)
    assert target.headers == {"X-A": "one", "X-B": "two: three"}
    assert (target.extra_body, target.api_key_env, target.tls_ca_file) == ({"top_p": 0.9}, "KEY", "ca.pem")
    assert (load.model, load.rate, load.arrival, load.burstiness) == ("open", 20, "gamma", 0.5)
    assert (load.requests, load.duration_s, load.warmup, load.drain_s) == (2000, 300, 100, 10)
    assert (workload.name, str(workload.input_tokens), str(workload.output_tokens)) == (
        "custom",
        "normal(550,150)",
        "150",
    )
    assert isinstance(workload, StandardWorkload)
    assert (workload.based_on, workload.dataset) == ("code-completion", "stack.jsonl")
    assert (workload.dataset_subset, workload.dataset_version) == ("python", "v1.2")
    assert (workload.seed, workload.prompt_format) == (7, "ids")
    assert (workload.repeatable_prompts, workload.ignore_eos, workload.min_tokens) == (True, False, True)
    assert workload.count_template is False
    assert (plan.tokenizer.name, plan.tokenizer.method) == ("./tok", "reference")
    assert [str(slo) for slo in plan.slos] == ["ttft_p99<500ms", "success_rate>0.99"]
    assert (plan.instrument.workers, plan.instrument.keep_text, plan.name) == (2, "errors", "nightly")
    assert (sut.accelerator, sut.accelerator_count, sut.accelerator_memory) == ("H100", 4, "80GB")
    assert (sut.boundary, sut.quantization, sut.prefix_caching) == ("engine", "fp8", "disabled")
    assert sut.cache_state == "cold"
    assert (sut.guardrails.input_filter, sut.guardrails.output_filter) == (True, True)
    assert sut.guardrails.names == ("Llama Guard", "Filter")


def test_flags_that_are_absent_change_nothing() -> None:
    """None, False and an empty list are how a command line says: not given."""
    absent: dict[str, object] = {
        flag.name: False if flag.switch else [] if flag.repeat else None for flag in FLAGS
    }
    assert build(None, absent) == Plan()


@pytest.mark.parametrize(
    ("text", "accelerator", "count", "memory"),
    [
        ("cpu", "cpu", 0, None),
        ("H100", "H100", 1, None),
        ("MI300Xx8", "MI300X", 8, None),
        ("MI300X", "MI300X", 1, None),
        ("rtx4090", "rtx4090", 1, None),
        ("A100 x 2", "A100 x 2", 1, None),
        ("L4x2:24GB", "L4", 2, "24GB"),
    ],
)
def test_hardware_is_a_name_and_a_count(text: str, accelerator: str, count: int, memory: str | None) -> None:
    """An X inside a product's name is no multiplication sign."""
    sut = build(None, {"--hardware": text}).sut
    assert (sut.accelerator, sut.accelerator_count, sut.accelerator_memory) == (accelerator, count, memory)


def test_several_wrong_flags_are_all_named() -> None:
    """No wrong flag hides another, repeated ones and those read before the schema included."""
    found = problems(
        None,
        {
            "--rate": "fast",
            "--requests": "0",
            "--input-tokens": "unifrm(1,2)",
            "--slo": ["ttft_p99<500ms", "ttft_p99<500", "nonsense"],
            "--header": ["no colon here", "Bad Name: x"],
            "--extra-body": '{"a": 1',
            "--hardware": "",
            "--guardrails": "some",
            "--url": "localhost:8000",
            "--api": "chats",
            "--timeout": "0",
            "--workload": "skewed",
            "--sed": "1",
        },
    )
    expected = {
        "--rate": "number, not 'fast'",
        "--requests": "at least 1",
        "--input-tokens": "did you mean uniform(128,512)?",
        "--slo": "needs a unit",
        "--header": "colon",
        "--extra-body": "JSON",
        "--hardware": "H100x4",
        "--guardrails": "both:Llama Guard",
        "--url": "http://localhost:8000",
        "--api": "chat or completions",
        "--timeout": "above 0",
        "--workload": "did you mean synthetic-skewed?",
        "--sed": "did you mean --seed?",
    }
    assert set(found) == set(expected)
    assert [where for where, words in expected.items() if words not in found[where]] == []
    assert found["--slo"].count("|") == 1
    assert "Bad Name" in found["--header"]


def test_several_wrong_keys_of_a_file_are_all_named_with_their_lines(write: Write) -> None:
    """Unknown keys with the right one, wrong values, broken rules and a duplicate, each at its line."""
    path = write(
        "name: two words\n"
        "target:\n"
        "  ulr: http://localhost\n"
        "  timeout_s: soon\n"
        "load:\n"
        "  rate: 5\n"
        "  arrival: constant\n"
        "  burstiness: 2\n"
        "concurrency: 4\n"
        "workload:\n"
        "  input_tokens: uniform(5,1)\n"
        "  seed: 1\n"
        "  seed: 2\n"
        "slos:\n"
        "  - ttft_p99<500ms\n"
        "  - ttft_p99\n"
        "colour: red\n"
    )
    found = problems(path)
    expected = {
        "plan.yaml:1: name": "letters",
        "plan.yaml:3: target.ulr": "did you mean target.url?",
        "plan.yaml:4: target.timeout_s": "must be a number, not 'soon'",
        "plan.yaml:8: load.burstiness": "set load.arrival to gamma",
        "plan.yaml:9: concurrency": "did you mean load.concurrency?",
        "plan.yaml:11: workload.input_tokens": "5 is above",
        "plan.yaml:13": "workload.seed occurs twice, first on line 12",
        "plan.yaml:16: slos[1]": "ttft_p99<500ms",
        "plan.yaml:17: colour": "no such key",
    }
    assert set(found) == set(expected)
    assert [where for where, words in expected.items() if words not in found[where]] == []


def test_a_file_and_flags_are_both_reported(write: Write) -> None:
    """Problems of the file keep their lines, those of flags their flags; a flag answers for the value it overrode."""
    path = write("load:\n  requests: many\n  warmup: -1\nslos: [ttft_p99]\n")
    found = problems(path, {"--requests": "few", "--slo": ["tpot"], "--workers": "0"})
    assert set(found) == {"--requests", "--slo", "--workers", "plan.yaml:3: load.warmup"}


@pytest.mark.parametrize(
    ("given", "where", "words"),
    [
        ({"--rate": "5", "--concurrency": "8"}, "--rate", "choose one: --rate is open loop"),
        ({"--arrival": "poisson"}, "--arrival", "needs --rate"),
        ({"--burstiness": "0.5", "--concurrency": "4"}, "--burstiness", "needs --rate"),
        ({"--rate": "5", "--arrival": "constant", "--burstiness": "2"}, "--burstiness", "no burstiness"),
        ({"--rate": "5", "--arrival": "poisson", "--burstiness": "2"}, "--burstiness", "no burstiness"),
        ({"--workload": "custom", "--input-tokens": "5"}, "--workload", "needs --output-tokens"),
        ({"--rate": "1000", "--duration": "24h"}, "--duration", "86,400,000"),
        ({"--rate": "0.001"}, "--rate", "11.6 days"),
        ({"--insecure": True, "--url": "http://h"}, "--insecure", "https://"),
        ({"--insecure": True, "--ca-file": "c", "--url": "https://h"}, "--ca-file", "choose one"),
        ({"--api-key-env": "A", "--api-key-file": "b"}, "--api-key-file", "choose one"),
        ({"--prompt-format": "ids"}, "--prompt-format", "set --api to completions"),
        ({"--extra-body": '{"messages": []}'}, "--extra-body", "messages comes from workload"),
        ({"--extra-body": '{"input": "x"}'}, "--extra-body", "input comes from workload"),
        (
            {"--extra-body": '{"options": {"num_predict": 5}}'},
            "--extra-body",
            "options.num_predict comes from workload.output_tokens",
        ),
        ({"--extra-body": '{"a": 1, "a": 2}'}, "--extra-body", "twice"),
        ({"--extra-body": '{"a": NaN}'}, "--extra-body", "NaN"),
        ({"--extra-body": "[1]"}, "--extra-body", "object"),
    ],
)
def test_flags_that_contradict_are_refused_in_the_words_of_flags(
    given: dict[str, object], where: str, words: str
) -> None:
    """One problem each, at the flag, telling what to do about it."""
    found = problems(None, given)
    assert set(found) == {where}
    assert words in found[where]


@pytest.mark.parametrize(
    ("text", "where", "words"),
    [
        ("load:\n  rate: 5\n  concurrency: 8\n", "plan.yaml:2: load.rate", "choose one: load.rate"),
        ("load:\n  model: open\n", "plan.yaml:2: load.model", "open loop needs a rate"),
        (
            "load:\n  model: open\n  concurrency: 3\n",
            "plan.yaml:2: load.model",
            "load.concurrency belongs to closed",
        ),
        ("load:\n  model: closed\n  rate: 5\n", "plan.yaml:3: load.rate", "set it to open"),
        ("load:\n  model: closed\n  arrival: gamma\n", "plan.yaml:3: load.arrival", "needs load.rate"),
        ("load:\n  concurrency: yes\n", "plan.yaml:2: load.concurrency", "not true"),
        ("load:\n  model: opne\n", "plan.yaml:2: load.model", "did you mean open?"),
        ("load: 5\n", "plan.yaml:1: load", "mapping"),
        ("load:\n  rat: 5\n  model: open\n", "plan.yaml:2: load.rat", "did you mean load.rate?"),
        ("schema: inferometer/plan/9\n", "plan.yaml:1: schema", "inferometer/plan/1"),
        ("workload:\n  name: custom\n", "plan.yaml:2: workload.name", "workload.input_tokens"),
        (
            "sut:\n  prefix_caching: off\n",
            "plan.yaml:2: sut.prefix_caching",
            "enabled or disabled, not false",
        ),
    ],
)
def test_keys_that_contradict_are_refused_in_the_words_of_the_file(
    write: Write, text: str, where: str, words: str
) -> None:
    """The place is a line of the file and the names are its keys; a typo brings no second problem with it."""
    found = problems(write(text))
    assert words in found.pop(where)
    assert [other for other in found if other != "plan.yaml:2: workload.name"] == []


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    [
        ("concurrency: 8, requests: 5", {"--rate": "20"}, ("open", None, 20, "poisson", 1, 5)),
        ("model: closed, concurrency: 8", {"--rate": "20"}, ("open", None, 20, "poisson", 1, 1000)),
        (
            "rate: 9, arrival: gamma, burstiness: 2",
            {"--concurrency": "3"},
            ("closed", 3, None, "poisson", 1, 1000),
        ),
        (
            "rate: 9, arrival: gamma, burstiness: 2",
            {"--arrival": "constant"},
            ("open", None, 9, "constant", 1, 1000),
        ),
        ("rate: 9, arrival: constant", {"--burstiness": "2"}, ("open", None, 9, "gamma", 2, 1000)),
        ("rate: 9", {"--requests": "7"}, ("open", None, 9, "poisson", 1, 7)),
    ],
)
def test_a_flag_overrides_the_file_with_all_that_its_decision_takes_along(
    write: Write, text: str, given: dict[str, object], expected: tuple[object, ...]
) -> None:
    """--rate turns a closed plan open and --concurrency an open one closed, without a contradiction with what was."""
    load = build(write(f"load: {{{text}}}"), given).load
    assert (load.model, load.concurrency, load.rate, load.arrival, load.burstiness, load.requests) == expected


def test_mappings_of_flags_are_merged_into_those_of_the_file(write: Write) -> None:
    """A header more is a header more; lists such as objectives are replaced."""
    path = write(
        "target: {headers: {X-A: a, X-B: b}, extra_body: {p: 1}}\nslos: ['e2e_p50<1s']\nsut: {notes: n}\n"
    )
    plan = build(
        path,
        {"--header": ["X-B: c"], "--extra-body": '{"q": 2}', "--slo": ["itl_p99<9ms"], "--hardware": "cpu"},
    )
    assert plan.target.headers == {"X-A": "a", "X-B": "c"}
    assert plan.target.extra_body == {"p": 1, "q": 2}
    assert [str(slo) for slo in plan.slos] == ["itl_p99<9ms"]
    assert (plan.sut.notes, plan.sut.accelerator) == ("n", "cpu")


@pytest.mark.parametrize(
    ("text", "where", "words"),
    [
        ("load:\n\trate: 5\n", "plan.yaml:2", "is not valid YAML"),
        ("load: {rate: 5\n", "plan.yaml:2", "is not valid YAML"),
        ("a: b: c\n", "plan.yaml:1", "is not valid YAML"),
        ("- 1\n", "plan.yaml:1", "is not a plan"),
        ("just words\n", "plan.yaml:1", "is not a plan"),
        ("a: 1\n---\nb: 2\n", "plan.yaml:2", "is not valid YAML"),
        ("load: &l {x: *l}\n", "plan.yaml:1", "too much"),
        ("load: !!python/object:os.system {}\n", "plan.yaml:1", "tags"),
        ("load: !!python/name:os.system\n", "plan.yaml:1", "is not valid YAML"),
        ("? [1]\n: 2\n", "plan.yaml:1", "plain word"),
        ("name: \x07\n", "plan.yaml", "is not valid YAML"),
        ("name: 2024-99-99\n", "plan.yaml:1", "is not valid YAML"),
    ],
)
def test_a_file_that_is_no_plan_is_refused_with_its_line_and_flags_are_still_checked(
    write: Write, text: str, where: str, words: str
) -> None:
    """Broken YAML, several documents, endless aliases and object tags are problems of the file, not tracebacks."""
    found = problems(write(text), {"--seed": "x", "--arrival": "gamma"})
    assert set(found) == {where, "--seed"}
    assert words in found[where]


def test_a_file_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    """Missing, a folder, not UTF-8, or far too large."""
    assert "no such file" in problems(tmp_path / "none.yaml")["none.yaml"]
    assert "cannot be read" in problems(tmp_path)[tmp_path.name]
    (tmp_path / "latin.yaml").write_bytes(b"name: a\nsut: {notes: \xe9}\n")
    assert "UTF-8" in problems(tmp_path / "latin.yaml")["latin.yaml:2"]
    (tmp_path / "big.yaml").write_bytes(b"#" * (2 << 20))
    assert "larger" in problems(tmp_path / "big.yaml")["big.yaml"]


def test_aliases_and_merge_keys_work_and_do_not_count_as_duplicates(write: Write) -> None:
    """An anchor may be used twice, and a mapping's own key wins over one that `<<` brings."""
    path = write("load: &base {rate: 5, requests: 10}\n")
    assert build(path).load.rate == 5
    path = write(
        "target:\n  headers: &h {X-A: a}\n  extra_body:\n    one: {<<: *h, X-A: b}\n    two: *h\n    three: *h\n"
    )
    assert build(path).target.extra_body == {"one": {"X-A": "b"}, "two": {"X-A": "a"}, "three": {"X-A": "a"}}


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ({"--header": [f"Authorization: Bearer {CANARY}"]}, ""),
        ({"--header": [f"X-Api-Key: {CANARY}", f"Cookie: k={CANARY}", f"X-My-Token: {CANARY}"]}, ""),
        ({"--header": [f"X-Plain: Bearer {CANARY}", f"X-Other: {CANARY}"]}, ""),
        ({"--header": [f"Bearer {CANARY}"]}, ""),
        ({"--header": [f"Sec-WebSocket-Protocol: realtime, openai-insecure-api-key.{CANARY[3:]}"]}, ""),
        ({"--header": [f"X-Forwarded: a=b;k={CANARY}"]}, ""),
        ({"--header": [f"X-A: {CANARY}\ny"]}, ""),
        ({"--api-key-env": CANARY}, ""),
        ({"--api-key-env": CANARY.replace("-", "_")}, ""),
        ({"--api-key-file": CANARY}, ""),
        ({"--url": f"http://user:{CANARY}@host"}, ""),
        ({"--url": f"http://host/?key={CANARY}"}, ""),
        ({"--url": f"{CANARY}://host"}, ""),
        ({"--extra-body": f'{{"api_key": "{CANARY}"}}'}, ""),
        ({"--extra-body": f'{{"a": [{{"x": "{CANARY}"}}]}}'}, ""),
        ({"--extra-body": f'{{"api_key": "{CANARY}"'}, ""),
        ({}, f"target: {{api_key: {CANARY}}}"),
        ({}, f"api_key: {CANARY}"),
        ({}, f"target: {{headers: {{Authorization: {CANARY}}}}}"),
        ({}, f"target: {{headers: [{CANARY}]}}"),
        ({}, f"target: {{url: [{CANARY}]}}"),
        ({}, f"target: {{api_key_env: [{CANARY}]}}"),
        ({}, f"target: {{extra_body: {CANARY}}}"),
        ({}, f"target:\n  api_key: *{CANARY}\n"),
    ],
)
def test_a_secret_in_a_plan_is_refused_and_never_repeated(
    write: Write, flags: dict[str, object], text: str
) -> None:
    """Wherever a key is put by mistake, the plan is refused and no message holds the key."""
    found = problems(write(text), flags, environ={})
    assert found
    assert "CANARY" not in str(found)


def test_what_a_plan_names_outside_itself_is_checked_only_when_asked(tmp_path: Path) -> None:
    """With an environment, the variable and the files must be there; without, a plan is only words."""
    key, ca = tmp_path / "key", tmp_path / "ca"
    given: dict[str, object] = {"--api-key-file": str(key), "--ca-file": str(ca), "--url": "https://h"}
    assert build(None, given)
    assert set(problems(None, given, environ={})) == {"--api-key-file", "--ca-file"}
    key.write_text("k")
    trustme.CA().cert_pem.write_to_path(str(ca))
    assert build(None, given, environ={})
    assert set(problems(None, {"--api-key-env": "KEY"}, environ={"KEY": ""})) == {"--api-key-env"}
    assert build(None, {"--api-key-env": "KEY"}, environ={"KEY": "k"}).target.api_key_env == "KEY"


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://localhost:8000", "http://localhost:8000"),
        ("http://localhost:8000/", "http://localhost:8000"),
        (" http://HOST/v1/ ", "http://host"),
        ("https://h/a/B/v1", "https://h/a/B"),
        ("http://[::1]:8000/v1", "http://[::1]:8000"),
        ("http://h/v1beta", "http://h/v1beta"),
    ],
)
def test_a_url_is_kept_as_the_base_without_v1(url: str, base: str) -> None:
    """The /v1 that engines add may be there or not; any other path stays, in its own case."""
    assert build(None, {"--url": url}).target.url == base


@pytest.mark.parametrize(
    "url",
    ["", "localhost", "localhost:8000", "ftp://h", "http://", "http:///v1", "http://h:0", "http://h:99999", "http://h:x",
     "http://a b", "http://[::1", "http://h/v1/chat/completions", "http://h/v1/completions", "http://h#x", "http://h?"
     "q=1"],
)  # fmt: skip
def test_a_url_that_is_no_base_url_is_refused(url: str) -> None:
    """http or https, a host, a valid port, nothing behind the path; one problem, at the flag."""
    assert set(problems(None, {"--url": url})) == {"--url"}


_odd = ["1", "-1", "nan", "inf", "1e9", "open", "{}", "[]", "http://", "x: y", "\ud800"]
_texts = st.text(max_size=12) | st.sampled_from(_odd)


@given(st.dictionaries(st.sampled_from([flag.name for flag in FLAGS]), _texts | st.lists(_texts, max_size=3)))
@settings(max_examples=150, deadline=None)
def test_any_flags_give_a_plan_or_a_plan_error(given: dict[str, object]) -> None:
    """Whatever the command line holds, never another exception, and each problem is at a flag that exists."""
    assert {problem.where for problem in refused(None, given)} <= set(BY_NAME)


_yaml_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["kind", "a", "1"]), inner, max_size=2)
    ),
    max_leaves=4,
)
_lines = st.dictionaries(
    st.sampled_from([key for key in every_key() if "." in key]), _yaml_values, max_size=8
)


@given(_lines, st.binary(max_size=40))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_file_gives_a_plan_or_a_plan_error(tmp_path: Path, keys: dict[str, object], noise: bytes) -> None:
    """Any values under any keys of the schema, and any bytes at all, are a plan or a list of problems."""
    nested: dict[str, dict[str, object]] = {}
    for key, value in keys.items():
        part, _, name = key.partition(".")
        nested.setdefault(part, {})[name] = value
    for index, data in enumerate((yaml.safe_dump(nested).encode("utf-8", "replace"), noise)):
        path = tmp_path / f"{index}.yaml"
        path.write_bytes(data)
        assert all(problem.where.startswith(str(path)) for problem in refused(path))


@pytest.mark.parametrize(
    ("meter", "words"),
    [
        ("command:echo 'x", "split into words"),
        ("command:''", "a program"),
        ("command:echo \0", "null characters"),
        ("http://[::1", "Invalid IPv6"),
        ("http://plug:99999/power", "Port"),
        ("http:///power", "host"),
        ("http://plug/a b", "percent-encoded"),
        ("http://plug/\x1b", "percent-encoded"),
        ("http://pl\nug/", "line breaks"),
        ("http://plug:80\t/", "line breaks"),
    ],
)
def test_a_meter_that_cannot_be_read_as_it_is_written_is_refused(meter: str, words: str) -> None:
    """Law: what the scraper could not open is an error of the plan, before anything is sent."""
    with pytest.raises(PlanError) as caught:
        build(None, {"--power": [meter]})
    assert words in str(caught.value)
