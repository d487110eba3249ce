"""The scraper's process against scripted endpoints: what is on record in which order, and what it says of itself."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from commands import own_child
from peers import Answer, Script, Seen, scripted, whole

from inferometer.telemetry.metrics.appender import Appender
from inferometer.telemetry.metrics.fetch import Fetched
from inferometer.telemetry.metrics.record import Scrape, read
from inferometer.telemetry.metrics.scraper import Post, redactor_of
from inferometer.telemetry.metrics.scraper_messages import Endpoint, Finish, Job
from inferometer.telemetry.metrics.scraper_process import Scraping

NEVER_S = 300.0
OFTEN_S = 0.01
OFFSET = 10**18


def exposition(value: int = 1, more: str = "") -> Script:
    return Script(whole(200, f"# TYPE up gauge\nup {value}\n{more}".encode(), kind=b"text/plain"))


def at(port: int, *, own: bool = False) -> Endpoint:
    place = f"127.0.0.1:{port}"
    shown = f"http://{place}/metrics"
    return Endpoint(
        shown=shown, host="127.0.0.1", port=port, path="/metrics", headers={"Host": place}, own=own
    )


class Place:
    """Where one scraper writes, and the scraper."""

    def __init__(self, folder: Path, scraping: Scraping) -> None:
        self.path = folder / "telemetry" / "scrapes.jsonl.zst"
        self.log = folder / "log.txt"
        self.scraping = scraping

    def brief(
        self,
        *endpoints: Endpoint,
        interval_s: float = NEVER_S,
        secrets: Sequence[str] = (),
        timeout_s: float = 5.0,
    ) -> None:
        """Hand a job over."""
        self.scraping.brief(
            Job(
                record=str(self.path),
                endpoints=list(endpoints),
                interval_ns=int(interval_s * 1e9),
                clock_offset_ns=OFFSET,
                timeout_s=timeout_s,
                secrets=list(secrets),
            )
        )

    def scrapes(self) -> list[Scrape]:
        """What is on record."""
        return list(read(self.path)) if self.path.exists() else []

    def wait_for(self, enough: Callable[[list[Scrape]], bool]) -> list[Scrape]:
        """What is on record, once it is enough, within bounds."""
        pause = threading.Event()
        for _ in range(400):
            if enough(found := self.scrapes()):
                return found
            pause.wait(0.05)
        raise AssertionError("it never came onto the record")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Scraping(tmp_path / "log.txt") as scraping:
        found = Place(tmp_path, scraping)
        yield found
    assert found.log.read_text() == ""


def counting(enough: int) -> tuple[Answer, threading.Event]:
    """An endpoint whose value counts the questions; the event is set at so many."""
    reached = threading.Event()
    number = iter(range(1, 1 << 30))

    def answer(_: Seen) -> Script:
        value = next(number)
        if value >= enough:
            reached.set()
        return exposition(value)

    return answer, reached


def test_a_baseline_each_phase_s_ends_and_a_last_one(place: Place) -> None:
    """In this order, on every endpoint; with an interval that never comes round, nothing else."""
    with scripted(counting(1)[0]) as one, scripted(counting(1)[0]) as other:
        place.brief(at(one.port), at(other.port))
        ready = place.scraping.ready()
        for name in ("warmup", "profiling"):
            place.scraping.mark(name, name)
            place.scraping.mark(name, None)
        done = place.scraping.end()
    assert ready is not None
    assert (ready.endpoints, ready.failures) == (2, {})
    for port in (one.port, other.port):
        mine = [scrape for scrape in place.scrapes() if f":{port}/" in scrape.endpoint_url]
        phases = [scrape.phase for scrape in mine]
        assert phases == ["baseline", "warmup", "warmup", "profiling", "profiling", "final"]
        values = [scrape.body.split()[-1] for scrape in mine if scrape.body]
        assert values == ["1", "2", "3", "4", "5", "6"]
        times = [scrape.timestamp_ns for scrape in mine]
        assert times == sorted(set(times))
        assert times[0] > OFFSET
    assert [(told.scrapes, told.errors, told.skipped) for told in done.endpoints] == [(6, {}, 0)] * 2
    assert done.failed is None
    assert done.cpu_s > 0


def test_scrapes_at_intervals_bear_the_phase_that_runs(place: Place) -> None:
    """Between two marks its own, after the last mark none; before the first mark there are none."""
    before = threading.Event()
    during = threading.Event()
    after = threading.Event()
    questions: list[int] = []

    def answer(_: Seen) -> Script:
        questions.append(1)
        for event, number in ((before, 1), (during, 10), (after, 20)):
            if len(questions) >= number:
                event.set()
        return exposition()

    with scripted(answer) as peer:
        place.brief(at(peer.port), interval_s=OFTEN_S)
        place.scraping.ready()
        place.scraping.mark("profiling", "profiling")
        assert during.wait(20)
        place.scraping.mark("profiling", None)
        assert after.wait(20)
        place.scraping.end()
    phases = [scrape.phase for scrape in place.scrapes()]
    profiled = phases.count("profiling")
    assert profiled >= 9
    assert phases == ["baseline", *["profiling"] * profiled, *[None] * (len(phases) - profiled - 2), "final"]


def test_an_endpoint_that_vanishes_is_tried_again_and_comes_back(place: Place) -> None:
    """What was lost has its reason on record, and the next body follows it."""
    with scripted(counting(1)[0]) as peer:
        port = peer.port
        place.brief(at(port), interval_s=OFTEN_S)
        place.scraping.ready()
        place.scraping.mark("profiling", "profiling")
        place.wait_for(lambda found: sum(scrape.body is not None for scrape in found) > 3)
    place.wait_for(lambda found: found[-1].error == "refused")
    with scripted(counting(1)[0], port=port):
        found = place.wait_for(lambda found: found[-1].body is not None)
        done = place.scraping.end()
    assert found[0].body is not None
    assert done.endpoints[0].errors["refused"] > 0
    assert done.endpoints[0].skipped >= 0


def test_one_that_hangs_holds_up_no_other(place: Place) -> None:
    """The other's phases are all there, and the end is not waited for longer than a scrape may take."""
    with scripted(lambda _: Script([], "hang")) as dead, scripted(counting(1)[0]) as alive:
        place.brief(at(dead.port), at(alive.port), timeout_s=0.3)
        ready = place.scraping.ready()
        place.scraping.mark("profiling", "profiling")
        place.scraping.mark("profiling", None)
        done = place.scraping.end()
    assert ready is not None
    assert ready.failures == {at(dead.port).shown: "timeout"}
    assert ready.endpoints == 2
    assert done.endpoints[1].scrapes == 4
    assert done.endpoints[0].errors["timeout"] >= 1


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (Script(whole(404, b"")), "http_404"),
        (Script(whole(200, b"<html>", kind=b"text/html")), "html"),
        (Script(whole(200, b'{"detail": 1}')), "json"),
    ],
)
def test_the_target_s_own_endpoint_may_be_none(place: Place, script: Script, reason: str) -> None:
    """Nobody named it: it is left alone after one try, and nothing is on disk."""
    with scripted(lambda _: script) as peer:
        place.brief(at(peer.port, own=True), interval_s=OFTEN_S)
        ready = place.scraping.ready()
        asked = len(peer.seen)
        place.scraping.mark("profiling", "profiling")
        done = place.scraping.end()
    assert ready is not None
    assert (ready.endpoints, ready.failures) == (0, {at(peer.port).shown: reason})
    assert done.endpoints[0].absent == reason
    assert not place.path.parent.exists()
    assert len(peer.seen) == asked


