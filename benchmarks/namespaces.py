"""Hosts on one machine: network namespaces, each with an address of its own, joined by a bridge. Needs root, on Linux."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator

CONDUCTOR = "10.213.77.1"


def why_not() -> str | None:
    """Why there can be none here; None: there can."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("ip") is None:
        return "needs root and iproute2"
    tried = subprocess.run(["ip", "netns", "add", "ifm-try"], capture_output=True, check=False)
    subprocess.run(["ip", "netns", "del", "ifm-try"], capture_output=True, check=False)
    return None if tried.returncode == 0 else "network namespaces are not allowed here"


@contextlib.contextmanager
def bridged(count: int) -> Iterator[list[str]]:
    """The names of so many namespaces, which reach this one at CONDUCTOR and each other."""
    bridge, names = f"ifm{os.getpid() % 100000}", [f"ifm-{os.getpid()}-{number}" for number in range(count)]
    with contextlib.ExitStack() as stack:
        _ip("link", "add", bridge, "type", "bridge")
        stack.callback(_ip, "link", "del", bridge)
        _ip("addr", "add", f"{CONDUCTOR}/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        for number, name in enumerate(names):
            _ip("netns", "add", name)
            stack.callback(_ip, "netns", "del", name)
            here, there = f"{bridge}-{number}", f"{bridge}e{number}"
            _ip("link", "add", here, "type", "veth", "peer", "name", there, "netns", name)
            _ip("link", "set", here, "master", bridge, "up")
            inside = ("netns", "exec", name, "ip")
            _ip(*inside, "addr", "add", f"10.213.77.{10 + number}/24", "dev", there)
            _ip(*inside, "link", "set", there, "up")
            _ip(*inside, "link", "set", "lo", "up")
        yield names


def within(namespace: str, *command: str, ahead_s: int = 0) -> list[str]:
    """A command that runs in a namespace, its monotonic clock ahead of this machine's by so many seconds."""
    clock = ["unshare", "--time", "--monotonic", str(ahead_s)] if ahead_s else []
    return ["ip", "netns", "exec", namespace, *clock, *command]


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
