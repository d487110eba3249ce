"""What requests say (draft 4.3.1), as one of six kinds of workload, each with only the keys that it can have.

| kind       | chosen by                            | its requests are                                               |
| ---------- | ------------------------------------ | -------------------------------------------------------------- |
| `standard` | a standard's `name`, or nothing      | drawn with a standard workload's lengths and kind of text      |
| `lengths`  | `name: custom`                       | random tokens, of the lengths given                            |
| `mixture`  | `classes`                            | drawn from several classes by their weights                    |
| `prompts`  | `prompts`                            | the rows of a file of prompts                                  |
| `file`     | `file`                               | the rows of a workload file (workload/workload_file.py)        |
| `trace`    | the plan's `trace`                   | as long as the rows of a trace, and due when those are         |

A plan may name the `kind`; where it does not, the keys that are there tell (`kind_of`). A key that the kind does not have is
refused by the type; one that says nothing (null, or no to what only another kind does) is left out. What keys that a kind does
have forbid each other is in `rules.py`.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias, TypeVar, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    model_validator,
)

from inferometer.plan.lengths import Distribution, Length, uniform
from inferometer.plan.part import HARMLESS, NUMBER, Option, Part, Sha256
from inferometer.plan.request_class import MOST_CLASSES, Domain, Language, RequestClass
from inferometer.plan.standard import (
    CONTENTS,
    RANDOM,
    STAND_INS,
    STANDARD,
    WITHOUT_DATASET,
    Content,
    Name,
    Published,
    published,
    same,
)

Text = Annotated[str, Field(min_length=1)]
PrefixSharing = Annotated[
    Annotated[str, Field(min_length=1, max_length=200)] | None,
    Field(description="What its prompts have in common (declared)."),
]
Kind = Literal["standard", "lengths", "mixture", "prompts", "file", "trace"]
AnyWorkload: TypeAlias = (
    "StandardWorkload | LengthsWorkload | MixtureWorkload | PromptsWorkload | FileWorkload | TraceWorkload"
)
DEFAULT_SEED = 42
_KIND = Field(description="Kind of workload.")
_UNNAMED = Field(description="It is not a standard workload.")
_LENGTHS = (
    "320, uniform(128,512), normal(550,150), lognormal(5.5,1.0,min=32,max=4096), histogram(128:1,256:3) or "
    "quantiles(0:8,50:156,100:4096)"
)


class _Workload(Part):
    """What every kind has: how requests are sampled.

    `ignore_eos` and `min_tokens` ask for answers of full length: engines know one or the other, or both.
    """

    chosen_by: ClassVar[str]
    """The key that makes a workload one of this kind."""
    noun: ClassVar[str]
    """What a workload of this kind is called in a message."""
    decides: ClassVar[str] = ""
    """Why other kinds' keys have no place in one, with keys in braces; empty where nothing chose the kind."""

    ignore_eos: Annotated[
        bool,
        Field(description="Request answers of full length with ignore_eos."),
        Option(
            "--no-ignore-eos",
            "Workload",
            help="Let answers end naturally instead of at the requested length.",
            value=False,
        ),
        HARMLESS,
    ] = True
    min_tokens: Annotated[
        bool,
        Field(
            description="Also send min_tokens, equal to max_tokens: for servers that support it but not ignore_eos."
        ),
        Option("--min-tokens", "Workload", value=True),
        HARMLESS,
    ] = False
    temperature: Annotated[
        float, Field(ge=0, le=10, description="Sampling temperature."), NUMBER, HARMLESS
    ] = 0.0

    @model_validator(mode="before")
    @classmethod
    def _own_keys(cls, given: Any) -> Any:
        """Keys of other kinds that say nothing are left out: what is left of them is refused."""
        if not isinstance(given, Mapping):
            return given
        return {
            key: value
            for key, value in given.items()
            if not _idle(cls, key, value) and (key, value) != ("kind", None)
        }

    @property
    def forced(self) -> bool:
        """Whether answers are asked to be as long as `max_tokens`, whatever the model would do."""
        return self.ignore_eos or self.min_tokens

    @property
    def shares(self) -> bool:
        """Whether prompts may begin alike by intention: then cached tokens are no fault."""
        return False

    @property
    def standard(self) -> str | None:
        """The standard workload that this one is, or is based on."""
        return None

    @property
    def content(self) -> Content:
        """What its texts are, where they are not those of classes, of a file or of a trace."""
        return CONTENTS.get(self.standard or "", RANDOM)

    @property
    def published(self) -> tuple[Published, ...]:
        """The figures that drawn lengths are held to."""
        return ()

    @property
    def deviations(self) -> tuple[str, ...]:
        """In words, how a custom workload differs from the standard one it is based on; empty when it is based on none."""
        return ()


class _OneClass(_Workload):
    """Without classes in the plan; those of a file of prompts are known by name only."""

    classes: ClassVar[tuple[RequestClass, ...]] = ()


class _OneTurn(_Workload):
    """Without conversations: requests stand alone."""

    turns: ClassVar[Distribution | None] = None
    think_ms: ClassVar[Distribution | None] = None
    replies: ClassVar[Literal["server", "recorded"]] = "server"


