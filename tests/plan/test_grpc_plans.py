"""Plans of a gRPC interface: HTTP/2, URLs, and what may be put into a request."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from inferometer.engines.interface import INTERFACES
from inferometer.errors import PlanError
from inferometer.plan.rules import check
from inferometer.plan.schema import Plan
from inferometer.plan.target import Target

GRPC = [name for name, one in INTERFACES.items() if one.grpc]


@pytest.mark.parametrize("api", GRPC)
@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("grpc://h:50051", "http://h:50051"),
        ("grpcs://h", "https://h"),
        ("GRPC://h:1/", "http://h:1"),
        ("http://h:1", "http://h:1"),
        ("https://h", "https://h"),
    ],
)
def test_a_grpc_interface_is_http_2_whatever_its_url_begins_with(api: str, given: str, kept: str) -> None:
    """Law: and a plan that is saved is read again as the same."""
    target = Target.model_validate({"api": api, "url": given})
    assert (target.url, target.http, target.streams) == (kept, "2", 100)
    assert Target.model_validate(target.model_dump()) == target


@pytest.mark.parametrize("api", sorted(set(INTERFACES) - set(GRPC)))
def test_other_interfaces_have_no_such_urls(api: str) -> None:
    """Nor HTTP/2 by themselves."""
    assert Target.model_validate({"api": api, "url": "http://h"}).http == "1.1"
    with pytest.raises(ValidationError, match="of interfaces that --api names: vllm-grpc or"):
        Target.model_validate({"api": api, "url": "grpc://h"})


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ({"http": "1.1"}, "needs HTTP/2"),
        ({"extra_body": {"top_k": "many"}}, "no field for top_k"),
        ({"extra_body": {"guided_json": {}, "top_p": 0.5}}, "no field for guided_json"),
    ],
)
def test_what_a_grpc_request_cannot_hold_is_refused(target: dict[str, Any], words: str) -> None:
    """Before anything is sent, with the names of the fields."""
    with pytest.raises(PlanError) as caught:
        check(Plan.model_validate({"target": {"api": "vllm-grpc", **target}}))
    assert words in str(caught.value)


@pytest.mark.parametrize("api", [name for name in GRPC if not INTERFACES[name].takes_text])
@pytest.mark.parametrize("workload", [{"prompt_format": "text"}, {"kind": "prompts", "prompts": "a.jsonl"}])
def test_text_for_a_service_of_ids_is_refused(api: str, workload: dict[str, Any]) -> None:
    """Before anything is sent, whether it is drawn or read from a file."""
    with pytest.raises(PlanError, match="takes token ids, and these prompts are text"):
        check(Plan.model_validate({"target": {"api": api, "url": "grpc://h"}, "workload": workload}))


@pytest.mark.parametrize("api", [name for name in INTERFACES if not INTERFACES[name].embedded])
def test_what_the_reference_server_does_not_speak_needs_a_url(api: str) -> None:
    """Law: no plan measures it by an interface that it does not have."""
    with pytest.raises(PlanError, match="the reference server does not speak"):
        check(Plan.model_validate({"target": {"api": api}}))
    check(Plan.model_validate({"target": {"api": api, "url": "grpc://h"}}))


def test_what_it_can_hold_is_taken() -> None:
    """Sampling parameters by the names that vLLM gives them."""
    check(
        Plan.model_validate(
            {"target": {"api": "vllm-grpc", "extra_body": {"top_k": -1, "stop": ["x"], "seed": None}}}
        )
    )


@pytest.mark.parametrize(
    "name",
    [
        "grpc-timeout",
        "gRPC-Encoding",
        "grpc-accept-encoding",
        "TE",
        "Keep-Alive",
        "Proxy-Connection",
        "Upgrade",
    ],
)
def test_what_frames_a_request_is_not_a_plans_to_set(name: str) -> None:
    """Law: the deadline of a call is the plan's timeout, nothing asks for compression, and no line makes a request of HTTP/2
    malformed."""
    with pytest.raises(ValidationError, match="set by inferometer itself"):
        Target.model_validate({"api": "vllm-grpc", "url": "http://h", "headers": {name: "x"}})
