"""`inferometer detect`: which engines run here, or at given URLs."""

from __future__ import annotations

import os
import re

import click

from inferometer.cli.command import Command, GroupedOption
from inferometer.errors import PlanError, Problem

MOST_PORTS = 1_000
_RANGE = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?")


def port_numbers(text: str) -> tuple[int, ...]:
    """The ports of a list such as `8000,8080-8090`. Raises PlanError."""
    numbers: list[int] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 0 < first <= last < 1 << 16:
            problem = f"{part.strip()!r} is no port and no range of ports: for example 8000,8080-8090"
            raise PlanError([Problem("--ports", problem)])
        numbers += range(first, last + 1)
        if len(numbers) > MOST_PORTS:
            raise PlanError([Problem("--ports", f"{MOST_PORTS} ports at most")])
    return tuple(numbers)


@click.command(
    "detect",
    cls=Command,
    exits="0 done, 2 usage, 5 no engine at any --url",
    examples=(
        "inferometer detect",
        "inferometer detect --ports 8000-8010,11434 --json",
        "inferometer detect --url http://gpu-1:8000 --url http://gpu-2:8000",
    ),
)
@click.option(
    "--url",
    "urls",
    cls=GroupedOption,
    multiple=True,
    metavar="URL",
    help="Look at this server instead of this machine's ports. May be repeated.",
)
@click.option(
    "--ports",
    cls=GroupedOption,
    metavar="LIST",
    help="Ports of this machine, such as 8000,8080-8090. Default: those that engines use.",
)
@click.option(
    "--api-key-env",
    cls=GroupedOption,
    metavar="NAME",
    help="Environment variable whose key is sent to every --url as a bearer token.",
)
@click.option(
    "--json", "as_json", cls=GroupedOption, is_flag=True, help="Print JSON on stdout instead of tables."
)
def command(urls: tuple[str, ...], ports: str | None, api_key_env: str | None, as_json: bool) -> int:
    """Find the engines that run on this machine, asked for at most 5 seconds: version, runner, models with format,
    quantization and memory, and the process of the port."""
    from inferometer.cli.terminal import show_detection
    from inferometer.plan.parse import build
    from inferometer.studies.detection import Local, detect, document, places

    if api_key_env is not None and not urls:
        raise PlanError(
            [Problem("--api-key-env", "goes with --url: no key is sent to ports that are only looked at")]
        )
    checked = [build(None, {"--url": url}, environ=os.environ).target.url or "" for url in urls]
    numbers = None if ports is None else port_numbers(ports)
    here = Local.now()
    where = places(checked, numbers, here)
    found = detect(where, here, headers=_headers(api_key_env))
    show_detection(document(where, found), as_json=as_json)
    recognised = any(one.endpoint.state in ("engine", "proxy") for one in found[: len(where.urls)])
    return 5 if where.urls and not recognised else 0


def _headers(name: str | None) -> dict[str, str]:
    if name is None:
        return {}
    key = os.environ.get(name)
    if not key or not key.isascii() or not key.isprintable():
        problem = f"the environment variable {name} is not set, or holds characters that a header cannot"
        raise PlanError([Problem("--api-key-env", problem)])
    return {"Authorization": f"Bearer {key}"}
