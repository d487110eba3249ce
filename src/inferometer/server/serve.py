"""From options to a running server: checks, limits, signals, and the end."""

from __future__ import annotations

import functools
import gc
import ipaddress
import os
import signal
import sys
from collections.abc import Callable

from inferometer.errors import PlanError, Problem
from inferometer.server.http import Server
from inferometer.server.options import Options
from inferometer.workload.encodings import Cl100k

_LAST_PORT = 65_535


def serve(options: Options, announce: Callable[[str], None], *, heeding: bool = True) -> None:
    """Serve until SIGTERM, SIGINT, SIGHUP, unless not `heeding` them, or, if asked for, the end of standard input. Call from
    the main thread.

    `announce` is given the URL once connections are taken; requests are answered a quarter of a second later, when the
    tokenizer is loaded. Raises PlanError where the options cannot be carried out.
    """
    key = _check(options)
    wrap = None
    if options.tls_cert is not None and options.tls_key is not None:
        from inferometer.server import tls  # costs 20 ms that a plain server need not pay

        wrap = functools.partial(
            tls.TlsSocket, made=tls.context(options.tls_cert, options.tls_key, http2=not options.faults)
        )
    try:
        server = Server(options, wrap, key)
    except OSError as error:
        raise PlanError([Problem("--host/--port", f"cannot listen there: {error.strerror}")]) from error
    if options.until_stdin_closes:
        try:
            server.stop_at_end_of(sys.stdin.fileno())
        except OSError as error:
            raise PlanError([Problem("--until-stdin-closes", "standard input is not a pipe")]) from error
    _allow_many_descriptors()
    outlives = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN  # it was started to outlive its terminal
    heeded = (signal.SIGTERM, signal.SIGINT, *(() if outlives else (signal.SIGHUP,))) if heeding else ()
    before = {number: signal.signal(number, lambda *_: server.stop()) for number in heeded}
    try:
        announce(_url(server, wrap is not None))
        tokenizer = Cl100k()
        gc.freeze()  # what is alive now stays: the collector need not walk it between two tokens
        server.run(tokenizer)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _check(options: Options) -> str | None:
    """Everything wrong with the options at once; the API key if there is one."""
    problems = []
    if not options.allow_remote and not _is_loopback(options.host):
        problems.append(
            Problem(
                "--host",
                f"{options.host!r} can be reached from other machines: add --allow-remote if that is meant",
            )
        )
    if not 0 <= options.port <= _LAST_PORT:
        # The resolver would take it modulo 65536 and listen somewhere else.
        problems.append(
            Problem("--port", f"must be from 0 (a free port) to {_LAST_PORT}, not {options.port}")
        )
    if (options.tls_cert is None) != (options.tls_key is None):
        problems.append(Problem("--tls-cert/--tls-key", "give both or neither"))
    key = None
    if options.api_key_env is not None:
        key = os.environ.get(options.api_key_env)
        if not key:
            problems.append(
                Problem("--api-key-env", f"the environment variable {options.api_key_env} is not set")
            )
    if problems:
        raise PlanError(problems)
    return key


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _url(server: Server, tls: bool) -> str:
    host, port = server.address
    return f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def _allow_many_descriptors() -> None:
    """One descriptor a client: ask for as many as we may have."""
    try:
        import resource
    except ImportError:  # not a Unix
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
