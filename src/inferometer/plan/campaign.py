"""The plan of a campaign: which tests, of which system, with which parameters. Saved as `tests.json`, and can be run again.

A file of it is a plan file with two more parts, `tests` (plan/procedure_parameters.py) and `switch` (plan/switching.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, ValidationError, model_serializer

from inferometer import foreign_json
from inferometer.errors import PlanError, Problem, RecordError
from inferometer.plan import document, wording
from inferometer.plan.campaign_workload import of_workload
from inferometer.plan.document import Document
from inferometer.plan.parse import build
from inferometer.plan.part import Part, Values
from inferometer.plan.procedure_parameters import NAMES, Search, Tests, quickened, searched
from inferometer.plan.rules import faults
from inferometer.plan.saved import resolved
from inferometer.plan.schema import Plan
from inferometer.plan.switching import Switching

SCHEMA: Literal["inferometer/tests/1"] = "inferometer/tests/1"
OWN_SYSTEM = "memory-pressure"
"""The test that pushes a system past its capacity (draft 5.8, 7.4)."""
ALL = tuple(name for name in NAMES.values() if name != "cold-start")
"""The ten tests of draft section 5. A cold start is a mode of its own (draft 4.5.3)."""
ORDER = (
    "throughput",
    "capacity",
    *(name for name in ALL if name not in ("throughput", "capacity")),
    "cold-start",
)
"""What finds 100 % comes before what takes percentages of it."""
MANNER = frozenset({
    "kind", "seed", "prompt_format", "repeatable_prompts", "count_template", "ignore_eos", "min_tokens", "temperature",
    "domain", "language",
})  # fmt: skip
"""Keys of a workload that choose none: how its requests are made and sent, and what is declared of them."""

COMPOUND: Literal["compound"] = "compound"
"""The boundary of a system of several steps (draft 4.1.3)."""

UNUSED_WORKLOAD = Problem(
    "workload",
    "fairness compares classes of its own, and would not offer this workload: leave it out for short and long requests of "
    "Synthetic-Skewed, or give classes in tests.fairness.classes (name, ranges input_tokens and output_tokens, share, "
    "priority)",
)
"""Fairness that was named, with a workload that it would not offer."""


_PARAMETER = re.compile(r"([a-z-]+)\.([a-z0-9_]+)=(.*)")


class EngineChoice(Part):
    """The reference engine in the place of a server: a preset, and settings over it as `key=value`. `system`: the reference
    system of several steps that stands on it, if one does."""

    preset: str = "testbed"
    settings: tuple[str, ...] = ()
    system: str | None = None

    @model_serializer(mode="wrap")
    def _as_before(self, handler: SerializerFunctionWrapHandler) -> Values:
        """Without a system, as it was saved before there were any."""
        values: Values = handler(self)
        if self.system is None:
            values.pop("system", None)
        return values


class Campaign(Part):
    """All of it. `simulated`: in virtual time, on the engine. `own_system`: the person says that it is theirs to push past its
    capacity. `redact`: what a report leaves out."""

    schema_: Annotated[Literal["inferometer/tests/1"], Field(alias="schema")] = SCHEMA
    names: tuple[str, ...]
    quick: bool = False
    simulated: bool = False
    own_system: bool = False
    redact: tuple[Literal["capacity"], ...] = ()
    engine: EngineChoice = EngineChoice()
    plan: Plan = Plan()
    tests: Tests = Tests()
    switch: Switching = Switching()


def campaign(
    names: Sequence[str],
    path: Path | None = None,
    given: Mapping[str, object] | None = None,
    parameters: Sequence[str] = (),
    *,
    environ: Mapping[str, str] | None = None,
    **options: Any,
) -> Campaign:
    """A campaign of these tests (`all`: the ten), from a file, flags over it, and `test.name=value` parameters over both.

    `options` are further members of Campaign. Raises PlanError with every problem found.
    """
    file = Document("") if path is None else document.read(path)
    problems: list[Problem] = []
    chosen = _chosen(names, problems)
    wanted, switched = file.values.pop("tests", {}), file.values.pop("switch", {})
    _override(wanted, parameters, chosen, problems)
    classes = _gives_classes(wanted)
    if options.get("quick") and isinstance(wanted, dict):
        wanted = quickened(wanted)
    tests = _part(Tests, wanted, file, "tests", problems)
    problems += _unread(tests, parameters, chosen)
    switch = _part(Switching, switched, file, "switch", problems)
    plan, more = Plan(), 0
    flags = dict(given or {})
    engine = options.get("engine")
    if isinstance(engine, EngineChoice) and engine.system is not None and not _declares_boundary(file):
        flags["--boundary"] = flags.get("--boundary") or COMPOUND
    try:
        plan = build(path, flags, environ=environ, file=file)
    except PlanError as wrong:
        problems += wrong.problems
        more = wrong.more
    tests = _with_workload(tests, plan)
    whole = Campaign(names=chosen, plan=plan, tests=tests, switch=switch, **options)
    impossible = list(_impossible(whole))
    refused = any(problem.where == "fairness" for problem in impossible)
    if "fairness" in names and chooses_workload(plan) and not classes and not refused:
        problems.append(UNUSED_WORKLOAD)
    problems += impossible
    if problems:
        raise PlanError.first(problems, more)
    return whole


def _declares_boundary(file: Document) -> bool:
    declared = file.values.get("sut")
    return isinstance(declared, dict) and declared.get("boundary") is not None


def _with_workload(tests: Tests, plan: Plan) -> Tests:
    """The parameters, with what the plan's own words decide: once a plan is saved, its defaults look like choices."""
    if tests.guardrail.workload is not None:
        return tests
    workload = "plan" if chooses_workload(plan) else "conversation"
    return tests.model_copy(update={"guardrail": tests.guardrail.model_copy(update={"workload": workload})})


