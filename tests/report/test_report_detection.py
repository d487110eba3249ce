"""What a detection found, in words: every state has its sentence, and nothing of a server's reaches the terminal unclean."""

from __future__ import annotations

import io
from typing import get_args

import pytest
from rich.console import Console

from inferometer.documents.detection import (
    SCHEMA,
    DetectedEndpoint,
    DetectedModel,
    Detection,
    PortProcess,
    State,
)
from inferometer.report.detection import MOST_MODELS, render, sentences


def shown(*endpoints: DetectedEndpoint, width: int = 160) -> str:
    """The detection as text."""
    out = io.StringIO()
    render(Detection(SCHEMA, (8000,), (), endpoints), Console(file=out, width=width))
    return out.getvalue()


def engine(**members: object) -> DetectedEndpoint:
    """A vLLM."""
    known = {
        "engine": "vllm",
        "title": "vLLM",
        "version": "0.32.0",
        "interface": "chat",
        "tried": "real",
        **members,
    }
    return DetectedEndpoint("http://127.0.0.1:8000", "engine", **known)  # type: ignore[arg-type]  # members by name


@pytest.mark.parametrize("state", [state for state in get_args(State) if state != "engine"])
def test_every_state_has_its_sentence(state: State) -> None:
    """One line, which names the place."""
    (line,) = sentences(DetectedEndpoint("http://127.0.0.1:8000", state, others=("ollama", "vllm")))
    assert line.startswith("127.0.0.1:8000: ")
    assert line.endswith(".")
    assert ("ollama, vllm" in line) == (state == "proxy")


def test_an_engine_is_shown_with_its_models() -> None:
    """What is not reported is a dash."""
    model = DetectedModel("tiny", quantization="Q4_K_M", context=8192, memory_bytes=1 << 30, loaded=True)
    text = shown(engine(models=(model,), processes=(PortProcess(7, "python", "vllm"),)))
    for word in (
        "vLLM",
        "0.32.0",
        "--api chat",
        "the engine",
        "python (7)",
        "tiny",
        "yes",
        "Q4_K_M",
        "8192",
        "1 GiB",
    ):
        assert word in text


@pytest.mark.parametrize(
    ("given", "expected"), [("1344128", "1.34M"), ("8030261312", "8.03B"), ("4.3B", "4.3B")]
)
def test_numbers_of_parameters_are_short(given: str, expected: str) -> None:
    """llama.cpp writes all digits, others a letter."""
    assert expected in shown(engine(models=(DetectedModel("m", parameters=given),)))


def test_what_a_narrow_terminal_cannot_show_is_named() -> None:
    """A column is left out whole, and said to be; model and memory stay longest."""
    one = engine(models=(DetectedModel("m", quantization="Q4_K_M", memory_bytes=1 << 30, context=8192),))
    narrow = shown(one, width=60)
    assert "Not shown for lack of room: " in narrow
    assert "1 GiB" in narrow
    assert max(map(len, narrow.splitlines())) <= 60
    assert "lack of room" not in shown(one)


def test_two_processes_on_one_port_are_named() -> None:
    """One of them takes requests meant for the other."""
    several = (PortProcess(7, "ollama", "ollama"), PortProcess(8, "ollama", "ollama"))
    assert "2 processes listen on this port: ollama (7), ollama (8)" in shown(engine(processes=several))


def test_the_process_of_a_port_that_is_no_engine_is_named() -> None:
    """A hanging Ollama is still an Ollama's process."""
    hanging = DetectedEndpoint("http://127.0.0.1:1", "hangs", processes=(PortProcess(7, "ollama", "ollama"),))
    assert "the process that listens there is ollama" in shown(hanging)


def test_models_that_are_loaded_are_shown_first_and_the_rest_is_counted() -> None:
    """A machine with hundreds of models stays readable."""
    models = [DetectedModel(f"m{number}", loaded=False) for number in range(MOST_MODELS + 5)]
    text = shown(engine(models=(*models, DetectedModel("in-use", loaded=True))))
    assert "in-use" in text
    assert f"m{MOST_MODELS}" not in text
    assert "20 of the 26 models that were read" in " ".join(text.split())


def test_nothing_found_says_where_was_looked() -> None:
    """And how to look elsewhere."""
    assert "8000" in shown()
    assert "--ports" in shown()


def test_what_a_server_says_cannot_write_on_the_terminal() -> None:
    """Names and headers lose their control characters."""
    unclean = "\x1b[2Jx\n"
    text = shown(
        engine(version=unclean, models=(DetectedModel(unclean, format=unclean),)),
        DetectedEndpoint("http://127.0.0.1:9", "unknown", detail=unclean),
    )
    assert "\x1b" not in text


def test_a_terminal_without_a_width_shows_everything() -> None:
    """Some say 0 columns and mean that they do not know: then it is as wide as most."""
    assert shown(engine(), width=0) == shown(engine(), width=80)
