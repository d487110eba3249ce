"""The comparison with other tools: what is told to them, what is read from them, and what both are held against.

No other tool is needed here: each adapter is fed a result file that its tool wrote.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))  # `benchmarks` and `scripts` are not installed

from benchmarks import native
from benchmarks.figure import Figure, Note, grids, rows
from benchmarks.loads import Bench
from benchmarks.peers import comparison
from benchmarks.peers.adapter import Job, Load, Reported
from benchmarks.peers.comparison import (
    ADAPTERS,
    Seen,
    Truth,
    call,
    first_and_last,
    ratio,
    truth_of,
    undisturbed,
)
from scripts.engines.places import SetupError
from scripts.peers.setup import Outcome, reason, table
from scripts.peers.table import PEERS

ROOT = Path(__file__).parent.parent
VECTORS = Path(__file__).parent / "vectors" / "peers"
MS = 1_000_000
JOB = Job(Load(20, 60, 64, 100, warmup=20), "http://127.0.0.1:8000", Path("TOKENIZER"), Path("OUT"))


def recorded(name: str) -> Path:
    """The one result file of this peer."""
    (found,) = VECTORS.glob(f"{name}-*.json")
    return found


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("aiperf", Reported(60, 58.99603258333333, 73.04256689999998, 27.154764489999888)),
        ("guidellm", Reported(60, 56.12372159957886, 100.06356239318848, None)),
        ("vllm", Reported(60, 57.944707666657294, 62.648360559937835, 20.33175781004502)),
    ],
)
def test_the_figures_are_those_of_the_result_file(name: str, expected: Reported) -> None:
    """Mean and P99 of TTFT in ms, P99 of the gaps where the tool has it, the requests that succeeded."""
    assert ADAPTERS[name].read(recorded(name).read_bytes()) == expected


def test_seconds_become_milliseconds() -> None:
    """inference-perf writes seconds."""
    found = ADAPTERS["inference-perf"].read(recorded("inference-perf").read_bytes())
    assert found.completed == 60
    assert found.ttft_mean_ms is not None
    assert 50 < found.ttft_mean_ms < 60
    assert found.gap_p99_ms is not None
    assert 20 < found.gap_p99_ms < 24


def test_where_no_answer_has_a_second_token_there_is_no_gap() -> None:
    """vLLM writes 0 then, which is no measurement."""
    data = msgspec.json.decode(recorded("vllm").read_bytes())
    data |= {"total_output_tokens": 60, "p99_itl_ms": 0.0}
    assert ADAPTERS["vllm"].read(msgspec.json.encode(data)).gap_p99_ms is None


@pytest.mark.parametrize("name", ADAPTERS)
def test_another_file_is_refused(name: str) -> None:
    """A tool whose format has changed gives an error and no figures."""
    with pytest.raises(msgspec.DecodeError):
        ADAPTERS[name].read(b'{"version": 99}')


@pytest.mark.parametrize("name", ADAPTERS)
def test_the_command_asks_for_the_load(name: str) -> None:
    """Streams, requests, lengths, address, a tokenizer on this disk and a place for the result are all in it."""
    words = " ".join(ADAPTERS[name].command(JOB))
    for part in ("20", "60", "64", "100", JOB.url, "TOKENIZER", "OUT"):
        assert part in words


@pytest.mark.parametrize("name", ADAPTERS)
def test_every_adapter_is_of_the_version_that_is_set_up(name: str) -> None:
    """Its recorded file, its environment's pins and the docs agree."""
    version = recorded(name).stem.removeprefix(f"{name}-")
    environment = PEERS[name].environment
    assert environment is not None
    assert f"\n{PEERS[name].package}=={version}\n" in environment.constraints.read_text()
    assert f"| {PEERS[name].title} | {version} |" in (ROOT / "docs" / "peers.md").read_text()


@pytest.mark.parametrize("name", ADAPTERS)
def test_the_command_in_the_docs_is_the_one_that_is_run(name: str) -> None:
    """A reader who repeats a run gets the same run."""
    page = (ROOT / "docs" / "peers.md").read_text()
    job = Job(Load(1000, 3000, 64, 100, warmup=1000), "http://127.0.0.1:8000", Path("TOKENIZER"), Path("OUT"))
    (told,) = re.findall(rf"^{PEERS[name].program} (?:.*\\\n)*.*$", page, re.MULTILINE)
    expected = f"{PEERS[name].program} {' '.join(ADAPTERS[name].command(job))}"
    assert re.sub(r"[\\'\s]+", " ", told).strip() == expected


def row(arrived: int, after: list[int]) -> native.TruthRow:
    """One request of the server's record, in ms, read as soon as it arrived."""
    instants = [at * MS for at in after]
    return native.TruthRow("x", arrived * MS, arrived * MS, instants, instants)


