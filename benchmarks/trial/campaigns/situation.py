"""A planted situation: a campaign of which the truth is known, and what its verdicts may say.

| planted       | a statement is false where                                                                     |
| ------------- | ---------------------------------------------------------------------------------------------- |
| a truth       | a test is VALID, its headline is farther from the truth than `near`, a share of it, or `apart`,  |
|               | and its interval leaves the truth out                                                          |
| no truth      | a test, or the campaign, is VALID                                                              |
| `says`        | all tests are VALID, and none of these notes is among what they say                            |
| `never`       | one of these notes is among what the tests say                                                 |

Nothing false is said of a headline that is not VALID; whether the reason is `named` is counted apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from inferometer.documents.campaign import Campaign, ProcedureDocument
from inferometer.documents.results import Interval
from inferometer.report.campaign.titles import headline

NEAR = 0.1
"""A headline may be off by so much: chance of runs as short as these has its part in it."""
CAMPAIGN = "campaign"
"""In the place of a test: the verdict of all of them."""


@dataclass(frozen=True, slots=True)
class Truth:
    """What a headline is rightly; None: no answer is right. `apart`: in its own unit, where that is more than the share."""

    value: float | None
    near: float = NEAR
    apart: float = 0.0

    def holds(self, said: float) -> bool:
        """Whether a headline says this."""
        return self.value is not None and abs(said - self.value) <= max(
            self.near * abs(self.value), self.apart
        )


NO_TRUTH = Truth(None)
Truths = Mapping[str, Truth]
"""By test, or CAMPAIGN."""


@dataclass(frozen=True, slots=True)
class Statement:
    """What a campaign says of one test: verdict, headline, and the codes that decided. `notes`: the codes of its notes."""

    test: str
    status: str
    value: float | None
    interval: Interval | None
    codes: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Situation:
    """`truths`: worked out after the campaign. `named`: codes of reasons, of which one is about what was planted; `clean`:
    nothing is wrong, so that every test has to be VALID. `quick`: of the short form."""

    name: str
    family: str
    carry_out: Callable[[], tuple[Statement, ...]]
    truths: Callable[[], Truths]
    named: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    clean: bool = False
    quick: bool = False


@dataclass(frozen=True)
class Outcome:
    """A situation and what was said of it."""

    situation: Situation
    statements: tuple[Statement, ...]

    @cached_property
    def truths(self) -> Truths:
        """What is right."""
        return self.situation.truths()

    def false(self, one: Statement) -> bool:
        """Whether this statement is not true."""
        situation = self.situation
        if one.test == CAMPAIGN:
            return one.status == "VALID" and (self.truths.get(CAMPAIGN) == NO_TRUTH or self._unsaid)
        if set(situation.never) & set(one.notes):
            return True
        truth = self.truths.get(one.test)
        if one.status != "VALID" or truth is None:
            return False
        within = (
            one.interval is not None
            and truth.value is not None
            and one.interval[0] <= truth.value <= one.interval[1]
        )
        return one.value is None or not (within or truth.holds(one.value))

    @property
    def _unsaid(self) -> bool:
        """Whether what has to be said is not."""
        said = {code for one in self.statements for code in one.notes}
        return bool(self.situation.says) and not said & set(self.situation.says)

    @property
    def false_statements(self) -> tuple[Statement, ...]:
        """Those that are not true."""
        return tuple(one for one in self.statements if self.false(one))

    @property
    def strict(self) -> bool:
        """Whether a clean campaign is not believed."""
        return self.situation.clean and any(one.status != "VALID" for one in self.statements)

    @property
    def refused(self) -> bool:
        """Whether some of it is not VALID."""
        return any(one.status != "VALID" for one in self.statements)

    @property
    def is_named(self) -> bool:
        """Whether a reason is about what was planted."""
        return any(set(one.codes) & set(self.situation.named) for one in self.statements)


def found(situation: Situation) -> Outcome:
    """The situation, carried out."""
    return Outcome(situation, situation.carry_out())


def statements(document: Campaign) -> tuple[Statement, ...]:
    """What a campaign says: of each test, and of all."""
    reasons = tuple(dict.fromkeys(reason.code for reason in document.verdict.reasons))
    return (
        *map(_of_test, document.tests),
        Statement(CAMPAIGN, document.verdict.status, None, None, reasons),
    )


def _of_test(test: ProcedureDocument) -> Statement:
    first = headline(test)
    value = None if first is None or isinstance(first.value, str | bool | None) else float(first.value)
    notes = (*test.notes, *test.undecided)
    return Statement(
        test.test,
        test.verdict.status,
        value,
        None if first is None else first.ci,
        tuple(dict.fromkeys(_codes(test))),
        tuple(dict.fromkeys(note.code for note in notes)),
    )


def _codes(test: ProcedureDocument) -> Iterator[str]:
    """Of what decided; what a test leaves open by its own codes."""
    for reason in test.verdict.reasons:
        if reason.code == "undecided":
            yield from (note.code for note in test.undecided)
        else:
            yield reason.code
