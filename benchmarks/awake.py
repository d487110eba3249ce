"""What it is worth to keep the cores awake: `python -m benchmarks.awake [PAIRS]`, as root.

In turns, the embedded reference server is measured at 20 requests/s for 15 s with cores that may sleep and with cores kept
awake (scripts/awake.py). Printed are P50 and P99 of the lateness of its requests, and the median of the ratios.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile

from benchmarks import instrument
from scripts.awake import kept_awake

LOAD = ("--rate", "20", "--duration", "15s", "--warmup", "0", "--seed", "1", *instrument.COUNTING)


def lateness_ms(*further: str) -> tuple[float, float]:
    """P50 and P99 of a run, with these flags too."""
    with tempfile.TemporaryDirectory(prefix="inferometer-awake-") as out:
        command = [str(instrument.COMMAND), "run", *LOAD, *further, "--out", out, "--json", "--quiet"]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in instrument.JUDGED:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    lateness = json.loads(done.stdout)["load"]["lateness_ms"]
    return lateness["p50"], lateness["p99"]


def main(pairs: int) -> None:
    """Prints a line a pair."""
    ratios = []
    for _ in range(pairs):
        p50, p99 = lateness_ms()
        with kept_awake() as awake:
            if not awake:
                sys.exit("cannot keep the cores awake: run this as root, on Linux")
            awake_p50, awake_p99 = lateness_ms()
        ratios.append(awake_p99 / p99)
        print(
            f"P50 {p50:.3f} and {awake_p50:.3f} ms, P99 {p99:.3f} and {awake_p99:.3f} ms, ratio {ratios[-1]:.2f}",
            flush=True,
        )
    print(f"P99 of lateness, awake to asleep: median {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
