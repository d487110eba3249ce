"""What requests say (draft 4.3.1), as one of eight kinds of workload, each with only the keys that it can have.

| kind       | chosen by                            | its requests are                                               |
| ---------- | ------------------------------------ | -------------------------------------------------------------- |
| `standard` | a standard's `name`, or nothing      | drawn with a standard workload's lengths and kind of text      |
| `lengths`  | `name: custom`                       | random tokens, of the lengths given                            |
| `mixture`  | `classes`                            | drawn from several classes by their weights                    |
| `prompts`  | `prompts`                            | the rows of a file of prompts                                  |
| `tasks`    | `tasks`                              | the rows of a file of tasks, whose answers are judged          |
| `sessions` | `sessions`                           | the steps of recorded agent sessions (session_workload.py)     |
| `file`     | `file`                               | the rows of a workload file (workload/workload_file.py)        |
| `trace`    | the plan's `trace`                   | as long as the rows of a trace, and due when those are         |

A plan may name the `kind`; where it does not, the keys that are there tell (`kind_of`). A key that the kind does not have is
refused by the type; one that says nothing (null, or no to what only another kind does) is left out. What keys that a kind does
have forbid each other is in `rules.py`.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias, TypeVar

from pydantic import ConfigDict, Discriminator, Field, Tag, TypeAdapter, model_validator

from inferometer.plan.lengths import Length, uniform
from inferometer.plan.part import HARMLESS, Option, Sha256
from inferometer.plan.request_class import MOST_CLASSES, RequestClass
from inferometer.plan.session_workload import SessionsWorkload
from inferometer.plan.standard import (
    STAND_INS,
    STANDARD,
    WITHOUT_DATASET,
    Name,
    Published,
    published,
    same,
)
from inferometer.plan.workload_kind import (
    DEFAULT_SEED,
    KIND,
    UNNAMED,
    NoLengths,
    OneClass,
    OneTurn,
    PrefixSharing,
    Recorded,
    Seeded,
    Text,
    Turns,
    register,
)

Kind = Literal["standard", "lengths", "mixture", "prompts", "tasks", "sessions", "file", "trace"]
AnyWorkload: TypeAlias = (
    "StandardWorkload | LengthsWorkload | MixtureWorkload | PromptsWorkload | TasksWorkload | SessionsWorkload "
    "| FileWorkload | TraceWorkload"
)
_LENGTHS = (
    "320, uniform(128,512), normal(550,150), lognormal(5.5,1.0,min=32,max=4096), histogram(128:1,256:3) or "
    "quantiles(0:8,50:156,100:4096)"
)


class _Drawn(Turns):
    """What kinds have whose prompts are drawn.

    `count_template`: input lengths are those the server should count, the chat template it puts around a text included.
    """

    count_template: Annotated[
        bool | None,
        Field(description="yes or no: input lengths include the server's chat template."),
        Option(
            "--count-template",
            "Token counting",
            "WHETHER",
            default="yes for chat with --token-count native",
        ),
        HARMLESS,
    ] = None


class StandardWorkload(_Drawn, OneClass):
    """A standard workload: its lengths and its kind of text.

    Other lengths under a standard name, or no dataset where the standard takes its text from one, make the workload `custom`
    and name the standard one in `based_on`, so that a report never prints a standard's name over something else.

    `dataset` is a file, a directory or a Hugging Face cache of ShareGPT or The Stack; `dataset_subset` says which files of a
    directory, and `dataset_version` is what its owner calls it.
    """

    chosen_by: ClassVar[str] = "workload.name"
    noun: ClassVar[str] = "a standard workload"

    kind: Annotated[Literal["standard"], KIND, HARMLESS] = "standard"
    name: Annotated[
        Literal[Name, "custom"],
        Field(description=f"{', '.join(STANDARD)}; or custom, with lengths."),
        Option(
            "--workload", "Common options", "NAME", drops=("workload.input_tokens", "workload.output_tokens")
        ),
        HARMLESS,
    ] = "synthetic-uniform"
    based_on: Annotated[
        Name | None,
        Field(description="The standard workload that a custom one is based on."),
        HARMLESS,
    ] = None
    input_tokens: Annotated[
        Length,
        Field(description=f"Prompt lengths: {_LENGTHS}."),
        Option("--input-tokens", "Common options", "LENGTH", default="the workload's"),
        HARMLESS,
    ] = uniform(128, 512)
    output_tokens: Annotated[
        Length,
        Field(description="Answer lengths, in the same notation."),
        Option("--output-tokens", "Common options", "LENGTH", default="the workload's"),
        HARMLESS,
    ] = uniform(64, 256)
    dataset: Annotated[
        Text | None,
        Field(
            description="ShareGPT for conversation, The Stack for code-completion: JSON, JSONL or Parquet, a directory, "
            "or a cached org/name."
        ),
        Option(
            "--dataset", "Workload", "PATH", drops=("workload.dataset_subset", "workload.dataset_version")
        ),
    ] = None
    dataset_subset: Annotated[
        Text | None,
        Field(description="Files of a dataset's directory to use: a folder or a glob."),
        Option("--dataset-subset", "Workload", "WHICH"),
    ] = None
    dataset_version: Annotated[
        Text | None,
        Field(description="Version of the dataset (declared)."),
        Option("--dataset-version", "Workload", "TEXT"),
    ] = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        """What is implied is no field that was set: a workload file decides otherwise."""
        standard = self.based_on if self.name == "custom" else self.name
        if standard is None:
            raise ValueError("is custom but names no base: set based_on to the standard workload")
        bare = self.dataset is None
        lengths = STAND_INS.get(standard, STANDARD[standard]) if bare else STANDARD[standard]
        whole = not (bare and standard in WITHOUT_DATASET) and self.turns is None
        for side, (key, length) in enumerate(zip(("input_tokens", "output_tokens"), lengths, strict=True)):
            if key not in self.model_fields_set:
                object.__setattr__(self, key, length)  # frozen from here on
            whole = same(standard, side, getattr(self, key)) and whole
        object.__setattr__(self, "name", standard if whole else "custom")
        object.__setattr__(self, "based_on", None if whole else standard)
        return self

    @property
    def standard(self) -> str | None:
        """See AnyKind."""
        return self.based_on if self.name == "custom" else self.name

    @property
    def published(self) -> tuple[Published, ...]:
        """See AnyKind."""
        return published(self.standard, (self.input_tokens, self.output_tokens))

    @property
    def deviations(self) -> tuple[str, ...]:
        """See AnyKind."""
        standard = self.based_on
        if standard is None:
            return ()
        pairs = enumerate(zip(("input_tokens", "output_tokens"), STANDARD[standard], strict=True))
        found = [
            f"{key} is {getattr(self, key)}; {standard} has {length}"
            for side, (key, length) in pairs
            if not same(standard, side, getattr(self, key))
        ]
        if self.dataset is None and standard in WITHOUT_DATASET:
            found.append(WITHOUT_DATASET[standard])
        if self.turns is not None:
            found.append(
                f"requests are the turns of conversations, {self.turns} each; {standard} has requests of one turn"
            )
        return tuple(found)


class LengthsWorkload(_Drawn, OneClass):
    """Random tokens of any lengths."""

    chosen_by: ClassVar[str] = "workload.name"
    noun: ClassVar[str] = "a workload of lengths"

    based_on: ClassVar[None] = None

    kind: Annotated[Literal["lengths"], KIND, HARMLESS] = "lengths"
    name: Annotated[Literal["custom"], UNNAMED, HARMLESS] = "custom"
    input_tokens: Annotated[
        Length, Field(examples=["uniform(128,512)"], description="Prompt lengths."), HARMLESS
    ]
    output_tokens: Annotated[
        Length, Field(examples=["uniform(128,512)"], description="Answer lengths."), HARMLESS
    ]


class MixtureWorkload(_Drawn, NoLengths):
    """Several classes of requests, drawn by their weights."""

    chosen_by: ClassVar[str] = "workload.classes"
    noun: ClassVar[str] = "classes"
    decides: ClassVar[str] = "{workload.classes} determine the prompts' lengths and content"

    kind: Annotated[Literal["mixture"], KIND, HARMLESS] = "mixture"
    name: Annotated[Literal["custom"], UNNAMED, HARMLESS] = "custom"
    classes: Annotated[
        tuple[RequestClass, ...],
        Field(
            min_length=1,
            max_length=MOST_CLASSES,
            examples=[[{"name": "chat", "input_tokens": "uniform(128,512)", "output_tokens": 160}]],
            description="Classes of requests, drawn by their weights.",
        ),
        HARMLESS,
    ]

    @property
    def shares(self) -> bool:
        """See AnyKind."""
        return super().shares or any(one.shared_prefix is not None for one in self.classes)


class RowsWorkload(Recorded, OneClass):
    """The rows of a file of the user's own, each a request, taken in this `order`.

    `output_tokens` are for rows that name none. `prompts_sha256` is the file's: filled in when a run begins, and demanded from
    then on. `prefix_sharing` declares what its prompts have in common (draft 4.3.1).
    """

    order: Annotated[
        Literal["file", "shuffled", "sampled"],
        Field(description="Order of the prompts: file, shuffled, or sampled (with replacement)."),
        Option("--prompts-order", "Workload", "ORDER"),
        HARMLESS,
    ] = "file"
    prompts_sha256: Annotated[
        Sha256 | None, Field(description="The file's SHA-256; filled in when a run begins.")
    ] = None
    output_tokens: Annotated[
        Length | None, Field(description="Answer lengths of prompts without one."), HARMLESS
    ] = None
    prompt_format: Annotated[
        Literal["auto", "text"],
        Field(description="auto or text: a file holds no token ids."),
        HARMLESS,
    ] = "auto"
    prefix_sharing: PrefixSharing = None


class PromptsWorkload(RowsWorkload, Turns):
    """A file of prompts (workload/prompt_file.py)."""

    chosen_by: ClassVar[str] = "workload.prompts"
    noun: ClassVar[str] = "a file of prompts"
    decides: ClassVar[str] = "the file of prompts determines what is sent ({workload.prompts})"

    kind: Annotated[Literal["prompts"], KIND, HARMLESS] = "prompts"
    name: Annotated[Literal["custom"], UNNAMED, HARMLESS] = "custom"
    prompts: Annotated[
        Text,
        Field(
            examples=["prompts.jsonl"],
            description="File of prompts: JSONL or CSV with a field prompt or messages, and optionally output_tokens.",
        ),
        Option("--prompts", "Workload", "FILE"),
    ]

    @property
    def path(self) -> str:
        """Where the rows are."""
        return self.prompts


class TasksWorkload(RowsWorkload, OneTurn):
    """A file of tasks for a compound system (workload/task_file.py; draft 4.1.3): each is a prompt with a criterion, which its
    answer is held to after the load.

    `task_commands`: the file may name commands that are run and judges that are asked; without it such a file is refused, for
    it may be somebody else's. `spans` is what the system recorded of its own steps: a file that
    is read after the load, or `listen:HOST:PORT`, where it sends them.
    """

    chosen_by: ClassVar[str] = "workload.tasks"
    noun: ClassVar[str] = "a file of tasks"
    decides: ClassVar[str] = "the file of tasks determines what is sent ({workload.tasks})"
    file: ClassVar[None] = None
    file_sha256: ClassVar[None] = None

    kind: Annotated[Literal["tasks"], KIND, HARMLESS] = "tasks"
    name: Annotated[Literal["custom"], UNNAMED, HARMLESS] = "custom"
    tasks: Annotated[
        Text,
        Field(
            examples=["tasks.jsonl"],
            description="File of tasks for a compound system: JSONL or CSV with a field input or messages, and a criterion.",
        ),
        Option("--tasks", "Workload", "FILE", drops=("workload.spans", "workload.task_commands")),
    ]
    task_commands: Annotated[
        bool,
        Field(description="Run the commands and ask the judges that the file of tasks names."),
        Option("--task-commands", "Workload", value=True),
    ] = False
    ignore_eos: Annotated[
        bool,
        Field(
            description="Request answers of full length with ignore_eos; a task's answer ends where it is complete."
        ),
        HARMLESS,
    ] = False
    repeatable_prompts: Annotated[
        bool,
        Field(
            description="Send each task as it is, without a nonce that its system would take for a part of it."
        ),
        HARMLESS,
    ] = True
    spans: Annotated[
        Text | None,
        Field(
            description="The system's spans (OpenTelemetry), joined by trace id after the load: a file of OTLP JSON, or "
            "listen:HOST:PORT to take them over HTTP while the load runs."
        ),
        Option("--spans", "Workload", "FILE|listen:HOST:PORT"),
    ] = None

    @property
    def path(self) -> str:
        """Where the rows are."""
        return self.tasks


AnyRows: TypeAlias = PromptsWorkload | TasksWorkload
"""The kinds whose requests are the rows of a file."""


class TraceWorkload(Seeded, OneTurn, OneClass, NoLengths):
    """The requests of a trace, whose lengths are the trace's. `prefix_sharing` declares what its prompts have in common."""

    chosen_by: ClassVar[str] = "trace.file"
    noun: ClassVar[str] = "a trace"
    decides: ClassVar[str] = "the trace determines content, lengths and times ({trace.file})"
    count_template: ClassVar[bool] = False  # prompts are as long as traced
    file: ClassVar[None] = None

    kind: Annotated[Literal["trace"], KIND, HARMLESS] = "trace"
    name: Annotated[Literal["trace"], Field(description="It is a trace's."), HARMLESS] = "trace"
    prefix_sharing: PrefixSharing = None

    @property
    def shares(self) -> bool:
        """See AnyKind."""
        return self.repeatable_prompts


