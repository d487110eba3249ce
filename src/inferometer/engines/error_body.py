"""What an error's JSON says, in whichever of the common shapes it comes.

| shape                                        | of                                                             |
| -------------------------------------------- | -------------------------------------------------------------- |
| `{"error": {"message": ..., "code": ...}}`   | OpenAI, vLLM, llama.cpp; Anthropic with a `type` beside it     |
| `{"error": "..."}`                           | Ollama, mlx-lm                                                 |
| `{"message": ...}`, `{"detail": ...}`        | the Responses stream, FastAPI                                  |
| anything else, JSON or not                   | proxies; its beginning is quoted                               |

One reader for all dialects: what stands in front of an engine answers in a shape of its own.
"""

from __future__ import annotations

import json

DETAIL_LIMIT = 4096
"""Characters kept of an error's detail; the record keeps fewer, but secrets are struck out before it cuts."""

POLICY_CODES = frozenset(
    {"content_filter", "content_policy", "content_policy_violation", "ResponsibleAIPolicyViolation"}
)
"""Error codes and types of a request that was refused for its content (OpenAI, Azure)."""


def error_text(body: bytes) -> str:
    """The message inside an error body; else its beginning."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return body[:DETAIL_LIMIT].decode("utf-8", "replace")
    if isinstance(content, dict):
        inner = content.get("error", content)
        if isinstance(inner, dict):
            inner = inner.get("message", inner.get("detail", inner))
        return str(inner)[:DETAIL_LIMIT]
    return str(content)[:DETAIL_LIMIT]


def names_a_policy(body: bytes) -> bool:
    """Whether an error body's code or type states that a policy refused the request; its message is not interpreted."""
    try:
        level = json.loads(body)
    except (ValueError, RecursionError):
        return False
    while isinstance(level, dict):  # {"error": {"code": ..., "innererror": {"code": ...}}}
        if any(isinstance(code := level.get(key), str) and code in POLICY_CODES for key in ("code", "type")):
            return True
        level = level.get("error") or level.get("innererror")
    return False
