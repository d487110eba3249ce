"""`python -m inferometer.server`: the reference server as a process of its own. Prints `listening URL` when it is up.

ARGUMENTS are the options, for here and for `inferometer serve`, which shows their help. They are read here without the library
of the command line: it would take a fifth of the time in which this process starts up.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inferometer.errors import PlanError, Problem
from inferometer.isolation import undisturbed
from inferometer.server import fault_specs
from inferometer.server.answer_parts import Parts
from inferometer.server.engine.settings import changed
from inferometer.server.engine_routes import ENGINES
from inferometer.server.fixed_script import Beat
from inferometer.server.options import Options
from inferometer.server.presets import PRESETS, engine_of
from inferometer.server.serve import serve
from inferometer.server.systems.conflicts import conflicts
from inferometer.server.systems.settings import SYSTEMS, divided, system_settings

_US, _MS = 1_000, 1_000_000  # ns
_DAY_US, _DAY_MS = 86_400 * 1_000_000, 86_400 * 1_000
_MOST = (1 << 31) - 1
"""What sizes and counts may be at the most: a C int, as the kernel takes them."""


_BEAT = (
    # flag, field of Beat, what it sets; microseconds
    (
        "--interval-us",
        "interval_ns",
        "A fixed script in place of the engine: time between two tokens of a stream.",
    ),
    ("--ttft-us", "ttft_ns", "Of the fixed script: time to the first token."),
    ("--ttft-spread-us", "spread_ns", "Of the fixed script: up to this much more, drawn for each request."),
)


@dataclass(frozen=True, slots=True)
class Argument:
    """An option of the server: `kind` reads its text; a switch takes none; what repeats makes a list. A number is from
    `least` to `most`."""

    flag: str
    help: str
    kind: type[str] | type[int] | type[float] = str
    default: str | int | float | None = None
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    switch: bool = False
    repeat: bool = False
    least: int = 0
    most: int = _MOST

    @property
    def name(self) -> str:
        """The flag as a Python identifier."""
        return self.flag.removeprefix("--").replace("-", "_")

    def read(self, text: str) -> str | int | float:
        """The value of a text. Raises ValueError in words."""
        if self.choices and text not in self.choices:
            raise ValueError(f"{self.flag} must be {' or '.join(self.choices)}, not {text!r}")
        try:
            value = self.kind(text)
        except ValueError:
            wanted = "a whole number" if self.kind is int else "a number"
            raise ValueError(f"{self.flag} must be {wanted}, not {text!r}") from None
        if not isinstance(value, str) and not self.least <= value <= self.most:  # NaN is none either
            raise ValueError(f"{self.flag} must be from {self.least} to {self.most}, not {text}")
        return value


_DEFAULT = Options()
ARGUMENTS = (
    Argument("--host", "Address to listen on.", default=_DEFAULT.host),
    Argument("--port", "Port; 0 picks a free port.", int, _DEFAULT.port, most=65_535),
    Argument("--allow-remote", "Permit a --host that other machines can reach.", switch=True),
    Argument("--model", "Name of the model served.", default=_DEFAULT.model),
    Argument(
        "--routes",
        "Serve the routes of this engine, as documented, in place of all interfaces.",
        metavar="ENGINE",
        choices=tuple(ENGINES),
    ),
    Argument(
        "--seed", "Seed of jitter, ids and texts.", int, _DEFAULT.seed, least=-(1 << 63), most=(1 << 63) - 1
    ),
    Argument("--preset", "The engine imitated.", default="tiny-cpu", choices=tuple(PRESETS)),
    Argument(
        "--set",
        "A setting of the engine, such as step_base=2ms (docs/engine.md), or of the system (docs/reference-systems.md).",
        metavar="KEY=VALUE",
        repeat=True,
    ),
    Argument(
        "--system",
        "Serve a reference system of several steps: an agent with tools, or retrieval.",
        choices=SYSTEMS,
    ),
    Argument("--spans", "Append the system's spans to this file, as OTLP JSON Lines.", metavar="FILE"),
    *(Argument(flag, meaning, float, metavar="US", most=_DAY_US) for flag, _, meaning in _BEAT),
    Argument(
        "--max-model-len", "Prompt and answer together, in tokens.", int, _DEFAULT.max_model_len, least=1
    ),
    Argument(
        "--reject-status",
        "Status of the reply when the queue is full.",
        int,
        _DEFAULT.reject_status,
        choices=("429", "503"),
    ),
    Argument("--reasoning-tokens", "Make a chat's first N tokens reasoning.", int, 0, "N"),
    Argument("--tool-call-tokens", "Make a chat's last N tokens a tool call.", int, 0, "N"),
    Argument("--token-timestamps", "State in each token's event when the model emitted it.", switch=True),
    Argument("--load-ms", "Time to load the model; 0: as set in the engine.", float, 0, most=_DAY_MS),
    Argument("--cold", "Start without the model: the first request loads it.", switch=True),
    Argument("--load-at-start", "Load the model first; /health returns 503 until then.", switch=True),
    Argument("--api-key-env", "Environment variable that holds the required key.", metavar="NAME"),
    Argument("--tls-cert", "Certificate chain: serve https.", metavar="PEM"),
    Argument("--tls-key", "Its private key.", metavar="PEM"),
    Argument("--send-buffer", "SO_SNDBUF of connections; 0: the kernel's.", int, _DEFAULT.send_buffer),
    Argument("--truth-tokens", "Number of token times the truth log keeps.", int, _DEFAULT.truth_tokens),
    Argument("--fault", "A fault to inject, from the list below.", metavar="SPEC", repeat=True),
    Argument("--until-stdin-closes", "Exit when standard input closes.", switch=True),
)


Values = dict[str, Any]
"""A command line by the names of its options, defaults included."""


def read(argv: Sequence[str]) -> Values:
    """The values of a command line. Raises ValueError in words."""
    known = {one.flag: one for one in ARGUMENTS}
    given: Values = {
        one.name: [] if one.repeat else False if one.switch else one.default for one in ARGUMENTS
    }
    words = iter(argv)
    for word in words:
        flag, equals, text = word.partition("=")
        one = known.get(flag)
        if one is None:
            raise ValueError(f"no such option: {flag}")
        if one.switch:
            given[one.name] = True
            continue
        value = text if equals else next(words, None)
        if value is None:
            raise ValueError(f"{flag} needs a value")
        if one.repeat:
            given[one.name].append(one.read(value))
        else:
            given[one.name] = one.read(value)
    return given


def parse(argv: Sequence[str]) -> Options:
    """The options on a command line. Raises ValueError for one that cannot be read, and PlanError as `options` does."""
    return options(read(argv))


def options(values: Values) -> Options:
    """The options of these values by name. Raises PlanError for settings that make no engine and faults that do not exist."""
    given = dict(values)
    asked = fault_specs.parse(given.pop("fault") or ())
    words, own = divided(given.pop("set"), given["system"])
    engine = changed(engine_of(given.pop("preset"), given["system"]), words)
    given["system_settings"] = system_settings(own)
    given["spans"] = None if given["spans"] is None else Path(given["spans"])
    try:
        given["load_ns"] = _at_least(0, "--load-ms", given.pop("load_ms") * _MS)
        given["parts"] = Parts(
            reasoning=_at_least(0, "--reasoning-tokens", given.pop("reasoning_tokens")),
            tool=_at_least(0, "--tool-call-tokens", given.pop("tool_call_tokens")),
        )
        beat = _beat(
            {field: given.pop(flag.removeprefix("--").replace("-", "_")) for flag, field, _ in _BEAT}
        )
    except (ValueError, OverflowError) as error:
        raise PlanError([Problem("script", str(error))]) from error
    made = Options(engine=engine, beat=beat, faults=asked, **given)
    if problems := conflicts(made):
        raise PlanError(problems)
    return made


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


def _announce(url: str) -> None:
    """Say where the server listens, to whoever started it."""
    sys.stdout.write(f"listening {url}\n")
    sys.stdout.flush()


def run(values: Values, *, heeding: bool = True) -> int:
    """Run the server with these values by name; the exit code. `heeding`: signals end it."""
    try:
        serve(options(values), _announce, heeding=heeding)
    except PlanError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


def main(argv: Sequence[str]) -> int:
    """Run it; the exit code."""
    try:
        values = read(argv)
    except ValueError as error:
        sys.stderr.write(f"{error}; `inferometer serve --help` lists the options\n")
        return 2
    ours = values["until_stdin_closes"]
    if ours:
        undisturbed()
    return run(values, heeding=not ours)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
