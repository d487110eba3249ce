"""The words of a comparison of campaigns: what its own items of the checklist found, what bars a figure, the conclusion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from inferometer.documents.campaign_comparison import (
    Bar,
    CampaignContrast,
    CampaignFigure,
    CampaignMethod,
    CampaignSide,
    ComparedCampaign,
)
from inferometer.documents.comparison import ComparedLoads, Estimate, Item, Outcome, WordedItem
from inferometer.metrics.statistics import Interval
from inferometer.report.campaign.overview import unchecked
from inferometer.report.campaign.purposes import PURPOSES
from inferometer.report.comparison import words
from inferometer.report.figures import clean, figure

DECIDES = (
    "A figure is better or worse only if a t-test on the campaigns' values rejects after Holm's correction (on the differences "
    "of pairs where campaigns are paired by seed, else Welch's), and the difference exceeds threshold and noise floor. The "
    "floor of a figure found among levels is at least the distance of neighbouring levels. With a threshold, no difference is "
    "claimed only where the interval holds no change for the worse beyond it; a difference that the threshold alone holds back "
    "is tolerated."
)
MULTIPLICITY = (
    "Holm's correction over the deciding figures of all sides, and apart from them over all others: the chance of any false "
    "difference among the deciding figures stays below 5 %. Intervals are not corrected."
)
BARRED: dict[Bar, str] = {
    "invalid": "the test is INVALID in a campaign",
    "partial": "the test did not come to its end in a campaign",
    "bound": "the test found only a bound of it",
    "load": "it was measured at absolute loads that differ",
    "parameters": "the test's parameters differ",
    "labels": "it is of another kind on the sides",
    "tokens": "tokens are counted in different ways",
    "missing": "not every campaign has it",
}

_ADVICE = {
    "workload": "Give every side the same plan and --seed; --repeats pairs by seed.",
    "same_time": "Carry the sides' campaigns out in turn, and say --shared-resources if the systems share any.",
    "noise": "Carry the A/A campaigns out with the baseline's own plan.",
    "one_system": "Put the campaigns of each system on a separate side, and declare the same system in all of them.",
}
"""Where that of a comparison of runs names flags that campaigns have not, or runs."""
_SAME_LOAD = (
    "Give absolute rates on all sides (--param ttft.rates=[...], or tradeoff.capacity_rate), or compare what depends on no "
    "such load: --metric throughput, --metric capacity."
)
_UNITS = {"rate": "/s", "concurrency": " in flight"}
"""Behind what a load counts."""


def title_of(item: Item) -> str:
    """What an item of the checklist is about."""
    return (
        "The campaigns of each side are of one system"
        if item.code == "one_system"
        else words.ITEMS[item.code]
    )


def advice(item: Item) -> str | None:
    """What to do about an item of the checklist; None: nothing."""
    if item.facts.loads:
        return _SAME_LOAD
    usual = words.advice(item)
    return None if usual is None else _ADVICE.get(item.code, usual)


def finding(item: Item) -> str:
    """What was found about an item of the checklist."""
    keys = words.listed(item.facts.keys or ())
    match item.code:
        case "workload" if item.facts.why == "plans":
            plans = "agree" if item.status == "declared" else "differ"
            return f"The seeds agree, and the plans {plans}. How many requests a search sends follows from the system."
        case "load" if item.facts.loads:
            found = "; ".join(at_loads(one) for one in item.facts.loads)
            return f"The parameters are the same, and the absolute loads differ. {found}. Figures at these loads have no claim."
        case "one_system":
            return words.within(item, "campaigns")
        case "size":
            return "The same." if item.status == "satisfied" else "Some are quick, and some of full size."
        case "tests":
            return f"Not in every campaign: {keys}." if keys else "The same."
    return words.finding(item)


def at_loads(one: ComparedLoads, labels: Sequence[str] = ()) -> str:
    """The loads of a test's level on the sides: `ttft at 50 %: A 5.185, B 2.045 requests/s`. `labels`: of the sides, where they
    are not the first letters."""
    level = "" if one.percent is None else f" at {figure(one.percent, trim=True)} %"
    sides = ", ".join(
        f"{labels[at] if labels else words.label(at)} {figure(load)}" for at, load in enumerate(one.values)
    )
    return f"{clean(one.test)}{level}: {sides} {one.of}{_UNITS[one.measure]}"


def title(one: CampaignFigure) -> str:
    """A figure with its test: `throughput: Max Output Throughput`."""
    return f"{clean(one.procedure)}: {clean(one.title)}"


def change(one: CampaignFigure, share: float | None) -> str:
    """A change with its sign and unit: per cent of the baseline's mean, or percentage points."""
    text = words.percent(share)
    return text.replace(" %", " points") if one.change == "points" else text


