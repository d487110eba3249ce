"""Whose tokens a run is about when its plan names no tokenizer: the server's, and how its prompts reach their length in those.

| the server                                       | prompts are                       | kind      |
| ------------------------------------------------ | --------------------------------- | --------- |
| takes token ids (run/target.py finds that out)   | so many ids                       | `ids`     |
| answers /tokenize, soundly (see below)           | cut until it counts their length  | `server`  |
| reports usage                                    | written to a ratio learned here   | `learned` |
| does neither; or nothing may be learned          | written to cl100k_base's count    | `none`    |

A /tokenize that no longer answers while prompts are made is taken for none, and all of them are made anew (run/preparation.py).
Nothing is learned before a cold start (draft 4.5.3), nor for the prompts of a file, which are as long as they are.

A /tokenize is sound if it answers in time, counts a text of the plan's kind as a tokenizer can (RATIOS, LEAST_IDS) and, where
the server reports usage, agrees with that about one prompt for one token, less what is around the probe's greeting, to the
tolerance of a prompt's length. Usage that contradicts it is what figures follow, but the check `prompt_length` then decides
nothing: one of the two is no count of what the model reads.

The ratio is learned from at most MOST_REQUESTS unmeasured requests for one token each: the probe's greeting (its count y0), a
nonce alone (y1), and prompts of the plan's own kind of text behind a nonce (y counts of n tokens of cl100k_base, three of them
the nonce's). Then, with sums over those,

    ratio = sum(y - y1) / sum(n - 3),        template = y0 - 1,        nonce = y1 - template,

for nearly every tokenizer has one token for the greeting. A prompt that /tokenize was held to is one of them. The interval is
Student's of the single ratios. Random ids are drawn one from each of equal strata of the vocabulary: an id says much of how
long its text is, so the mean scatters less.
"""

from __future__ import annotations

import math
import random
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from inferometer.documents.workload import LearnedRatio
from inferometer.drive import probe as probing
from inferometer.errors import PeerError, PlanError
from inferometer.measure.lengths import PROMPT_MISS
from inferometer.plan.schema import Plan
from inferometer.plan.schema import Tokenizer as Spec
from inferometer.plan.workload import LengthsWorkload, MixtureWorkload, StandardWorkload
from inferometer.run.request_writer import generation_of
from inferometer.workload import corpora, texts, tokenizers
from inferometer.workload.encodings import CL100K, Shipped
from inferometer.workload.nonces import NONCES
from inferometer.workload.prompts import plain_words, writer
from inferometer.workload.sources import Source
from inferometer.workload.tokenizer_learned import Learned
from inferometer.workload.tokenizer_none import Uncounted
from inferometer.workload.traces.survey import Survey

MOST_REQUESTS = 7
"""The probe's greeting among them. Five prompts leave a ratio whose standard deviation is a third of PROMPT_MISS where single
tokens differ most; three left two fifths, and one run in fifty missed its lengths by that alone."""
LONG = 1024
"""Tokens of cl100k_base in a prompt to learn from: five of them leave 0.6 % of error where single tokens of cl100k_base
are half as many again or half as few of the server's."""
CONTEXT_SHARE = 8
"""Such a prompt takes an eighth of the model's context at the most, for it may be several times as long by the server."""
PIECE = 32
"""Tokens of cl100k_base in a piece of natural text to learn from."""
SHORTER = 8
"""By so much is it shortened, once, if the server refuses it."""
RATIOS = (0.25, 16.0)
"""No tokenizer makes one token of four, nor more tokens than bytes, of which cl100k_base's longest usual words have 16."""
STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}
"""Quantiles of Student's distribution at 97.5 %, by the number of samples."""
ALIKE = 0.25
"""Prompts of one kind of text whose ratios differ by more are not counted by a tokenizer."""
TRIAL_S = 5.0
"""The longest that a question to a /tokenize may take that nobody asked for by name."""
SLOWEST_S = 0.5
"""For LONG tokens; a prompt takes about three such questions. Ten thousand prompts would take half an hour over its lanes."""
LEAST_IDS = 20
"""Words of natural text are hardly ever fewer kinds of tokens, and a count without a tokenizer has one or a few."""


NO_COUNT = "its usage does not grow with the prompts as a tokenizer's count does"

Count = Callable[[str], int | None]
"""The server's count of a prompt; None where it gives none. Raises PeerError where it refuses the prompt."""

Sample = Callable[[random.Random, int, str], str]
"""A text of so many tokens of cl100k_base behind a nonce."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """A prompt and what was found of it: `text` behind the nonce `mark`, `counted` by usage; None: it gives none."""

    mark: str
    text: str
    counted: int | None


class Undecided(Exception):
    """Why the server's /tokenize is not to be used. `disputed`: its count for one of usage, where only that contradicts it."""

    def __init__(self, why: str, disputed: float | None = None) -> None:
        super().__init__(why)
        self.disputed = disputed


