"""The standard workloads as data: draft 4.3.2 and appendix A, and what was settled where the draft leaves it open.

| name                | input tokens       | output tokens      | text               | shared in front                     |
| ------------------- | ------------------ | ------------------ | ------------------ | ----------------------------------- |
| `synthetic-uniform` | uniform            | uniform            | random tokens      | nothing                             |
| `synthetic-skewed`  | log-normal         | log-normal         | random tokens      | nothing                             |
| `conversation`      | those of ShareGPT  | those of ShareGPT  | ShareGPT           | 50 %: one system prompt             |
| `code-completion`   | those of The Stack | log-normal         | The Stack          | 80 %: one of 10 repository contexts |
| `long-context`      | uniform            | 256                | document, question | nothing                             |
| `normal`            | normal             | 150                | random tokens      | nothing                             |

ShareGPT and The Stack come from a file of the user's. Without it a stand-in takes their place, and the workload is custom.
Shared tokens stand on top of the input length drawn, for ShareGPT's lengths are of what users wrote.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from inferometer.plan.lengths import (
    Distribution,
    Empirical,
    Lognormal,
    fixed,
    lognormal,
    normal,
    quantiles,
    uniform,
)

Name = Literal[
    "synthetic-uniform", "synthetic-skewed", "conversation", "code-completion", "long-context", "normal"
]

STANDARD: dict[str, tuple[Distribution, Distribution]] = {
    "synthetic-uniform": (uniform(128, 512), uniform(64, 256)),  # draft 4.3.2.1, A.1
    "synthetic-skewed": (
        lognormal(5.5, 1.0, min=32, max=4096),
        lognormal(4.5, 1.2, min=16, max=2048),
    ),  # draft A.2
    "conversation": (Empirical(), Empirical()),  # draft 4.3.2.3, A.3
    "code-completion": (
        Empirical(),
        lognormal(4.0, 1.5, min=1, max=2048),
    ),  # draft 4.3.2.4, A.4; no cap there
    "long-context": (uniform(8192, 32768), fixed(256)),  # draft 4.3.2.5, A.5.2
    "normal": (normal(550, 150), fixed(150)),  # the kind of prompts of the from-scratch article
}
"""Input and output lengths that a workload's name stands for."""

STAND_INS: dict[str, tuple[Distribution, Distribution]] = {
    # Draft A.3.2's quantiles. It says nothing of the ends: a nonce and some words, and Synthetic-Skewed's caps.
    "conversation": (
        quantiles([(0, 8), (50, 156), (95, 892), (99, 2134), (100, 4096)]),
        quantiles([(0, 8), (50, 234), (95, 789), (99, 1567), (100, 2048)]),
    ),
    "code-completion": STANDARD["code-completion"],  # the lengths of the corpus's functions
}
"""The lengths of those that need a dataset, where none is given."""

WITHOUT_DATASET = {
    "conversation": "text is cut from an English corpus in the package, and lengths are drawn through the quantiles of draft "
    "A.3.2, input and output apart; the draft takes both from ShareGPT",
    "code-completion": "text is the functions of a code corpus in the package, Python's standard library; the draft takes "
    "functions in Python, JavaScript and TypeScript from The Stack",
}
"""What the stand-in of a dataset parts from."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """A prefix that requests have in common, on top of the length drawn.

    `fraction` of the requests begin with one of `groups` prefixes of `tokens` tokens, the k-th with a chance in proportion to
    k^-`zipf`. `system`: in a chat it is a system message; else it stands in front of the prompt.
    """

    fraction: float
    groups: int
    tokens: Distribution
    zipf: float = 0.0
    system: bool = False

    @property
    def weights(self) -> list[float]:
        """Of each prefix, the first being the commonest."""
        return [rank**-self.zipf for rank in range(1, self.groups + 1)]

    def __str__(self) -> str:
        """In words."""
        which = "one text" if self.groups == 1 else f"one of {self.groups} texts"
        chosen = f", Zipf with s = {self.zipf:g}" if self.zipf else ""
        return f"{self.fraction:.4g} of the requests, {self.tokens} tokens on top of the input length, {which}{chosen}"


@dataclass(frozen=True, slots=True)
class Content:
    """What a workload's texts are: the rest of draft 4.3.1. `text` None: random tokens. `dataset`: whose they should be."""

    domain: Literal["general", "code", "conversation", "instruction"]
    language: str
    text: Literal["english", "code"] | None = None
    dataset: Literal["sharegpt", "the-stack"] | None = None
    sharing: Sharing | None = None
    question: bool = False


RANDOM = Content("general", "none: random tokens without meaning")

CONTENTS: dict[str, Content] = {
    "conversation": Content(
        "conversation",
        "English",
        "english",
        "sharegpt",
        Sharing(0.5, 1, fixed(200), system=True),  # draft 4.3.2.3
    ),
    "code-completion": Content(
        "code",
        "Python, JavaScript, TypeScript",
        "code",
        "the-stack",
        Sharing(0.8, 10, uniform(512, 1024), zipf=1.5),  # draft A.4.2
    ),
    "long-context": Content("general", "English", "english", question=True),  # draft A.5.1
}
"""Of those that are no random tokens."""


@dataclass(frozen=True, slots=True)
class Published:
    """A figure that the draft, or a distribution's parameters, give for lengths without the shared prefix, in tokens.

    `percent` None: the mean.
    """

    side: Literal["input", "output"]
    percent: int | None
    tokens: float
    source: str


PUBLISHED: dict[str, tuple[Published, ...]] = {
    "synthetic-uniform": (
        Published("input", None, 320, "draft A.1.1"),
        Published("output", None, 160, "draft A.1.2"),
    ),
    "synthetic-skewed": (
        Published("input", 50, 245, "draft A.2.1"),
        Published("input", None, 405, "draft A.2.1"),
        Published("output", 50, 90, "exp(mu), draft A.2.2"),
    ),
    "conversation": (
        Published("input", 50, 156, "draft A.3.2"),
        Published("input", 95, 892, "draft A.3.2"),
        Published("input", 99, 2134, "draft A.3.2"),
        Published("output", 50, 234, "draft A.3.2"),
        Published("output", 95, 789, "draft A.3.2"),
        Published("output", 99, 1567, "draft A.3.2"),
    ),
    "code-completion": (Published("output", 50, 55, "exp(mu), draft 4.3.2.4"),),
    "long-context": (
        Published("input", None, 20480, "draft 4.3.2.5, the middle"),
        Published("output", None, 256, "draft A.5.2"),
    ),
}
"""What drawn lengths are held to, by the standard's name."""


def same(standard: str, side: int, given: Distribution) -> bool:
    """Whether a length is what the standard says of inputs (side 0) or outputs (1); a cap is free where the draft has none."""
    theirs = STANDARD[standard][side]
    if standard == "code-completion" and isinstance(given, Lognormal) and isinstance(theirs, Lognormal):
        given = replace(given, max=theirs.max)
    return given == theirs


def published(standard: str | None, lengths: tuple[Distribution, Distribution]) -> tuple[Published, ...]:
    """The figures that these lengths are to come to: the standard's, of each side that is not another than its own."""
    sides = ("input", "output")
    own = {
        side
        for place, (side, length) in enumerate(zip(sides, lengths, strict=True))
        if standard in STANDARD
        and (same(standard, place, length) or length == STAND_INS.get(standard, (None, None))[place])
    }
    return tuple(figure for figure in PUBLISHED.get(standard or "", ()) if figure.side in own)
