"""The wire format of Protocol Buffers, as far as messages of engines need it (protobuf.dev/programming-guides/encoding).

| wire type | a value is                                        | read as                        |
| --------- | ------------------------------------------------- | ------------------------------ |
| 0         | a varint: seven bits a byte, the lowest first     | an integer of 64 bits at most  |
| 1, 5      | eight bytes, four bytes                           | these bytes                    |
| 2         | a length and as many bytes: text, a message, a    | these bytes                    |
|           | list of varints                                   |                                |
| others    | groups, which nobody has written since proto2     | Malformed                      |

A field's key is its number times eight plus its wire type, so that a known number with a foreign wire type is another field, as
the specification wants it. Messages that follow each other in bytes are one message: that is how repeated parts are merged.

The official library would be a dependency of every run for a handful of fields. The tests hold this file against it.
"""

from __future__ import annotations

import struct
import sys

VARINT, EIGHT_BYTES, BYTES, FOUR_BYTES = 0, 1, 2, 5
LONGEST_VARINT = 10
_MASK = (1 << 64) - 1
GOES_ON = bytes(range(0x80, 0x100))
"""Bytes of a varint that are not its last."""
_FLOAT = struct.Struct("<f")

Field = tuple[int, int | bytes]
"""A field's key and its value."""


class Malformed(ValueError):
    """Bytes that are no message."""


def key(number: int, wire_type: int) -> int:
    """The key of a field."""
    return number << 3 | wire_type


def read(data: bytes, most: int = sys.maxsize) -> list[Field]:
    """The fields of a message in their order, known or not; `most`: it may have no more. Raises Malformed."""
    fields: list[Field] = []
    at, size = 0, len(data)
    value: int | bytes
    while at < size:
        tag = data[at]
        at += 1
        if tag & 0x80:
            tag, at = _varint(data, at - 1)
        if tag < 8 or tag > 0xFFFF_FFFF:
            raise Malformed("a field without a number")
        wire_type = tag & 7
        if wire_type == BYTES or not wire_type:
            if at < size and (number := data[at]) < 0x80:
                at += 1
            else:
                number, at = _varint(data, at)
            value = number
            if wire_type:
                end = at + number
                value, at = data[at:end], end
        elif wire_type in (EIGHT_BYTES, FOUR_BYTES):
            end = at + (8 if wire_type == EIGHT_BYTES else 4)
            value, at = data[at:end], end
        else:
            raise Malformed(f"a field of wire type {wire_type}")
        if at > size:
            raise Malformed("the message ends inside a field")
        if len(fields) >= most:
            raise Malformed("too many fields")
        fields.append((tag, value))
    return fields


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The varint at this place, and where it ends. Raises Malformed."""
    value = 0
    for place, byte in enumerate(data[at : at + LONGEST_VARINT]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value & _MASK, at + place + 1
    raise Malformed("a varint that does not end")


def count(packed: bytes) -> int:
    """How many varints a packed list has. Raises Malformed."""
    if packed and packed[-1] >= 0x80:
        raise Malformed("a list that ends inside a varint")
    return len(packed.translate(None, GOES_ON))


def numbers(packed: bytes) -> list[int]:
    """The varints of a packed list. Raises Malformed."""
    found: list[int] = []
    at = 0
    while at < len(packed):
        value, at = _varint(packed, at)
        found.append(value)
    return found


def varint(value: int, width: int = 1) -> bytes:
    """A value from 0 to 2^64 - 1, in `width` bytes at least: a longer one than needed is read as the same value."""
    made = bytearray()
    while value >= 0x80 or len(made) < width - 1:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


def integer(number: int, value: int | None) -> bytes:
    """A field of an integer, a truth value or an enumeration, if it is not None. Below 0: in 64 bits, as int32 has it."""
    if value is None:
        return b""
    return varint(key(number, VARINT)) + varint(value & _MASK)


def real(number: int, value: float | None) -> bytes:
    """A field of type float, if it is not None. Raises OverflowError for what no float holds."""
    return b"" if value is None else varint(key(number, FOUR_BYTES)) + _FLOAT.pack(value)


def piece(number: int, value: bytes | str | None) -> bytes:
    """A field of text, of a message or of a packed list, if it is not None."""
    if value is None:
        return b""
    content = value.encode() if isinstance(value, str) else value
    return varint(key(number, BYTES)) + varint(len(content)) + content
