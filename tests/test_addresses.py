"""URLs as they may be written down: nothing that opens a door, and everything else as it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.addresses import REDACTED, is_loopback, secrets_of, short, shown

SECRET = "hunter2hunter2"


@pytest.mark.parametrize(
    "url",
    [
        f"http://joe:{SECRET}@h:8000/metrics",
        f"http://{SECRET}@h/metrics",
        f"http://h/metrics?token={SECRET}&verbose=1",
        f"http://h/metrics?sas={SECRET}",
        f"http://h/metrics?jwt={SECRET}",
        f"http://h/metrics?to%6ben={SECRET}",
        f"http://h/metrics?a=1;api_key={SECRET}",
        f"http://h/metrics?x=sk-{SECRET}",
        f"http://h/metrics?x=s%6b-{SECRET}",
        f"http://a:{SECRET}@h:99999999/",
        f"joe:{SECRET}@h:80/metrics",
    ],
)
def test_no_secret_is_shown(url: str) -> None:
    """Whatever it is called, however it is spelled, and in what is no URL too."""
    assert SECRET not in shown(url)
    assert REDACTED in shown(url)


@given(
    st.from_regex(
        r"https?://[a-z]{1,9}(:[1-9][0-9]{0,3})?/[a-z/]{0,9}(\?[b-d]{1,3}=[0-9]{0,4}(&[b-d]=[0-9])?)?",
        fullmatch=True,
    )
)
def test_what_holds_no_secret_is_shown_as_it_is(url: str) -> None:
    """And shown twice, it is the same."""
    assert shown(url) == url
    assert secrets_of(url) == []


@given(st.from_regex(r"http://([a-z]{8,12}@)?h/m\?token=[A-Z]{8,12}(;b=1)?", fullmatch=True))
def test_what_is_left_out_is_what_is_kept_secret(url: str) -> None:
    """All of it, so that it can be struck out elsewhere."""
    left_out = secrets_of(url)
    assert left_out
    assert not any(secret in shown(url) for secret in left_out)
    assert shown(shown(url)) == shown(url)


def test_tables_leave_out_what_every_endpoint_has() -> None:
    """Scheme and `/metrics`."""
    assert short("http://h:8000/metrics") == "h:8000"
    assert short("http://h:8000/a/metrics") == "h:8000/a"
    assert short("metrics") == "metrics"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:8000", True),
        ("http://127.8.0.1", True),
        ("http://[::1]:8000/v1", True),
        ("http://localhost:1", True),
        ("http://10.0.0.1", False),
        ("http://[2001:db8::1]", False),
        ("http://gpu-1:8000", False),
    ],
)
def test_this_machine_is_known_by_its_name_and_its_addresses(url: str, expected: bool) -> None:
    """And no other machine is taken for it."""
    assert is_loopback(url) is expected
