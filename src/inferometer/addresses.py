"""How the URL of an endpoint may be written down: without credentials, and in tables without what every endpoint has."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import unquote, urlsplit, urlunsplit

REDACTED = "<redacted>"

_SECRET_NAME = re.compile(
    r"key|token|secret|pass|pwd|auth|credential|session|signature|jwt|^sig$|^sas$|^code$", re.IGNORECASE
)
_SECRET_VALUE = re.compile(r"(sk|hf|gsk|xai|nvapi)[-_]\w{8}|eyJ[\w-]{10}", re.IGNORECASE)


def shown(url: str) -> str:
    """The URL without user and password, and without values of a query that look secret; of what is no URL, without what stands
    in front of an @."""
    if "://" not in url:
        return shown(f"x://{url}").removeprefix("x://")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return re.sub(r"//[^/]*@", f"//{REDACTED}@", url)
    user, at, place = parts.netloc.rpartition("@")
    place = f"{REDACTED}@{place}" if user or at else place
    query = "".join(_shown(pair) for pair in _pairs(parts.query))
    if (place, query) == (parts.netloc, parts.query):
        return url
    return urlunsplit((parts.scheme, place, parts.path, query, parts.fragment))


def secrets_of(url: str) -> list[str]:
    """What `shown` leaves out of a whole URL, as it stands there."""
    parts = urlsplit(url)
    user, _, _ = parts.netloc.rpartition("@")
    pairs = [pair for pair in _pairs(parts.query) if _shown(pair) != pair]
    found = (user.partition(":")[2], user, *(pair.partition("=")[2] for pair in pairs))
    return [text for text in found if text]


def _pairs(query: str) -> list[str]:
    """Its members, and what parts them, in their order."""
    return re.split(r"([&;])", query)


def _shown(pair: str) -> str:
    name, _, value = pair.partition("=")
    secret = bool(value) and (_SECRET_NAME.search(unquote(name)) or _SECRET_VALUE.match(unquote(value)))
    return f"{name}={REDACTED}" if secret else pair


def short(url: str) -> str:
    """Host, port and path without `/metrics`, and the number of one of several that look alike, for tables."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        return url
    number = f"#{parts.fragment}" if parts.fragment else ""
    return parts.netloc + parts.path.removesuffix("/").removesuffix("/metrics") + number


def is_loopback(url: str) -> bool:
    """Whether a URL's host is this machine, by its name or its address."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
