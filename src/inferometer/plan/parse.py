"""A plan from a file, from flags, or from both: every problem at once, each with the flag or the line it is about.

    file ── document.read ─┐
                           ├─ _merge ── Plan.model_validate ── rules.faults ── Plan
    flags ── flags.read ───┘

A wrong value must not hide the next: what the schema refuses is noted and taken out, and the rest is tried again. A rule that
involves a key taken out is not asked, for its answer would be about a value nobody wrote.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from inferometer.addresses import REDACTED
from inferometer.errors import PlanError, Problem
from inferometer.plan import document, flags, rules, wording
from inferometer.plan.document import Document, Key
from inferometer.plan.flags import Flag
from inferometer.plan.rules import Fault
from inferometer.plan.schema import Plan


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

    Raises PlanError with every problem found.
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
        raise PlanError(list(dict.fromkeys(draft.problems)))
    return plan


def check_outside(plan: Plan, environ: Mapping[str, str]) -> None:
    """That the environment variable and the files that a saved plan names are there. Raises PlanError."""
    draft = _Draft(Document(""), has_file=False, problems=[])
    draft.note(list(_outside(plan, environ)))
    if draft.problems:
        raise PlanError(draft.problems)


def _dotted(path: Key) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


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
    values: dict[str, Any] = field(default_factory=dict)
    flagged: dict[Key, Flag] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)

    def merge(self, given: list[tuple[Flag, object]]) -> None:
        """The file's values with the flags' over them."""
        self.values = self.file.values
        own = {flag.key for flag, _ in given}
        for flag, _ in given:
            for key in flag.drops:
                if key not in own:
                    _remove(self.values, _keyed(key))
        for problem in self.problems:
            if problem.where in flags.BY_NAME:
                self.broken.add(flags.BY_NAME[problem.where].key)
        for flag, value in given:
            self._put(flag, value)

    def _put(self, flag: Flag, value: object) -> None:
        *parents, last = path = _keyed(flag.key)
        part: dict[str, Any] = self.values
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
        """Validate, noting and taking out what is refused, until what is left is a plan."""
        while True:
            try:
                return Plan.model_validate(self.values)
            except ValidationError as error:
                paths = [self._refuse(dict(refused)) for refused in error.errors(include_url=False)]
            # Lists from their end, so that an index still means the same item.
            for path in sorted(
                set(paths), key=lambda path: [str(part).zfill(9) for part in path], reverse=True
            ):
                removed = _remove(self.values, path)
                assert removed, f"nothing to take out at {path}"  # or the loop would not end

    def _refuse(self, refused: dict[str, Any]) -> Key:
        """Note one refusal; gives the place of the value to take out."""
        path: Key = tuple(part for part in refused["loc"] if part != "[key]")
        self.broken.add(_dotted(path))
        if refused["type"] == "extra_forbidden":
            message, meant = wording.unknown(path)
            if meant is not None:
                self.broken.add(meant)
        else:
            message = wording.refusal(refused)
        self.problems.append(self.problem(path, message))
        return path

    def note(self, found: list[Fault]) -> None:
        """Take over the faults that involve nothing taken out."""
        for fault in found:
            if not any(_overlap(key, broken) for key in fault.keys for broken in self.broken):
                names = {key: self.called(key) for key in wording.every_key()}
                culprit = next((key for key in fault.keys if _path(key) in self.flagged), None)
                culprit = culprit or next(
                    (key for key in fault.keys if _path(key) in self.file.lines), fault.keys[0]
                )
                self.problems.append(self.problem(_path(culprit), fault.worded(names)))

    def problem(self, path: Key, message: str) -> Problem:
        """A problem at the flag that gave the value, or at its line in the file, or else at the flag that could give it."""
        upwards = [path[:end] for end in range(len(path), 0, -1)]
        for part in upwards:
            flag = self.flagged.get(part)
            if flag is not None:
                inner = path[len(_keyed(flag.key)) :]
                named = "" if not inner or isinstance(inner[0], int) else f"{_dotted(inner)}: "
                return Problem(flag.name, named + message)
        for part in upwards:
            line = self.file.lines.get(part)
            if line is not None:
                return Problem(f"{self.file.name}:{line}: {_dotted(path)}", message)
        if self.has_file:
            return Problem(f"{self.file.name}: {_dotted(path)}", message)
        return Problem(self.called(_dotted(path)), message)

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


def _remove(values: dict[str, Any], path: Key) -> bool:
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
    load, workload = draft.values.get("load") or {}, draft.values.get("workload") or {}
    traced = draft.values.get("trace") is not None or load.get("arrival") == "trace"
    for key in ("input_tokens", "output_tokens"):
        if traced and workload.get(key) is not None:
            yield Fault(
                (f"workload.{key}", "trace.file"),
                f"the trace says how long prompts and answers are ({{trace.file}}): leave {{workload.{key}}} out",
            )
    if traced:
        return
    for key in ("arrival", "burstiness"):
        rated = any(load.get(name) is not None for name in ("model", "rate", "users", "user_rate"))
        if load.get(key) is not None and not rated:
            keys = (f"load.{key}", "load.rate", "load.model", "load.concurrency")
            needs = f"only open loop and users have arrivals: {{load.{key}}} needs {{load.rate}}, or {{load.users}}"
            yield Fault(keys, needs)
    files, classes = workload.get("prompts") is not None, bool(workload.get("classes"))
    if files or classes:
        own = "workload.prompts" if files else "workload.classes"
        for key in ("input_tokens", *(("output_tokens",) if not files else ())):
            if workload.get(key) is not None:
                yield Fault(
                    (f"workload.{key}",), f"{{{own}}} says how long prompts are: leave {{workload.{key}}} out"
                )
    elif workload.get("name") == "custom" and workload.get("based_on") is None:
        for key in ("input_tokens", "output_tokens"):
            if workload.get(key) is None:
                yield Fault(
                    (f"workload.{key}", "workload.name"),
                    f"a custom workload needs {{workload.{key}}}, for example uniform(128,512)",
                )


def _outside(plan: Plan, environ: Mapping[str, str]) -> Iterator[Fault]:
    """What the plan names outside itself. The name of the variable is not repeated: it may be a key, given by mistake."""
    target = plan.target
    if target.api_key_env is not None and not environ.get(target.api_key_env):
        yield Fault(
            ("target.api_key_env",),
            "names an environment variable that is not set (give its name, not the key)",
        )
    if any(REDACTED in url for url in plan.server_metrics.urls):
        yield Fault(
            ("server_metrics.urls",),
            f"holds {REDACTED}: a saved plan keeps no password; give the whole URL again, "
            "or leave the endpoint out",
        )
    spec = plan.workload
    prompts = spec.prompts if spec.file is None else None  # they are in the file
    for key, name in (
        ("target.api_key_file", target.api_key_file),
        ("target.tls_ca_file", target.tls_ca_file),
        ("workload.prompts", prompts and os.path.expanduser(prompts)),
        ("workload.file", spec.file and os.path.expanduser(spec.file)),
    ):
        if name is not None and not (os.path.isfile(name) and os.access(name, os.R_OK)):
            yield Fault((key,), "names a file that is not there or cannot be read")
    if plan.trace is not None and plan.trace.file is not None:
        name = os.path.expanduser(plan.trace.file)
        if not (os.path.isfile(name) and os.access(name, os.R_OK)):
            yield Fault(("trace.file",), "names a file that is not there or cannot be read")
