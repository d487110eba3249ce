"""Draft 5.2.4.2, batch utilisation: the share of the engine's largest batch that was in use.

    mean of the running-requests gauge, from the first measured request to the last / largest batch

The largest batch is declared (`throughput.max_batch`, such as vLLM's `max_num_seqs`) or the reference engine's own setting: no
engine exposes it. A gauge above it is a wrong declaration, and no share comes of it. What runs at a compound system is tasks.
"""

from __future__ import annotations

from inferometer.documents.note import Fact, Note
from inferometer.documents.summary import Summary
from inferometer.procedures.results import Value
from inferometer.procedures.setup import Setup


def batch_utilisation(setup: Setup, summary: Summary | None) -> Value:
    """The share in use during a run, in per cent; None with the reason where it is not known."""
    if setup.plan.compound:
        note = Note("batches_inside_a_compound")
        return Value("batch_utilisation", "Batch utilisation", None, "%", None, note, capacity=True)
    share, note = _share(setup.tests.throughput.max_batch or setup.max_batch, summary)
    return Value("batch_utilisation", "Batch utilisation", share, "%", None, note, capacity=True)


def _share(most: int | None, summary: Summary | None) -> tuple[float | None, Note]:
    if most is None:
        return None, Note("batch_size_unknown")
    running = None if summary is None or summary.server is None else summary.server.running
    if running is None:
        return None, Note("running_not_scraped")
    facts: dict[str, Fact] = {"running": running.mean, "peak": running.max, "max_batch": most}
    if running.max > most:
        return None, Note("running_above_batch", facts, capacity=True)
    return 100.0 * running.mean / most, Note("running_of_batch", facts, capacity=True)
