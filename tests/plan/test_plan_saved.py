"""Saved plans: canonical bytes, their hash, and reading them back."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inferometer.errors import PlanError, RecordError
from inferometer.plan import saved
from inferometer.plan.lengths import parse as parse_length
from inferometer.plan.parse import build
from inferometer.plan.request_class import RequestClass, SharedPrefix
from inferometer.plan.rules import check
from inferometer.plan.schema import Instrument, Load, Plan, Sut, Tokenizer
from inferometer.plan.slo import Slo
from inferometer.plan.standard import STANDARD
from inferometer.plan.target import Sampling, Target
from inferometer.plan.workload import LengthsWorkload, MixtureWorkload, PromptsWorkload, StandardWorkload
from inferometer.printable import printable

_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _text,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["top_p", "é", "x y"]), inner, max_size=3)
    ),
    max_leaves=5,
)
_lengths = st.sampled_from(
    ["320", "uniform(128,512)", "normal(550.5,1e-05)", "lognormal(5.5,1.0,min=32)", "histogram(1:0.1,7:3)"]
).map(parse_length)
_classes = st.builds(
    RequestClass,
    name=st.just("a"),
    weight=st.floats(0.001, 1e9),
    input_tokens=_lengths,
    output_tokens=_lengths,
    shared_prefix=st.none()
    | st.builds(
        SharedPrefix, tokens=st.integers(1, 9), groups=st.integers(2, 9), zipf=st.none() | st.floats(0.1, 20)
    ),
    sampling=st.builds(Sampling, top_k=st.none() | st.integers(-1, 9), stop=st.none() | st.just(("END",))),
    extra_body=st.dictionaries(st.just("tier"), _json, max_size=1),
    headers=st.just({"X-A": "1"}),
)
_loads = st.one_of(
    st.builds(Load, concurrency=st.integers(1, 100_000), requests=st.none() | st.integers(1, 10**7)),
    st.builds(
        Load,
        rate=st.floats(20, 1e6),
        burstiness=st.floats(0.001, 1000),
        requests=st.integers(1, 10**7),
        duration_s=st.none() | st.floats(1e-9, 604_800),
    ),
    st.builds(Load, rate=st.floats(1, 1e6), arrival=st.sampled_from(["poisson", "constant"])),
)
plans = st.builds(
    Plan,
    name=st.from_regex(r"[A-Za-z0-9._-]{1,64}", fullmatch=True),
    target=st.builds(
        Target,
        url=st.none() | st.just("https://h:1/p"),
        model=st.none() | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=9),
        extra_body=st.dictionaries(st.sampled_from(["top_p", "seed", "\x7f"]), _json, max_size=2),
    ),
    load=_loads,
    workload=st.one_of(
        st.builds(
            StandardWorkload,
            name=st.sampled_from([*STANDARD]),
            input_tokens=_lengths,
            seed=st.integers(0, 2**63 - 1),
        ),
        st.builds(LengthsWorkload, input_tokens=_lengths, output_tokens=_lengths),
        st.builds(StandardWorkload, name=st.sampled_from([*STANDARD])),
        st.builds(
            PromptsWorkload,
            prompts=st.just("own.csv"),
            order=st.sampled_from(["file", "sampled"]),
            language=st.just("é"),
        ),
        st.builds(PromptsWorkload, prompts=st.just("own.csv"), output_tokens=_lengths),
        st.builds(MixtureWorkload, classes=st.lists(_classes, min_size=1, max_size=1).map(tuple)),
    ),
    tokenizer=st.builds(Tokenizer, name=st.sampled_from(["cl100k_base", "/a b/é"])),
    sut=st.builds(Sut, notes=_text, accelerator=_text),
    slos=st.lists(
        st.sampled_from(["ttft_p99<1e-07s", "success_rate>=0.999", "e2e_mean<3s"]).map(Slo.parse)
    ).map(tuple),
)


@given(plans)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_saved_plan_reads_back_as_the_same_plan_with_the_same_hash(tmp_path: Path, plan: Plan) -> None:
    """Plan -> plan.json -> Plan is the identity, through `read` and as a plan file, and keeps the hash."""
    check(plan)
    path = tmp_path / "plan.json"
    path.write_bytes(saved.to_json(plan))
    for again in (saved.read(path), build(path)):
        assert again == plan
        assert saved.plan_hash(again) == saved.plan_hash(plan)


RECORDED = [
    json.loads(line)
    for line in (Path(__file__).parent.parent / "vectors" / "plans" / "saved-1.jsonl")
    .read_text()
    .splitlines()
]
"""Plans as version 1 saved them, recorded at commit d9fd377: one for each kind of workload, and more."""
SILENT: tuple[object, ...] = (None, [], False, "file", "server")
"""What version 1 wrote for keys that a kind of workload does not have."""
KINDS_READ = {
    "standard": "standard",
    "natural": "standard",
    "lengths": "standard",
    "turns": "standard",
    "mixture": "mixture",
    "trace": "trace",
    "file": "standard",
    "prompts": "prompts",
    "custom": "lengths",
}


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: str(case["case"]))
def test_a_plan_that_version_1_saved_is_read_with_every_value(tmp_path: Path, case: dict[str, str]) -> None:
    """Each recorded value is in the plan, or said nothing; and the plan is saved as one of this version."""
    assert "sha256:" + hashlib.sha256(case["plan"].encode()).hexdigest() == case["hash"]
    path = tmp_path / "plan.json"
    path.write_text(case["plan"], encoding="utf-8")
    plan = saved.read(path)
    assert plan.workload.kind == KINDS_READ[case["case"]]
    then, now = json.loads(case["plan"]), saved.resolved(plan)
    assert (then.pop("schema"), now.pop("schema")) == ("inferometer/plan/1", "inferometer/plan/2")
    workload, read = then.pop("workload"), now.pop("workload")
    for part, default in (("target", Target()), ("instrument", Instrument())):
        recorded, made = then.pop(part), now.pop(part)
        assert recorded == {name: value for name, value in made.items() if name in recorded}
        newer = made.keys() - recorded.keys()
        assert {name: made[name] for name in newer} == {name: getattr(default, name) for name in newer}
    assert then == now
    assert {name: value for name, value in workload.items() if name in read} == {
        name: value for name, value in read.items() if name in workload
    }
    assert all(value in SILENT for name, value in workload.items() if name not in read)
    path.write_bytes(saved.to_json(plan))
    assert saved.read(path) == plan


def test_every_kind_of_workload_was_recorded() -> None:
    """Those that can be saved before a file is read."""
    assert {case["case"] for case in RECORDED} == set(KINDS_READ)


@given(plans)
@settings(max_examples=30, deadline=None)
def test_a_saved_plan_holds_to_the_json_schema_and_is_complete(plan: Plan) -> None:
    """Every key of every part is written out, and the shipped schema accepts the file."""
    data = json.loads(saved.to_json(plan))
    jsonschema.Draft202012Validator(saved.json_schema()).validate(data)
    every = {field.alias or name for name, field in Plan.model_fields.items()}
    assert set(data) == every - {"host_telemetry"}, "which stands there where it is set"
    for part, kind in (("load", Load), ("target", Target), ("workload", type(plan.workload)), ("sut", Sut)):
        assert set(data[part]) == set(kind.model_fields)


def test_what_was_added_later_changes_no_hash_where_it_is_not_set() -> None:
    """Law: the plans of earlier runs keep theirs; a plan that sets it is another plan, and is read back as it was."""
    assert "subtract_rtt" not in json.loads(saved.to_json(Plan()))["instrument"]
    asking = Plan(instrument=Instrument(subtract_rtt=True))
    assert json.loads(saved.to_json(asking))["instrument"]["subtract_rtt"] is True
    assert saved.plan_hash(asking) != saved.plan_hash(Plan())
    assert saved.restored(saved.resolved(asking)) == asking


def test_the_json_schema_refuses_what_the_plan_refuses() -> None:
    """A schema that accepts anything would prove nothing."""
    validator = jsonschema.Draft202012Validator(saved.json_schema())
    assert not validator.is_valid({"colour": "red"})
    assert not validator.is_valid({"load": {"requests": 0}})
    assert not validator.is_valid({"slos": [5]})
    assert validator.is_valid({"load": {"rate": 5}, "workload": {"input_tokens": 320}})


def test_the_hash_is_that_of_the_file() -> None:
    """sha256 over exactly the bytes saved, so that a shell can check it; any change of the plan changes it."""
    plan = Plan()
    data = saved.to_json(plan)
    assert saved.plan_hash(plan) == "sha256:" + hashlib.sha256(data).hexdigest()
    assert data.endswith(b"}\n")
    assert json.loads(data) == saved.resolved(plan)
    assert saved.plan_hash(Plan(workload=StandardWorkload(seed=43))) != saved.plan_hash(plan)


def test_the_order_of_keys_and_the_spelling_of_values_do_not_change_the_hash(tmp_path: Path) -> None:
    """Two files that mean the same plan have one hash."""
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    first.write_text("load: {rate: 20, requests: 5}\nworkload: {input_tokens: 'uniform(128, 512)'}\n")
    second.write_text(
        "workload:\n  input_tokens: {kind: uniform, low: 128, high: 512}\nload: {requests: '5', rate: 2.0e+1}\n"
    )
    assert saved.plan_hash(build(first)) == saved.plan_hash(build(second))


def test_flags_still_override_a_saved_plan(tmp_path: Path) -> None:
    """A saved plan has every default written out; none of them stands in a flag's way."""
    path = tmp_path / "plan.json"
    path.write_bytes(saved.to_json(build(None, {"--workload": "synthetic-skewed"})))
    assert build(path, {"--rate": "5"}).load.model == "open"
    assert build(path, {"--tokenizer": "/t"}).tokenizer.method == "native"
    other = build(path, {"--workload": "normal"}).workload
    assert (other.name, str(other.output_tokens)) == ("normal", "150")
    path.write_bytes(saved.to_json(build(None, {"--rate": "5", "--burstiness": "0.5"})))
    assert build(path, {"--concurrency": "4"}).load == Load(concurrency=4)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "not json", '{"schema": "inferometer/plan/3"}', "{" * 100_000, '{"schema": 1}']
)
def test_a_file_of_another_kind_or_version_is_refused(tmp_path: Path, text: str) -> None:
    """A reader refuses what it does not know, naming the file."""
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(RecordError, match=r"plan\.json"):
        saved.read(path)


def test_a_missing_or_damaged_saved_plan_is_refused(tmp_path: Path) -> None:
    """Missing is the record's fault; a wrong value is the plan's."""
    with pytest.raises(RecordError, match="no such file"):
        saved.read(tmp_path / "plan.json")
    (tmp_path / "plan.json").write_text('{"schema": "inferometer/plan/1", "load": {"requests": 0}}')
    with pytest.raises(PlanError, match=r"load\.requests"):
        saved.read(tmp_path / "plan.json")


def test_a_saved_plan_steers_no_terminal() -> None:
    """Law: whatever a model is called, and a server may have named it, the file shows a terminal nothing unprintable, and is
    read back the same."""
    name = (
        "".join(map(chr, [*range(1, 32), *range(127, 160), 0x200B, 0x202E, 0x2028, 0x2066, 0xFEFF, 0xE0041]))
        + "m\u00e9\u6a21"
    )
    plan = build(
        None, {"--url": "http://127.0.0.1:1", "--model": name, "--concurrency": "1", "--requests": "1"}
    )
    text = saved.to_json(plan).decode()
    assert all(one == "\n" or printable(one) == one for one in text)
    assert "m\u00e9\u6a21" in text
    assert json.loads(text)["target"]["model"] == name