@pytest.mark.parametrize("script", [Script([], "close"), Script(whole(503, b""))])
def test_the_target_s_own_endpoint_is_tried_again_if_it_was_only_busy(place: Place, script: Script) -> None:
    """No answer says nothing of what is served there; nor does one that says later."""
    left = [script, script]
    with scripted(lambda _: left.pop() if left else exposition()) as peer:
        place.brief(at(peer.port, own=True), interval_s=OFTEN_S)
        ready = place.scraping.ready()
        place.scraping.mark("profiling", "profiling")
        found = place.wait_for(lambda found: any(scrape.body for scrape in found))
    assert ready is not None
    assert ready.endpoints == 1
    assert found[0].error is not None


def test_where_metrics_are_json_the_text_is_looked_for_elsewhere(place: Place) -> None:
    """TensorRT-LLM shows it at /prometheus/metrics; from then on that is asked, under the name of the first."""

    def answer(seen: Seen) -> Script:
        return exposition() if seen.target == "/prometheus/metrics" else Script(whole(200, b'[{"iter": 1}]'))

    with scripted(answer) as peer:
        place.brief(at(peer.port))
        place.scraping.ready()
        done = place.scraping.end()
    assert [seen.target for seen in peer.seen] == ["/metrics", "/prometheus/metrics", "/prometheus/metrics"]
    assert [(scrape.phase, scrape.error) for scrape in place.scrapes()] == [
        ("baseline", None),
        ("final", None),
    ]
    assert {scrape.endpoint_url for scrape in place.scrapes()} == {at(peer.port).shown}
    assert (done.endpoints[0].instead, done.endpoints[0].errors) == ("/prometheus/metrics", {})