class _NoLengths(_Workload):
    """Without one distribution of lengths for all requests, and so based on no standard workload."""

    based_on: ClassVar[None] = None
    input_tokens: ClassVar[None] = None
    output_tokens: ClassVar[None] = None


class _Prompts(_Workload):
    """What every kind has whose prompts are made or read here, all but a workload file.

    `domain` and `language` declare what is not known of the content (draft 4.3.1).
    """

    seed: Annotated[
        int,
        Field(ge=0, lt=2**63, description="Seed of everything drawn: lengths, prompts and arrivals."),
        NUMBER,
        Option("--seed", "Workload", "N"),
        HARMLESS,
    ] = DEFAULT_SEED
    prompt_format: Annotated[
        Literal["auto", "ids", "text"],
        Field(description="auto, ids or text."),
        Option("--prompt-format", "Workload", "FORMAT"),
        HARMLESS,
    ] = "auto"
    repeatable_prompts: Annotated[
        bool,
        Field(description="Send the same prompts every run, so that a prefix cache may hit."),
        Option("--repeatable-prompts", "Workload", value=True),
        HARMLESS,
    ] = False
    domain: Annotated[Domain | None, Field(description="Domain of the content (declared)."), HARMLESS] = None
    language: Annotated[Language | None, Field(description="Language of the content (declared).")] = None

    @property
    def text_only(self) -> bool:
        """Whether prompts go as text even to an interface that takes token ids."""
        return self.prompt_format == "text"


class _Turns(_Prompts):
    """What kinds have whose requests may be turns of conversations.

    `turns` makes conversations: as many requests each, of which every one repeats what was said before it. The next comes
    `think_ms` (0 if None) after an answer's end. What was said before are the server's own `replies`, or recorded ones: a
    file's, or for prompts that are drawn, text of the length asked for. Of a file, each row is a conversation, of at most
    `turns` turns.

    `file` is the workload file that was made of such a workload, once it has been read, and `file_sha256` its digest: what is
    set here is held to what the file says.
    """

    file: Annotated[
        Text | None,
        Field(
            description="Workload file to send, written by `inferometer workload make` (.arrow or .jsonl)."
        ),
        Option("--workload-file", "Workload", "FILE"),
    ] = None
    file_sha256: Annotated[
        Sha256 | None, Field(description="Digest of the workload file; filled in when a run begins.")
    ] = None
    turns: Annotated[
        Length | None,
        Field(
            description="Conversations of N requests each, in the notation of lengths; for a file, at most N per row."
        ),
        Option("--turns", "Workload", "N"),
        HARMLESS,
    ] = None
    think_ms: Annotated[
        Length | None,
        Field(
            description="Time from the end of an answer to the conversation's next request, in ms, in the notation of lengths."
        ),
        Option("--think-ms", "Workload", "MS", default="none"),
        HARMLESS,
    ] = None
    replies: Annotated[
        Literal["server", "recorded"],
        Field(description="What a conversation repeats as answers: the server's own, or recorded ones."),
        Option("--replies", "Workload", "WHOSE"),
        HARMLESS,
    ] = "server"

    @property
    def shares(self) -> bool:
        """See _Workload."""
        return self.repeatable_prompts or self.content.sharing is not None or self.turns is not None


class _Drawn(_Turns):
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


class StandardWorkload(_Drawn, _OneClass):
    """A standard workload: its lengths and its kind of text.

    Other lengths under a standard name, or no dataset where the standard takes its text from one, make the workload `custom`
    and name the standard one in `based_on`, so that a report never prints a standard's name over something else.

    `dataset` is a file, a directory or a Hugging Face cache of ShareGPT or The Stack; `dataset_subset` says which files of a
    directory, and `dataset_version` is what its owner calls it.
    """

    chosen_by: ClassVar[str] = "workload.name"
    noun: ClassVar[str] = "a standard workload"

    kind: Annotated[Literal["standard"], _KIND, HARMLESS] = "standard"
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
        """See _Workload."""
        return self.based_on if self.name == "custom" else self.name

    @property
    def published(self) -> tuple[Published, ...]:
        """See _Workload."""
        return published(self.standard, (self.input_tokens, self.output_tokens))

    @property
    def deviations(self) -> tuple[str, ...]:
        """See _Workload."""
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


class LengthsWorkload(_Drawn, _OneClass):
    """Random tokens of any lengths."""

    chosen_by: ClassVar[str] = "workload.name"
    noun: ClassVar[str] = "a workload of lengths"

    based_on: ClassVar[None] = None

    kind: Annotated[Literal["lengths"], _KIND, HARMLESS] = "lengths"
    name: Annotated[Literal["custom"], _UNNAMED, HARMLESS] = "custom"
    input_tokens: Annotated[
        Length, Field(examples=["uniform(128,512)"], description="Prompt lengths."), HARMLESS
    ]
    output_tokens: Annotated[
        Length, Field(examples=["uniform(128,512)"], description="Answer lengths."), HARMLESS
    ]


