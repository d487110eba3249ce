"""Metrics scraped during whole runs: what is asked, what stays in the folder, and that nothing of it is a secret."""

from __future__ import annotations

import base64
import itertools
import json
import os
import re
import signal
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from commands import SMALL, finish, only, run, start, wait_for_answers
from peers import Script, Seen, chunked, scripted, tokens, whole
from serving import serving

from inferometer.documents.run_facts import ScrapedEndpoint, ScrapingAccount
from inferometer.drive import probe as probing
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import RECORD, Phase
from inferometer.journal.seal import read_table
from inferometer.plan.lead_in import LEAD_PER_SLOT
from inferometer.plan.schema import Plan
from inferometer.run.scraping import in_our_terms, job_of
from inferometer.telemetry.metrics.record import Scrape, read
from inferometer.telemetry.metrics.series import collect

KEY = "sk-canary-3e9d77b1"
PASSWORD = "hunter-two-5512"
TOKEN = "q-canary-90aa41"
FEW = ["--requests", "12", "--warmup", "4", "--concurrency", "2", *SMALL]


def folder_of(out: Path) -> RunFolder:
    return RunFolder.open(only(out))


def facts(out: Path) -> Any:
    return json.loads(folder_of(out).facts.read_bytes())["server_metrics"]


def scrapes(out: Path) -> list[Scrape]:
    return list(read(folder_of(out).scrapes))


def records(out: Path, *phases: Phase) -> list[dict[str, Any]]:
    """The requests on record, of these phases or of all."""
    rows = read_table(folder_of(out).record, RECORD).to_pylist()
    return [row for row in rows if not phases or row["phase"] in phases]


def lines(seen: list[Seen]) -> list[Seen]:
    return [one for one in seen if one.target.startswith("/metrics")]


def test_the_target_s_own_metrics_are_on_record_with_the_phases_they_belong_to(tmp_path: Path) -> None:
    """Nothing was asked for: a baseline before the load, each phase's ends, and a last one that counts all. The profiling
    period is that of the measured requests alone."""
    with serving() as port:
        code, _, stderr = run("run", "--url", f"http://127.0.0.1:{port}", *FEW, out=tmp_path)
    assert code in (3, 4), stderr
    found, told = scrapes(tmp_path), facts(tmp_path)
    phases = [scrape.phase for scrape in found]
    assert (phases[0], phases[-1]) == ("baseline", "final")
    assert phases.count("warmup") >= 2
    assert phases.count("profiling") >= 2
    assert {scrape.endpoint_url for scrape in found} == {f"http://127.0.0.1:{port}/metrics"}
    last = found[-1].body or ""
    sent = 2 + len(
        records(tmp_path)
    )  # two before the load: the probe's greeting, and what /tokenize is held to
    assert (
        f'vllm:request_success_total{{engine="0",model_name="reference",finished_reason="length"}} {sent}\n'
        in last
    )
    assert len(records(tmp_path, Phase.WARMUP, Phase.MEASURE)) == 4 + 12
    assert len(records(tmp_path, Phase.LEAD)) >= LEAD_PER_SLOT * 2
    warmup, profiling = told["phases"]["warmup"], told["phases"]["profiling"]
    assert warmup["start_ns"] < warmup["end_ns"] <= profiling["start_ns"] < profiling["end_ns"]
    measured, lead = records(tmp_path, Phase.MEASURE), records(tmp_path, Phase.LEAD)
    ends = min(row["t_taken"] for row in measured), max(row["t_end"] for row in measured)
    assert (profiling["start_ns"], profiling["end_ns"]) == tuple(
        end + told["clock_offset_ns"] for end in ends
    )
    assert min(row["t_taken"] for row in lead) < ends[0]
    assert found[0].timestamp_ns < warmup["start_ns"]
    before = next(scrape for scrape in found if scrape.phase == "profiling")
    assert warmup["end_ns"] < before.timestamp_ns
    assert found[-1].timestamp_ns > profiling["end_ns"]
    assert told["endpoints"][0] | {"scrapes": 0, "characters": 0, "skipped": 0} == {
        "url": f"http://127.0.0.1:{port}/metrics", "own": True, "scrapes": 0, "characters": 0, "errors": {}, "skipped": 0,
        "absent": None, "instead": None, "words": {},
    }  # fmt: skip
    assert told["endpoints"][0]["scrapes"] == len(found)