def _gives_classes(wanted: object) -> bool:
    """Whether these parameters have classes for fairness, before a quick run's numbers join them: these have some too."""
    fairness = wanted.get("fairness") if isinstance(wanted, dict) else None
    return isinstance(fairness, dict) and "classes" in fairness


def chooses_workload(plan: Plan) -> bool:
    """Whether a plan that was just built says what requests are, and not only how they are sent."""
    return bool(plan.workload.model_fields_set - MANNER)


def _impossible(whole: Campaign) -> Iterator[Problem]:
    """What no campaign can have, whoever asks for it."""
    if whole.plan.trace is not None:
        yield Problem("--trace", "a trace has its own load, but the tests choose theirs")
    if whole.plan.load.model == "users":
        yield Problem(
            "--users",
            "users have their own load, but the tests choose theirs: use --rate or --concurrency",
        )
    yield from of_workload(whole.names, whole.plan, whole.tests)
    embedded = whole.plan.target.url is None or whole.simulated
    if not embedded and whole.engine != EngineChoice():
        flag = "--preset" if whole.engine.preset != EngineChoice().preset else "--set"
        yield Problem(
            flag if whole.engine.system is None else "--system",
            "is about the reference engine, and --url names another server: omit one",
        )
    if whole.engine.system is not None and whole.plan.sut.boundary not in (None, COMPOUND):
        yield Problem(
            "--system",
            f"is a system of several steps, whose boundary is {COMPOUND}: declare that one, or none",
        )
    if OWN_SYSTEM in whole.names and not embedded and not whole.own_system:
        yield Problem(
            "--i-own-this-system",
            f"{OWN_SYSTEM} pushes the system past its capacity and may bring it down: give this flag if it is "
            "yours to do that to, or leave the test out",
        )


def _chosen(names: Sequence[str], problems: list[Problem]) -> tuple[str, ...]:
    known = (*ALL, "cold-start")
    wrong = [name for name in names if name != "all" and name not in known]
    problems += [Problem(name, f"is not a test; the tests are: all, {', '.join(known)}") for name in wrong]
    asked = {*(ALL if "all" in names else ()), *names}
    return tuple(name for name in ORDER if name in asked)


