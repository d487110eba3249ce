"""Engines' own gRPC services: one reader and one writer for all of them, driven by a table of field numbers.

A service is `Generate`, which answers with a stream of messages, each one of two parts:

| a message                              | is read as                                                                      |
| -------------------------------------- | ------------------------------------------------------------------------------- |
| `chunk` with token ids                 | content: an event of so many tokens                                             |
| `chunk` without                        | empty                                                                           |
| `complete`                             | done: finish reason and counts; content, if it has ids that no chunk had        |
| anything else                          | empty                                                                           |

A `complete` behind chunks repeats the ids of the last one, or all of them, or none: only what it has beyond those that came is
new. Output tokens are the ids that came. What a server says against them is an error, not a count:

| a message                                                                                  | is Malformed     |
| ------------------------------------------------------------------------------------------ | ---------------- |
| `complete` whose `completion_tokens` is another number (`Ending`)                          | always           |
| `complete` with fewer ids than came, where it has all                                      | `Ending.ALL`     |
| `complete` with another number of prompt tokens than before the first token                | always           |
| of a sequence other than the first, of which one was requested                             | always           |
| `complete` behind chunks of which each begins with all ids of the one before (`_several`)  | always           |
| behind a `complete`, whatever it holds                                                     | always           |
| with another `request_id` than the messages before it                                      | where it has one |
| with the `request_id` of another request of ours                                           | where it has one |

Answers are ids and have no text: the first token is the first id, whatever it would be as text (draft B.1.2).

Field numbers are written by hand: what is sent and read is a few dozen of them. The tests hold them to the published files
(smg-grpc-proto 0.4.28).
"""

from __future__ import annotations

import enum
import functools
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from inferometer.engines.answer import Answer
from inferometer.engines.dialect import Dialect, GenerationRequest, Models, Read
from inferometer.engines.interface import INTERFACES
from inferometer.journal.schema import EventClass
from inferometer.protocol.event_decoder import EventTooLarge
from inferometer.protocol.grpc import PREFIX_BYTES, BadMessage, GrpcDecoder, framed
from inferometer.protocol.protobuf import (
    BYTES,
    GOES_ON,
    VARINT,
    Malformed,
    count,
    integer,
    key,
    numbers,
    piece,
    read,
    real,
    varint,
)

_CONTENT, _EMPTY = int(EventClass.CONTENT), int(EventClass.EMPTY)
_DONE, _ERROR = int(EventClass.DONE), int(EventClass.ERROR)
ID_BYTES = 3
"""Bytes of each id of a prompt, so that one nonce can be written over another: every id below 2^21 fits."""
_WHOLE = 0xFFFF_FFFF
"""Of a varint, what a field of 32 bits keeps."""
_LONGEST_REQUEST = 1024
"""Bytes of a request_id, which is kept as long as its answer: many more than any of ours has."""
_OURS = re.compile(rb"\x0a.[0-9]+-[0-9a-f]{16}", re.DOTALL).fullmatch
"""A field with an id as `_body` makes them. An engine may put an id of its own in its place."""
_MOST_STOPPING = 16
"""Ids of the longest text that stops an answer."""
_MOST_OF_A_MODEL = (1 << 31) - 1
_NOT_GROWING = -(1 << 62)
"""What no number of chunks makes up for."""


class Ending(enum.Enum):
    """What `complete` repeats and counts behind the chunks of a stream."""

    OWN = "the last chunk's ids; it counts these, or all that came"
    LAST = "ids of the last chunk or of all; it counts all that came"
    ALL = "all ids, perhaps without those that stopped it, which may be counted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Field numbers of a chunk or of the end; 0: it has no such field. Ids are field 1."""

    number: int
    """In the response."""
    prompt: int
    completion: int
    cached: int
    sequence: int
    reasoning: int = 0
    reason: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One engine's service. Field numbers are those of its published file."""

    api: str
    """Its interface's name."""
    vendor: str
    stream: int
    text: int = 0
    """A prompt of text; 0: only ids are taken."""
    length: str = "max_tokens"
    least: str = "min_tokens"
    parameters: Mapping[str, tuple[int, int]]
    """By name: the number of the message inside the request, 0 for the request itself, and the number in there."""
    implied: Mapping[str, object] = field(default_factory=dict)
    """What is sent unless a plan says otherwise, because 0, which is what a missing field means, is another value."""
    all_tokens: int = 0
    """`top_k` that leaves out no token. What is below 0 means that."""
    chunk: Part
    complete: Part
    echoes: bool
    """Field 1 of a response is the request's id."""
    ending: Ending
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Finish reasons in the terms of OpenAI's chat, where they differ."""
    names: tuple[int, ...]
    """Fields of GetModelInfoResponse that may name the model, the best first."""
    context: int
    vocabulary: int
    server: int
    """The field of GetServerInfoResponse that says what the server is."""
    server_is_version: bool = True
    """That field is a version alone."""


