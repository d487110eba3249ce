"""Traces: what each format's rows come to, which part of them a window holds, and every way in which a file can be wrong."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.documents.workload import TraceLengths
from inferometer.errors import PlanError, RecordError
from inferometer.plan.arrivals import Window
from inferometer.plan.schema import Trace
from inferometer.units import NS_PER_MS, NS_PER_S
from inferometer.workload.traces import source
from inferometer.workload.traces.source import opened
from inferometer.workload.traces.survey import MOST_PROBLEMS, replay, survey

VECTORS = Path(__file__).parent.parent / "vectors" / "traces"
Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a trace from its lines; gives its path."""

    def lines(*rows: str, name: str = "t.jsonl", end: str = "\n") -> str:
        path = tmp_path / name
        path.write_bytes(("\n".join(rows) + end).encode())
        return str(path)

    return lines


def plain(*seconds: float) -> list[str]:
    return [json.dumps({"timestamp": at, "input_tokens": 4, "output_tokens": 2}) for at in seconds]


def read(name: str, **window: object) -> list[tuple[int, int | None, int]]:
    """Due instants in ms, and lengths, of a vector's rows."""
    trace = Trace.model_validate({"file": str(VECTORS / name), **window})
    found = survey(trace)
    arrivals = list(replay(trace, found))
    assert len(arrivals) == found.facts.rows
    return [(due / NS_PER_MS, row.input_tokens, row.output_tokens) for due, row in arrivals]  # type: ignore[misc]


def refusals(path: str, **window: object) -> list[str]:
    with pytest.raises(PlanError) as caught:
        survey(Trace.model_validate({"file": path, **window}))
    return [str(problem) for problem in caught.value.problems]


# What the formats come to.


def test_mooncake_counts_in_milliseconds_and_names_blocks() -> None:
    """Times and lengths as they stand, ids as they stand, none where there are none."""
    assert read("mooncake.jsonl") == [
        (0, 1300, 6), (0, 1100, 4), (150, 530, 5), (150, 1536, 3),
        (400, 700, 2), (420, 40, 7), (600, 1300, 6), (999, 90, 3),
    ]  # fmt: skip
    trace = Trace(file=str(VECTORS / "mooncake.jsonl"))
    rows = [row for _, row in replay(trace, survey(trace))]
    assert [row.hash_ids for row in rows[:3]] == [(0, 1, 2), (0, 1, 3), (0, 4)]
    assert rows[-1].hash_ids == ()
    assert survey(trace).facts.shares_prefixes


def test_azure_dates_are_exact_to_a_tenth_of_a_microsecond() -> None:
    """Seven digits behind the second, from the first row on."""
    due = [at for at, _, _ in read("azure-2023.csv")]
    assert due == [0, 52, 98.189, 98.189, 415.04]


def test_azure_dates_with_a_zone_are_the_same_instants() -> None:
    """01:00 one hour east is 00:00; a whole second has no point; midnight is no break."""
    due = [at for at, _, _ in read("azure-2024.csv")]
    assert due == [0, 250, 251.163, 500]


def test_azure_dates_whose_zone_stands_where_the_seconds_should_are_refused(tmp_path: Path) -> None:
    """Python reads them as a date; nothing behind it is looked at."""
    path = tmp_path / "a.csv"
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10000+00:00,48,10\n")
    with pytest.raises(PlanError, match="must be a date and time such as"):
        survey(Trace(file=str(path)))


def test_burstgpt_failures_are_counted_and_left_out() -> None:
    """A row without response, or without request, has no load to repeat; the others keep their instants."""
    assert read("burstgpt.csv") == [
        (0, 47, 18), (40_000, 108, 23), (113_000, 41, 27), (209_000, 18, 21),
    ]  # fmt: skip
    assert survey(Trace(file=str(VECTORS / "burstgpt.csv"))).facts.failed == 2


def test_burstgpt_columns_are_found_by_name() -> None:
    """Later releases have two more, and fractions of a second."""
    assert read("burstgpt-sessions.csv") == [(0, 47, 18), (40_250, 108, 23), (113_500, 41, 27)]


