"""What makes one engine differ from another: costs, limits, policies. Read from `key=value` words too.

A key is a field's name; times lose their `_ns` there and take a unit: `step_base=2ms`.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from inferometer.errors import PlanError, Problem
from inferometer.server.engine.noise import LONGEST_NS, quantiles
from inferometer.server.http_reply import JsonObject

INPUT_GUARDRAILS = ("input_check_ns", "input_check_per_token_ns", "refusal_share")
OUTPUT_GUARDRAILS = ("output_check_tokens",)
GUARDRAILS = (*INPUT_GUARDRAILS, *OUTPUT_GUARDRAILS)
"""Settings any of which makes an engine one with guardrails; with all of them 0 it has none."""
Guards = bool | Literal["input", "output"]
"""Which of an engine's guardrails are on: all, none, those of prompts, those of answers."""
POLICIES = ("fcfs", "priority")
PREEMPTIONS = ("recompute", "swap")
LARGEST = (1 << 31) - 1
"""Of a setting that is no time. Products of two whole numbers fit into what JSON's readers take."""
_UNITS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_TIME = re.compile(r"([0-9.eE+-]+)\s*(ns|us|ms|s)")
_BOOLS = {
    "on": True,
    "true": True,
    "yes": True,
    "1": True,
    "off": False,
    "false": False,
    "no": False,
    "0": False,
}


@dataclass(frozen=True, slots=True)
class Settings:
    """An engine's settings; docs/engine.md explains each. Times in ns. Raises ValueError for what makes no engine.

    The defaults are a toy on a CPU that costs nothing but its steps and prompts; presets.py has engines after real ones.
    """

    step_base_ns: float = 2_000_000
    step_per_request_ns: float = 25_000
    kv_read_per_token_ns: float = 0
    prefill_base_ns: float = 2_000_000
    prefill_per_token_ns: float = 12_000
    prefill_attention_ns: float = 0
    jitter: float = 0.02
    jitter_load: float = 0
    noise: str = ""
    max_batch: int = 256
    token_budget: int = 2048
    chunked_prefill: bool = True
    policy: str = "fcfs"
    queue_limit: int = 0
    kv_blocks: int = 65_536
    block_tokens: int = 16
    prefix_caching: bool = False
    preemption: str = "recompute"
    swap_per_block_ns: float = 0
    draft_tokens: int = 0
    acceptance: float = 0.7
    draft_per_token_ns: float = 0
    input_check_ns: float = 0
    input_check_per_token_ns: float = 0
    output_check_tokens: int = 0
    output_check_ns: float = 0
    output_check_per_token_ns: float = 0
    checks_on_engine: bool = False
    refusal_share: float = 0
    refusal_tokens: int = 8
    preloaded: bool = True
    load_ns: float = 0
    cold_steps: int = 0
    cold_factor: float = 1

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, str):
                continue
            check_range(field.name, value)
        if self.step_base_ns < 1:
            raise ValueError(
                "step_base_ns must be at least 1: a step that takes no time never lets time pass"
            )
        for name in (
            "max_batch",
            "token_budget",
            "kv_blocks",
            "block_tokens",
            "refusal_tokens",
            "cold_factor",
        ):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        for name in ("acceptance", "refusal_share"):
            if getattr(self, name) > 1:
                raise ValueError(f"{name} must be at most 1")
        if self.jitter + self.jitter_load >= 1:
            raise ValueError("jitter and jitter_load must stay below 1 together")
        quantiles(self.noise)
        for name, known in (("policy", POLICIES), ("preemption", PREEMPTIONS)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}")

    @property
    def guarded(self) -> bool:
        """Whether prompts or answers are checked, or requests refused."""
        return any(getattr(self, name) for name in GUARDRAILS)

    def guarded_by(self, which: Guards) -> dict[str, float]:
        """The values of GUARDRAILS with only these on. Raises ValueError where this engine has none of them."""
        on = {True: GUARDRAILS, False: (), "input": INPUT_GUARDRAILS, "output": OUTPUT_GUARDRAILS}[which]
        if on and not any(getattr(self, name) for name in on):
            kind = "" if which is True else f"{which} "
            raise ValueError(
                f"this engine was started without {kind}guardrails: start it with some, such as --set input_check=2ms, "
                "--set refusal_share=0.01 or, for answers, --set output_check_tokens=16"
            )
        return {name: getattr(self, name) if name in on else 0 for name in GUARDRAILS}

    @property
    def capacity_tokens(self) -> int:
        """The longest prompt and answer together that the KV cache can hold."""
        return self.kv_blocks * self.block_tokens - self.draft_tokens