def _body(service: Service, request: GenerationRequest) -> bytes:
    """A framed GenerateRequest."""
    prompt = request.prompt
    if isinstance(prompt, str):
        assert service.text, "a service of ids has no prompts of text"
        asked = piece(service.text, prompt)
    else:
        asked = piece(2, piece(2, _packed(prompt)))
    wanted: dict[str, object] = {
        **service.implied,
        "temperature": request.temperature,
        service.length: request.max_tokens,
        service.least: request.max_tokens if request.min_tokens else None,
        "ignore_eos": request.ignore_eos or None,
    }
    places: dict[int, bytes] = {}
    for name, value in (wanted | dict(request.extra)).items():
        place, number = service.parameters[name]
        places[place] = places.get(place, b"") + _parameter(service, name, number, value)
    fields = places.pop(0, b"") + b"".join(piece(place, inner) for place, inner in places.items())
    # Of two requests under way with one id, an engine may refuse the second.
    digest = hashlib.blake2b(asked, digest_size=8).hexdigest()
    ident = f"{request.ident}-{digest}" if request.ident else digest
    return framed(piece(1, ident) + asked + fields + integer(service.stream, request.stream))


def _asked(body: bytes) -> bytes:
    """Of a request as `_body` makes it, the field with its id."""
    return body[PREFIX_BYTES : PREFIX_BYTES + 2 + body[PREFIX_BYTES + 1]]


def _packed(ids: Iterable[int]) -> bytes:
    return b"".join(varint(one, ID_BYTES) for one in ids)


def _ids_nonce(nonce: str) -> bytes:
    """Ids with commas between, as they stand in a body."""
    return _packed(map(int, nonce.split(",")))


def _read_ids_nonce(packed: bytes) -> str:
    """The other way round."""
    return ",".join(map(str, numbers(packed)))


def _parameter(service: Service, name: str, number: int, value: object) -> bytes:
    """One field; the plan has checked its kind (interface.py)."""
    if value is None:
        return b""
    if isinstance(value, str):
        return piece(number, value)
    if isinstance(value, list | tuple):
        if all(isinstance(one, str) for one in value):
            return b"".join(piece(number, str(one)) for one in value)
        return piece(number, b"".join(map(varint, value)))
    assert isinstance(value, int | float)
    if (INTERFACES[service.api].fields or {}).get(name) == "real":
        return real(number, value)
    if name == "top_k" and value < 0:
        value = service.all_tokens
    return integer(number, int(value))


def _reader(service: Service) -> Read:
    """What reads one message of this service."""
    tag, are_counts, echoes = key(service.chunk.number, BYTES), _counts_of(service), service.echoes

    def read_event(answer: Answer, payload: bytes, at: int) -> None:
        """Write one message that arrived at `at` into the answer. Never raises: what is wrong becomes data."""
        if answer.flowing and (
            ids := _plain(payload.removeprefix(answer.echo) if echoes else payload, tag, are_counts)
        ):
            # Nearly every message ends here.
            tokens = len(ids.translate(None, GOES_ON))  # count(), without the call
            if tokens > 1:
                _several(answer, ids)
            answer.event_ns.append(at)
            answer.event_class.append(_CONTENT)
            answer.texts.append("")
            answer.output_tokens = (answer.output_tokens or 0) + tokens
            return
        if answer.done:
            answer.malformed = answer.malformed or "a message behind the end"
            answer.mark(_DONE, at)
            return
        try:
            _read(service, answer, payload, at)
        except Malformed as cause:
            answer.malformed = answer.malformed or str(cause)
            answer.mark(_ERROR, at)

    return read_event