def test_a_plain_trace_has_lengths_or_texts() -> None:
    """Seconds with fractions; a text comes as it is."""
    assert read("plain.jsonl") == [(0, 40, 5), (50, None, 6), (50, 12, 2), (300, None, 4), (750, 64, 3)]
    trace = Trace(file=str(VECTORS / "plain.jsonl"))
    assert [row.prompt for _, row in replay(trace, survey(trace))][1] == "Name three rivers of Europe."
    assert survey(trace).facts.texts == 2


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("mooncake.jsonl", "mooncake"),
        ("azure-2023.csv", "azure"),
        ("azure-2024.csv", "azure"),
        ("burstgpt.csv", "burstgpt"),
        ("burstgpt-sessions.csv", "burstgpt"),
        ("plain.jsonl", "jsonl"),
    ],
)
def test_each_format_is_recognised_and_gives_the_same_when_named_or_packed(
    name: str, form: str, tmp_path: Path
) -> None:
    """Recognised, named, or inside gzip: the same rows; the hash is that of the file on disk."""
    seen = survey(Trace(file=str(VECTORS / name))).facts
    assert seen.format == form
    assert seen.sha256 == hashlib.sha256((VECTORS / name).read_bytes()).hexdigest()
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress((VECTORS / name).read_bytes()))
    assert read(name) == read(name, format=form) == read(str(packed))
    assert survey(Trace(file=str(packed))).facts.sha256 == hashlib.sha256(packed.read_bytes()).hexdigest()


def test_a_byte_order_mark_windows_line_ends_and_a_missing_last_line_end_change_nothing(write: Write) -> None:
    """As editors and spreadsheets leave them, and empty lines at the end."""
    whole = (VECTORS / "azure-2023.csv").read_text().splitlines()
    for path in (
        write("\ufeff" + whole[0], *whole[1:], name="bom.csv"),
        write(*(line + "\r" for line in whole), name="crlf.csv"),
        write(*whole, name="cut.csv", end=""),
        write(*whole, "", "", name="empty.csv"),
    ):
        assert read(path) == read("azure-2023.csv")
    assert read(write("\ufeff" + plain(1)[0])) == [(0, 4, 2)]


def test_the_survey_adds_up_what_the_window_holds(write: Write) -> None:
    """Rows, tokens, span, rate and the first second, of the window and at its speed."""
    path = write(*plain(10, 10.5, 11, 14, 20))
    whole = survey(Trace(file=path)).facts
    assert (whole.rows, whole.span_s, whole.lasts_s, whole.first_second) == (5, 10, 10, 2)
    assert whole.rate == 0.5
    part = survey(Trace(file=path, start_s=0.5, end_s=8, speed=2)).facts
    assert (part.rows, part.span_s, part.first_second) == (3, 3.75, 2)
    assert part.input_tokens == TraceLengths(sum=12, mean=4, min=4, max=4, p50=4, p95=4, p99=4)
    assert survey(Trace(file=path), most=2).facts.rows == 2
    assert survey(Trace(file=path), most=2).facts.span_s == 0.5


# Windows and speeds.

TIMES = st.lists(st.integers(0, 10**6), min_size=1, max_size=30).map(sorted)


@given(TIMES, st.integers(0, 10**6), st.integers(1, 10**6), st.sampled_from([1, 2, 4, 0.5, 8]))
def test_a_window_loses_nothing_keeps_the_order_and_commutes_with_the_speed(
    at: list[int], start: int, length: int, speed: float
) -> None:
    """Cut then scaled is scaled then cut, for times that the speed divides; and every gap is the trace's over the speed."""
    at_ns = [8 * one for one in at]
    window = Window(8 * start, 8 * (start + length), speed)
    due = [window.due_ns(one) for one in at_ns if window.holds(one)]
    scaled = Window(int(8 * start / speed), int(8 * (start + length) / speed), 1)
    quicker = [int(one / speed) for one in at_ns]
    assert due == [scaled.due_ns(one) for one in quicker if scaled.holds(one)]
    assert due == sorted(due)
    assert len(due) == sum(start <= one < start + length for one in at)


@given(TIMES, st.floats(0.01, 100))
def test_any_speed_is_exact_to_half_a_nanosecond(at: list[int], speed: float) -> None:
    """No error adds up along a trace: each instant is rounded by itself."""
    window = Window(0, None, speed)
    for one in at:
        assert abs(window.due_ns(one * NS_PER_MS) - one * NS_PER_MS / speed) <= 0.5


@given(TIMES, st.integers(0, 10**6))
def test_two_windows_that_meet_share_out_a_trace(at: list[int], cut: int) -> None:
    """[a, b) and [b, c): each arrival is in one of them."""
    before, behind = Window(0, cut, 1), Window(cut, None, 1)
    assert [before.holds(one) + behind.holds(one) for one in at] == [1] * len(at)


def test_a_replay_begins_where_the_window_does(write: Write) -> None:
    """Its first arrival is due as long after the start as it lies behind the window's start, not at once."""
    path = write(*plain(100, 101, 105, 110))
    trace = Trace(file=path, start_s=2, end_s=10)
    assert [due for due, _ in replay(trace, survey(trace))] == [3 * NS_PER_S]


# What can be wrong.