class MixtureWorkload(_Drawn, _NoLengths):
    """Several classes of requests, drawn by their weights."""

    chosen_by: ClassVar[str] = "workload.classes"
    noun: ClassVar[str] = "classes"
    decides: ClassVar[str] = "{workload.classes} determine the prompts' lengths and content"

    kind: Annotated[Literal["mixture"], _KIND, HARMLESS] = "mixture"
    name: Annotated[Literal["custom"], _UNNAMED, HARMLESS] = "custom"
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
        """See _Workload."""
        return super().shares or any(one.shared_prefix is not None for one in self.classes)


class PromptsWorkload(_Turns, _OneClass):
    """A file of prompts (workload/prompt_file.py), taken in this `order`.

    `output_tokens` are for prompts that name none. `prompts_sha256` is the file's: filled in when a run begins, and demanded
    from then on. `prefix_sharing` declares what its prompts have in common (draft 4.3.1).
    """

    chosen_by: ClassVar[str] = "workload.prompts"
    noun: ClassVar[str] = "a file of prompts"
    decides: ClassVar[str] = "the file of prompts determines what is sent ({workload.prompts})"
    based_on: ClassVar[None] = None
    input_tokens: ClassVar[None] = None
    count_template: ClassVar[bool] = False  # prompts are as long as they are

    kind: Annotated[Literal["prompts"], _KIND, HARMLESS] = "prompts"
    name: Annotated[Literal["custom"], _UNNAMED, HARMLESS] = "custom"
    prompts: Annotated[
        Text,
        Field(
            examples=["prompts.jsonl"],
            description="File of prompts: JSONL or CSV with a field prompt or messages, and optionally output_tokens.",
        ),
        Option("--prompts", "Workload", "FILE"),
    ]
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

    @property
    def text_only(self) -> bool:
        """See _Prompts."""
        return True

    @property
    def shares(self) -> bool:
        """See _Workload."""
        return True


class TraceWorkload(_Prompts, _OneTurn, _OneClass, _NoLengths):
    """The requests of a trace, whose lengths are the trace's. `prefix_sharing` declares what its prompts have in common."""

    chosen_by: ClassVar[str] = "trace.file"
    noun: ClassVar[str] = "a trace"
    decides: ClassVar[str] = "the trace determines content, lengths and times ({trace.file})"
    count_template: ClassVar[bool] = False  # prompts are as long as traced
    file: ClassVar[None] = None

    kind: Annotated[Literal["trace"], _KIND, HARMLESS] = "trace"
    name: Annotated[Literal["trace"], Field(description="It is a trace's."), HARMLESS] = "trace"
    prefix_sharing: PrefixSharing = None

    @property
    def shares(self) -> bool:
        """See _Workload."""
        return self.repeatable_prompts


class FileWorkload(_OneTurn, _OneClass, _NoLengths):
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

    kind: Annotated[Literal["file"], _KIND, HARMLESS] = "file"
    file: Annotated[
        Text, Field(examples=["workload.arrow"], description="Workload file to send (.arrow or .jsonl).")
    ]
    file_sha256: Annotated[Sha256 | None, Field(description="Digest of the workload file.")] = None


KINDS: dict[str, type[AnyWorkload]] = {
    "standard": StandardWorkload,
    "lengths": LengthsWorkload,
    "mixture": MixtureWorkload,
    "prompts": PromptsWorkload,
    "file": FileWorkload,
    "trace": TraceWorkload,
}
FALSE = frozenset({"no", "false", "off", "n", "f", "0"})
"""How a flag spells false (pydantic reads the same words)."""
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
    | Annotated[FileWorkload, Tag("file")]
    | Annotated[TraceWorkload, Tag("trace")],
    Discriminator(kind_of),
]
# Built when it is first used: `run --help` needs no validation.
_WORKLOAD: TypeAdapter[AnyWorkload] = TypeAdapter(Workload, config=ConfigDict(defer_build=True))


def workload_of(values: Mapping[str, Any]) -> AnyWorkload:
    """A workload from its keys, of the kind that they tell. Raises ValidationError."""
    return _WORKLOAD.validate_python(values)


W = TypeVar("W", bound=_Prompts)


def reseeded(workload: W, seed: int) -> W:
    """The workload with another seed: other requests of the same kind."""
    return workload if workload.seed == seed else workload.model_copy(update={"seed": seed})


def kinds_with(key: str) -> list[type[AnyWorkload]]:
    """The kinds that have a key."""
    return [kind for kind in KINDS.values() if key in kind.model_fields]


def _idle(kind: type[BaseModel], key: str, value: object) -> bool:
    """Whether a key that only other kinds have says nothing: it is null, or says no to what those may do."""
    if key in kind.model_fields or not kinds_with(key):
        return False
    of_type = kinds_with(key)[0].model_fields[key].annotation
    return value is None or (bool in (of_type, *get_args(of_type)) and _says_no(value))


def _says_no(value: object) -> bool:
    """False, also as a flag spells it."""
    return value is False or (isinstance(value, str) and value.strip().lower() in FALSE)