def _plain(payload: bytes, tag: int, are_counts: Callable[[bytes], object]) -> bytes:
    """The ids of a chunk that is nothing but ids and counts, each in the shortest form; nothing of any other message.

    tag length | 0x0A length ids | counts
    """
    size = len(payload)
    if not 5 <= size < 130 or payload[0] != tag or payload[1] != size - 2 or payload[2] != 0x0A:
        return b""
    behind = 4 + payload[3]
    if behind > size or not are_counts(payload[behind:]):
        return b""
    ids = payload[4:behind]
    return ids if ids and ids[-1] < 0x80 else b""


def _several(answer: Answer, ids: bytes) -> None:
    """Note a chunk of several ids: whether it begins with all of the one before, as those of a server do that sends the whole
    answer so far each time."""
    grows = len(ids) > len(answer.several) and ids.startswith(answer.several)
    answer.growing = answer.growing + 1 if grows else _NOT_GROWING
    answer.several = ids


def _counts_of(service: Service) -> Callable[[bytes], object]:
    """Says whether fields add no token and no error, and end where they should."""
    part = service.chunk
    tags = (part.prompt, part.completion, part.cached, *filter(None, (part.reasoning,)))
    one_of = b"".join(re.escape(bytes((key(number, VARINT),))) for number in tags)
    are_counts = re.compile(rb"(?:[%b][\x80-\xff]{0,9}+[\x00-\x7f])*+" % one_of).fullmatch
    # Where each message counts itself, those of a stream have the same ones.
    return functools.lru_cache(maxsize=4096)(are_counts) if service.ending is Ending.OWN else are_counts


def _read(service: Service, answer: Answer, payload: bytes, at: int) -> None:
    """Any message. Raises Malformed, before anything is written."""
    chunk, complete = key(service.chunk.number, BYTES), key(service.complete.number, BYTES)
    member, content, request = 0, b"", b""
    for tag, value in read(payload):
        if not isinstance(value, bytes):
            continue
        if tag in (chunk, complete):
            content = content + value if tag == member else value
            member = tag
        elif service.echoes and tag == key(1, BYTES):
            request = value
    if not member:
        answer.mark(_EMPTY, at)
        return
    if len(request) > _LONGEST_REQUEST:
        raise Malformed(f"a request_id of {len(request)} bytes, which no request has")
    echo = piece(1, request) if request else b""
    if echo and answer.echo not in (b"", echo):
        raise Malformed("a message of another request, by its request_id")
    if echo and not answer.echo and echo != answer.asked and answer.asked and _OURS(echo):
        raise Malformed("the answer to another request, by its request_id")
    if member == chunk:
        _chunk(service, answer, content, at)
    else:
        _complete(service, answer, content, at)
    answer.echo = echo or answer.echo


def _chunk(service: Service, answer: Answer, content: bytes, at: int) -> None:
    """Ids, and counts."""
    found = _counted(content, service.chunk)
    if not answer.flowing:  # behind the first token the short way reads no counts either
        _count(answer, found)
    if found.get("ids", 0) > 1:
        tag = key(1, BYTES)
        _several(
            answer,
            b"".join(
                value for field_key, value in read(content) if field_key == tag and isinstance(value, bytes)
            ),
        )
    if not _tokens(answer, found.get("ids", 0), at):
        answer.mark(_EMPTY, at)


def _complete(service: Service, answer: Answer, content: bytes, at: int) -> None:
    """The end."""
    part = service.complete
    found = _counted(content, part)
    named = [
        value for tag, value in read(content) if tag == key(part.reason, BYTES) and isinstance(value, bytes)
    ]
    said = named[-1].decode("utf-8", "replace") if named else ""
    reason, came, here = service.reasons.get(said, said), answer.output_tokens or 0, found.get("ids", 0)
    _check(service.ending, reason, came, here, found.get("completion", 0))
    if answer.growing > 1 and len(answer.texts) - answer.growing <= 1 < len(answer.texts) - 1:
        raise Malformed(f"each of {len(answer.texts)} messages repeats the token ids of the one before")
    before, now = answer.input_tokens, found.get("prompt")
    if before and now and now != before:
        raise Malformed(f"the end counts {now} prompt tokens, where {before} were counted before")
    new = _tokens(answer, max(0, here - came), at)
    _count(answer, found)
    answer.output_tokens = answer.output_tokens or 0
    answer.finish(reason)
    answer.done, answer.flowing = True, False
    if not new:
        answer.mark(_DONE, at)


