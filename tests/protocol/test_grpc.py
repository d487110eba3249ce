"""gRPC's framing, statuses and messages in words, by its specification."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from feeding import same_however_cut, split_at
from hypothesis import given
from hypothesis import strategies as st

from inferometer.protocol.event_decoder import EventTooLarge
from inferometer.protocol.grpc import (
    CODES,
    LONGEST_TIMEOUT,
    BadMessage,
    GrpcDecoder,
    Status,
    decoded,
    encoded,
    framed,
    read_status,
    status_fields,
    timeout,
)


def messages(pieces: list[bytes]) -> tuple[list[bytes], bool]:
    """What is decoded of these pieces, and whether they end inside a message."""
    decoder = GrpcDecoder(1000)
    found = [message for piece in pieces for message in decoder.feed(piece)]
    assert decoder.end() == ()
    return found, decoder.unfinished


@given(
    st.lists(st.binary(max_size=60), max_size=8),
    st.binary(max_size=4),
    st.lists(st.integers(0, 600)),
)
def test_messages_come_back_however_a_body_is_cut(
    wanted: list[bytes], tail: bytes, places: list[int]
) -> None:
    """Law: whole, byte by byte, anywhere, and with a tail that is half of a prefix."""
    body = b"".join(map(framed, wanted)) + tail
    assert same_however_cut(body, messages) == (wanted, bool(tail))
    assert messages(split_at(body, places)) == (wanted, bool(tail))


@given(st.binary(min_size=1, max_size=60), st.integers(1, 100))
def test_a_message_that_lies_about_its_length_is_never_given_out(message: bytes, more: int) -> None:
    """Law: what has been announced and did not come is unfinished."""
    lying = framed(message + b"x" * more)[: 5 + len(message)]
    assert same_however_cut(lying, messages) == ([], True)


@pytest.mark.parametrize("before", [b"", framed(b"a"), framed(b"")])
def test_a_compressed_message_is_an_error_with_a_name(before: bytes) -> None:
    """Nothing but identity was requested; and a flag of neither 0 nor 1 is no flag."""
    for flag, words in ((1, "compressed"), (2, "not with 0 or 1"), (255, "not with 0 or 1")):
        with pytest.raises(BadMessage, match=words):
            GrpcDecoder().feed(before + bytes([flag]) + bytes(4))


def test_a_message_over_the_limit_is_refused_before_it_is_there() -> None:
    """By its length alone: its bytes are never held."""
    GrpcDecoder(10).feed(framed(b"x" * 10))
    with pytest.raises(EventTooLarge):
        GrpcDecoder(10).feed(framed(b"x" * 11)[:5])
    with pytest.raises(EventTooLarge):
        GrpcDecoder().feed(b"\0\xff\xff\xff\xff")


@given(st.integers(0, 16), st.text(max_size=40))
def test_a_status_and_its_words_come_back(code: int, words: str) -> None:
    """Law: whatever the text, in printable ASCII on the wire."""
    fields = dict(status_fields(Status(code, words)))
    assert read_status(fields) == Status(code, words)
    assert all(0x20 <= byte < 0x7F for value in fields.values() for byte in value)


@given(st.text(max_size=40))
def test_words_are_encoded_as_percent_encoding_has_them(words: str) -> None:
    """Law: the standard library reads them as meant, and its own encoding is read here."""
    assert decoded(quote(words).encode()) == words
    assert decoded(encoded(words)) == words


@pytest.mark.parametrize(
    ("message", "words"),
    [(b"", ""), (b"100%", "100%"), (b"%zz", "%zz"), (b"%e2%82%ac", "€"), (b"\xff%ff", "\ufffd\ufffd")],
)
def test_words_encoded_wrongly_are_read_as_far_as_can_be(message: bytes, words: str) -> None:
    """The specification forbids to lose the status for them."""
    assert decoded(message) == words


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"0", "grpc OK"),
        (b"14", "grpc UNAVAILABLE"),
        (b"99", "grpc UNKNOWN"),
    ],
)
def test_a_status_has_a_name(value: bytes, shown: str) -> None:
    """One that nobody has defined is UNKNOWN."""
    assert str(read_status({b"grpc-status": value})) == shown


def test_a_status_with_words_names_both() -> None:
    """As the record's detail has it."""
    status = Status(CODES["UNAVAILABLE"], "no engine")
    assert str(status) == "grpc UNAVAILABLE: no engine"


@pytest.mark.parametrize("value", [b"", b"-1", b"x", b"1" * 11, b"\xb2"])
def test_a_status_that_is_no_number_is_no_status(value: bytes) -> None:
    """And without the field there is none."""
    with pytest.raises(BadMessage):
        read_status({b"grpc-status": value})
    assert read_status({b"grpc-message": b"x"}) is None


@given(st.floats(0.0001, 1e12))
def test_a_deadline_has_eight_digits_at_most(seconds: float) -> None:
    """Law: in milliseconds or seconds, never 0, and off by at most half a unit as far as the digits reach."""
    value = timeout(seconds)
    number, unit = int(value[:-1]), {"m": 0.001, "S": 1.0}[value[-1]]
    assert 0 < number <= LONGEST_TIMEOUT
    if 0.001 <= seconds < LONGEST_TIMEOUT:
        assert abs(number * unit - seconds) <= unit * 0.51
