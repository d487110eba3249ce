"""Whether an answer meets its criterion (workload/criterion.py), decided after the load, within time and size.

| criterion          | decided by                                                                               | time it has |
| ------------------ | ---------------------------------------------------------------------------------------- | ----------- |
| exact, number      | this process                                                                             | none needed |
| regex, json_schema | a process of its own (criterion_process.py)                                              | PATTERN_S   |
| command            | the command, without a shell, with the answer as its input and a reduced environment     | COMMAND_S   |
| judge              | a model, over the client that is used for everything but the load                        | JUDGE_S     |

What cannot be decided is `unjudged`, with the reason, and neither a success nor a failure. A command or a judge that has not
decided PATIENCE times in a row is not asked again.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import signal
import subprocess
import tempfile
from collections import Counter, deque
from collections.abc import Mapping
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from typing import Any
from urllib.parse import urlsplit

from inferometer import foreign_json, isolation
from inferometer.addresses import secrets_of
from inferometer.client.http_client import Client, Unanswered
from inferometer.client.trust import context
from inferometer.drive.probe import endpoint
from inferometer.engines.answer import ERROR_REASONS, REFUSAL_REASONS
from inferometer.errors import MachineError, PlanError, Problem, in_words
from inferometer.journal.redact import Redactor
from inferometer.run.criterion_process import CriterionProcess, Decision
from inferometer.workload.criterion import Criterion, Judge

PATTERN_S, COMMAND_S, JUDGE_S = 2.0, 30.0, 60.0
PATIENCE = 3
LARGEST_REPLY = 1 << 20
"""Bytes of what a judge says."""
LARGEST_QUESTION = 16 << 20
"""Characters of what a judge is asked: a prompt may name an answer many times over."""
JUDGE_TOKENS = 512
LEAST_REPEATED = 20
"""Characters of its prompt that a judge does not say by chance."""
_UNFINISHED = ("length", *REFUSAL_REASONS, *ERROR_REASONS)
"""Finish reasons of replies that stop before their end."""
_PLACES = re.compile(r"\{input\}|\{answer\}")
JUDGE_KEY = "INFEROMETER_JUDGE_KEY"
"""The environment variable whose key a judge is shown. A file of tasks cannot name another."""
_NUMBER = re.compile(
    r"(?:(?<![0-9])[-+\u2212])?"  # behind a digit it is a hyphen: 2026-11-28
    r"(?:(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+)"
    r"(?:[eE][-+]?[0-9]{1,6}(?![0-9]))?"
)
_MOST_DIGITS = 400
_EXACT = Context(prec=2 * _MOST_DIGITS, Emin=MIN_EMIN, Emax=MAX_EMAX)
"""Numbers of as many digits, and of a double's range, differ by exactly what it says."""


def judge_key(environ: Mapping[str, str]) -> str | None:
    """The key that judges are shown, if there is one. Raises PlanError, which never repeats it."""
    key = environ.get(JUDGE_KEY)
    if key is not None and not (key and key.isascii() and key.isprintable()):
        words = f"the variable {JUDGE_KEY} is empty or holds characters that a header cannot: set it anew, or unset it"
        raise PlanError([Problem("--task-commands", words)])
    return key


