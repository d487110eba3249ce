"""The JSON Schemas that ship with the package, as another program reads them."""

from __future__ import annotations

import functools
import importlib.resources
import json
from typing import Any


@functools.cache
def shipped(name: str) -> dict[str, Any]:
    """The schema of a document, by its name: `summary`."""
    folder = importlib.resources.files("inferometer.documents.schemas")
    loaded: dict[str, Any] = json.loads(folder.joinpath(f"{name}.schema.json").read_text(encoding="utf-8"))
    return loaded