def test_the_exports_count_what_the_run_measured_and_can_be_made_again(tmp_path: Path) -> None:
    """Warm-up apart, and in a single slot, which nothing leads in: as many requests and tokens as the summary has; `report`
    makes the same bytes from the record alone."""
    few = ["--requests", "12", "--warmup", "4", "--concurrency", "1", *SMALL]
    formats = ["--server-metrics-formats", "json,csv,jsonl,parquet", "--slice-duration", "0"]
    with serving() as port:
        run("run", "--url", f"http://127.0.0.1:{port}", *formats, *few, out=tmp_path)
    folder = folder_of(tmp_path)
    paths = sorted(folder.path.glob("server_metrics_export.*"))
    assert [path.suffix for path in paths] == [".csv", ".json", ".jsonl", ".parquet"]
    made = json.loads(paths[1].read_bytes())
    summary = json.loads((folder.path / "summary.json").read_bytes())

    def total(name: str) -> float:
        return float(sum(one["stats"]["total"] for one in made["metrics"][f"vllm:{name}"]["series"]))

    assert total("request_success") == summary["requests"]["completed"] == 12
    assert total("generation_tokens") == 12 * summary["metrics"]["output_tokens"]["mean"]
    first_tokens = made["metrics"]["vllm:time_to_first_token_seconds"]["series"][0]
    assert first_tokens["stats"]["count"] == 12
    assert "timeslices" not in first_tokens
    assert made["warmup_metrics"]["vllm:request_success"]["series"]
    assert made["summary"]["phase_time_ranges"] == facts(tmp_path)["phases"]
    before = [path.read_bytes() for path in paths]
    for path in paths:
        path.unlink()
    finish("report", str(folder.path))
    assert [path.read_bytes() for path in paths] == before
    warmup, measured = facts(tmp_path)["phases"]["warmup"], facts(tmp_path)["phases"]["profiling"]
    period = ["--start", measured["start_ns"], "--end", measured["end_ns"]]
    period += ["--warmup-start", warmup["start_ns"], "--warmup-end", warmup["end_ns"]]
    words = ["--slice-duration", "0", "--out", str(tmp_path / "again"), *map(str, period)]
    finish("metrics", "replay", str(folder.scrapes), *words)
    again = json.loads((tmp_path / "again" / "server_metrics_export.json").read_bytes())
    assert {name for name in made.keys() | again.keys() if made.get(name) != again.get(name)} == {
        "benchmark_id",
        "input_config",
    }


@pytest.mark.parametrize("what", ["record", "place"])
def test_server_metrics_that_cannot_be_made_end_no_report(what: str, tmp_path: Path) -> None:
    """A damaged record, a place that cannot be written: its reason is in the log, and people are told where; the run's own
    result is what it was, and of the server nothing is known."""
    with serving() as port:
        _, summary, _ = run("run", "--url", f"http://127.0.0.1:{port}", "--json", *FEW, out=tmp_path)
    folder = folder_of(tmp_path)
    whole = (folder.path / "server_metrics_export.csv").read_bytes()
    (folder.path / "server_metrics_export.json").unlink()
    if what == "record":
        folder.scrapes.write_text("no scrape\n")
    else:
        (folder.path / "server_metrics_export.json").mkdir()
    _, out, stderr = finish("report", str(folder.path), "--json")
    again, before = json.loads(out), json.loads(summary)
    assert again["server"] is None
    assert before["server"] is not None
    same = before.keys() - {"server", "preemption", "warm_up", "verdict", "metrics_endpoints", "compliance"}
    assert {name: again[name] for name in same} == {name: before[name] for name in same}
    # That TTFT's components are reported where the server has them (draft 5.1.4.2) no longer applies.
    assert again["compliance"]["deviations"] == before["compliance"]["deviations"]
    assert again["verdict"]["status"] == before["verdict"]["status"]
    assert "server metrics are left out" in folder.log.read_text()
    assert stderr.count("\n") == 1
    assert str(folder.log) in stderr
    assert not (folder.path / "server_metrics_export.json").is_file()
    assert (folder.path / "server_metrics_export.csv").read_bytes() == whole
    assert not list(folder.path.glob("*.part"))


