"""Settings in words, presets, and the page that explains them."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from inferometer.errors import PlanError
from inferometer.server.engine.costs import Work, duration
from inferometer.server.engine.noise import LONGEST_NS, PROBABILITIES
from inferometer.server.engine.settings import FIELDS, LARGEST, Settings, changed
from inferometer.server.presets import PRESETS

DOCS = (Path(__file__).parents[2] / "docs" / "engine.md").read_text()


def test_words_become_settings() -> None:
    """Times with units, whole numbers, shares, switches, names; what is not named stays."""
    words = (
        "step_base=1.5ms",
        "load=2s",
        "max_batch=3",
        "jitter=0.5",
        "prefix_caching=on",
        "policy=priority",
    )
    assert changed(Settings(), words) == Settings(
        step_base_ns=1_500_000, load_ns=2e9, max_batch=3, jitter=0.5, prefix_caching=True, policy="priority"
    )


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("step=1ms", "step_base"),
        ("step_base=1", "unit"),
        ("max_batch=1.5", "whole number"),
        ("jitter=much", "a number"),
        ("prefix_caching=maybe", "on or off"),
        ("policy=random", "fcfs, priority"),
        ("max_batch", "whole number"),
    ],
)
def test_a_word_that_is_no_setting_is_refused_with_what_there_is(word: str, told: str) -> None:
    """A misspelt key lists the keys; a wrong value says what is wanted."""
    with pytest.raises(PlanError, match=told):
        changed(Settings(), [word])


def test_all_mistakes_are_told_at_once() -> None:
    """Two words, two problems."""
    with pytest.raises(PlanError) as caught:
        changed(Settings(), ["nothing=1", "jitter=x"])
    assert len(str(caught.value).splitlines()) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"step_base_ns": 0},
        {"prefill_base_ns": -1},
        {"prefill_per_token_ns": float("nan")},
        {"max_batch": 0},
        {"kv_blocks": 0},
        {"acceptance": 1.1},
        {"jitter": 1.0},
        {"jitter": 0.6, "jitter_load": 0.5},
        {"preemption": "prayer"},
        {"cold_factor": 0.5},
        {"noise": "1ms,2ms"},
        {"noise": ",".join(["0s"] * 13 + ["86401s"])},
        {"prefill_per_token_ns": 1e308},
        {"load_ns": 86_401e9},
        {"cold_factor": 1e308},
        {"jitter_load": 1e308},
    ],
)
def test_settings_that_make_no_engine_are_refused(wrong: dict[str, Any]) -> None:
    """Time must pass at every step, and no duration may be negative."""
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Settings(**wrong)


def test_no_settings_make_an_iteration_that_takes_no_number() -> None:
    """Law: with every cost at its limit, the largest batch of the longest prompts takes a finite time: a run folder's settings
    are a stranger's words."""
    noise = ",".join(["86400s"] * len(PROBABILITIES))
    costs: dict[str, Any] = {name: LONGEST_NS for name in FIELDS.values() if name.endswith("_ns")}
    for on_engine in (False, True):
        extreme = Settings(
            **costs,
            noise=noise,
            draft_tokens=LARGEST,
            output_check_tokens=1,
            cold_factor=LARGEST,
            jitter=0.9,
            checks_on_engine=on_engine,
        )
        work: Work[int] = Work(LARGEST, LARGEST**2, LARGEST, [], LARGEST**2, LARGEST**3, LARGEST)
        work.chunks.append((cast(Any, None), 1))
        assert math.isfinite(duration(extreme, work, Random(1)) * extreme.cold_factor)


def test_the_page_explains_every_setting_with_its_default() -> None:
    """docs/engine.md has a row for each key."""
    settings = DOCS.partition("## Settings")[2].partition("## Presets")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+?) +\|", settings, re.MULTILINE))
    for key, field in FIELDS.items():
        default = Settings.__dataclass_fields__[field].default
        if isinstance(default, bool):
            shown = "on" if default else "off"
        elif field.endswith("_ns"):
            shown = time(getattr(Settings(), field))
        else:
            shown = str(default) or "none"
        assert rows.get(key) == shown, key


def test_the_page_shows_every_preset_as_it_is() -> None:
    """What the formulas yield, rounded to three digits."""
    for name, settings in PRESETS.items():
        row = next(line for line in DOCS.splitlines() if line.startswith(f"| `{name}` |"))
        shown = [
            *(
                time(getattr(settings, field))
                for field in ("step_base_ns", "step_per_request_ns", "kv_read_per_token_ns")
            ),
            *(time(getattr(settings, field)) for field in ("prefill_per_token_ns", "prefill_attention_ns")),
            f"{settings.kv_blocks:,}",
            str(settings.max_batch),
            str(settings.token_budget),
            time(settings.load_ns),
        ]
        assert [cell.strip() for cell in row.split("|")[2:-1]] == shown


def time(ns: float) -> str:
    """Three digits and a unit."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns"


def test_presets_are_as_far_apart_as_their_machines() -> None:
    """Sanity: one stream of an 8B model is a few times quicker on an A100 than on a laptop, and every preset holds a long
    prompt."""
    steps = {name: one.step_base_ns + one.step_per_request_ns for name, one in PRESETS.items()}
    assert 3 < steps["m4-laptop-8b"] / steps["a100-8b"] < 10
    assert all(one.capacity_tokens > 40_000 for one in PRESETS.values())
    assert PRESETS["tiny-cpu"] == Settings()
    assert {field.name for field in dataclasses.fields(Settings)} == set(FIELDS.values())
