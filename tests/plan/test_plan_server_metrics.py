"""Endpoints of metrics in a plan: completed, refused in words, and never written down with a password."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

from inferometer.addresses import secrets_of, shown
from inferometer.errors import PlanError
from inferometer.plan import saved
from inferometer.plan.certificates import FILES
from inferometer.plan.parse import build, check_outside
from inferometer.plan.reach import reach
from inferometer.plan.rules import faults
from inferometer.plan.schema import Plan
from inferometer.plan.server_metrics import FORMATS, SHORTEST_SLICE_S, ServerMetrics, completed
from inferometer.telemetry.metrics import exports, replay
from inferometer.telemetry.metrics.estimators import DEFAULT, ESTIMATORS

PASSWORD = "hunter-two"


def problems(*flags: tuple[str, object]) -> dict[str, str]:
    with pytest.raises(PlanError) as caught:
        build(None, dict(flags))
    return {problem.where: problem.message for problem in caught.value.problems}


@pytest.mark.parametrize(
    ("given", "whole"),
    [
        ("localhost:8000", "http://localhost:8000/metrics"),
        ("localhost:8000/", "http://localhost:8000/metrics"),
        ("https://h:9/metrics", "https://h:9/metrics"),
        ("h:1/metrics/", "http://h:1/metrics"),
        ("http://h:1/v1/", "http://h:1/v1/metrics"),
        ("h", "http://h/metrics"),
        ("HTTP://H:1", "http://h:1/metrics"),
        ("http://h:1/metrics?x=1", "http://h:1/metrics?x=1"),
        ("http://h:1?x=1", "http://h:1/metrics?x=1"),
        ("h:1/federate?match[]=up", "http://h:1/federate?match[]=up"),
        ("h:1/metrics/cadvisor", "http://h:1/metrics/cadvisor"),
        ("http://h:1/prometheus/metrics", "http://h:1/prometheus/metrics"),
        ("http://h:1//", "http://h:1/metrics"),
        ("http://[::1]:9", "http://[::1]:9/metrics"),
        ("u:p@h:1", "http://u:p@h:1/metrics"),
    ],
)
def test_an_endpoint_is_completed_to_a_whole_url(given: str, whole: str) -> None:
    """As AIPerf completes it, except that a scheme may be written large, a query is understood, and a path that has one or has
    metrics in it is whole; and only once."""
    assert completed(given) == whole
    assert completed(whole) == whole


@pytest.mark.parametrize(
    "text",
    ["", "  ", "ftp://h", "http://", "h:0", "h:99999", "h:x", "a b", "[::1", "h#x", f"http://u:{PASSWORD}@"],
)
def test_what_is_no_endpoint_is_refused_at_its_flag(text: str) -> None:
    """In words that do not repeat it, for it may hold a password."""
    found = problems(("--server-metrics", ["h:1", text]))
    assert set(found) == {"--server-metrics"}
    assert PASSWORD not in found["--server-metrics"]


@pytest.mark.parametrize(
    ("url", "written", "secrets"),
    [
        ("http://h:1/metrics", "http://h:1/metrics", []),
        ("http://u:pw@h/metrics", "http://<redacted>@h/metrics", ["pw", "u:pw"]),
        ("http://tok@h/metrics", "http://<redacted>@h/metrics", ["tok"]),
        ("http://h/metrics?a=1&api_key=x7", "http://h/metrics?a=1&api_key=<redacted>", ["x7"]),
        ("http://h/metrics?X-Amz-Signature=x7", "http://h/metrics?X-Amz-Signature=<redacted>", ["x7"]),
        ("http://h/metrics?q=sk-abcdefgh1", "http://h/metrics?q=<redacted>", ["sk-abcdefgh1"]),
        ("http://h/metrics?name[]=up&token=", "http://h/metrics?name[]=up&token=", []),
    ],
)
def test_a_url_is_shown_without_its_secrets(url: str, written: str, secrets: list[str]) -> None:
    """User, password and secret-looking values of the query go; the rest stays, and can be told apart by it."""
    assert (shown(url), secrets_of(url)) == (written, secrets)
    assert shown(written) == written


_part = st.text("abcXYZ019._~-", min_size=8, max_size=12)


@given(_part, _part, _part)
def test_no_secret_is_in_a_saved_plan(user: str, password: str, key: str) -> None:
    """Neither in its bytes nor behind its hash; the plan in memory still has it."""
    url = f"http://{user}:!{password}@h:1/metrics?access_token=!{key}"
    plan = build(None, {"--server-metrics": [url]})
    assert plan.server_metrics.urls == (url,)
    assert f"!{password}".encode() not in saved.to_json(plan)
    assert f"!{key}".encode() not in saved.to_json(plan)


def test_a_saved_plan_whose_url_lost_its_password_can_be_read_but_not_run(tmp_path: Path) -> None:
    """A report needs none; a run would ask with a wrong one."""
    path = tmp_path / "plan.json"
    path.write_bytes(saved.to_json(build(None, {"--server-metrics": [f"u:{PASSWORD}@h:1"]})))
    again = saved.read(path)
    assert saved.to_json(again) == path.read_bytes()
    with pytest.raises(PlanError, match="give the full URL again"):
        build(path, environ={})
    assert build(path, {"--server-metrics": [f"u:{PASSWORD}@h:1"]}, environ={}).server_metrics.urls


def test_the_flags_reach_their_keys() -> None:
    """Formats add up, in one text or in several; an endpoint given twice is one."""
    plan = build(
        None,
        {
            "--server-metrics": ["h:1", "http://h:1/metrics", "h:2"],
            "--server-metrics-interval": "500ms",
            "--server-metrics-formats": ["json,csv", "parquet json"],
            "--slice-duration": "0",
            "--histogram-estimator": "linear",
        },
    )
    wanted = plan.server_metrics
    assert wanted.urls == ("http://h:1/metrics", "http://h:2/metrics")
    assert (wanted.interval_s, wanted.formats, wanted.slice_s) == (0.5, ("json", "csv", "parquet"), 0)
    assert (wanted.histogram_estimator, wanted.enabled) == ("linear", True)


@pytest.mark.parametrize("given", ["1ns", "0.0009", "-1", "nan"])
def test_a_slice_is_none_or_a_millisecond_and_more(given: str) -> None:
    """A slice shorter than that makes an export without end; `metrics replay` takes what a plan takes."""
    assert set(problems(("--slice-duration", given))) == {"--slice-duration"}
    assert build(None, {"--slice-duration": "1ms"}).server_metrics.slice_s == SHORTEST_SLICE_S
    assert replay.SHORTEST_SLICE_S == SHORTEST_SLICE_S


def test_without_flags_the_target_is_scraped_every_third_of_a_second() -> None:
    """The defaults of the document: JSON and CSV, slices of 2 s."""
    wanted = Plan().server_metrics
    assert (wanted.enabled, wanted.urls, wanted.interval_s) == (True, (), 0.333)
    assert (wanted.formats, wanted.slice_s) == (("json", "csv"), 2.0)


def test_formats_and_estimators_are_those_there_are() -> None:
    """The plan imports neither: it names them."""
    assert FORMATS == exports.FORMATS
    named = get_args(ServerMetrics.model_fields["histogram_estimator"].annotation)
    assert (set(named), Plan().server_metrics.histogram_estimator) == (set(ESTIMATORS), DEFAULT)


def test_endpoints_and_no_scraping_exclude_each_other() -> None:
    """Unless one of them comes from the plan file: then the flag decides."""
    both = {"server_metrics": {"urls": ["h:1"], "enabled": False}}
    assert [fault.keys[0] for fault in faults(Plan.model_validate(both))] == ["server_metrics.urls"]
    assert set(problems(("--server-metrics", ["h:1"]), ("--no-server-metrics", True))) == {"--server-metrics"}


def test_a_flag_overrides_the_file(tmp_path: Path) -> None:
    """In both directions."""
    path = tmp_path / "plan.yaml"
    path.write_text("server_metrics:\n  urls: ['h:1']\n")
    assert build(path, {"--no-server-metrics": True}).server_metrics.urls == ()
    path.write_text("server_metrics:\n  enabled: false\n")
    assert build(path, {"--server-metrics": ["h:1"]}).server_metrics.enabled is True


@pytest.mark.parametrize(
    ("flag", "text"),
    [
        ("--server-metrics-formats", "xml"),
        ("--histogram-estimator", "oracle"),
        ("--server-metrics-interval", "0"),
        ("--server-metrics-interval", "1h"),
        ("--slice-duration", "-1"),
    ],
)
def test_a_value_out_of_bounds_is_refused_at_its_flag(flag: str, text: str) -> None:
    """Before anything is sent."""
    assert set(problems((flag, text))) == {flag}


READ = {
    "--server-metrics": ["h:1"],
    "--server-metrics-header": ["X-Scope-OrgID: 7", "X-Other: a"],
    "--server-metrics-token-env": "PROM_TOKEN",
    "--server-metrics-ca-file": __file__,
    "--server-metrics-timeout": "500ms",
    "--server-metrics-max-body": "64",
}


def test_each_endpoint_is_read_as_it_says_or_as_all_are(tmp_path: Path, pem: dict[str, str]) -> None:
    """Flags and keys of the part are for all; those of an endpoint in the plan file for it alone."""
    path = tmp_path / "plan.yaml"
    path.write_text(
        "server_metrics:\n  endpoints:\n"
        "    - {url: 'h:2/federate?match[]=up', token_env: OTHER, timeout_s: 10, tls_verify: false}\n"
        "    - {url: 'h:3', headers: {x-other: b}}\n"
    )
    given = READ | {"--server-metrics-ca-file": pem["ca"]}
    plan = build(path, given, environ={"PROM_TOKEN": "a", "OTHER": "b"})
    one, two, three = plan.server_metrics.named()
    assert [found.url for found in (one, two, three)] == [
        "http://h:1/metrics",
        "http://h:2/federate?match[]=up",
        "http://h:3/metrics",
    ]
    assert [found.token_env for found in (one, two, three)] == ["PROM_TOKEN", "OTHER", "PROM_TOKEN"]
    assert [found.timeout_s for found in (one, two, three)] == [0.5, 10, 0.5]
    assert [found.tls_verify for found in (one, two, three)] == [None, False, None]
    assert {found.max_body_mib for found in (one, two, three)} == {64}
    assert three.headers == {"X-Scope-OrgID": "7", "x-other": "b"}
    saved_path = tmp_path / "plan.json"
    saved_path.write_bytes(saved.to_json(plan))
    assert saved.read(saved_path) == plan


def test_how_endpoints_are_read_leaves_the_hash_of_all_other_plans_alone() -> None:
    """It stands in a saved plan where it is set, and nowhere else."""
    usual = {"--server-metrics-timeout": "5", "--server-metrics-max-body": "32", "--server-metrics": ["h:1"]}
    assert saved.to_json(build(None, usual)) == saved.to_json(build(None, {"--server-metrics": ["h:1"]}))
    assert b"timeout_s" not in saved.to_json(build(None, usual)).split(b'"server_metrics"')[1].split(b"}")[0]
    assert b"PROM_TOKEN" in saved.to_json(build(None, READ))


@pytest.mark.parametrize(
    ("flag", "text"),
    [
        ("--server-metrics-header", f"Authorization: Bearer {PASSWORD}"),
        ("--server-metrics-header", f"X-A: Bearer {PASSWORD}"),
        ("--server-metrics-header", PASSWORD),
        ("--server-metrics-token-env", f"{PASSWORD}!"),
        ("--server-metrics-timeout", "0"),
        ("--server-metrics-timeout", "61"),
        ("--server-metrics-max-body", "129"),
    ],
)
def test_a_secret_or_a_limit_out_of_bounds_is_refused_at_its_flag(flag: str, text: str) -> None:
    """In words that do not repeat it."""
    given = [text] if flag.endswith("header") else text
    found = problems((flag, given))
    assert set(found) == {flag}
    assert PASSWORD not in str(found)


def test_what_an_endpoint_needs_from_outside_has_to_be_there(tmp_path: Path) -> None:
    """Variables, certificates, whole URLs: each is named by its key, before anything is sent."""
    path = tmp_path / "plan.yaml"
    path.write_text(
        "server_metrics:\n  token_env: A\n  endpoints:\n"
        "    - {url: 'http://<redacted>@h:2', token_env: B, ca_file: /nowhere}\n"
        f"    - {{url: 'https://h:3', key_file: '{path}', cert_file: /nowhere}}\n"
        f"    - {{url: 'https://h:4', key_file: '{path}', token_header: X-Api-Key}}\n"
    )
    with pytest.raises(PlanError) as caught:
        build(path, environ={})
    places = sorted(problem.where.rpartition(": ")[2] for problem in caught.value.problems)
    assert places == [
        "server_metrics.endpoints[0].ca_file",
        "server_metrics.endpoints[0].token_env",
        "server_metrics.endpoints[0].url",
        "server_metrics.endpoints[1].cert_file",
        "server_metrics.endpoints[2].key_file",
        "server_metrics.token_env",
    ]


UNUSED: dict[str, dict[str, object]] = {
    "no endpoint": {},
    "no metrics": {"enabled": False, "urls": ["h:1"], "endpoints": [{"url": "h:2", "ca_file": "/nowhere"}]},
    "each has its own": {"endpoints": [{"url": "h:1"} | dict.fromkeys(FILES, "OWN")]},
}
"""Parts of a plan in which no endpoint uses the files of all."""


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("case", UNUSED)
def test_a_file_that_no_endpoint_uses_is_neither_opened_nor_listed(
    name: str, case: str, pem: dict[str, str]
) -> None:
    """Law: what `reach` lists is what is opened: a plan of somebody else's would have any file opened unlisted."""
    own = pem["both"]
    part = json.loads(json.dumps(UNUSED[case]).replace("OWN", own))
    plan = Plan.model_validate({"server_metrics": part | dict.fromkeys(FILES, "/nowhere")})
    assert not any("/nowhere" in what for _, what in reach(plan))
    check_outside(plan, {})
    used = Plan.model_validate({"server_metrics": {"urls": ["h:1"], "cert_file": own, name: "/nowhere"}})
    assert any("/nowhere" in what for _, what in reach(used))
    with pytest.raises(PlanError, match="names a file that does not exist"):
        check_outside(used, {})


