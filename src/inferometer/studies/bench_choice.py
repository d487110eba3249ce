"""Which engines a benchmark measures, with which models: by address, by name, or all that run here.

| given            | engines                                                                                      |
| ---------------- | --------------------------------------------------------------------------------------------- |
| `NAME=URL`       | what is there; `NAME` names the adapter, else whatever is recognised there does                 |
| names            | those of this machine, by detection; one that does not run has its usual port, and fails there  |
| neither          | all engines that detection finds on this machine                                                |

`reference` is the embedded reference server, which lives as long as the benchmark.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from inferometer.drive.credentials import headers, read_key
from inferometer.engines.adapters.adapter import Adapter
from inferometer.engines.adapters.registry import ADAPTERS
from inferometer.errors import PlanError, Problem
from inferometer.plan.parse import build
from inferometer.server.embedded import Embedded
from inferometer.studies.bench_engine import Flags, LiveEngine
from inferometer.studies.detection import Detected, Local, detect, places

EMBEDDED = "reference"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for. `urls`: name and address; `own`: an engine's model; `usual`: that of all others; `compare`: further
    models, of each; `api`: the interface, where no adapter decides; `options`: flags of the plan; `meters`: an engine's own."""

    urls: tuple[tuple[str, str], ...] = ()
    names: tuple[str, ...] = ()
    own: Mapping[str, str] = field(default_factory=dict)
    usual: str | None = None
    compare: tuple[str, ...] = ()
    api: str | None = None
    options: Flags = field(default_factory=dict)
    meters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Place:
    """An engine to be, with its address and what was recognised there; `several`: the keys, if that is not one engine."""

    name: str
    url: str
    adapter: Adapter | None
    found: Adapter | None = None
    several: tuple[str, ...] = ()


def engines_of(wanted: Wanted, stack: ExitStack) -> list[LiveEngine]:
    """The engines with their models, in the order given. Raises PlanError. `stack`: ends what was started for it."""
    unknown = [name for name in wanted.names if name not in ADAPTERS]
    if unknown:
        known = ", ".join(ADAPTERS)
        raise PlanError(
            [Problem("--engines", f"there is no engine {unknown[0][:40]!r}: choose of {known}, or use --url")]
        )
    # What holds for every engine is refused before any is asked; the address stands for all of theirs.
    build(
        None,
        {"--url": "http://localhost", "--api": wanted.api or "chat", **wanted.options},
        environ=os.environ,
    )
    for meters in wanted.meters.values():
        build(None, {"--url": "http://localhost", "--power": meters})
    given = _given(wanted)
    here = Local.now()
    found = _named(wanted, here, stack) if wanted.names else [] if given else _all(here)
    chosen = [*given, *found]
    labels = [place.name for place in chosen]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise PlanError(
            [Problem("--url", f"{twice} is there twice: give each engine a name of its own, NAME=URL")]
        )
    here_too = {*labels, *(place.adapter.key for place in chosen if place.adapter is not None)}
    if missing := [name for name in wanted.own if name not in here_too]:
        raise PlanError([Problem("--model", f"there is no engine {missing[0]} here: {', '.join(labels)}")])
    metered = labels if wanted.urls or wanted.names else here_too
    if missing := [name for name in wanted.meters if name not in metered]:
        raise PlanError([Problem("--power", f"there is no engine {missing[0]} here: {', '.join(labels)}")])
    return [engine for place in chosen for engine in _with_models(place, wanted)]


def _given(wanted: Wanted) -> list[_Place]:
    """The engines of `--url`, as far as they are recognised."""
    checked = []
    for name, url in wanted.urls:
        target = build(None, {"--url": url, **wanted.options}, environ=os.environ).target
        assert target.url is not None
        checked.append((name, target))
    if not checked:
        return []
    addresses = [target.url or "" for _, target in checked]
    lines = headers(checked[0][1], read_key(checked[0][1], os.environ))
    here = Local((), Local.now().listening)
    where = places(addresses, None, here)
    by_url = dict(zip(where.urls, detect(where, here, headers=lines), strict=True))
    return [
        _Place(
            name,
            url,
            ADAPTERS.get(name) or by_url[url].adapter,
            by_url[url].adapter,
            by_url[url].endpoint.others,
        )
        for (name, _), url in zip(checked, addresses, strict=True)
    ]


def _named(wanted: Wanted, here: Local, stack: ExitStack) -> list[_Place]:
    running = _running(here) if set(wanted.names) - {EMBEDDED} else []
    chosen = []
    for name in dict.fromkeys(wanted.names):
        adapter = ADAPTERS[name]
        if name == EMBEDDED:
            server = stack.enter_context(Embedded(Path(os.devnull)))
            chosen.append(_Place(name, server.url(), adapter, adapter))
            continue
        here_too = [one for one in running if one.adapter is adapter]
        if len(here_too) > 1:
            where = ", ".join(one.endpoint.url for one in here_too)
            raise PlanError([Problem("--engines", f"{name} runs at {where}: name them with --url NAME=URL")])
        if here_too:
            chosen.append(_Place(name, here_too[0].endpoint.url, adapter, adapter))
        else:
            chosen.append(_Place(name, f"http://127.0.0.1:{adapter.ports[0]}", adapter))
    return chosen


def _all(here: Local) -> list[_Place]:
    running = _running(here)
    if not running:
        raise PlanError(
            [
                Problem(
                    "--engines",
                    "no engine was found on this machine: start one, or name its address, --url vllm=http://localhost:8000",
                )
            ]
        )
    keys = [one.adapter.key for one in running if one.adapter is not None]
    ends = [one.endpoint.url.rpartition(":")[2] for one in running]
    chosen = []
    for one in running:
        assert one.adapter is not None
        key = one.adapter.key
        url = one.endpoint.url
        end = url.rpartition(":")[2]
        place = end if ends.count(end) == 1 else url.partition("://")[2]
        name = key if keys.count(key) == 1 else f"{key}-{place}"
        chosen.append(_Place(name, one.endpoint.url, one.adapter, one.adapter))
    return chosen


def _running(here: Local) -> list[Detected]:
    return [one for one in detect(places((), None, here), here) if one.adapter is not None]


def _with_models(place: _Place, wanted: Wanted) -> list[LiveEngine]:
    """The engine once for each of its models."""
    interface = place.adapter.interface if place.adapter is not None else "chat"
    api = interface if wanted.api is None or place.name in ADAPTERS else wanted.api
    key = None if place.adapter is None or wanted.urls or wanted.names else place.adapter.key
    first = wanted.own.get(place.name, wanted.own.get(key or "", wanted.usual))
    models: Sequence[str | None] = list(dict.fromkeys((*([first] if first else []), *wanted.compare))) or [
        None
    ]
    return [
        LiveEngine(
            label=place.name if len(models) == 1 else f"{place.name}/{model}",
            name=place.name,
            url=place.url,
            model=model,
            adapter=place.adapter,
            found=None if place.found is None else place.found.key,
            several=place.several,
            api=api,
            options=wanted.options,
            meters=wanted.meters.get(place.name, wanted.meters.get(key or "", ())),
        )
        for model in models
    ]