def checks(summary: Any) -> dict[str, Any]:
    return {check["code"]: check for check in summary["verdict"]["checks"]}


@pytest.mark.parametrize("load", [["--concurrency", "4"], ["--rate", "200"]], ids=["closed", "open"])
def test_what_the_embedded_server_counted_is_what_the_client_was_told(
    load: list[str], tmp_path: Path
) -> None:
    """To the token and the request, with the warm-up and what leads a closed loop in and out; a report made again says the
    same. No scrape parts the measured requests from those that lead in and out, and a late one may not part them from the
    warm-up: the measured phase has all of its own tokens, and at most all."""
    few = ["--requests", "60", "--warmup", "7", *load, *SMALL]
    _, out, _ = run("run", "--json", *few, "--server-metrics-interval", "0.01", out=tmp_path)
    summary = json.loads(out)
    whole = summary["server"]["whole"]
    for name in ("prompt_tokens", "generation_tokens"):
        assert whole[name]["server"] == whole[name]["low"] == whole[name]["high"]
    rows, leading = records(tmp_path), records(tmp_path, Phase.LEAD)
    assert len(rows) == 67 + len(leading)
    assert bool(leading) == ("--concurrency" in load)
    assert whole["generation_tokens"]["server"] == sum(row["output_tokens_asked"] for row in rows)
    assert whole["server_n"] == whole["client_n"] == len(rows)
    around = sum(row["output_tokens_asked"] for row in [*leading, *records(tmp_path, Phase.WARMUP)])
    assert 60 * 5 <= summary["server"]["generation_tokens"] <= 60 * 5 + around
    first, ended = summary["server"]["ttft_ms"]["n"], summary["server"]["succeeded"]
    assert 60 <= first <= ended <= 67 + len(leading)
    assert whole["client_ttft_ms"] > whole["server_ttft_ms"]
    assert checks(summary)["server_tokens"]["status"] == "pass"
    assert checks(summary)["server_ttft"]["status"] in ("pass", "note")
    assert finish("report", str(folder_of(tmp_path).path), "--json")[1] == out


def test_endpoints_that_differ_in_their_credentials_alone_are_told_apart(tmp_path: Path) -> None:
    """By a number, in the record and in all that is made of it; each is asked with its own."""
    looks = itertools.count()

    def answer(seen: Seen) -> Script:
        number = 1 if seen.target.endswith("A1111") else 2
        return Script(whole(200, b"g %d\nn %d\n" % (number, next(looks)), kind=b"text/plain"))

    with serving() as port, scripted(answer) as peer:
        place = f"http://127.0.0.1:{peer.port}/metrics?token="
        given = [part for end in ("A1111", "B2222") for part in ("--server-metrics", place + end)]
        run("run", "--url", f"http://127.0.0.1:{port}", *given, *FEW, out=tmp_path)
    names = [f"{place}<redacted>", f"{place}<redacted>#2"]
    assert [one["url"] for one in facts(tmp_path)["endpoints"][1:]] == names
    made = json.loads((folder_of(tmp_path).path / "server_metrics_export.json").read_bytes())
    found = {one["endpoint_url"]: one["stats"]["max"] for one in made["metrics"]["g"]["series"]}
    assert found == dict(zip(names, (1, 2), strict=True))
    assert {scrape.endpoint_url for scrape in scrapes(tmp_path)} >= set(names)
    table = (folder_of(tmp_path).path / "server_metrics_export.csv").read_text()
    assert f"127.0.0.1:{peer.port}#2" in table


