"""`make campaign`: a quick campaign of the draft's ten tests against the reference engine, and one against vLLM.

    python -m scripts.campaign [reference] [vllm] [--out DIR]

vLLM's prefix cache is a flag, so it is switched by starting vLLM again. vLLM has no guardrails: only the baseline is tested.
Its KV cache is made small, so that one machine can fill it. Reports are left in DIR/reference and DIR/vllm.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from scripts.engines.launch import free_port
from scripts.engines.places import ENGINES, MODEL, ROOT
from scripts.engines.serve import halves

PYTHON = ".venv/bin/python"
SERVING = ".engines/serving"
"""Relative to the checkout, where all of it runs: a report cites its commands, and is read elsewhere."""
REPORTS = ("report.html", "report.md", "minimum.txt", "campaign.json")
KV_CACHE = ("--block-size", "128", "--num-gpu-blocks-override", "256")
"""32,768 tokens."""
DONE = (0, 3, 4)
"""VALID, INVALID and INCONCLUSIVE campaigns are campaigns."""


REFERENCE = [
    word
    for parameter in (
        *("ttft.percent=[50]", "capacity.ttft_p99_ms=1000", "memory-pressure.ttft_p99_ms=20000"),
        *("search.longer=0", "search.resolution=0.3"),
    )
    for word in ("--param", parameter)
] + ["--set", "step_base=4ms", "--set", "step_per_request=100us", "--set", "prefill_per_token=8us"]
"""An engine some times quicker than the testbed, and searches as brief as those of vLLM."""
DECLARED = [word for key in ("model_loaded", "recovery_ready") for word in ("--declare", key)]
"""What is so by how this script starts and stops the engines. The rest is for whoever runs it to say."""


def carry_out(out: Path, name: str, arguments: Sequence[str], cores: set[int] | None = None) -> int:
    """Test, and copy the reports. The exit code of `inferometer test`, which keeps to these cores."""
    runs = out / "runs" / name
    code = subprocess.call(
        [".venv/bin/inferometer", "test", *arguments, "--name", name, "--out", str(runs)],
        cwd=ROOT,
        preexec_fn=None if cores is None else lambda: os.sched_setaffinity(0, cores),
    )
    latest = max((ROOT / runs).glob("*"), default=None, key=lambda path: path.name)
    if latest is not None:
        (ROOT / out / name).mkdir(parents=True, exist_ok=True)
        for report in REPORTS:
            shutil.copy(latest / report, ROOT / out / name / report)
    return code


def reference(out: Path) -> int:
    """The ten tests and the cold start."""
    return carry_out(out, "reference", ["all", "cold-start", "--quick", *REFERENCE, *DECLARED])


def vllm(out: Path) -> int:
    """The ten tests, with vLLM started anew for each state of its prefix cache."""
    port = free_port()
    (ROOT / SERVING).mkdir(parents=True, exist_ok=True)
    plan = f"{SERVING}/plan.yaml"
    (ROOT / plan).write_text(yaml.safe_dump(_plan(port), sort_keys=False))
    try:
        subprocess.check_call(_start(port, "--no-enable-prefix-caching"), cwd=ROOT)
        arguments = ["all", "--plan", plan, "--quick", "--i-own-this-system", *DECLARED]
        return carry_out(out, "vllm", arguments, halves()[1])
    finally:
        subprocess.call([PYTHON, "-m", "scripts.engines.serve", "stop", str(port), SERVING], cwd=ROOT)


def _start(port: int, *flags: str) -> list[str]:
    return [PYTHON, "-m", "scripts.engines.serve", "vllm", str(port), SERVING, *KV_CACHE, *flags]


def _plan(port: int) -> dict[str, object]:
    def way(*flags: str) -> dict[str, str]:
        return {"command": shlex.join(_start(port, *flags))}

    version = next((ENGINES / "vllm").glob("lib/python*/site-packages/vllm-*.dist-info"), None)
    return {
        "target": {"url": f"http://127.0.0.1:{port}", "model": "tiny"},
        "tokenizer": {"name": str(MODEL.relative_to(ROOT))},
        "sut": {
            "boundary": "engine",
            "software": "vLLM"
            if version is None
            else version.name.removesuffix(".dist-info").replace("-", " "),
            "model_version": "random weights",
            "accelerator": "cpu",
            "accelerator_count": 0,
            "prefix_caching": "disabled",
            "guardrails": {"input_filter": False, "output_filter": False},
        },
        "tests": {
            # Two cores share the engine and the client: an hour of searches would say no more about either.
            "search": {
                "level_s": 5,
                "least_requests": 12,
                "pilot_requests": 64,
                "pilot_concurrency": 16,
                "longer": 0,
                "resolution": 0.3,
            },
            "ttft": {"percent": [50], "requests": 60},
            "itl": {"percent": [50], "requests": 50},
            "fairness": {"requests_per_class": 5},
            "prefix-cache": {"requests": 40, "percent": 80},
            "capacity": {"ttft_p99_ms": 5000, "maximum": 32},
            "memory-pressure": {
                "input_tokens": 1024,
                "output_tokens": 64,
                "ttft_p99_ms": 20_000,
                "initial": 4,
                "maximum": 32,
            },
            "long-context": {"lengths": [512, 1024, 2048, 4096]},
            "guardrail": {"configurations": ["baseline"]},
        },
        "switch": {
            "prefix_cache": {
                "disabled": way("--no-enable-prefix-caching"),
                "enabled": way("--enable-prefix-caching"),
            },
            "guardrails": {"baseline": {"command": "true"}},
        },
    }


CAMPAIGNS = {"reference": reference, "vllm": vllm}


def main(argv: list[str]) -> int:
    """Each campaign that was named, or all; 1 if one did not come to its end."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", choices=[[], *CAMPAIGNS], metavar="NAME", help=", ".join(CAMPAIGNS)
    )
    parser.add_argument("--out", type=Path, default=Path("runs/campaign"))
    given = parser.parse_args(argv)
    codes = [CAMPAIGNS[name](given.out) for name in given.names or CAMPAIGNS]
    return 0 if all(code in DONE for code in codes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
