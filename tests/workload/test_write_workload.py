"""Workloads as files: the requests of a run, to the byte, found again by every run of them, and any change of them found."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferometer.documents.part import from_data, to_data
from inferometer.documents.workload import DrawnRequests
from inferometer.documents.workload_listing import WorkloadListing
from inferometer.errors import PlanError, RecordError
from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import Schedule
from inferometer.journal.schema import Phase
from inferometer.plan.lead_in import LEAD_PER_SLOT
from inferometer.plan.parse import build
from inferometer.plan.schema import Plan
from inferometer.plan.workload import StandardWorkload
from inferometer.report.workload import page
from inferometer.report.workload_listing import lines
from inferometer.run.simulate import simulate
from inferometer.run.write_workload import make, pictured, show, verify
from inferometer.simulation.engine import choose
from inferometer.workload import tokenizers, workload_file
from inferometer.workload.agent_sessions.source import SessionRows
from inferometer.workload.nonces import NONCES
from inferometer.workload.parallel import DEFAULT, Processes
from inferometer.workload.prompts import Fingerprint
from inferometer.workload.sources import Batch, Rendering, TraceRows, sourced
from inferometer.workload.workload_file_source import Renewed, generate

MIXTURE = """
load: {requests: 40, warmup: 8}
workload:
  classes:
    - name: chat
      weight: 3
      input_tokens: uniform(20,40)
      output_tokens: uniform(2,5)
      content: english
      shared_prefix: {tokens: 40, share: 0.5, groups: 3, zipf: 1.2}
      priority: 1
      sampling: {temperature: 0.5, top_p: 0.9}
    - name: batch
      input_tokens: 30
      output_tokens: 3
      shared_prefix: {tokens: 20}
      extra_body: {tier: low}
"""
OWN = [
    {"prompt": "Name three rivers.", "output_tokens": 4, "class": "short"},
    {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why? 123456789"}]},
    {"prompt": "Wie heißt \u6cb3?", "system": "Be kind.", "sampling": {"top_p": 0.5}, "priority": 3},
]
TALKS = [
    {"messages": [
        {"role": "system", "content": "Be brief."}, {"role": "user", "content": "A river?"},
        {"role": "assistant", "content": "The Rhine."}, {"role": "user", "content": "Another?"},
        {"role": "assistant", "content": "The Po."}, {"role": "user", "content": "A third?"},
    ]},
    *OWN,
]  # fmt: skip
SMALL: dict[str, object] = {"--requests": "30", "--warmup": "5", "--output-tokens": "4"}
KINDS: dict[str, dict[str, Any]] = {
    "random": SMALL | {"--input-tokens": "uniform(2,40)"},
    "random ids": SMALL | {"--input-tokens": "uniform(1,40)", "--api": "completions"},
    "conversation": SMALL | {"--workload": "conversation"},
    "conversation on completions": SMALL
    | {"--workload": "conversation", "--api": "completions", "--prompt-format": "text"},
    "code": SMALL | {"--workload": "code-completion"},
    "code ids": SMALL | {"--workload": "code-completion", "--api": "completions"},
    "repeatable": SMALL | {"--workload": "code-completion", "--repeatable-prompts": True},
    "mixture": {"plan": MIXTURE},
    "mixture ids": {"plan": MIXTURE, "--api": "completions"},
    "own": {"--prompts": OWN, "--output-tokens": "uniform(2,9)", "--requests": "20", "--warmup": "4"},
    "own, repeatable": {
        "--prompts": OWN,
        "--output-tokens": "3",
        "--requests": "7",
        "--repeatable-prompts": True,
    },
    "turns": SMALL | {"--turns": "uniform(1,4)", "--think-ms": "uniform(1,9)", "--input-tokens": "20"},
    "turns, recorded": SMALL
    | {
        "--turns": "3",
        "--replies": "recorded",
        "--workload": "conversation",
        "--rate": "50",
        "--think-ms": "3",
    },
    "turns of own": {"--prompts": TALKS, "--turns": "2", "--replies": "recorded", "--output-tokens": "3"}
    | {"--requests": "11", "--warmup": "4"},
    "users": SMALL | {"--users": "3", "--user-rate": "9", "--input-tokens": "20"},
    "users' turns": SMALL
    | {"--users": "3", "--user-rate": "9", "--input-tokens": "20", "--turns": "uniform(1,4)"},
    "open loop": SMALL | {"--input-tokens": "20", "--rate": "50"},
}


class Nobody:
    """A Ui that tells nobody."""

    def note(self, text: str) -> None:
        """See Ui."""

    def watch(self, phase: Phase, progress: object, total: int | None) -> None:
        """See Ui."""


def planned(place: Path, kind: dict[str, object]) -> Plan:
    """A plan of KINDS; its files are written to `place`."""
    flags, file = dict(kind), None
    if "plan" in flags:
        file = place / "plan.yaml"
        file.write_text(str(flags.pop("plan")))
    if "--prompts" in flags:
        rows: Any = flags["--prompts"]
        (place / "own.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
        flags["--prompts"] = str(place / "own.jsonl")
    return build(file, flags)


def made_in(place: Path, kind: dict[str, object], processes: Processes = DEFAULT) -> Path:
    """The folder of a workload."""
    make(planned(place, kind), place / "made", lambda _: None, processes)
    return place / "made"


def of(folder: Path, *phases: Phase) -> pa.Table:
    """What a run was to send in these phases. A row's number is its place among them all, which differs with the lead-in."""
    table = Schedule(RunFolder.open(folder).schedule).table
    return table.filter(pc.field("phase").isin([int(one) for one in phases])).drop_columns("index")


