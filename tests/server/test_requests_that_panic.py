"""What a request brings to its knees is answered with an error, and the server serves on."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import httpx
import pytest
from serving import QUICK

from inferometer.server.http import Server
from inferometer.server.options import Options
from inferometer.workload.encodings import Cl100k

PATHS = "/v1/chat/completions", "/v1/completions", "/tokenize", "/api/chat", "/v1/responses"


class PanicException(BaseException):
    """A panic of a package that is not of Python."""


class Panicking(Cl100k):
    """A tokenizer that cannot read anything."""

    def encode(self, text: str) -> list[int]:
        """See `Tokenizer.encode`."""
        raise PanicException(text[:9])

    def decode(self, ids: Sequence[int]) -> str:
        """See `Tokenizer.decode`."""
        return "a" * len(ids)


@pytest.mark.parametrize("path", PATHS)
def test_no_request_ends_the_server(path: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A panic is no Exception, and no more than a bug: 500, and the next request is answered."""
    server = Server(Options(engine=QUICK))
    thread = threading.Thread(target=server.run, args=(Panicking(),), daemon=True)
    thread.start()
    try:
        with httpx.Client(
            base_url=f"http://127.0.0.1:{server.address[1]}", trust_env=False, timeout=60
        ) as client:
            body = {
                "messages": [{"role": "user", "content": "x"}],
                "prompt": "x",
                "input": "x",
                "max_tokens": 1,
            }
            if path == "/tokenize":
                del body["messages"]
            assert client.post(path, json=body).status_code == 500
            assert client.get("/health").status_code == 200
    finally:
        server.stop()
        thread.join(30)
    assert not thread.is_alive()
    assert "PanicException" in capfd.readouterr().err
