"""What makes two results comparable, as texts by dotted keys, and what may change between them.

| conditions                                                    | because                                                |
| ------------------------------------------------------------- | ------------------------------------------------------ |
| workload, load, number of requests, duration, warm-up, trace  | other requests, or at another pace, take other times   |
| model, quantization, engine, hardware, boundary, cache, address | another system is a comparison, not a history        |
| interface, streaming, body fields, objectives                 | they decide what is requested and what is good         |
| HTTP/2, and requests at once on a connection                  | requests that share a connection wait for each other   |
| counting of tokens                                            | figures per token hang on it (draft 4.4)               |
| the client's processor and cores, workers, source of stamps   | the instrument is part of a figure                     |

| may change                                    | because                                                                |
| --------------------------------------------- | ---------------------------------------------------------------------- |
| seed, and with it the requests' fingerprint   | other requests of the same distribution are a part of the noise        |
| versions: engine, model, instrument, system   | whether a new version is slower is what a history is asked             |

The address is host and port without anything else of a URL. Of headers nothing is kept; of body fields, of the settings of an
engine of ours and of values longer than LONGEST their hash.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from inferometer.documents.bench import Bench, EngineResult
from inferometer.documents.summary import Summary, Sut
from inferometer.judge.comparison.campaigns import Repeat
from inferometer.judge.comparison.equivalence import TokenCounting, leaves, load_of, requests_of
from inferometer.plan.schema import Plan
from inferometer.studies.comparison import counting_of
from inferometer.telemetry.host import Environment

LONGEST = 120
"""Characters of a value."""
UNDECLARED = ("sut.model", "sut.quantization", "sut.accelerator", "sut.engine")
"""Conditions without which results of different systems may look comparable."""
_VERSION = re.compile(r"(?<![\w.])[vbr]?\d[\w.+-]*", re.IGNORECASE)
_SUT = (
    "model", "quantization", "boundary", "accelerator", "accelerator_count", "accelerator_memory", "prefix_caching",
    "cache_state",
)  # fmt: skip

Conditions = dict[str, str]


def of_run(summary: Summary) -> Conditions:
    """Those of a run."""
    plan, client = summary.plan, summary.environment
    instrument = {
        "timestamp_source": summary.instrument.timestamp_source,
        "workers": plan.instrument.workers,
        "simulated": summary.run.simulated,
    }
    found = {
        **_planned(plan),
        **_system(summary.sut, summary.server.engine if summary.server else None),
        **_counting(counting_of(summary)),
        **_client(client, simulated=summary.run.simulated),
        **{f"instrument.{name}": value for name, value in instrument.items()},
    }
    return _texts(found)


def of_test(repeat: Repeat, test: str) -> Conditions:
    """Those of a test of a campaign."""
    document, facts = repeat.document, repeat.facts
    own = (f"tests.{test}.", "tests.search.", "engine.")
    parameters = {key: value for key, value in repeat.configuration.items() if key.startswith(own)}
    found = {
        **_planned(facts.plan),
        **_system(facts.sut, None),
        **_counting(facts.tokens),
        **_client(document.environment, simulated=document.simulated),
        **parameters,
        "quick": document.quick,
        "instrument.workers": facts.plan.instrument.workers,
        "instrument.simulated": document.simulated,
    }
    return _texts(found)


def of_bench(bench: Bench, engine: EngineResult) -> Conditions:
    """Those of an engine of a benchmark."""
    about, protocol = engine.metadata, bench.protocol
    found: dict[str, object] = {
        "sut.engine": about.engine,
        "sut.runner": about.runner,
        "sut.model": about.model,
        "sut.model_format": about.model_format,
        "sut.quantization": about.model_quantization,
        "sut.accelerator": about.hw_chip,
        "sut.address": _address(engine.url),
        "bench.prompts": ", ".join(protocol.prompts),
        "bench.runs": protocol.runs,
        "bench.sized_by": protocol.sized_by,
        "bench.temperature": protocol.temperature,
        "bench.follows": "; ".join(protocol.follows),
        "client.cpu": None if bench.client is None else bench.client.hw_chip,
    }
    return _texts(found)


def versions_of_run(summary: Summary) -> Conditions:
    """What a run says of versions."""
    return _texts(_versions(summary.version, summary.sut, summary.environment))


def versions_of_test(repeat: Repeat) -> Conditions:
    """What a campaign says of versions."""
    document = repeat.document
    return _texts(_versions(document.version, repeat.facts.sut, document.environment))


def versions_of_bench(bench: Bench, engine: EngineResult) -> Conditions:
    """What a benchmark says of versions."""
    found = {"instrument": bench.version, "engine": engine.metadata.engine_version}
    return _texts({**found, "system": bench.client and bench.client.os_version})


def engine_name(software: str) -> str:
    """The engine's name in a text such as `vLLM 0.10.1`: all of it but what looks like a version, in small letters."""
    return " ".join(_VERSION.sub(" ", software).split()).replace(" ,", ",").casefold()


