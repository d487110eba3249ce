"""Servers that say what is not so: usage, lengths, finish reasons, caches; truncated prompts; tokenizers of other models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.trial.defects import (
    CLOSED,
    OPEN,
    Case,
    Defect,
    Plant,
    base,
    both,
    chosen,
    in_record,
    random_of,
    seen,
)
from benchmarks.trial.playing import TEMPLATE, Columns, text
from benchmarks.trial.records import Recorded, headlines, judged
from inferometer.journal.schema import EventClass

COUNTS = ("token_counts", "output_length")
LENGTHS = ("output_length", "token_counts")
PROMPTS = ("prompt_length",)
CACHE = ("cache_hits",)

OWN = {"tokenizer": {"name": "model/own", "method": "native"}, "workload": {"count_template": False}}
"""The plan names the model's own tokenizer, and the lengths asked for are those of the texts alone."""
ZERO_WIDTH = "\u200b"


def usage(by: Callable[[Columns], Any]) -> Plant:
    """The server reports another number of output tokens."""
    return lambda recorded, random: recorded.but(usage_output=np.round(by(recorded.columns)).astype(np.int64))


def times(factor: float) -> Plant:
    """So many times the tokens that it made."""
    return usage(lambda columns: columns["usage_output"] * factor)


def silent(recorded: Recorded, random: np.random.Generator) -> Recorded:
    """No usage at all."""
    n = len(recorded.measured)
    return recorded.but(usage_output=[None] * n, usage_input=[None] * n, usage_cached=[None] * n)


def shorter(keep: Callable[[Recorded, np.random.Generator], Any], **changes: Any) -> Plant:
    """Answers of which only the first `keep` tokens are made."""

    def plant(recorded: Recorded, random: np.random.Generator) -> Recorded:
        columns = recorded.columns
        kept = np.maximum(1, np.asarray(keep(recorded, random)).astype(np.int64))
        events = [t[: k + 1] for t, k in zip(columns["event_ns"], kept, strict=True)]
        kept = np.array([len(t) - 1 for t in events])
        made: Columns = {
            "event_ns": events,
            "event_class": [bytes([EventClass.ROLE]) + bytes([EventClass.CONTENT]) * int(k) for k in kept],
            "t_end": np.array([t[-1] for t in events]) + 5_000,
            "text": [text(int(k)) for k in kept],
            "usage_output": kept,
            "output_tokens_local": kept,
        }
        made |= {
            name: change(columns, kept) if callable(change) else change for name, change in changes.items()
        }
        return recorded.but(**made)

    return plant


def sizes(recorded: Recorded) -> Any:
    """Tokens of each answer."""
    return np.array([len(t) - 1 for t in recorded.columns["event_ns"]])


def share_of(share: float, factor: float) -> Callable[[Recorded, np.random.Generator], Any]:
    """A share of the answers is as much shorter."""

    def keep(recorded: Recorded, random: np.random.Generator) -> Any:
        n = sizes(recorded)
        return np.where(chosen(random, len(n), share), n * factor, n)

    return keep


def padded(share: float, pad: str) -> Plant:
    """So many of the tokens are `pad`, which nobody can see, or (empty) no text at all; usage has them all."""

    def plant(recorded: Recorded, random: np.random.Generator) -> Recorded:
        n = sizes(recorded)
        kind = EventClass.CONTENT if pad else EventClass.EMPTY
        classes, texts, real = [], [], []
        for size in n:
            seen = np.arange(size) % 10 >= round(10 * share)
            seen[0] = True
            body = np.where(seen, int(EventClass.CONTENT), int(kind)).astype(np.uint8).tobytes()
            classes.append(bytes([EventClass.ROLE]) + body)
            texts.append("".join("word " if one else pad for one in seen))
            real.append(int(seen.sum()) if not pad else int(size))  # a tokenizer counts what nobody sees
        return recorded.but(event_class=classes, text=texts, output_tokens_local=np.array(real))

    return plant


def crowded(each: int, *, words: bool = True, counted: bool = False) -> Plant:
    """So many tokens in each event; usage has the events, or (`counted`) the tokens. `words`: each is a word of its own, else a
    sign of a script without spaces."""

    def plant(recorded: Recorded, random: np.random.Generator) -> Recorded:
        made = sizes(recorded) * each
        done = recorded.but(
            text=[text(int(n)) if words else "\u6f22" * int(n) for n in made], output_tokens_local=made
        )
        return done.but(usage_output=made, output_tokens_asked=made) if counted else done

    return plant


