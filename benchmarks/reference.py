"""The reference server as the peer of a benchmark: in a process on the server's core, with a fixed script for its tokens.

It speaks every transport, and its truth log says when each request arrived and when each token was sent. It is slower than the
C server (native.py): where a benchmark is to be held up by the client alone, look at the client's share of its core.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from benchmarks.native import Certificate, Cores, Server, on_core
from inferometer.calibration import join
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import RECORD
from inferometer.journal.seal import read_table
from inferometer.studies.calibration import scheduled_nonces


@contextlib.contextmanager
def serving(
    cores: Cores, script: Sequence[str], tls: Certificate | None = None, host: str = "127.0.0.1"
) -> Iterator[Server]:
    """The server on its core, on a free port, until the block ends. `script`: its flags for the instants of tokens."""
    command = [
        sys.executable,
        "-m",
        "inferometer.server",
        "--model",
        "truth",
        "--until-stdin-closes",
        *("--host", host, "--allow-remote"),
        *script,
    ]
    if tls is not None:
        command += ["--tls-cert", str(tls.chain), "--tls-key", str(tls.key)]
    with (
        on_core(cores.server),
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdout is not None
        words = process.stdout.readline().split()
        if len(words) != 2:
            raise RuntimeError(f"{' '.join(command)}: exit code {process.wait()}")
        where = urlsplit(words[1])
        assert where.port is not None
        server = Server(where.port, process.pid, where.scheme, None if tls is None else tls.authority, host)
        server.get("/health")  # which is answered once the tokenizer is loaded
        yield server
        assert process.stdin is not None
        process.stdin.close()


def joined(folder: RunFolder, server: Server) -> join.Joined:
    """A run's record beside the server's log."""
    mine = join.client_requests(read_table(folder.record, RECORD), scheduled_nonces(folder))
    return join.joined(mine, join.server_requests(server.get("/inferometer/truth")))
