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
refused by the type; one that says nothing (null, or the default that another kind has) is left out. What keys that a kind does
have forbid each other is in `rules.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, TypeVar

from pydantic import (
    BaseModel,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    ValidationInfo,
    field_validator,
    model_validator,
)

from inferometer.plan.body import Body, Headers, Priority, Sampling, fields_of, refuse_twice
from inferometer.plan.lengths import LONGEST, Distribution, Length, uniform
from inferometer.plan.part import NUMBER, Part, Sha256
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

MOST_CLASSES = 127
"""A class is one signed byte in the schedule and in the record."""

ClassContent = Literal["random", "english", "code"]
Domain = Literal["general", "code", "conversation", "instruction"]
"""Draft 4.3.1's."""
Language = Annotated[str, Field(min_length=1, max_length=80)]
ClassName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
Text = Annotated[str, Field(min_length=1)]
Kind = Literal["standard", "lengths", "mixture", "prompts", "file", "trace"]
AnyWorkload: TypeAlias = (
    "StandardWorkload | LengthsWorkload | MixtureWorkload | PromptsWorkload | FileWorkload | TraceWorkload"
)
DEFAULT_SEED = 42


class SharedPrefix(Part):
    """A text of `tokens` tokens at the head of some prompts of a class, on top of their own length.

    The share `share` of the class's requests carries one of `groups` such texts: each equally likely, or with `zipf` = s the
    k-th of them in proportion to 1 / k^s.
    """

    tokens: Annotated[int, Field(ge=1, le=LONGEST, examples=[512]), NUMBER]
    share: Annotated[float, Field(gt=0, le=1), NUMBER] = 1.0
    groups: Annotated[int, Field(ge=1, le=100_000), NUMBER] = 1
    zipf: Annotated[float, Field(gt=0, le=20), NUMBER] | None = None

    @field_validator("zipf")
    @classmethod
    def _among_several(cls, zipf: float | None, info: ValidationInfo) -> float | None:
        if zipf is not None and info.data.get("groups") == 1:
            raise ValueError(
                "chooses among groups, and there is one: set groups to 2 or more, or leave it out"
            )
        return zipf

    @property
    def weights(self) -> list[float]:
        """How likely each group is, up to a factor."""
        return [1.0 if self.zipf is None else rank**-self.zipf for rank in range(1, self.groups + 1)]

    def __str__(self) -> str:
        """In words."""
        which = "one text" if self.groups == 1 else f"{self.groups} texts"
        if self.groups > 1:
            which += ", equally likely" if self.zipf is None else f", Zipf with s = {self.zipf:g}"
        return f"{self.share:.4g} of its requests, {self.tokens} tokens, {which}"


class RequestClass(Part):
    """One class. `weight` over the sum of all weights is the chance that a request is of it.

    `priority`, `sampling`, `extra_body` and `headers` are its requests' own and go before the target's.
    `domain` and `language` declare what is not known of the content (draft 4.3.1).
    """

    name: Annotated[ClassName, Field(examples=["chat"])]
    weight: Annotated[float, Field(gt=0, le=1e9), NUMBER] = 1.0
    input_tokens: Annotated[Length, Field(examples=["uniform(128,512)"])]
    output_tokens: Annotated[Length, Field(examples=["uniform(128,512)"])]
    shared_prefix: SharedPrefix | None = None
    content: ClassContent = "random"
    domain: Domain | None = None
    language: Language | None = None
    priority: Priority | None = None
    sampling: Sampling = Sampling()
    extra_body: Body = Field(default_factory=dict)
    headers: Headers = Field(default_factory=dict)

    @field_validator("extra_body")
    @classmethod
    def _once(cls, extra: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        return refuse_twice(extra, info.data.get("sampling"), info.data.get("priority"))

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the body that its requests have beside everybody's."""
        return fields_of(self.sampling, self.priority, self.extra_body)


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

    ignore_eos: bool = True
    min_tokens: bool = False
    temperature: Annotated[float, Field(ge=0, le=10), NUMBER] = 0.0

    @model_validator(mode="before")
    @classmethod
    def _own_keys(cls, given: Any) -> Any:
        """Keys of other kinds that say nothing are left out: what is left of them is refused."""
        if not isinstance(given, Mapping):
            return given
        return {key: value for key, value in given.items() if not _idle(cls, key, value)}

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

    @property
    def classes(self) -> tuple[RequestClass, ...]:
        """None."""
        return ()


class _OneTurn(_Workload):
    """Without conversations."""

    @property
    def turns(self) -> Distribution | None:
        """None: requests stand alone."""
        return None

    @property
    def think_ms(self) -> Distribution | None:
        """None."""
        return None

    @property
    def replies(self) -> Literal["server", "recorded"]:
        """As of others, where it is not set."""
        return "server"


class _NotStandard(_Workload):
    """What is based on no standard workload."""

    @property
    def based_on(self) -> None:
        """None."""
        return None


class _NoLengths(_NotStandard):
    """Without one distribution of lengths for all requests."""

    @property
    def input_tokens(self) -> None:
        """None: see the kind's own keys."""
        return None

    @property
    def output_tokens(self) -> None:
        """None."""
        return None


class _Prompts(_Workload):
    """What every kind has whose prompts are made or read here, all but a workload file.

    `domain` and `language` declare what is not known of the content (draft 4.3.1).
    """

    seed: Annotated[int, Field(ge=0, lt=2**63), NUMBER] = DEFAULT_SEED
    prompt_format: Literal["auto", "ids", "text"] = "auto"
    repeatable_prompts: bool = False
    domain: Domain | None = None
    language: Language | None = None

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

    file: Text | None = None
    file_sha256: Sha256 | None = None
    turns: Length | None = None
    think_ms: Length | None = None
    replies: Literal["server", "recorded"] = "server"

    @property
    def shares(self) -> bool:
        """See _Workload."""
        return self.repeatable_prompts or self.content.sharing is not None or self.turns is not None


class _Drawn(_Turns):
    """What kinds have whose prompts are drawn.

    `count_template`: input lengths are those the server should count, the chat template it puts around a text included.
    """

    count_template: bool | None = None


class StandardWorkload(_Drawn, _OneClass):
    """A standard workload: its lengths and its kind of text.

    Other lengths under a standard name, or no dataset where the standard takes its text from one, make the workload `custom`
    and name the standard one in `based_on`, so that a report never prints a standard's name over something else.

    `dataset` is a file, a directory or a Hugging Face cache of ShareGPT or The Stack; `dataset_subset` says which files of a
    directory, and `dataset_version` is what its owner calls it.
    """

    chosen_by: ClassVar[str] = "workload.name"
    noun: ClassVar[str] = "a standard workload"

    kind: Literal["standard"] = "standard"
    name: Literal[Name, "custom"] = "synthetic-uniform"
    based_on: Name | None = None
    input_tokens: Length = uniform(128, 512)
    output_tokens: Length = uniform(64, 256)
    dataset: Text | None = None
    dataset_subset: Text | None = None
    dataset_version: Text | None = None

    @model_validator(mode="after")
    def _complete(self) -> StandardWorkload:
        """What is implied is no field that was set: a workload file decides otherwise."""
        standard = self.based_on if self.name == "custom" else self.name
        if standard is None:
            raise ValueError("is custom, and based on nothing: name the standard workload in based_on")
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


class LengthsWorkload(_Drawn, _OneClass, _NotStandard):
    """Random tokens of any lengths."""

    chosen_by: ClassVar[str] = "workload.name"
    noun: ClassVar[str] = "a workload of lengths"

    kind: Literal["lengths"] = "lengths"
    name: Literal["custom"] = "custom"
    input_tokens: Annotated[Length, Field(examples=["uniform(128,512)"])]
    output_tokens: Annotated[Length, Field(examples=["uniform(128,512)"])]


class MixtureWorkload(_Drawn, _NoLengths):
    """Several classes of requests, drawn by their weights."""

    chosen_by: ClassVar[str] = "workload.classes"
    noun: ClassVar[str] = "classes"
    decides: ClassVar[str] = "{workload.classes} say how long prompts are and what is in them"

    kind: Literal["mixture"] = "mixture"
    name: Literal["custom"] = "custom"
    classes: Annotated[tuple[RequestClass, ...], Field(min_length=1, max_length=MOST_CLASSES)]

    @property
    def shares(self) -> bool:
        """See _Workload."""
        return super().shares or any(one.shared_prefix is not None for one in self.classes)


class PromptsWorkload(_Turns, _OneClass, _NotStandard):
    """A file of prompts (workload/prompt_file.py), taken in this `order`.

    `output_tokens` are for prompts that name none. `prompts_sha256` is the file's: filled in when a run begins, and demanded
    from then on. `prefix_sharing` declares what its prompts have in common (draft 4.3.1).
    """

    chosen_by: ClassVar[str] = "workload.prompts"
    noun: ClassVar[str] = "a file of prompts"
    decides: ClassVar[str] = "the file of prompts says what is sent ({workload.prompts})"

    kind: Literal["prompts"] = "prompts"
    name: Literal["custom"] = "custom"
    prompts: Text
    order: Literal["file", "shuffled", "sampled"] = "file"
    prompts_sha256: Sha256 | None = None
    output_tokens: Length | None = None
    prompt_format: Literal["auto", "text"] = "auto"
    prefix_sharing: Annotated[str, Field(min_length=1, max_length=200)] | None = None

    @property
    def text_only(self) -> bool:
        """See _Prompts."""
        return True

    @property
    def shares(self) -> bool:
        """See _Workload."""
        return True

    @property
    def input_tokens(self) -> None:
        """None: those of the file."""
        return None

    @property
    def count_template(self) -> bool:
        """Prompts are as long as they are."""
        return False


class TraceWorkload(_Prompts, _OneTurn, _OneClass, _NoLengths):
    """The requests of a trace, whose lengths are the trace's. `prefix_sharing` declares what its prompts have in common."""

    chosen_by: ClassVar[str] = "trace.file"
    noun: ClassVar[str] = "a trace"
    decides: ClassVar[str] = "the trace says what is sent, how long it is and when ({trace.file})"

    kind: Literal["trace"] = "trace"
    name: Literal["trace"] = "trace"
    prefix_sharing: Annotated[str, Field(min_length=1, max_length=200)] | None = None

    @property
    def shares(self) -> bool:
        """See _Workload."""
        return self.repeatable_prompts

    @property
    def count_template(self) -> bool:
        """Prompts are as long as traced."""
        return False

    @property
    def file(self) -> None:
        """A trace is no workload file."""
        return None


class FileWorkload(_OneTurn, _OneClass, _NoLengths):
    """A workload file that has not been read yet (workload/workload_file.py). Its digest is kept in `file_sha256`.

    It decides everything but how requests are sampled: when a run begins, the plan takes over the workload that the file was
    made of. Until then nothing is known of that.
    """

    chosen_by: ClassVar[str] = "workload.file"
    noun: ClassVar[str] = "a workload file"
    decides: ClassVar[str] = "the workload file says what is sent ({workload.file})"

    kind: Literal["file"] = "file"
    file: Text
    file_sha256: Sha256 | None = None

    @property
    def name(self) -> Literal["custom"]:
        """No standard's, as far as is known."""
        return "custom"

    @property
    def seed(self) -> int:
        """What a plan implies."""
        return DEFAULT_SEED

    @property
    def prompt_format(self) -> Literal["auto"]:
        """The file has one."""
        return "auto"

    @property
    def text_only(self) -> bool:
        """Not known."""
        return False

    @property
    def repeatable_prompts(self) -> bool:
        """Not known."""
        return False

    @property
    def count_template(self) -> None:
        """Not known."""
        return None

    @property
    def domain(self) -> None:
        """Not known."""
        return None

    @property
    def language(self) -> None:
        """Not known."""
        return None


KINDS: dict[str, type[AnyWorkload]] = {
    "standard": StandardWorkload,
    "lengths": LengthsWorkload,
    "mixture": MixtureWorkload,
    "prompts": PromptsWorkload,
    "file": FileWorkload,
    "trace": TraceWorkload,
}
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
    if there.get("classes"):
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
_WORKLOAD: TypeAdapter[AnyWorkload] = TypeAdapter(Workload)


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
    """Whether a key of other kinds says nothing: it is null or false, or has the value that it has where it is not set."""
    if key in kind.model_fields:
        return False
    defaults = [one.model_fields[key].get_default(call_default_factory=True) for one in kinds_with(key)]
    return bool(defaults) and (value is None or value is False or value == [] or value in defaults)
