"""The docs are held to the code: what a user can type, meet or read is described, and what is described exists."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from comparing import facts_of
from shipped_schemas import shipped

import inferometer
from inferometer.cli.app import COMMANDS
from inferometer.cli.bench import command as bench_command
from inferometer.cli.calibrate import command as calibrate_command
from inferometer.cli.cluster import command as cluster_command
from inferometer.cli.compare import command as compare_command
from inferometer.cli.compliance import command as compliance_command
from inferometer.cli.cross_validate import command as cross_validate_command
from inferometer.cli.detect import command as detect_command
from inferometer.cli.doctor import command as doctor_command
from inferometer.cli.export import command as export_command
from inferometer.cli.history import command as history_command
from inferometer.cli.metrics import command as metrics_command
from inferometer.cli.procedure import command as procedure_command
from inferometer.cli.report import command as report_command
from inferometer.cli.rerun import command as rerun_command
from inferometer.cli.run import command as run_command
from inferometer.cli.simulate import command as simulate_command
from inferometer.cli.telemetry import command as telemetry_command
from inferometer.cli.worker import command as worker_command
from inferometer.cli.workload import command as workload_command
from inferometer.documents.comparison import SCHEMA as COMPARISON
from inferometer.documents.history import CHECK_SCHEMA, ENTRY_SCHEMA
from inferometer.documents.summary import SCHEMA as SUMMARY
from inferometer.documents.workload import NAMES, requirement
from inferometer.errors import InstrumentError, MachineError, PeerError, PlanError, RecordError
from inferometer.exports import metric_rows, request_rows
from inferometer.exports.formats import FORMATS
from inferometer.journal.schema import PULSE, RECORD, SCHEDULE, EventClass, Outcome
from inferometer.judge.comparison import equivalence
from inferometer.judge.comparison.compare import DECIDING, FIGURES
from inferometer.judge.compliance.evidence import catalogue
from inferometer.judge.compliance.statement import LABELS, STATES
from inferometer.judge.history.regression import ALPHA, ALPHA_CHANGES, LEAST
from inferometer.judge.judge import CHECKS, NOT_SIMULATED, judge
from inferometer.measure.measurement import measure
from inferometer.measure.record import Record
from inferometer.metrics.__main__ import table as metrics_table
from inferometer.metrics.catalogue import RATES
from inferometer.metrics.statistics import STATISTICS
from inferometer.plan.declarations import Declared
from inferometer.plan.flags import FLAGS
from inferometer.plan.parse import build
from inferometer.plan.procedure_parameters import Tests
from inferometer.plan.request_class import RequestClass, SharedPrefix
from inferometer.plan.schema import Plan
from inferometer.plan.standard import STANDARD
from inferometer.plan.target import Sampling
from inferometer.procedures.registry import PROCEDURES
from inferometer.server import controls, dialects
from inferometer.server.__main__ import ARGUMENTS
from inferometer.server.engine.settings import FIELDS
from inferometer.server.fault_specs import KINDS
from inferometer.server.presets import PRESETS
from inferometer.server.truth_log import Entry
from inferometer.studies.comparison import EXIT_CODES
from inferometer.studies.history.check import EXIT_CODES as HISTORY_CODES
from inferometer.studies.history.index import NAME
from inferometer.studies.history.lines import beside
from inferometer.workload import prompt_file, workload_file

ROOT = Path(__file__).parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    # Examples are as the program wrote them.
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if "examples" not in page.parts),
]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
LINE = 120


@cache
def text(name: str) -> str:
    return (ROOT / name).read_text()


def every_page() -> str:
    """All but docs/peers.md: its flags are other tools' (tests/test_peers_comparison.py holds them to what is run)."""
    pages = [page for page in PAGES if page.name not in ("CHANGELOG.md", "peers.md")]
    return "".join(page.read_text() for page in pages)


def rows(name: str) -> set[str]:
    """The first cells of a page's tables that are one code word."""
    return set(re.findall(r"^\| `([^`]+)` \|", text(name), re.MULTILINE))


def blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text(name), re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """What GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def empty_record() -> Record:
    return Record.from_tables(RECORD.empty_table(), PULSE.empty_table())


def check_codes() -> list[str]:
    """Every check is made of every run, if only to say that it does not apply; so an empty record has them all."""
    record = empty_record()
    return [check.code for check in judge(Plan(), measure(Plan(), record), record).checks]


@pytest.mark.parametrize("flag", [flag.name for flag in FLAGS])
def test_every_flag_is_named(flag: str) -> None:
    """A flag nobody describes is a flag nobody finds."""
    assert re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w-])", every_page())


def test_every_flag_in_the_docs_exists() -> None:
    """An example must not name a flag that is no more."""
    known = {
        option
        for command in (
            run_command,
            worker_command,
            bench_command,
            cross_validate_command,
            calibrate_command,
            compliance_command,
            doctor_command,
            report_command,
            export_command,
            rerun_command,
            procedure_command,
            compare_command,
            simulate_command,
            detect_command,
            *workload_command.commands.values(),
            *metrics_command.commands.values(),
            *history_command.commands.values(),
            *cluster_command.commands.values(),
            *telemetry_command.commands.values(),
        )
        for parameter in command.params
        for option in parameter.opts
    }
    known |= {"--help", "--version"} | server_flags()
    known |= {
        "--enforce-eager",
        "--enable-prompt-tokens-details",
        "--from",
        "--from-file",
        "--metrics",
        "--parallel",
    }  # of the engines, of uvx and of kubectl
    used = set(re.findall(r"(?<![\w-])(--[a-z][a-z-]+)", every_page()))
    assert used <= known


def server_flags() -> set[str]:
    """What `inferometer serve` takes."""
    return {one.flag for one in ARGUMENTS}


def test_every_flag_of_the_server_is_in_its_page() -> None:
    """Each has a row; so has every setting that can be changed while it runs, and every interface in the log."""
    told = rows("docs/server.md")
    assert server_flags() <= told
    assert {*controls.SETTINGS, *dialects.APIS} <= told


def test_every_command_is_named() -> None:
    """README says what else there is beside `run`."""
    assert all(f"inferometer {name}" in text("README.md") for name in COMMANDS)


def test_every_check_has_its_place_in_limits() -> None:
    """A reader who meets a code in a verdict finds its number and its reason, in the table of all checks and below it."""
    headings = "".join(re.findall(r"^### .*$", text("docs/limits.md"), re.MULTILINE))
    explained = set(re.findall(r"`(\w+)`", headings))
    assert explained == set(check_codes())
    assert set(check_codes()) <= rows("docs/limits.md")


def test_the_page_of_limits_has_the_table_of_checks() -> None:
    """Each check, in the order judged, with its units, where its limit comes from and the draft's sections."""
    told = re.findall(r"^\| `(\w+)` \|([^|]*)\|([^|]*)\|([^|]*)\|", text("docs/limits.md"), re.MULTILINE)
    table = [(one.code, ", ".join(one.units), str(one.limit), ", ".join(one.sections)) for one in CHECKS]
    assert [tuple(cell.strip() for cell in row) for row in told] == table


def test_a_rule_that_is_judged_by_a_check_is_of_a_section_the_check_names() -> None:
    """The catalogue says of each rule how it is judged, and a check that it names serves the rule's section."""
    sections = {one.code: one.sections for one in CHECKS}
    cited = [
        (rule, code) for rule in catalogue() for code in re.findall(r"\w+", rule.how) if code in sections
    ]
    judged = [(rule, code) for rule, code in cited if re.search(rf"\bchecks? (\w+ and )?{code}\b", rule.how)]
    assert len(judged) >= 10
    assert [(rule.id, code) for rule, code in judged if rule.section not in sections[code]] == []


def test_the_checks_that_do_not_apply_to_a_simulation_are_those_told() -> None:
    """On both pages that list them."""
    told = re.findall(
        r"(?:apply\s+then|do\s+not\s+apply)\**: (.*?)\.? ?(?:say so|The\s+others)",
        text("docs/limits.md") + text("docs/simulation.md"),
        re.DOTALL,
    )
    assert [set(re.findall(r"`(\w+)`", names)) for names in told] == [set(NOT_SIMULATED)] * 2


def test_the_settings_and_presets_of_the_engine_are_those_told() -> None:
    """Each has a row on the engine's page, to which the simulation's leads."""
    assert {*FIELDS, *PRESETS} <= rows("docs/engine.md")
    assert "engine.md" in text("docs/simulation.md")


