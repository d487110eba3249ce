"""What listens on this machine's known ports, or at given URLs: engines, their models and processes, or what else.

| state       | what answers there                                                                      |
| ----------- | --------------------------------------------------------------------------------------- |
| `engine`    | one engine that is known                                                                |
| `proxy`     | several: a proxy in front of them; `engine` is None and `others` names them             |
| `locked`    | an HTTP server that requires a key before it says what it is                            |
| `unknown`   | an HTTP server that is no known engine                                                  |
| `too_large` | an HTTP server whose first answer exceeds 2 MiB, and which is not asked further          |
| `not_http`  | something that does not speak HTTP, or speaks TLS where none was asked for              |
| `hangs`     | something that takes connections and does not answer in time                            |
| `closed`    | something that closes every connection without an answer                                |
| `refused`   | nothing                                                                                 |
| `failed`    | nothing that can be reached: `detail` has the reason (client/http_client.py)            |

Ports where nothing listens are listed only if a URL names them.
"""

from __future__ import annotations

from typing import Final, Literal

from inferometer.documents.part import Part

SCHEMA: Final = "inferometer/detection/1"

State = Literal[
    "engine", "proxy", "locked", "unknown", "too_large", "not_http", "hangs", "closed", "refused", "failed"
]  # fmt: skip


class DetectedModel(Part, frozen=True):
    """A model by the engine's account; None: not reported. `parameters`: as the engine writes their number; `context`: tokens;
    `memory_bytes`: in use now, of which `accelerator_bytes` on an accelerator; `loaded`: ready without loading."""

    name: str
    format: str | None = None
    quantization: str | None = None
    parameters: str | None = None
    context: int | None = None
    memory_bytes: int | None = None
    accelerator_bytes: int | None = None
    loaded: bool | None = None


class PortProcess(Part, frozen=True):
    """A process that listens on the port. `engine`: the one that its command line is of."""

    pid: int
    name: str
    engine: str | None


class DetectedEndpoint(Part, frozen=True):
    """One URL. `tried`: whether the adapter was tested on the real engine or on its documented protocol; `interface`: the
    value of `--api` to measure it with; `processes`: None where the system does not show them, or it is another machine;
    `detail`: what the server calls itself, or where nothing answered why."""

    url: str
    state: State
    engine: str | None = None
    title: str | None = None
    others: tuple[str, ...] = ()
    version: str | None = None
    runner: str | None = None
    interface: str | None = None
    tried: Literal["real", "documented"] | None = None
    models: tuple[DetectedModel, ...] = ()
    processes: tuple[PortProcess, ...] | None = None
    detail: str | None = None


class Detection(Part, frozen=True):
    """A whole detection. `ports`: those of the loopback interface that were tried; `urls`: those that were given."""

    schema: Literal["inferometer/detection/1"]
    ports: tuple[int, ...]
    urls: tuple[str, ...]
    endpoints: tuple[DetectedEndpoint, ...]