def test_a_token_reaches_its_endpoint_and_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the environment, over a path that is taken as it is; a server that repeats it in its metrics is not quoted."""
    monkeypatch.setenv("PROM_TOKEN", TOKEN)

    def answer(seen: Seen) -> Script:
        given = seen.headers.get("authorization", "")
        right = (given, seen.headers.get("x-scope-orgid")) == (f"Bearer {TOKEN}", "7")
        text = f'# TYPE g gauge\ng{{was="{given}"}} 1\n'.encode()
        return Script(whole(200, text, kind=b"text/plain") if right else whole(401, b""))

    with serving() as port, scripted(answer) as peer:
        named = f"http://127.0.0.1:{peer.port}/federate?match[]=up"
        access = ["--server-metrics-token-env", "PROM_TOKEN", "--server-metrics-header", "X-Scope-OrgID: 7"]
        given = ["--server-metrics", named, *access]
        run("run", "--url", f"http://127.0.0.1:{port}", *given, *FEW, out=tmp_path)
    found = {scrape.body for scrape in scrapes(tmp_path) if scrape.endpoint_url == named}
    assert found == {'# TYPE g gauge\ng{was="Bearer [redacted]"} 1\n'}
    assert {seen.target for seen in peer.seen} == {"/federate?match[]=up"}
    for path in only(tmp_path).rglob("*"):
        assert not path.is_file() or TOKEN.encode() not in path.read_bytes(), path


def test_an_endpoint_that_gave_nothing_is_named_at_the_end_of_the_run(tmp_path: Path) -> None:
    """On the console and in the report, with what it lost, why, and how its answers began."""
    with serving() as port, scripted(lambda _: Script(whole(200, b"Welcome!\n", kind=b"text/plain"))) as peer:
        given = ["--server-metrics", f"127.0.0.1:{peer.port}", "--server-metrics-interval", "60"]
        _, stdout, _ = run("run", "--url", f"http://127.0.0.1:{port}", *given, *FEW, out=tmp_path)
    words = rf"http://127.0.0.1:{peer.port}/metrics: 0 scrapes; [67] garbage \(Welcome!\)\."
    assert re.search(words, " ".join(stdout.split()))
    assert re.search(r"garbage \S*Welcome", (folder_of(tmp_path).path / "report.md").read_text())


def test_each_endpoint_is_asked_as_the_plan_says() -> None:
    """The target's key and trust go to the target; what is said of an endpoint, else of all, to the endpoints named."""
    both = {"headers": {"X-A": "1"}, "token_env": "T", "timeout_s": 8, "max_body_mib": 1}
    one = {"url": "https://h:9/metrics", "headers": {"x-a": "2"}, "tls_verify": False, "timeout_s": 2}
    keyed = {
        "url": "https://h:7/metrics",
        "token_header": "X-Api-Key",
        "cert_file": "c.pem",
        "key_file": "k.pem",
    }
    plan = Plan.model_validate(
        {
            "target": {"url": "https://t:1", "tls_verify": False, "headers": {"X-Plan": "p"}},
            "server_metrics": {"urls": ["https://u:pass-word@h:8"], "endpoints": [one, keyed], **both},
        }
    )
    job = job_of(plan, probing.endpoint("https://t:1"), KEY, "", 0, {"T": TOKEN})
    own, plain, other, last = job.endpoints
    assert [found.tls_verify for found in (own, plain, other)] == [False, True, False]
    assert [found.timeout_s for found in (own, plain, other)] == [8, 8, 2]
    assert {found.largest for found in (own, plain, other)} == {1 << 20}
    assert (own.own, own.headers["Authorization"], own.headers["X-Plan"]) == (True, f"Bearer {KEY}", "p")
    assert "X-A" not in own.headers
    assert plain.headers["Authorization"].startswith("Basic ")
    assert (plain.headers["X-A"], other.headers["x-a"]) == ("1", "2")
    assert other.headers["Authorization"] == f"Bearer {TOKEN}"
    assert "X-Plan" not in other.headers
    assert (last.headers["X-Api-Key"], "Authorization" in last.headers) == (TOKEN, False)
    assert (last.tls_cert_file, last.tls_key_file, other.tls_cert_file) == ("c.pem", "k.pem", None)
    assert {TOKEN, KEY, "pass-word"} <= set(job.secrets)
    assert job.timeout_s == 8


