"""The files of a campaign's folder, and the campaign's document in them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import campaigns
import jsonschema
import pytest
from msgspec.structs import replace

from inferometer.documents.campaign import CAMPAIGN_SCHEMA, Campaign
from inferometer.documents.part import from_data, from_json, to_data
from inferometer.documents.schemas.__main__ import generated
from inferometer.errors import InstrumentError
from inferometer.plan.rerun import again
from inferometer.report.campaign.files import write_reports
from inferometer.report.campaign.redaction import redact

CHECKER = jsonschema.Draft202012Validator(json.loads(generated("campaign")))
EMBEDDED = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


@pytest.mark.parametrize("name", campaigns.SAMPLES)
def test_the_schema_holds_documents_and_redacted_ones(name: str) -> None:
    """Both as they are made and as they are shared."""
    document = campaigns.SAMPLES[name]()
    CHECKER.check_schema(CHECKER.schema)
    CHECKER.validate(to_data(document))
    CHECKER.validate(to_data(redact(document, "capacity")))


@pytest.mark.parametrize("name", campaigns.SAMPLES)
def test_the_folder_gets_all_four(name: str, tmp_path: Path) -> None:
    """JSON reads back as it was, and the page holds the same."""
    document = campaigns.SAMPLES[name]()
    write_reports(tmp_path, document)
    assert {path.name for path in tmp_path.iterdir()} == {
        "campaign.json",
        "report.md",
        "report.html",
        "minimum.txt",
    }
    text = (tmp_path / "campaign.json").read_bytes()
    assert from_json(text, Campaign, CAMPAIGN_SCHEMA, "campaign.json") == document
    embedded = EMBEDDED.search((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert embedded
    assert from_data(json.loads(embedded[1]), Campaign) == document


def test_the_page_and_the_document_say_what_to_do_again(tmp_path: Path) -> None:
    """`inferometer rerun` finds the same in both."""
    write_reports(tmp_path, campaigns.simulated())
    assert again(tmp_path / "report.html") == again(tmp_path / "campaign.json")


def test_nothing_is_written_of_what_json_cannot_hold(tmp_path: Path) -> None:
    """A NaN leaves the folder as it was."""
    document = campaigns.valid()
    (test,) = document.tests
    values = (replace(test.values[0], value=float("nan")), *test.values[1:])
    with pytest.raises(InstrumentError, match="JSON"):
        write_reports(tmp_path, replace(document, tests=(replace(test, values=values),)))
    assert not list(tmp_path.iterdir())
