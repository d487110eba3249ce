"""Write the JSON Schema of every document beside this file."""

from __future__ import annotations

import json
from pathlib import Path

from inferometer.documents.agentic import Agentic
from inferometer.documents.bench import Bench
from inferometer.documents.bench_comparison import BenchComparison
from inferometer.documents.campaign import Campaign, ProcedureDocument
from inferometer.documents.campaign_comparison import CampaignComparison
from inferometer.documents.certificate import Certificate
from inferometer.documents.comparison import ComparisonDocument
from inferometer.documents.cross_validation import CrossValidation
from inferometer.documents.detection import Detection
from inferometer.documents.doctor import Doctor
from inferometer.documents.fit import FitDocument
from inferometer.documents.history import HistoryCheck, HistoryEntry
from inferometer.documents.part import json_schema
from inferometer.documents.summary import Summary

DOCUMENTS: dict[str, type] = {
    "summary": Summary,
    "comparison": ComparisonDocument,
    "fit": FitDocument,
    "certificate": Certificate,
    "campaign": Campaign,
    "campaign-comparison": CampaignComparison,
    "test": ProcedureDocument,
    "detection": Detection,
    "doctor": Doctor,
    "bench": Bench,
    "bench-comparison": BenchComparison,
    "agentic": Agentic,
    "cross-validation": CrossValidation,
    "history-entry": HistoryEntry,
    "history-check": HistoryCheck,
}
"""By the name of the file."""


def generated(name: str) -> str:
    """The text of `NAME.schema.json`."""
    return json.dumps(json_schema(DOCUMENTS[name], f"{name}.json"), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for document in DOCUMENTS:
        path = Path(__file__).parent / f"{document}.schema.json"
        path.write_text(generated(document), encoding="utf-8")
