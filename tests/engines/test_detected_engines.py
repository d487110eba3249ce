"""The real engines are found by asking, by their adapters and as what they are."""

from __future__ import annotations

from urllib.parse import urlsplit

from inferometer.studies.detection import Local, Places, detect
from scripts.engines.launch import RunningEngine

KEYS = {"mlx": "mlx-lm", "vllm": "vllm", "llamacpp": "llamacpp"}


def test_a_real_engine_is_found_with_its_model_and_its_process(engine: RunningEngine) -> None:
    """Alone on its port, by an adapter that was tried on it; its process is one of that engine's."""
    here = Local.now()
    port = urlsplit(engine.url).port or 0
    (found,) = detect(Places((), (port,)), here, budget_s=60)
    one = found.endpoint
    assert (one.state, one.engine, one.tried) == ("engine", KEYS[engine.name], "real")
    assert len(one.models) == 1
    assert one.processes is not None
    assert {process.engine for process in one.processes} == {KEYS[engine.name]}
    assert port in here.engine_ports()
