"""Engines after real ones: machines and models as data, and the roofline that makes settings of them (docs/engine.md).

step_base             weight bytes / (bandwidth * share of it reached) + overhead
kv_read_per_token     KV bytes of a token / the same bandwidth
prefill_per_token     2 * parameters / (FLOP/s * share of it reached); so does each decoded token
prefill_attention     4 * layers * width / the same FLOP/s, for each pair of tokens
kv_blocks             (memory * share used - weight bytes - working memory) / (KV bytes of a token * block_tokens)
load                  weight bytes / speed of the disk
swap_per_block        KV bytes of a block / speed of the link to the host
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from inferometer.server.engine.settings import Settings

_GIGA, _TERA = 1e9, 1e12
_NS = 1e9


@dataclass(frozen=True, slots=True)
class Machine:
    """Accelerators working as one. Bytes, bytes/s, FLOP/s; each of all of them together.

    The last six are shares and times that nobody publishes: chosen here, round figures.
    """

    memory: float
    bandwidth: float
    flops: float
    link: float
    disk: float
    bandwidth_share: float
    flops_share: float
    memory_share: float
    working: float
    overhead_ns: float


@dataclass(frozen=True, slots=True)
class Weights:
    """A transformer: parameters, bytes of each, layers, width, KV heads, size of a head, bytes of a KV entry."""

    parameters: float
    bytes_each: float
    layers: int
    width: int
    kv_heads: int
    head: int
    kv_bytes_each: float = 2

    @property
    def size(self) -> float:
        """Bytes."""
        return self.parameters * self.bytes_each

    @property
    def kv_token(self) -> float:
        """KV bytes of a token: a key and a value in each layer."""
        return 2 * self.layers * self.kv_heads * self.head * self.kv_bytes_each


LLAMA_8B = Weights(8.03e9, 2, 32, 4096, 8, 128)
LLAMA_8B_4BIT = dataclasses.replace(LLAMA_8B, bytes_each=4.5 / 8)  # 4-bit groups with their scales
LLAMA_70B = Weights(70.6e9, 2, 80, 8192, 8, 128)

A100 = Machine(80 * _GIGA, 2039 * _GIGA, 312 * _TERA, 32 * _GIGA, 2 * _GIGA, 0.8, 0.5, 0.9, 2 * _GIGA, 1e6)
H100_TP4 = Machine(
    *(4 * 80 * _GIGA, 4 * 3350 * _GIGA, 4 * 989 * _TERA, 4 * 64 * _GIGA, 4 * _GIGA),
    *(0.8, 0.4, 0.9, 8 * _GIGA, 3e6),
)
M4 = Machine(16 * _GIGA, 120 * _GIGA, 3.8 * _TERA, 120 * _GIGA, 2 * _GIGA, 0.8, 0.7, 0.7, 1 * _GIGA, 1e6)


def roofline(machine: Machine, weights: Weights, **chosen: float | str) -> Settings:
    """The formulas above. `chosen`: further settings, which have no formula."""
    settings = Settings(prefill_base_ns=0, prefix_caching=True)
    bandwidth = machine.bandwidth * machine.bandwidth_share
    flops = machine.flops * machine.flops_share
    block = weights.kv_token * settings.block_tokens
    room = machine.memory * machine.memory_share - weights.size - machine.working
    token = 2 * weights.parameters / flops * _NS
    return dataclasses.replace(
        settings,
        step_base_ns=weights.size / bandwidth * _NS + machine.overhead_ns,
        step_per_request_ns=token,
        kv_read_per_token_ns=weights.kv_token / bandwidth * _NS,
        prefill_per_token_ns=token,
        prefill_attention_ns=4 * weights.layers * weights.width / flops * _NS,
        kv_blocks=int(room / block),
        swap_per_block_ns=block / machine.link * _NS,
        load_ns=weights.size / machine.disk * _NS,
        **chosen,  # type: ignore[arg-type]  # names and types are those of Settings
    )


TESTBED = Settings(
    step_base_ns=10_000_000,
    step_per_request_ns=250_000,
    prefill_per_token_ns=20_000,
    prefill_attention_ns=0.2,
    max_batch=32,
    kv_blocks=12_000,
    prefix_caching=True,
    input_check_ns=8_000_000,
    output_check_tokens=16,
    output_check_ns=4_000_000,
)
"""Small enough to be brought to its limits by one core, with everything that a test switches: some 10 requests of
Synthetic-Uniform a second, and a KV cache of 192,000 tokens."""

PRESETS: dict[str, Settings] = {
    "tiny-cpu": Settings(),
    "testbed": TESTBED,
    "a100-8b": roofline(A100, LLAMA_8B, max_batch=256, token_budget=2048),
    "h100-70b-tp4": roofline(H100_TP4, LLAMA_70B, max_batch=256, token_budget=8192),
    "m4-laptop-8b": roofline(M4, LLAMA_8B_4BIT, max_batch=4, token_budget=512),
}


def engine_of(preset: str, system: str | None) -> Settings:
    """The engine of this name; under a system without filters: those of a preset are there to test an engine with, and a system
    brings its own."""
    engine = PRESETS[preset]
    if system is None:
        return engine
    return dataclasses.replace(engine, **engine.guarded_by(False))  # type: ignore[arg-type]  # each of its field's type