class Criteria:
    """What decides, for as long as the answers of one run are judged."""

    def __init__(self, environ: dict[str, str] | None = None) -> None:
        self._process = CriterionProcess()
        self._environ = os.environ if environ is None else environ
        self._undecided: Counter[str] = Counter()

    def __enter__(self) -> Criteria:
        """Use as a context manager."""
        return self

    def __exit__(self, *exc: object) -> None:
        """End the process that tries patterns."""
        self._process.close()

    def decide(self, criterion: Criterion, task: str, given: str, answer: str) -> Decision:
        """Whether an answer passes. `given`: what the system was asked. What this machine lacks for it leaves it unjudged."""
        try:
            return self._decided(criterion, task, given, answer)
        except (OSError, MachineError, MemoryError) as cause:
            return Decision(None, f"it could not be judged: {in_words(cause)}"[:200])

    def _decided(self, criterion: Criterion, task: str, given: str, answer: str) -> Decision:
        limit = criterion.timeout_s
        if criterion.exact is not None:
            return Decision(answer.strip() == criterion.exact.strip())
        if criterion.number is not None:
            return near(answer, criterion.number, criterion.tolerance)
        if criterion.regex is not None or criterion.json_schema is not None:
            kind = criterion.kind
            order = {kind: getattr(criterion, kind), "text": answer}
            who = criterion.regex or json.dumps(criterion.json_schema)
            return self._patiently(who, lambda: self._process.decide(order, limit or PATTERN_S))
        if criterion.command is not None:
            who = criterion.command[0]
            return self._patiently(
                who, lambda: ran(criterion.command or (), task, answer, limit or COMMAND_S)
            )
        judge = criterion.judge
        assert judge is not None, "a criterion has one kind"
        return self._patiently(judge.url, lambda: self._asked(judge, given, answer, limit or JUDGE_S))

    def _patiently(self, who: str, decide: Any) -> Decision:
        if self._undecided[who] >= PATIENCE:
            return Decision(None, f"not tried: it had not decided {PATIENCE} times in a row")
        found: Decision = decide()
        self._undecided[who] = self._undecided[who] + 1 if found.passed is None else 0
        return found

    def _asked(self, judge: Judge, given: str, answer: str, timeout_s: float) -> Decision:
        """What a judge makes of an answer. Its pattern is tried on what the judge says, not on what it was sent."""
        try:
            key = judge_key(self._environ)
        except PlanError as cause:
            return Decision(None, str(cause)[:200])
        redact = Redactor([*secrets_of(judge.url), *([key] if key else [])])
        parts = {"{input}": given, "{answer}": answer}
        size = len(judge.prompt) + sum(judge.prompt.count(name) * len(text) for name, text in parts.items())
        if size > LARGEST_QUESTION:
            return Decision(None, f"the judge's prompt would have more than {LARGEST_QUESTION:,} characters")
        # At once: an answer may hold "{input}".
        prompt = _PLACES.sub(lambda found: parts[found[0]], judge.prompt)
        try:
            said = self._reply(judge, key, prompt, timeout_s)
        except Unanswered as cause:
            return Decision(None, redact.short(f"the judge gave no answer: {cause}", 200))
        except PlanError as cause:
            return Decision(None, redact.short(f"the judge's address: {cause}", 200))
        if isinstance(said, Decision):
            return said
        return self._verdict(judge, prompt, said)

    def _verdict(self, judge: Judge, prompt: str, said: str) -> Decision:
        """What a judge's reply comes to. One that repeats its prompt, or the words before or behind the answer, holds the
        verdicts that these name."""
        if prompt.strip() in said or any(
            len(part) >= LEAST_REPEATED and part in said
            for part in map(str.strip, _PLACES.split(judge.prompt))
        ):
            return Decision(None, "the judge repeated its prompt")
        passes = self._process.decide({"regex": judge.pass_, "text": said}, PATTERN_S)
        if judge.fail is None or passes.passed is None:
            return passes
        fails = self._process.decide({"regex": judge.fail, "text": said}, PATTERN_S)
        if fails.passed is None or fails.passed is not passes.passed:
            return fails if fails.passed is None else passes
        return Decision(None, f"the judge gave {'both verdicts' if passes.passed else 'no verdict'}")

    @staticmethod
    def _reply(judge: Judge, key: str | None, prompt: str, timeout_s: float) -> str | Decision:
        place = endpoint(judge.url)
        lines = {"Host": place.host_header, "User-Agent": "inferometer", "Accept": "application/json"}
        if key:
            lines["Authorization"] = f"Bearer {key}"
        tls = functools.partial(context, True, None) if place.scheme == "https" else None
        body = {
            "model": judge.model,
            "messages": [{"role": "user", "content": prompt}],
            "temperature": 0,
            "max_tokens": JUDGE_TOKENS,
        }
        parts_of = urlsplit(judge.url)
        path = (parts_of.path or "/") + (f"?{parts_of.query}" if parts_of.query else "")
        with Client(
            place.host, place.port, lines, timeout_s=timeout_s, tls=tls, largest=LARGEST_REPLY
        ) as client:
            response = client.send_json("POST", path, body)
        if response.status != 200:
            return Decision(None, f"the judge answered with status {response.status}")
        return said_in(response.body)


def said_in(reply: bytes) -> str | Decision:
    """What a judge says in a completion. Half a reply, and none, are no verdict: the pattern of one may stand in it or not."""
    try:
        choice = foreign_json.loads(reply)["choices"][0]
        content = choice["message"]["content"]
    except (foreign_json.NotJSON, LookupError, TypeError):
        return Decision(None, "the judge's answer holds no message")
    if not isinstance(content, str) or not content.strip():
        return Decision(None, "the judge's answer holds no text")
    if (reason := choice.get("finish_reason")) in _UNFINISHED:
        return Decision(None, f"the judge's answer is not whole: its finish reason is {reason}")
    return content


def near(answer: str, number: float, tolerance: float) -> Decision:
    """Whether the last number of an answer is that one, to within a tolerance, in decimal: 3.15 is within 0.01 of 3.14."""
    last = deque(_NUMBER.finditer(answer), maxlen=1)
    if not last:
        return Decision(False, "the answer holds no number")
    text = last[0][0].replace(",", "").replace("\u2212", "-")
    if len(text) > _MOST_DIGITS:
        return Decision(False, f"its last number has more than {_MOST_DIGITS} digits")
    try:
        found = _EXACT.subtract(Decimal(text), Decimal(repr(number))).copy_abs() <= Decimal(repr(tolerance))
    except ArithmeticError:
        found = False
    return Decision(found, None if found else f"its last number is {text[:40]}")


def ran(command: tuple[str, ...], task: str, answer: str, timeout_s: float) -> Decision:
    """What a command makes of an answer: exit code 0 passes, 1 fails, any other decides nothing. What it prints is dropped; it
    is ended with all that it started."""
    environ = {**isolation.environment(os.environ), "INFEROMETER_TASK": task}
    with tempfile.TemporaryFile() as given:
        given.write(answer.encode())
        given.seek(0)
        try:
            process = subprocess.Popen(  # noqa: S603 - the user allowed the file's commands (--task-commands)
                list(command),
                stdin=given,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                process_group=0,
                env=environ,
            )
        except (OSError, ValueError) as cause:  # ValueError: a null byte
            why = cause.strerror if isinstance(cause, OSError) else "a null byte"
            return Decision(None, f"the command cannot be started: {why}")
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return Decision(None, f"the command has not ended within {timeout_s:g} s")
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if code not in (0, 1):
        return Decision(None, f"the command ended with exit code {code}")
    return Decision(code == 0)
