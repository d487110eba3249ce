"""The C programs: build them once, run them on a core of their own.

| program             | what it is                                                       | where it runs |
| ------------------- | ---------------------------------------------------------------- | ------------- |
| `native/server.c`   | a server whose timings are known and which logs what it truly did | first core    |
| `native/drain.c`    | the floor: the least a client must do to receive tokens           | second core   |

With fewer than two cores nothing is pinned, and the numbers say little.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

SOURCES = Path(__file__).parent / "native"
FLAGS = ("-O2", "-Wall", "-Wextra")
TIMEOUT_S = 600


class NoCompiler(RuntimeError):
    """The machine cannot build the C programs; says what to install."""


@dataclass(frozen=True, slots=True)
class Cores:
    """Which core the server and which the client has; None: any."""

    server: int | None
    client: int | None

    @classmethod
    def of_this_machine(cls) -> Cores:
        """The first core for the server and the second for the client, where there are two."""
        if not hasattr(os, "sched_getaffinity"):
            return cls(None, None)
        allowed = sorted(os.sched_getaffinity(0))
        return cls(allowed[0], allowed[1]) if len(allowed) > 1 else cls(None, None)


@contextlib.contextmanager
def on_core(core: int | None) -> Iterator[None]:
    """Processes started inside the block stay on this core: a child takes over its parent's mask."""
    if core is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@dataclass(frozen=True, slots=True)
class Binaries:
    """The built programs. `tls` says whether the server speaks TLS."""

    server: Path
    drain: Path
    tls: bool


def compiler() -> str:
    """The C compiler's path. Raises NoCompiler."""
    found = shutil.which(os.environ.get("CC", "cc"))
    if found is None:
        raise NoCompiler(
            "the benchmarks need a C compiler (cc, or the one that CC names): for example `apt-get install gcc libc6-dev`"
        )
    return found


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(Path.home(), ".cache")
    return Path(base) / "inferometer" / "benchmarks"


def build(into: Path | None = None) -> Binaries:
    """Compile what is not compiled yet, into a cache named after the sources' digest. Raises NoCompiler."""
    cc = compiler()
    files = sorted(SOURCES.glob("*.[ch]"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files) + cc.encode()).hexdigest()[:16]
    folder = (into or _cache()) / digest
    server, drain, plain = folder / "server", folder / "drain", folder / "plain"
    if not (server.exists() and drain.exists()):
        folder.mkdir(parents=True, exist_ok=True)
        _compile(cc, drain, ["drain.c"])
        try:
            _compile(cc, server, ["server.c", "record.c", "tls.c"], "-DWITH_TLS", "-lssl", "-lcrypto")
        except NoCompiler:
            plain.touch()  # no OpenSSL headers: everything but TLS can still be measured
            _compile(cc, server, ["server.c", "record.c"])
    return Binaries(server, drain, tls=not plain.exists())


def _compile(cc: str, target: Path, sources: Sequence[str], *extra: str) -> None:
    part = target.with_suffix(f".{os.getpid()}")
    defines = [flag for flag in extra if flag.startswith("-D")]
    libraries = [flag for flag in extra if flag.startswith("-l")]
    paths = [str(SOURCES / name) for name in sources]
    command = [cc, *FLAGS, *defines, "-o", str(part), *paths, *libraries]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoCompiler(f"{' '.join(command)} failed:\n{done.stderr.strip()}")
    part.replace(target)


class TruthRow(msgspec.Struct):
    """What the server did for one request; see native/record.h. Instants in ns, CLOCK_MONOTONIC."""

    id: str
    arrived_ns: int
    read_ns: int
    before_ns: list[int]
    after_ns: list[int]


@dataclass(frozen=True, slots=True)
class Server:
    """A running server, plain or with TLS; `ca_file` is the authority to trust then."""

    port: int
    pid: int
    scheme: str = "http"
    ca_file: Path | None = None
    host: str = "127.0.0.1"

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"{self.scheme}://{self.host}:{self.port}"

    def get(self, path: str) -> bytes:
        """The body of one GET."""
        request = urllib.request.Request(self.url + path, headers={"Connection": "close"})
        with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=self._context()) as response:
            body: bytes = response.read()
        return body

    def _context(self) -> Any:
        import ssl

        return ssl.create_default_context(cafile=self.ca_file) if self.ca_file else None

    def reset(self) -> None:
        """Make it forget its record."""
        self.get("/reset")

    def stats(self) -> dict[str, Any]:
        """Its own statistics."""
        found: dict[str, Any] = msgspec.json.decode(self.get("/stats"))
        return found

    def truth(self) -> list[TruthRow]:
        """Its record, request by request in order of arrival."""
        decode = msgspec.json.Decoder(TruthRow).decode
        return [decode(line) for line in self.get("/truth").splitlines()]


@dataclass(frozen=True, slots=True)
class Certificate:
    """PEM files of a TLS server and of the authority that vouches for it."""

    chain: Path
    key: Path
    authority: Path


@contextlib.contextmanager
def serving(
    binaries: Binaries, cores: Cores, ttft_us: int, interval_us: int, tls: Certificate | None = None
) -> Iterator[Server]:
    """The C server on its core, on a free port, until the block ends."""
    command = [str(binaries.server), "0", str(ttft_us), str(interval_us)]
    if tls is not None:
        command += [str(tls.chain), str(tls.key)]
    with on_core(cores.server):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        word = process.stdout.readline().split()
        if len(word) != 2:
            raise RuntimeError(f"{binaries.server} did not come up: exit code {process.wait()}")
        scheme, authority = ("http", None) if tls is None else ("https", tls.authority)
        yield Server(int(word[1]), process.pid, scheme, authority)
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


class Drained(msgspec.Struct):
    """What the floor came to; see native/drain.c."""

    seconds: float
    cpu_s: float
    cpu_share: float
    tokens: float
    tokens_s: float
    requests_s: float
    reads: int
    us_per_read: float
    us_per_token: float


def drained(
    binaries: Binaries,
    cores: Cores,
    server: Server,
    streams: int,
    requests: int,
    tokens: int,
    prompt_bytes: int = 32,
) -> Drained:
    """Run the floor against the server, on the client's core."""
    command = [str(binaries.drain), *map(str, (server.port, streams, requests, tokens, prompt_bytes))]
    return _floor(command, cores)


def bare(cores: Cores, server: Server, streams: int, requests: int, tokens: int) -> Drained:
    """Run the floor of a Python client (bare.py) against the server, on the client's core."""
    return _floor(
        [sys.executable, "-m", "benchmarks.bare", *map(str, (server.port, streams, requests, tokens))], cores
    )


def _floor(command: list[str], cores: Cores) -> Drained:
    with on_core(cores.client):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parent.parent)
    out, _ = process.communicate(timeout=TIMEOUT_S)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit code {process.returncode}")
    return msgspec.json.decode(out, type=Drained)


def scratch() -> tempfile.TemporaryDirectory[str]:
    """A folder for one benchmark's run folders."""
    return tempfile.TemporaryDirectory(prefix="inferometer-benchmark-")
