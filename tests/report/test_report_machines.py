"""The rows about a machine: what an energy is of."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from inferometer.measure.energy_figure import EnergyFigure
from inferometer.measure.machine_figures import MachineSeen
from inferometer.report.run.machines import figures
from inferometer.telemetry.machines.tracks import THIS_MACHINE

PLUG = EnergyFigure(
    meter="http",
    scope="machine",
    devices=("plug:81",),
    duration_s=10.0,
    method="power",
    joules=500.0,
    mean_w=50.0,
    valid=True,
)


def rows_of(*energy: EnergyFigure) -> list[tuple[str, str]]:
    """Of a machine with these."""
    empty = MachineSeen(
        THIS_MACHINE, "inferometer", 9, 0, 1.0, None, None, (), None, None, (), (), (), (), energy
    )
    return figures(empty)


@given(kinds=st.lists(st.sampled_from(["http", "command"]), max_size=4))
def test_no_plug_is_the_whole_machine(kinds: list[str]) -> None:
    """Law: each wall meter has a row of its own name and scope, and several say that none is of all."""
    names = [kind + (f"#{number}" if number else "") for number, kind in enumerate(kinds)]
    rows = rows_of(*(msgspec.structs.replace(PLUG, meter=name) for name in names))
    heads = [head.replace("\\", "") for head, _ in rows if head.startswith("Energy by ")]
    assert len(set(heads)) == len(names)
    for name, head in zip(names, heads, strict=True):
        assert head.startswith(f"Energy by {name}, everything behind ")
    together = [(head, words) for head, words in rows if head.startswith("Of ")]
    assert len(together) == (len(names) > 1)
    assert all("not added up" in words for _, words in together)


def test_the_meters_of_a_platform_are_no_plugs() -> None:
    """Law: what is behind no plug is not said to be."""
    psys = msgspec.structs.replace(PLUG, meter="rapl", devices=("psys",))
    gpus = msgspec.structs.replace(PLUG, meter="nvml", scope="accelerator", devices=("0", "1"))
    heads = [head for head, _ in rows_of(psys, gpus)]
    assert "Energy by rapl, the platform (psys)" in heads
    assert "Energy by nvml, accelerators (2 devices)" in heads
    assert not any(head.startswith("Of ") for head in heads)