def interval(one: CampaignFigure) -> Interval | None:
    """The interval beside a change: of the test that decides, or of single campaigns their own."""
    return words.deciding_interval(one) or one.own


def held(one: CampaignFigure) -> str:
    """Why nothing is claimed of a figure, in words; empty: nothing speaks against it."""
    if one.barred:
        return "; ".join(
            f"{BARRED[bar]} ({_against(one.loads)})" if bar == "load" and one.loads else BARRED[bar]
            for bar in one.barred
        )
    return words.held(one.held)


def _against(loads: ComparedLoads) -> str:
    """The two loads of a figure: `5.185 requests/s of the baseline, 2.045 of this side`."""
    baseline, side = map(figure, loads.values)
    return f"{baseline} {loads.of}{_UNITS[loads.measure]} of the baseline, {side} of this side"


def amount(estimate: Estimate | None) -> str:
    """A side's mean, with half its interval over campaigns."""
    if estimate is None:
        return "-"
    mean = figure(estimate.mean, trim=True)
    if estimate.ci95 is None:
        return mean
    return f"{mean} \u00b1{figure((estimate.ci95[1] - estimate.ci95[0]) / 2, 2, trim=True)}"


def side_line(label: str, name: str, campaigns: Sequence[ComparedCampaign]) -> str:
    """A side in one line: its letter, its name, its campaigns."""
    number = len(campaigns)
    count = f"{number} campaign{'' if number == 1 else 's'}"
    by = Counter(one.status for one in campaigns)
    states = ", ".join(f"{by[one]} {one}" for one in ("VALID", "INCONCLUSIVE", "INVALID") if by[one])
    marks = "".join(
        f"{word}, "
        for word, holds in (
            ("SIMULATED", any(one.simulated for one in campaigns)),
            ("QUICK", any(one.quick for one in campaigns)),
        )
        if holds
    )
    seeds = ", ".join(str(one.seed) for one in campaigns)
    return f"{label}: {clean(name)}, {count} ({marks}{states}; seeds {seeds})"


def cost(side: CampaignSide) -> str:
    """What a side costs, or nothing."""
    parts = [
        f"${side.price_hour:g} an hour" if side.price_hour is not None else "",
        f"{side.tokens_per_dollar:,.0f} tokens a dollar" if side.tokens_per_dollar is not None else "",
    ]
    return ", ".join(filter(None, parts))


def reservations(label: str, campaigns: Sequence[ComparedCampaign]) -> list[str]:
    """Tests of a side that are not VALID, or partial, with why and how often; and campaigns that are unchecked."""
    found: dict[tuple[str, str], int] = {}
    for one in campaigns:
        for test in one.tests:
            if test.status == "VALID" and not test.partial:
                continue
            why = ", ".join(dict.fromkeys(test.reasons))
            said = f"{test.status}{f' by {why}' if why else ''}{', ended early' if test.partial else ''}"
            found[test.test, said] = found.get((test.test, said), 0) + 1
    unsure = [
        f"{label}, {clean(one.id)}: {unchecked(one.unchecked)}"
        for one in campaigns
        if one.unchecked is not None
    ]
    tests = [
        f"{label}, {clean(test)}: {clean(said)} ({count} of {len(campaigns)})"
        for (test, said), count in found.items()
    ]
    return [*unsure, *tests]


def conclusion(
    outcome: Outcome,
    method: CampaignMethod,
    checklist: Sequence[WordedItem],
    contrasts: Sequence[CampaignContrast],
) -> str:
    """The result of a comparison in one paragraph."""
    forbidding = [one for one in checklist if one.forbids]
    if forbidding:
        parts = [f"{one.title}: {one.message} {one.advice}" for one in forbidding]
        return "The sides must not be compared. " + " ".join(parts)
    if outcome == "not_comparable":
        return "The campaigns have no figure of a test in common that can be compared."
    if outcome == "invalid":
        named = "; ".join(f"{clean(test)} of {clean(id_)}" for id_, test in method.invalid)
        return (
            f"No claim: INVALID: {named}. These numbers cannot be believed. The campaign's own report says why: mend that, and "
            "measure again, or name other figures with --metric."
        )
    least = method.least_campaigns
    if method.campaigns < least:
        number = f"{method.campaigns} campaign{'' if method.campaigns == 1 else 's'}"
        wanted = f"No claim: {number} a side, and a claim needs {least} (draft 6.3): `inferometer test --repeats {least}`."
        return " ".join([wanted, *_hints(contrasts), *_elsewhere(contrasts)])
    return _claims(contrasts)


