"""The standing trial: defects whose effect is known, and runs in which nothing is wrong: what does the verdict say of them?

| part        | what it plants                                                                            |
| ----------- | ----------------------------------------------------------------------------------------- |
| delivery.py | proxies that buffer                                                                       |
| load.py     | biased, clumped and dropped arrivals; servers that drift; overload; the first wave        |
| client.py   | throttled and late clients, workers that die, clocks that step                            |
| lies.py     | usage, lengths and finish reasons that are wrong, truncation, tokenizers, caches          |
| unseen.py   | tokens that are counted and show nothing, before the first text or after the last         |
| samples.py  | too few samples, outliers, two defects at once                                            |
| hosts.py    | load hosts: late, dead, of unknown clocks, with shares lost or sent twice; lies to one     |
| replicas.py | replicas of different speed behind kept connections                                       |
| agents.py   | dropped subagents, ignored delays, other branches' answers, sessions that do not end      |
| tasks.py    | judges, commands, results, spans and usage of tasks that are wrong; cached answers         |
| gates.py    | regressions that `compare` has to see                                                     |
| clean.py    | nothing                                                                                   |

Everything is drawn from seeds. A defect that bends a headline by more than 5 % is never VALID; of the clean runs at most one in
a hundred is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.figure import Figure, Note, at_least, at_most
from benchmarks.loads import Bench
from benchmarks.trial import (
    agents,
    client,
    delivery,
    gates,
    hosts,
    lies,
    load,
    replicas,
    samples,
    tasks,
    unseen,
)
from benchmarks.trial.clean import cleans
from benchmarks.trial.defects import Defect, Found

CLEAN_SHARE = 0.01


def defects() -> Iterator[Defect]:
    """All that are planted."""
    for part in (lies, unseen, client, hosts, load, delivery, samples, replicas, agents, tasks, gates):
        yield from part.defects()


def found(defect: Defect) -> Found:
    """The defect, planted and judged."""
    return Found(defect, defect.carry_out())


@dataclass(frozen=True)
class Trial:
    """What was planted, and clean runs: name, verdict and reasons of each."""

    planted: tuple[Found, ...]
    clean: tuple[tuple[str, str, tuple[str, ...]], ...]

    @property
    def bending(self) -> tuple[Found, ...]:
        """The defects that bend a headline by more than MUCH."""
        return tuple(one for one in self.planted if one.bends)

    @property
    def believed(self) -> tuple[Found, ...]:
        """Those of them that the instrument vouches for: none is right."""
        return tuple(one for one in self.bending if one.believed)

    @property
    def refused(self) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
        """The clean runs that it does not vouch for."""
        return tuple(one for one in self.clean if one[1] != "VALID")


def held(*, quick: bool = False) -> Trial:
    """All of it, or the short form."""
    planted = tuple(found(one) for one in defects() if one.quick or not quick)
    clean = tuple((one.name, *one.carry_out()) for one in cleans() if one.quick or not quick)
    return Trial(planted, clean)


def effect(one: Found) -> str:
    """What it bends, and by how much."""
    if not one.bends:
        return "none by more than 5 %"
    times = 1 + one.bent.share
    share = f"{times:.1f} times" if times > 2 else f"{one.bent.share:+.0%}".replace("%", " %")
    return f"{one.bent.headline} {share}"


def status(one: Found) -> str:
    """The verdict, what else is said, and whether that is right."""
    noted = ", noted" if one.case.notes and one.case.status == "VALID" else ""
    return one.case.status + noted + (" (wrong)" if one.bends and one.believed else "")


def trial(bench: Bench) -> Iterator[Figure | Note]:
    """All defects and all clean runs, or those of the short form."""
    done = held(quick=bench.quick)
    for one in done.planted:
        said = f"{effect(one)} | {status(one)} | {', '.join(one.case.reasons)}"
        yield Note(f"{one.defect.family} | {one.defect.name}", said)
    for name, said, reasons in done.refused:
        yield Note(f"clean | {name}", f"{said} | {', '.join(reasons)}")
    bending = done.bending
    caught = len(bending) - len(done.believed)
    by_own = sum(not one.believed and (one.expected or not one.defect.expects) for one in bending)
    yield Figure("defects planted", len(done.planted), digits=0)
    yield Figure("of these bend a headline by more than 5 %", len(bending), digits=0)
    yield Figure("of these not VALID", 100 * caught / max(1, len(bending)), "%", at_least(100), 1)
    yield Figure("by a check whose matter it is", 100 * by_own / max(1, len(bending)), "%", digits=1)
    share = 100 * len(done.refused) / max(1, len(done.clean))
    yield Figure("clean runs", len(done.clean), digits=0)
    yield Figure("of these not VALID", share, "%", at_most(100 * CLEAN_SHARE), 2)


__all__ = ["Trial", "cleans", "defects", "effect", "found", "held", "status", "trial"]
