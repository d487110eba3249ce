"""A plan from a file, from flags, or from both: every problem at once, each with the flag or the line it is about.

    file ── document.read ─┐
                           ├─ _merge ── Plan.model_validate ── rules.faults ── Plan
    flags ── flags.read ───┘

A wrong value must not hide the next: what the schema refuses is noted and taken out, and the rest is tried again. A rule that
involves a key taken out is not asked, for its answer would be about a value nobody wrote.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from inferometer.addresses import REDACTED
from inferometer.errors import MOST_PROBLEMS, PlanError, Problem
from inferometer.foreign_json import dotted
from inferometer.plan import certificates, document, flags, rules, wording
from inferometer.plan.document import Document, Key
from inferometer.plan.fault import Fault
from inferometer.plan.flags import Flag
from inferometer.plan.part import Values
from inferometer.plan.schema import Plan
from inferometer.plan.server_metrics import MetricsEndpoint, ServerMetrics
from inferometer.plan.session_workload import SessionsWorkload
from inferometer.plan.workload import KINDS, PromptsWorkload, TasksWorkload


def build(
    path: Path | None = None,
    given: Mapping[str, object] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    file: Document | None = None,
) -> Plan:
    """The plan of a file (YAML, or a saved plan.json), of flags, or of a file overridden by flags.

    `given` maps flags to what the command line gave: text, a list of texts for a flag that repeats, True for a switch;
    None, False and [] are as good as absent. With `environ` it is also checked that the environment variable and the files
    the plan names are there; a saved plan is read without, for a report does not need them. `file`: what the path holds, if it
    was read before.

    Raises PlanError with every problem found, up to MOST_PROBLEMS.
    """
    if file is None:
        file = Document("") if path is None else document.read(path)
    values, problems = flags.read(given or {})
    draft = _Draft(file, has_file=path is not None, problems=[*file.problems, *problems])
    draft.merge(values)
    plan = draft.validated()
    # Without the file's values a rule would judge defaults that the file may have changed.
    found = [*_written(draft), *rules.faults(plan)] if file.readable else []
    draft.note([*found, *(_outside(plan, environ) if environ is not None else ())])
    if draft.problems:
        raise PlanError.first(draft.problems, draft.unworded)
    return plan


def check_outside(plan: Plan, environ: Mapping[str, str]) -> None:
    """That the environment variable and the files that a saved plan names are there. Raises PlanError."""
    draft = _Draft(Document(""), has_file=False, problems=[])
    draft.note(list(_outside(plan, environ)))
    if draft.problems:
        raise PlanError(draft.problems)


def _keyed(key: str) -> tuple[str, ...]:
    return tuple(key.split("."))


def _path(key: str) -> Key:
    """The place of a dotted key, which may go into lists: `workload.classes[0].name`."""
    return tuple(int(part) if part.isdigit() else part for part in re.findall(r"[^.\[\]]+", key))


@dataclass(slots=True)
class _Draft:
    """The values of a plan to be, where each came from, and what is wrong so far."""

    file: Document
    has_file: bool
    problems: list[Problem]
    values: Values = field(default_factory=dict)
    flagged: dict[Key, Flag] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    unworded: int = 0

    def merge(self, given: list[tuple[Flag, object]]) -> None:
        """The file's values with the flags' over them."""
        self.values = self.file.values
        own = {flag.key for flag, _ in given}
        for flag, value in given:
            for key in flags.overridden(flag, value):
                if key not in own:
                    _remove(self.values, _keyed(key))
        for problem in self.problems:
            if problem.where in flags.BY_NAME:
                self.broken.add(flags.BY_NAME[problem.where].key)
        for flag, value in given:
            self._put(flag, value)

    def _put(self, flag: Flag, value: object) -> None:
        *parents, last = path = _keyed(flag.key)
        part: Values = self.values
        for name in parents:
            inner = part.get(name)
            if not isinstance(inner, dict):
                if inner is not None:  # the file's part is no mapping: leave it there to be refused
                    return
                inner = part[name] = {}
            part = inner
        self.flagged[path] = flag
        if isinstance(value, dict):
            before = part.get(last)
            part[last] = {**(before if isinstance(before, dict) else {}), **value}
            self.flagged.update({(*path, name): flag for name in value})
            if isinstance(before, dict):
                del self.flagged[path]  # another wrote this part too: only the flag's own keys are the flag's
        else:
            part[last] = value

    def validated(self) -> Plan:
        """Validate, noting what is refused and taking it out, or putting in what is missing, until what is left is a plan."""
        while True:
            try:
                return Plan.model_validate(self.values)
            except ValidationError as error:
                refused = wording.refused(error)
            misplaced = [fault for one in refused if (fault := wording.misplaced(one)) is not None]
            for fault in misplaced:
                self._note_at(fault.keys[0], fault)
            self.broken |= {fault.keys[0] for fault in misplaced}
            for one in (one for one in refused if one.kind == "missing"):
                self._supply(one.place)
            # Lists from their end, so that an index still means the same item.
            paths = {self._refuse(one) for one in refused if one.kind != "missing"}
            for path in sorted(paths, key=lambda path: [str(part).zfill(9) for part in path], reverse=True):
                removed = _remove(self.values, path)
                assert removed, f"nothing to remove at {path}"  # or the loop would not end

    def _supply(self, loc: Key) -> None:
        """Note that a value is missing, and go on with an example of one."""
        path, value = wording.located(loc), wording.example(loc)
        key = dotted(path)
        kind = KINDS[str(loc[1])] if len(loc) == 3 and loc[0] == "workload" else None
        keys = (key,) if kind is None else (key, kind.chosen_by)
        needs = f"{{{key}}} has to be given" if kind is None else f"{kind.noun} needs {{{key}}}"
        shown = value if isinstance(value, str) else json.dumps(value)
        self.note([Fault(keys, f"{needs}, for example {shown}")])
        self.broken.add(key)
        holder: Any = self.values
        for part in path[:-1]:
            holder = holder[part]
        holder[path[-1]] = value

    def _refuse(self, refused: wording.Refusal) -> Key:
        """Note one refusal; gives the place of the value to take out."""
        path = wording.located(refused.place)
        if wording.misplaced(refused) is not None:  # which is noted
            return path
        if refused.kind == "union_tag_invalid":
            path = (*path, "kind")
        self.broken.add(dotted(path))
        if len(self.problems) >= MOST_PROBLEMS:  # to find which key was probably meant takes a millisecond
            self.unworded += 1
            return path
        if refused.kind == "extra_forbidden":
            message, meant = wording.unknown(path)
            if meant is not None:
                self.broken.add(meant)
        else:
            message = wording.reason(refused)
        self.problems.append(self.problem(path, message))
        return path

    def note(self, found: list[Fault]) -> None:
        """Take over the faults that involve nothing taken out."""
        for fault in found:
            keys = [key for key in fault.keys if _path(key) in self.flagged]
            keys += [key for key in fault.keys if _path(key) in self.file.lines]
            self._note_at(next(iter(keys), fault.keys[0]), fault)

    def _note_at(self, key: str, fault: Fault) -> None:
        if not any(_overlap(one, broken) for one in fault.keys for broken in self.broken):
            names = {one: self.called(one) for one in wording.every_key()}
            self.problems.append(self.problem(_path(key), fault.worded(names)))

    def problem(self, path: Key, message: str) -> Problem:
        """A problem at the flag that gave the value, or at its line in the file, or else at the flag that could give it."""
        upwards = [path[:end] for end in range(len(path), 0, -1)]
        for part in upwards:
            flag = self.flagged.get(part)
            if flag is not None:
                inner = path[len(_keyed(flag.key)) :]
                named = "" if not inner or isinstance(inner[0], int) else f"{dotted(inner)}: "
                return Problem(flag.name, named + message)
        for part in upwards:
            line = self.file.lines.get(part)
            if line is not None:
                return Problem(f"{self.file.name}:{line}: {dotted(path)}", message)
        if self.has_file:
            return Problem(f"{self.file.name}: {dotted(path)}", message)
        return Problem(self.called(dotted(path)), message)

    def called(self, key: str) -> str:
        """What the user calls a key: the flag that set it, else the key where there is a file, else the flag for it."""
        flag = self.flagged.get(_keyed(key))
        if flag is None and not self.has_file:
            flag = next((flag for flag in flags.FLAGS if flag.key == key), None)
        return key if flag is None else flag.name


def _overlap(key: str, other: str) -> bool:
    """Whether one key is the other or holds it."""
    return (
        key == other or key.startswith((f"{other}.", f"{other}[")) or other.startswith((f"{key}.", f"{key}["))
    )


def _remove(values: Values, path: Key) -> bool:
    """Take out what is at `path`; False when nothing is."""
    holder: Any = values
    for part in path[:-1]:
        if not _holds(holder, part):
            return False
        holder = holder[part]
    if not _holds(holder, path[-1]):
        return False
    del holder[path[-1]]
    return True


def _holds(holder: object, part: str | int) -> bool:
    if isinstance(holder, dict):
        return part in holder
    return isinstance(holder, list) and isinstance(part, int) and 0 <= part < len(holder)


def _written(draft: _Draft) -> Iterator[Fault]:
    """Rules about what was written, which defaults then hide."""
    workload = draft.values.get("workload") or {}
    base = workload.get("based_on")
    if base is not None and workload.get("name") not in ("custom", base):
        needs = f"is for a custom workload: set {{workload.name}} to custom, or to {base} and leave it out"
        yield Fault(("workload.based_on", "workload.name"), needs)
    # In a plan's file both may stand: that plan made the workload file, and is held to what it holds.
    if _keyed("workload.prompts") in draft.flagged and workload.get("file") is not None:
        choose = "choose one: {workload.prompts} are prompts to send, {workload.file} holds requests that were made before"
        yield Fault(("workload.prompts", "workload.file"), choose)
    load = draft.values.get("load") or {}
    traced = draft.values.get("trace") is not None or load.get("arrival") == "trace"
    if traced:
        return
    for key in ("arrival", "burstiness"):
        rated = any(load.get(name) is not None for name in ("model", "rate", "users", "user_rate"))
        if load.get(key) is not None and not rated:
            keys = (f"load.{key}", "load.rate", "load.model", "load.concurrency")
            needs = f"only open loop and users have arrivals: {{load.{key}}} needs {{load.rate}}, or {{load.users}}"
            yield Fault(keys, needs)


def _scraped(wanted: ServerMetrics, environ: Mapping[str, str]) -> Iterator[Fault]:
    """What the endpoints of metrics need: a URL with its password, a token, certificates."""
    parts: list[tuple[str, ServerMetrics | MetricsEndpoint]] = [("server_metrics", wanted)]
    parts += [(f"server_metrics.endpoints[{at}]", one) for at, one in enumerate(wanted.endpoints)]
    for key, part in parts:
        place, given = (
            (f"{key}.urls", part.urls) if isinstance(part, ServerMetrics) else (f"{key}.url", (part.url,))
        )
        if any(REDACTED in url for url in given):
            yield Fault(
                (place,),
                f"holds {REDACTED}: a saved plan keeps no password; give the full URL again, "
                "or omit the endpoint",
            )
        if part.token_env is not None and not environ.get(part.token_env):
            yield Fault(
                (f"{key}.token_env",),
                "names an environment variable that is not set (give its name, not the token)",
            )
        for name, other in (("key_file", "cert_file"), ("token_header", "token_env")):
            if getattr(part, name) is not None and not (getattr(part, other) or getattr(wanted, other)):
                yield Fault((f"{key}.{name}",), f"says nothing without {other}")
    yield from _certified(wanted)


def _certified(wanted: ServerMetrics) -> Iterator[Fault]:
    """What is wrong with the files of the endpoints that would be asked. A file that no endpoint uses is not opened: it is not
    on the list of what a saved plan reaches (reach.py)."""
    alone = {one.url: (at, one) for at, one in enumerate(wanted.endpoints)}
    found: dict[tuple[str, str], None] = {}
    for one in wanted.named() if wanted.enabled else ():
        at, own = alone.get(one.url, (0, None))
        for name, why in certificates.faults(one, own):
            its_own = own is not None and getattr(own, name) is not None
            found[f"server_metrics{f'.endpoints[{at}]' if its_own else ''}.{name}", why] = None
    yield from (Fault((key,), why) for key, why in found)


def _outside(plan: Plan, environ: Mapping[str, str]) -> Iterator[Fault]:
    """What the plan names outside itself. The name of the variable is not repeated: it may be a key, given by mistake."""
    target = plan.target
    if target.api_key_env is not None and not environ.get(target.api_key_env):
        yield Fault(
            ("target.api_key_env",),
            "names an environment variable that is not set (give its name, not the key)",
        )
    yield from _scraped(plan.server_metrics, environ)
    workload = plan.workload
    prompts = None
    if isinstance(workload, PromptsWorkload) and workload.file is None:  # else they are in that
        prompts = os.path.expanduser(workload.prompts)
    for key, name in (
        ("target.api_key_file", target.api_key_file),
        ("target.tls_ca_file", target.tls_ca_file),
        ("workload.prompts", prompts),
        (
            "workload.tasks",
            os.path.expanduser(workload.tasks) if isinstance(workload, TasksWorkload) else None,
        ),
        (
            "workload.sessions",
            os.path.expanduser(workload.sessions) if isinstance(workload, SessionsWorkload) else None,
        ),
        ("workload.file", workload.file and os.path.expanduser(workload.file)),
    ):
        if name is not None and not (os.path.isfile(name) and os.access(name, os.R_OK)):
            yield Fault((key,), certificates.MISSING)
        elif name is not None and key == "target.tls_ca_file" and (why := certificates.untrusted(name)):
            yield Fault((key,), why)
    if plan.trace is not None and plan.trace.file is not None:
        name = os.path.expanduser(plan.trace.file)
        if not (os.path.isfile(name) and os.access(name, os.R_OK)):
            yield Fault(("trace.file",), certificates.MISSING)
