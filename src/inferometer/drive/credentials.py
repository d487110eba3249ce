"""The API key: read from the place the plan names, kept in memory, sent in one header, struck out everywhere else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from inferometer.errors import PlanError, Problem
from inferometer.plan.schema import Target


def read_key(target: Target, environ: Mapping[str, str]) -> str | None:
    """The key the plan points at, or None if it points at none. Raises PlanError, which never repeats the key."""
    if target.api_key_env is not None:
        where, key = "--api-key-env", environ.get(target.api_key_env)
        if key is None:
            raise PlanError([Problem(where, f"the environment variable {target.api_key_env} is not set")])
    elif target.api_key_file is not None:
        where = "--api-key-file"
        try:
            key = Path(target.api_key_file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as cause:
            raise PlanError(
                [Problem(where, f"the key file cannot be read ({type(cause).__name__})")]
            ) from None
    else:
        return None
    if not key or not key.isascii() or not key.isprintable():
        raise PlanError([Problem(where, "the key is empty or holds characters that a header cannot")])
    return key


def headers(target: Target, key: str | None) -> dict[str, str]:
    """All headers of the plan, with the key as bearer token."""
    return {**target.headers, **({"Authorization": f"Bearer {key}"} if key is not None else {})}
