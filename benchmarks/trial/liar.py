"""`python -m benchmarks.trial.liar KIND`: a small server of OpenAI's chat that lies in one way, and knows the truth.

It prints its port, and on `GET /truth` says of each streamed answer so far when its first token that can be seen was sent, in
ms from the request's last byte, how many such tokens it had, and when it ended. An answer begins after FIRST_MS, and has a
token every GAP_MS. Whole answers, of which a client has no more than a probe, are honest.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

FIRST_MS, GAP_MS = 20.0, 3.0
SLOW_AFTER = 600
ZERO_WIDTH = "\u200b"
WORDS = (" some", " words", " that", " are", " read", " as", " they", " come")
"""A token each, in the tokenizer of the server and in most others."""
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@dataclass(slots=True)
class Answer:
    """One answer: its number, tokens asked for, and what has been sent: pairs of ms and tokens that can be seen."""

    number: int
    asked: int
    prompt: int
    began: float = 0.0
    first_ms: float = -1.0
    seen: int = 0
    finish: str = "length"
    usage: dict[str, Any] = field(default_factory=dict)


Kind = Callable[[Answer], AsyncIterator[str | bytes]]
"""The texts of an answer as they are sent; bytes are sent as they are. It waits between them."""


async def _wait(ms: float) -> None:
    await asyncio.sleep(ms / 1_000)


async def honest(answer: Answer) -> AsyncIterator[str | bytes]:
    """As asked."""
    await _wait(FIRST_MS)
    for at in range(answer.asked):
        if at:
            await _wait(GAP_MS)
        yield WORDS[at % len(WORDS)]


def begins_with(text: str) -> Kind:
    """A first delta at once that shows nothing."""

    async def kind(answer: Answer) -> AsyncIterator[str | bytes]:
        yield text
        async for piece in honest(answer):
            yield piece

    return kind


async def empty(answer: Answer) -> AsyncIterator[str | bytes]:
    """No text at all, and usage as asked."""
    await _wait(FIRST_MS)
    answer.usage["completion_tokens"] = answer.asked
    return
    yield ""


async def held(answer: Answer) -> AsyncIterator[str | bytes]:
    """All but the last token at once, at the end."""
    await _wait(FIRST_MS)
    answer.first_ms = (time.monotonic() - answer.began) * 1_000
    await _wait(GAP_MS * (answer.asked - 1))
    for at in range(answer.asked):
        yield WORDS[at % len(WORDS)]


async def shorter(answer: Answer) -> AsyncIterator[str | bytes]:
    """Half of what was asked for, and usage of all."""
    asked = answer.asked
    answer.asked = asked // 2
    async for piece in honest(answer):
        yield piece
    answer.usage["completion_tokens"] = asked


async def stops(answer: Answer) -> AsyncIterator[str | bytes]:
    """Half of what was asked for, ended by itself."""
    answer.asked //= 2
    answer.finish = "stop"
    async for piece in honest(answer):
        yield piece


def padded(pad: str) -> Kind:
    """Three deltas of four hold nothing that can be seen, and usage has them all."""

    async def kind(answer: Answer) -> AsyncIterator[str | bytes]:
        await _wait(FIRST_MS)
        for at in range(answer.asked):
            if at:
                await _wait(GAP_MS)
            yield WORDS[at % len(WORDS)] if at % 4 == 0 else pad
        answer.usage["completion_tokens"] = answer.asked

    return kind


async def counts_double(answer: Answer) -> AsyncIterator[str | bytes]:
    """Usage of twice the tokens sent."""
    async for piece in honest(answer):
        yield piece
    answer.usage["completion_tokens"] = 2 * answer.asked


async def cuts(answer: Answer) -> AsyncIterator[str | bytes]:
    """Reads 20 tokens of each prompt."""
    answer.usage["prompt_tokens"] = min(20, answer.prompt)
    async for piece in honest(answer):
        yield piece


async def remembers(answer: Answer) -> AsyncIterator[str | bytes]:
    """Finds most of each prompt in a cache."""
    answer.usage["prompt_tokens_details"] = {"cached_tokens": int(0.8 * answer.prompt)}
    async for piece in honest(answer):
        yield piece


async def slows(answer: Answer) -> AsyncIterator[str | bytes]:
    """Half as slow again from half-way on."""
    more = 1.5 if answer.number > SLOW_AFTER else 1.0
    await _wait(FIRST_MS * more)
    for at in range(answer.asked):
        if at:
            await _wait(GAP_MS * more)
        yield WORDS[at % len(WORDS)]


async def says_error(answer: Answer) -> AsyncIterator[str | bytes]:
    """One answer in ten is an error in words, with status 200."""
    if answer.number % 10:
        async for piece in honest(answer):
            yield piece
        return
    yield b'data: {"error":{"message":"out of memory","type":"server_error","code":500}}\n\n'


async def breaks_off(answer: Answer) -> AsyncIterator[str | bytes]:
    """One answer in twenty ends without a finish reason."""
    if answer.number % 20 == 0:
        answer.asked = max(1, answer.asked // 2)
        answer.finish = ""
    async for piece in honest(answer):
        yield piece


async def drops(answer: Answer) -> AsyncIterator[str | bytes]:
    """One request in ten is kept waiting for 300 ms, and then its connection is closed."""
    if answer.number % 10 == 0:
        await _wait(300.0)
        raise ConnectionError
    async for piece in honest(answer):
        yield piece


KINDS: dict[str, Kind] = {
    "honest": honest,
    "zero-width first": begins_with(ZERO_WIDTH),
    "space first": begins_with(" "),
    "empty": empty,
    "held": held,
    "shorter": shorter,
    "stops": stops,
    "padded with nothing": padded(""),
    "padded with the invisible": padded(ZERO_WIDTH),
    "counts double": counts_double,
    "cuts": cuts,
    "remembers": remembers,
    "slows": slows,
    "says error": says_error,
    "breaks off": breaks_off,
    "drops": drops,
    "closes": honest,
}
"""`closes` closes each connection after its answer, without a word."""


def _text(asked: dict[str, Any]) -> str:
    return "".join(str(message["content"]) for message in asked["messages"])


def _tokens(asked: dict[str, Any]) -> int:
    return int(asked.get("max_tokens") or asked.get("max_completion_tokens") or 8)


class Liar:
    """One server of one kind."""

    def __init__(self, kind: str) -> None:
        from inferometer.workload.encodings import Cl100k

        self.name, self.kind, self.number = kind, KINDS[kind], 0
        self.truth: list[tuple[float, int, float]] = []
        self.count = Cl100k().encode

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A connection."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                size = next(
                    (
                        int(line[15:])
                        for line in head.lower().split(b"\r\n")
                        if line.startswith(b"content-length:")
                    ),
                    0,
                )
                body = await reader.readexactly(size)
                await self._request(head, body, writer)
                if self.name == "closes" and body:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _request(self, head: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
        path = head.split(b" ", 2)[1]
        if path == b"/truth":
            reply: object = self.truth
        elif path.endswith(b"/models"):
            reply = {"object": "list", "data": [{"id": "liar", "object": "model"}]}
        elif path.endswith(b"/chat/completions"):
            asked = json.loads(body)
            if asked.get("stream"):
                await self._answer(asked, writer)
                return
            reply = self._whole(asked)
        else:
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            return
        text = json.dumps(reply).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
        writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(text), text))

    def _whole(self, asked: dict[str, Any]) -> dict[str, Any]:
        """A whole answer."""
        tokens, prompt = _tokens(asked), len(self.count(_text(asked))) + 9
        message = {"role": "assistant", "content": "".join(WORDS[at % len(WORDS)] for at in range(tokens))}
        usage = {"prompt_tokens": prompt, "completion_tokens": tokens, "total_tokens": prompt + tokens}
        choices = [{"index": 0, "message": message, "finish_reason": "length"}]
        whole = {"id": "x", "object": "chat.completion", "created": 1, "model": "liar"}
        return {**whole, "choices": choices, "usage": usage}

    async def _answer(self, asked: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        self.number += 1
        answer = Answer(self.number, _tokens(asked), len(self.count(_text(asked))) + 9, time.monotonic())
        writer.write(EVENTS)
        self._event(writer, {"delta": {"role": "assistant", "content": ""}})
        async for piece in self.kind(answer):
            if isinstance(piece, bytes):
                writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                continue
            if piece.strip().strip(ZERO_WIDTH):
                now = (time.monotonic() - answer.began) * 1_000
                answer.first_ms = now if answer.first_ms < 0 else answer.first_ms
                answer.seen += 1
            self._event(writer, {"delta": {"content": piece}})
        self._end(writer, answer)
        self.truth.append((answer.first_ms, answer.seen, (time.monotonic() - answer.began) * 1_000))

    def _event(self, writer: asyncio.StreamWriter, choice: dict[str, Any], **more: Any) -> None:
        choices = [{"index": 0, "finish_reason": None, **choice}] if choice else []
        event = {
            "id": "x",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "liar",
            "choices": choices,
        }
        data = b"data: " + json.dumps(event | more).encode() + b"\n\n"
        writer.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _end(self, writer: asyncio.StreamWriter, answer: Answer) -> None:
        if answer.finish:
            self._event(writer, {"delta": {}, "finish_reason": answer.finish})
            usage = {"prompt_tokens": answer.prompt, "completion_tokens": answer.seen} | answer.usage
            usage["total_tokens"] = usage["prompt_tokens"] + usage["completion_tokens"]
            self._event(writer, {}, usage=usage)
            writer.write(b"e\r\ndata: [DONE]\n\n\r\n")
        writer.write(b"0\r\n\r\n")


async def main(kind: str) -> None:
    """Serve until killed."""
    liar = Liar(kind)
    server = await asyncio.start_server(liar.serve, "127.0.0.1", 0, limit=1 << 22)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