GOOD = '{"timestamp": 1, "input_tokens": 4, "output_tokens": 2}'


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"timestamp": -1, "input_tokens": 4, "output_tokens": 2}', "timestamp: must be a number of seconds, 0 or more"),
        ('{"timestamp": 0.5, "input_tokens": 4, "output_tokens": 2}', "timestamp: is earlier than in the row before it"),
        ('{"timestamp": "2", "input_tokens": 4, "output_tokens": 2}', "timestamp: must be a number of seconds"),
        ('{"timestamp": NaN, "input_tokens": 4, "output_tokens": 2}', "is no JSON"),
        ('{"timestamp": 1e999, "input_tokens": 4, "output_tokens": 2}', "timestamp: must be a number of seconds"),
        ('{"timestamp": true, "input_tokens": 4, "output_tokens": 2}', "timestamp: must be a number of seconds"),
        ('{"input_tokens": 4, "output_tokens": 2}', "timestamp: is missing"),
        ('{"timestamp": 2, "input_tokens": 0, "output_tokens": 2}', "input_tokens: must be a whole number of tokens from 1"),
        ('{"timestamp": 2, "input_tokens": 4.5, "output_tokens": 2}', "input_tokens: must be a whole number"),
        ('{"timestamp": 2, "input_tokens": 4, "output_tokens": 0}', "output_tokens: must be a whole number"),
        ('{"timestamp": 2, "output_tokens": 2}', "input_tokens: is missing"),
        ('{"timestamp": 2, "prompt": "  ", "output_tokens": 2}', "prompt: is empty"),
        ('{"timestamp": 2, "prompt": 7, "output_tokens": 2}', "prompt: must be text"),
        ('{"timestamp": 2, "prompt": "x", "input_tokens": 1, "output_tokens": 2}', "input_tokens: contradicts prompt"),
        ('{"timestamp": 2, "input_to', "is no JSON: it is cut off"),
        ('{"timestamp": 1e308, "input_tokens": 4, "output_tokens": 2}', "timestamp: must be less than 1,000,000,000,000"),
        (f'{{"timestamp": {"9" * 5_000}, "input_tokens": 4, "output_tokens": 2}}', "timestamp: must be a number of seconds"),
        (f'{{"timestamp": 2, "x": {"[" * 100_000}{"]" * 100_000}}}', "is no JSON"),
        ("[1, 2]", "must be a JSON object"),
        ("nonsense", "is no JSON"),
    ],
)  # fmt: skip
def test_a_row_that_is_none_is_named_by_file_line_and_field(line: str, said: str, write: Write) -> None:
    """And nothing of what the line holds is repeated, for it may be somebody's words."""
    (problem,) = refusals(write(GOOD, line))
    assert problem.startswith("t.jsonl:2: ")
    assert said in problem


@pytest.mark.parametrize(
    ("name", "line", "said"),
    [
        ("azure-2023.csv", "2023-11-16 18:17:05.1,12", "has 2 fields where the header has 3"),
        ("azure-2023.csv", "2023-11-16 18:17:05.1,12,3,4", "has 4 fields"),
        ("azure-2023.csv", "2023-11-16 18:17:02.1,12,3", "TIMESTAMP: is earlier"),
        ("azure-2023.csv", "2023-11-31 18:17:02.1,12,3", "TIMESTAMP: must be a date and time"),
        ("azure-2023.csv", "yesterday,12,3", "TIMESTAMP: must be a date and time"),
        ("azure-2023.csv", f"2023-11-16 18:17:05.1,{'9' * 5_000},3", "ContextTokens: must be a whole number of tokens"),
        ("azure-2023.csv", "1959-11-16 18:17:02.1,12,3", "TIMESTAMP: must not lie before 1970"),
        ("azure-2023.csv", "2023-11-16 18:17:05.1,-12,3", "ContextTokens: must be a whole number"),
        ("azure-2023.csv", "2023-11-16 18:17:05.1,12,", "GeneratedTokens: must be a whole number"),
        ("burstgpt.csv", "-3,ChatGPT,1,1,2,API log", "Timestamp: must be a number of seconds, 0 or more"),
        ("burstgpt.csv", "nan,ChatGPT,1,1,2,API log", "Timestamp: must be a number of seconds, 0 or more"),
        ("burstgpt.csv", "300,ChatGPT,x,1,2,API log", "Request tokens: must be a whole number"),
        ("burstgpt.csv", "4,ChatGPT,1,1,2,API log", "Timestamp: is earlier"),
        ("mooncake.jsonl", '{"timestamp": 5000, "input_length": 655, "output_length": 5, "hash_ids": [1, 2, 3]}',
         "hash_ids: has 3 ids, but 655 tokens are 2 blocks of 512"),
        ("mooncake.jsonl", '{"timestamp": 5000, "input_length": 655, "output_length": 5, "hash_ids": [1, "a"]}',
         "hash_ids: must be a list of whole numbers"),
        ("mooncake.jsonl", '{"timestamp": 5000, "output_length": 5}', "input_length: is missing"),
    ],
)  # fmt: skip
def test_each_format_refuses_what_is_no_row_of_it(name: str, line: str, said: str, write: Write) -> None:
    """At the line after the vector's own."""
    whole = (VECTORS / name).read_text().splitlines()
    (problem,) = refusals(write(*whole, line, name=name))
    assert problem.startswith(f"{name}:{len(whole) + 1}: ")
    assert said in problem


