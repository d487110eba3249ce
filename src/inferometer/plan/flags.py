"""The command line's view of a plan, as data: which flag sets which key, how its text is read, what its help says.

`cli/` makes its options from this table and `parse.py` its values and its error messages, so that the two cannot drift apart.
Most flags hand their text on as it is, for the schema reads `8`, `2m` and `uniform(128,512)` itself. The ones that set
several keys at once give a mapping, which is merged into the plan file's key by key.

A flag overrides the plan file. Where it decides more than its own key (`--rate` means open loop), `drops` lists the file's keys
that go with the old decision.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from inferometer.engines.interface import takers
from inferometer.errors import Problem
from inferometer.plan.declarations import declare
from inferometer.plan.workload import KINDS


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag. `parse` turns its text into the value of `key`, raising ValueError in words.

    `switch`: it takes no text, and stands for `value`. `repeat`: it may be given several times; the values make a list, or
    if they are mappings, one mapping.
    """

    name: str
    key: str
    help: str
    metavar: str = "TEXT"
    parse: Callable[[str], object] = str
    repeat: bool = False
    switch: bool = False
    value: object = None
    drops: tuple[str, ...] = ()

    @property
    def parameter(self) -> str:
        """The flag as a Python identifier: `input_tokens` for `--input-tokens`."""
        return self.name.removeprefix("--").replace("-", "_")


def hardware(text: str) -> dict[str, object]:
    """`H100x4`, `H100x4:80GB`, `MI300X` (one of them) or `cpu` (none) as keys of `sut`."""
    name, _, memory = (part.strip() for part in text.partition(":"))
    if not name:
        raise ValueError("needs the accelerator's name: for example H100x4, H100x4:80GB or cpu")
    if name.lower() in ("cpu", "none"):
        return {"accelerator": "cpu", "accelerator_count": 0, "accelerator_memory": memory or None}
    # A lower-case x only, and at most 3 digits: MI300X and rtx4090 are names.
    form = re.fullmatch(r"(?P<name>.+?)\s*x(?P<count>[0-9]{1,3})", name)
    count = int(form["count"]) if form else 1
    if count == 0:
        raise ValueError("the number of accelerators must be at least 1; without any write cpu")
    return {
        "accelerator": form["name"] if form else name,
        "accelerator_count": count,
        "accelerator_memory": memory or None,
    }


def guardrails(text: str) -> dict[str, object]:
    """`none`, `input`, `output` or `both`, and after a colon the filters' names, as keys of `sut.guardrails`."""
    where, _, names = text.partition(":")
    sides = {"none": (False, False), "input": (True, False), "output": (False, True), "both": (True, True)}
    side = sides.get(where.strip().lower())
    if side is None:
        raise ValueError(
            "must be none, input, output or both, with names after a colon: for example both:Llama Guard"
        )
    listed = [name.strip() for name in names.split(",") if name.strip()]
    if listed and side == (False, False):
        raise ValueError("none has no names: write for example input:Llama Guard")
    return {"input_filter": side[0], "output_filter": side[1], "names": listed}


def header(text: str) -> dict[str, object]:
    """`Name: value` as one key of `target.headers`. The text is never repeated: it may hold a key."""
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise ValueError("must be a name, a colon and a value: for example 'X-Request-Source: bench'")
    return {name.strip(): value.strip()}


def json_object(text: str) -> dict[str, object]:
    """A JSON object. The text is never repeated: it may hold a key."""

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("the same name stands twice in one JSON object")
        return dict(pairs)

    try:
        value = json.loads(text, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"is no JSON: {error.msg} at character {error.pos + 1}; for example '{{\"top_p\": 0.9}}'"
        ) from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("must be a JSON object: for example '{\"top_p\": 0.9}'")
    return value


_LENGTHS = (
    "320, uniform(128,512), normal(550,150), lognormal(5.5,1.0,min=32,max=4096), histogram(128:1,256:3) or "
    "quantiles(0:8,50:156,100:4096)"
)

