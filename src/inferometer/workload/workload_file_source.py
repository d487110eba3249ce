"""Requests from a workload file (workload_file.py): what its header decides of a plan, and its rows with fresh nonces.

The file says what is sent: workload, seed, tokenizer, API, and where the plan does not say it, how many requests, and how many
of warm-up. The plan says when, to whom, how answers are sampled (`temperature`) and that they go on (`ignore_eos`,
`min_tokens`). What both say must agree.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from itertools import groupby, islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from inferometer.documents.workload import TokenizerFacts
from inferometer.errors import PlanError, Problem
from inferometer.plan.arrivals import phase_instants
from inferometer.plan.schema import AUTO_TOKENIZER, SERVER_TOKENIZER, Load, Plan, Tokenizer
from inferometer.plan.workload import SAMPLING, AnyWorkload, TraceWorkload
from inferometer.units import NS_PER_MS
from inferometer.workload import workload_file
from inferometer.workload.nonces import NONCES, speller
from inferometer.workload.prompts import NO_IDS, Ids, Prompt, read
from inferometer.workload.turn_schedule import ONE_TURN, Session, arranged
from inferometer.workload.workload_file import Made, Row, Text, joined

if TYPE_CHECKING:
    from inferometer.workload.tokenizers import Tokenizer as Counter


def taken_over(plan: Plan) -> tuple[Plan, Made]:
    """The plan with all that its file decides; the file has been read through.

    Raises PlanError where the file is unsound or another than the plan's, where the plan says otherwise, or wants more.
    """
    given = plan.workload
    assert not isinstance(given, TraceWorkload), "a plan that was checked"
    assert given.file is not None
    file = workload_file.opened(Path(given.file).expanduser())
    read_through = workload_file.read_through(file)
    if read_through.problems:
        raise PlanError(read_through.problems)
    header = file.header
    if read_through.rows_sha256 != header.rows_sha256 or header.sealed().digest != header.digest:
        message = "has changed since it was made: `inferometer workload verify` says how; make it again"
        raise PlanError([Problem(file.name, message)])
    if given.file_sha256 not in (None, file.digest):
        message = f"is another file than the plan's: its digest is {file.digest}, not {given.file_sha256}"
        raise PlanError([Problem(f"{file.name} (workload.file_sha256)", message)])
    problems: list[Problem] = []
    workload = _workload(given, file, problems)
    target = plan.target
    if "api" in target.model_fields_set and target.api != header.api:
        problems.append(_against(file, "target.api", header.api, target.api))
    tokenizer = _tokenizer(plan.tokenizer, file, problems)
    load = _load(plan.load, workload, file, problems)
    if problems:
        raise PlanError(problems)
    parts = {
        "workload": workload,
        "target": target.model_copy(update={"api": header.api}),
        "tokenizer": tokenizer,
        "load": load,
    }
    return plan.model_copy(update=parts), file


def check_tokenizer(file: Made, tokenizer: TokenizerFacts) -> None:
    """Raise PlanError unless this tokenizer (what run.json says of it) is the one the file was made with."""
    recorded = file.header.tokenizer
    if (recorded.version, recorded.vocab_size) != (tokenizer.version, tokenizer.vocab_size):
        message = (
            f"{_called(tokenizer)} is not the one that {file.name} was made with, which is {_called(recorded)}: give that one, "
            "or make the file again"
        )
        raise PlanError([Problem("--tokenizer", message)])


def _called(tokenizer: TokenizerFacts) -> str:
    return f"{tokenizer.name}{f' ({tokenizer.version})' if tokenizer.version else ''}"


def _against(file: Made, key: str, recorded: object, given: object) -> Problem:
    shown = [
        "none" if one is None else str(one).lower() if isinstance(one, bool) else str(one)
        for one in (recorded, given)
    ]
    message = f"the file was made with {shown[0][:80]}, and the plan says {shown[1][:80]}: leave it out, or make another file"
    return Problem(f"{file.name} ({key})", message)


def _workload(given: AnyWorkload, file: Made, problems: list[Problem]) -> AnyWorkload:
    recorded = file.header.spec.model_copy(update={"prompt_format": file.header.prompt_format})
    for key in sorted(given.model_fields_set - SAMPLING - {"kind", "file", "file_sha256"}):
        said, decided = getattr(given, key), getattr(recorded, key, None)
        if (
            key == "name" and given.standard != recorded.standard
        ):  # without a dataset a standard's goes by custom
            said = given.standard or said
        if said is not None and said != decided and (key, said) != ("prompt_format", "auto"):
            problems.append(_against(file, f"workload.{key}", decided, said))
    own = {key: getattr(given, key) for key in SAMPLING if key in given.model_fields_set}
    own |= {"file": given.file, "file_sha256": file.digest}
    taken: AnyWorkload = recorded.model_copy(update=own)
    return taken


def _tokenizer(given: Tokenizer, file: Made, problems: list[Problem]) -> Tokenizer:
    if given.name == SERVER_TOKENIZER:
        called = _called(file.header.tokenizer)
        message = f"{file.name} was made with {called}, and the server's own is not known to be that one"
        problems.append(Problem("--tokenizer", message))
    if "name" in given.model_fields_set and given.name != AUTO_TOKENIZER:
        return given
    declared = file.header.declared
    if declared.name is None:
        message = f"{file.name} was made with {_called(file.header.tokenizer)}: say where that is"
        problems.append(Problem("--tokenizer", message))
        return given
    return Tokenizer.model_validate(declared.model_dump())


def _load(given: Load, workload: AnyWorkload, file: Made, problems: list[Problem]) -> Load:
    """The load with as many requests as the file has, where it does not say how many, or how long."""
    header, specified = file.header, given.model_fields_set
    counts: dict[str, int] = {}
    if "requests" not in specified and given.duration_s is None:
        counts["requests"] = header.requests
    if "warmup" not in specified:
        counts["warmup"] = header.warmup
    load = Load.model_validate({key: getattr(given, key) for key in specified} | counts)
    if load.requests is None and load.model != "closed" and workload.turns is not None:
        message = f"holds conversations, and how many of them {load.duration_s:g} s take only the run shows: give --requests"
        problems.append(Problem(file.name, message))
        return load
    wanted = load.requests or 1
    if load.model == "open":
        wanted = len(phase_instants(load, workload.seed, warmup=False))
    elif load.model == "users":
        alone = arranged(load, workload.seed, repeat(ONE_TURN), load.requests, warm=False, alone=True)
        wanted = len(alone)
    for flag, there, want, what in (
        ("--requests", header.requests, wanted, "requests"),
        ("--warmup", header.warmup, load.warmup, "requests of warm-up"),
    ):
        if want > there:
            message = f"holds {there:,} {what}, and the load wants {want:,}: ask for fewer ({flag}), or make a larger file"
            problems.append(Problem(file.name, message))
    return load


def generate(file: Made, tokenizer: Counter, n: int, salt: int, *, warm: bool) -> Iterator[Prompt]:
    """The first `n` prompts of a phase, with the nonces of a run with this salt. Raises PlanError if the file has changed."""
    renewed = Renewed(file, tokenizer, salt)
    rows = islice(file.rows("warmup" if warm else "measure"), n)
    yield from map(renewed.prompt, rows)


def sessions(file: Made, *, warm: bool) -> Iterator[Session]:
    """The conversations of a phase. Of one that was cut off, the turns that are missing are there, but cannot be asked for."""
    rows = file.rows("warmup" if warm else "measure")
    for _, turns in groupby(rows, lambda row: row.session):
        told = list(turns)
        thinks = [row.think_ms * NS_PER_MS for row in told]
        yield (*thinks, *[0] * (told[0].turns - len(told)))


class Renewed:
    """Makes prompts of rows: see the head."""

    def __init__(self, file: Made, tokenizer: Counter, salt: int) -> None:
        self._tokenizer, self._salt = tokenizer, salt
        self._format: Literal["ids", "text"] = file.header.prompt_format
        self._spell: Callable[[int], str] = speller(tokenizer, self._format)
        self._classes = {name: number for number, name in enumerate(file.header.classes)}
        self._read = functools.lru_cache(maxsize=256)(lambda text: read(tokenizer, text))

    def prompt(self, row: Row) -> Prompt:
        """What is sent for a row."""
        parts, spelled, recount = row.parts, "", False
        own: tuple[int, int, int] | None = None
        longer = [0] * len(parts)  # than the file's nonces, where an earlier version spelled those
        for nonce in row.nonces:
            spelled = self._spell((self._salt + nonce.offset) % NONCES)
            mark: Text = spelled if self._format == "text" else [int(one) for one in spelled.split(",")]
            text, at = parts[nonce.message], nonce.at + longer[nonce.message]
            old = _nonce_of(text[at : at + nonce.length])
            recount = recount or self._differ(old, mark)
            parts[nonce.message] = text[:at] + mark + text[at + len(old) :]  # type: ignore[operator] # of one kind
            longer[nonce.message] += len(mark) - len(old)
            own = nonce.message, at, at + len(mark)
        chat = row.messages
        sent = row.input_tokens_sent
        if recount:
            sent = sum(len(self._tokenizer.encode(str(text))) for text in parts)
        return Prompt(
            joined(parts), row.input_tokens, sent, row.output_tokens, spelled,
            messages=None if chat is None else tuple((one.role, str(said)) for one, said in zip(chat, parts, strict=True)),
            request_class=None if row.class_ is None else self._classes[row.class_],
            fields=row.extra_body,
            bare=row.bare() if spelled else None,
            shared=row.input_tokens_shared,
            group=-1 if row.group is None else row.group,
            key=NO_IDS if row.turn else self._key(parts, own),
            place=row.place,
            repeated=row.input_tokens_repeated,
            known=row.input_tokens_known,
            reply=row.reply,
        )  # fmt: skip

    def _differ(self, old: Text, new: Text) -> bool:
        """Whether two nonces of a text are not equally many tokens."""
        if not isinstance(old, str) or not isinstance(new, str):
            return False
        count = self._tokenizer.encode
        return len(count(old)) != len(count(new))

    def _key(self, parts: list[Text], own: tuple[int, int, int] | None) -> Ids:
        """The ids that an earlier request can have begun with: all up to the end of the request's own nonce, if it has one."""
        if self._format == "ids":
            return np.asarray(parts[0] if own is None else parts[0][: own[2]], np.uint32)
        texts = [str(text) for text in parts]
        if own is None:
            return np.concatenate([read(self._tokenizer, text) for text in texts])
        number, at, end = own
        before = [text for text in (*texts[:number], texts[number][:at]) if text]
        return np.concatenate([*map(self._read, before), read(self._tokenizer, texts[number][at:end])])


def _nonce_of(front: Text) -> Text:
    """A nonce without the line end that may have been added with it."""
    return front.removesuffix("\n") if isinstance(front, str) else front