def test_a_certificate_with_its_own_key_does_not_take_the_key_of_all() -> None:
    """What is said of one endpoint goes before what is said of all; a key belongs to its certificate."""
    found = ServerMetrics.model_validate(
        {
            "cert_file": "all.pem", "key_file": "all.key", "token_header": "X-Token",
            "endpoints": [{"url": "h:1"}, {"url": "h:2", "cert_file": "own.pem"}],
        }
    )  # fmt: skip
    assert [(one.cert_file, one.key_file, one.token_header) for one in found.named()] == [
        ("all.pem", "all.key", "X-Token"),
        ("own.pem", None, "X-Token"),
    ]


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A certificate, its key, both in one file, another's key, and a file that holds none."""
    authority, place = trustme.CA(), tmp_path_factory.mktemp("pem")
    mine, other = authority.issue_cert("client@example.org"), authority.issue_cert("other@example.org")
    blobs = {
        "ca": authority.cert_pem,
        "cert": mine.cert_chain_pems[0],
        "key": mine.private_key_pem,
        "both": mine.private_key_and_cert_chain_pem,
        "wrong": other.private_key_pem,
    }
    for name, blob in blobs.items():
        blob.write_to_path(str(place / name))
    (place / "nothing").write_text("no certificate")
    return {name: str(place / name) for name in (*blobs, "nothing")}