def _hints(contrasts: Sequence[CampaignContrast]) -> list[str]:
    """What single campaigns hint at, by their headlines' own intervals."""
    found = []
    for contrast in contrasts:
        deciding = [one for one in contrast.figures if one.deciding and one.loads is None]
        known = [one for one in deciding if one.own is not None]
        apart = [one for one in known if one.own is not None and not one.own[0] <= 0 <= one.own[1]]
        if apart:
            names = words.joined([f"{title(one)} ({change(one, one.relative)})" for one in apart])
            found.append(f"By the values' own intervals, {contrast.side} differs from A in {names}.")
        elif known:
            found.append(
                f"By the values' own intervals, {contrast.side} differs from A in nothing that decides."
            )
        without = len(deciding) - len(known)
        if without:
            found.append(f"{without} of {len(deciding)} deciding figures have no interval of their own.")
    return [*found, "Those know nothing of how campaigns of one system differ."] if found else []


def _claims(contrasts: Sequence[CampaignContrast]) -> str:
    claims = []
    for contrast in contrasts:
        by: dict[str, list[CampaignFigure]] = {}
        for one in (one for one in contrast.figures if one.deciding):
            word = words.TOLERATED if words.tolerated(one.verdict, one.held) else one.verdict
            by.setdefault(word, []).append(one)
        parts = [
            f"{verdict} in {words.joined([_claim(one) for one in by[verdict]])}"
            for verdict in ("worse", "better")
            if verdict in by
        ]
        if words.TOLERATED in by:
            small = words.joined([_claim(one) for one in by[words.TOLERATED]])
            parts.append(f"a difference within the threshold in {small}")
        for verdict, said in (
            ("no_difference", "no difference shown in"),
            ("no_claim", "no claim about"),
            ("not_comparable", "not compared:"),
        ):
            if verdict in by:
                parts.append(f"{said} {words.joined([title(one) for one in by[verdict]])}")
        claims.append(f"{contrast.side} against A: {'; '.join(parts) or 'nothing decides'}.")
    return " ".join([*claims, *_elsewhere(contrasts), *_missed(contrasts)])


def _elsewhere(contrasts: Iterable[CampaignContrast]) -> list[str]:
    """Which deciding figures were measured at other loads, and what to do about it."""
    found = dict.fromkeys(
        at_loads(one.loads, ("A", contrast.side))
        for contrast in contrasts
        for one in contrast.figures
        if one.deciding and one.loads is not None
    )
    return [f"Measured at absolute loads that differ: {'; '.join(found)}. {_SAME_LOAD}"] if found else []


def _claim(one: CampaignFigure) -> str:
    return f"{title(one)} ({change(one, one.relative)}, {words.span(words.deciding_interval(one))})"


def _missed(contrasts: Iterable[CampaignContrast]) -> list[str]:
    """What could have been there without being seen."""
    seen = {
        title(one): f"{words.percent(max(one.detectable, one.floor.value if one.floor else 0.0)).lstrip('+')}"
        for contrast in contrasts
        for one in contrast.figures
        if one.deciding and one.verdict in ("no_difference", "no_claim") and one.detectable
        if one.loads is None
        if not words.tolerated(one.verdict, one.held)
    }
    parts = [f"{least} of {name}" for name, least in seen.items()]
    return [f"What could have been seen four times out of five: {words.joined(parts)}."] if parts else []


def moving(names: Sequence[str]) -> str:
    """A warning: the system does not hold still."""
    listed = words.listed(names)
    return f"A/A campaigns differ beyond chance in {listed}: the system does not hold still, and no comparison is safe."


def heading(test: str) -> str:
    """The title of a test of the draft."""
    return PURPOSES[test].title if test in PURPOSES else clean(test)
