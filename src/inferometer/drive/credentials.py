"""The API key: read from the place the plan names, kept in memory, sent in headers, struck out everywhere else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from inferometer.engines.dialect import Dialect, bearer
from inferometer.errors import PlanError, Problem, check_machine
from inferometer.plan.target import Target, secret_name


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
            check_machine(cause)
            raise PlanError(
                [Problem(where, f"the key file cannot be read ({type(cause).__name__})")]
            ) from None
    else:
        return None
    if not key or not key.isascii() or not key.isprintable():
        raise PlanError([Problem(where, "the key is empty or holds characters that a header cannot")])
    return key


def headers(target: Target, key: str | None, dialect: Dialect | None = None) -> dict[str, str]:
    """The dialect's header lines, the plan's own in their place, and the key: as the dialect has it, else a bearer token."""
    lines = merged({} if dialect is None else dialect.headers, target.headers)
    if key is not None:
        host = urlsplit(target.url or "").hostname or ""
        lines |= (bearer if dialect is None else dialect.key_headers)(key, host)
    return lines


def secrets_in(lines: Mapping[str, str]) -> list[str]:
    """The secrets in header lines: the values of those with a secret's name, and a bearer token also without its scheme."""
    values = [value for name, value in lines.items() if secret_name(name)]
    return [one for value in values for one in dict.fromkeys((value, value.rpartition(" ")[2])) if one]


def merged(lines: Mapping[str, str], others: Mapping[str, str]) -> dict[str, str]:
    """Header lines, and others in place of those of the same name, in whatever case."""
    replaced = {name.lower() for name in others}
    return {name: value for name, value in lines.items() if name.lower() not in replaced} | dict(others)
