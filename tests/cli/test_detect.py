"""`inferometer detect`: what it prints, and its exit codes."""

from __future__ import annotations

import json

import jsonschema
import pytest
from commands import finish
from peers import Script, scripted, whole
from serving import serving
from shipped_schemas import shipped

from inferometer.cli.detect import port_numbers
from inferometer.errors import PlanError


def test_an_engine_is_printed_as_a_table_and_as_json() -> None:
    """The JSON keeps to its schema; both have the engine and its model."""
    with serving(routes="lmstudio", model="a-model") as port:
        code, out, err = finish("detect", "--ports", str(port), COLUMNS="150")
        assert (code, err) == (0, "")
        assert "LM Studio" in out
        assert "a-model" in out
        code, out, _ = finish("detect", "--url", f"http://127.0.0.1:{port}/v1", "--json")
    found = json.loads(out)
    jsonschema.validate(found, shipped("detection"))
    assert (code, found["endpoints"][0]["engine"]) == (0, "lmstudio")
    assert found["urls"] == [f"http://127.0.0.1:{port}"]


def test_no_engine_at_any_url_is_5() -> None:
    """As for a server that cannot be reached."""
    with scripted(lambda _: Script(whole(200, b"{}"))) as peer:
        code, out, _ = finish("detect", "--url", f"http://127.0.0.1:{peer.port}")
    assert code == 5
    assert "no engine that is known" in out


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--url", "localhost:8000"], "must begin with http"),
        (["--url", "http://user:pw@h"], "--api-key-env"),
        (["--ports", "80-"], "no port"),
        (["--ports", "0"], "no port"),
        (["--ports", "65536"], "no port"),
        (["--ports", "9-8"], "no port"),
        (["--ports", "1-2000"], "at most"),
        (["--api-key-env", "X"], "goes with --url"),
        (["--url", "http://h", "--api-key-env", "NOT_SET_HERE"], "not set"),
    ],
)
def test_bad_arguments_are_named_with_a_remedy(arguments: list[str], word: str) -> None:
    """Exit code 2, no traceback, and never the password."""
    code, out, err = finish("detect", *arguments)
    assert (code, out) == (2, "")
    assert word in err
    assert "pw" not in err


def test_a_list_of_ports_has_ranges() -> None:
    """Ends included, blanks allowed."""
    assert port_numbers("8000, 8080-8082") == (8000, 8080, 8081, 8082)
    with pytest.raises(PlanError):
        port_numbers("")