def shapes(table: pa.Table) -> list[tuple[object, ...]]:
    """The lengths and classes of prompts."""
    columns = ("input_tokens_asked", "request_class")
    return list(zip(*(table.column(name).to_pylist() for name in columns), strict=True))


@pytest.fixture(scope="module")
def mixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workload of everything that a row can hold but ids."""
    return made_in(tmp_path_factory.mktemp("mixture"), KINDS["mixture"])


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_of_the_plan_and_runs_of_its_file_send_the_same(tmp_path: Path, kind: str) -> None:
    """Bodies, instants, lengths and classes of every request, warm-up too; and one fingerprint and account in four places.

    A file holds no lead-in: its runs are led in by rows of its warm-up, alike from both forms of it.
    """
    plan = planned(tmp_path, KINDS[kind])
    header = make(plan, tmp_path / "made", lambda _: None)
    tables, leads, facts = [], [], []
    loads = [plan]
    for form in workload_file.FORMATS:
        flags: dict[str, object] = {"--workload-file": str(tmp_path / "made" / f"workload.{form}")}
        flags |= {
            name: value for name, value in KINDS[kind].items() if name in ("--rate", "--users", "--user-rate")
        }
        loads.append(build(None, flags))
    for number, load in enumerate(loads):
        finding = simulate(load, choose(None, ()), tmp_path / f"runs{number}", Nobody())
        folder = RunFolder.open(finding.folder)
        tables.append(of(finding.folder, Phase.WARMUP, Phase.MEASURE))
        leads.append(of(finding.folder, Phase.LEAD))
        assert len(tables[-1]) + len(leads[-1]) == len(Schedule(folder.schedule))
        facts.append(json.loads(folder.facts.read_bytes()))
        assert all(check.same for check in verify(tmp_path / "made", finding.folder))
        assert finding.summary.workload.fingerprint == header.fingerprint
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])
    assert leads[1].equals(leads[2])
    assert bool(len(leads[1])) == bool(len(leads[0])) == bool(plan.load.lead_in)
    if plan.workload.turns is None:
        assert len(leads[1]) == len(leads[0]) == plan.load.lead_in
    assert set(shapes(leads[1])) <= set(shapes(of(finding.folder, Phase.WARMUP)))
    for about in facts:
        assert about["fingerprint"] == header.fingerprint
        assert about["requests"]["prefix_hits"] == to_data(header.prefix_hits)
        assert {**about["requests"], "published": []} == {
            **show(tmp_path / "made")["account"],
            "published": [],
        }
    assert [about["made"] and about["made"]["file"] for about in facts] == [
        None,
        "workload.arrow",
        "workload.jsonl",
    ]


@pytest.mark.parametrize("kind", ["random", "code ids", "mixture", "own"])
def test_the_same_plan_gives_the_same_bytes_wherever_and_however_it_is_made(
    tmp_path: Path, kind: str
) -> None:
    """In another folder, on one core or in processes: both files are the same; with another seed both are others."""
    contents = []
    for number, processes in enumerate((Processes(above=1e12), Processes(above=0, count=2))):
        (tmp_path / str(number)).mkdir()
        folder = made_in(tmp_path / str(number), KINDS[kind], processes)
        contents.append([(folder / f"workload.{form}").read_bytes() for form in workload_file.FORMATS])
        assert str(tmp_path).encode() not in b"".join(contents[-1])
        assert sorted(path.name for path in folder.iterdir()) == ["workload.arrow", "workload.jsonl"]
    assert contents[0] == contents[1]
    (tmp_path / "other").mkdir()
    other = made_in(tmp_path / "other", KINDS[kind] | {"--seed": "43"})
    for form, before in zip(workload_file.FORMATS, contents[0], strict=True):
        assert (other / f"workload.{form}").read_bytes() != before


@pytest.mark.parametrize("kind", ["random", "random ids", "conversation", "mixture", "mixture ids", "own"])
@settings(max_examples=10, deadline=None)
@given(salt=st.integers(0, NONCES - 1))
def test_a_run_has_nonces_of_its_own_and_the_same_fingerprint(
    tmp_path_factory: pytest.TempPathFactory, kind: str, salt: int
) -> None:
    """With any salt: what a run of the plan would send with that salt, prompt by prompt."""
    place = tmp_path_factory.mktemp("salted")
    plan, source = sourced(planned(place, KINDS[kind]))
    header = make(plan, place / "made", lambda _: None)
    tokenizer = tokenizers.load(plan.tokenizer)
    found = workload_file.opened(place / "made" / "workload.arrow")
    of_file = list(generate(found, tokenizer, header.requests, salt, warm=False))
    assert not isinstance(source, TraceRows | SessionRows)
    rendering = Rendering(tokenizer, header.prompt_format)
    drawn = source.prompts(rendering, Batch(header.requests, salt, plan.workload.seed))
    for ours, theirs in zip(of_file, drawn, strict=True):
        assert (ours.content, ours.messages, ours.nonce) == (theirs.content, theirs.messages, theirs.nonce)
        assert (ours.requested, ours.sent, ours.output, ours.shared) == (
            theirs.requested,
            theirs.sent,
            theirs.output,
            theirs.shared,
        )
        assert (ours.request_class, ours.fields, ours.group) == (
            theirs.request_class,
            theirs.fields,
            theirs.group,
        )
        assert ours.key.tolist() == theirs.key.tolist()
    fingerprint = Fingerprint()
    assert len(list(fingerprint.of(of_file))) == header.requests
    assert str(fingerprint) == header.fingerprint


def test_a_length_is_counted_again_where_a_nonce_is_of_other_tokens(tmp_path: Path) -> None:
    """As by a tokenizer that reads every digit but 0 as one token, and a row of 0 as one: nonces are letters, and longer."""

    class Digits:
        """Counts characters, and a row of 0 as one."""

        kind, name, vocab_size, reserved, lanes = "file", "digits", 200, frozenset[int](), 1

        def encode(self, text: str) -> list[int]:
            """See Tokenizer."""
            return [ord(one) for at, one in enumerate(text) if one != "0" or text[at - 1 : at] != "0"]

        def decode(self, ids: list[int]) -> str:
            """See Tokenizer."""
            return "".join(map(chr, ids))

        @property
        def ink(self) -> Any:
            """See Tokenizer."""
            return self

    folder = made_in(tmp_path, KINDS["random"])
    found = workload_file.opened(folder / "workload.jsonl")
    row = next(found.rows("measure"))
    tokenizer: Any = Digits()
    prompt = Renewed(found, tokenizer, 0).prompt(row)
    assert len(prompt.nonce) > len("123456789")
    assert prompt.content == f"{prompt.nonce}{row.bare()}"
    assert prompt.sent == len(tokenizer.encode(prompt.content))
    assert prompt.requested == row.input_tokens


def changed(value: Any, rng: random.Random) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int):
        return value + rng.choice([1, 2, 7])
    if isinstance(value, float):
        return value + 0.25
    if isinstance(value, str):
        at = rng.randrange(len(value) + 1)
        return value[:at] + rng.choice("xyz") + value[at:]
    if isinstance(value, list):
        at = rng.randrange(len(value))
        return [*value[:at], changed(value[at], rng), *value[at + 1 :]]
    name = rng.choice(sorted(value))
    return {**value, name: changed(value[name], rng)}


def rows_of(folder: Path) -> tuple[bytes, list[bytes]]:
    """The first line and the others."""
    header, *rows = (folder / "workload.jsonl").read_bytes().splitlines(keepends=True)
    return header, rows


def rejected(path: Path) -> bool:
    """Whether a file is found to be another, by verifying it and before a run."""
    with pytest.raises(PlanError):
        sourced(build(None, {"--workload-file": str(path)}))
    try:
        return not all(check.same for check in verify(path))
    except RecordError:
        return True


@settings(max_examples=80, deadline=None)
@given(number=st.integers(0, 47), seed=st.integers(0, 2**32))
def test_any_change_of_any_field_of_any_row_is_found(
    mixture: Path, tmp_path_factory: pytest.TempPathFactory, number: int, seed: int
) -> None:
    """Of a row that still reads well, or that does not, in both formats."""
    header, rows = rows_of(mixture)
    rng = random.Random(seed)
    values = json.loads(rows[number])
    name = rng.choice(sorted(values))
    values[name] = changed(values[name], rng)
    place = tmp_path_factory.mktemp("changed")
    rows[number] = json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    (place / "w.jsonl").write_bytes(header + b"".join(rows))
    assert rejected(place / "w.jsonl")
    plain = [json.loads(row) for row in rows]
    for row in plain:
        if "extra_body" in row:
            row["extra_body"] = json.dumps(row["extra_body"])
    schema = workload_file.arrow_schema(workload_file.opened(mixture / "workload.arrow").header)
    try:
        table = pa.Table.from_pylist(plain, schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return
    with pa.ipc.new_file(str(place / "w.arrow"), schema) as sink:
        sink.write_table(table)
    assert rejected(place / "w.arrow")


@settings(max_examples=30, deadline=None)
@given(a=st.integers(0, 47), b=st.integers(0, 47), at=st.integers(0, 10**6), bit=st.integers(0, 7))
def test_another_order_a_missing_row_and_a_flipped_bit_are_found(
    mixture: Path, tmp_path_factory: pytest.TempPathFactory, a: int, b: int, at: int, bit: int
) -> None:
    """Wherever: rows are lines, and no byte of them is without meaning."""
    header, rows = rows_of(mixture)
    path = tmp_path_factory.mktemp("order") / "w.jsonl"
    if a != b:
        swapped = list(rows)
        swapped[a], swapped[b] = rows[b], rows[a]
        path.write_bytes(header + b"".join(swapped))
        assert rejected(path)
    path.write_bytes(header + b"".join(rows[:a] + rows[a + 1 :]))
    assert rejected(path)
    body = bytearray(b"".join(rows))
    body[at % len(body)] ^= 1 << bit
    path.write_bytes(header + bytes(body))
    assert rejected(path)


def test_a_changed_header_is_found(mixture: Path, tmp_path: Path) -> None:
    """Every member of it."""
    header, rows = rows_of(mixture)
    values = json.loads(header)
    for name in values:
        other = values | {name: changed(values[name], random.Random(1))}
        (tmp_path / "w.jsonl").write_bytes(json.dumps(other).encode() + b"\n" + b"".join(rows))
        assert rejected(tmp_path / "w.jsonl"), name


WRONG: dict[str, tuple[Callable[[dict[str, Any]], dict[str, Any]], str]] = {
    "vocabulary": (lambda row: row | {"ids": [*row["ids"][:-1], 100_256]}, r"ids: 100256 is above the vocabulary"),
    "no id": (lambda row: row | {"ids": ["x"]}, r"ids\.0: must be a whole number"),
    "two texts": (lambda row: row | {"prompt": "x"}, "one of prompt, ids and messages"),
    "field": (lambda row: row | {"prompts": 1}, "prompts: no such field"),
    "order": (lambda row: row | {"index": 3}, "index: is measure 3, where measure 2 should be"),
    "class": (lambda row: row | {"class": "nobody"}, "class: nobody is none of the header's"),
    "nonce": (lambda row: row | {"nonces": [row["nonces"][0] | {"at": 10_000}]}, "lies outside the text"),
    "turns": (lambda row: row | {"turns": 10**12}, "turns: must be below 32,768"),
    "count": (lambda row: row | {"output_tokens": 1 << 40}, "output_tokens: must be below 2,147,483,648"),
    "many": (lambda row: row | {f"x{n}": 1 for n in range(2_000)}, r"an object in it has 2,0\d\d members"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_a_row_that_cannot_be_sent_is_told_with_file_line_and_field(tmp_path: Path, wrong: str) -> None:
    """Before anything is sent, in words."""
    folder = made_in(tmp_path, KINDS["random ids"])
    header, rows = rows_of(folder)
    spoil, message = WRONG[wrong]
    rows[7] = json.dumps(spoil(json.loads(rows[7]))).encode() + b"\n"
    (folder / "workload.jsonl").write_bytes(header + b"".join(rows))
    with pytest.raises(PlanError, match=rf"workload\.jsonl:9.*{message}"):
        sourced(build(None, {"--workload-file": str(folder / "workload.jsonl")}))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"--requests": "31"}, "holds 30 requests, and the load wants 31"),
        ({"--warmup": "6"}, "holds 5 requests of warm-up, and the load wants 6"),
        ({"--rate": "100", "--duration": "60s"}, "holds 30 requests, and the load wants 5,9"),
        ({"--seed": "7"}, r"workload.seed\): the file was made with 42, and the plan says 7"),
        ({"--workload": "conversation"}, r"workload.name\): the file was made with custom"),
        ({"--input-tokens": "9"}, r"workload.input_tokens\): the file was made with uniform\(2,40\)"),
        ({"--repeatable-prompts": True}, "made with false, and the plan says true"),
        ({"--api": "completions"}, r"target.api\): the file was made with chat"),
        ({"--tokenizer": "server"}, "the server's own is not known to be that one"),
    ],
)
def test_what_the_file_decides_cannot_be_said_otherwise(
    tmp_path: Path, flags: dict[str, object], message: str
) -> None:
    """Both numbers, or both values, are told."""
    file = made_in(tmp_path, KINDS["random"]) / "workload.arrow"
    with pytest.raises(PlanError, match=message):
        sourced(build(None, flags | {"--workload-file": str(file)}))


def test_what_the_file_does_not_decide_is_the_plans(tmp_path: Path) -> None:
    """How many of its requests, at which rate, and how answers are sampled; the rest is taken over."""
    file = made_in(tmp_path, KINDS["random"]) / "workload.jsonl"
    plan, source = sourced(build(None, {"--workload-file": str(file)}))
    assert (plan.load.requests, plan.load.warmup, plan.load.concurrency) == (30, 5, 16)
    assert plan.workload.input_tokens == planned(tmp_path, KINDS["random"]).workload.input_tokens
    assert isinstance(plan.workload, StandardWorkload)
    made = source.facts().made
    assert made is not None
    assert plan.workload.file_sha256 == made.digest.removeprefix("sha256:")
    fewer = {"--requests": "3", "--warmup": "0", "--no-ignore-eos": True, "--seed": "42"}
    plan, _ = sourced(build(None, fewer | {"--workload-file": str(file)}))
    assert (plan.load.requests, plan.load.warmup, plan.load.concurrency) == (3, 0, 3)
    assert not plan.workload.ignore_eos


def test_a_closed_loop_that_ends_by_time_goes_through_the_whole_file(tmp_path: Path) -> None:
    """However many rows that is: its requests are all of them, again and again, with two of a lead-in for each slot."""
    file = made_in(tmp_path, KINDS["random"]) / "workload.jsonl"
    flags: dict[str, object] = {"--duration": "30s", "--concurrency": "2", "--workload-file": str(file)}
    folder = simulate(build(None, flags), choose(None, ()), tmp_path / "runs", Nobody()).folder
    counts = [len(of(folder, phase)) for phase in (Phase.WARMUP, Phase.LEAD, Phase.MEASURE)]
    assert counts == [5, 2 * LEAD_PER_SLOT, 30]
    assert verify(file, folder)[-1].same


def test_a_tokenizer_from_a_path_leaves_its_hash_and_is_to_be_named_again(
    tmp_path: Path, tiny_file: Path
) -> None:
    """The file says which it was, without the path; a run that does not name it is told so, one that does sends the same."""
    flags = SMALL | {"--tokenizer": str(tiny_file), "--count-template": "no", "--input-tokens": "30"}
    plan = planned(tmp_path, flags)
    file = made_in(tmp_path, flags) / "workload.jsonl"
    assert str(tiny_file.parent).encode() not in file.read_bytes()
    ours: dict[str, object] = {"--workload-file": str(file)}
    with pytest.raises(PlanError, match=r"was made with tokenizer\.json \(sha256:.*\): say where that is"):
        sourced(build(None, ours))
    runs = [simulate(one, choose(None, ()), tmp_path / "runs", Nobody()).folder for one in (
        plan, build(None, ours | {"--tokenizer": str(tiny_file)})
    )]  # fmt: skip
    tables = [of(run, Phase.WARMUP, Phase.MEASURE) for run in runs]
    assert tables[0].equals(tables[1])


def test_a_file_and_a_trace_exclude_each_other_and_a_digest_needs_its_file(tmp_path: Path) -> None:
    """Told before either is read."""
    for name in ("w", "t"):
        (tmp_path / name).write_text("")
    with pytest.raises(PlanError, match=r"determines content.*\(--trace\): leave --workload-file out"):
        build(None, {"--workload-file": str(tmp_path / "w"), "--trace": str(tmp_path / "t")})
    (tmp_path / "plan.yaml").write_text(f"workload: {{file_sha256: {'a' * 64}}}")
    with pytest.raises(PlanError, match=r"is about a workload file: set workload\.file"):
        build(tmp_path / "plan.yaml")


def test_another_tokenizer_is_refused(tmp_path: Path) -> None:
    """Names of both are told."""
    file = made_in(tmp_path, KINDS["random"]) / "workload.jsonl"
    plan, source = sourced(build(None, {"--workload-file": str(file), "--tokenizer": "o200k_base"}))
    with pytest.raises(PlanError, match=r"o200k_base.* is not the one .* which is cl100k_base"):
        source.check_tokenizer(tokenizers.load(plan.tokenizer))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"--trace": "t.jsonl"}, "a trace is already a sequence of requests"),
        ({"--tokenizer": "o200k_base", "--token-count": "native"}, "give --count-template no"),
        ({"--tokenizer": "server", "--count-template": "no"}, "there is no server to ask here"),
    ],
)
def test_what_needs_a_server_or_is_made_already_is_refused(
    tmp_path: Path, flags: dict[str, object], message: str
) -> None:
    """And nothing is written."""
    with pytest.raises(PlanError, match=message):
        make(build(None, flags), tmp_path / "made", lambda _: None)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no JSON\n",
        b"[]\n",
        b'{"inferometer": "workload/9"}\n',
        b'{"inferometer": "workload/1"}\n',
        b"ARROW1",
    ],
)
def test_a_file_of_another_kind_is_refused_in_words(tmp_path: Path, content: bytes) -> None:
    """By its name."""
    (tmp_path / "w").write_bytes(content)
    for look in (show, verify):
        with pytest.raises(RecordError, match=r"^w( \(header\))?: (is|cannot|workload)"):
            look(tmp_path / "w")
    with pytest.raises(RecordError, match="cannot be read: no such file"):
        show(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("value", "why"), [("9" * 5_000, "4,300 digits"), ("[" * 200 + "]" * 200, "100 levels")]
)
def test_a_row_without_bounds_is_named_by_its_line(
    mixture: Path, tmp_path: Path, value: str, why: str
) -> None:
    """Digits and depth that the interpreter would not take."""
    head, first, *others = (mixture / "workload.jsonl").read_text().splitlines(keepends=True)
    damaged = first.rstrip("}\n") + f', "x": {value}}}\n'
    (tmp_path / "w.jsonl").write_text("".join([head, damaged, *others]))
    with pytest.raises(RecordError, match=f"^w.jsonl:2: .*{why}"):
        verify(tmp_path / "w.jsonl")


def test_a_report_of_other_requests_is_told_from_one_of_these(mixture: Path, tmp_path: Path) -> None:
    """By folder, run.json and summary.json; what names no fingerprint is refused."""
    plan = planned(tmp_path, KINDS["mixture"] | {"--seed": "43"})
    other = simulate(plan, choose(None, ()), tmp_path / "runs", Nobody()).folder
    for report in (other, other / "run.json", other / "summary.json"):
        checks = {check.what: check.same for check in verify(mixture, report)}
        assert checks == {"rows": True, "digest": True, "fingerprint": True, "report": False}
    facts = json.loads((other / "run.json").read_text())
    for document, why in (
        ({}, "its format is 'None'"),
        ({"schema": ["inferometer/run/2"]}, "its format is"),
        ({"schema": facts["schema"], "fingerprint": "x"}, "missing required field"),
        (facts | {"fingerprint": None}, "names no fingerprint"),
        (facts | {"fingerprint": 7}, "fingerprint"),
    ):
        (tmp_path / "no.json").write_text(json.dumps(document))
        with pytest.raises(RecordError, match=why):
            verify(mixture, tmp_path / "no.json")


def test_what_is_shown_of_a_file_and_of_its_run_is_the_same(mixture: Path, tmp_path: Path) -> None:
    """All but the file's name, and the digest where the run was not of the file; a run's lead-in is no warm-up."""
    flags: dict[str, object] = {"--workload-file": str(mixture / "workload.arrow")}
    folder = simulate(build(None, flags), choose(None, ()), tmp_path / "runs", Nobody()).folder
    of_file, of_run = show(mixture), show(folder)
    assert of_file | {"name": of_run["name"]} == of_run
    assert len(of(folder, Phase.LEAD)) > 0
    table = of(folder, Phase.MEASURE)
    for name, column in (("input_tokens", "asked"), ("shared_input_tokens", "shared")):
        assert of_file["tokens"][name] == sum(table.column(f"input_tokens_{column}").to_pylist())


def test_what_is_shown_of_a_replayed_trace_is_its_lengths(tmp_path: Path) -> None:
    """They are taken from what was to be sent; what is shared nobody worked out."""
    trace = [{"timestamp": at / 10, "input_tokens": 20 + at, "output_tokens": 3} for at in range(30)]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, trace)))
    flags: dict[str, object] = {"--trace": str(tmp_path / "t.jsonl"), "--warmup": "2"}
    facts = show(simulate(build(None, flags), choose(None, ()), tmp_path / "runs", Nobody()).folder)
    assert (facts["requests"], facts["warmup"]) == (30, 2)
    assert facts["account"]["input_tokens"]["max"] == 49
    assert facts["account"]["shared"]["requests"] is None
    assert "What the prompts share was not worked out." in lines(
        from_data(facts, WorkloadListing), 80, ascii_=False
    )


def test_the_page_of_a_file_has_the_pictures_of_its_runs_report(mixture: Path, tmp_path: Path) -> None:
    """The same histograms and account as the run's; a run's folder has its own page."""
    flags: dict[str, object] = {"--workload-file": str(mixture / "workload.arrow")}
    folder = simulate(build(None, flags), choose(None, ()), tmp_path / "runs", Nobody()).folder
    facts = pictured(mixture)
    assert json.loads(RunFolder.open(folder).facts.read_bytes())["requests"] == facts | {"published": []}
    text = page("mixture", from_data({"published": [], **facts}, DrawnRequests))
    assert "A workload of 40 requests. Nothing was sent." in text
    with pytest.raises(RecordError, match=r"its report\.html has the charts"):
        pictured(folder)
