"""What a part of a plan implies about itself, however it was made."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from wording import OWN_FORM

from inferometer.engines.interface import INTERFACES
from inferometer.errors import PlanError
from inferometer.plan.rules import check, faults
from inferometer.plan.schema import Load, Plan, Tokenizer
from inferometer.plan.standard import STANDARD, WITHOUT_DATASET
from inferometer.plan.target import Target
from inferometer.plan.transports import Transport
from inferometer.plan.workload import workload_of


@pytest.mark.parametrize("name", [name for name in STANDARD if name not in WITHOUT_DATASET])
def test_a_standard_workload_brings_its_lengths(name: str) -> None:
    """The name alone decides both lengths, and there is nothing to declare."""
    workload = workload_of({"name": name})
    assert (workload.input_tokens, workload.output_tokens) == STANDARD[name]
    assert (workload.name, workload.based_on, workload.deviations) == (name, None, ())


def test_the_standard_lengths_are_those_of_the_draft() -> None:
    """Draft A.1 and A.2, with A.2's floors."""
    assert tuple(map(str, STANDARD["synthetic-uniform"])) == ("uniform(128,512)", "uniform(64,256)")
    skewed = ("lognormal(5.5,1.0,min=32,max=4096)", "lognormal(4.5,1.2,min=16,max=2048)")
    assert tuple(map(str, STANDARD["synthetic-skewed"])) == skewed


def test_other_lengths_under_a_standard_name_make_it_custom_and_are_declared() -> None:
    """No standard's name stands over lengths that are not its own; the deviation says both."""
    workload = workload_of({"name": "synthetic-skewed", "output_tokens": 256})
    assert (workload.name, workload.based_on) == ("custom", "synthetic-skewed")
    assert str(workload.input_tokens) == "lognormal(5.5,1.0,min=32,max=4096)"
    assert workload.deviations == (
        "output_tokens is 256; synthetic-skewed has lognormal(4.5,1.2,min=16,max=2048)",
    )


def test_a_standards_own_lengths_spelled_out_leave_its_name() -> None:
    """Writing what the name means anyway is no deviation, and takes one back."""
    assert workload_of({"input_tokens": "uniform( 128, 512 )"}).name == "synthetic-uniform"
    back = {"name": "custom", "based_on": "normal", "input_tokens": "normal(550,150)", "output_tokens": 150}
    assert workload_of(back) == workload_of({"name": "normal"})


def test_a_rate_means_open_loop_and_nothing_means_eight_in_flight() -> None:
    """The load model follows from what is given; a default concurrency never exceeds the requests."""
    assert Load(rate=5).model == "open"
    assert (Load().model, Load().concurrency, Load().requests) == ("closed", 16, 1000)
    assert Load(requests=3).concurrency == 3
    assert Load(duration_s=60).requests is None
    assert Load(rate=5, burstiness=0.5).arrival == "gamma"


def test_another_tokenizer_is_taken_for_the_models_own_unless_said_otherwise() -> None:
    """Draft 4.4: reference or native is declared; the default depends on the tokenizer."""
    assert (Tokenizer().name, Tokenizer().method, Tokenizer().own) == ("auto", "native", True)
    assert Tokenizer(method="reference").name == "cl100k_base"
    assert Tokenizer(name="/t").method == "native"
    assert Tokenizer(name="/t", method="reference").method == "reference"
    assert Tokenizer(name="o200k_base").method == "reference"
    assert Tokenizer(name="org/name@v1").method == "native"
    assert (Tokenizer(name="server").method, Tokenizer(name="server").own) == ("native", True)


def test_without_a_tokenizer_the_server_counts_and_nothing_here_is_the_models_own() -> None:
    """Draft 4.4.2's option A without a second opinion."""
    assert (Tokenizer(name="none").method, Tokenizer(name="none").own) == ("native", False)


@pytest.mark.parametrize(
    ("tokenizer", "api", "counted"),
    [
        ({}, "chat", False),
        ({"name": "cl100k_base"}, "chat", False),
        ({"name": "cl100k_base", "method": "native"}, "chat", True),
        ({"name": "cl100k_base", "method": "native"}, "completions", False),
        ({"name": "/t"}, "chat", True),
        ({"name": "/t", "method": "reference"}, "chat", False),
        ({"name": "server"}, "chat", True),
        ({"name": "none"}, "chat", False),
    ],
)
def test_lengths_include_the_chat_template_where_it_can_be_known(
    tokenizer: dict[str, str], api: str, counted: bool
) -> None:
    """With the model's own tokenizer, over chat; a plan always says which, and keeps what it was told."""
    plan = Plan.model_validate({"tokenizer": tokenizer, "target": {"api": api}})
    assert plan.workload.count_template is counted
    told = Plan.model_validate({"tokenizer": tokenizer, "workload": {"count_template": False}})
    assert told.workload.count_template is False