def _check(ending: Ending, reason: str, came: int, here: int, counted: int) -> None:
    """Hold an end with `here` ids that counts `counted` (0: it does not) to the ids that came. Raises Malformed."""
    tokens, whole = max(came, here), reason == "length"
    if ending is Ending.ALL and here < came and (whole or not here):
        raise Malformed(f"the end has {here} token ids of all {came} that came")
    if not counted or counted == tokens:
        return
    if ending is Ending.OWN and counted == here:
        return
    if ending is Ending.ALL and not whole and tokens < counted <= tokens + _MOST_STOPPING:
        return
    raise Malformed(f"the end counts {counted} completion tokens, where {tokens} token ids came")


def _count(answer: Answer, found: Mapping[str, int]) -> None:
    answer.count(found.get("prompt"), cached=found.get("cached"), reasoning=found.get("reasoning"))


def _counted(content: bytes, part: Part) -> dict[str, int]:
    """How many ids are in field 1, and the counts that are there. Raises Malformed."""
    names = {
        key(number, VARINT): name
        for name, number in (
            ("prompt", part.prompt),
            ("completion", part.completion),
            ("cached", part.cached),
            ("reasoning", part.reasoning),
            ("sequence", part.sequence),
        )
    }
    found: dict[str, int] = {}
    for tag, value in read(content):
        if tag == key(1, BYTES) and isinstance(value, bytes):
            found["ids"] = found.get("ids", 0) + count(value)
        elif tag == key(1, VARINT):
            found["ids"] = found.get("ids", 0) + 1
        elif tag in names and isinstance(value, int):
            found[names[tag]] = value & _WHOLE
    if found.get("sequence"):
        raise Malformed(f"a message of sequence {found['sequence']}, where one was requested")
    return found


def _tokens(answer: Answer, tokens: int, at: int) -> bool:
    """An event of so many tokens, if there are any."""
    if not tokens:
        return False
    if answer.first_text < 0:
        answer.first_text = answer.first_visible = answer.first_answer = len(answer.event_class)
    answer.flowing = True
    answer.event_ns.append(at)
    answer.event_class.append(_CONTENT)
    answer.texts.append("")
    answer.output_tokens = (answer.output_tokens or 0) + tokens
    return True


def _whole(read_event: Read, answer: Answer, payload: bytes, at: int) -> None:
    """Write the body of an answer that is not streamed into `answer`."""
    decoder = GrpcDecoder(len(payload))
    try:
        for message in decoder.feed(payload):
            read_event(answer, message, at)
    except (BadMessage, EventTooLarge) as cause:
        answer.malformed = answer.malformed or str(cause)


def _models(service: Service, message: bytes) -> Models:
    """GetModelInfoResponse: the model's name, its context and its vocabulary; what is 0 is not known. Raises ValueError."""
    fields = dict(read(message))
    named = [fields.get(key(number, BYTES)) for number in service.names]
    name = next((one.decode("utf-8", "replace") for one in named if isinstance(one, bytes) and one), None)
    if name is None:
        raise Malformed("it names no model")

    def by_name(number: int) -> dict[str, int]:
        value = fields.get(key(number, VARINT))
        return {name: value} if isinstance(value, int) and 0 < value <= _MOST_OF_A_MODEL else {}

    return Models((name,), by_name(service.context), by_name(service.vocabulary))


def _server(service: Service, message: bytes) -> str:
    """GetServerInfoResponse: what the server says it is; nothing if it does not. Raises ValueError."""
    said = dict(read(message)).get(key(service.server, BYTES))
    if not isinstance(said, bytes) or not said:
        return ""
    text = said.decode("utf-8", "replace")
    return f"{service.vendor}/{text}" if service.server_is_version else text


def dialect_of(service: Service) -> Dialect:
    """The dialect of this service."""
    interface, read_event = INTERFACES[service.api], _reader(service)
    path = interface.path.removesuffix("Generate")
    return Dialect(
        interface,
        vendor=service.vendor,
        body=functools.partial(_body, service),
        read_event=read_event,
        read_whole=functools.partial(_whole, read_event),
        end="a GenerateComplete",
        models_path=f"{path}GetModelInfo",
        read_models=functools.partial(_models, service),
        length_fields=(service.length,),
        ids_nonce=_ids_nonce,
        read_ids_nonce=_read_ids_nonce,
        server_path=f"{path}GetServerInfo",
        read_server=functools.partial(_server, service),
        asked=_asked if service.echoes else None,
    )
