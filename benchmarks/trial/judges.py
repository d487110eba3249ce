"""Judges of answers to tasks, over HTTP on the loopback interface: one as it should be, and those that go wrong in one way."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PROMPT = "Does the answer meet the expectation? Say PASS or FAIL.\nExpectation: {kind}\nTask: {{input}}\nAnswer: {{answer}}"
"""`kind` is how this part writes down what the judge knows of a task."""


@dataclass(frozen=True, slots=True)
class Judging:
    """A way to judge. `reply`: from the prompt and whether the answer is right to status and words; None: no reply at all;
    `both`: the file names a pattern for both verdicts. `finish`: the reply's finish reason. `expects`: the checks whose matter
    it is."""

    reply: Callable[[str, bool], tuple[int, str] | None]
    both: bool = False
    finish: str = "stop"
    expects: tuple[str, ...] = ("task_results",)

    def asked(self, url: str, *, wrong: bool) -> dict[str, Any]:
        """The criterion's judge."""
        prompt = PROMPT.format(kind="unmeetable" if wrong else "any")
        verdicts = {"pass": "PASS", "fail": "FAIL"} if self.both else {"pass": "^PASS"}
        return {"url": url, "model": "judge", "prompt": prompt} | verdicts


def _honest(right: bool) -> str:
    return "PASS" if right else "FAIL"


SAYS: dict[str, Judging] = {
    "as it should": Judging(lambda _, right: (200, _honest(right))),
    "answers 500": Judging(lambda _, __: (500, "")),
    "says nothing": Judging(lambda _, __: (200, ""), both=True),
    "says nothing, and the file names one verdict": Judging(lambda _, __: (200, "")),
    "is cut off as it names a verdict": Judging(lambda _, __: (200, "PASS and"), finish="length"),
    "says both verdicts": Judging(
        lambda _, right: (200, f"Not FAIL? {_honest(right)}, or PASS or FAIL"), both=True
    ),
    "says both verdicts, and the file names one": Judging(lambda _, right: (200, f"PASS? {_honest(right)}")),
    "repeats its prompt": Judging(lambda prompt, _: (200, prompt), both=True),
    "refuses what is wrong": Judging(lambda _, right: (200, "PASS") if right else (500, "")),
    "hangs": Judging(lambda _, __: None),
}


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, says: Judging) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.says, self.over = says, threading.Event()


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        """See http.server."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = body["messages"][0]["content"]
        said = self.server.says.reply(prompt, "unmeetable" not in prompt)
        if said is None:
            self.server.over.wait()
            return
        status, words = said
        reply = json.dumps(
            {"choices": [{"message": {"content": words}, "finish_reason": self.server.says.finish}]}
        ).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *words: object) -> None:
        """Nothing."""


@contextlib.contextmanager
def judging(says: Judging) -> Iterator[str]:
    """The URL of such a judge, until the end of the block."""
    server = _Server(says)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/chat/completions"
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
        thread.join()
