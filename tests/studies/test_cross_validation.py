"""Counters that are absent, go back or are of something else: from recorded scrapes. Answers of unlike lengths."""

from __future__ import annotations

from pathlib import Path

import pytest
from measured_requests import measured

from inferometer.engines.adapters.adapter import Counters
from inferometer.measure.measured_requests import MeasuredRequest
from inferometer.studies.cross_validation import by_counters, figures_of
from inferometer.telemetry.metrics.record import Scrape, write

COUNTERS = Counters(output_tokens="x:tokens", decode_s="x:decode", ttft_s="x:ttft")


def exposed(tokens: float, decode_s: float, ttft_s: float, count: int) -> str:
    """A scrape's text."""
    return (
        f"# TYPE x:tokens_total counter\nx:tokens_total {tokens}\n# TYPE x:decode_total counter\nx:decode_total {decode_s}\n"
        f'# TYPE x:ttft histogram\nx:ttft_bucket{{le="+Inf"}} {count}\nx:ttft_sum {ttft_s}\nx:ttft_count {count}\n'
    )


def recorded(folder: Path, *bodies: str) -> Path:
    """A record of these scrapes, a second apart."""
    path = folder / "scrapes.jsonl"
    lines = [write(Scrape("http://a/metrics", at * 10**9, body)) for at, body in enumerate(bodies, 1)]
    path.write_bytes(b"".join(lines))
    return path


def answered(*tokens: int | None) -> list[MeasuredRequest]:
    return [measured(row, output_tokens=one) for row, one in enumerate(tokens)]


def test_what_was_added_between_the_first_and_the_last_scrape_counts(tmp_path: Path) -> None:
    """200 tokens in 4 s, and two first tokens after 0.1 s each, whatever was counted before."""
    path = recorded(tmp_path, exposed(7, 1, 9, 5), exposed(100, 2, 9.1, 6), exposed(207, 5, 9.2, 7))
    found, remarks = by_counters(COUNTERS, path, answered(100, 100))
    assert remarks == []
    assert found["tok_per_sec"].mean == pytest.approx(50)
    assert found["ttft_ms"].mean == pytest.approx(100)
    assert found["ttft_ms"].n == 2


def test_a_counter_that_goes_back_is_named_and_left_out(tmp_path: Path) -> None:
    """The others stay."""
    path = recorded(tmp_path, exposed(50, 1, 0, 0), exposed(10, 2, 0.1, 1), exposed(110, 3, 0.2, 2))
    found, remarks = by_counters(COUNTERS, path, answered(50, 50))
    assert [one.code for one in remarks] == ["counters_went_back"]
    assert remarks[0].facts["families"] == "x:tokens"
    assert list(found) == ["ttft_ms"]


def test_counters_that_are_absent_are_named(tmp_path: Path) -> None:
    """Without any scrape as well."""
    path = recorded(tmp_path, "# TYPE y gauge\ny 1\n", "# TYPE y gauge\ny 2\n")
    for place in (path, tmp_path / "none"):
        found, remarks = by_counters(COUNTERS, place, answered(50))
        assert found == {}
        assert remarks[0].code == "counters_absent"
        assert remarks[0].facts["families"] == "x:tokens, x:decode, x:ttft"
    assert [one.code for one in by_counters(None, path, answered(50))[1]] == ["counters_unknown"]


@pytest.mark.parametrize(
    ("last", "code"), [((200, 4, 0.3, 3), "counters_of_others"), ((199, 4, 0.2, 2), "counters_differ")]
)
def test_counters_of_other_requests_are_left_out(
    last: tuple[float, float, float, int], code: str, tmp_path: Path
) -> None:
    """Someone else's request, or tokens that no answer reports: then no figure of them is of these requests."""
    path = recorded(tmp_path, exposed(0, 0, 0, 0), exposed(*last))
    found, remarks = by_counters(COUNTERS, path, answered(100, 100))
    assert found == {}
    assert [one.code for one in remarks] == [code]


def test_counters_that_hold_a_failed_request_are_left_out(tmp_path: Path) -> None:
    """Its tokens were counted and its time was not, or the other way round: 250 tokens are not of the 4 s of two answers."""
    path = recorded(tmp_path, exposed(0, 0, 0, 0), exposed(250, 4, 0.3, 3))
    broken = [*answered(100, 100), measured(2, outcome="reset", output_tokens=None)]
    found, remarks = by_counters(COUNTERS, path, broken)
    assert found == {}
    assert [(one.code, one.facts) for one in remarks] == [("counters_of_failed", {"failed": 1, "sent": 3})]


def test_counters_that_nothing_can_be_held_against_are_left_out(tmp_path: Path) -> None:
    """Answers without a count of tokens, and no count of first tokens: the tokens may be of someone else's requests."""
    path = recorded(tmp_path, exposed(0, 0, 0, 0), exposed(900, 4, 0.2, 2))
    blind = Counters(output_tokens="x:tokens", decode_s="x:decode")
    found, remarks = by_counters(blind, path, answered(None, None))
    assert (found, [one.code for one in remarks]) == ({}, ["counters_unchecked"])
    assert by_counters(COUNTERS, path, answered(None, None))[0]["tok_per_sec"].mean == pytest.approx(225)


@pytest.mark.parametrize("observed", [1, 3])
def test_writing_time_of_other_answers_gives_no_speed(observed: int, tmp_path: Path) -> None:
    """A histogram that has not seen the last answer yet would make the engine as much faster: 200 tokens in half their time."""

    def seen(count: int) -> str:
        body = exposed(100.0 * count, 0, 0.1 * count, count).replace("x:decode_total 0\n", "")
        body = body.replace("# TYPE x:decode_total counter\n", "# TYPE x:decode histogram\n")
        times = observed if count else 0
        return f'{body}x:decode_bucket{{le="+Inf"}} {times}\nx:decode_sum {2.0 * times}\nx:decode_count {times}\n'

    each = Counters(output_tokens="x:tokens", decode_s="x:decode", ttft_s="x:ttft", decode_by_request=True)
    found, remarks = by_counters(each, recorded(tmp_path, seen(0), seen(2)), answered(100, 100))
    assert list(found) == ["ttft_ms"]
    assert [(one.code, one.facts) for one in remarks] == [("counters_late", {"counted": observed, "sent": 2})]


@pytest.mark.parametrize(
    ("whole", "streamed", "codes"),
    [
        ((9, 50, 50), (50, 50), []),
        ((50, 50, 50), (50, 49), ["lengths_differ"]),
        ((50, 40, 40), (50, 50), ["lengths_differ"]),
        ((50, None, None), (50, 50), ["tokens_not_reported"]),
        ((50, None, 50), (50, 40), ["lengths_differ", "tokens_not_reported"]),
    ],
)
def test_answers_of_unlike_lengths_are_named(
    whole: tuple[int | None, ...], streamed: tuple[int | None, ...], codes: list[str], tmp_path: Path
) -> None:
    """By their token counts: neither the first whole one, which is left out, nor an unknown count makes a difference."""
    path = tmp_path / "none"
    _, remarks = figures_of(None, answered(*whole), answered(*streamed), path)
    assert [one.code for one in remarks if one.code != "counters_unknown"] == codes
