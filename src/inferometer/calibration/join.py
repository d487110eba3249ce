"""Joins a run's record with the truth log of the server it measured, request by request and token by token. Pure.

The key is the nonce at the head of every prompt: the schedule knows it, and the server keeps how each prompt began.

|                   | ours                          | true                                                        |
| ----------------- | ----------------------------- | ----------------------------------------------------------- |
| time to the first | t_event[first] - t_submit     | sent[0] - arrived                                           |
| gap               | t_event[i] - t_event[i - 1]   | sent[i] - sent[i - 1]                                       |
| end to end        | t_end - t_submit              | ended - arrived                                             |

`arrived` is the server's kernel's receipt of the request: how long the server took to read it is no error of ours. `sent` is
the instant after the `send` that handed the token over. Over loopback the client's kernel receives inside that call, so a right
stamp of ours lies before `sent` by less than one system call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inferometer.documents.certificate import ErrorSpread
from inferometer.journal.schema import EventClass, Phase
from inferometer.units import NS_PER_MS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_COLUMNS = (
    "index",
    "cycle",
    "phase",
    "t_submit",
    "t_end",
    "t_intended",
    "event_ns",
    "event_class",
)


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """A measured request as the client saw it; ns. `tokens`: arrival of every event with content."""

    key: str
    intended: int
    submit: int
    end: int
    tokens: Ints


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """The same request as the server knows it; ns. `arrived`: None where the kernel did not say. `model`: when due."""

    key: str
    arrived: int | None
    received: int
    ended: int
    sent: Ints
    model: Ints


def spread(measured: Floats, true: Floats) -> ErrorSpread | None:
    """The errors of paired values, entry by entry the same request or gap, ms; None without any.

    mean, p50, p99, max            difference of the two statistics: by how much the figure in a report is wrong
    each_p50, each_p99, each_max   percentiles of |ours - true| over the single requests or gaps
    """
    if not len(measured):
        return None
    each = np.percentile(np.abs(measured - true), (50, 99, 100))
    medians_measured, medians_true = (np.percentile(values, (50, 99, 100)) for values in (measured, true))
    mean = float(measured.mean() - true.mean())
    return ErrorSpread(len(measured), mean, *map(float, medians_measured - medians_true), *map(float, each))


@dataclass(frozen=True, slots=True)
class Joined:
    """Both views side by side, ms; entry i of `ttft` and of `ttft_true` are the same request, and so on.

    `missing`: share of the tokens of either side that the other does not have. `merged`: share of the gaps that are zero for us
    and not in truth. `read_delay`: kernel's receipt to the server's reading. `server_late`: sent less due, of every token.
    `from_kernel`: the true time to the first token counts from the kernel's stamp, not from the server's reading.
    """

    requests: int
    ttft: Floats
    ttft_true: Floats
    gaps: Floats
    gaps_true: Floats
    e2e: Floats
    e2e_true: Floats
    missing: float
    merged: float
    read_delay: Floats
    server_late: Floats
    from_kernel: bool


def nonces(
    table: pa.Table, body: Callable[[int], bytes], read: Callable[[bytes], str] = bytes.decode
) -> list[str]:
    """The nonce of every scheduled request, "" where there is none. `body(row)` gives a row's bytes, `read` what a nonce says
    that is spelled so in a body."""
    places = table.select(["nonce_at", "nonce_len"]).to_pydict()
    spans = zip(places["nonce_at"], places["nonce_len"], strict=True)
    return [read(body(row)[at : at + length]) if length else "" for row, (at, length) in enumerate(spans)]


def client_requests(record: pa.Table, names: Sequence[str]) -> list[ClientRequest]:
    """The measured requests of a record that were sent. `names`: nonces by row of the schedule. Raises ValueError."""
    rows = record.select(_COLUMNS).to_pydict()
    sent: list[ClientRequest] = []
    for index, cycle, phase, submit, end, intended, times, classes in zip(*rows.values(), strict=True):
        if phase != Phase.MEASURE or submit is None:
            continue
        if cycle:
            raise ValueError("a schedule that was gone through again cannot be joined: give --requests")
        content = np.frombuffer(classes, np.uint8) == EventClass.CONTENT
        sent.append(ClientRequest(names[index], intended, submit, end, np.array(times, np.int64)[content]))
    return sent


class _Row(msgspec.Struct):
    """What is read of a line of the server's log (server/truth_log.py)."""

    prompt_head: str
    arrived_ns: int | None
    received_ns: int
    model_ns: list[int]
    sent_ns: list[int]
    ended_ns: int


