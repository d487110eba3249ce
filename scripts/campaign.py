"""`make campaign`: the campaigns of docs/examples, on the reference engine and on vLLM, by the plans there.

    python -m scripts.campaign [reference] [grpc] [vllm] [--out DIR]

The runs and the whole report are left in DIR; report.md, minimum.txt and picture.svg are put beside the plan. vLLM keeps to the
first half of the cores, and who measures it to the rest (scripts/engines/serve.py). Where this is run by root, the cores are
kept awake (scripts/awake.py). Its prefix cache is a flag, so the plan
switches it by starting vLLM again; its KV cache is made small, so that one machine can fill it.
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

from inferometer.documents.campaign import CAMPAIGN_SCHEMA, Campaign
from inferometer.documents.part import from_json
from scripts.awake import kept_awake
from scripts.engines.places import ROOT
from scripts.engines.serve import halves
from scripts.picture import first_picture

EXAMPLES = Path("docs/examples")
PYTHON = ".venv/bin/python"
SERVING = ".engines/serving"
"""Relative to the checkout, where all of it runs: a report cites its commands, and is read elsewhere."""
REPORTS = ("report.md", "minimum.txt")
TESTS = {
    "reference": ("all",),
    "grpc": ("ttft",),
    "vllm": ("ttft", "throughput", "itl", "prefix-cache", "long-context"),
}
"""The tests carried out, by example. By gRPC one test shows that the transport stands in no rule's way. vLLM on one core is too
slow for those that need a P99 at each of several levels."""
DONE = (0, 3, 4)
"""VALID, INVALID and INCONCLUSIVE campaigns are campaigns."""

QUICKER = ("step_base=2ms", "step_per_request=50us", "prefill_per_token=12us", "kv_blocks=6000")
"""The reference engine, some times quicker than its preset testbed, with a KV cache of 96,000 tokens."""
SLOWER = ("step_base=14ms", "step_per_request=150us", "prefill_per_token=50us", "kv_blocks=12000")
"""Of the campaign by gRPC: a request takes the client 0.4 ms to hand over, which is to be small against TTFT."""


def carry_out(out: Path, name: str, arguments: Sequence[str], cores: set[int] | None = None) -> int:
    """Test by the plan of an example, and put the reports beside it. The exit code of `inferometer test`, which keeps to these
    cores."""
    runs, plan = out / name, EXAMPLES / name / "plan.yaml"
    code = subprocess.call(
        [".venv/bin/inferometer", "test", *TESTS[name], "--plan", str(plan), *arguments, "--out", str(runs)],
        cwd=ROOT,
        preexec_fn=None if cores is None else lambda: os.sched_setaffinity(0, cores),
    )
    latest = latest_in(ROOT / runs)
    if latest is not None and code in DONE:
        keep(latest, ROOT / EXAMPLES / name)
    return code


def latest_in(runs: Path) -> Path | None:
    """The folder of the latest campaign in a folder of runs, which holds the history's index too."""
    found = (path.parent for path in runs.glob("*/campaign.json"))
    return max(found, default=None, key=lambda path: path.name)


def keep(campaign: Path, example: Path) -> None:
    """The reports of a campaign's folder that the docs show, and its first picture."""
    for report in REPORTS:
        shutil.copy(campaign / report, example / report)
    path = campaign / "campaign.json"
    picture = first_picture(from_json(path.read_bytes(), Campaign, CAMPAIGN_SCHEMA, path.name))
    if picture is not None:
        (example / "picture.svg").write_text(picture)


def settings(of: Sequence[str]) -> list[str]:
    """Settings of the reference engine as words of a command."""
    return [word for setting in of for word in ("--set", setting)]


def reference(out: Path) -> int:
    """On the reference engine, which this command starts."""
    return carry_out(out, "reference", settings(QUICKER))


def grpc(out: Path) -> int:
    """On the reference engine, behind vLLM's gRPC service."""
    return carry_out(out, "grpc", settings(SLOWER))


def vllm(out: Path) -> int:
    """On vLLM, which begins in the state that the plan declares."""
    (ROOT / SERVING).mkdir(parents=True, exist_ok=True)
    plan = yaml.safe_load((ROOT / EXAMPLES / "vllm" / "plan.yaml").read_text())
    start = plan["switch"]["prefix_cache"][plan["sut"]["prefix_caching"]]["command"]
    port = plan["target"]["url"].rpartition(":")[2]
    try:
        subprocess.check_call(shlex.split(start), cwd=ROOT)
        return carry_out(out, "vllm", ["--i-own-this-system"], halves()[1])
    finally:
        subprocess.call([PYTHON, "-m", "scripts.engines.serve", "stop", port, SERVING], cwd=ROOT)


CAMPAIGNS = {"reference": reference, "grpc": grpc, "vllm": vllm}


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
    with kept_awake() as awake:
        print("the cores are kept awake" if awake else "the cores may sleep: only root can keep them awake")
        codes = [CAMPAIGNS[name](given.out) for name in given.names or CAMPAIGNS]
    return 0 if all(code in DONE for code in codes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
