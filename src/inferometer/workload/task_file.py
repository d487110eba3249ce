"""A file of tasks for a compound system (draft 4.1.3): the rows of a file of prompts (prompt_file.py), each with a criterion.

| field           | is                                                                                                   |
| --------------- | ---------------------------------------------------------------------------------------------------- |
| `task`          | its name, one of a kind in the file                                                                  |
| `input`         | what the system is given; a row has either this or `messages`                                        |
| `criterion`     | what the answer is held to (criterion.py); without it an answer that is complete is enough           |
| `timeout_s`     | the request ends after this time, if the plan's own timeout does not end it sooner                   |
| all others      | as in a file of prompts                                                                              |
"""

from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field, field_validator, model_validator

from inferometer.plan.part import NUMBER
from inferometer.workload.criterion import OUTSIDE, Criterion
from inferometer.workload.prompt_file import Row

TaskName = Annotated[str, Field(min_length=1, max_length=200)]


class TaskRow(Row):
    """One task, as it stands in the file."""

    model_config = ConfigDict(populate_by_name=False)
    text_field: ClassVar[str] = "input"
    noun: ClassVar[str] = "task"

    task: TaskName
    prompt: Annotated[str | None, Field(alias="input")] = None
    criterion: Criterion | None = None
    timeout_s: Annotated[float, Field(gt=0, le=86_400), NUMBER] | None = None

    @model_validator(mode="before")
    @classmethod
    def _sent_once(cls, values: object) -> object:
        if isinstance(values, dict) and "retries" in values:  # docs/decisions/097-a-task-is-sent-once.md
            raise ValueError(
                "has retries: a task is sent once, and what its system tries again is counted from its spans"
            )
        return values

    @field_validator("task")
    @classmethod
    def _printable(cls, name: str) -> str:
        if not name.isprintable() or name != name.strip():
            raise ValueError("has a character that does not show, or white space around it")
        return name

    @property
    def key(self) -> str | None:
        """See Row."""
        return self.task

    @property
    def time_limit_s(self) -> float | None:
        """See Row."""
        return self.timeout_s

    @property
    def input(self) -> str:
        """What the system is given, as one text."""
        return self.prompt if self.prompt is not None else "\n".join(text for _, text in self.chat)


class TaskRowWithinBounds(TaskRow):
    """A task whose criterion this program decides by itself."""

    @field_validator("criterion")
    @classmethod
    def _decided_here(cls, criterion: Criterion | None) -> Criterion | None:
        if criterion is not None and criterion.kind in OUTSIDE:
            does = "runs a command" if criterion.kind == "command" else "asks a judge"
            raise ValueError(f"{does}: give --task-commands if all that this file names is to be done")
        return criterion


def row_kind(*, commands: bool) -> type[TaskRow]:
    """What the rows of a file may be; `commands`: the plan allows commands and judges."""
    return TaskRow if commands else TaskRowWithinBounds