def server_requests(log: bytes) -> list[ServerRequest]:
    """The truth log, as JSON Lines. Raises msgspec.DecodeError."""
    decode = msgspec.json.Decoder(_Row).decode
    return [
        ServerRequest(
            row.prompt_head,
            row.arrived_ns,
            row.received_ns,
            row.ended_ns,
            np.array(row.sent_ns, np.int64),
            np.array(row.model_ns, np.int64),
        )
        for row in map(decode, log.splitlines())
    ]


def matched(
    measured: Sequence[ClientRequest], true: Iterable[ServerRequest]
) -> Iterator[tuple[ClientRequest, ServerRequest | None]]:
    """Each measured request with the server's row whose prompt begins with its nonce, or None."""
    lengths = {len(one.key) for one in measured}
    known: dict[str, ServerRequest] = {row.key[:length]: row for length in lengths for row in true}
    for one in measured:
        yield one, known.get(one.key) if one.key else None


def as_wholes(
    measured: Sequence[ClientRequest], true: Iterable[ServerRequest]
) -> tuple[list[ClientRequest], list[ServerRequest]]:
    """Answers that are not streamed: one event for us, for the server the instant at which its last token left."""
    return (
        [replace(one, tokens=one.tokens[-1:]) for one in measured],
        [replace(row, sent=row.sent[-1:], model=row.model[-1:]) for row in true],
    )


def joined(measured: Sequence[ClientRequest], true: Sequence[ServerRequest]) -> Joined:
    """Join. Requests of which either side has another number of tokens count as missing tokens and in nothing else."""
    pairs: list[tuple[ClientRequest, ServerRequest]] = []
    lacking = total = 0
    for one, row in matched(measured, true):
        here, there = len(one.tokens), 0 if row is None else len(row.sent)
        total += max(here, there, 1)
        if row is None or here != there or not here:
            lacking += max(abs(here - there), 1)
        else:
            pairs.append((one, row))
    stamped = [(one, row) for one, row in pairs if row.arrived is not None]
    # Where no kernel says when requests arrive, the server's reading is the next best; where it does, a row without (a
    # socket's first bytes may lack it) would carry another error than the rest.
    began = stamped or pairs
    starts = [row.received if row.arrived is None else row.arrived for _, row in began]
    gaps = _ms([np.diff(one.tokens) for one, _ in pairs])
    gaps_true = _ms([np.diff(row.sent) for _, row in pairs])
    return Joined(
        requests=len(measured),
        ttft=_each(int(one.tokens[0]) - one.submit for one, _ in began),
        ttft_true=_each(int(row.sent[0]) - start for (_, row), start in zip(began, starts, strict=True)),
        gaps=gaps,
        gaps_true=gaps_true,
        e2e=_each(one.end - one.submit for one, _ in began),
        e2e_true=_each(row.ended - start for (_, row), start in zip(began, starts, strict=True)),
        missing=lacking / total if total else 0.0,
        merged=float(((gaps == 0) & (gaps_true > 0)).mean()) if len(gaps) else 0.0,
        read_delay=_each(row.received - row.arrived for _, row in stamped if row.arrived is not None),
        server_late=_ms([row.sent - row.model for _, row in pairs if len(row.model) == len(row.sent)]),
        from_kernel=bool(stamped),
    )


def _each(values: Iterable[int]) -> Floats:
    return np.fromiter(values, np.float64) / NS_PER_MS


def _ms(pieces: Sequence[Ints]) -> Floats:
    return np.concatenate(pieces) / NS_PER_MS if pieces else np.zeros(0)
