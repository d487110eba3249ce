"""The prompts of the agentic benchmark: eight phases that share, or do not share, a long system prompt (asiai's methodology,
Agentic Mode).

| phase                     | system  | user     | max_tokens | what of it an engine may have in its cache      |
| ------------------------- | ------- | -------- | ---------- | ----------------------------------------------- |
| `cold`                    | SYS_A   | USER_X   | 400        | nothing                                         |
| `warm`                    | SYS_A   | USER_X   | 400        | everything                                      |
| `prefix-test-1`           | SYS_A   | USER_Y   | 400        | the system prompt                               |
| `prefix-test-2`           | SYS_A   | USER_X   | 400        | everything                                      |
| `prefix-test-3`           | SYS_A   | USER_Y   | 400        | everything                                      |
| `cold-prefix`             | SYS_B   | USER_X   | 400        | nothing                                         |
| `long-context`            | SYS_A   | USER_L   | 200        | the system prompt                               |
| `long-prefix`             | SYS_A   | USER_L   | 200        | everything                                      |

All text follows from a salt and the number of the repetition: the same salt gives the same bytes anywhere, and another one
gives other text from the first word on, so that what a server cached in an earlier benchmark helps no later one. Each
distinct part has a sentinel of its own at its start and in its middle: a cache that takes any known stretch of text for a
prefix finds none.

asiai's methodology does not give the texts: they are ours. They are prose without figures, whose size is taken as
CHARACTERS_A_TOKEN characters a token, or as a tokenizer at hand counts it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from inferometer.errors import PlanError, Problem
from inferometer.workload.bench_prompts import BenchPrompt

CHARACTERS_A_TOKEN = 5.3
"""asiai's methodology: of English prose, by tokenizers of the Qwen family."""
SYSTEM_TOKENS = 6_400
"""The methodology says "often 6K+"."""
LONG_TOKENS = 50_000
SHORTEST_LONG, LONGEST_LONG = 1_000, 1_000_000
MAX_TOKENS, LONG_MAX_TOKENS = 400, 200

PREFIX_TESTS = ("prefix-test-1", "prefix-test-2", "prefix-test-3")

Count = Callable[[str], int]
"""Tokens of a text."""


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase: the names of its system prompt and of its user's message."""

    name: str
    system: str
    user: str
    max_tokens: int


PHASES: tuple[Phase, ...] = (
    Phase("cold", "SYS_A", "USER_X", MAX_TOKENS),
    Phase("warm", "SYS_A", "USER_X", MAX_TOKENS),
    Phase("prefix-test-1", "SYS_A", "USER_Y", MAX_TOKENS),
    Phase("prefix-test-2", "SYS_A", "USER_X", MAX_TOKENS),
    Phase("prefix-test-3", "SYS_A", "USER_Y", MAX_TOKENS),
    Phase("cold-prefix", "SYS_B", "USER_X", MAX_TOKENS),
    Phase("long-context", "SYS_A", "USER_L", LONG_MAX_TOKENS),
    Phase("long-prefix", "SYS_A", "USER_L", LONG_MAX_TOKENS),
)

_ROLES = "planner,reviewer,archivist,dispatcher,negotiator,translator,inspector,coordinator,analyst,assistant,auditor,editor"
_DUTIES = (
    "verify,summarise,reject,forward,compare,document,translate,schedule,approve,question,correct,classify"
)
_THINGS = (
    "the incoming request,a contract draft,the weekly report,every open ticket,the delivery plan,an unclear instruction,"
    "the customer record,a failing test,the travel budget,any foreign document,the meeting notes,a security warning"
)
_WHEN = (
    "before the morning meeting,whenever the deadline is near,after a second reading,as soon as it arrives,"
    "unless the owner objects,only with written permission,while the original stays untouched,once the facts are certain"
)
_HOW = (
    "in plain and friendly language,without changing its meaning,with a short explanation,by the rules of the department,"
    "using the calendar tool,using the search tool,and tell the responsible person,and keep a copy in the archive"
)
_REQUESTS = {
    "USER_X": "Write a long and detailed plan for moving our office to another city: people, contracts, equipment, schedule "
    "and risks, each in a section of its own with several paragraphs.",
    "USER_Y": "Write a long and detailed guide for a new colleague about how our team handles complaints of customers, from "
    "the first message to the final answer, with an example for each step.",
}
_LONG_REQUEST = (
    "\nWrite a long and detailed assessment of the material above: which duties return most often, who carries them, and what "
    "should be changed, with a paragraph on each."
)


