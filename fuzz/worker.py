"""`python -m fuzz.worker TARGET ...`: one target under libFuzzer, whose arguments follow; started by `python -m fuzz`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable

import atheris


def main(argv: list[str]) -> None:
    """Fuzz until libFuzzer ends the process."""
    name, *rest = argv
    with atheris.instrument_imports(include=["inferometer"]):
        check: Callable[[bytes], None] = importlib.import_module(f"fuzz.{name}").check
    atheris.Setup([name, *rest], check)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
