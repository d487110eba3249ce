"""`python -m inferometer.server`: the reference server as a process of its own. Prints `listening URL` when it is up."""

from __future__ import annotations

import argparse
import sys

from inferometer.errors import PlanError, Problem
from inferometer.server.model import Speeds
from inferometer.server.options import Options
from inferometer.server.serve import serve

_US = 1_000  # ns


def parse(argv: list[str], prog: str = "python -m inferometer.server") -> Options:
    """The options on a command line. Raises PlanError for speeds that make no engine; exits 2 on bad usage."""
    speeds, options = Speeds(), Options()
    parser = argparse.ArgumentParser(
        prog=prog,
        description="A reference LLM server: OpenAI's API in front of a model of an engine that logs what it truly did.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--host", default=options.host, help="address to listen on")
    add("--port", type=int, default=options.port, help="port; 0 takes a free one")
    add("--allow-remote", action="store_true", help="permit a --host that other machines can reach")
    add("--model", default=options.model, help="name of the model served")
    add("--seed", type=int, default=options.seed, help="decides jitter, ids and texts")
    add(
        "--prefill-base-us",
        type=float,
        default=speeds.prefill_base_ns / _US,
        help="prefill time of any prompt",
    )
    add(
        "--prefill-us-per-token",
        type=float,
        default=speeds.prefill_per_token_ns / _US,
        help="added for each token",
    )
    add("--step-us", type=float, default=speeds.step_base_ns / _US, help="decode step of any batch")
    add(
        "--step-us-per-request",
        type=float,
        default=speeds.step_per_request_ns / _US,
        help="added for each request",
    )
    add("--max-batch", type=int, default=speeds.max_batch, help="requests decoded together; others wait")
    add(
        "--prefill-budget",
        type=int,
        default=speeds.prefill_budget,
        help="prompt tokens prefilled between two steps",
    )
    add("--jitter", type=float, default=speeds.jitter, help="durations vary by up to this share")
    add("--max-model-len", type=int, default=options.max_model_len, help="prompt and answer together, tokens")
    add(
        "--api-key-env",
        default=None,
        metavar="NAME",
        help="environment variable that holds the key to ask for",
    )
    add("--tls-cert", default=None, metavar="PEM", help="certificate chain: serve https")
    add("--tls-key", default=None, metavar="PEM", help="its private key")
    add(
        "--send-buffer",
        type=int,
        default=options.send_buffer,
        help="SO_SNDBUF of connections; 0: the kernel's",
    )
    add("--truth-tokens", type=int, default=options.truth_tokens, help="token times the truth log keeps")
    add("--until-stdin-closes", action="store_true", help="end when standard input does")
    given = vars(parser.parse_args(argv))
    try:
        made = Speeds(
            prefill_base_ns=round(given.pop("prefill_base_us") * _US),
            prefill_per_token_ns=round(given.pop("prefill_us_per_token") * _US),
            step_base_ns=round(given.pop("step_us") * _US),
            step_per_request_ns=round(given.pop("step_us_per_request") * _US),
            max_batch=given.pop("max_batch"),
            prefill_budget=given.pop("prefill_budget"),
            jitter=given.pop("jitter"),
        )
    except (ValueError, OverflowError) as error:
        raise PlanError([Problem("speeds", str(error))]) from error
    return Options(speeds=made, **given)


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
