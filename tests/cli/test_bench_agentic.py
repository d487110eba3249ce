"""`inferometer bench --agentic` against the reference server, and restarts in virtual time."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from commands import finish, only, run
from forwarding import forwarding
from serving import serving
from shipped_schemas import shipped

from inferometer.server.engine.settings import Settings
from inferometer.studies.engine_restart import Health, Identity, Started, restart

CACHING = Settings(
    step_base_ns=200_000,
    prefill_base_ns=1e6,
    prefill_per_token_ns=30_000,
    prefix_caching=True,
    kv_blocks=20_000,
)


def agentic(out: Path, url: str, *arguments: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, agentic.json and stderr. Forced, since other reference servers may run on the machine of the tests."""
    words = ("--url", f"here={url}", "--agentic", "--force", "--long-tokens", "1000", *arguments, "--json")
    code, stdout, stderr = run("bench", *words, out=out)
    return code, json.loads(stdout) if stdout else {}, stderr


@pytest.fixture
def address() -> Iterator[str]:
    with serving(engine=CACHING) as port:
        yield f"http://127.0.0.1:{port}"


def test_a_server_with_a_prefix_cache_reuses_it_and_its_cold_phases_are_cold(
    address: str, tmp_path: Path
) -> None:
    """Nothing that is sent before warms the cache of a phase."""
    _, document, _ = agentic(tmp_path, address, "--salt", "fixed")
    jsonschema.validate(document, shipped("agentic"))
    assert json.loads((only(tmp_path) / "agentic.json").read_text()) == document
    (engine,) = document["engines"]
    assert engine["prefix_cache_reuse"]["verdict"] == "yes"
    assert engine["prefix_cache_reuse"]["source"] == "cached_tokens"
    samples = {one["phase"]: one for one in engine["samples"]}
    assert samples["cold"]["cached_share"] < 0.01
    assert samples["cold-prefix"]["cached_share"] < 0.01
    assert document["protocol"]["salt"] == "fixed"


@pytest.fixture
def four_replicas() -> Iterator[str]:
    """Four servers, each with a cache of its own, behind one address; a POST goes to the next, all else to the first."""
    with ExitStack() as stack:
        ports = [stack.enter_context(serving(engine=CACHING)) for _ in range(4)]
        turns = itertools.cycle(ports)
        yield stack.enter_context(forwarding(lambda method: next(turns) if method == "POST" else ports[0]))


def test_replicas_that_take_turns_reuse_a_prefix_in_part(four_replicas: str, tmp_path: Path) -> None:
    """Of three prefix tests, two meet a replica that has not seen the system prompt. Whether the clock contradicts that
    depends on what else the machine does."""
    _, document, _ = agentic(tmp_path, four_replicas, "--api", "chat")
    (engine,) = document["engines"]
    reuse = engine["prefix_cache_reuse"]
    assert (reuse["verdict"], reuse["source"]) == ("partial", "cached_tokens")
    shares = [one["cached_share"] for one in engine["samples"] if one["phase"].startswith("prefix-test")]
    assert [share > 0.5 for share in shares] == [False, False, True]
    assert "cached_impossible" not in {one["code"] for one in engine["remarks"]}


def test_its_reports_are_written_and_written_again_the_same(address: str, tmp_path: Path) -> None:
    """Beside agentic.json, by `bench --agentic` and by `report`, whose exit code is that of the result."""
    code, document, _ = agentic(tmp_path, address)
    folder = only(tmp_path)
    first = {
        name: (folder / name).read_bytes() for name in ("agentic.md", "agentic.html", "card.svg", "card.png")
    }
    for name in first:
        (folder / name).unlink()
    again, stdout, _ = finish("report", str(folder), "--json")
    assert (again, json.loads(stdout)) == (code, document)
    assert {name: (folder / name).read_bytes() for name in first} == first


