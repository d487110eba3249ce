"""A campaign's document with every member that reports read: what a campaign that ended early does not have is None."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from inferometer.report.figures import UNKNOWN
from inferometer.report.run.rows import BOUNDARIES

DECLARED = ("model", "hardware", "software", "boundary")
LINES = (
    *DECLARED, "workload", "load_model", "request_count", "test_duration_s", "ttft_p50_ms", "ttft_p99_ms", "tpot_p50_ms",
    "tpot_p99_ms", "max_throughput_tok_s", "throughput_at_p99_ttft_500ms_tok_s",
)  # fmt: skip
"""What the lines of draft C.1 show."""

_SUT = (
    "boundary", "model_version", "quantization", "software", "accelerator", "accelerator_count", "accelerator_memory",
    "prefix_caching", "cache_state", "notes", "model", "url",
)  # fmt: skip
_NO_SUT: dict[str, Any] = dict.fromkeys(_SUT) | {
    "guardrails": {"input_filter": None, "output_filter": None, "names": []},
    "api": UNKNOWN,
    "stream": True,
    "protocol": UNKNOWN,
    "observed": {"server": None, "models": []},
}
_NO_CLIENT = dict.fromkeys(("os", "kernel", "machine", "cpu", "cores", "memory_bytes", "python"))


def whole(campaign: Mapping[str, Any]) -> dict[str, Any]:
    """A copy that lacks nothing, with its tests in the draft's order: a campaign carries them out in another."""
    minimum = {**dict.fromkeys(LINES), "notes": [], **campaign["minimum"]}
    minimum["boundary"] = BOUNDARIES.get(minimum["boundary"], minimum["boundary"])
    about = campaign["reproduction"]
    reproduction = {
        "command": about["command"],
        "plan": about.get("campaign", about.get("plan_file")),
        "versions": about["versions"],
        "seeds": about["seeds"] if "seeds" in about else [about.get("seed")],
    }
    return {
        **campaign,
        "sut": campaign["sut"] or _NO_SUT,
        "environment": campaign["environment"] or _NO_CLIENT,
        "tokenizer": campaign["tokenizer"] or {},
        "minimum": minimum,
        "tests": sorted(campaign["tests"], key=_place),
        "disclosed": campaign.get("disclosed") or [],
        "reproduction": reproduction,
    }


def _place(test: Mapping[str, Any]) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", test["section"])]
