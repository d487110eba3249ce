"""The JSON Schema of a campaign's document and of the tests in it, as it ships with the package."""

from __future__ import annotations

import functools
import importlib.resources
import json
from typing import Any


@functools.cache
def campaign_schema() -> dict[str, Any]:
    """Of campaign.json; a test's document is at `$defs/test`."""
    folder = importlib.resources.files("inferometer.report")
    loaded: dict[str, Any] = json.loads(folder.joinpath("campaign.schema.json").read_text(encoding="utf-8"))
    return loaded