def test_every_flag_figure_and_item_of_a_comparison_is_told() -> None:
    """Each has its row on its page, those that decide say so, and every outcome has its exit code there."""
    flags = {name for parameter in compare_command.params for name in parameter.opts if name.startswith("--")}
    run = facts_of(1)
    items = {item.code for item in equivalence.checklist([[run], [run]], equivalence.Declared(), [[run]])}
    assert flags | set(FIGURES) | items == rows("docs/comparison.md")
    deciding = re.findall(r"^\| `(\w+)` \| (?:more|less) \| yes", text("docs/comparison.md"), re.MULTILINE)
    assert set(deciding) == set(DECIDING)
    codes = set(re.findall(r"^\| (\d+) \|", text("docs/comparison.md"), re.MULTILINE))
    assert codes == {str(code) for code in EXIT_CODES.values()} | {"2", "5", "130"}
    assert COMPARISON in text("docs/comparison.md")


def test_the_commands_and_exit_codes_of_a_history_are_told() -> None:
    """Each command has its line, each code its row, and the limits of a check are those of the code."""
    page = text("docs/history.md")
    assert all(f"| `inferometer history {name}" in page for name in history_command.commands)
    codes = set(re.findall(r"^\| (\d+) \|", page, re.MULTILINE))
    assert codes == {str(code) for code in HISTORY_CODES.values()} | {"2"}
    assert f"needs {LEAST} comparable" in page
    assert f"p < {ALPHA}" in page
    assert f"p < {ALPHA_CHANGES}" in page
    assert all(schema in page for schema in (ENTRY_SCHEMA, CHECK_SCHEMA))
    assert {NAME, beside(Path(NAME)).name} <= set(re.findall(r"`([\w.]+)`", page))


def test_every_fault_is_described_with_its_parameters_and_defaults() -> None:
    """A row a fault: what it takes, whether whole answers meet it, what the server does and the instrument says."""
    page = text("docs/faults.md")
    assert rows("docs/faults.md") == set(KINDS)
    for name, kind in KINDS.items():
        found = re.search(rf"^\| `{name}` \| ([^|]*) \| (yes|no) \|", page, re.MULTILINE)
        assert found, name
        assert found[2] == ("yes" if kind.unstreamed or name in ("refuse", "drop") else "no"), name
        for key, parameter in kind.parameters.items():
            assert key in found[1] if key.isdigit() else f"{key} ({parameter.default:.0f})" in found[1], name


def test_the_field_that_names_the_fault_is_in_the_truth() -> None:
    """As the page on faults says."""
    entry = Entry("x", None, "chat", True, 1, 1, 0)
    entry.ended.append(0)
    assert entry.as_dict()["fault"] is None
    assert "`fault`" in text("docs/faults.md")


def test_the_columns_and_the_header_of_a_workload_file_are_told() -> None:
    """Each has its row, and the version and the exit codes are named."""
    told = rows("docs/workload-files.md")
    assert {
        *workload_file.COLUMNS,
        *workload_file.Header.model_fields,
        *workload_file.Nonce.model_fields,
    } <= told
    page = text("docs/workload-files.md")
    assert all(f"inferometer workload {name}" in page for name in workload_command.commands)
    assert workload_file.VERSION in page


def test_every_format_and_column_of_an_export_is_told() -> None:
    """Each format has its row with its file, and each column of a table its meaning."""
    page = text("docs/exports.md")
    for one in FORMATS.values():
        (row,) = re.findall(rf"^\| `{one.name}` \| {re.escape(one.means)}.* \| .* \|$", page, re.MULTILINE)
        assert one.file in row
    for column in (*request_rows.COLUMNS, *metric_rows.COLUMNS):
        assert f"| `{column.name}` | {column.means} |" in page
    assert all(f"`{column.name}`" in page for column in (request_rows.EVENT_TIMES, request_rows.ANSWER))


def test_the_page_on_compliance_has_labels_states_and_declarations_as_they_are() -> None:
    """Each has its row, and the numbers of rules are those of the catalogue."""
    assert rows("docs/compliance.md") == {*LABELS, *STATES, *Declared.model_fields}
    stated = sum(rule.level == "states" for rule in catalogue())
    assert f"There are {len(catalogue()) - stated} rules" in text("docs/compliance.md")
    assert f"{stated} such statements" in text("docs/compliance.md")


