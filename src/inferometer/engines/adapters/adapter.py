"""What an adapter has to know of its engine, as data and functions without I/O.

| when                  | what an adapter provides                                                                    |
| --------------------- | ------------------------------------------------------------------------------------------- |
| detection             | the ports it usually listens on, names of its processes, what to ask, whether replies are its |
| before a measurement  | its version, runner and models, with format, quantization, and memory by its own account    |
| around a measurement  | the calls that load and unload a model                                                      |
| cross-validation      | the names of its own counters                                                               |

Whoever asks (studies/detection.py) sends each `Ask` and hands the replies over by path. An engine that does not answer a path
has no reply there: readers take that as unknown, never as zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from inferometer.engines.interface import JsonObject

Tried = Literal["real", "documented"]
"""Tested on the real engine, or on its documented protocol only."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A call to an engine's own interface. `path` is below the base URL; `body` is sent as JSON."""

    path: str
    method: Literal["GET", "POST", "PUT", "DELETE"] = "GET"
    body: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back: `body` is JSON where it is JSON, else text; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: object

    @property
    def ok(self) -> bool:
        """Whether the call succeeded."""
        return 200 <= self.status < 300


Replies = Mapping[str, Reply]
"""By the path of the `Ask`."""


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model by the engine's account; None: not reported. `memory_bytes`: in use now, of which `accelerator_bytes` on an
    accelerator; `loaded`: ready to answer without loading."""

    name: str
    format: str | None = None
    quantization: str | None = None
    parameters: str | None = None
    context: int | None = None
    memory_bytes: int | None = None
    accelerator_bytes: int | None = None
    loaded: bool | None = None


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """An engine by its own account. `runner`: what executes the model inside it, such as Ollama's llama.cpp or MLX runner
    (asiai's methodology, Environment Safety 4); `manages_models`: False if this server, as it was started, refuses the
    adapter's load and unload."""

    engine: str
    version: str | None = None
    runner: str | None = None
    models: tuple[ServedModel, ...] = ()
    manages_models: bool = True

    def model(self, name: str) -> ServedModel | None:
        """The model of this name."""
        return next((one for one in self.models if one.name == name), None)


@dataclass(frozen=True, slots=True)
class Counters:
    """Names of the engine's own Prometheus families, for cross-validation; None: it has no such family."""

    path: str = "/metrics"
    output_tokens: str | None = None
    prompt_tokens: str | None = None
    cached_tokens: str | None = None
    ttft_s: str | None = None
    """Histogram of the time to the first token, s."""
    decode_s: str | None = None
    """Time from the first token to the last, s: a counter, or a histogram whose sum counts."""
    decode_by_request: bool = False
    """`decode_s` is a histogram that observes each request once, so that its count says of how many it is."""
    decode_tok_s: str | None = None
    """Gauge of tokens per second in decode."""


@dataclass(frozen=True, slots=True)
class Adapter:
    """One engine. All functions are pure and take any reply: what is not as documented is unknown.

    | member           | is                                                                                            |
    | ---------------- | --------------------------------------------------------------------------------------------- |
    | `interface`      | a name of engines/interface.py, the one to measure with                                        |
    | `recognise`      | from the replies to all adapters' `asks`: whether this engine answers there                    |
    | `read`           | the same replies as facts                                                                      |
    | `describe`       | a model of those, with what the replies to its `model_asks` add                                |
    | `runner_of`      | the runner, from command lines of the engine's processes                                       |
    | `load`, `unload` | the call for a model's name; None: the engine has none                                         |
    | `imitates`       | engines whose routes it answers too, so that their replies do not mean a second engine         |
    | `server_timings` | an answer over `interface` has the engine's own durations                                      |
    | `cached_tokens`  | its usage has cached prompt tokens                                                             |
    | `documentation`  | where the protocol is described                                                                |
    | `quirks`         | sentences for docs/engines.md                                                                  |
    """

    key: str
    title: str
    ports: tuple[int, ...]
    processes: tuple[str, ...]
    """Regular expressions, each searched for in how a process's command line begins. Any user of the machine writes these
    lines: what repeats without limit is anchored at their beginning, and not tried anew from each character."""
    interface: str
    asks: tuple[Ask, ...]
    recognise: Callable[[Replies], bool]
    read: Callable[[Replies], EngineFacts]
    documentation: str
    model_asks: Callable[[str], tuple[Ask, ...]] = lambda _: ()
    describe: Callable[[ServedModel, Replies], ServedModel] = lambda model, _: model
    runner_of: Callable[[Sequence[str]], str | None] = lambda _: None
    load: Callable[[str], Ask] | None = None
    unload: Callable[[str], Ask] | None = None
    counters: Counters | None = None
    imitates: tuple[str, ...] = ()
    server_timings: bool = False
    cached_tokens: bool = False
    tried: Tried = "documented"
    quirks: tuple[str, ...] = field(default=())