class FileWorkload(OneTurn, OneClass, NoLengths):
    """A workload file that has not been read yet (workload/workload_file.py). Its digest is kept in `file_sha256`.

    It decides everything but how requests are sampled: when a run begins, the plan takes over the workload that the file was
    made of. Until then nothing is known of that, and what a plan implies stands for it.
    """

    chosen_by: ClassVar[str] = "workload.file"
    noun: ClassVar[str] = "a workload file"
    decides: ClassVar[str] = "the workload file determines what is sent ({workload.file})"
    name: ClassVar[str] = "custom"
    seed: ClassVar[int] = DEFAULT_SEED
    prompt_format: ClassVar[Literal["auto"]] = "auto"
    text_only: ClassVar[bool] = False
    repeatable_prompts: ClassVar[bool] = False
    count_template: ClassVar[None] = None
    domain: ClassVar[None] = None
    language: ClassVar[None] = None

    kind: Annotated[Literal["file"], KIND, HARMLESS] = "file"
    file: Annotated[
        Text, Field(examples=["workload.arrow"], description="Workload file to send (.arrow or .jsonl).")
    ]
    file_sha256: Annotated[Sha256 | None, Field(description="Digest of the workload file.")] = None


KINDS: dict[str, type[AnyWorkload]] = {
    "standard": StandardWorkload,
    "lengths": LengthsWorkload,
    "mixture": MixtureWorkload,
    "prompts": PromptsWorkload,
    "tasks": TasksWorkload,
    "sessions": SessionsWorkload,
    "file": FileWorkload,
    "trace": TraceWorkload,
}
register(KINDS.values())
SAMPLING = frozenset({"ignore_eos", "min_tokens", "temperature"})
"""What a workload file does not decide."""


