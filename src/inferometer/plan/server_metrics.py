"""Which Prometheus endpoints are read while the load runs, how often, and what is made of it.

A URL may hold a password: it is kept as given for whoever reads the endpoint, and written, shown and hashed without.
"""

import re
from typing import Annotated, Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, Field, field_serializer

from inferometer.addresses import shown
from inferometer.plan.part import SECONDS, Option, Part

FORMATS = ("json", "csv", "jsonl", "parquet")

SHORTEST_SLICE_S = 0.001

_PATH = "/metrics"
_EXAMPLE = "for example localhost:8000 or http://localhost:8000/metrics"


def completed(text: str) -> str:
    """The whole URL of an endpoint: `host:port` gets `http://` in front and `/metrics` behind.

    A path in front of `/metrics`, a query and a user's name and password are kept. Raises ValueError, which repeats nothing
    of the text: it may hold a password.
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
    if not path.endswith(_PATH):
        path += _PATH
    user, at, place = parts.netloc.rpartition("@")
    return _joined(parts, f"{user}{at}{place.lower()}", path, parts.query)


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


class ServerMetrics(Part):
    """Prometheus text that servers show, scraped during the run (docs/server-metrics.md).

    The target's own `/metrics` is always tried, unless not `enabled`; `urls` are others besides. `interval_s` lies between two
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
        tuple[Annotated[str, AfterValidator(completed)], ...],
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
