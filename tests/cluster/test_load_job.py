"""The manifest of a Kubernetes Job: against the published schemas, and by what it must say."""

from __future__ import annotations

import importlib.metadata
import json
import re
from typing import Any

import kubernetes_validate
import pytest
import yaml
from commands import finish
from hypothesis import given
from hypothesis import strategies as st

from inferometer.cluster.launch.manifest import LoadJob
from inferometer.errors import PlanError

FLAGS = {
    "--hosts": "4",
    "--workers-per-host": "2",
    "--image": "registry.example.com/inferometer:0.1.0",
    "--join": "10.0.0.1:7070",
}
VERSIONS = list(dict.fromkeys(kubernetes_validate.utils.all_versions()))
"""Of Kubernetes, all that the package has schemas of: 1.25 and later."""
LATEST = kubernetes_validate.latest_version()


def manifest(**changed: str) -> dict[str, Any]:
    """As the command prints it."""
    flags = FLAGS | {f"--{name.replace('_', '-')}": value for name, value in changed.items()}
    code, out, _ = finish("cluster", "manifest", *(word for pair in flags.items() for word in pair))
    assert code == 0
    document: dict[str, Any] = yaml.safe_load(out)
    return document


@pytest.mark.parametrize("version", VERSIONS)
def test_the_manifest_keeps_to_the_published_schema(version: str) -> None:
    """Strictly: with no member that Kubernetes does not know."""
    kubernetes_validate.validate(manifest(), version, strict=True)


@given(hosts=st.integers(1, 5000), workers=st.integers(1, 64), port=st.integers(1, 65535))
def test_every_job_keeps_to_the_schema(hosts: int, workers: int, port: int) -> None:
    """Whatever the numbers."""
    made = LoadJob(hosts, workers, "image", f"conductor.example:{port}")
    document = yaml.safe_load(made.text())
    assert document == json.loads(json.dumps(made.document()))
    kubernetes_validate.validate(document, LATEST, strict=True)


def test_one_host_a_node_each_started_once() -> None:
    """As many indices as pods at once, no second try, and no two on one node."""
    spec = manifest()["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 4, 4)
    pod = spec["template"]["spec"]
    assert (spec["backoffLimit"], pod["restartPolicy"]) == (0, "Never")
    (apart,) = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart["topologyKey"] == "kubernetes.io/hostname"
    labels = spec["template"]["metadata"]["labels"]
    assert apart["labelSelector"]["matchLabels"].items() <= labels.items()


def test_two_jobs_do_not_keep_off_each_other() -> None:
    """Their labels differ: two at the same time may share nodes, which is their users' matter."""
    one, other = (manifest(name=name)["spec"]["template"]["metadata"]["labels"] for name in ("one", "other"))
    assert one != other


def test_the_token_comes_from_the_secret_alone() -> None:
    """It is in no manifest; the command that creates the Secret reads it from its input."""
    (container,) = manifest(secret="mine")["spec"]["template"]["spec"]["containers"]
    (variable,) = [one for one in container["env"] if one["name"] == "INFEROMETER_JOIN_TOKEN"]
    assert variable == {
        "name": "INFEROMETER_JOIN_TOKEN", "valueFrom": {"secretKeyRef": {"name": "mine", "key": "token"}}
    }  # fmt: skip
    assert (
        "kubectl create secret generic mine --from-file=token=/dev/stdin"
        in LoadJob(1, 1, "i", "h:1", "mine").text()
    )


def test_a_host_has_whole_cores_and_the_address() -> None:
    """Requests equal limits, a CPU for each worker and one more."""
    (container,) = manifest()["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["requests"] == container["resources"]["limits"]
    assert container["resources"]["limits"]["cpu"] == "3"
    assert container["command"][:4] == ["inferometer", "worker", "--join", "10.0.0.1:7070"]
    assert container["command"][5] == "inferometer-load-$(HOST_INDEX)"
    assert re.fullmatch(r"[\w.-]+/inferometer:0.1.0", container["image"])


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--hosts", "0"), ("--hosts", "5001"), ("--workers-per-host", "0"), ("--image", "-x"), ("--image", "a b"),
        ("--join", "10.0.0.1"), ("--join", "$(X):1"), ("--secret", "Mine"), ("--secret", ""), ("--name", "a" * 35),
        ("--name", "-a"),
    ],
)  # fmt: skip
def test_what_makes_no_manifest_is_named(flag: str, value: str) -> None:
    """By its flag, with exit code 2, and nothing is printed."""
    flags = FLAGS | {flag: value}
    code, out, err = finish("cluster", "manifest", *(word for pair in flags.items() for word in pair))
    assert (code, out) == (2, "")
    assert flag in err


def test_every_fault_is_named_at_once() -> None:
    """Not the first alone."""
    with pytest.raises(PlanError) as wrong:
        LoadJob(0, 0, "", "", "", "")
    assert len(wrong.value.problems) == 6


def test_the_schemas_are_those_of_a_maintained_kubernetes() -> None:
    """The package that has them is versioned as Kubernetes is."""
    assert importlib.metadata.version("kubernetes-validate").startswith(LATEST.rpartition(".")[0])


@pytest.mark.parametrize("name", ["1e3", "1e-3", "12", "0x10", "0o7", "y", "n", "null", "true", "off"])
def test_what_looks_like_a_number_is_a_name(name: str) -> None:
    """Law: in YAML 1.1, which this is read with here, and in 1.2, some of which kubectl reads: a plain `1e3` is a number there,
    and Kubernetes takes none for a name."""
    text = LoadJob(2, 1, name, "10.0.0.1:7070", secret=name, name=name).text()
    for member in ("name", "image"):
        assert re.search(rf"(?m)^ +{member}: '{name}'$", text)
    document = yaml.safe_load(text)
    assert document["metadata"]["name"] == name
    kubernetes_validate.validate(document, LATEST, strict=True)