def test_a_killed_scraper_leaves_what_it_had_flushed_and_a_run_that_goes_on(place: Place) -> None:
    """kill -9: the record reads to its end, and the account says that there is none."""
    answer, reached = counting(5)
    with scripted(answer) as peer:
        place.brief(at(peer.port), interval_s=OFTEN_S)
        place.scraping.ready()
        place.scraping.mark("profiling", "profiling")
        assert reached.wait(20)
        before = place.wait_for(lambda found: len(found) >= 5)
        child = own_child("inferometer.telemetry.metrics.scraper")
        os.kill(child.pid, signal.SIGKILL)
        place.scraping.mark("profiling", None)
        done = place.scraping.end()
    assert done.failed is not None
    assert [told.url for told in done.endpoints] == [at(peer.port).shown]
    assert place.scrapes()[: len(before)] == before


def test_without_its_parent_the_scraper_writes_down_what_it_has_and_leaves(place: Place) -> None:
    """Its standard input ends, however the parent did."""
    with scripted(counting(1)[0]) as peer:
        place.brief(at(peer.port))
        place.scraping.ready()
        place.scraping.__exit__(None, None, None)
    assert [scrape.phase for scrape in place.scrapes()] == ["baseline"]


def test_a_secret_that_a_server_repeats_is_struck_out(place: Place) -> None:
    """Of the body only the secret goes."""
    with scripted(lambda _: exposition(more='info{url="http://u:hunter-two@h"} 1\n')) as peer:
        place.brief(at(peer.port), secrets=["hunter-two", "up"])
        place.scraping.ready()
        place.scraping.end()
    bodies = [scrape.body for scrape in place.scrapes()]
    assert bodies == ['# TYPE up gauge\nup 1\ninfo{url="http://u:[redacted]@h"} 1\n'] * 2


TOKEN = 'sk-"quo\\te-0123456789abcdefghijklmnopqrstuvwx'
"""With what labels escape."""


@pytest.mark.parametrize("pad", [0, 20, 33, 52, 60, 1000])
def test_a_token_in_a_refusal_is_struck_out_before_the_refusal_is_cut(place: Place, pad: int) -> None:
    """Law: wherever the words of an account end, no part of a token that the endpoint repeated is in them."""
    body = f"{'x' * pad} {TOKEN} is no token".encode()
    with scripted(lambda _: Script(whole(401, body, kind=b"text/plain"))) as peer:
        place.brief(at(peer.port), secrets=[TOKEN])
        place.scraping.ready()
        done = place.scraping.end()
    (words,) = done.endpoints[0].words.values()
    assert len(words) <= 60
    assert 'sk-"' not in words
    assert "0123" not in words
    assert pad > 50 or "[redacted]"[: 59 - pad] in words