FLAGS: tuple[Flag, ...] = (
    Flag(
        "--url",
        "target.url",
        "Base URL of the server; without it, the embedded reference server is measured.",
        "URL",
    ),
    Flag("--model", "target.model", "Model name to ask for.", "NAME"),
    Flag(
        "--api",
        "target.api",
        f"HTTP interface of the server: {takers()}. Default: chat.",
        "API",
        drops=("workload.count_template",),
    ),
    Flag(
        "--concurrency",
        "load.concurrency",
        "Closed loop: this many requests in flight. Default 16.",
        "N",
        drops=tuple(
            f"load.{key}" for key in ("model", "rate", "arrival", "burstiness", "users", "user_rate")
        ),
    ),
    Flag(
        "--rate",
        "load.rate",
        "Open loop: this many requests per second, whatever the server does.",
        "PER_S",
        drops=("load.model", "load.concurrency", "load.users", "load.user_rate"),
    ),
    Flag(
        "--users",
        "load.users",
        "So many users, each asking at --user-rate but waiting for its own answers.",
        "N",
        drops=("load.model", "load.concurrency", "load.rate"),
    ),
    Flag(
        "--user-rate",
        "load.user_rate",
        "Requests per second of each user.",
        "PER_S",
        drops=("load.model", "load.concurrency", "load.rate"),
    ),
    Flag(
        "--arrival",
        "load.arrival",
        "Open loop: poisson (default), constant or gamma. Users: constant (default), poisson or gamma.",
        "PROCESS",
        drops=("load.burstiness",),
    ),
    Flag(
        "--burstiness",
        "load.burstiness",
        "Shape of gamma gaps: 1 is Poisson, below 1 burstier, above 1 more even. Implies gamma.",
        "K",
        drops=("load.arrival",),
    ),
    Flag(
        "--requests",
        "load.requests",
        "End after this many requests. Default 1000 when there is no duration; of a trace, all.",
        "N",
    ),
    Flag("--duration", "load.duration_s", "End after this long: seconds, or 90s, 5m, 1h.", "S"),
    Flag(
        "--warmup",
        "load.warmup",
        "Requests before the measurement, kept apart from it. Default 100; 0 = none.",
        "N",
    ),
    Flag(
        "--warmup-tokens",
        "load.warmup_tokens",
        "Go on with the warm-up until it has made so many output tokens, too. Default 0.",
        "N",
    ),
    Flag(
        "--warmup-probes",
        "load.warmup_probes",
        "Then look with single requests, at most so many, whether the server has settled. Default 0 = nobody looks.",
        "N",
    ),
    Flag("--drain", "load.drain_s", "Wait at most this long for requests still in flight at the end.", "S"),
    Flag(
        "--workload",
        "workload.name",
        "synthetic-uniform (default), synthetic-skewed, conversation, code-completion, long-context, normal or custom.",
        "NAME",
        drops=("workload.input_tokens", "workload.output_tokens"),
    ),
    Flag(
        "--prompts",
        "workload.prompts",
        "Prompts of your own: a JSONL or CSV file with a field prompt or messages, and perhaps output_tokens.",
        "FILE",
    ),
    Flag(
        "--prompts-order",
        "workload.order",
        "file (default: as they stand there), shuffled, or sampled (with replacement).",
        "ORDER",
    ),
    Flag(
        "--workload-file",
        "workload.file",
        "Send the requests of this file, which inferometer workload make wrote (.arrow or .jsonl).",
        "FILE",
    ),
    Flag(
        "--trace",
        "trace.file",
        "Replay a trace: arrivals and lengths from a file of Mooncake's, Azure's, BurstGPT's, or plain JSONL.",
        "FILE",
        drops=(
            *(f"load.{key}" for key in ("model", "rate", "concurrency", "users", "user_rate")),
            *("load.arrival", "load.burstiness", "load.requests", "load.duration_s"),
            *("trace.format", "trace.sha256"),
        ),
    ),
    Flag(
        "--trace-format",
        "trace.format",
        "auto (default: told by the first line), mooncake, azure, burstgpt or jsonl.",
        "FORMAT",
    ),
    Flag("--trace-speed", "trace.speed", "Replay so many times as fast as recorded. Default 1.", "X"),
    Flag(
        "--trace-start",
        "trace.start_s",
        "Begin here: seconds behind the trace's first row, or 90s, 5m, 1h.",
        "S",
    ),
    Flag("--trace-end", "trace.end_s", "End before here: seconds behind the trace's first row.", "S"),
    Flag("--input-tokens", "workload.input_tokens", f"Prompt lengths: {_LENGTHS}.", "LENGTH"),
    Flag("--output-tokens", "workload.output_tokens", "Answer lengths, spelled the same way.", "LENGTH"),
    Flag(
        "--turns",
        "workload.turns",
        "Conversations of so many requests each, spelled as lengths are; of a file, at most so many of each row.",
        "NUMBER",
    ),
    Flag(
        "--think-ms",
        "workload.think_ms",
        "From the end of an answer to the conversation's next request, in ms, spelled as lengths are. Default none.",
        "MS",
    ),
    Flag(
        "--replies",
        "workload.replies",
        "What a conversation repeats as answers: the server's (default), or recorded ones.",
        "WHOSE",
    ),
    Flag(
        "--dataset",
        "workload.dataset",
        "ShareGPT for conversation, The Stack for code-completion: JSON, JSONL or Parquet, a directory, or a cached org/name.",
        "PATH",
        drops=("workload.dataset_subset", "workload.dataset_version"),
    ),
    Flag(
        "--dataset-subset",
        "workload.dataset_subset",
        "Which files of a dataset's directory: a folder or a glob.",
        "WHICH",
    ),
    Flag("--dataset-version", "workload.dataset_version", "The dataset's version (declared).", "TEXT"),
    Flag(
        "--seed", "workload.seed", "Seed of everything drawn: lengths, prompts and arrivals. Default 42.", "N"
    ),
    Flag("--prompt-format", "workload.prompt_format", "auto (default), ids or text.", "FORMAT"),
    Flag(
        "--repeatable-prompts",
        "workload.repeatable_prompts",
        "Send the same prompts every run, so that a prefix cache may hit.",
        switch=True,
        value=True,
    ),
    Flag(
        "--no-ignore-eos",
        "workload.ignore_eos",
        "Let answers end by themselves instead of at the length asked for.",
        switch=True,
        value=False,
    ),
    Flag(
        "--min-tokens",
        "workload.min_tokens",
        "Also send min_tokens, as much as max_tokens: for servers that know it and not ignore_eos.",
        switch=True,
        value=True,
    ),
    Flag(
        "--tokenizer",
        "tokenizer.name",
        "cl100k_base (default), o200k_base, a tokenizer.json or its folder, org/name[@revision], server or none.",
        "NAME",
        drops=("tokenizer.method", "workload.count_template"),
    ),
    Flag(
        "--token-count",
        "tokenizer.method",
        "reference (a yardstick) or native (the model's own tokenizer). Default: native for any that does not ship with this.",
        "METHOD",
        drops=("workload.count_template",),
    ),
    Flag(
        "--count-template",
        "workload.count_template",
        "yes or no: input lengths include the server's chat template. Default: yes for chat with --token-count native.",
        "WHETHER",
    ),
    Flag("--slo", "slos", "Objective such as 'ttft_p99<500ms'. May be repeated.", "EXPR", repeat=True),
    Flag("--workers", "instrument.workers", "Processes that send and stamp. Default 1.", "N"),
    Flag("--connection", "target.connection", "reuse (default), or new for a connection a request.", "HOW"),
    Flag("--name", "name", "Name of the run, part of its folder's name.", "NAME"),
    Flag(
        "--timeout",
        "target.timeout_s",
        "Give a request up after this long: seconds, or 90s, 5m. Default 600.",
        "S",
    ),
    Flag(
        "--no-stream", "target.stream", "Ask for whole answers instead of streams.", switch=True, value=False
    ),
    Flag(
        "--header",
        "target.headers",
        "Extra header 'K: V'. May be repeated. Not for keys.",
        "K: V",
        header,
        repeat=True,
    ),
    Flag("--extra-body", "target.extra_body", "JSON object merged into every request.", "JSON", json_object),
    Flag(
        "--api-key-env",
        "target.api_key_env",
        "Name of the environment variable that holds the API key.",
        "NAME",
        drops=("target.api_key_file",),
    ),
    Flag(
        "--api-key-file",
        "target.api_key_file",
        "File that holds the API key.",
        "FILE",
        drops=("target.api_key_env",),
    ),
    Flag(
        "--insecure",
        "target.tls_verify",
        "Do not verify the server's TLS certificate.",
        switch=True,
        value=False,
        drops=("target.tls_ca_file",),
    ),
    Flag(
        "--ca-file",
        "target.tls_ca_file",
        "Certificates (PEM) to trust instead of the system's.",
        "FILE",
        drops=("target.tls_verify",),
    ),
    Flag(
        "--server-metrics",
        "server_metrics.urls",
        "Also scrape this Prometheus endpoint, host:port or URL, beside the target's. May be repeated.",
        "URL",
        repeat=True,
        drops=("server_metrics.enabled",),
    ),
    Flag(
        "--no-server-metrics",
        "server_metrics.enabled",
        "Scrape no metrics, not even the target's.",
        switch=True,
        value=False,
        drops=("server_metrics.urls",),
    ),
    Flag(
        "--server-metrics-interval",
        "server_metrics.interval_s",
        "Scrape each endpoint so often: seconds, or 500ms. Default 0.333.",
        "S",
    ),
    Flag(
        "--server-metrics-formats",
        "server_metrics.formats",
        "What is made of the scrapes: any of json csv jsonl parquet. Default json csv.",
        "FORMATS",
        repeat=True,
    ),
    Flag(
        "--slice-duration",
        "server_metrics.slice_s",
        "Length of a time slice in the exports: seconds, or 500ms. Default 2; 0 = none.",
        "S",
    ),
    Flag(
        "--histogram-estimator",
        "server_metrics.histogram_estimator",
        "How percentiles are estimated from a server's histograms: four-phase (default), smooth or linear.",
        "NAME",
    ),
    Flag("--boundary", "sut.boundary", "What is measured: engine, gateway or compound (declared).", "WHAT"),
    Flag(
        "--quantization", "sut.quantization", "Quantization of the model (declared), for example fp8.", "NAME"
    ),
    Flag("--hardware", "sut", "Accelerators (declared): H100x4, H100x4:80GB or cpu.", "NAMExN", hardware),
    Flag("--prefix-caching", "sut.prefix_caching", "enabled or disabled (declared).", "STATE"),
    Flag(
        "--cache-state",
        "sut.cache_state",
        "cold, warm or unknown (default): its prefix cache before (declared).",
        "STATE",
    ),
    Flag(
        "--guardrails",
        "sut.guardrails",
        "Filters (declared): none, input, output, both, or both:Llama Guard.",
        "WHICH",
        guardrails,
    ),
    Flag(
        "--declare",
        "declared",
        "What only you can know, such as model_loaded or clock_accuracy_ms=2. May be repeated.",
        "KEY[=VALUE]",
        declare,
        repeat=True,
    ),
)

