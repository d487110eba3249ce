"""Recorded agent sessions for tests: a file of them, and what each step is to send, worked out another way."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Line = dict[str, Any]
CALL = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q": "é"}'}}
TOOLS = [{"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}]


def agent(name: str, tool_ms: float = 20) -> Line:
    """Plan; then a tool and a subagent side by side; then an answer that joins them."""
    return {
        "session": name,
        "tools": TOOLS,
        "steps": [
            {
                "name": "plan",
                "messages": [
                    {"role": "system", "content": "You are an agent."},
                    {"role": "user", "content": f"Question of {name}"},
                ],
                "reply": {"content": None, "tool_calls": [CALL]},
                "output_tokens": 4,
            },
            {
                "name": "read",
                "tool_ms": tool_ms,
                "messages": [{"role": "tool", "tool_call_id": "c1", "content": f"Result of {name}"}],
                "reply": {"content": "I have read it."},
                "output_tokens": 3,
            },
            {
                "name": "sub",
                "agent": "helper",
                "after": ["plan"],
                "extends": None,
                "think_ms": 5,
                "messages": [{"role": "user", "content": [{"type": "text", "text": f"Look up {name}"}]}],
                "output_tokens": 5,
            },
            {
                "after": ["read", "sub"],
                "extends": "read",
                "messages": [{"role": "user", "content": "And the answer?"}],
                "output_tokens": 6,
            },
        ],
    }


def written(path: Path, lines: Sequence[Line]) -> Path:
    """A file of these sessions."""
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n")
    return path