def test_a_token_is_struck_out_of_labels_as_they_escape_it(place: Place) -> None:
    """Law: neither the record nor what its labels mean holds the token, nor does the type that the answer states."""
    escaped = TOKEN.replace("\\", "\\\\").replace('"', '\\"')
    hidden = "\\n".join((escaped[:12], escaped[12:]))
    spelled = "".join(f"\\\\u{ord(one):04x}" for one in TOKEN)
    body = f'# TYPE up gauge\nup{{a="{escaped}",b="{hidden}",c="{spelled}"}} 1\n'.encode()
    with scripted(lambda _: Script(whole(200, body, kind=f"text/plain; {TOKEN}".encode()))) as peer:
        place.brief(at(peer.port), secrets=[TOKEN])
        place.scraping.ready()
        place.scraping.end()
    for scrape in place.scrapes():
        assert scrape.body == '# TYPE up gauge\nup{a="[redacted]",b="[redacted]",c="\\[redacted]"} 1\n'
        assert scrape.content_type == "text/plain; [redacted]"


def test_a_record_that_cannot_be_written_is_told(place: Place) -> None:
    """And ends nothing: the endpoints are asked on, so that the account is whole."""
    place.path.parent.write_text("in the way")
    with scripted(counting(1)[0]) as peer:
        place.brief(at(peer.port))
        place.scraping.ready()
        done = place.scraping.end()
    assert done.failed
    assert done.endpoints[0].scrapes == 2
    with contextlib.suppress(OSError):
        place.path.parent.unlink()


def test_a_scraper_that_hangs_holds_up_no_load_and_did_start(tmp_path: Path) -> None:
    """Within the bound every endpoint is said to have timed out, and the log says why; it is not taken for dead."""
    log = tmp_path / "log.txt"
    with Scraping(log, start_s=0.2) as scraping, scripted(counting(1)[0]) as peer:
        os.kill(scraping.pid, signal.SIGSTOP)
        place = Place(tmp_path, scraping)
        place.brief(at(peer.port), timeout_s=0.1)
        ready = scraping.ready()
        os.kill(scraping.pid, signal.SIGCONT)
    assert ready is not None
    assert (ready.endpoints, ready.failures) == (1, {at(peer.port).shown: "timeout"})
    assert "no baseline within 0.2 s" in log.read_text()


def test_a_scraper_that_reads_no_orders_holds_up_no_run(tmp_path: Path) -> None:
    """Law: a job larger than the pipe and orders without end are handed over at once to a scraper that is stopped, and reach it
    once it goes on."""
    with Scraping(tmp_path / "log.txt", start_s=0.0) as scraping, scripted(counting(1)[0]) as peer:
        os.kill(scraping.pid, signal.SIGSTOP)
        place = Place(tmp_path, scraping)
        place.brief(at(peer.port), secrets=[f"{number:064}" for number in range(4000)])
        for _ in range(50):
            scraping.mark("profiling", None)
        os.kill(scraping.pid, signal.SIGCONT)
        done = scraping.end()
    assert done.failed is None
    assert place.scrapes()[0].phase == "baseline"
    assert place.scrapes()[-1].phase == "final"


def test_an_error_that_nobody_foresees_is_a_failed_scrape(tmp_path: Path) -> None:
    """Law: the first try is over and on record, with the error in words, and so is each after it."""

    class Broken:
        instead = None

        def get(self) -> Fetched:
            raise ZeroDivisionError("none of the kinds of errors that are foreseen")

        def close(self) -> None:
            pass

    tried = threading.Event()
    job = Job(
        record=str(tmp_path / "x"),
        endpoints=[at(1, own=True)],
        interval_ns=1 << 50,
        clock_offset_ns=OFFSET,
        timeout_s=1.0,
        secrets=[],
    )
    appender = Appender(Path(job.record))
    post = Post(0, job, appender, tried.set, redactor_of(job))
    post._fetcher = Broken()  # type: ignore[assignment]
    post.order(Finish())
    post.run()
    assert tried.is_set()
    assert post.account.absent is None
    assert post.account.errors == {"internal": 2}
    assert post.account.words["internal"].startswith("ZeroDivisionError: none of")