BY_NAME = {flag.name: flag for flag in FLAGS}

_OF_ANOTHER = ("kind", "name", "based_on", "file", "file_sha256", "prompts_sha256")
"""What says that a workload is a certain one, and so is no longer true where a flag chooses another."""


def overridden(flag: Flag, value: object) -> list[str]:
    """The plan file's keys that go where a flag overrides it: of a workload of another kind all that the new kind lacks."""
    kind = {"workload.prompts": "prompts", "workload.file": "file", "trace.file": "trace"}.get(flag.key)
    if flag.key == "workload.name":
        kind = "lengths" if value == "custom" else "standard"
    if kind is None:
        return list(flag.drops)
    every = {key for one in KINDS.values() for key in one.model_fields}
    lacking = every - KINDS[kind].model_fields.keys()
    return [*flag.drops, *(f"workload.{key}" for key in sorted(lacking | set(_OF_ANOTHER)))]


def read(given: Mapping[str, object]) -> tuple[list[tuple[Flag, object]], list[Problem]]:
    """Read flags as the command line gave them, `{"--rate": "20", "--slo": ["..."], "--no-stream": True}`.

    None, False and an empty list mean: not given. Gives each flag with its value, in the order given, and every problem.
    """
    values: list[tuple[Flag, object]] = []
    problems: list[Problem] = []
    for name, raw in given.items():
        if raw is None or raw is False or (isinstance(raw, list | tuple) and not raw):
            continue
        flag = BY_NAME.get(name)
        if flag is None:
            near = difflib.get_close_matches(name, BY_NAME, n=1)
            problems.append(Problem(name, f"no such flag{f'; did you mean {near[0]}?' if near else ''}"))
        elif flag.switch:
            values.append((flag, flag.value))
        else:
            texts = list(raw) if isinstance(raw, list | tuple) else [raw]
            parsed = [value for text in texts for value in _parse(flag, str(text), problems)]
            if parsed:
                values.append((flag, _joined(flag, parsed)))
    return values, problems


def _parse(flag: Flag, text: str, problems: list[Problem]) -> list[object]:
    try:
        return [flag.parse(text)]
    except ValueError as error:
        problems.append(Problem(flag.name, str(error)))
        return []


def _joined(flag: Flag, parsed: list[object]) -> object:
    if not flag.repeat:
        return parsed[-1]
    if all(isinstance(value, dict) for value in parsed):
        return {key: value for one in parsed if isinstance(one, dict) for key, value in one.items()}
    return parsed