def seen_alone(share: float) -> Plant:
    """What `padded` made, as it is: the tokens that can be seen, and usage of as many."""

    def plant(recorded: Recorded, random: np.random.Generator) -> Recorded:
        events = []
        for times in recorded.columns["event_ns"]:
            seen = np.arange(len(times) - 1) % 10 >= round(10 * share)
            seen[0] = True
            events.append(np.concatenate((times[:1], times[1:][seen])))
        kept = np.array([len(times) - 1 for times in events])
        return recorded.but(
            event_ns=events,
            event_class=[bytes([EventClass.ROLE]) + bytes([EventClass.CONTENT]) * int(k) for k in kept],
            text=[text(int(k)) for k in kept],
            usage_output=kept,
            output_tokens_local=kept,
        )

    return plant


def free(recorded: Recorded, random: np.random.Generator) -> Recorded:
    """Answers end by themselves, long before the most that may be made: no length is asked for."""
    n = sizes(recorded)
    ended = recorded.but(output_tokens_asked=4 * n, finish_reason=["stop"] * len(n))
    return ended.planned(workload={"ignore_eos": False})


def in_turns(high: float, low: float) -> Plant:
    """Usage is so many times what was made, and as many times, in turns."""
    return usage(
        lambda columns: np.maximum(1, columns["usage_output"] * np.resize([high, low], len(columns["text"])))
    )


def uncounted(share: float, word: str) -> Plant:
    """A share of the answers, all of such words, has no usage; nobody else counts them."""

    def plant(recorded: Recorded, random: np.random.Generator) -> Recorded:
        n = sizes(recorded)
        hit = chosen(random, len(n), share)
        return recorded.but(
            usage_output=[None if one else int(size) for one, size in zip(hit, n, strict=True)],
            output_tokens_local=[None] * len(n),
            text=[word * int(size) if one else text(int(size)) for one, size in zip(hit, n, strict=True)],
        )

    return plant


