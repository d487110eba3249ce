"""Remote write, received by a scripted server and decoded by other implementations: snappy by `cramjam`, the message by
`protobuf` with the fields of the specification."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cramjam
from commands import finish
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from peers import Script, scripted

from inferometer.documents.summary import Summary
from inferometer.exports.exported_run import ExportedRun, period_of
from inferometer.exports.prometheus import families
from inferometer.exports.remote_write import compressed, write_request

FIELD = descriptor_pb2.FieldDescriptorProto


def _write_request() -> Any:
    """The message of Prometheus remote write 1.0, out of the specification's four definitions."""
    file = descriptor_pb2.FileDescriptorProto(name="remote.proto", package="spec", syntax="proto3")
    fields: dict[str, list[tuple[str, int, int, str, bool]]] = {
        "WriteRequest": [("timeseries", 1, FIELD.TYPE_MESSAGE, ".spec.TimeSeries", True)],
        "TimeSeries": [
            ("labels", 1, FIELD.TYPE_MESSAGE, ".spec.Label", True),
            ("samples", 2, FIELD.TYPE_MESSAGE, ".spec.Sample", True),
        ],
        "Label": [("name", 1, FIELD.TYPE_STRING, "", False), ("value", 2, FIELD.TYPE_STRING, "", False)],
        "Sample": [("value", 1, FIELD.TYPE_DOUBLE, "", False), ("timestamp", 2, FIELD.TYPE_INT64, "", False)],
    }
    for name, members in fields.items():
        message = file.message_type.add(name=name)
        for field, number, kind, of, repeated in members:
            label = FIELD.LABEL_REPEATED if repeated else FIELD.LABEL_OPTIONAL
            message.field.add(name=field, number=number, type=kind, label=label, type_name=of or None)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("spec.WriteRequest"))


WRITE_REQUEST = _write_request()


def decoded(body: bytes) -> list[tuple[dict[str, str], float, int]]:
    """Each series: labels, value, ms since the epoch; its labels in the order of the specification."""
    message = WRITE_REQUEST.FromString(bytes(cramjam.snappy.decompress_raw(body)))
    found = []
    for series in message.timeseries:
        (sample,) = series.samples
        names = [label.name for label in series.labels]
        assert names == sorted(set(names))
        assert all(label.value for label in series.labels)
        found.append(({label.name: label.value for label in series.labels}, sample.value, sample.timestamp))
    return found


def expected(summary: Summary, at_ms: int) -> list[tuple[dict[str, str], float, int]]:
    """The families' samples as the message should have them."""
    return [
        (
            {"__name__": one.name, **{name: value for name, value in one.labels.items() if value}},
            one.value,
            at_ms,
        )
        for family in families(summary)
        for one in family.samples
    ]


def test_another_reader_finds_every_sample(summary: Summary) -> None:
    """All series of the textfile, with their verdict, at the instant given."""
    at_ms = 1_767_323_045_678
    found = decoded(compressed(write_request(families(summary), at_ms)))
    assert found == expected(summary, at_ms)
    assert {labels["verdict"] for labels, _, _ in found} == {summary.verdict.status}


def test_a_receiver_gets_one_request_with_the_specified_headers(run: ExportedRun, folder: Path) -> None:
    """The command sends it to the URL as it is, with the headers that the specification requires."""
    with scripted(lambda _: Script([b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"])) as peer:
        url = f"http://127.0.0.1:{peer.port}/api/v1/write"
        line = (
            "export",
            str(folder),
            "--format",
            "remote-write",
            "--endpoint",
            url,
            "--header",
            "X-Scope-OrgID: a",
        )
        code, out, _ = finish(*line)
    assert (code, out) == (0, f"{url}: answered 204\n")
    (seen,) = peer.seen
    assert (seen.method, seen.target) == ("POST", "/api/v1/write")
    lines = {name.lower(): value for name, value in seen.headers.items()}
    assert lines["content-encoding"] == "snappy"
    assert lines["content-type"] == "application/x-protobuf"
    assert lines["x-prometheus-remote-write-version"] == "0.1.0"
    assert lines["x-scope-orgid"] == "a"
    assert lines["user-agent"]
    assert decoded(seen.body) == expected(run.summary, period_of(run.summary).end_ns // 1_000_000)
