"""`python -m inferometer.server`: the reference server as a process of its own. Prints `listening URL` when it is up."""

from __future__ import annotations

import argparse
import sys

from inferometer.errors import PlanError, Problem
from inferometer.server import fault_specs
from inferometer.server.answer_parts import Parts
from inferometer.server.engine.settings import changed
from inferometer.server.fixed_script import Beat
from inferometer.server.options import Options
from inferometer.server.presets import PRESETS
from inferometer.server.serve import serve

_US, _MS = 1_000, 1_000_000  # ns


_BEAT = (
    # flag, field of Beat, what it sets; microseconds
    (
        "--interval-us",
        "interval_ns",
        "a fixed script in place of the engine: time between two tokens of a stream",
    ),
    ("--ttft-us", "ttft_ns", "of the fixed script: time to the first token"),
    ("--ttft-spread-us", "spread_ns", "of the fixed script: up to this much more, drawn for each request"),
)


def parse(argv: list[str], prog: str = "python -m inferometer.server") -> Options:
    """The options on a command line. Raises PlanError for settings that make no engine and faults that do not exist; exits 2
    on bad usage.
    """
    given = vars(parser(prog).parse_args(argv))
    asked = fault_specs.parse(given.pop("fault") or ())
    engine = changed(PRESETS[given.pop("preset")], given.pop("set"))
    try:
        given["load_ns"] = _at_least(0, "--load-ms", given.pop("load_ms") * _MS)
        given["parts"] = Parts(
            reasoning=_at_least(0, "--reasoning-tokens", given.pop("reasoning_tokens")),
            tool=_at_least(0, "--tool-call-tokens", given.pop("tool_call_tokens")),
        )
        beat = _beat({field: given.pop(_dest(flag)) for flag, field, _ in _BEAT})
    except (ValueError, OverflowError) as error:
        raise PlanError([Problem("script", str(error))]) from error
    return Options(engine=engine, beat=beat, faults=asked, **given)


def _beat(given: dict[str, float | None]) -> Beat | None:
    """The fixed script, if one was asked for. Raises ValueError."""
    times = {field: round(value * _US) for field, value in given.items() if value is not None}
    if not times:
        return None
    if "interval_ns" not in times:
        raise ValueError("a fixed script needs --interval-us")
    return Beat(**times)


def _at_least(least: int, flag: str, value: float) -> int:
    if not value >= least:
        raise ValueError(f"{flag} must be at least {least}")
    return round(value)


def _dest(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


class _Help(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Defaults are shown, and the list of faults keeps its lines."""


def parser(prog: str = "python -m inferometer.server") -> argparse.ArgumentParser:
    """The command line's grammar."""
    options = Options()
    made = argparse.ArgumentParser(
        prog=prog,
        description="A reference LLM server: OpenAI's and Ollama's interfaces in front of a model of an engine that logs\n"
        "what it truly did. docs/server.md says more.",
        formatter_class=_Help,
        epilog=f"faults (docs/faults.md):\n{fault_specs.manual()}",
    )
    add = made.add_argument
    add("--host", default=options.host, help="address to listen on")
    add("--port", type=int, default=options.port, help="port; 0 takes a free one")
    add("--allow-remote", action="store_true", help="permit a --host that other machines can reach")
    add("--model", default=options.model, help="name of the model served")
    add("--seed", type=int, default=options.seed, help="decides jitter, ids and texts")
    add("--preset", choices=PRESETS, default="tiny-cpu", help="the engine imitated")
    add(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting of the engine, such as step_base=2ms; may be repeated; docs/engine.md lists them",
    )
    for flag, _, meaning in _BEAT:
        add(flag, type=float, default=None, metavar="US", help=meaning)
    add("--max-model-len", type=int, default=options.max_model_len, help="prompt and answer together, tokens")
    reject_help = "status of the reply when the queue is full"
    add("--reject-status", type=int, choices=(429, 503), default=options.reject_status, help=reject_help)
    reasoning_help = "a chat's first tokens are reasoning"
    add("--reasoning-tokens", type=int, default=0, metavar="N", help=reasoning_help)
    add("--tool-call-tokens", type=int, default=0, metavar="N", help="a chat's last tokens are a tool call")
    add("--token-timestamps", action="store_true", help="each token's event says when the model put it out")
    add("--load-ms", type=float, default=0, help="how long the model takes to load; 0: as the engine is set")
    add("--cold", action="store_true", help="start without the model: the first request loads it")
    add("--load-at-start", action="store_true", help="load the model first; /health is 503 until it is there")
    key_help = "environment variable that holds the key to ask for"
    add("--api-key-env", default=None, metavar="NAME", help=key_help)
    add("--tls-cert", default=None, metavar="PEM", help="certificate chain: serve https")
    add("--tls-key", default=None, metavar="PEM", help="its private key")
    buffer_help = "SO_SNDBUF of connections; 0: the kernel's"
    add("--send-buffer", type=int, default=options.send_buffer, help=buffer_help)
    truth_help = "token times the truth log keeps"
    add("--truth-tokens", type=int, default=options.truth_tokens, help=truth_help)
    fault_help = "something to do wrong, from the list below; may be repeated"
    add("--fault", action="append", metavar="SPEC", help=fault_help)
    add("--until-stdin-closes", action="store_true", help="end when standard input does")
    return made


def _announce(url: str) -> None:
    sys.stdout.write(f"listening {url}\n")
    sys.stdout.flush()


def main(argv: list[str], prog: str = "python -m inferometer.server") -> int:
    """Run it; the exit code."""
    try:
        serve(parse(argv, prog), _announce)
    except PlanError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