@dataclass(frozen=True, slots=True)
class AgenticPrompts:
    """The phases of one repetition, in order, and the size of each part in tokens: by the tokenizer at hand, or by
    CHARACTERS_A_TOKEN."""

    prompts: tuple[BenchPrompt, ...]
    tokens: dict[str, int]

    @property
    def short_tokens(self) -> int:
        """Prompt and answer of the largest short phase."""
        users = max(self.tokens["USER_X"], self.tokens["USER_Y"])
        return max(self.tokens["SYS_A"], self.tokens["SYS_B"]) + users + MAX_TOKENS


def agentic_prompts(
    salt: str, repeat: int = 1, long_tokens: int = LONG_TOKENS, count: Count | None = None
) -> AgenticPrompts:
    """The eight phases.

    Args:
        salt: what all text follows from.
        repeat: of the benchmark, from 1; another one has other text.
        long_tokens: size of USER_L.
        count: the model's tokens of a text; None: CHARACTERS_A_TOKEN characters are taken for one.

    Raises:
        PlanError: USER_L cannot have that size.
    """
    if not SHORTEST_LONG <= long_tokens <= LONGEST_LONG:
        where = f"{long_tokens:,} is not between {SHORTEST_LONG:,} and {LONGEST_LONG:,} tokens"
        raise PlanError([Problem("--long-tokens", where)])
    measure = count or (lambda text: round(len(text) / CHARACTERS_A_TOKEN))
    parts = {name: _part(salt, repeat, name, SYSTEM_TOKENS, measure, "") for name in ("SYS_A", "SYS_B")}
    parts |= {name: _request(salt, repeat, name) for name in _REQUESTS}
    parts["USER_L"] = _part(salt, repeat, "USER_L", long_tokens, measure, _LONG_REQUEST)
    prompts = (BenchPrompt(one.name, parts[one.user], one.max_tokens, parts[one.system]) for one in PHASES)
    return AgenticPrompts(tuple(prompts), {name: measure(text) for name, text in parts.items()})


def sentinel(salt: str, repeat: int, part: str) -> str:
    """The mark of a part, which no other part and no other salt has."""
    return hashlib.sha256(f"{salt}/{repeat}/{part}".encode()).hexdigest()[:16]


def _request(salt: str, repeat: int, name: str) -> str:
    """A short message, its sentinel at the start and in the middle."""
    mark = sentinel(salt, repeat, name)
    first, colon, second = _REQUESTS[name].partition(", ")
    return f"[{mark}] {first}{colon}[{mark}] {second}"


def _part(salt: str, repeat: int, name: str, tokens: int, measure: Count, end: str) -> str:
    """Prose of this many tokens, to a sentence: at least as many, as the methodology has "6K+"."""
    mark = sentinel(salt, repeat, name)
    head, middle = f"[{mark}]\n", f"\n[{mark}]\n"
    sentences = _sentences(Random(f"{salt}/{repeat}/{name}"))  # noqa: S311 (the same text everywhere is the point)
    body: list[str] = []
    while (missing := tokens - measure(head + middle + "".join(body) + end)) > 0:
        # Several sentences at once, but not too many: counting after each would take quadratic time.
        room = missing * 3
        while room > 0:
            body.append(next(sentences))
            room -= len(body[-1])
    half = len(body) // 2
    return head + "".join(body[:half]) + middle + "".join(body[half:]) + end


def _sentences(random: Random) -> Iterator[str]:
    """Rules of an assistant without end."""
    parts = [words.split(",") for words in (_ROLES, _DUTIES, _THINGS, _WHEN, _HOW)]
    while True:
        role, duty, thing, when, how = (random.choice(words) for words in parts)
        yield f"The {role} must {duty} {thing} {when}, {how}.\n"
