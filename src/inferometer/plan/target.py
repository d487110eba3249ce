"""The server under test: its address, its interface, and how it is spoken to."""

from __future__ import annotations

import difflib
import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_validator

from inferometer.engines.interface import INTERFACES, Interface, takers
from inferometer.plan.body import Body, Headers
from inferometer.plan.part import SECONDS, Option, Part


def _registered(name: str) -> str:
    if name not in INTERFACES:
        near = difflib.get_close_matches(name.lower(), INTERFACES, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ValueError(f"must be {' or '.join(INTERFACES)}, not {name[:60]!r}{hint}")
    return name


Api = Annotated[str, AfterValidator(_registered), Field(json_schema_extra={"enum": list(INTERFACES)})]
"""The name of a registered interface (engines/interface.py)."""


class Target(Part):
    """The server. No `url` means the embedded reference server.

    `url` is the base URL, kept without a trailing slash and without the `/v1` that may stand at its end: engines add
    `/v1/chat/completions` and so on. A path in front of that, as a proxy may have, is kept.
    `extra_body` is merged into every request's JSON body.
    """

    url: Annotated[
        str | None,
        Field(description="Base URL of the server. Without it, the embedded reference server is measured."),
        Option("--url", "Common options", "URL"),
    ] = None
    model: Annotated[
        Annotated[str, Field(min_length=1)] | None,
        Field(description="Name of the model to request."),
        Option("--model", "Common options", "NAME", default="the one the server lists"),
    ] = None
    api: Annotated[
        Api,
        Field(description=f"HTTP interface of the server: {takers()}."),
        Option("--api", "Common options", "API", drops=("workload.count_template",)),
    ] = "chat"
    stream: Annotated[
        bool,
        Field(description="Request streams; false: whole answers."),
        Option("--no-stream", "Server", help="Request whole answers instead of streams.", value=False),
    ] = True
    headers: Annotated[
        Headers,
        Field(description="Extra header lines, by name. Not for keys."),
        Option(
            "--header",
            "Server",
            "K: V",
            help="Extra header line 'K: V'. Not for keys.",
            repeat=True,
        ),
    ] = Field(default_factory=dict)
    extra_body: Annotated[
        Body,
        Field(description="JSON object merged into the body of every request."),
        Option("--extra-body", "Server", "JSON"),
    ] = Field(default_factory=dict)
    api_key_env: Annotated[
        str | None,
        Field(description="Name of the environment variable that holds the API key."),
        Option("--api-key-env", "Server", "NAME", drops=("target.api_key_file",)),
    ] = None
    api_key_file: Annotated[
        Annotated[str, Field(min_length=1)] | None,
        Field(description="File that holds the API key."),
        Option("--api-key-file", "Server", "FILE", drops=("target.api_key_env",)),
    ] = None
    tls_verify: Annotated[
        bool,
        Field(description="Verify the server's TLS certificate."),
        Option(
            "--insecure",
            "Server",
            help="Do not verify the server's TLS certificate.",
            value=False,
            drops=("target.tls_ca_file",),
        ),
    ] = True
    tls_ca_file: Annotated[
        Annotated[str, Field(min_length=1)] | None,
        Field(description="Certificates (PEM) to trust instead of the system's."),
        Option("--ca-file", "Server", "FILE", drops=("target.tls_verify",)),
    ] = None
    timeout_s: Annotated[
        float,
        Field(gt=0, le=86_400, description="Give a request up after this long: seconds, or 90s, 5m."),
        SECONDS,
        Option("--timeout", "Server", "S"),
    ] = 600.0
    connect_timeout_s: Annotated[
        float, Field(gt=0, le=600, description="Give a connection up after this long, in seconds."), SECONDS
    ] = 10.0
    connection: Annotated[
        Literal["reuse", "new"],
        Field(description="reuse, or new for a connection a request."),
        Option("--connection", "Server", "HOW"),
    ] = "reuse"

    @property
    def interface(self) -> Interface:
        """What is known of the interface `api`."""
        return INTERFACES[self.api]

    @field_validator("url")
    @classmethod
    def _base_url(cls, url: str | None) -> str | None:
        return None if url is None else _base_url(url)

    @field_validator("api_key_env")
    @classmethod
    def _name_of_a_variable(cls, name: str | None) -> str | None:
        # The value is not repeated: it may be the key itself.
        if name is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise ValueError(
                "must be the name of an environment variable, for example OPENAI_API_KEY, not the key itself"
            )
        return name


def _base_url(url: str) -> str:
    """Check a base URL and bring it to its one form. Messages never repeat it: it may hold a password."""
    example = "for example http://localhost:8000"
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError(
            f"is no URL (a port is a number up to 65535, an IPv6 host stands in brackets): {example}"
        ) from None
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"must begin with http:// or https://, {example}")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not hold a user name or password: use --api-key-env or --api-key-file")
    if not host or port == 0 or re.search(r"[\x00-\x20\x7f]", url.strip()):
        raise ValueError(f"needs a host and no spaces, {example}")
    if parts.query or parts.fragment:
        raise ValueError(f"must be a base URL, without ? and #, {example}")
    path = parts.path.rstrip("/")
    for interface in INTERFACES.values():
        if path.endswith(interface.path):
            raise ValueError(f"must be the base URL, without {interface.path}, {example}")
    return f"{parts.scheme}://{parts.netloc.lower()}{path.removesuffix('/v1').rstrip('/')}"
