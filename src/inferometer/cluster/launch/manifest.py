"""A Kubernetes Job whose pods are the load hosts: one a node, each started once.

| property                           | why                                                                                 |
| ---------------------------------- | ----------------------------------------------------------------------------------- |
| Indexed, completions = parallelism | each host has an index, and all are started together                                |
| backoffLimit 0, restartPolicy Never | a host that died has lost its share: another in its place would not bring it back  |
| required anti-affinity by hostname | two hosts on one node would share its cores and its network card                    |
| requests = limits, whole CPUs      | quality of service Guaranteed: with the static CPU manager, cores of its own         |
| the token by `secretKeyRef`        | it is not in the manifest                                                            |
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import yaml

from inferometer.cluster.launch.interface import TOKEN_VARIABLE, is_address
from inferometer.errors import PlanError, Problem

NAME = "inferometer-load"
SECRET = "inferometer-join"  # noqa: S105 - a Secret's name
KEY = "token"
MOST_HOSTS = 5_000
"""The nodes that a cluster of Kubernetes is supported with."""
MEMORY_MI = 512
"""MiB for a worker, and as much for the process above its workers: not measured, but for runs of a few minutes."""
_MARK = {"app.kubernetes.io/name": "inferometer", "app.kubernetes.io/component": "load-host"}
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,32}[a-z0-9])?")
"""Of a Secret or a Job, whose load hosts have it in their names (interface.LONGEST_NAME)."""
_INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*")


_NAMES = "is up to 34 small letters, digits and -, no - at either end"


@dataclass(frozen=True)
class LoadJob:
    """What a manifest is made of. Raises PlanError with every fault.

    `image`: has `inferometer` of the conductor's version on its PATH; `join`: HOST:PORT of the conductor; `secret`: the name
    of the Secret that holds the token.
    """

    hosts: int
    workers_per_host: int
    image: str
    join: str
    secret: str = SECRET
    name: str = NAME

    def __post_init__(self) -> None:
        tests = {
            ("--hosts", f"is from 1 to {MOST_HOSTS:,}"): 1 <= self.hosts <= MOST_HOSTS,
            ("--workers-per-host", "is at least 1"): self.workers_per_host >= 1,
            ("--image", "is the name of an image, as registry.example.com/inferometer:0.1.0"):
                _IMAGE.fullmatch(self.image),
            ("--join", "is HOST:PORT of the conductor, as pods reach it"): is_address(self.join),
            ("--secret", _NAMES): _NAME.fullmatch(self.secret),
            ("--name", _NAMES): _NAME.fullmatch(self.name),
        }  # fmt: skip
        if faults := [Problem(*said) for said, right in tests.items() if not right]:
            raise PlanError(faults)

    def document(self) -> dict[str, Any]:
        """The Job, of batch/v1, as plain data."""
        labels = {**_MARK, "app.kubernetes.io/instance": self.name}
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": self.name, "labels": labels},
            "spec": {
                "completionMode": "Indexed",
                "completions": self.hosts,
                "parallelism": self.hosts,
                "backoffLimit": 0,
                "template": {"metadata": {"labels": labels}, "spec": self._pod(labels)},
            },
        }

    def _pod(self, labels: dict[str, str]) -> dict[str, Any]:
        apart = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
        return {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "affinity": {
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]},
            },
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [self._container()],
            "volumes": [{"name": "journals", "emptyDir": {}}],
        }

    def _container(self) -> dict[str, Any]:
        cpus, memory = str(self.workers_per_host + 1), f"{MEMORY_MI * (self.workers_per_host + 1)}Mi"
        amount = {"cpu": cpus, "memory": memory}
        name = ["--name", f"{self.name}-$(HOST_INDEX)"]
        token = {"secretKeyRef": {"name": self.secret, "key": KEY}}
        return {
            "name": "load-host",
            "image": self.image,
            "command": ["inferometer", "worker", "--join", self.join, *name, "--folder", "/journals"],
            "env": [
                {"name": TOKEN_VARIABLE, "valueFrom": token},
                {"name": "HOST_INDEX", "valueFrom": {"fieldRef": {"fieldPath": _INDEX}}},
            ],
            "resources": {"requests": amount, "limits": dict(amount)},
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            "volumeMounts": [{"name": "journals", "mountPath": "/journals"}],
        }

    def text(self) -> str:
        """The manifest as YAML, with the commands that go with it as its comment."""
        create = f"kubectl create secret generic {self.secret} --from-file={KEY}=/dev/stdin"
        head = (
            "# The token first; it is in no file and on no command line:\n"
            f'#   printf %s "${TOKEN_VARIABLE}" | {create}\n'
            "# Then this file: kubectl apply -f FILE\n"
            f"# Afterwards: kubectl delete job/{self.name} secret/{self.secret}\n"
        )
        return head + yaml.dump(self.document(), Dumper=_Plain, sort_keys=False, width=120)


class _Plain(yaml.SafeDumper):
    """YAML without references to what stands in it already. Texts that another version of YAML takes for a number or a truth
    value (`1e3`, `0o7`, `y`) are quoted: this dumper writes version 1.1, and kubectl reads some of 1.2."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - yaml's signature
        """All."""
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    doubtful = text[:1].isdigit() or len(text) == 1
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="'" if doubtful else None)


_Plain.add_representer(str, _text)