@pytest.mark.parametrize("url", ["http://h:8000", "http://h:8000/v1", "http://h:8000/"])
def test_the_target_s_own_word_is_known_by_its_address(url: str) -> None:
    """Also where the plan names it among others."""
    body = "# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting 1\n"
    plan = Plan.model_validate({"target": {"url": url}})
    named = job_of(plan, probing.endpoint(url), None, "", 0).endpoints[0].shown
    store = collect([Scrape("http://other:1/metrics", 1, body), Scrape(named, 2, body)])
    endpoints = tuple(ScrapedEndpoint(at, own=False) for at in ("http://other:1/metrics", named))
    found = in_our_terms(store, plan, ScrapingAccount(0.333, 0, endpoints))
    assert [one.own for one in found] == [False, True]


def test_somebody_else_at_the_server_makes_a_run_inconclusive(tmp_path: Path) -> None:
    """Another client's requests during the load, which no figure of ours would show."""
    over = threading.Event()

    def another(port: int) -> None:
        body = {"model": "reference", "prompt": "word " * 50, "max_tokens": 50, "ignore_eos": True}
        ask = urllib.request.Request(
            f"http://127.0.0.1:{port}/v1/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        while not over.is_set():
            with urllib.request.urlopen(ask, timeout=30) as answer:
                answer.read()

    with serving() as port:
        guest = threading.Thread(target=another, args=(port,))
        guest.start()
        try:
            _, out, _ = run("run", "--url", f"http://127.0.0.1:{port}", "--json", *FEW, out=tmp_path)
        finally:
            over.set()
            guest.join()
    found = checks(json.loads(out))["server_tokens"]
    assert (found["status"], found["facts"]["side"]) == ("unsure", "more")
    assert "another client used it" in found["message"]


def without_metrics(seen: Seen) -> Script:
    """An engine that answers, and has nothing at any other place."""
    if seen.method != "POST":
        return Script(whole(404, b"none"))
    if b'"stream":false' in seen.body:
        return Script(whole(200, b'{"choices": [{"message": {"role": "assistant", "content": "a"}}]}'))
    return Script(chunked(*tokens("a", "b")))


def test_without_scraping_no_metrics_are_asked_for_and_nothing_is_left(tmp_path: Path) -> None:
    """--no-server-metrics: the folder is what it was."""
    with scripted(without_metrics) as peer:
        run(
            "run",
            "--url",
            f"http://127.0.0.1:{peer.port}",
            "--model",
            "m",
            "--no-server-metrics",
            *FEW,
            out=tmp_path,
        )
    assert lines(peer.seen) == []
    assert not (only(tmp_path) / "telemetry").exists()
    assert facts(tmp_path) is None


def test_a_target_without_metrics_is_asked_once_and_measured_as_ever(tmp_path: Path) -> None:
    """One line says so; nothing is on disk, and the run has its requests."""

    with scripted(without_metrics) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        _, stdout, stderr = run("run", "--url", url, "--model", "m", "--json", *FEW, out=tmp_path)
    assert len(lines(peer.seen)) == 1
    assert f"the server exposes no metrics at {url}/metrics (http_404)" in stderr
    assert json.loads(stdout)["requests"]["completed"] == 12
    assert not (only(tmp_path) / "telemetry").exists()
    assert facts(tmp_path)["endpoints"][0]["absent"] == "http_404"


@pytest.fixture(scope="module")
def secretive(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Seen], str]:
    """A run of a server that wants a key, with an endpoint that wants a password and another that is not there: the folder,
    what the endpoint with the password was asked, and all that was printed."""
    out = tmp_path_factory.mktemp("secretive")

    def answer(seen: Seen) -> Script:
        repeated = (
            f"# HELP up {seen.headers.get('authorization')}\n# TYPE up gauge\nup{{url='{seen.target}'}} 1\n"
        )
        return Script(whole(200, repeated.encode(), kind=b"text/plain"))

    with serving(key=KEY) as port, scripted(answer) as peer:
        named = [
            f"http://me:{PASSWORD}@127.0.0.1:{peer.port}/metrics?token={TOKEN}",
            f"u:{PASSWORD}@127.0.0.1:1",
        ]
        given = [part for url in named for part in ("--server-metrics", url)]
        url = f"http://127.0.0.1:{port}"
        _, stdout, stderr = run(
            "run", "--url", url, "--api-key-env", "SECRET", *given, *FEW, out=out, SECRET=KEY
        )
        seen = list(peer.seen)
    return out, seen, stdout + stderr


