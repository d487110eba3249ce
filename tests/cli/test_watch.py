"""`metrics watch`: a line a scrape in a pipe, a table that 40 columns hold, and words for what is wrong."""

from __future__ import annotations

import io
import ssl
from pathlib import Path

import pytest
import trustme
from commands import finish
from hypothesis import given
from hypothesis import strategies as st
from peers import Script, Seen, scripted, whole
from rich.console import Console
from serving import serving

from inferometer.cli.watch import SHOWN, Look, drawn, lines, plain
from inferometer.telemetry.metrics.current_values import TERMS

PASSWORD = "hunter-two"


def test_in_a_pipe_each_scrape_is_a_line() -> None:
    """The reference server at rest: what is level at once, what grows from the second look on."""
    with serving() as port:
        code, stdout, stderr = finish(
            "metrics", "watch", f"127.0.0.1:{port}", "--count", "2", "--interval", "0.05"
        )
    first, second = stdout.splitlines()
    assert (code, stderr) == (0, "")
    assert first == f"http://127.0.0.1:{port}/metrics  running 0  waiting 0  KV cache 0.0%"
    assert second.startswith(first)
    assert "output tokens 0.0/s" in second


def test_an_endpoint_that_is_wrong_is_named_beside_the_one_that_is_right() -> None:
    """Its password is not shown; the command ends well, for something could be watched."""
    with serving() as port, scripted(lambda _: Script(whole(200, b"<html>", kind=b"text/html"))) as peer:
        wrong = f"http://u:{PASSWORD}@127.0.0.1:{peer.port}"
        code, stdout, _ = finish("metrics", "watch", f"127.0.0.1:{port}", wrong, "--count", "1")
    assert code == 0
    assert stdout.splitlines()[1] == f"http://<redacted>@127.0.0.1:{peer.port}/metrics  no metrics html"
    assert PASSWORD not in stdout


def test_one_that_hangs_does_not_keep_the_others_from_being_watched() -> None:
    """It is shown as waiting, and its own time-out ends the last look."""
    with serving() as port, scripted(lambda _: Script([], "hang")) as peer:
        given = [f"127.0.0.1:{peer.port}", f"127.0.0.1:{port}"]
        code, stdout, _ = finish(
            "metrics", "watch", *given, "--count", "2", "--interval", "0.05", "--timeout", "2"
        )
    lines = stdout.splitlines()
    assert code == 0
    assert [line.partition("  ")[2] for line in lines[::2]] == [
        "no metrics no answer yet",
        "no metrics timeout",
    ]
    assert all("running 0" in line for line in lines[1::2])


def test_a_server_that_wants_a_token_over_tls_can_be_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The token comes from the environment, the authority from a file; headers go out as given."""
    authority, made = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(made)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))

    def answer(seen: Seen) -> Script:
        right = (seen.headers.get("authorization"), seen.headers.get("x-scope")) == (
            f"Bearer {PASSWORD}",
            "7",
        )
        body = b"# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 3\n"
        return Script(whole(200, body, kind=b"text/plain") if right else whole(401, b""))

    monkeypatch.setenv("PROM_TOKEN", PASSWORD)
    with scripted(answer, tls=made) as peer:
        words = ["metrics", "watch", f"https://127.0.0.1:{peer.port}", "--count", "1"]
        access = ["--token-env", "PROM_TOKEN", "--header", "X-Scope: 7"]
        assert finish(*words, *access)[2].endswith(": tls\n")
        for trust in (["--insecure"], ["--ca-file", str(tmp_path / "ca.pem")]):
            code, stdout, _ = finish(*words, *access, *trust)
            assert (code, stdout.partition("  ")[2]) == (0, "running 3\n")
        assert finish(*words, "--insecure")[2].endswith(": http_401\n")


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (["--token-env", "NOT_SET_ANYWHERE"], "--token-env"),
        (["--header", f"Authorization: Bearer {PASSWORD}"], "--header"),
        (["--ca-file", "/nowhere.pem"], "--ca-file"),
        (["--timeout", "0"], "--timeout"),
        (["--max-body", "0"], "--max-body"),
    ],
)
def test_how_servers_are_read_is_checked_first(arguments: list[str], where: str) -> None:
    """In words that repeat no secret."""
    code, _, stderr = finish("metrics", "watch", "127.0.0.1:1", *arguments)
    assert code == 2
    assert f"{where}: " in stderr
    assert PASSWORD not in stderr


def test_where_there_are_no_metrics_at_all_that_is_the_result() -> None:
    """Exit code 5: the servers', not the user's."""
    code, _, stderr = finish("metrics", "watch", f"u:{PASSWORD}@127.0.0.1:1", "--count", "1")
    assert code == 5
    assert stderr == "no metrics: http://<redacted>@127.0.0.1:1/metrics: refused\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["ftp://h", f"http://u:{PASSWORD}@"], ["URL 1: must begin with", "URL 2: needs a host"]),
        (
            ["h:1", "--interval", "0", "--count", "0"],
            ["--interval: must be 0.05 to 3600", "--count: must be at least 1"],
        ),
        ([], ["Missing argument"]),
    ],
)
def test_what_cannot_be_watched_is_refused_whole(arguments: list[str], told: list[str]) -> None:
    """Every problem at once, before anything is asked."""
    code, _, stderr = finish("metrics", "watch", *arguments)
    assert code == 2
    assert all(words in stderr for words in told)
    assert PASSWORD not in stderr


def test_every_figure_has_its_words() -> None:
    """No term of the table is left out of what is shown."""
    assert set(SHOWN) == {term.key for term in TERMS}


_looks = st.builds(
    Look,
    url=st.text("abc/:.", min_size=1, max_size=80),
    figures=st.dictionaries(st.sampled_from(sorted(SHOWN)), st.floats(0, 1e9)),
    wrong=st.none() | st.sampled_from(["refused", "too_large"]),
)


@given(st.lists(_looks, min_size=1, max_size=3))
def test_forty_columns_hold_every_figure(looks: list[Look]) -> None:
    """Nothing but a URL is cut; and in a pipe each is one line."""
    file = io.StringIO()
    Console(file=file, width=40, color_system=None).print(drawn(looks))
    text = file.getvalue()
    assert max(len(line) for line in text.splitlines()) <= 40
    assert all(name in text and value in text for look in looks for name, value in lines(look))
    assert all("\n" not in plain(look) for look in looks)


def test_lines_behind_the_end_of_the_metrics_are_not_watched_and_marked() -> None:
    """Law: what follows `# EOF` is no figure; how many lines are left out stands beside those that are."""
    body = b"# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 3\n# EOF\nvllm:num_requests_running 7\nx\n"
    with scripted(lambda _: Script(whole(200, body, kind=b"text/plain"))) as peer:
        code, stdout, _ = finish("metrics", "watch", f"127.0.0.1:{peer.port}", "--count", "1")
    assert code == 0
    assert "running 3" in stdout
    assert stdout.rstrip().endswith("ignored behind # EOF 2 lines")
