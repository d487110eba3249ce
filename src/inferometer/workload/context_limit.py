"""Does a request fit into the model's context: its prompt, what the chat template puts around that, and the answer asked for?

A turn of a conversation has all that it repeats in its prompt; the server's own replies are taken to be as long as asked.

Answers are counted by the model. Who counts a prompt decides what is known of it:

| its tokens s were counted                   | the model reads at least | so it is refused when        |
| ------------------------------------------- | ------------------------ | ---------------------------- |
| by the model's own tokenizer, or are ids    | s + template             | that + answer > context      |
| by a ratio learned from the server          | floor(s * low / ratio)   | that + template + answer >   |
|                                             |                          | context                      |
| by a yardstick                              | ceil(s / 2)              | that + answer > context      |

for a text hardly has half as many tokens under another tokenizer; `low` is the lower end of the ratio's 95 % interval. The
template's tokens are those around one message, and in a conversation those around each answer and message that it repeats, and
around a shared system prompt, which the probe finds by one short request each.

Whether a request is too long is found out before the first one is sent. The rows of a trace are gone through for it. What is
drawn has to be made for it, which takes time: so the bounds of the distributions are looked at first, and only where they
leave too little room are all requests made before the warm-up begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inferometer.errors import PlanError, Problem
from inferometer.plan.lengths import Distribution
from inferometer.plan.workload import AnyRows, MixtureWorkload
from inferometer.workload.traces.survey import replay

if TYPE_CHECKING:
    from inferometer.plan.schema import Trace
    from inferometer.plan.workload import AnyWorkload
    from inferometer.workload.prompts import Prompt
    from inferometer.workload.tokenizers import Tokenizer
    from inferometer.workload.traces.survey import Survey

_YARDSTICK = 2
SLACK = 32
"""A nonce, a fixed question, a token at each seam: by so much may a prompt be longer than was drawn."""
_SERVE = "or serve the model with a longer context"


@dataclass(frozen=True, slots=True)
class Room:
    """What a model takes: `context` tokens, prompt and answer together.

    `exact`: prompts are counted as the model counts them, by the tokenizer `counter` or as ids. `template`: tokens that the
    server puts around a prompt, as far as they are known; `exchange`: those around an answer and the message behind it;
    `system`: those around a shared system prompt. `least`: where counts are estimated, the share of one that the model
    reads at the least.
    """

    context: int
    exact: bool
    counter: str
    template: int = 0
    least: float = 1.0
    exchange: int = 0
    system: int = 0

    def around(self, turn: int, *, shared: bool) -> int:
        """The template's tokens in a turn's prompt, from 0; `shared`: it begins with a shared prefix."""
        return self.template + turn * self.exchange + (self.system if shared else 0)

    def read(self, sent: int, around: int | None = None) -> int:
        """The fewest tokens that the model can read of a prompt of `sent` tokens; `around`: those of the template in it, if
        they are more than those of one message."""
        template = self.template if around is None else around
        return int(sent * self.least) + template if self.exact else -(-sent // _YARDSTICK)

    def holds(self, sent: int, output: int, around: int | None = None) -> bool:
        """Whether a prompt of `sent` tokens and an answer of `output` may fit."""
        return self.read(sent, around) + output <= self.context

    def words(self, sent: int, output: int, around: int | None = None) -> str:
        """What is wrong with a request that does not fit."""
        sure = self.exact and self.least == 1
        least = "" if sure else f", which is {self.read(sent, around):,} of the model's own at the least"
        tokens = self.template if around is None else around
        template = f" and {tokens:,} of the chat template" if tokens else ""
        return (
            f"is {sent:,} tokens long by {self.counter}{template}{least}, and {output:,} are asked for: "
            f"the model takes {self.context:,} in all"
        )

    def checked(self, spec: AnyWorkload, made: Iterable[Prompt], what: str) -> Iterator[Prompt]:
        """The prompts as they pass. Raises PlanError at the first that does not fit. `what`: "warm-up " or ""."""
        for number, prompt in enumerate(made, 1):
            sent = prompt.sent + prompt.repeated
            turn = 0 if prompt.place is None else prompt.place.turn
            around = self.around(turn, shared=prompt.shared > 0)
            if not self.holds(sent, prompt.output, around):
                where, advice = _advice(spec, prompt, self.context)
                problem = self.words(sent, prompt.output, around)
                raise PlanError([Problem(where, f"{what}request {number:,} {problem}. {advice}, {_SERVE}")])
            yield prompt


def _advice(spec: AnyWorkload, prompt: Prompt, context: int) -> tuple[str, str]:
    """Where the length comes from, and what to do about it."""
    if prompt.repeated:
        return (
            "--turns",
            "Ask for fewer turns (--turns), or for less in each (--input-tokens, --output-tokens)",
        )
    side = "output_tokens" if prompt.output >= context else "input_tokens"
    if isinstance(spec, AnyRows):
        return (
            "--tasks" if spec.kind == "tasks" else "--prompts",
            "Shorten that prompt or take it out of the file, ask for shorter answers (--output-tokens)",
        )
    if isinstance(spec, MixtureWorkload):
        at = prompt.request_class or 0
        bounds = "its input_tokens, output_tokens or shared_prefix (max= bounds a distribution)"
        return f"workload.classes[{at}].{side}", f"Shorten class {spec.classes[at].name}: {bounds}"
    return f"--{side.replace('_', '-')}", (
        "Ask for less with --input-tokens and --output-tokens (distributions take a max=)"
    )


def may_exceed(turns: Distribution | None, bounds: Iterable[tuple[int, int]], room: Room) -> bool:
    """Whether a request could be too long, by the longest prompt and answer of each class, and the most `turns` there are."""
    most = 1 if turns is None else turns.most()
    around = room.around(most - 1, shared=True)
    return any(
        not room.holds(most * (prompt + SLACK) + (most - 1) * answer, answer, around)
        for prompt, answer in bounds
    )


def check_trace(trace: Trace, survey: Survey, tokenizer: Tokenizer, room: Room) -> None:
    """Raise PlanError for the first row of a trace's window that does not fit; read again only where one could."""
    most = [0 if of is None else of.max for of in (survey.facts.input_tokens, survey.facts.output_tokens)]
    # A token is a byte at the least.
    if room.holds(max(most[0], survey.longest_text) + SLACK, most[1]):
        return
    for number, (_, row) in enumerate(replay(trace, survey), 1):
        sent = row.input_tokens
        if row.prompt is not None:
            size = len(row.prompt.encode())
            sent = size if room.holds(size, row.output_tokens) else len(tokenizer.encode(row.prompt))
        assert sent is not None
        if not room.holds(sent, row.output_tokens):
            problem = room.words(sent, row.output_tokens)
            advice = "Leave it out of the window (--trace-start, --trace-end, --requests)"
            raise PlanError(
                [
                    Problem(
                        f"{survey.facts.file}:{row.line}", f"request {number:,} {problem}. {advice}, {_SERVE}"
                    )
                ]
            )
