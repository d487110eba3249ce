"""The reader and the writer of protobuf's wire format, held against the official library."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from inferometer.protocol import protobuf
from inferometer.protocol.protobuf import Malformed, count, integer, numbers, piece, read, real, varint

BIG = st.integers(0, (1 << 64) - 1)


def _official() -> type[Any]:
    """A message with a field of each kind that is read here, made by the official library."""
    file = descriptor_pb2.FileDescriptorProto(name="kinds.proto", package="kinds", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    message = file.message_type.add(name="Kinds")
    for number, (name, kind, label) in enumerate(
        [
            ("whole", kinds.TYPE_UINT64, kinds.LABEL_OPTIONAL),
            ("signed", kinds.TYPE_INT64, kinds.LABEL_OPTIONAL),
            ("text", kinds.TYPE_STRING, kinds.LABEL_OPTIONAL),
            ("raw", kinds.TYPE_BYTES, kinds.LABEL_OPTIONAL),
            ("real", kinds.TYPE_FLOAT, kinds.LABEL_OPTIONAL),
            ("double", kinds.TYPE_DOUBLE, kinds.LABEL_OPTIONAL),
            ("list", kinds.TYPE_UINT64, kinds.LABEL_REPEATED),
        ],
        start=1,
    ):
        message.field.add(name=name, number=number, type=kind, label=label)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    made: type[Any] = message_factory.GetMessageClass(pool.FindMessageTypeByName("kinds.Kinds"))
    return made


KINDS = _official()
VALUES = st.fixed_dictionaries(
    {},
    optional={
        "whole": BIG,
        "signed": st.integers(-(1 << 63), (1 << 63) - 1),
        "text": st.text(max_size=300),
        "raw": st.binary(max_size=300),
        "real": st.floats(width=32, allow_nan=False),
        "double": st.floats(allow_nan=False),
        "list": st.lists(BIG, max_size=20),
    },
)


@given(VALUES)
def test_what_the_official_library_writes_is_read_as_it_was_meant(values: dict[str, Any]) -> None:
    """Law: integers, text, bytes and packed lists of any length come back."""
    found = dict(read(KINDS(**values).SerializeToString()))
    if values.get("whole"):
        assert found[0x08] == values["whole"]
    if values.get("signed"):
        assert found[0x10] == values["signed"] % (1 << 64)
    if values.get("text"):
        assert found[0x1A] == values["text"].encode()
    if values.get("raw"):
        assert found[0x22] == values["raw"]
    if values.get("list"):
        packed = found[0x3A]
        assert isinstance(packed, bytes)
        assert numbers(packed) == values["list"]
        assert count(packed) == len(values["list"])


@given(VALUES)
def test_what_is_written_here_the_official_library_reads(values: dict[str, Any]) -> None:
    """Law: it becomes the same message, however wide the varints of a list are."""
    listed = values.get("list")
    wire = b"".join(
        (
            integer(1, values.get("whole")),
            integer(2, values.get("signed")),
            piece(3, values.get("text")),
            piece(4, values.get("raw")),
            real(5, values.get("real")),
            piece(7, None if listed is None else b"".join(varint(one, 4) for one in listed)),
        )
    )
    values.pop("double", None)
    assert KINDS.FromString(wire) == KINDS(**values)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_malformed(data: bytes) -> None:
    """Law: nothing else is raised; what is read here and has none of the known fields' faults, the official library reads, and
    what that one reads is read here, unless it has groups."""
    try:
        fields = read(data)
    except Malformed:
        with contextlib.suppress(DecodeError):
            KINDS.FromString(data)
            assert any(byte & 7 in (3, 4) for byte in data), data
        return
    if all(tag >> 3 > 7 for tag, _ in fields) and all(tag >> 3 < 1 << 29 for tag, _ in fields):
        KINDS.FromString(data)


@given(st.lists(BIG, max_size=30), st.integers(1, 10))
def test_a_list_has_as_many_numbers_as_were_written(values: list[int], width: int) -> None:
    """Law: counted without being decoded, for every width; each takes that many bytes at least."""
    packed = b"".join(varint(one, width) for one in values)
    assert count(packed) == len(values)
    assert numbers(packed) == values
    assert len(packed) >= width * len(values)


@pytest.mark.parametrize(
    "data",
    [
        b"\x08",
        b"\x08\x80",
        b"\x08" + b"\x80" * 10 + b"\x00",
        b"\x12\x05abcd",
        b"\x12\xff\xff\xff\xff\x0f",
        b"\x09\x00\x00",
        b"\x0d\x00",
        b"\x00\x01",
        b"\x0b",
        b"\x0c",
        b"\x0f",
        b"\xff" * 11,
    ],
)
def test_what_is_cut_or_lies_about_its_length_is_malformed(data: bytes) -> None:
    """A varint without its end, a length beyond the message, a field without a number, groups, wire types that do not exist."""
    with pytest.raises(Malformed):
        read(data)


def test_a_list_that_ends_inside_a_number_is_malformed() -> None:
    """Counted or decoded."""
    for look in (count, protobuf.numbers):
        with pytest.raises(Malformed):
            look(b"\x05\x80")