def check_range(name: str, value: float) -> None:
    """Check a number against the limit of its kind. Raises ValueError."""
    most = LONGEST_NS if name.endswith("_ns") else LARGEST
    if not 0 <= value <= most:  # compared only: an int may be too large for a float
        limit = f"{most:.0f} ns (a day)" if name.endswith("_ns") else f"{most}"
        raise ValueError(f"{name} must be a number from 0 to {limit}")


FIELDS = {field.name.removesuffix("_ns"): field.name for field in dataclasses.fields(Settings)}
"""Key of `key=value`: field."""


def changed(settings: Settings, words: Iterable[str]) -> Settings:
    """`settings` with `key=value` words applied. Raises PlanError with everything wrong at once."""
    problems: list[Problem] = []
    values: JsonObject = {}
    for word in words:
        key, _, text = word.partition("=")
        try:
            if key not in FIELDS:
                raise ValueError(f"there is no {key!r}; there are {', '.join(FIELDS)}")
            values[FIELDS[key]] = _value(FIELDS[key], text)
        except ValueError as error:
            problems.append(Problem(f"--set {word}", str(error)))
    if problems:
        raise PlanError(problems)
    try:
        return dataclasses.replace(settings, **values)  # type: ignore[arg-type]  # each was read by its field's type
    except ValueError as error:
        raise PlanError([Problem("--set", str(error))]) from error


def words(values: Mapping[str, float | str]) -> list[str]:
    """Values by field as `key=value`, to be given to `changed`: times in the unit that fits, all to five digits."""
    keys = {field: key for key, field in FIELDS.items()}
    return [f"{keys[field]}={_spelled(field, value)}" for field, value in values.items()]


def _spelled(field: str, value: float | str) -> str:
    if isinstance(value, str):
        return value
    if not field.endswith("_ns"):
        return str(int(value)) if field in _WHOLE else f"{value:.5g}"
    unit = next((unit for unit in ("s", "ms", "us") if value >= _UNITS[unit]), "ns")
    return f"{value / _UNITS[unit]:.5g}{unit}"


def time_ns(text: str) -> float:
    """A time with its unit, ns, at least 0. Raises ValueError."""
    found = _TIME.fullmatch(text)
    time = float(found[1]) * _UNITS[found[2]] if found is not None else math.nan
    if not 0 <= time < math.inf:
        raise ValueError("give a time with its unit: 2ms, 25us, 0.5ns, 1.5s")
    return time


def on_or_off(text: str) -> bool:
    """A switch. Raises ValueError."""
    if text.lower() not in _BOOLS:
        raise ValueError("give on or off")
    return _BOOLS[text.lower()]


def _value(field: str, text: str) -> object:
    """A value as its field has it. Raises ValueError."""
    default = Settings.__dataclass_fields__[field].default
    if field.endswith("_ns"):
        return time_ns(text)
    if isinstance(default, bool):
        return on_or_off(text)
    if isinstance(default, str):
        return text
    try:
        return int(text) if field in _WHOLE else float(text)
    except ValueError:
        raise ValueError("give a whole number" if field in _WHOLE else "give a number") from None


_WHOLE = {field.name for field in dataclasses.fields(Settings) if field.type == "int"}
