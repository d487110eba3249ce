"""The progress line: a pure function of the counters that fits and never lies about what is not known."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inferometer.report.progress import Counters, clock, progress, progress_plain

COUNTS = st.integers(0, 10**9)
COUNTERS = st.builds(
    Counters,
    phase=st.sampled_from(["warming up", "measuring", "draining"]),
    sent=COUNTS,
    in_flight=COUNTS,
    done=COUNTS,
    failed=COUNTS,
    tok_s=st.floats(0, 1e9),
    elapsed_s=st.floats(0, 1e6),
    total=st.none() | COUNTS,
    eta_s=st.none() | st.floats(-10, 1e6),
)

HALFWAY = Counters("measuring", 482, 32, 450, 3, 1612.3, 24.2, 1000, 29.0)


@given(COUNTERS, st.integers(0, 200), st.booleans())
def test_the_live_line_fits_any_width(counters: Counters, width: int, ascii_: bool) -> None:
    """At most `width` columns, one line, ASCII where asked."""
    line = progress(counters, width, ascii_)
    assert len(line) <= width
    assert "\n" not in line
    assert not ascii_ or line.isascii()


@given(COUNTERS)
def test_the_plain_line_is_complete_ascii(counters: Counters) -> None:
    """Every counter stands in it as a whole number, without control characters."""
    line = progress_plain(counters)
    assert line.isascii()
    assert line.isprintable()
    for count in (counters.sent, counters.in_flight, counters.done, counters.failed):
        assert str(count) in line


def test_the_lines_read_as_in_the_module() -> None:
    """The examples of the module's opening."""
    assert progress(HALFWAY, 120).endswith(
        "45 %  450/1000 done  32 in flight  3 failed  1612 tok/s  0:24, 0:29 left"
    )
    assert progress_plain(HALFWAY) == (
        "measuring 24 s: 482 sent, 32 in flight, 450 of 1000 done, 3 failed, 1612 tok/s, 29 s left"
    )


def test_without_a_total_there_is_no_share_and_no_time_left() -> None:
    """A run limited by nothing known claims no per cent and no end."""
    line = progress(Counters("measuring", 5, 1, 4, 0, 10.0, 3.0), 120)
    assert "%" not in line
    assert "left" not in line


def test_the_clock_counts_hours_and_never_runs_below_zero() -> None:
    """Minutes and seconds, hours only when there are any."""
    assert [clock(value) for value in (-3, 7.4, 725, 3723)] == ["0:00", "0:07", "12:05", "1:02:03"]
