"""The calculator of the reference agent: finds an arithmetic expression in a text and computes it exactly."""

from __future__ import annotations

import re
from fractions import Fraction

_EXPRESSION = re.compile(r"[0-9(][0-9.()+*/ -]*")
_NUMBER = re.compile(r"\d+(\.\d+)?|\.\d+")
_LONGEST = 200
_SEARCHED = 20_000
"""Characters of an expression and of the text it is looked for in."""


def expression_in(text: str) -> str | None:
    """The longest expression with an operator that can be read, in the first 20,000 characters; None if there is none."""
    found = (one[0].strip() for one in _EXPRESSION.finditer(text[:_SEARCHED]))
    # A sentence may end, or a bracket close, right behind an expression.
    candidates = sorted({end for one in found for end in (one, one.rstrip(" .-"))}, key=len, reverse=True)
    for one in candidates:
        if len(one) <= _LONGEST and re.search(r"[0-9)] *[-+*/]", one):
            try:
                _Reader(one).whole()
            except ZeroDivisionError:
                return one
            except ValueError:
                continue
            return one
    return None


def computed(expression: str) -> str:
    """The value of an expression of + - * / and brackets: a whole number in full, another to 12 digits. Raises ValueError for
    what cannot be read; a division by zero is said in words.
    """
    try:
        value = _Reader(expression).whole()
    except ZeroDivisionError:
        return "undefined (a division by zero)"
    return str(value.numerator) if value.denominator == 1 else f"{_decimal(value):.12g}"


def _decimal(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")


class _Reader:
    """A recursive descent, no deeper than its text is long."""

    def __init__(self, text: str) -> None:
        if len(text) > _LONGEST:
            raise ValueError(f"an expression has at most {_LONGEST} characters")
        self._text = text.replace(" ", "")
        self._at = 0

    def whole(self) -> Fraction:
        """The value of all of it."""
        value = self._sum()
        if self._at < len(self._text):
            raise ValueError(f"{self._text[self._at :]!r} is left over")
        return value

    def _taken(self, signs: str) -> str:
        sign = self._text[self._at : self._at + 1]
        if not sign or sign not in signs:
            return ""
        self._at += 1
        return sign

    def _sum(self) -> Fraction:
        value = self._product()
        while sign := self._taken("+-"):
            other = self._product()
            value = value + other if sign == "+" else value - other
        return value

    def _product(self) -> Fraction:
        value = self._factor()
        while sign := self._taken("*/"):
            other = self._factor()
            value = value * other if sign == "*" else value / other
        return value

    def _factor(self) -> Fraction:
        if self._taken("-"):
            return -self._factor()
        if self._taken("("):
            value = self._sum()
            if not self._taken(")"):
                raise ValueError("a bracket is not closed")
            return value
        found = _NUMBER.match(self._text, self._at)
        if found is None:
            raise ValueError("a number is missing")
        self._at = found.end()
        return Fraction(found[0])
