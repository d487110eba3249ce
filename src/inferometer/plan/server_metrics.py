"""Which Prometheus endpoints are read while the load runs, how often, and what is made of it.

A URL may hold a password: it is kept as given for whoever reads the endpoint, and written, shown and hashed without. A token
is named by its environment variable.
"""

import re
from typing import Annotated, Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import (
    AfterValidator,
    Field,
    SerializerFunctionWrapHandler,
    field_serializer,
    model_serializer,
)

from inferometer.addresses import shown
from inferometer.plan.part import NUMBER, SECONDS, Option, Part, Values
from inferometer.plan.target import Variable, field_name, header_name, header_value, secret_name

FORMATS = ("json", "csv", "jsonl", "parquet")

SHORTEST_SLICE_S = 0.001

_PATH = "/metrics"
_EXAMPLE = "for example localhost:8000 or http://localhost:8000/metrics"


def completed(text: str) -> str:
    """The whole URL of an endpoint: `host:port` gets `http://` in front and `/metrics` behind.

    A path that has `/metrics` in it, or a query behind it, is taken as it is. A query and a user's name and password are kept.
    Raises ValueError, which repeats nothing of the text: it may hold a password.
    """
    given = text.strip()
    if not given:
        raise ValueError(f"is empty: it needs a host and a port, {_EXAMPLE}")
    if not re.match(r"https?://", given, re.IGNORECASE):
        if "://" in given:
            raise ValueError(f"must begin with http:// or https://, or with the host, {_EXAMPLE}")
        given = f"http://{given}"
    try:
        parts = urlsplit(given)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError(
            f"is not a URL (a port is a number up to 65535, an IPv6 host is in brackets): {_EXAMPLE}"
        ) from None
    if not host or port == 0 or re.search(r"[\x00-\x20\x7f]", given) or parts.fragment:
        raise ValueError(f"needs a host, no spaces and no #, {_EXAMPLE}")
    path = parts.path.rstrip("/")
    whole = f"{_PATH}/" in f"{path}/" or (path and parts.query)
    user, at, place = parts.netloc.rpartition("@")
    return _joined(parts, f"{user}{at}{place.lower()}", path if whole else path + _PATH, parts.query)


def own_endpoint(base: str) -> str:
    """The URL of the metrics of a server with this base URL, which has no query."""
    return completed(base if base.endswith(_PATH) else base + _PATH)


def _joined(parts: SplitResult, place: str, path: str, query: str) -> str:
    return f"{parts.scheme.lower()}://{place}{path}{f'?{query}' if query else ''}"


def _formats(texts: tuple[str, ...]) -> tuple[str, ...]:
    """`json,csv` and `json csv` are two formats; each once."""
    words = tuple(dict.fromkeys(word for text in texts for word in re.split(r"[\s,]+", text) if word))
    if any(word not in FORMATS for word in words):
        raise ValueError(f"must be of {', '.join(FORMATS)}, for example json,csv")
    return words


def _once(urls: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(urls))


def _slice(seconds: float) -> float:
    if 0 < seconds < SHORTEST_SLICE_S:
        raise ValueError(f"must be 0, for no timeslices, or {SHORTEST_SLICE_S} s and more")
    return seconds


def _header_name(name: str) -> str:
    if secret_name(name):
        raise ValueError(f"{_NO_SECRETS}: {_INSTEAD}")
    return header_name(name)


def _header_value(value: str) -> str:
    try:
        return header_value(value)
    except ValueError as wrong:
        raise ValueError(f"{_NO_SECRETS}: {_INSTEAD}" if _NO_SECRETS in str(wrong) else str(wrong)) from None


_NO_SECRETS = "looks like a secret, and a plan is saved to disk"
_INSTEAD = (
    "name the variable that holds a bearer token (--server-metrics-token-env, server_metrics.token_env)"
)

Url = Annotated[str, AfterValidator(completed)]
Headers = dict[Annotated[str, AfterValidator(_header_name)], Annotated[str, AfterValidator(_header_value)]]
TokenHeader = Annotated[str, AfterValidator(field_name)]
File = Annotated[str, Field(min_length=1)]
Timeout = Annotated[float, Field(ge=0.1, le=60), SECONDS]
MaxBody = Annotated[float, Field(gt=0, le=128), NUMBER]
"""MiB. The reader of the record takes as much."""