def settled(
    plan: Plan,
    source: Source,
    probe: probing.Probe,
    model: str,
    reply: probing.Reply,
    context: int | None,
    note: Callable[[str], None],
    gone: str | None = None,
) -> tokenizers.Tokenizer:
    """What sizes the text prompts of a plan that names no tokenizer. `reply`: to the probe's greeting; `context`: the model's,
    if known; `gone`: why the server's /tokenize, which was used before, is not to be used again."""
    sample = sampler(plan, source.trace)
    rng = random.Random(secrets.randbits(64))  # noqa: S311 (seeded by the system: nonces that no request of the run has)
    long = LONG if context is None else min(LONG, max(16, context // CONTEXT_SHARE))

    def count(text: str) -> int | None:
        return probe.try_out(generation_of(plan, model, text, 1), reply.length_field).prompt_tokens

    mark = _nonce(rng)
    lesson = Lesson(mark, (sample or trace_sample)(rng, long, mark), None)
    lessons: list[Lesson] = []
    disputed = None
    why_not = "the server has no /tokenize"
    try:
        if gone is not None:
            raise Undecided(gone)
        theirs = answering(probe, model, lesson.text)
        if reply.prompt_tokens is None or plan.load.cold_start:
            return theirs
        lessons = [replace(lesson, counted=_counted(count, lesson.text))]
        agrees(theirs, reply.prompt_tokens, lessons[0])
        return theirs
    except Undecided as cause:
        why_not, disputed = str(cause), cause.disputed
    why = "nothing may be generated before a cold start" if plan.load.cold_start else ""
    if not why and sample is not None:
        if reply.prompt_tokens is None:
            why = "it reports no usage"
        else:
            note(f"{why_not}: learning from a few short requests how many tokens the server counts in a text")
            found = learn(count, reply.prompt_tokens, sample, long, rng, lessons)
            if isinstance(found, LearnedRatio):
                return Learned(msgspec.structs.replace(found, disputed=disputed))
            why = found
    if why:
        note(
            f"{why_not}, and {why}: prompts are sized by {CL100K}, and their length in the server's tokens is unknown"
        )
    return Uncounted(unsound=why == NO_COUNT)


def _counted(count: Count, text: str) -> int | None:
    try:
        return count(text)
    except PeerError:  # it may be too long for this server: nothing is learned from it
        return None


def answering(probe: probing.Probe, model: str, text: str) -> tokenizers.Tokenizer:
    """The server's /tokenize, if it counts that text in time and as a tokenizer can. Raises Undecided."""
    try:
        trial = tokenizers.load(Spec(name="server"), probe.tokenizer(model, TRIAL_S))
        began = time.monotonic()
        ids = trial.encode(text)
        took = time.monotonic() - began
        ratio = len(ids) / max(1, len(Shipped(CL100K).encode(text)))
        if took > SLOWEST_S:
            raise Undecided(
                f"the server's /tokenize takes {took:.1f} s for a text of {len(text):,} characters"
            )
        if not RATIOS[0] <= ratio <= RATIOS[1] or len(set(ids)) < min(LEAST_IDS, len(ids) // 4):
            raise Undecided("the server's /tokenize does not count as a tokenizer does")
        return tokenizers.load(Spec(name="server"), probe.tokenizer(model))
    except PlanError:
        raise Undecided("the server has no /tokenize") from None
    except PeerError as cause:
        raise Undecided(f"the server's /tokenize does not answer as it should ({cause})") from None


def agrees(theirs: tokenizers.Tokenizer, greeting: int, lesson: Lesson) -> None:
    """Nothing, if that tokenizer and usage (of the probe's greeting, too) count alike. Raises Undecided."""
    if lesson.counted is None:
        return
    try:
        around = greeting - len(theirs.encode(probing.GREETING))
        counted = len(theirs.encode(lesson.text))
    except PeerError as cause:
        raise Undecided(f"the server's /tokenize does not answer as it should ({cause})") from None
    expected = counted + max(0, around)
    if abs(lesson.counted - expected) > max(PROMPT_MISS[0], PROMPT_MISS[1] * expected):
        raise Undecided(
            f"the server's usage counts {lesson.counted:,} tokens where its /tokenize leads to expect {expected:,}",
            expected / lesson.counted,
        )


def learn(
    count: Count, greeting: int, sample: Sample, long: int, rng: random.Random, lessons: Sequence[Lesson] = ()
) -> LearnedRatio | str:
    """The ratio, or why there is none. `greeting`: the server's count of the probe's; `long`: tokens of cl100k_base in a prompt
    to learn from; `lessons`: prompts that were counted before."""
    taken = [one for one in lessons if one.counted is not None]
    requests = 1 + len(lessons)
    try:
        first = count(_nonce(rng))
        requests += 1
        while first is not None and requests < MOST_REQUESTS:
            mark = _nonce(rng)
            text = sample(rng, long, mark)
            requests += 1
            try:
                counted = count(text)
            except PeerError:
                if taken or long < LONG // SHORTER:
                    raise
                long //= SHORTER
                continue
            if counted is None:
                break
            taken.append(Lesson(mark, text, counted))
    except PeerError as cause:
        return f"it refused a prompt to learn from ({cause})"
    if first is None or len(taken) < min(STUDENT):
        return "it reports usage for some requests only"
    tokens = sum(one.counted or 0 for one in taken) + greeting + first
    return _ratio(taken, greeting, first, requests, tokens)


def _ratio(
    lessons: Sequence[Lesson], greeting: int, first: int, requests: int, tokens: int
) -> LearnedRatio | str:
    """The ratio by the head's formula, or why there is none."""
    ink = Shipped(CL100K)
    pairs = [
        ((one.counted or 0) - first, len(ink.encode(one.text)) - len(ink.encode(one.mark))) for one in lessons
    ]
    template = max(0, greeting - 1)
    ratio = sum(counted for counted, _ in pairs) / sum(sent for _, sent in pairs)
    single = np.array([counted / sent for counted, sent in pairs])
    if not RATIOS[0] <= ratio <= RATIOS[1] or np.abs(single / ratio - 1).max() > ALIKE:
        return NO_COUNT
    half = STUDENT[len(pairs)] * float(single.std(ddof=1)) / math.sqrt(len(pairs))
    return LearnedRatio(
        ratio=ratio,
        low=max(RATIOS[0], ratio - half),
        high=ratio + half,
        nonce=max(1, first - template),
        template=template,
        requests=requests,
        prompt_tokens=tokens,
    )


def _nonce(rng: random.Random) -> str:
    return f"{rng.randrange(NONCES):09d}"


def sampler(plan: Plan, trace: Survey | None) -> Sample | None:
    """Makes texts of the plan's kind. None: its prompts are given."""
    workload = plan.workload
    if trace is not None:
        if trace.facts.texts:
            return None
        return trace_sample
    if isinstance(workload, MixtureWorkload):
        return lambda rng, tokens, mark: mark + "".join(_mixed(workload, rng, tokens))
    if isinstance(workload, StandardWorkload) and workload.content.text is not None:
        natural = texts.texts_of(workload)
        return lambda rng, tokens, mark: f"{mark}\n" + _from_all_over(natural, rng, tokens)
    if isinstance(workload, StandardWorkload | LengthsWorkload):
        return _random
    return None


def trace_sample(rng: random.Random, tokens: int, mark: str) -> str:
    """Plain words, of which a trace's prompts are made."""
    return mark + "".join(rng.choices(plain_words(Shipped(CL100K)), k=tokens))


def _from_all_over(natural: texts.Texts, rng: random.Random, tokens: int) -> str:
    """Pieces from equal parts of a text, whose parts differ."""
    ink, pieces = Shipped(CL100K), max(1, tokens // PIECE)
    wide = natural.places / pieces
    starts = [int((part + rng.random()) * wide) for part in range(pieces)]
    return "\n".join(natural.cut(ink, max(1, tokens // pieces), start) for start in starts)


def _random(rng: random.Random, tokens: int, mark: str) -> str:
    ink = Shipped(CL100K)
    width = ink.vocab_size / tokens
    ids = [int((stratum + rng.random()) * width) for stratum in range(tokens)]
    rng.shuffle(ids)
    return writer(ink).write(np.array(ids, np.uint32), mark)[0]


def _mixed(workload: MixtureWorkload, rng: random.Random, tokens: int) -> Iterator[str]:
    """Texts of the classes' kinds, each by its share of the tokens."""
    shares: dict[str, float] = {}
    for one in workload.classes:
        prefix = 0.0 if one.shared_prefix is None else one.shared_prefix.share * one.shared_prefix.tokens
        shares[one.content] = shares.get(one.content, 0.0) + one.weight * (one.input_tokens.mean() + prefix)
    total = sum(shares.values())
    for one in workload.classes:
        if one.content not in shares:
            continue
        count = round(tokens * shares.pop(one.content) / total)
        if count < 1:
            continue
        if one.content == "random":
            yield " " + _random(rng, count, "")
        else:
            yield "\n" + _from_all_over(texts.Prose(corpora.load(one.content)), rng, count)
