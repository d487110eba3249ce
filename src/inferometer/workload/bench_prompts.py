"""The prompts of the engine benchmark: the same text, in every run and to every engine.

| name            | what it is like                                       | max_tokens |
| --------------- | ----------------------------------------------------- | ---------- |
| `code`          | a short request for a program                         | 512        |
| `tool-call`     | a system prompt with tools, and a request to use one  | 256        |
| `reasoning`     | a puzzle, to be solved step by step                   | 384        |
| `long`          | a short request for a long text                       | 1,024      |
| `context-4k`    | 4,000 tokens of text and a question; also other sizes | 128        |

asiai's methodology names these kinds of prompts, not their words: those are ours, and fixed.

The text of a context fill is numbered lines of unlike sentences, so that no part of it repeats another. It is as long as the
tokenizer at hand counts, question included, and otherwise CHARACTERS_A_TOKEN characters a token. A shorter fill begins like a
longer one, as documents of different lengths do not: each begins with its own title.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from inferometer.errors import PlanError, Problem

CHARACTERS_A_TOKEN = 4
CHARACTERS_A_STEP = 2
"""No usual tokenizer makes more tokens of such text than one of every two characters."""
FILL_MAX_TOKENS = 128
SMALLEST, LARGEST = 200, 1_000_000
"""Tokens of a context fill."""
USUAL_CONTEXTS = (4_000, 16_000, 32_000, 64_000)

Count = Callable[[str], int]
"""Tokens of a text."""


@dataclass(frozen=True, slots=True)
class BenchPrompt:
    """One prompt. `tokens`: what a context fill was sized to; None: no context fill. `counted`: its tokens by the tokenizer
    that sized it; None: none did."""

    name: str
    text: str
    max_tokens: int
    system: str | None = None
    tokens: int | None = None
    counted: int | None = None


def easiest(prompts: Sequence[BenchPrompt]) -> BenchPrompt:
    """The one that takes least to read: no context fill if there is another, and the shortest."""
    return min(prompts, key=lambda one: (one.tokens or 0, len(one.text)))


_TOOLS = """\
You are an assistant with tools. To use one, answer with nothing but a JSON object: {"tool": NAME, "arguments": {...}}.
get_weather(city: string, unit: "celsius" | "fahrenheit"): the weather now.
search_flights(origin: string, destination: string, date: string, passengers: integer): flights on a date.
create_event(title: string, start: string, duration_minutes: integer, attendees: list of strings): an entry in the calendar.
convert_currency(amount: number, source: string, target: string): an amount in another currency.
"""

PROMPTS: tuple[BenchPrompt, ...] = (
    BenchPrompt(
        "code",
        "Write a Python class for a cache with a fixed capacity that evicts the least recently used entry. Give it get, put "
        "and delete, each in constant time, with type annotations and docstrings, and then unit tests for the edge cases.",
        512,
    ),
    BenchPrompt(
        "tool-call",
        "Find flights for two passengers from Lisbon to Copenhagen on 14 March, and put a meeting with Ana and Jens of "
        "ninety minutes into the calendar for the morning after.",
        256,
        _TOOLS,
    ),
    BenchPrompt(
        "reasoning",
        "Three machines make parts. The first makes 120 an hour, of which 5 % are rejected, the second 90 with 2 %, the third "
        "60 with 1 %. They run side by side until 2,000 good parts are made, but the first stops for repair after four hours "
        "and never starts again. After how many hours are the parts made? Explain every step before you give the answer.",
        384,
    ),
    BenchPrompt(
        "long",
        "Write a detailed guide to growing vegetables in a small garden for a beginner: soil, planning, sowing, watering, "
        "pests, harvest and storage, with a section for each month of the year.",
        1_024,
    ),
)
"""The set that is measured unless others are chosen."""

NAMES = tuple(one.name for one in PROMPTS)

_SUBJECTS = (
    "engineer,surveyor,captain,librarian,gardener,merchant,astronomer,carpenter,teacher,physician,baker,clerk"
)
_VERBS = (
    "measured,described,repaired,counted,compared,recorded,delivered,examined,ordered,painted,moved,rejected"
)
_OBJECTS = "bridge,engine,harvest,chart,lantern,ledger,telescope,cabinet,lesson,remedy,oven,letter,canal,signal,map,bell"
_PLACES = "harbour,valley,northern station,old market,river crossing,eastern hall,workshop,upper terrace,archive,coast"
_QUESTION = "\n\nWhich three entries of this journal are about the harbour? Give their numbers, and one sentence on each.\n"


def chosen(
    names: Sequence[str], contexts: Sequence[int], count: Count | None = None
) -> tuple[BenchPrompt, ...]:
    """The prompts of these names, then the context fills of these sizes (tokens), each once.

    `count`: the tokens of a text, to size the fills. Raises PlanError for a name or a size that there is none of.
    """
    unknown = [name for name in names if name not in NAMES]
    problems = [
        Problem("--prompts", f"has no prompt {name[:40]!r}: choose of {', '.join(NAMES)}") for name in unknown
    ]
    problems += [
        Problem("--contexts", f"{size} is not between {SMALLEST} and {LARGEST:,} tokens")
        for size in contexts
        if not SMALLEST <= size <= LARGEST
    ]
    if problems:
        raise PlanError(problems)
    named = {one.name: one for one in PROMPTS}
    return (
        *(named[name] for name in dict.fromkeys(names)),
        *(context_fill(size, count) for size in dict.fromkeys(contexts)),
    )


def sizes(text: str) -> tuple[int, ...]:
    """Context sizes as they are written: `4k,16k` or `4000`; k is a thousand. Raises PlanError."""
    found: list[int] = []
    for word in filter(None, re.split(r"[,\s]+", text)):
        form = re.fullmatch(r"(\d{1,7})(k?)", word.lower())
        if form is None:
            raise PlanError([Problem("--contexts", f"{word[:20]!r} is no size: write for example 4k,16k")])
        found.append(int(form[1]) * (1_000 if form[2] else 1))
    if not found:
        raise PlanError([Problem("--contexts", f"{text[:20]!r} names no size: leave it out for none")])
    return tuple(found)


def context_fill(tokens: int, count: Count | None = None) -> BenchPrompt:
    """A prompt of this many tokens, to a line of text, question included.

    `count`: the model's tokens of a text; None: CHARACTERS_A_TOKEN characters are taken for one.
    """
    name = f"context-{tokens // 1_000}k" if tokens % 1_000 == 0 else f"context-{tokens}"
    measure = count or (lambda text: len(text) // CHARACTERS_A_TOKEN)
    lines = _lines(Random(tokens))  # noqa: S311 (the same text everywhere is the point)
    text = [f"Journal of {tokens} tokens\n\n"]
    while (missing := tokens - measure("".join(text) + _QUESTION)) > 0:
        # Most of what is missing at once, but not too much: counting after every line would take quadratic time.
        room = missing * CHARACTERS_A_STEP
        while room > 0:
            text.append(next(lines))
            room -= len(text[-1])
    while len(text) > 1 and measure("".join(text) + _QUESTION) > tokens:
        text.pop()
    whole = "".join(text) + _QUESTION
    counted = None if count is None else count(whole)
    return BenchPrompt(name, whole, FILL_MAX_TOKENS, tokens=tokens, counted=counted)


def _lines(random: Random) -> Iterator[str]:
    """Numbered sentences without end."""
    parts = [words.split(",") for words in (_SUBJECTS, _VERBS, _OBJECTS, _PLACES)]
    number = 0
    while True:
        number += 1
        subject, verb, thing, place = (random.choice(words) for words in parts)
        day, amount = random.randrange(1, 29), random.randrange(2, 990)
        yield f"{number}. On day {day} the {subject} {verb} the {thing} at the {place}, for {amount} coins.\n"


def prompt_file(prompts: Sequence[BenchPrompt], *, messages: bool) -> bytes:
    """The prompts as the file of a plan (workload/prompt_file.py): a line each, `class` being the name.

    `messages`: the interface takes a system prompt as a message of its own; otherwise it stands before the text.
    """
    rows = []
    for one in prompts:
        apart = messages and one.system is not None
        text = one.text if apart or one.system is None else f"{one.system}\n{one.text}"
        row: dict[str, str | int] = {"class": one.name, "prompt": text, "output_tokens": one.max_tokens}
        rows.append(row | {"system": one.system} if apart else row)
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