_OF_EACH = (
    *(
        "token_env",
        "token_header",
        "ca_file",
        "cert_file",
        "key_file",
        "tls_verify",
        "timeout_s",
        "max_body_mib",
    ),
)
_READ = ("endpoints", "headers", *_OF_EACH)


class MetricsEndpoint(Part):
    """One endpoint and how it is read. None, or a header that is not given: as `ServerMetrics` has it for all."""

    url: Annotated[Url, Field(examples=["localhost:9400"], description="host:port or URL.")]
    headers: Annotated[Headers, Field(description="Extra header lines, by name. Not for keys.")] = Field(
        default_factory=dict
    )
    token_env: Annotated[
        Variable | None, Field(description="Name of the environment variable that holds a bearer token.")
    ] = None
    token_header: Annotated[
        TokenHeader | None,
        Field(description="Header that carries the token, alone, in place of Authorization: Bearer."),
    ] = None
    ca_file: Annotated[
        File | None, Field(description="Certificates (PEM) to trust instead of the system's.")
    ] = None
    cert_file: Annotated[
        File | None, Field(description="Certificate (PEM) that the client shows, with its key or without.")
    ] = None
    key_file: Annotated[
        File | None, Field(description="Private key (PEM) of that certificate, unencrypted.")
    ] = None
    tls_verify: Annotated[bool | None, Field(description="Verify the TLS certificate.")] = None
    timeout_s: Annotated[
        Timeout | None, Field(description="Give a scrape up after this long, in seconds.")
    ] = None
    max_body_mib: Annotated[
        MaxBody | None, Field(description="Largest body that is read, decompressed, in MiB.")
    ] = None

    @field_serializer("url")
    def _without_secrets(self, url: str) -> str:
        return shown(url)


