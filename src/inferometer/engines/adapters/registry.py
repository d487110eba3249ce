"""All adapters, in the order in which engines are recognised: those with routes of their own first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from inferometer.engines.adapters.adapter import Adapter, Ask, Replies
from inferometer.engines.adapters.llamacpp import LLAMACPP
from inferometer.engines.adapters.lmstudio import LMSTUDIO
from inferometer.engines.adapters.mlx_lm import MLX_LM
from inferometer.engines.adapters.ollama import OLLAMA
from inferometer.engines.adapters.omlx import OMLX
from inferometer.engines.adapters.reference import REFERENCE
from inferometer.engines.adapters.sglang import SGLANG
from inferometer.engines.adapters.tensorrt_llm import TENSORRT_LLM
from inferometer.engines.adapters.tgi import TGI
from inferometer.engines.adapters.vllm import VLLM
from inferometer.engines.adapters.vllm_mlx import VLLM_MLX

_ORDER = (
    REFERENCE,
    LMSTUDIO,
    LLAMACPP,
    OLLAMA,
    OMLX,
    VLLM_MLX,
    SGLANG,
    TGI,
    TENSORRT_LLM,
    VLLM,
    MLX_LM,
)
ADAPTERS: Final[Mapping[str, Adapter]] = {one.key: one for one in _ORDER}
"""By key."""


def asks() -> tuple[Ask, ...]:
    """What to ask of a server that is not known yet: the asks of all adapters, each path once."""
    return tuple({ask.path: ask for one in _ORDER for ask in one.asks}.values())


def ports() -> tuple[int, ...]:
    """The ports on which these engines usually listen, in ascending order."""
    return tuple(sorted({port for one in _ORDER for port in one.ports}))


def recognised(replies: Replies) -> tuple[Adapter, ...]:
    """The engines that answer, in order, without those that one before them imitates. Several: they stand behind a proxy."""
    found: list[Adapter] = []
    for one in _ORDER:
        if not any(one.key in before.imitates for before in found) and one.recognise(replies):
            found.append(one)
    return tuple(found)
