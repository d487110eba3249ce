"""What kinds of workload have in common (workload.py has the kinds): their parts, each with the keys that some of them have.

A key that a kind does not have is refused by its type; one that says nothing (null, or no to what only another kind does) is
left out.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BaseModel, Field, model_validator

from inferometer.plan.lengths import Distribution, Length
from inferometer.plan.part import HARMLESS, NUMBER, Option, Part, Sha256
from inferometer.plan.request_class import Domain, Language, RequestClass
from inferometer.plan.standard import CONTENTS, RANDOM, Content, Published

Text = Annotated[str, Field(min_length=1)]
PrefixSharing = Annotated[
    Annotated[str, Field(min_length=1, max_length=200)] | None,
    Field(description="What its prompts have in common (declared)."),
]
DEFAULT_SEED = 42
KIND = Field(description="Kind of workload.")
UNNAMED = Field(description="It is not a standard workload.")
FALSE = frozenset({"no", "false", "off", "n", "f", "0"})
"""How a flag spells false (pydantic reads the same words)."""


class AnyKind(Part):
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


class OneClass(AnyKind):
    """Without classes in the plan; those of a file of prompts are known by name only."""

    classes: ClassVar[tuple[RequestClass, ...]] = ()


class OneTurn(AnyKind):
    """Without conversations: requests stand alone."""

    turns: ClassVar[Distribution | None] = None
    think_ms: ClassVar[Distribution | None] = None
    replies: ClassVar[Literal["server", "recorded"]] = "server"


class NoLengths(AnyKind):
    """Without one distribution of lengths for all requests, and so based on no standard workload."""

    based_on: ClassVar[None] = None
    input_tokens: ClassVar[None] = None
    output_tokens: ClassVar[None] = None


class Seeded(AnyKind):
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


class Recorded(Seeded):
    """What kinds have whose prompts are a file's of the user's own: texts as long as they are, which may begin alike."""

    based_on: ClassVar[None] = None
    input_tokens: ClassVar[None] = None
    count_template: ClassVar[bool] = False

    @property
    def text_only(self) -> bool:
        """See Seeded."""
        return True

    @property
    def shares(self) -> bool:
        """See AnyKind."""
        return True


class Turns(Seeded):
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
        """See AnyKind."""
        return self.repeatable_prompts or self.content.sharing is not None or self.turns is not None


_KNOWN: list[type[AnyKind]] = []


def register(kinds: Iterable[type[AnyKind]]) -> None:
    """Every kind there is: a key of one of them says nothing in another where it is null, or no."""
    _KNOWN.extend(kinds)


def _idle(kind: type[BaseModel], key: str, value: object) -> bool:
    """Whether a key that only other kinds have says nothing: it is null, or says no to what those may do."""
    having = next((one for one in _KNOWN if key in one.model_fields), None)
    if key in kind.model_fields or having is None:
        return False
    of_type = having.model_fields[key].annotation
    return value is None or (bool in (of_type, *get_args(of_type)) and _says_no(value))


def _says_no(value: object) -> bool:
    """False, also as a flag spells it."""
    return value is False or (isinstance(value, str) and value.strip().lower() in FALSE)