def in_parts(each: int, *, counted: bool) -> Plant:
    """Each token is sent as so many events, and usage has (`counted`) the tokens, or the events."""

    def plant(recorded: Recorded, random: np.random.Generator) -> Recorded:
        made = np.maximum(1, sizes(recorded) // each)
        parts = ["abcdefgh"[:each] * int(size) for size in made]
        sent = recorded.but(text=parts, output_tokens_local=made)
        return sent.but(usage_output=made, output_tokens_asked=made) if counted else sent

    return plant


def tokenizer(prompts: float, answers: float) -> Plant:
    """The server's tokens are so many times the client's: of a prompt, of an answer."""

    def plant(recorded: Recorded, random: np.random.Generator) -> Recorded:
        columns = recorded.columns
        n = sizes(recorded)
        wobble = np.exp(random.normal(0, 0.03, len(n)))
        return recorded.but(
            usage_input=np.round(columns["input_tokens_sent"] * prompts * wobble).astype(np.int64) + TEMPLATE,
            output_tokens_local=np.round(n / answers).astype(np.int64),
        )

    return plant


def cut(to: Callable[[Any, np.random.Generator], Any]) -> Plant:
    """The server reads only so much of each prompt: its count and, by 20 us a token, its TTFT say so."""

    def plant(recorded: Recorded, random: np.random.Generator) -> Recorded:
        columns = recorded.columns
        whole = np.asarray(columns["usage_input"])
        read = np.minimum(whole, np.asarray(to(whole, random)).astype(np.int64))
        early = (whole - read) * 20_000
        events = [
            np.maximum(t - int(by), int(at) + 100_000)
            for t, by, at in zip(columns["event_ns"], early, columns["t_submit"], strict=True)
        ]
        events = [np.maximum.accumulate(t) for t in events]
        ends = np.array([t[-1] for t in events]) + 5_000
        return recorded.but(usage_input=read, event_ns=events, t_end=ends)

    return plant


def cached(share: float, plans: Mapping[str, Any] | None = None, *, of: float = 1.0) -> Plant:
    """A share of the prompts is found in a cache, all but their last tokens; TTFT is as much shorter. `plans`: what the plan
    says of that."""

    def plant(recorded: Recorded, random: np.random.Generator) -> Recorded:
        columns = recorded.columns
        sent = np.asarray(columns["usage_input"])
        hits = np.where(chosen(random, len(sent), share), (sent * 0.95 * of).astype(np.int64), 0)
        early = hits * 20_000
        events = [
            np.maximum(t - int(by), int(at) + 100_000)
            for t, by, at in zip(columns["event_ns"], early, columns["t_submit"], strict=True)
        ]
        events = [np.maximum.accumulate(t) for t in events]
        ends = np.array([t[-1] for t in events]) + 5_000
        done = recorded.but(usage_cached=hits, event_ns=events, t_end=ends)
        return done if plans is None else done.planned(**plans)

    return plant


def failing(share: float, after_ms: float, outcome: str = "http_5xx") -> Plant:
    """A share fails."""

    def plant(recorded: Recorded, random: np.random.Generator) -> Recorded:
        hit = chosen(random, len(recorded.measured), share)
        return failed(recorded, hit, after_ms, outcome)

    return plant


def slowest_fail(share: float) -> Plant:
    """The slowest are given up by the server: what is left looks quick."""

    def plant(recorded: Recorded, random: np.random.Generator) -> Recorded:
        first = np.array([t[1] for t in recorded.columns["event_ns"]]) - recorded.columns["t_submit"]
        first = np.where(recorded.measured, first, 0)
        hit = first >= np.sort(first)[-max(1, round(share * recorded.measured.sum()))]
        return failed(recorded, hit, 0.0, "http_5xx")

    return plant


def failed(recorded: Recorded, hit: Any, after_ms: float, outcome: str) -> Recorded:
    """These requests fail so long after they were sent; 0: when they would have answered."""
    columns = recorded.columns
    early = columns["t_submit"] + round(after_ms * 1e6) if after_ms else columns["t_first_byte"]
    ends = np.where(hit, early, columns["t_end"])
    none = np.zeros(0, np.int64)
    changes: Columns = {
        "t_end": ends,
        "outcome": [outcome if one else "ok" for one in hit],
        "status": np.where(hit, 503, 200),
        "event_ns": [none if one else t for t, one in zip(columns["event_ns"], hit, strict=True)],
        "event_class": [b"" if one else t for t, one in zip(columns["event_class"], hit, strict=True)],
        "finish_reason": [None if one else "length" for one in hit],
        "text": [None if one else t for t, one in zip(columns["text"], hit, strict=True)],
    }
    changes |= {
        name: np.where(hit, -1, columns[name]) for name in ("first_text", "first_visible", "first_answer")
    }
    changes |= {
        name: [None if one else int(v) for v, one in zip(columns[name], hit, strict=True)]
        for name in ("usage_input", "usage_output", "usage_cached", "output_tokens_local")
    }
    return recorded.but(**changes)


def own(plant: Plant) -> Plant:
    """The same where the plan names the model's own tokenizer."""
    return lambda recorded, random: plant(recorded, random).planned(**OWN)


EVEN = replace(OPEN, seed=21, prompts=(400, 400))
"""Prompts of one length, the commonest benchmark of all."""


def _servers() -> Iterator[Defect]:
    family = "lying server"
    yield in_record("usage twice what was made", family, times(2.0), COUNTS, quick=True)
    yield in_record("usage half of what was made", family, times(0.5), COUNTS)
    yield in_record("usage a tenth more", family, times(1.1), COUNTS)
    yield in_record("usage a tenth less", family, times(0.9), COUNTS)
    yield in_record("no usage", family, silent, COUNTS)
    stays = {"usage_output": lambda columns, kept: columns["output_tokens_asked"]}
    yield in_record(
        "40 % shorter, repeats the number asked",
        family,
        shorter(share_of(1, 0.6), **stays),
        LENGTHS,
        quick=True,
    )
    yield in_record(
        "one in ten shorter by 80 %, repeats it",
        family,
        shorter(share_of(0.1, 0.2), **stays),
        LENGTHS,
        honest=shorter(share_of(0.1, 0.2)),
    )
    yield in_record("answers cut by half, usage right", family, shorter(share_of(1, 0.5)), LENGTHS)
    stop = {"finish_reason": lambda columns, kept: ["stop"] * len(kept)}
    yield in_record("ends when it likes, at 70 %", family, shorter(share_of(1, 0.7), **stop), LENGTHS)
    yield in_record("3 % of the answers cut by half", family, shorter(share_of(0.03, 0.5)), LENGTHS)
    yield in_record(
        "9 of 10 deltas empty", family, padded(0.9, ""), COUNTS, honest=seen_alone(0.9), quick=True
    )
    yield in_record("half of the deltas empty", family, padded(0.5, ""), COUNTS, honest=seen_alone(0.5))
    yield in_record(
        "9 of 10 tokens invisible", family, padded(0.9, ZERO_WIDTH), COUNTS, honest=seen_alone(0.9)
    )
    yield in_record(
        "half of the tokens invisible", family, padded(0.5, ZERO_WIDTH), COUNTS, honest=seen_alone(0.5)
    )
    for name, plant, true in (
        ("two tokens in each event, usage of events", crowded(2), crowded(2, counted=True)),
        (
            "three signs in each event, usage of events, own tokenizer",
            own(crowded(3, words=False)),
            own(crowded(3, words=False, counted=True)),
        ),
    ):
        yield in_record(name, family, plant, COUNTS, honest=true, quick="two" in name)
    yield in_record(
        "usage 1.9 times and a tenth of what was made, in turns",
        family,
        both(free, in_turns(1.9, 0.1)),
        COUNTS,
        honest=free,
        quick=True,
    )
    for name, share, word, ends in (
        ("4 % without usage, of long words", 0.04, "supercalifragilistic ", lambda r, _: r),
        ("40 % without usage, of short words, ended by themselves", 0.4, "w ", free),
    ):
        yield in_record(name, family, both(ends, uncounted(share, word)), COUNTS, honest=ends)
    yield in_record(
        "each token in four events, usage of events, own tokenizer",
        family,
        own(in_parts(4, counted=False)),
        COUNTS,
        honest=own(in_parts(4, counted=True)),
    )
    yield in_record(
        "errors of 5 tokens dressed as 10 % of the answers",
        family,
        shorter(share_of(0.1, 0.05), **stop),
        LENGTHS,
    )
    yield in_record("5 % fail at once", family, failing(0.05, 2.0), ("error_rate",), quick=True)
    yield in_record("5 % fail after 5 s", family, failing(0.05, 5_000.0, "timeout"), ("error_rate",))
    yield in_record("the slowest 2 % fail", family, slowest_fail(0.02), ("error_rate",))
    yield in_record("the slowest 0.9 % fail", family, slowest_fail(0.009), ("error_rate",))


def _lengths() -> Iterator[Defect]:
    family = "tokenizers"
    for prompts, answers in ((3.0, 1.5), (0.5, 0.6), (1.3, 1.3), (1.0, 1.15)):
        name = f"{prompts:g} times the tokens of a prompt, {answers:g} of an answer"
        yield in_record(name, family, tokenizer(prompts, answers), (*PROMPTS, *COUNTS))
        yield in_record(
            f"{name}, called its own", family, own(tokenizer(prompts, answers)), (*PROMPTS, *COUNTS)
        )
    family = "truncation"
    for label, wrap in (("", lambda plant: plant), (", own tokenizer", own)):
        yield in_record(
            f"60 tokens of 400{label}",
            family,
            wrap(cut(lambda n, _: np.full(len(n), 60))),
            PROMPTS,
            EVEN,
            quick=not label,
        )
        yield in_record(
            f"200 tokens of 400{label}", family, wrap(cut(lambda n, _: np.full(len(n), 200))), PROMPTS, EVEN
        )
        yield in_record(
            f"300 tokens of 400{label}", family, wrap(cut(lambda n, _: np.full(len(n), 300))), PROMPTS, EVEN
        )
        yield in_record(
            f"at most 256 tokens{label}", family, wrap(cut(lambda n, _: np.full(len(n), 256))), PROMPTS, OPEN
        )
        yield in_record(
            f"at most 400 tokens{label}", family, wrap(cut(lambda n, _: np.full(len(n), 400))), PROMPTS, OPEN
        )
        yield in_record(
            f"a third cut by half{label}",
            family,
            wrap(cut(lambda n, r: np.where(chosen(r, len(n), 0.33), n * 0.5, n))),
            PROMPTS,
            OPEN,
        )
        yield in_record(f"all cut by 40 %{label}", family, wrap(cut(lambda n, _: n * 0.6)), PROMPTS, OPEN)


def _caches() -> Iterator[Defect]:
    family = "caches"
    again: dict[str, Any] = {"workload": {"repeatable_prompts": True}}
    cold = {"sut": {"cache_state": "cold"}}
    yield in_record("half of the prompts cached", family, cached(0.5), CACHE, quick=True)
    yield in_record("one in ten cached", family, cached(0.1), CACHE)
    yield in_record("all cached by 30 %", family, cached(1.0, of=0.3), CACHE)
    yield in_record(
        "declared cold, seen warm, prompts repeat", family, cached(0.9, {**again, **cold}), CACHE, quick=True
    )
    yield in_record("declared cold, seen warm", family, cached(0.9, cold), CACHE, CLOSED)


def seen_cold() -> Defect:
    """The plan says that the cache is warm, and nothing was found in it: the truth is that of a warm one."""
    plans: dict[str, Any] = {"workload": {"repeatable_prompts": True}, "sut": {"cache_state": "warm"}}

    def carry_out() -> Case:
        recorded = base(OPEN)
        warm = cached(0.95, plans)(recorded, random_of("warm"))
        return seen(judged(recorded.planned(**plans)), lambda: headlines(judged(warm).measurement))

    return Defect("declared warm, seen cold, prompts repeat", "caches", CACHE, carry_out, quick=True)


def defects() -> Iterator[Defect]:
    """All of them."""
    yield from _servers()
    yield from _lengths()
    yield from _caches()
    yield seen_cold()
