"""Patterns and schemas, decided in a process of its own: `python -m inferometer.run.criterion_process`.

A pattern may take exponential time on an answer made for it, and nothing interrupts `re` but the end of its process. So they
are tried there, one at a time, each within its time; one that is late is killed with the process, and the next begins another.

| to it, a line of JSON                                        | from it                              |
| ------------------------------------------------------------ | ------------------------------------ |
| `{"regex": "...", "text": "..."}`                             | `{"passed": true}`                   |
| `{"json_schema": {...}, "text": "..."}`                       | `{"passed": false, "why": "..."}`    |
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import selectors
import sys
import time
from dataclasses import dataclass
from typing import Any

from inferometer import foreign_json
from inferometer.errors import MachineError
from inferometer.isolation import Child, undisturbed

MEMORY = 2 << 30
"""Bytes of address space."""
LONGEST_WHY = 200
LONGEST_REPLY = 1 << 16
_FENCE = re.compile(r"\A\s*```[A-Za-z0-9_-]*[ \t]*\r?\n(.*?)\r?\n?```\s*\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether an answer passes; None: it was not decided, and `why` says why."""

    passed: bool | None
    why: str | None = None


class CriterionProcess:
    """The process as its parent sees it, started when it is first needed."""

    def __init__(self) -> None:
        self._child: Child | None = None

    def __enter__(self) -> CriterionProcess:
        """Use as a context manager."""
        return self

    def __exit__(self, *exc: object) -> None:
        """End the process."""
        self.close()

    def close(self) -> None:
        """End the process, if there is one."""
        if self._child is not None:
            self._child.kill()
            with contextlib.suppress(OSError):
                self._child.stdin.close()
            self._child.process.wait()
            self._child.close()
            self._child = None

    def decide(self, order: dict[str, Any], timeout_s: float) -> Decision:
        """Try a pattern or a schema on a text. Raises OSError where no process can be started."""
        if self._child is None:
            self._child = Child("inferometer.run.criterion_process", called="the process that tries patterns")
            if self._answer(self._child, time.monotonic() + START_S) is None:
                self.close()
                raise MachineError("the process that tries patterns has not started", "processes")
        child, until = self._child, time.monotonic() + timeout_s
        reply = None
        with contextlib.suppress(OSError):
            os.set_blocking(child.stdin.fileno(), False)
            if self._sent(child, json.dumps(order).encode() + b"\n", until):
                reply = self._answer(child, until)
        if reply is None:
            late = time.monotonic() >= until
            self.close()
            return Decision(None, f"not decided within {timeout_s:g} s" if late else "its process ended")
        return Decision(reply.get("passed"), reply.get("why"))

    @staticmethod
    def _sent(child: Child, data: bytes, until: float) -> bool:
        rest = memoryview(data)
        with selectors.DefaultSelector() as selector:
            selector.register(child.stdin, selectors.EVENT_WRITE)
            while rest:
                if not selector.select(max(0.0, until - time.monotonic())):
                    return False
                with contextlib.suppress(BlockingIOError):
                    rest = rest[os.write(child.stdin.fileno(), rest) :]
        return True

    @staticmethod
    def _answer(child: Child, until: float) -> dict[str, Any] | None:
        """The next line; None: none came in time."""
        found = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(child.stdout, selectors.EVENT_READ)
            while not found.endswith(b"\n"):
                if not selector.select(max(0.0, until - time.monotonic())):
                    return None
                data = os.read(child.stdout.fileno(), LONGEST_REPLY)
                if not data or len(found) > LONGEST_REPLY:
                    return None
                found += data
        value = json.loads(found)
        return value if isinstance(value, dict) else None


START_S = 30.0
"""From the order to start the process to its first word."""


def decided(order: dict[str, Any]) -> Decision:
    """Try a pattern or a schema on a text, however long that takes."""
    text = order["text"]
    if "regex" in order:
        return Decision(re.search(order["regex"], text) is not None)
    try:
        value = foreign_json.loads(unfenced(text), parse_constant=_refuse)
    except foreign_json.NotJSON as cause:
        return Decision(False, f"the answer {cause}"[:LONGEST_WHY])
    except _NotANumber as cause:
        return Decision(False, f"the answer is no JSON: {cause} is no number of it")
    return _valid(order["json_schema"], value)


class _NotANumber(Exception):
    """NaN or an infinity, which Python reads and JSON does not have (RFC 8259, 6)."""


def _refuse(word: str) -> None:
    raise _NotANumber(word)


def _valid(schema: Any, value: Any) -> Decision:
    from jsonschema import ValidationError, validators
    from referencing import Registry  # with no way to fetch: a schema is not to have anything loaded
    from referencing.exceptions import Unresolvable

    kind = validators.validator_for(schema, validators.Draft202012Validator)
    try:
        kind(schema, registry=Registry()).validate(value)
    except ValidationError as cause:
        place = foreign_json.dotted(tuple(cause.absolute_path))
        return Decision(False, f"{place or 'the answer'} breaks {cause.validator}"[:LONGEST_WHY])
    except Unresolvable:
        return Decision(None, "the schema cannot be applied: it refers to what it does not hold")
    except RecursionError:
        return Decision(None, "the schema cannot be applied: it goes on without end, or too deep")
    except Exception as cause:  # the schema is a stranger's, and so is what the library makes of it
        return Decision(None, f"the schema cannot be applied: {type(cause).__name__}")
    return Decision(True)


def unfenced(text: str) -> str:
    """An answer without the Markdown fence that models like to put around JSON."""
    fenced = _FENCE.match(text)
    return text if fenced is None else fenced[1]


def main() -> None:
    """Entry point of the process: it ends with its input."""
    undisturbed()
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    _say(Decision(None))
    for line in sys.stdin.buffer:
        try:
            found = decided(json.loads(line))
        except (MemoryError, RecursionError) as cause:
            found = Decision(None, type(cause).__name__)
        _say(found)


def _say(decision: Decision) -> None:
    sys.stdout.buffer.write(json.dumps({"passed": decision.passed, "why": decision.why}).encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
