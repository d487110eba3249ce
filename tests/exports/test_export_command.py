"""`inferometer export`: what goes together, where files go, and what a receiver may do."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from commands import finish
from peers import Script, Seen, scripted, whole

from inferometer.errors import PeerError, PlanError
from inferometer.exports.exported_run import ExportedRun
from inferometer.exports.formats import FORMATS, Format, Push, Wanted
from inferometer.exports.push import LARGEST_ANSWER, LARGEST_REQUEST, SAID, Destination, read_token, send

FILES = [one for one in FORMATS.values() if one.kind == "file"]
PLAIN = Push({"Content-Type": "text/plain"})


def digests(folder: Path) -> dict[str, str]:
    """The content of each file in a folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("chosen", FILES, ids=lambda one: one.name)
def test_a_format_is_written_beside_the_run_which_stays_as_it_was(
    chosen: Format, run: ExportedRun, folder: Path, tmp_path: Path
) -> None:
    """Into `exports` of the run's folder; nothing else there changes, and the verdict is said where it is not VALID."""
    copy = tmp_path / folder.name
    shutil.copytree(folder, copy)
    before = digests(copy)
    code, out, err = finish("export", str(copy), "--format", chosen.name)
    assert (code, out) == (0, f"{copy / 'exports' / chosen.file}\n")
    after = digests(copy)
    written = after.pop(f"exports/{chosen.file}")
    assert after == before
    assert written
    assert (run.marks.verdict == "VALID") != (f"The run is {run.marks.verdict}" in err)


def test_a_file_goes_where_it_is_sent(folder: Path, tmp_path: Path) -> None:
    """To a file by its name, or under the format's into a folder that is there."""
    for out, path in (
        (tmp_path / "own.prom", tmp_path / "own.prom"),
        (tmp_path, tmp_path / "inferometer.prom"),
    ):
        code, said, _ = finish("export", str(folder), "--format", "prometheus", "--out", str(out))
        assert (code, said) == (0, f"{path}\n")
        assert path.read_bytes().startswith(b"# HELP inferometer_run_info")
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["inferometer.prom", "own.prom"]


def test_an_export_is_the_same_each_time(run: ExportedRun) -> None:
    """The same run gives the same bytes: an export may be compared with an earlier one."""
    for chosen in FILES:
        assert chosen.render(run, Wanted()) == chosen.render(run, Wanted()), chosen.name


def test_a_link_out_of_the_run_is_not_written_through(folder: Path, tmp_path: Path) -> None:
    """The folder of a stranger's run may hold a link to somewhere else in the place of `exports`."""
    copy, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    shutil.copytree(folder, copy)
    elsewhere.mkdir()
    (copy / "exports").symlink_to(elsewhere)
    code, _, err = finish("export", str(copy), "--format", "prometheus")
    assert code == 2
    assert "leads out of" in err
    assert not list(elsewhere.iterdir())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--format", "llm-d"), "needs the folder of a run"),
        (("RUN", "--format", "grafana"), "is about no run"),
        (("RUN", "--format", "remote-write"), "--endpoint: remote-write needs one"),
        (("RUN", "--format", "mlflow"), "--endpoint: mlflow needs one"),
        (("RUN", "--format", "llm-d", "--endpoint", "http://x/"), "--endpoint: llm-d is a file"),
        (("RUN", "--format", "otlp", "--out", "x", "--endpoint", "http://x/"), "--out: says nothing"),
        (("RUN", "--format", "llm-d", "--answers"), "has no row for a request"),
        (("RUN", "--format", "otlp", "--endpoint", "ftp://x/"), "a URL with scheme and path is needed"),
        (
            ("RUN", "--format", "otlp", "--endpoint", "http://x/", "--token-env", "NOT_SET_HERE"),
            "NOT_SET_HERE is not set",
        ),
        (
            ("RUN", "--format", "otlp", "--endpoint", "http://x/", "--header", "Authorization: Bearer k"),
            "secret",
        ),
        (("RUN", "--format", "otlp", "--token-env", "HOME"), "say nothing without an --endpoint"),
        (("/nowhere", "--format", "llm-d"), "not a run folder"),
    ],
)
def test_what_does_not_go_together_is_refused(folder: Path, arguments: tuple[str, ...], words: str) -> None:
    """In words, with exit code 2, before anything is sent."""
    code, out, err = finish("export", *(str(folder) if one == "RUN" else one for one in arguments))
    assert (code, out) == (2, "")
    assert words in err


