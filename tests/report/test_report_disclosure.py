"""What the reports say of the instrument itself."""

from __future__ import annotations

from msgspec.structs import replace

from inferometer.documents.summary import Summary
from inferometer.measure.instrument import Loss
from inferometer.report.run import rows


def test_lateness_is_shown_by_cause(valid: Summary, empty: Summary) -> None:
    """Each cause with its share of all lateness; a dash where nothing was sent."""
    words = dict(rows.client(valid))["Lateness by cause"]
    assert [part.split(" %")[0].split()[-1] for part in words.replace("\u202f", " ").split("; ")] == [
        "75", "20", "5",
    ]  # fmt: skip
    assert dict(rows.client(empty))["Lateness by cause"] == "\u2013"


def test_every_worker_is_shown_and_who_died(valid: Summary) -> None:
    """CPU and waiting for a core of each, and for a dead one its share, what is kept and what is lost."""
    dead = Loss(worker=1, phase=1, exit_code=-9, sent=9, load_share=0.5, requests=None, kept=7, lost=2)
    instrument = replace(valid.instrument, cpu_fraction=(0.5, None), dead_workers=(dead,))
    found = dict(rows.client(replace(valid, instrument=instrument)))
    assert found["CPU of each worker"] == "50\u202f%, \u2013"
    assert (
        "worker 1 in the measurement (exit code \u22129): 50\u202f% of the load" in found["Workers that died"]
    )
    assert "7 requests on record, 2 lost" in found["Workers that died"]
