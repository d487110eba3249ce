"""The two reference systems: an agent that plans, calls tools and answers; a pipeline that retrieves, ranks and answers.

    agent   planner -> calculator | search | clock, those that the question needs, together -> answer
    rag     input guardrail -> retrieval -> rerank -> answer -> output guardrail; either guardrail may be off

No model decides: the plan follows from the question's words, so that what a task will do is known from its request.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass

from inferometer.server.systems.calculator import computed, expression_in
from inferometer.server.systems.corpus import PASSAGES
from inferometer.server.systems.passage_index import PassageIndex, reranked
from inferometer.server.systems.settings import SystemSettings
from inferometer.server.systems.steps import Refused, Script, Step, StepKind, guardrail_step

_PLANNER = "You are the planner of an agent with the tools calculator, search and clock. Name those that the question needs.\n"
_ANSWER = "Answer the question with the results of the tools.\n"
_CITE = "Answer the question from these passages, and cite the id of the one that you use.\n"
_CLOCK = re.compile(r"\b(clock|time is it|what time|now)\b", re.IGNORECASE)
_SEARCH = re.compile(r"\b(search|find|look up|explain|define)\b", re.IGNORECASE)
_FORBIDDEN = re.compile(
    r"ignore (all )?(previous|prior) instructions|reveal the system prompt", re.IGNORECASE
)
_CANDIDATES = 3
"""Times as many passages are retrieved as the reranker leaves."""
REFUSAL = "I cannot help with that."


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. `dialogue`: the whole chat as text; `text`: the user's last message; `max_tokens`: of the answer."""

    text: str
    dialogue: str
    max_tokens: int


def agent(
    question: Question, settings: SystemSettings, index: PassageIndex, seconds: Callable[[], float]
) -> Script:
    """The agent. `seconds`: what the clock tool shows."""
    prompt = _PLANNER + question.dialogue
    yield (Step(StepKind.LLM, "planner", prompt=prompt, output_tokens=settings.planner_tokens),)
    calls = _calls(question.text, settings, index, seconds)
    results = yield calls
    told = [
        f"{call.name} says: {result}"
        for call, result in zip(calls, results, strict=True)
        if result is not None
    ]
    said = " ".join(told) or "No tool gave a result."
    prompt = f"{_ANSWER}{question.dialogue}\n{said}"
    yield (Step(StepKind.LLM, "answer", prompt=prompt, output_tokens=question.max_tokens, answer=said),)


def _calls(
    text: str, settings: SystemSettings, index: PassageIndex, seconds: Callable[[], float]
) -> tuple[Step, ...]:
    """One to three tools."""
    calls = []
    if expression := expression_in(text):
        result = f"{expression} is {computed(expression)}."
        calls.append(_tool("calculator", settings.calculator_ns, result, expression))
    if _CLOCK.search(text):
        calls.append(_tool("clock", settings.clock_ns, f"the server's clock shows {seconds():.3f} s."))
    if not calls or _SEARCH.search(text):
        ident, found = index.nearest(text, 1)[0]
        calls.append(_tool("search", settings.search_ns, f"[{ident}] {found}", text[:200]))
    return tuple(calls)


def _tool(name: str, delay_ns: float, result: str, arguments: str = "") -> Step:
    return Step(StepKind.TOOL, name, delay_ns=round(delay_ns), result=result, arguments=arguments)


def rag(
    question: Question, settings: SystemSettings, index: PassageIndex, seconds: Callable[[], float]
) -> Script:
    """The retrieval pipeline."""
    del seconds  # there is no clock among its steps
    if settings.input_guardrail:
        yield (guardrail_step("input_guardrail", settings.guardrail_ns),)
        if _FORBIDDEN.search(question.dialogue):
            raise Refused(REFUSAL)
    found = index.nearest(question.text, settings.passages * _CANDIDATES)
    idents = " ".join(ident for ident, _ in found)
    yield (Step(StepKind.RETRIEVAL, "passages", delay_ns=round(settings.retrieval_ns), result=idents),)
    best = reranked(question.text, found)[: settings.passages]
    idents = " ".join(ident for ident, _ in best)
    yield (Step(StepKind.RERANK, "reranker", delay_ns=round(settings.rerank_ns), result=idents),)
    context = "\n".join(f"[{ident}] {text}" for ident, text in best)
    prompt = f"{_CITE}{context}\n{question.dialogue}"
    said = f"According to [{best[0][0]}]: {best[0][1]}"
    yield (Step(StepKind.LLM, "answer", prompt=prompt, output_tokens=question.max_tokens, answer=said),)
    if settings.output_guardrail:
        yield (guardrail_step("output_guardrail", settings.guardrail_ns),)


SCRIPTS = {"agent": agent, "rag": rag}


@functools.cache
def shipped_index() -> PassageIndex:
    """The index of the passages that ship with the package."""
    return PassageIndex(PASSAGES)
