"""`python -m inferometer.server`: the reference server as a process of its own. Prints `listening URL` when it is up."""

from __future__ import annotations

import argparse
import sys

from inferometer.errors import PlanError, Problem
from inferometer.server import faults
from inferometer.server.metronome import Beat
from inferometer.server.model import Speeds
from inferometer.server.options import Options
from inferometer.server.serve import serve

_US = 1_000  # ns


_SPEEDS = (
    # flag, field of Speeds, what one unit of the flag is in the field's, what it sets
    ("--prefill-base-us", "prefill_base_ns", _US, "prefill time of any prompt"),
    ("--prefill-us-per-token", "prefill_per_token_ns", _US, "added for each token"),
    ("--step-us", "step_base_ns", _US, "decode step of any batch"),
    ("--step-us-per-request", "step_per_request_ns", _US, "added for each request"),
    ("--max-batch", "max_batch", 1, "requests decoded together; others wait"),
    ("--prefill-budget", "prefill_budget", 1, "prompt tokens prefilled between two steps"),
)

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
    """The options on a command line. Raises PlanError for speeds that make no engine and faults that do not exist; exits 2
    on bad usage.
    """
    given = vars(parser(prog).parse_args(argv))
    asked = faults.parse(given.pop("fault") or ())
    try:
        engine: dict[str, int] = {
            field: round(given.pop(_dest(flag)) * unit) for flag, field, unit, _ in _SPEEDS
        }
        speeds = Speeds(**engine, jitter=given.pop("jitter"))
        beat = _beat({field: given.pop(_dest(flag)) for flag, field, _ in _BEAT})
    except (ValueError, OverflowError) as error:
        raise PlanError([Problem("speeds", str(error))]) from error
    return Options(speeds=speeds, beat=beat, faults=asked, **given)


def _beat(given: dict[str, float | None]) -> Beat | None:
    """The fixed script, if one was asked for. Raises ValueError."""
    times = {field: round(value * _US) for field, value in given.items() if value is not None}
    if not times:
        return None
    if "interval_ns" not in times:
        raise ValueError("a fixed script needs --interval-us")
    return Beat(**times)


def _dest(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


class _Help(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Defaults are shown, and the list of faults keeps its lines."""


def parser(prog: str) -> argparse.ArgumentParser:
    """Every flag of the server."""
    speeds, options = Speeds(), Options()
    made = argparse.ArgumentParser(
        prog=prog,
        description="A reference LLM server: OpenAI's API in front of a model of an engine that logs what it truly did.",
        formatter_class=_Help,
        epilog=f"faults (docs/faults.md):\n{faults.manual()}",
    )
    add = made.add_argument
    add("--host", default=options.host, help="address to listen on")
    add("--port", type=int, default=options.port, help="port; 0 takes a free one")
    add("--allow-remote", action="store_true", help="permit a --host that other machines can reach")
    add("--model", default=options.model, help="name of the model served")
    add("--seed", type=int, default=options.seed, help="decides jitter, ids and texts")
    for flag, field, unit, meaning in _SPEEDS:
        default = getattr(speeds, field)
        add(
            flag,
            type=float if unit > 1 else int,
            default=default / unit if unit > 1 else default,
            help=meaning,
        )
    for flag, _, meaning in _BEAT:
        add(flag, type=float, default=None, metavar="US", help=meaning)
    add("--jitter", type=float, default=speeds.jitter, help="durations vary by up to this share")
    add("--max-model-len", type=int, default=options.max_model_len, help="prompt and answer together, tokens")
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