@pytest.mark.parametrize(
    ("cert", "key", "refused"),
    [
        ("both", None, None),
        ("cert", "key", None),
        ("cert", None, "unencrypted key beside it"),
        ("cert", "wrong", "is not the certificate of its key"),
        ("nothing", "key", "are needed"),
        ("both", "nothing", "are needed"),
    ],
)
def test_a_certificate_that_cannot_be_shown_is_refused_before_anything_is_sent(
    cert: str, key: str | None, refused: str | None, pem: dict[str, str]
) -> None:
    """Law: TLS's own reading of the files decides, at the flag that names them."""
    given: dict[str, object] = {"--server-metrics": ["https://h:2"], "--server-metrics-cert": pem[cert]}
    if key is not None:
        given["--server-metrics-key"] = pem[key]
    if refused is None:
        build(None, given, environ={})
        return
    with pytest.raises(PlanError, match=refused) as caught:
        build(None, given, environ={})
    assert [one.where for one in caught.value.problems] == ["--server-metrics-cert"]


@pytest.mark.parametrize("flag", ["--server-metrics-ca-file", "--ca-file"])
def test_certificates_that_cannot_be_trusted_are_refused_before_anything_is_sent(
    flag: str, pem: dict[str, str]
) -> None:
    """Law: a file without a certificate is none to trust, whoever is to be verified by it."""
    given: dict[str, object] = {"--url": "https://h", "--server-metrics": ["https://h:2"]}
    build(None, given | {flag: pem["ca"]}, environ={})
    with pytest.raises(PlanError, match="holds no certificates") as caught:
        build(None, given | {flag: pem["nothing"]}, environ={})
    assert [one.where for one in caught.value.problems] == [flag]
