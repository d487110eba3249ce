"""How an endpoint's URL is shown: without credentials, and in tables without what every endpoint has."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, quote, urlsplit, urlunsplit

STRUCK = "<redacted>"
_SECRET = re.compile(
    r"pass|pwd|secret|token|credential|signature|auth|session|^sig$|^sas$|(^|[_-])key|api_?key|^jwt$",
    re.IGNORECASE,
)


def shown(url: str) -> str:
    """The URL with user, password and values of query members that sound secret struck out."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return re.sub(r"//[^/@]*@", f"//{STRUCK}@", url)
    place = parts.netloc
    if "@" in place:
        place = f"{STRUCK}@{place.rpartition('@')[2]}"
    query = parts.query
    pairs = parse_qsl(query, keep_blank_values=True)
    if any(_SECRET.search(name) for name, _ in pairs):
        query = "&".join(
            f"{quote(name, safe='')}={STRUCK if _SECRET.search(name) else quote(value, safe='')}"
            for name, value in pairs
        )
    if (place, query) == (parts.netloc, parts.query):
        return url
    assert port is None or isinstance(port, int)
    return urlunsplit((parts.scheme, place, parts.path, query, parts.fragment))


def short(url: str) -> str:
    """Host, port and path without `/metrics`, for tables."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        return url
    return parts.netloc + parts.path.removesuffix("/").removesuffix("/metrics")