def _override(
    tests: object, parameters: Sequence[str], chosen: Sequence[str], problems: list[Problem]
) -> None:
    """`capacity.ttft_p99_ms=500` into the file's tests; a value is read as JSON if it is some, else it is text.

    A file's parameters may be those of more tests than are chosen. On the command line such a parameter is a mistake: no test
    would read it, and the report would not show it. `search` is several tests' (_unread).
    """
    for text in parameters:
        form = _PARAMETER.fullmatch(text)
        if form is None:
            problems.append(
                Problem(
                    f"--param {text}",
                    "write test.name=value with the test as it is called, for example capacity.ttft_p99_ms=500 or "
                    "long-context.lengths=[8192]",
                )
            )
            continue
        if form[1] in ORDER and form[1] not in chosen:
            message = (
                f"is a parameter of {form[1]}, which is not among the tests: add {form[1]}, or leave this out"
            )
            problems.append(Problem(f"--param {text}", message))
        part = tests.setdefault(form[1], {}) if isinstance(tests, dict) else None
        if isinstance(part, dict):
            try:
                part[form[2]] = foreign_json.loads(form[3])
            except ValueError:
                part[form[2]] = form[3]


def _unread(tests: Tests, parameters: Sequence[str], chosen: Sequence[str]) -> Iterator[Problem]:
    """Parameters of `search` that none of the chosen tests reads, and which ones would."""
    for text in parameters:
        form = _PARAMETER.fullmatch(text)
        if form is None or form[1] != "search" or form[2] not in Search.model_fields or not chosen:
            continue
        if not any(form[2] in searched(name, tests) for name in chosen):
            readers = ", ".join(name for name in ORDER if form[2] in searched(name, tests))
            yield Problem(
                f"--param {text}",
                f"is of a search that none of the tests makes: leave this out, or add one of {readers}",
            )


def _part(kind: type[Any], values: Any, file: Document, name: str, problems: list[Problem]) -> Any:
    """A part of its own schema, with its problems at their lines."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        for refused in wording.refused(error):
            place = (name, *refused.place)
            dotted = ".".join(str(part) for part in place)
            line = next(
                (file.lines[place[:end]] for end in range(len(place), 0, -1) if place[:end] in file.lines),
                None,
            )
            where = dotted if line is None else f"{file.name}:{line}: {dotted}"
            unknown = refused.kind == "extra_forbidden"
            message = f"no such key here; the keys are: {_keys(kind, place[1:-1])}" if unknown else ""
            problems.append(Problem(where, message or wording.reason(refused)))
        return kind()


def _keys(kind: type[Any], path: Sequence[str | int]) -> str:
    for name in path:
        field = next((one for key, one in kind.model_fields.items() if name in (key, one.alias)), None)
        inner = getattr(field, "annotation", None)
        if not hasattr(inner, "model_fields"):
            break
        kind = inner  # type: ignore[assignment]  # it has fields
    return ", ".join(field.alias or name for name, field in kind.model_fields.items())


def to_json(whole: Campaign) -> bytes:
    """The canonical bytes of `tests.json`."""
    values = whole.model_dump(mode="json", by_alias=True) | {"plan": resolved(whole.plan)}
    return (json.dumps(values, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n").encode()


def of_values(values: Values, where: str) -> Campaign:
    """A saved campaign. Raises RecordError when it is none that this version reads."""
    if values.get("schema") != SCHEMA:
        raise RecordError(
            f"{where}: its schema is {str(values.get('schema'))[:60]!r}; this version reads {SCHEMA!r}"
        )
    try:
        whole = Campaign.model_validate(values)
    except ValidationError as error:
        first = wording.refused(error)[0]
        place = foreign_json.dotted(wording.located(first.place))
        raise RecordError(
            f"{where}: cannot be carried out by this version: {place}: {wording.reason(first)}"
        ) from error
    problems = [*_impossible(whole)]
    problems += [Problem(f"{where}: plan.{fault.keys[0]}", fault.worded()) for fault in faults(whole.plan)]
    _chosen(whole.names, problems)
    if not whole.names:
        problems.append(Problem(where, "names no test"))
    if problems:
        raise PlanError(problems)
    return whole
