"""Thrift's compact protocol, in which Parquet files say what they hold: structs read without a schema, bounded by their bytes.

A struct is a dict of its members by their number; whatever ends too early, or is no Thrift, is a LookupError.
"""

from __future__ import annotations

from typing import TypeAlias

Value: TypeAlias = int | bytes | list["Value"] | dict[int, "Value"]
Struct: TypeAlias = dict[int, Value]

_DEEPEST = 16
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT, _UUID = range(1, 14)


class Thrift:
    """Values out of bytes, one after the other; `at`: where the next one begins."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def struct(self, deep: int = 0) -> Struct:
        """The next struct, which has others in it to a depth that is bounded."""
        if deep > _DEEPEST:
            raise IndexError(deep)
        found: Struct = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._signed()
            kind = head & 15
            # A member that is true or false has its value in its kind; an item of a list has a byte.
            found[number] = int(kind == _TRUE) if kind in (_TRUE, _FALSE) else self._value(kind, deep)
        return found

    def _value(self, kind: int, deep: int) -> Value:
        if kind in (_TRUE, _FALSE, _BYTE):
            return self._byte()
        if kind in (_I16, _I32, _I64):
            return self._signed()
        if kind in (_DOUBLE, _BINARY, _UUID):
            return self._bytes({_DOUBLE: 8, _UUID: 16}.get(kind) or self._whole())
        if kind in (_LIST, _SET):
            head = self._byte()
            size = head >> 4 if head >> 4 < 15 else self._whole()
            return self._items(size, (head & 15,), deep)
        if kind == _MAP:
            size = self._whole()
            kinds = self._byte() if size else 0
            return self._items(size, (kinds >> 4, kinds & 15), deep)
        if kind == _STRUCT:
            return self.struct(deep + 1)
        raise IndexError(kind)

    def _items(self, size: int, kinds: tuple[int, ...], deep: int) -> list[Value]:
        if deep > _DEEPEST or size > len(self._data) - self.at:  # an item has a byte at least
            raise IndexError(size)
        return [self._value(kind, deep + 1) for _ in range(size) for kind in kinds]

    def _byte(self) -> int:
        found = self._data[self.at]
        self.at += 1
        return found

    def _bytes(self, size: int) -> bytes:
        if size > len(self._data) - self.at:
            raise IndexError(size)
        self.at += size
        return self._data[self.at - size : self.at]

    def _whole(self) -> int:
        found = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            found |= (byte & 127) << shift
            if byte < 128:
                return found
        raise IndexError(self.at)

    def _signed(self) -> int:
        found = self._whole()
        return (found >> 1) ^ -(found & 1)


def number_of(struct: Struct, which: int, default: int | None = None) -> int:
    """A member that is a whole number."""
    found = struct.get(which, default)
    if not isinstance(found, int):
        raise LookupError(which)
    return found


def struct_of(struct: Struct, which: int) -> Struct:
    """A member that is a struct."""
    found = struct.get(which)
    if not isinstance(found, dict):
        raise LookupError(which)
    return found


def structs_of(struct: Struct, which: int) -> list[Struct]:
    """A member that is a list of structs."""
    found = struct.get(which)
    if not isinstance(found, list):
        raise LookupError(which)
    structs = [one for one in found if isinstance(one, dict)]
    if len(structs) < len(found):
        raise LookupError(which)
    return structs
