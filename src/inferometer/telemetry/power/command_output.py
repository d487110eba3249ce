"""What a command prints, within limits of time and size.

It runs without a shell, without input and with the reduced environment of our own processes (isolation.py), in a process group
that is ended as a whole: what it started must not outlive it, and it must not outlive this process, which may end in the midst
of a reading.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from typing import IO

from inferometer import isolation
from inferometer.telemetry.power.readings import MeterFailed

LARGEST = 1 << 16
"""Bytes of output."""
READ_BYTES = 1 << 12
SHOWN = 120
"""Characters of an error message that are repeated."""


_running: set[subprocess.Popen[bytes]] = set()


def started(meter: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
    """The command, with pipes as its output and its errors. Raises MeterFailed."""
    try:
        process = subprocess.Popen(  # noqa: S603 - the user's own command, as on the command line
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
            env=isolation.environment(os.environ),
        )
    except FileNotFoundError:
        raise MeterFailed(meter, "absent", f"there is no command {command[0]!r}") from None
    except PermissionError:
        raise MeterFailed(meter, "permission", f"{command[0]!r} may not be executed") from None
    except (OSError, ValueError) as cause:  # ValueError: a null byte
        raise MeterFailed(meter, "vanished", f"{command[0]!r} cannot be started: {cause}") from None
    _running.add(process)
    return process


@atexit.register
def _end_running() -> None:
    for process in tuple(_running):
        _kill_group(process)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def ended(process: subprocess.Popen[bytes]) -> None:
    """Kill the process group, close the pipes and collect the exit code; a second call does nothing, for the process ID may
    belong to others by then. A command of another user, by sudo, ends when its pipe is closed."""
    try:
        _running.remove(process)
    except KeyError:
        return
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    _kill_group(process)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(isolation.REAP_S)


def output(meter: str, command: Sequence[str], timeout_s: float) -> str:
    """What the command prints, if it ends by itself with exit code 0. Raises MeterFailed."""
    until = time.monotonic() + timeout_s
    process = started(meter, command)
    try:
        printed, complaint = _read_both(meter, process, until)
        try:
            code = process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise _late(meter, timeout_s) from None
    except TimeoutError:
        raise _late(meter, timeout_s) from None
    finally:
        ended(process)
    if code != 0:
        words = in_one_line(complaint) or "it printed no error"
        raise MeterFailed(meter, "vanished", f"the command ended with exit code {code}: {words}")
    try:
        return printed.decode()
    except UnicodeDecodeError:
        raise MeterFailed(meter, "malformed", "what the command printed is not UTF-8 text") from None


def in_one_line(text: bytes) -> str:
    """The beginning of an error message."""
    return " ".join(text.decode("utf-8", "replace").split())[:SHOWN]


def _late(meter: str, timeout_s: float) -> MeterFailed:
    return MeterFailed(meter, "timeout", f"the command has not ended within {timeout_s:g} s")


def _read_both(meter: str, process: subprocess.Popen[bytes], until: float) -> tuple[bytes, bytes]:
    """Both outputs to their ends. Raises TimeoutError, MeterFailed."""
    assert process.stdout is not None
    assert process.stderr is not None
    received: dict[IO[bytes], bytearray] = {process.stdout: bytearray(), process.stderr: bytearray()}
    with selectors.DefaultSelector() as selector:
        for pipe in received:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            for key, _ in selector.select(left):
                pipe = next(one for one in received if one is key.fileobj)
                data = os.read(pipe.fileno(), READ_BYTES)
                if not data:
                    selector.unregister(pipe)
                received[pipe] += data
                if len(received[pipe]) > LARGEST:
                    raise MeterFailed(meter, "malformed", f"the command prints more than {LARGEST} bytes")
    return bytes(received[process.stdout]), bytes(received[process.stderr])