def test_each_endpoint_gets_its_own_credentials_and_no_other_s(
    secretive: tuple[Path, list[Seen], str],
) -> None:
    """The key goes to the target, whose metrics came; the password to the endpoint it was given for."""
    out, seen, _ = secretive
    basic = "Basic " + base64.b64encode(f"me:{PASSWORD}".encode()).decode()
    assert {one.headers["authorization"] for one in seen} == {basic}
    assert {one.target for one in seen} == {f"/metrics?token={TOKEN}"}
    assert KEY not in repr(seen)
    own, named, dead = facts(out)["endpoints"]
    assert min(own["scrapes"], named["scrapes"]) >= 6  # those at intervals may be one more of one of them
    assert dead["scrapes"] == 0
    assert set(dead["errors"]) == {"refused"}
    assert dead["absent"] is None


def test_no_secret_is_in_any_file_or_word_of_the_run(secretive: tuple[Path, list[Seen], str]) -> None:
    """Not the key, not the password, not as base64, not where the server repeats them; URLs are shown without."""
    out, _, printed = secretive
    encoded = base64.b64encode(f"me:{PASSWORD}".encode()).decode()
    texts = {str(path): path.read_bytes() for path in only(out).rglob("*") if path.is_file()}
    texts |= {"scrapes": "".join(repr(one) for one in scrapes(out)).encode(), "printed": printed.encode()}
    for name, data in texts.items():
        assert not [secret for secret in (KEY, PASSWORD, TOKEN, encoded) if secret.encode() in data], name
    assert "no metrics from http://<redacted>@127.0.0.1:1/metrics (refused)" in printed
    assert json.loads((only(out) / "plan.json").read_bytes())["server_metrics"]["urls"][0].startswith(
        "http://<redacted>@"
    )


def test_a_run_that_was_killed_keeps_its_scrapes_and_gets_its_phases(tmp_path: Path) -> None:
    """kill -9 of everything: what was scraped is read again, and `recover` says when the phases were."""
    with serving() as port:
        process = start("run", "--url", f"http://127.0.0.1:{port}", "--rate", "50", "--duration", "60s", "--warmup", "0",
                        "--server-metrics-interval", "20ms", *SMALL, out=tmp_path)  # fmt: skip
        folder = RunFolder.open(wait_for_answers(process, tmp_path, 60))
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
    found = list(read(folder.scrapes))
    assert found[0].phase == "baseline"
    assert found[-1].phase == "profiling"
    assert finish("recover", str(folder.path))[0] == 130
    told = json.loads(folder.facts.read_bytes())["server_metrics"]
    assert told["phases"]["profiling"]["start_ns"] < told["phases"]["profiling"]["end_ns"]
    assert told["endpoints"][0]["own"] is True


def test_a_simulation_has_no_metrics(tmp_path: Path) -> None:
    """There is no server to ask, whatever the plan names."""
    run("simulate", *FEW, "--server-metrics", "h:1", out=tmp_path)
    assert json.loads((only(tmp_path) / "plan.json").read_bytes())["server_metrics"]["urls"] == []
    assert facts(tmp_path) is None
    assert not (only(tmp_path) / "telemetry").exists()