def test_lengths_by_default_include_the_template_of_a_server_that_is_named() -> None:
    """Of the embedded server and a simulation, which count as ever, they do not."""
    named = Plan.model_validate({"target": {"url": "http://127.0.0.1:1"}})
    assert (named.workload.count_template, Plan().workload.count_template) == (True, False)


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"tokenizer": {"name": "none", "method": "reference"}}, "tokenizer.method"),
        ({"tokenizer": {"name": "server", "method": "reference"}}, "tokenizer.method"),
        (
            {
                "tokenizer": {"name": "server"},
                "target": {"api": "completions"},
                "workload": {"prompt_format": "ids"},
            },
            "workload.prompt_format",
        ),
        (
            {"tokenizer": {"name": "cl100k_base"}, "workload": {"count_template": True}},
            "workload.count_template",
        ),
        ({"tokenizer": {"name": "none"}, "workload": {"count_template": True}}, "workload.count_template"),
    ],
)
def test_what_a_tokenizer_cannot_do_is_told(given: dict[str, object], key: str) -> None:
    """One fault, at the key that is wrong."""
    assert [fault.keys[0] for fault in faults(Plan.model_validate(given))] == [key]


def test_a_plan_cannot_be_changed() -> None:
    """Frozen: what was hashed is what runs."""
    with pytest.raises(ValidationError, match="frozen"):
        Plan().load.requests = 5


def test_a_plan_made_in_code_is_checked_by_the_same_rules() -> None:
    """check() gives a sound plan back and refuses the others with every broken rule, in the plan's own words."""
    assert check(Plan()) == Plan()
    plan = Plan(load=Load(rate=5, concurrency=8), target=Target(api_key_env="A", api_key_file="b"))
    with pytest.raises(PlanError) as caught:
        check(plan)
    assert [problem.where for problem in caught.value.problems] == ["load.rate", "target.api_key_file"]
    assert "{" not in str(caught.value)


@pytest.mark.parametrize("api", OWN_FORM)
def test_a_plan_forces_the_length_of_answers_only_where_the_interface_can(api: str) -> None:
    """`ignore_eos` is on by default where a request can carry it, and off elsewhere; requesting it there is a fault that names
    the key and the interface."""
    can = INTERFACES[api].takes_ignore_eos
    target = {"api": api, "url": "http://h"}
    assert Plan.model_validate({"target": target}).workload.ignore_eos is can
    for key in ("ignore_eos", "min_tokens"):
        broken = faults(Plan.model_validate({"target": target, "workload": {key: True}}))
        assert [fault.keys for fault in broken] == ([] if can else [(f"workload.{key}", "target.api")])
        assert all(api in fault.message for fault in broken)


@pytest.mark.parametrize("api", OWN_FORM)
def test_conversations_and_token_ids_follow_from_the_interface(api: str) -> None:
    """Turns need messages, and ids an interface that takes them; the remedy names those that do."""
    for workload, takes, remedy in (
        ({"turns": "2"}, INTERFACES[api].takes_messages, "chat"),
        ({"prompt_format": "ids"}, INTERFACES[api].takes_ids, "completions"),
    ):
        target = {"api": api, "url": "http://h"}
        broken = faults(Plan.model_validate({"target": target, "workload": workload}))
        assert len(broken) == (0 if takes else 1)
        assert all(remedy in fault.message for fault in broken)


@pytest.mark.parametrize("api", OWN_FORM)
def test_a_base_url_ends_before_the_interfaces_path(api: str) -> None:
    """Whoever gives the whole address is shown what to leave out."""
    with pytest.raises(ValidationError, match=f"without {INTERFACES[api].path}"):
        Target(url=f"http://h{INTERFACES[api].path}")


@pytest.mark.parametrize(
    ("url", "http", "transport"),
    [
        (None, "1.1", "http/1.1"),
        (None, "2", "http/2"),
        ("http://a", "1.1", "http/1.1"),
        ("https://a", "1.1", "http/1.1+tls"),
        ("http://a", "2", "http/2"),
        ("HTTPS://a", "2", "http/2+tls"),
    ],
)
def test_a_target_names_its_transport(url: str | None, http: str, transport: Transport) -> None:
    """By the version of HTTP and by TLS; what certificates are looked up by."""
    assert Target.model_validate({"url": url, "http": http}).transport == transport


@pytest.mark.parametrize(
    ("api", "url", "transport"),
    [
        ("vllm-grpc", None, "grpc"),
        ("vllm-grpc", "grpc://a:1", "grpc"),
        ("vllm-grpc", "grpcs://a:1", "grpc+tls"),
        ("websocket", None, "websocket"),
        ("realtime", "wss://a", "websocket+tls"),
    ],
)
def test_grpc_and_websockets_are_transports_of_their_own(
    api: str, url: str | None, transport: Transport
) -> None:
    """They have messages of their own, which a certificate of HTTP does not show."""
    assert Target.model_validate({"url": url, "api": api}).transport == transport
