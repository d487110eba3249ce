"""The header lines of a key: as each interface wants them, and never twice under one name."""

from __future__ import annotations

import pytest

from inferometer.drive.credentials import headers
from inferometer.engines.dialect import load
from inferometer.plan.target import Target

BEARER = {"Authorization": "Bearer k"}
OWN = {"x-api-key": "k"}


@pytest.mark.parametrize(
    ("api", "url", "lines"),
    [
        ("chat", "http://localhost:8000", BEARER),
        ("ollama-chat", "http://localhost:11434", BEARER),
        ("chat", "https://api.anthropic.com", BEARER),
        ("anthropic", "http://localhost:8000", OWN | BEARER),
        ("anthropic", None, OWN | BEARER),
        ("anthropic", "https://notanthropic.com", OWN | BEARER),
        ("anthropic", "https://anthropic.com.example", OWN | BEARER),
        ("anthropic", "https://api.anthropic.com", OWN),
        ("anthropic", "https://API.Anthropic.com/proxy", OWN),
    ],
)
def test_a_key_goes_in_the_lines_that_the_server_reads(
    api: str, url: str | None, lines: dict[str, str]
) -> None:
    """A bearer token; over the Messages API in its own line too, and to its vendor in that alone (decision 028)."""
    dialect = load(api)
    target = Target(url=url, api=api)
    assert headers(target, "k", dialect) == {**dialect.headers, **lines}
    assert headers(target, None, dialect) == dict(dialect.headers)
    assert headers(target, "k") == BEARER