def _planned(plan: Plan) -> dict[str, object]:
    load = plan.load
    found = leaves({"workload": requests_of(plan), "load": load_of(plan)})
    names = ("requests", "duration_s", "warmup", "warmup_tokens", "cold_start")
    found |= {f"load.{name}": getattr(load, name) for name in names}
    target = plan.target
    if target.http != "1.1":  # which entries of earlier versions do not name
        found |= {"target.http": target.http, "target.streams": target.streams}
    if target.websocket is not None:
        found["target.websocket"] = _digest(target.websocket.model_dump(mode="json"))
    return found | {
        "target.api": target.api,
        "target.stream": target.stream,
        "target.connection": target.connection,
        "target.extra_body": _digest(target.extra_body) if target.extra_body else None,
        "slos": ", ".join(sorted(map(str, plan.slos))),
    }


def _system(sut: Sut, scraped: str | None) -> dict[str, object]:
    declared: dict[str, object] = {f"sut.{name}": getattr(sut, name) for name in _SUT}
    software = sut.software or scraped or sut.observed.server
    ours = sut.url is None
    return declared | {
        "sut.engine": engine_name(software) if software else None,
        "sut.settings": _digest(sut.notes) if ours and sut.notes else None,
        "sut.address": _address(sut.url),
        "sut.input_filter": sut.guardrails.input_filter,
        "sut.output_filter": sut.guardrails.output_filter,
    }


def _versions(instrument: str, sut: Sut, client: Environment | None) -> dict[str, object]:
    found: dict[str, object] = {
        "instrument": instrument,
        "engine": sut.software,
        "server": sut.observed.server,
        "model": sut.model_version,
    }
    if client is not None:
        found |= {"system": client.os, "kernel": client.kernel, "python": client.python}
    return found


def _counting(tokens: TokenCounting) -> dict[str, object]:
    return {
        "tokens.method": tokens.method,
        "tokens.tokenizer": tokens.tokenizer,
        "tokens.source": tokens.source,
        "tokens.itl_method": tokens.itl_method,
    }


def _client(client: Environment | None, *, simulated: bool) -> dict[str, object]:
    """Virtual time does not depend on the machine."""
    if client is None or simulated:
        return {}
    return {f"client.{name}": getattr(client, name) for name in ("machine", "cpu", "cores")}


def _address(url: str | None) -> str | None:
    """Host and port of a URL, without user, password, path and query; None: the embedded server, or no URL."""
    if url is None:
        return None
    try:
        parts = urlsplit(url)
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError:
        return None
    return f"{parts.hostname or ''}{port}" or None


def _texts(values: Mapping[str, object]) -> Conditions:
    return dict(_said(values))


def _said(values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """The values as texts, without those that say nothing."""
    for key, value in sorted(values.items()):
        if value is None or value in ("", {}, [], ()):
            continue
        text = value if isinstance(value, str) else _json(value)
        yield key, text if len(text) <= LONGEST else _digest(text)


def _digest(value: object) -> str:
    text = value if isinstance(value, str) else _json(value)
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:16]}"


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=str)