def kind_of(values: Any) -> str:
    """The kind of a workload from the keys that are there: the one it names, else see the module's head.

    A workload file with further keys is of the kind that those tell: they are held to what the file says.
    """
    if not isinstance(values, Mapping):
        return str(getattr(values, "kind", "standard"))
    there = {key: value for key, value in values.items() if value is not None}
    if "kind" in there:
        return str(there["kind"])
    if "prompts" in there:
        return "prompts"
    if "tasks" in there:
        return "tasks"
    if "sessions" in there:
        return "sessions"
    if "classes" in there:
        return "mixture"
    if there.get("name") == "trace":
        return "trace"
    if there.get("name") == "custom" and "based_on" not in there:
        return "lengths"
    return "standard" if "file" not in there or there.keys() - SAMPLING - {"file", "file_sha256"} else "file"


Workload: TypeAlias = Annotated[
    Annotated[StandardWorkload, Tag("standard")]
    | Annotated[LengthsWorkload, Tag("lengths")]
    | Annotated[MixtureWorkload, Tag("mixture")]
    | Annotated[PromptsWorkload, Tag("prompts")]
    | Annotated[TasksWorkload, Tag("tasks")]
    | Annotated[SessionsWorkload, Tag("sessions")]
    | Annotated[FileWorkload, Tag("file")]
    | Annotated[TraceWorkload, Tag("trace")],
    Discriminator(kind_of),
]
# Built when it is first used: `run --help` needs no validation.
_WORKLOAD: TypeAdapter[AnyWorkload] = TypeAdapter(Workload, config=ConfigDict(defer_build=True))


def workload_of(values: Mapping[str, Any]) -> AnyWorkload:
    """A workload from its keys, of the kind that they tell. Raises ValidationError."""
    return _WORKLOAD.validate_python(values)


W = TypeVar("W", bound=Seeded)


def reseeded(workload: W, seed: int) -> W:
    """The workload with another seed: other requests of the same kind."""
    return workload if workload.seed == seed else workload.model_copy(update={"seed": seed})


def kinds_with(key: str) -> list[type[AnyWorkload]]:
    """The kinds that have a key."""
    return [kind for kind in KINDS.values() if key in kind.model_fields]
