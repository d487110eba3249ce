"""Whose tokens a run is about when its plan names no tokenizer: the server's, and how its prompts reach their length in those.

| the server                                       | prompts are                       | kind      |
| ------------------------------------------------ | --------------------------------- | --------- |
| takes token ids (run/target.py finds that out)   | so many ids                       | `ids`     |
| answers /tokenize                                | cut until it counts their length  | `server`  |
| reports usage                                    | written to a ratio learned here   | `learned` |
| does neither; or nothing may be learned          | written to cl100k_base's count    | `none`    |

Nothing is learned before a cold start (draft 4.5.3), nor for the prompts of a file, which are as long as they are.

The ratio is learned from at most MOST_REQUESTS unmeasured requests for one token each: the probe's greeting (its count y0), a
nonce alone (y1), and prompts of the plan's own kind of text behind a nonce (y counts of n tokens of cl100k_base, three of them
the nonce's). Then, with sums over those,

    ratio = sum(y - y1) / sum(n - 3),        template = y0 - 1,        nonce = y1 - template,

for nearly every tokenizer has one token for the greeting. The interval is Student's of the single ratios. Random ids are drawn
one from each of equal strata of the vocabulary: an id says much of how long its text is, so the mean scatters less.
"""

from __future__ import annotations

import math
import random
import secrets
from collections.abc import Callable, Iterator

import numpy as np

from inferometer.documents.workload import LearnedRatio
from inferometer.drive import probe as probing
from inferometer.errors import PeerError, PlanError
from inferometer.plan.schema import Plan
from inferometer.plan.schema import Tokenizer as Spec
from inferometer.plan.workload import LengthsWorkload, MixtureWorkload, StandardWorkload
from inferometer.run.requests import generation_of
from inferometer.workload import corpora, texts, tokenizers
from inferometer.workload.encodings import CL100K, Shipped
from inferometer.workload.prompts import NONCES, plain_words, writer
from inferometer.workload.sources import Source
from inferometer.workload.tokenizer_learned import Learned
from inferometer.workload.tokenizer_none import Uncounted
from inferometer.workload.traces.survey import Survey

MOST_REQUESTS = 5
"""The probe's greeting among them."""
LONG = 1024
"""Tokens of cl100k_base in a prompt to learn from: three of them leave about 1 % of error where single tokens of cl100k_base
are half as many again or half as few of the server's."""
CONTEXT_SHARE = 8
"""Such a prompt takes an eighth of the model's context at the most, for it may be several times as long by the server."""
PIECE = 32
"""Tokens of cl100k_base in a piece of natural text to learn from."""
SHORTER = 8
"""By so much is it shortened, once, if the server refuses it."""
RATIOS = (0.25, 16.0)
"""No tokenizer makes one token of four, nor more tokens than bytes, of which cl100k_base's longest usual words have 16."""
STUDENT = {2: 12.706, 3: 4.303}
"""Quantiles of Student's distribution at 97.5 %, by the number of samples."""
ALIKE = 0.25
"""Prompts of one kind of text whose ratios differ by more are not counted by a tokenizer."""


Count = Callable[[str], int | None]
"""The server's count of a prompt; None where it gives none. Raises PeerError where it refuses the prompt."""

Sample = Callable[[random.Random, int, str], str]
"""A text of so many tokens of cl100k_base behind a nonce."""


def settled(
    plan: Plan,
    source: Source,
    probe: probing.Probe,
    model: str,
    reply: probing.Reply,
    context: int | None,
    note: Callable[[str], None],
) -> tokenizers.Tokenizer:
    """What sizes the text prompts of a plan that names no tokenizer. `reply`: to the probe's greeting; `context`: the model's,
    if known. Raises PeerError where the server is gone."""
    try:
        return tokenizers.load(Spec(name="server"), probe.tokenizer(model))
    except PlanError:
        pass
    sample = sampler(plan, source.trace)
    why = "nothing may be generated before a cold start" if plan.load.cold_start else ""
    if not why and sample is not None:
        if reply.prompt_tokens is None:
            why = "it reports no usage"
        else:
            note("learning from a few short requests how many tokens the server counts in a text")

            def count(text: str) -> int | None:
                return probe.try_out(generation_of(plan, model, text, 1), reply.length_field).prompt_tokens

            # Nonces that no request of the run is likely to have.
            rng = random.Random(secrets.randbits(64))  # noqa: S311 (seeded by the system)
            found = learn(count, reply.prompt_tokens, sample, context, rng)
            if isinstance(found, LearnedRatio):
                return Learned(found)
            why = found
    if why:
        note(
            f"the server has no /tokenize, and {why}: prompts are sized by {CL100K}, and their length in the server's tokens "
            "is unknown"
        )
    return Uncounted()


def learn(
    count: Count, greeting: int, sample: Sample, context: int | None, rng: random.Random
) -> LearnedRatio | str:
    """The ratio, or why there is none. `greeting`: the server's count of the probe's; `context`: the model's, if known."""
    ink = Shipped(CL100K)
    long = LONG if context is None else min(LONG, max(16, context // CONTEXT_SHARE))
    requests, tokens = 2, greeting
    pairs: list[tuple[int, int]] = []
    try:
        first = count(_nonce(rng))
        while first is not None and requests < MOST_REQUESTS:
            mark = _nonce(rng)
            text = sample(rng, long, mark)
            requests += 1
            try:
                counted = count(text)
            except PeerError:
                if pairs or long < LONG // SHORTER:
                    raise
                long //= SHORTER
                continue
            if counted is None:
                break
            tokens += counted
            pairs.append((counted - first, len(ink.encode(text)) - len(ink.encode(mark))))
    except PeerError as cause:
        return f"it refused a prompt to learn from ({cause})"
    if first is None or len(pairs) < min(STUDENT):
        return "it reports usage for some requests only"
    template = max(0, greeting - 1)
    ratio = sum(counted for counted, _ in pairs) / sum(sent for _, sent in pairs)
    single = np.array([counted / sent for counted, sent in pairs])
    if not RATIOS[0] <= ratio <= RATIOS[1] or np.abs(single / ratio - 1).max() > ALIKE:
        return "its usage does not grow with the prompts as a tokenizer's count does"
    half = STUDENT[len(pairs)] * float(single.std(ddof=1)) / math.sqrt(len(pairs))
    return LearnedRatio(
        ratio=ratio,
        low=max(RATIOS[0], ratio - half),
        high=ratio + half,
        nonce=max(1, first - template),
        template=template,
        requests=requests,
        prompt_tokens=tokens + first,
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
