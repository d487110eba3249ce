"""`python -m fuzz [TARGET ...]`: fuzz with the coverage of the code as the guide (Atheris, which is libFuzzer for Python).

    python -m fuzz --seconds 3600            an hour together, from another seed each time
    python -m fuzz --runs 4000 --seed 1      the same inputs each time, at most --seconds together

What is found lies in fuzz/found/TARGET/; the exit code is 1 then. Inputs that reached new code are kept in
fuzz/found/TARGET/corpus for the next time. README.md says what to do with a finding.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
CORPUS = HERE / "corpus"
FOUND = HERE / "found"
TARGETS = (
    "sse", "http_response", "http2_response", "http_request", "answer", "exposition", "trace", "plan", "server", "dataset",
    "prompts", "workload", "tokenizer", "sealed", "journal", "certificate", "power", "history",
    "websocket", "grpc", "agent_sessions",
)  # fmt: skip
LONGEST_INPUT = 4096
LONGEST_TABLE = 16_384
"""Of a table of ours, whose columns alone take more than the other inputs."""
TABLES = ("sealed", "journal", "workload")
LONGEST_S = 20
"""An input that takes longer is a finding."""
MOST_MEMORY_MIB = 3072
DONE = re.compile(rb"stat::number_of_executed_units: +(\d+)")
COVERAGE = re.compile(rb"cov: (\d+)")


def fuzz(name: str, seconds: int, runs: int, seed: int) -> bool:
    """Fuzz one target and say what it came to; whether nothing was found."""
    found = FOUND / name
    (found / "corpus").mkdir(parents=True, exist_ok=True)
    before = set(found.iterdir())
    settings = {
        "max_total_time": seconds,
        "runs": runs,
        "seed": seed,
        "max_len": LONGEST_TABLE if name in TABLES else LONGEST_INPUT,
        "timeout": LONGEST_S,
        "rss_limit_mb": MOST_MEMORY_MIB,
        "artifact_prefix": f"{found}/",
        "print_final_stats": 1,
    }
    words = [f"-{key}={value}" for key, value in settings.items()]
    log, began = found / "log.txt", time.monotonic()
    with log.open("wb") as file, TemporaryDirectory() as nothing, TemporaryDirectory() as scratch:
        # New inputs go to the first folder. A run that is to be repeatable begins with the repository's alone and keeps none.
        kept = nothing if seed else str(found / "corpus")
        command = [sys.executable, "-m", "fuzz.worker", name, *words, kept, str(CORPUS / name)]
        # libFuzzer ends the process without a farewell, so that the files it read from are left to this one.
        environ = os.environ | {"PYTHONHASHSEED": "0", "TMPDIR": scratch}
        code = subprocess.run(command, cwd=HERE.parent, env=environ, stdout=file, stderr=file).returncode
    text = log.read_bytes()
    covered = COVERAGE.findall(text)
    done = DONE.search(text)
    findings = sorted(path.name for path in set(found.iterdir()) - before - {log})
    print(
        f"{name:14} {int(done[1]) if done else 0:>9} inputs {time.monotonic() - began:>6.0f} s"
        f" {int(covered[-1]) if covered else 0:>6} edges  {', '.join(findings) or 'nothing found'}",
        flush=True,
    )
    if code and not findings:
        print(f"  ended with {code}: see {log}", file=sys.stderr)
    return not code


def main(argv: Sequence[str]) -> int:
    """The exit code: 1 if something was found, 2 where there is no Atheris."""
    parser = argparse.ArgumentParser(prog="python -m fuzz")
    parser.add_argument("targets", nargs="*", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=int, default=3600, help="for all targets together")
    parser.add_argument(
        "--runs", type=int, default=-1, help="inputs for each target; -1: as many as there is time for"
    )
    parser.add_argument("--seed", type=int, default=0, help="0: another one each time")
    given = parser.parse_args(argv)
    targets = given.targets or TARGETS
    if unknown := set(targets) - set(TARGETS):
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    if importlib.util.find_spec("atheris") is None:
        print("Atheris is not installed: it has packages for Linux on x86-64 alone", file=sys.stderr)
        return 2
    end = time.monotonic() + given.seconds
    good = True
    for number, name in enumerate(targets):
        left = max(1, round((end - time.monotonic()) / (len(targets) - number)))
        good = fuzz(name, left, given.runs, given.seed) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
