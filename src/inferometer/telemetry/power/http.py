"""A wall meter by HTTP: the body is one number in watts, or JSON with one at a path.

The path is the URL's fragment, which is not part of a request: names and, into arrays, numbers from 0, separated by dots.
`%2E` is a dot inside a name.

| URL                                                           | reads                         |
| ------------------------------------------------------------- | ----------------------------- |
| `http://plug/power`                                           | the body as a number          |
| `http://plug/rpc/Switch.GetStatus?id=0#apower`                | Shelly, generation 2          |
| `http://plug/status#meters.0.power`                           | Shelly, generation 1          |
| `http://plug/cm?cmnd=Status%208#StatusSNS.ENERGY.Power`       | Tasmota                       |

User and password in the URL are sent as basic authentication and appear in no message. The flags and the plan take no such
URL, since a plan is saved (plan/host_telemetry.py): there a command reads the meter.

| the answer                                       | code         |
| ------------------------------------------------ | ------------ |
| none, for another reason than time               | `vanished`   |
| not whole within the limit of time               | `timeout`    |
| status 401 or 403                                | `permission` |
| another status than 200, redirects included      | `vanished`   |
| no JSON, no such path, no number, a number out of range, too many bytes | `malformed` |
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from inferometer.client.http_client import Client, Response, Unanswered
from inferometer.client.trust import context
from inferometer.foreign_json import NotJSON, loads
from inferometer.telemetry.power.readings import FailureCode, MeterFailed, PowerReading, checked_watts, number

NAME = "http"
TIMEOUT_S = 2.0
LARGEST = 1 << 16
"""Bytes of an answer."""
_PORTS = {"http": 80, "https": 443}
_CODES: dict[str, FailureCode] = {"timeout": "timeout", "too_large": "malformed", "not_http": "malformed"}


class HttpMeter:
    """See Meter. One device, named by the URL's host, with its port if it has one. Raises ValueError for a URL that is none."""

    name = NAME

    def __init__(self, url: str, timeout_s: float = TIMEOUT_S) -> None:
        parts = urlsplit(url)
        if parts.scheme not in _PORTS or not parts.hostname or not parts.netloc.isascii():
            raise ValueError("not a URL of http or https with a host")
        self._host, self._device = parts.hostname, parts.netloc.rpartition("@")[2]
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        if not self._target.isascii() or not self._target.isprintable() or " " in self._target:
            raise ValueError("path and query have to be percent-encoded")
        self._json_path = [unquote(name) for name in parts.fragment.split(".")] if parts.fragment else []
        self._client = Client(
            self._host,
            parts.port or _PORTS[parts.scheme],
            _headers(parts),
            timeout_s=timeout_s,
            tls=(lambda: context(True, None)) if parts.scheme == "https" else None,
            largest=LARGEST,
        )

    def read(self) -> tuple[PowerReading, ...]:
        """See Meter."""
        try:
            answer = self._client.get(self._target)
        except Unanswered as failure:
            code = _CODES.get(failure.reason, "vanished")
            raise MeterFailed(NAME, code, f"{self._host}: {failure}") from None
        watts = self._watts(answer)
        return (PowerReading(NAME, "machine", self._device, watts=watts, method="power"),)

    def close(self) -> None:
        """See Meter."""
        self._client.close()

    def _watts(self, answer: Response) -> float:
        if answer.status in (401, 403):
            words = f"{self._host} refuses with status {answer.status}: read what wants a password by command:COMMAND"
            raise MeterFailed(NAME, "permission", words)
        if answer.status != 200:
            raise MeterFailed(NAME, "vanished", f"{self._host} answers with status {answer.status}")
        return watts_of(answer.body, self._json_path)


def watts_of(body: bytes, path: Sequence[str]) -> float:
    """The watts in a body: at a path of its JSON, or, without one, its only number. Raises MeterFailed (`malformed`)."""
    if not path:
        return number(NAME, body.decode("utf-8", "replace"))
    try:
        found = at_path(loads(body), path)
    except NotJSON as cause:
        raise MeterFailed(NAME, "malformed", f"the answer {cause}") from None
    if isinstance(found, str):
        return number(NAME, found)
    if isinstance(found, bool) or not isinstance(found, int | float):
        words = f"there is no number at {'.'.join(path)} of the answer"
        raise MeterFailed(NAME, "malformed", words)
    return checked_watts(NAME, _as_float(found))


def at_path(value: Any, path: Sequence[str]) -> object:
    """The member of plain data at a path of names and places; None if there is none."""
    for name in path:
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and name.isdecimal() and len(name) < 6 and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value


def _as_float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def _headers(parts: SplitResult) -> dict[str, str]:
    host = parts.netloc.rpartition("@")[2]
    headers = {"Host": host, "Accept": "*/*", "User-Agent": "inferometer"}
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
    return headers
