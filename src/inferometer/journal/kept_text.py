"""Whose text a record keeps: a value of the plan that sealing carries out. In a file of its own, since plans are read before
Arrow is imported."""

from __future__ import annotations

from typing import Literal

KeepText = Literal["none", "errors", "all"]
"""Nobody's, that of answers that did not succeed, everybody's."""