class ServerMetrics(Part):
    """Prometheus text that servers show, scraped during the run (docs/server-metrics.md).

    The target's own `/metrics` is always tried, unless not `enabled`; `urls` and `endpoints` are others besides, the latter
    with how each is read where that differs from what is said here. `interval_s` lies between two
    scrapes of an endpoint. After the run these `formats` are made of what was scraped, with statistics of every `slice_s`
    (0: of none), and percentiles of histograms by this `histogram_estimator`.
    """

    enabled: Annotated[
        bool,
        Field(description="Scrape metrics."),
        Option(
            "--no-server-metrics",
            "Server metrics",
            help="Scrape no metrics, not even the target's.",
            value=False,
            drops=("server_metrics.urls",),
        ),
    ] = True
    urls: Annotated[
        tuple[Url, ...],
        Field(
            max_length=256,
            description="Prometheus endpoints to scrape beside the target's: host:port or URL.",
        ),
        AfterValidator(_once),
        Option(
            "--server-metrics",
            "Server metrics",
            "URL",
            help="Also scrape this Prometheus endpoint, host:port or URL.",
            repeat=True,
            drops=("server_metrics.enabled",),
        ),
    ] = ()
    endpoints: Annotated[
        tuple[MetricsEndpoint, ...],
        Field(max_length=256, description="Further endpoints, each with how it is read."),
    ] = ()
    headers: Annotated[
        Headers,
        Field(description="Extra header lines for the endpoints named here, by name. Not for keys."),
        Option(
            "--server-metrics-header",
            "Server metrics",
            "K: V",
            help="Extra header line 'K: V' for the endpoints of --server-metrics. Not for keys.",
            repeat=True,
        ),
    ] = Field(default_factory=dict)
    token_env: Annotated[
        Variable | None,
        Field(
            description="Name of the environment variable that holds a bearer token for the endpoints named here."
        ),
        Option("--server-metrics-token-env", "Server metrics", "NAME"),
    ] = None
    token_header: Annotated[
        TokenHeader | None,
        Field(
            description="Header that carries the token of the endpoints named here, alone, in place of Authorization: Bearer."
        ),
        Option("--server-metrics-token-header", "Server metrics", "NAME"),
    ] = None
    ca_file: Annotated[
        File | None,
        Field(
            description="Certificates (PEM) to trust for the endpoints named here. Default: as for the server."
        ),
        Option("--server-metrics-ca-file", "Server metrics", "FILE"),
    ] = None
    cert_file: Annotated[
        File | None,
        Field(
            description="Certificate (PEM) that the client shows to the endpoints named here, with its key or without."
        ),
        Option("--server-metrics-cert", "Server metrics", "FILE"),
    ] = None
    key_file: Annotated[
        File | None,
        Field(description="Private key (PEM) of that certificate, unencrypted."),
        Option("--server-metrics-key", "Server metrics", "FILE"),
    ] = None
    tls_verify: Annotated[
        bool | None,
        Field(
            description="Verify the TLS certificates of the endpoints named here. Default: yes, and on the server's own host "
            "as for the server."
        ),
        Option(
            "--server-metrics-insecure",
            "Server metrics",
            help="Do not verify the TLS certificates of the endpoints of --server-metrics.",
            value=False,
        ),
    ] = None
    timeout_s: Annotated[
        Timeout,
        Field(description="Give a scrape up after this long: seconds, or 500ms."),
        Option("--server-metrics-timeout", "Server metrics", "S"),
    ] = 5.0
    max_body_mib: Annotated[
        MaxBody,
        Field(description="Largest body of a scrape that is read, decompressed, in MiB."),
        Option("--server-metrics-max-body", "Server metrics", "MIB"),
    ] = 32.0
    interval_s: Annotated[
        float,
        Field(ge=0.001, le=300, description="Time between two scrapes of an endpoint: seconds, or 500ms."),
        SECONDS,
        Option("--server-metrics-interval", "Server metrics", "S"),
    ] = 0.333
    formats: Annotated[
        tuple[str, ...],
        Field(description=f"Exports to write from the scrapes: any of {', '.join(FORMATS)}."),
        AfterValidator(_formats),
        Option("--server-metrics-formats", "Server metrics", "FORMATS", repeat=True),
    ] = ("json", "csv")
    slice_s: Annotated[
        float,
        Field(
            ge=0,
            le=86_400,
            description="Length of a time slice in the exports: seconds, or 500ms; 0: none.",
        ),
        AfterValidator(_slice),
        SECONDS,
        Option("--slice-duration", "Server metrics", "S"),
    ] = 2.0
    histogram_estimator: Annotated[
        Literal["four-phase", "smooth", "linear"],
        Field(
            description="Estimator of percentiles of histograms in the exports: four-phase, smooth or linear."
        ),
        Option("--histogram-estimator", "Server metrics", "NAME"),
    ] = "four-phase"

    @field_serializer("urls")
    def _without_secrets(self, urls: tuple[str, ...]) -> list[str]:
        return [shown(url) for url in urls]

    @model_serializer(mode="wrap")
    def _as_before(self, handler: SerializerFunctionWrapHandler) -> Values:
        """How endpoints are read stands in a saved plan where it is set: all others keep the hash that they always had."""
        values: Values = handler(self)
        usual = {
            name: ServerMetrics.model_fields[name].get_default(call_default_factory=True) for name in _READ
        }
        return {
            name: value
            for name, value in values.items()
            if name not in usual or getattr(self, name) != usual[name]
        }

    def named(self) -> tuple[MetricsEndpoint, ...]:
        """Each endpoint that is named, once, with everything that is said of it or of all."""
        listed = {one.url: one for one in (*map(_plain, self.urls), *self.endpoints)}
        return tuple(map(self._filled, listed.values()))

    def _filled(self, one: MetricsEndpoint) -> MetricsEndpoint:
        names = set(_OF_EACH)
        if one.cert_file is not None:  # its key is in the same file, or its own
            names.discard("key_file")
        missing = {
            name: getattr(self, name) for name in _OF_EACH if name in names and getattr(one, name) is None
        }
        theirs = {name.lower() for name in one.headers}
        common = {name: value for name, value in self.headers.items() if name.lower() not in theirs}
        return one.model_copy(update={**missing, "headers": {**common, **one.headers}})


def _plain(url: str) -> MetricsEndpoint:
    return MetricsEndpoint.model_construct(url=url, headers={})
