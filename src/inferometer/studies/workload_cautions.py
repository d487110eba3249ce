"""What a plan's own workload does to a test that has, or needs, one of its own: found before anything is sent.

| test           | workload                                                    | then                                       |
| -------------- | ----------------------------------------------------------- | ------------------------------------------ |
| `prefix-cache` | prompts of a file, single turns, no two of which begin alike | refused: a cache has nothing to find       |
| `prefix-cache` | conversations with pauses                                   | said: closed loops are not held full       |
| `prefix-cache` | another whose requests share nothing                        | said: Code Completion takes its place      |
| `fairness`     | any, as one of all tests                                    | said: it offers classes of its own         |
| `fairness`     | any, where it was named                                     | refused by plan/campaign.py                |
| `itl`          | no answer as long as it counts                              | refused: it would give no figure           |
| all            | a workload file                                             | said: all runs send the same requests      |
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from inferometer.errors import PlanError, Problem
from inferometer.plan.campaign import Campaign, chooses_workload
from inferometer.plan.lengths import Distribution
from inferometer.plan.procedure_parameters import LEAST_OUTPUT
from inferometer.plan.schema import Plan
from inferometer.plan.workload import AnyRows, LengthsWorkload, MixtureWorkload, StandardWorkload
from inferometer.workload import prompt_file_requests, workload_file
from inferometer.workload.sources import rows_of

INSTEAD = "leave it out, and the test runs Code Completion; or leave prefix-cache out of the tests"


def workload_cautions(campaign: Campaign) -> Iterator[str]:
    """Lines to be shown before the start. Raises PlanError where a test cannot be carried out with the workload."""
    if campaign.plan.workload.file is not None:
        yield (
            "the workload file's requests are those of every run, in its order: a cache that nobody declared would find again "
            "what runs before had sent"
        )
    if "prefix-cache" in campaign.names:
        yield from _of_prefix_cache(campaign.plan)
    if "itl" in campaign.names:
        _check_answers(campaign)
    if "fairness" in campaign.names and chooses_workload(campaign.plan):
        yield "fairness: offers classes of its own (fairness.classes), not the workload that was chosen"


def _check_answers(campaign: Campaign) -> None:
    """Refuse answers of which none is long enough for gaps that count (draft 5.4.2), as far as the plan knows them. Raises
    PlanError."""
    longest = _longest_answer(campaign.plan, campaign.tests.itl.output_tokens)
    if longest is not None and longest < LEAST_OUTPUT:
        message = (
            f"its gaps are of answers of at least {LEAST_OUTPUT} tokens (draft 5.4.2), and the longest that is asked for has "
            f"{longest}: ask for longer ones (output_tokens of the workload, or of the file's rows), or leave itl out"
        )
        raise PlanError([Problem("itl", message)])


def _longest_answer(plan: Plan, instead: Distribution | None) -> int | None:
    """The most tokens that an answer is asked to have; None: not known before the start. `instead`: of the workload's lengths;
    rows of a file that name their own keep it."""
    workload = plan.workload
    if workload.file is not None:
        return None
    if isinstance(workload, AnyRows):
        answering = workload.model_copy(update={"output_tokens": instead or workload.output_tokens})
        file, default = rows_of(plan, answering), answering.output_tokens
        lengths = {row.output_tokens for row in file.rows(range(len(file)))}
        named = [length for length in lengths if length is not None]
        return max([*named, *([default.most()] if default is not None and None in lengths else [])])
    if isinstance(workload, MixtureWorkload):
        return max((instead or one.output_tokens).most() for one in workload.classes)
    if isinstance(workload, StandardWorkload | LengthsWorkload):
        return (instead or workload.output_tokens).most()
    return None


def _of_prefix_cache(plan: Plan) -> Iterator[str]:
    workload = plan.workload
    pauses = workload.think_ms
    if workload.turns is not None and pauses is not None and pauses.most() > 0:
        yield (
            "prefix-cache: users pause between turns, so its closed loops hold fewer requests in flight than slots: its "
            "throughputs are of that load"
        )
    if workload.turns is not None:  # each turn repeats what was said before it
        return
    if isinstance(workload, AnyRows):
        _check_prompts(plan, workload)
    elif workload.file is not None:
        _check_file(Path(workload.file).expanduser())
    elif chooses_workload(plan) and not workload.shares:
        yield "prefix-cache: requests of the workload share nothing, so Code Completion takes its place"


def _check_prompts(plan: Plan, workload: AnyRows) -> None:
    """Refuse prompts of which no two begin alike before anything that a user says: that is what a cache may find of them, for
    a nonce stands behind it."""
    path = Path(workload.path).expanduser()
    file = rows_of(plan, workload)
    each_once = workload.model_copy(update={"order": "file"})
    if not prompt_file_requests.contexts(each_once, file, len(file), 0).cover:
        message = (
            f"no two prompts of {path.name} share a system prompt, so prefix-cache has nothing to measure: give rows the same "
            f"`system`; or {INSTEAD}"
        )
        raise PlanError([Problem("--prompts", message)])


def _check_file(path: Path) -> None:
    """The same of a workload file, by its header."""
    header = workload_file.opened(path).header
    if header.spec.turns is not None:
        return
    prompts = header.source.facts().prompts
    systems = prompts is not None and prompts.with_system_prompt > 1
    if not systems and not header.spec.shares:
        message = (
            f"no two requests of {path.name} begin alike, so prefix-cache has nothing to measure: {INSTEAD}"
        )
        raise PlanError([Problem("--workload-file", message)])
