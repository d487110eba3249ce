"""`inferometer cluster`: load hosts on other machines, where something else than this program starts them."""

from __future__ import annotations

import click

from inferometer.cli.command import Command, GroupedOption
from inferometer.cli.outlet import say

EXAMPLES = (
    "inferometer cluster manifest --hosts 4 --workers-per-host 2 --image registry.example.com/inferometer:0.1.0 \\",
    "    --join 10.0.0.1:7000 > load.yaml",
    "kubectl apply -f load.yaml",
)


def _manifest(hosts: int, workers_per_host: int, image: str, join: str, secret: str, name: str) -> int:
    from inferometer.cluster.launch.manifest import LoadJob

    say(LoadJob(hosts, workers_per_host, image, join, secret, name).text().rstrip("\n"))
    return 0


manifest_command = Command(
    "manifest",
    callback=_manifest,
    help="Print a Kubernetes Job whose pods are load hosts, one on each node. The token comes from a Secret; the command "
    "that creates it stands in the manifest's comment.",
    examples=EXAMPLES,
    short_help="Print a Kubernetes Job of load hosts.",
    exits="0 printed, 2 usage",
    params=[
        GroupedOption(["--hosts"], type=int, required=True, metavar="N", help="Load hosts, each on a node of its own."),
        GroupedOption(
            ["--workers-per-host"],
            type=int,
            default=1,
            metavar="W",
            help="Worker processes on each; W + 1 CPUs are reserved. Default: 1.",
        ),
        GroupedOption(
            ["--image"],
            required=True,
            metavar="IMAGE",
            help="Image with this version of inferometer on its PATH.",
        ),
        GroupedOption(
            ["--join"], required=True, metavar="HOST:PORT", help="Where pods reach the conductor."
        ),
        GroupedOption(
            ["--secret"],
            default="inferometer-join",
            metavar="NAME",
            help="Secret that holds the token, under the key `token`. Default: inferometer-join.",
        ),
        GroupedOption(
            ["--name"], default="inferometer-load", metavar="NAME", help="Name of the Job. Default: inferometer-load."
        ),
    ],
)  # fmt: skip


def _token() -> int:
    from inferometer.cluster.admission import new_token

    say(str(new_token()))
    return 0


token_command = Command(
    "token",
    callback=_token,
    help="Print a new token by which load hosts join: set INFEROMETER_JOIN_TOKEN to it where `inferometer run` runs, so that "
    "hosts may have it beforehand.",
    examples=(
        "export INFEROMETER_JOIN_TOKEN=$(inferometer cluster token)",
        'printf %s "$INFEROMETER_JOIN_TOKEN" | kubectl create secret generic inferometer-join --from-file=token=/dev/stdin',
    ),
    short_help="Print a new token for load hosts.",
    exits="0 printed, 2 usage",
)

command = click.Group(
    "cluster",
    commands=[manifest_command, token_command],
    help="Load hosts on other machines.",
)