def test_an_empty_line_is_forgiven_at_the_end_only(write: Write) -> None:
    """In the middle it may be a row that was lost."""
    assert refusals(write(GOOD, "", GOOD)) == ["t.jsonl:2: is empty"]


def test_the_first_few_problems_are_told_and_the_rest_is_not_read(write: Write) -> None:
    """A file of the wrong kind does not fill the screen."""
    assert len(refusals(write(GOOD, *["nonsense"] * 50))) == MOST_PROBLEMS


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"\n\n", "is no trace that can be recognised"),
        (b"a,b,c\n1,2,3\n", "is no trace that can be recognised"),
        (b"\x00\xff\xfe", "is no trace that can be recognised"),
        (b'{"role": "user"}\n', "is no trace that can be recognised"),
        (b"TIMESTAMP,ContextTokens,GeneratedTokens\n", "holds no rows"),
        (b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xff\xff\xff", "cannot be read"),
        (gzip.compress(GOOD.encode() * 3, mtime=0)[:-9], "cannot be read to its end"),
    ],
)
def test_a_file_that_is_no_trace_is_refused(content: bytes, said: str, tmp_path: Path) -> None:
    """Empty, of another kind, or a broken archive."""
    (tmp_path / "t").write_bytes(content)
    assert said in refusals(str(tmp_path / "t"))[0]


def test_a_missing_file_and_another_format_are_refused(tmp_path: Path) -> None:
    """By the file's base name alone."""
    assert refusals(str(tmp_path / "none.csv")) == ["none.csv: cannot be read: no such file or directory"]
    (said,) = refusals(str(VECTORS / "azure-2023.csv"), format="burstgpt")
    assert "missing: Timestamp, Request tokens, Response tokens" in said


def test_a_window_without_arrivals_and_one_too_long_are_refused(write: Write) -> None:
    """With what to do about it."""
    path = write(*plain(0, 1_000_000))
    assert "holds no request between --trace-start and --trace-end" in refusals(path, start_s=5, end_s=9)[0]
    assert "takes 11.6 days; the most is 7" in refusals(path)[0]
    failures = str(VECTORS / "burstgpt.csv")
    assert "1 rows of it failed" in refusals(failures, start_s=100, end_s=102)[0]


def test_the_hash_of_the_plan_is_demanded(write: Write) -> None:
    """A plan that was made for another file does not run."""
    path = write(GOOD)
    own = survey(Trace(file=path)).facts.sha256
    assert survey(Trace(file=path, sha256=own)).facts.rows == 1
    assert "is not the file this plan was made for" in refusals(path, sha256="0" * 64)[0]


def test_a_file_that_changes_while_it_is_replayed_is_noticed(write: Write) -> None:
    """Rows that are missing or broken by then end the replay in an error, not in silence."""
    path = write(*plain(0, 1, 2))
    trace = Trace(file=path)
    found = survey(trace)
    write(*plain(0, 1))
    with pytest.raises(RecordError, match="rows are missing"):
        list(replay(trace, found))
    write(*plain(0, 1), "nonsense")
    with pytest.raises(RecordError, match="changed while it was replayed"):
        list(replay(trace, found))


def test_lines_know_where_they_begin(write: Write) -> None:
    """Going to a line's offset gives that line again."""
    path = write(*plain(0, 1, 2, 3))
    with opened(path) as source:
        places = [(source.number, source.offset, line) for line in source.lines()]
        for number, offset, line in reversed(places):
            source.go(number, offset)
            assert next(source.lines()) == line
            assert (source.number, source.offset) == (number, offset)


def test_a_packed_trace_that_hardly_ends_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blank lines take next to no room when packed, and time when read; rows are packed to a fiftieth at most."""
    monkeypatch.setattr(source, "UNPACKED", 1 << 16)
    path = tmp_path / "t.jsonl.gz"
    path.write_bytes(gzip.compress(f"{GOOD}\n".encode() + b"\n" * 2_000_000))
    assert refusals(str(path))[-1].endswith("unpacks to more than 500 times its size: that is no trace")
    rows = [GOOD.replace("1,", f"{number},", 1) for number in range(1, 20_000)]
    path.write_bytes(gzip.compress("\n".join(rows).encode()))
    assert survey(Trace(file=str(path))).facts.rows == len(rows)