def test_prompts_that_were_sent_before_are_found_in_the_cache(address: str, tmp_path: Path) -> None:
    """The same salt twice: cold is not cold then, and the result does not stand."""
    agentic(tmp_path / "a", address, "--salt", "fixed")
    _, document, _ = agentic(tmp_path / "b", address, "--salt", "fixed")
    (engine,) = document["engines"]
    assert "cached_impossible" in {one["code"] for one in engine["remarks"]}
    assert "cached_impossible" in engine["reasons"]
    assert engine["status"] != "VALID"


def test_a_server_that_was_not_restarted_is_not_measured_if_that_is_required(
    address: str, tmp_path: Path
) -> None:
    """A command that fails; its output lies beside the result."""
    command = f"here={sys.executable} -c 'raise SystemExit(3)'"
    code, document, _ = agentic(tmp_path, address, "--restart", command, "--restart-required")
    (engine,) = document["engines"]
    assert (code, engine["ended"], engine["restart"]["why"]) == (5, "failed", "command_failed")
    assert (only(tmp_path) / "restart-here.log").is_file()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--salt", "x"), "--agentic"),
        (("--agentic", "--prompts", "code"), "--prompts"),
        (("--agentic", "--long-tokens", "5"), "--long-tokens"),
        (("--agentic", "--restart", "other=true"), "other"),
        (("--agentic", "--restart", "here"), "ENGINE=COMMAND"),
        (("--agentic", "--restart", "here='open"), "quotation"),
    ],
)
def test_flags_that_cannot_be_are_refused_by_name(
    arguments: tuple[str, ...], words: str, address: str, tmp_path: Path
) -> None:
    """Before anything is sent."""
    code, _, stderr = run("bench", "--url", f"here={address}", *arguments, out=tmp_path)
    assert code == 2
    assert words in stderr


def test_the_terminal_shows_the_verdict_and_what_it_is_by(address: str, tmp_path: Path) -> None:
    """And the gates that tripped below it, or that did not run."""
    words = ("--agentic", "--force", "--long-tokens", "1000")
    _, stdout, _ = run("bench", "--url", f"here={address}", *words, out=tmp_path)
    assert "prefix cache reuse yes" in stdout
    assert "By the engine's cached tokens" in stdout
    assert "long-prefix" in stdout


@dataclass
class Play:
    """A server and its command in virtual time: states by the second, and when the command returns."""

    states: list[Health]
    processes: list[Identity | None]
    returns_s: float = 0.0
    status: int = 0
    at_ns: int = 0

    def now_ns(self) -> int:
        """As of a clock."""
        return self.at_ns

    def sleep(self, seconds: float) -> None:
        """As of a clock."""
        self.at_ns += round(seconds * 1e9)

    def _second(self, count: int) -> int:
        return min(self.at_ns // 10**9, count - 1)

    def health(self) -> Health:
        """As of a server."""
        return self.states[self._second(len(self.states))]

    def identity(self) -> Identity | None:
        """As of a server."""
        return self.processes[self._second(len(self.processes))]

    def begin(self) -> Started:
        """As of a command."""
        return lambda: self.status if self.at_ns >= self.returns_s * 1e9 else None


OLD, NEW = (1, 10.0), (2, 20.0)


@pytest.mark.parametrize(
    ("play", "why"),
    [
        (Play(["healthy", "away", "healthy"], [None]), None),
        (Play(["healthy"], [OLD, NEW]), None),
        (Play(["healthy"], [OLD, OLD, OLD, NEW], returns_s=1), None),  # returned before the old one was gone
        (Play(["away", "healthy"], [None]), None),
        (Play(["healthy"], [OLD]), "old_server_stays"),
        (Play(["healthy"], [None]), "old_server_stays"),
        (Play(["unknown", "healthy"], [OLD]), "old_server_stays"),
        (Play(["healthy", "away"], [OLD, None]), "not_healthy"),
        (Play(["healthy"], [OLD], status=1), "command_failed"),
        (Play(["healthy"], [OLD], returns_s=1e6), "command_hangs"),
    ],
)
def test_a_server_counts_as_restarted_only_once_the_old_one_was_seen_gone(
    play: Play, why: str | None
) -> None:
    """Or another process has its port; a command that returned proves nothing."""
    done = restart(play.begin, play, play)
    assert (done.restarted, done.why) == (why is None, why)
