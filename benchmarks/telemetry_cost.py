"""What sampling the machine beside a run costs it: `python -m benchmarks.telemetry_cost [PAIRS]`.

In turns, the embedded reference server is measured at 20 requests/s for 15 s without and with `--host-telemetry`, at its usual
second between samples. Printed are P50 and P99 of the lateness of its requests, and the median of the ratios. Which of the two
comes first changes from pair to pair.
"""

from __future__ import annotations

import statistics
import sys

from benchmarks.awake import lateness_ms


def main(pairs: int) -> None:
    """Prints a line a pair."""
    ratios = []
    for number in range(pairs):
        if number % 2:
            sampled, alone = lateness_ms("--host-telemetry"), lateness_ms()
        else:
            alone, sampled = lateness_ms(), lateness_ms("--host-telemetry")
        ratios.append(sampled[1] / alone[1])
        print(
            f"without P50 {alone[0]:.3f}, P99 {alone[1]:.3f} ms; with P50 {sampled[0]:.3f}, P99 {sampled[1]:.3f} ms; "
            f"ratio of P99 {ratios[-1]:.2f}",
            flush=True,
        )
    print(
        f"P99 of lateness, with to without: median {statistics.median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