def test_the_truth_is_that_of_the_last_requests() -> None:
    """A probe and two of warm-up come first. By hand: TTFT 10 and 20, gaps 5, 5 and 15; 5 tokens in 100 ms."""
    record = [
        row(0, [1]),
        row(50, [55, 60]),
        row(60, [90, 95]),
        row(100, [110, 115, 120]),
        row(165, [185, 200]),
    ]
    truth = truth_of(record, 2, warmup=2)
    assert truth.requests == 2
    assert truth.ttft_mean_ms == pytest.approx(15)
    assert truth.ttft_p99_ms == pytest.approx(19.9)
    assert truth.gap_p99_ms == pytest.approx(14.8)
    assert truth.tokens_s == pytest.approx(50)
    assert truth.requests_s == pytest.approx(20)
    assert (truth.began, truth.ended) == (50 * MS, 200 * MS)


def test_single_tokens_have_no_gaps_and_an_empty_record_no_truth() -> None:
    """Nothing is made up."""
    assert truth_of([row(0, [1]), row(1, [3])], 2, 0).gap_p99_ms is None
    with pytest.raises(RuntimeError, match="nothing"):
        truth_of([], 2, 0)


def test_errors_are_reported_less_true_and_ratios_of_sizes() -> None:
    """And neither where a side is missing."""
    truth = Truth(2, 50.0, 51.0, None, 1.0, 1.0, 0, 1)
    seen = Seen("it", truth, Reported(2, 48.5, None, 20.0), 1.0, 0.0, [])
    assert seen.error("ttft_mean_ms") == -1.5
    assert seen.error("ttft_p99_ms") is None
    assert seen.error("gap_p99_ms") is None
    assert ratio(0.5, -2.0) == 0.25
    assert ratio(None, 1.0) is None
    assert ratio(1.0, 0.0) is None


def test_a_peer_that_fails_is_told_by_its_first_and_last_line(tmp_path: Path) -> None:
    """The first says what was under way, the last what went wrong."""
    program = "print('starting\\nsomething'); raise SystemExit('no such model')"
    with pytest.raises(RuntimeError, match=r"exit code 1: .*no such model"):
        call([sys.executable, "-u", "-c", program], None, {}, tmp_path)
    assert first_and_last("\n a \nb\n c\n\n") == "a ... c"
    assert first_and_last("a\nValueError: b\nlog: c") == "a ... ValueError: b"
    assert first_and_last("a") == "a"
    assert first_and_last("") == "it said nothing"


def test_what_a_standstill_spoilt_is_measured_again(tmp_path: Path) -> None:
    """A pause of the machine, which any pause is if nothing is long enough, is tried anew and in the end told."""
    tried: list[str] = []

    def measure(out: Path) -> int:
        tried.append(out.name)
        return len(tried)

    assert undisturbed(measure, tmp_path / "quiet") == 1
    with pytest.raises(RuntimeError, match="stood still"):
        undisturbed(measure, tmp_path / "never", standstill_s=-1.0)
    assert tried == ["0", "0", "1", "2"]


def test_a_peer_that_does_not_end_is_ended(tmp_path: Path) -> None:
    """The others must get their turn."""
    with pytest.raises(RuntimeError, match="not done after"):
        call([sys.executable, "-c", "while True: pass"], None, {}, tmp_path, limit_s=0.2)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_without_peers_there_are_the_floor_and_ours(tmp_path: Path) -> None:
    """The benchmark says that none is installed and shows what it has."""
    nowhere = native.Cores(None, None)
    bench = Bench(native.build(tmp_path), nowhere, quick=True)
    first = next(iter(comparison.peers(bench, tokenizer=tmp_path)))
    assert isinstance(first, Note)
    assert "make bench-peers" in first.text
    load = Load(2, 6, 16, 5, warmup=2)
    found = [item for item in comparison.compare(bench, [], load, load) if isinstance(item, Figure)]
    assert {item.line for item in found} == {"floor", "Inferometer"}
    assert {item.grid for item in found} == {"2 streams"}
    assert {"achieved : offered", "error of mean TTFT", "beside the load"} <= {item.label for item in found}


def test_a_grid_has_a_line_for_each_tool_and_a_dash_for_what_it_does_not_say() -> None:
    """In the order of first showing; a figure outside any grid is not in it."""
    found: list[Figure | Note] = [
        Figure("requests", 1234.4, "/s", None, 0, "load", "one"),
        Figure("error", 0.5, "ms", None, 2, "load", "two"),
        Figure("alone", 1.0),
    ]
    lines = grids(rows("peers", [found])).splitlines()
    assert [line.split() for line in lines if line] == [
        ["load", "requests,", "/s", "error,", "ms"],
        ["one", "1,234", "-"],
        ["two", "-", "0.50"],
    ]


def test_the_set_up_tells_in_a_line_why_one_is_missing() -> None:
    """The installer's first complaint, and for what the index has not, that."""
    error = SetupError("'uv' ended with status 1:\nResolving\nerror: no route\n  cause: dns")
    assert reason(error) == "error: no route"
    assert reason(SetupError("a\nb")) == "b"
    absent = PEERS["mlperf-endpoints"]
    assert absent.environment is None
    shown = table([Outcome(absent, absent.absent)])
    assert "not available from the package index" in shown
