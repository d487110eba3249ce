"""Servers in this process that end with the test."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from serving import serving

Serve = Callable[..., int]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Call it with options to have a server; it returns the port."""
    with contextlib.ExitStack() as stack:

        def start(**options: Any) -> int:
            return stack.enter_context(serving(**options))

        yield start