def test_every_metric_is_defined() -> None:
    """Each key under `metrics` and each rate has a row in the definitions, each statistic too."""
    keys = set(shipped("summary")["$defs"]["Metrics"]["properties"]) | set(RATES)
    assert keys <= rows("docs/definitions.md")
    named = set(re.findall(r"`(\w+)`", text("docs/definitions.md")))
    assert {*STATISTICS, "n", "ci95"} <= named


def test_the_table_of_metrics_is_the_catalogue() -> None:
    """`python -m inferometer.metrics` writes it."""
    assert metrics_table() in text("docs/definitions.md")


def test_every_event_class_and_outcome_is_defined() -> None:
    """With its number where it has one."""
    classes = re.findall(r"^\| `(\w+)` \| (\d+) \|", text("docs/definitions.md"), re.MULTILINE)
    assert {name: int(number) for name, number in classes} == {
        one.name.lower(): int(one) for one in EventClass
    }
    assert {str(outcome) for outcome in Outcome} <= rows("docs/definitions.md")


def test_every_column_is_described_with_its_type() -> None:
    """RECORD and PULSE as tables; a list is `list of` its items' type."""
    told = dict(re.findall(r"^\| `(\w+)` \| ([a-z0-9 ]+) \|", text("docs/run-folder.md"), re.MULTILINE))
    types = {
        pa.float32(): "float32",
        pa.list_(pa.int64()): "list of int64",
        pa.list_(pa.int32()): "list of int32",
    }
    for field in [*RECORD, *PULSE]:
        assert told[field.name] == types.get(field.type, str(field.type))
    assert all(f"`{name}`" in text("docs/run-folder.md") for name in SCHEDULE.names)


def test_every_member_of_the_summary_is_described() -> None:
    """Nothing in summary.json is a surprise."""
    assert all(f"`{name}`" in text("docs/run-folder.md") for name in shipped("summary")["properties"])


def test_versions_told_are_the_versions_written() -> None:
    """Of every file that carries one."""
    page = text("docs/run-folder.md")
    for schema in (RECORD, PULSE, SCHEDULE):
        assert f"`{schema.metadata[b'inferometer'].decode()}`" in page
    assert SUMMARY in page


def test_the_standard_workloads_have_the_lengths_told() -> None:
    """The method's table is the plan's."""
    for name, lengths in STANDARD.items():
        assert f"| {' | '.join(map(str, lengths))} |" in text("docs/method.md"), name


def test_exit_codes_are_those_of_the_errors() -> None:
    """The page on exit codes knows each, and README's verdicts have theirs."""
    told = set(re.findall(r"^\| (\d+) \|", text("docs/exit-codes.md"), re.MULTILINE))
    made = {
        str(kind.exit_code) for kind in (PlanError, PeerError, RecordError, InstrumentError, MachineError)
    }
    assert told == made | {"0", "3", "4", "6", "130"}
    assert re.findall(r"^\| (VALID|INVALID|INCONCLUSIVE) \|.*\| (\d) \|$", text("README.md"), re.MULTILINE) == [
        ("VALID", "0"), ("INVALID", "3"), ("INCONCLUSIVE", "4"),
    ]  # fmt: skip


def test_the_readme_is_short() -> None:
    """What a newcomer needs, and links to the rest."""
    assert len(text("README.md").splitlines()) <= 150


def test_the_index_leads_to_every_page() -> None:
    """Each page of the docs, or the folder that holds it, is linked from the index."""
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / link.partition("#")[0]).resolve() for link in LINK.findall(index.read_text())}
    pages = set(PAGES) - {index, ROOT / "README.md"}
    assert {
        page for page in pages if page not in linked and page.parent not in linked - {index.parent}
    } == set()


def test_the_citation_is_of_this_version() -> None:
    """CITATION.cff names the version of the package."""
    assert yaml.safe_load(text("CITATION.cff"))["version"] == inferometer.__version__


