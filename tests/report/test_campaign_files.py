"""The documents as the schema has them, and the files of a campaign's folder."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import documents
import jsonschema
import pytest

from inferometer.errors import InstrumentError
from inferometer.report.campaign.files import write_reports
from inferometer.report.campaign.html import document_of
from inferometer.report.campaign.redaction import redact
from inferometer.report.campaign.schema import campaign_schema

CHECKER = jsonschema.Draft202012Validator(campaign_schema())


@pytest.mark.parametrize("name", documents.SAMPLES)
def test_the_schema_holds_documents_and_redacted_ones(name: str) -> None:
    """Both as they are made and as they are shared."""
    document = documents.SAMPLES[name]()
    CHECKER.check_schema(campaign_schema())
    CHECKER.validate(document)
    CHECKER.validate(redact(document, "capacity"))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["tests", 0, "values", 0, "ci"], [1.0]),
        (["tests", 0, "tables", 0, "rows", 0, 0], {}),
        (["tests", 0, "figures", 0, "kind"], "pie"),
        (["tests", 0, "verdict", "status"], "GOOD"),
        (["tests", 0, "compliance", "label"], "rather compliant"),
        (["redacted"], []),
        (["tests"], []),
    ],
)
def test_the_schema_refuses_what_reports_cannot_read(path: list[Any], value: Any) -> None:
    """A damaged member is found."""
    document = documents.campaign()
    part: Any = document
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    assert not CHECKER.is_valid(document)


@pytest.mark.parametrize("name", documents.SAMPLES)
def test_the_folder_gets_all_four(name: str, tmp_path: Path) -> None:
    """JSON reads back as it was, and the page holds the same."""
    document = documents.SAMPLES[name]()
    before = copy.deepcopy(document)
    write_reports(tmp_path, document)
    assert {path.name for path in tmp_path.iterdir()} == {
        "campaign.json",
        "report.md",
        "report.html",
        "minimum.txt",
    }
    assert json.loads((tmp_path / "campaign.json").read_text()) == before == document
    assert document_of((tmp_path / "report.html").read_text()) == before


def test_nothing_is_written_of_what_json_cannot_hold(tmp_path: Path) -> None:
    """A NaN leaves the folder as it was."""
    document = documents.campaign()
    document["tests"][0]["values"][0]["value"] = float("nan")
    with pytest.raises(InstrumentError, match="JSON"):
        write_reports(tmp_path, document)
    assert not list(tmp_path.iterdir())