@pytest.mark.parametrize("name", [one.name for one in FORMATS.values() if one.extra is not None])
def test_an_absent_extra_is_named(folder: Path, name: str, tmp_path: Path) -> None:
    """With the command that installs it, not a traceback."""
    chosen = FORMATS[name]
    package = {"otlp": "google.protobuf.json_format", "mlflow": "mlflow", "wandb": "wandb"}[
        chosen.extra or ""
    ]
    module = f"inferometer.exports.{chosen.home.partition(':')[0]}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, package, None)  # as Python marks what cannot be imported
        patch.delitem(sys.modules, module, raising=False)
        where = ("--endpoint", "http://127.0.0.1:1/") if chosen.needs_endpoint else ("--out", str(tmp_path))
        code, _, err = finish("export", str(folder), "--format", name, *where)
    assert code == 2
    assert f"pip install 'inferometer[{chosen.extra}]'" in err


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            Script(whole(302, b"", b"Location: http://127.0.0.1:1/")),
            "answered 302, a redirect, which is not followed",
        ),
        (Script(whole(400, b"bad \x1b[31msample")), "answered 400: bad [31msample"),
        (Script(whole(500, b"x" * 10_000)), "answered 500: " + "x" * 200),
        (
            Script([b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n"]),
            f"more than {LARGEST_ANSWER} bytes",
        ),
        (Script([b"nonsense\r\n\r\n"]), "the answer is not HTTP"),
        (Script((), "close"), "the connection ended"),
    ],
)
def test_any_answer_but_success_is_an_error_of_the_receiver(answer: Script, words: str) -> None:
    """Said in its words, bounded and printable; one request is made, and none to where a redirect leads."""
    with scripted(lambda _: answer) as peer:
        with pytest.raises(PeerError) as raised:
            send(b"body", PLAIN, Destination(f"http://127.0.0.1:{peer.port}/push", timeout_s=20))
        assert words in str(raised.value)
        assert str(raised.value).count("x") <= 250
    assert len(peer.seen) == 1


def test_a_receiver_that_hangs_is_given_up() -> None:
    """Within the time given, whatever it has said until then."""
    with (
        scripted(lambda _: Script([b"HTTP/1.1 200 OK\r\n"], "hang")) as peer,
        pytest.raises(PeerError, match="no answer in time"),
    ):
        send(b"body", PLAIN, Destination(f"http://127.0.0.1:{peer.port}/", timeout_s=0.3))


def test_an_export_that_is_too_large_is_not_sent() -> None:
    """The limit is said before a connection is made."""
    with pytest.raises(PlanError, match="more than 16 MiB"):
        send(b"x" * (LARGEST_REQUEST + 1), PLAIN, Destination("http://127.0.0.1:1/"))


def always(script: Script) -> Callable[[Seen], Script]:
    """The same answer to everything."""
    return lambda _: script


def echoed(seen: Seen) -> Script:
    """An error that repeats the secrets of the request."""
    return Script(whole(401, f"{seen.headers} {seen.target}".encode()))


@pytest.mark.parametrize(
    ("make", "secret", "line"),
    [
        (lambda at: Destination(f"http://{at}/?token=hunter22", timeout_s=20), "hunter22", None),
        (
            lambda at: Destination(f"http://{at}/", token="hunter22", timeout_s=20),
            "hunter22",
            "Bearer hunter22",
        ),
        (
            lambda at: Destination(f"http://me:hunter22@{at}/", timeout_s=20),
            "hunter22",
            "Basic bWU6aHVudGVyMjI=",
        ),
    ],
)
def test_secrets_are_sent_and_never_shown(
    make: Callable[[str], Destination], secret: str, line: str | None
) -> None:
    """Not in an error either, where the receiver repeats them; nor in what a destination is shown as."""
    with scripted(echoed) as peer, pytest.raises(PeerError) as raised:
        to = make(f"127.0.0.1:{peer.port}")
        send(b"body", PLAIN, to)
    (seen,) = peer.seen
    assert {name.lower(): value for name, value in seen.headers.items()}.get("authorization") == line
    assert secret not in str(raised.value)
    assert "bWU6aHVudGVyMjI=" not in str(raised.value)
    assert secret not in repr(to)


@pytest.mark.parametrize(
    "spell",
    [
        lambda token: token.replace("/", "\\/"),
        lambda token: "".join(f"\\u{ord(one):04x}" for one in token),
        lambda token: quote(token, safe=""),
        lambda token: f"{token[:10]}\n{token[10:]}",
        lambda token: "\u200b".join(token),
        lambda token: f"{'x' * (SAID - 8)}{token}",
    ],
    ids=["escaped slash", "escaped", "URL", "two lines", "unshown between", "cut"],
)
def test_a_token_is_not_shown_in_another_spelling(spell: Callable[[str], str]) -> None:
    """Law: however a receiver spells the token, in an error or in what it says it refused, an error shows six characters of it
    at most."""
    token = "abcDEF/ghi+jklMNOP=="
    words = spell(token)
    refusing = Push({}, lambda _: words)
    for status, push in ((401, PLAIN), (200, refusing)):
        script = Script(whole(status, words.encode()))
        with scripted(always(script)) as peer, pytest.raises(PeerError) as raised:
            send(b"body", push, Destination(f"http://127.0.0.1:{peer.port}/", token=token, timeout_s=20))
        told = str(raised.value)
        assert words not in told
        for part in (token[:7], token[7:], spell(token[:7]), spell(token[10:])):
            assert part not in told


def test_a_token_is_read_from_a_variable_or_a_file(tmp_path: Path) -> None:
    """From one of them; what a header cannot hold is refused without being repeated."""
    file = tmp_path / "token"
    file.write_text("from-file\n")
    assert read_token("T", None, {"T": " from-env "}) == "from-env"
    assert read_token(None, file, {}) == "from-file"
    assert read_token(None, None, {}) is None
    file.write_bytes(b"se\xffcret")
    wrong: list[tuple[str | None, Path | None, dict[str, str]]] = [
        ("T", file, {"T": "x"}),
        (None, file, {}),
        ("T", None, {"T": "a\nsecret"}),
        ("T", None, {}),
    ]
    for variable, place, environ in wrong:
        with pytest.raises(PlanError) as raised:
            read_token(variable, place, environ)
        assert "secret" not in str(raised.value)