def test_the_plans_in_the_guides_can_be_carried_out(tmp_path: Path) -> None:
    """Each is a whole plan, open loop on a server, and the first decides something."""
    examples = (
        blocks("docs/how-to/measure-a-server.md", "yaml") + blocks("docs/how-to/compare-in-ci.md", "yaml")[:1]
    )
    plans = []
    for number, example in enumerate(examples):
        path = tmp_path / f"plan-{number}.yaml"
        path.write_text(example)
        plans.append(build(path))
    assert [(plan.load.model, plan.target.url is not None) for plan in plans] == [("open", True)] * 2
    assert len(plans[0].slos) == 2


def test_the_mixture_and_the_rows_in_the_docs_can_be_carried_out(tmp_path: Path) -> None:
    """The page's plan is a plan, its rows are rows, and every field and key of theirs has its line there."""
    (mixture,) = blocks("docs/custom-workloads.md", "yaml")
    (tmp_path / "mixture.yaml").write_text(mixture)
    assert [one.name for one in build(tmp_path / "mixture.yaml").workload.classes] == ["chat", "batch"]
    (lines,) = blocks("docs/custom-workloads.md", "json")
    (tmp_path / "own.jsonl").write_text(lines)
    assert len(prompt_file.survey(tmp_path / "own.jsonl", chat=True, needs_output=False)) == 2
    page = text("docs/custom-workloads.md")
    named = {
        *prompt_file.FIELDS,
        *RequestClass.model_fields,
        *SharedPrefix.model_fields,
        *Sampling.model_fields,
    }
    assert {name for name in named if f"`{name}`" not in page} == set()
    assert {requirement(name) for name in NAMES} <= set(
        re.findall(r"^\| `(D-[\w.-]+)` \|", page, re.MULTILINE)
    )


def test_the_readers_in_the_docs_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The five lines for pyarrow give the TTFT of a record of one request: 7 ms. (pandas is not among our dependencies.)"""
    values: dict[str, object] = {field.name: None if field.nullable else 0 for field in RECORD}
    values |= {"phase": 1, "outcome": "ok", "event_class": b"\0\1", "t_submit": 1_000_000}
    values |= {"event_ns": [2_000_000, 8_000_000], "first_visible": 1}
    pq.write_table(pa.Table.from_pylist([values], schema=RECORD), tmp_path / "requests.parquet")
    code, _ = blocks("docs/run-folder.md", "python")
    exec(code.replace("RUN/", f"{tmp_path}/"), {})
    assert capsys.readouterr().out == "1 7.0\n"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_inside_the_project_lead_somewhere(page: Path) -> None:
    """To a file that is there, and to a heading in it."""
    for link in LINK.findall(page.read_text()):
        if link.startswith(("https://", "http://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_is_finished_and_wrapped(page: Path) -> None:
    """No reminders to the author, and lines that a diff can show; tables and code may be wider."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert not re.search(r"\b(TODO|TBD|FIXME|XXX|lorem ipsum)\b", prose, re.IGNORECASE)
    assert not [line for line in prose.splitlines() if len(line) > LINE and not line.startswith("|")]


def test_files_named_in_the_architecture_exist() -> None:
    """Prose must not drift from the code it names."""
    named = re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.py)`", text("docs/architecture.md"))
    places = (ROOT / "src" / "inferometer", ROOT)
    assert named
    assert all(any((place / name).is_file() for place in places) for name in named)


def test_the_pictures_are_small() -> None:
    """A clone should not pay for them."""
    for name, most in (("report.png", 200_000), ("campaign.png", 150_000)):
        assert (ROOT / "docs" / name).stat().st_size < most


def test_every_parameter_of_a_test_is_described_with_its_default() -> None:
    """docs/tests.md has a row for each, and for no other."""
    told = {name for name in rows("docs/tests.md") if "." in name}
    there = {
        f"{field.alias or name}.{key}"
        for name, field in Tests.model_fields.items()
        for key in getattr(Tests(), name).__class__.model_fields
    }
    assert told == there


def test_every_test_of_the_draft_has_a_row() -> None:
    """docs/tests.md lists them with their sections."""
    assert set(PROCEDURES) <= rows("docs/tests.md")
    for procedure in PROCEDURES.values():
        assert f"| `{procedure.name}` | {procedure.section} |" in text("docs/tests.md")
