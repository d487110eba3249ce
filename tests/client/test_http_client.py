"""The client of all that is not load, against scripted bytes: one deadline, one limit, kept connections, any thread."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from peers import Peer, Script, Seen, scripted, whole

from inferometer.client.http_client import Client, Unanswered

HEADERS = {"Host": "h", "X-Own": "1"}


def client(peer: Peer, **more: object) -> Client:
    """A client of this peer."""
    settings = {"timeout_s": 20.0, **more}
    return Client("127.0.0.1", peer.port, HEADERS, **settings)  # type: ignore[arg-type]  # of one dict


def echo(seen: Seen) -> Script:
    """The request, as JSON."""
    body = {"method": seen.method, "target": seen.target, "headers": seen.headers, "body": seen.body.decode()}
    return Script(whole(200, json.dumps(body).encode()))


def test_a_request_arrives_as_it_was_meant() -> None:
    """h11 reads the method, the base before the path, every header line, and a body's JSON with its length."""
    with scripted(echo) as peer, client(peer, base="/base") as one:
        got = one.get("/x?y=1").json()
        sent = one.send_json("PATCH", "/state", {"a": "\u00e9"}).json()
        empty = one.request("POST", "/go").json()
    assert (got["method"], got["target"]) == ("GET", "/base/x?y=1")
    assert got["headers"] == {"host": "h", "x-own": "1"}
    assert (sent["method"], json.loads(sent["body"])) == ("PATCH", {"a": "\u00e9"})
    assert sent["headers"]["content-type"] == "application/json"
    assert empty["headers"]["content-length"] == "0"


def test_a_body_of_another_kind_is_called_so() -> None:
    """Bytes go as they are, under the Content-Type that the client's headers name."""
    with scripted(echo) as peer:
        headers = {"Host": "h", "Content-Type": "application/x-protobuf"}
        with Client("127.0.0.1", peer.port, headers, timeout_s=20) as one:
            got = one.request("POST", "/v1/metrics", b"\n\x00").json()
    assert got["headers"]["content-type"] == "application/x-protobuf"
    assert got["headers"]["content-length"] == "2"
    assert peer.seen[0].body == b"\n\x00"


def test_a_connection_is_kept_and_a_closed_one_replaced() -> None:
    """Three requests take two connections where the server closes the first after its second answer; none fails."""

    def answer(seen: Seen) -> Script:
        return Script(whole(200, b"{}"), "close" if (seen.connection, seen.place) == (0, 1) else "keep")

    with scripted(answer) as peer, client(peer) as one:
        assert [one.get("/").status for _ in range(3)] == [200] * 3
    assert [seen.connection for seen in peer.seen] == [0, 0, 1]


def test_many_threads_each_get_the_answer_to_their_own_request() -> None:
    """A tokenizer is asked from several threads at once."""
    with scripted(echo) as peer, client(peer) as one, ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda number: one.send_json("POST", "/t", number).json()["body"], range(100))
        )
    assert answers == [str(number) for number in range(100)]
    assert len({seen.connection for seen in peer.seen}) <= 8


def test_any_status_is_a_response_and_a_redirect_is_not_followed() -> None:
    """What a status means is for the caller to say."""
    with (
        scripted(lambda _: Script(whole(302, b"away", b"Location: /elsewhere"))) as peer,
        client(peer) as one,
    ):
        answer = one.get("/")
    assert (answer.status, answer.header(b"location"), answer.text()) == (302, "/elsewhere", "away")
    assert len(peer.seen) == 1


DRIP = Script([b"HTTP/1.1 200 OK\r\n", *[b"X: y\r\n"] * 3], "hang")


@pytest.mark.parametrize(
    ("script", "settings", "reason", "words"),
    [
        (DRIP, {"timeout_s": 0.2}, "timeout", "no answer in time"),
        (Script(whole(200, b"x" * 11)), {"largest": 10}, "too_large", "more than 10 bytes"),
        (Script([b"SSH-2.0\r\n"]), {}, "not_http", "not HTTP"),
        (Script([], "close"), {}, "closed", "closed the connection"),
    ],
)
def test_no_response_has_a_reason_and_words(
    script: Script, settings: dict[str, object], reason: str, words: str
) -> None:
    """The reason is for programs, the words are for people."""
    with (
        scripted(lambda _: script) as peer,
        client(peer, **settings) as one,
        pytest.raises(Unanswered, match=words) as caught,
    ):
        one.get("/")
    assert caught.value.reason == reason


def test_where_nothing_listens_the_reason_is_that() -> None:
    """The system's words come with it."""
    with scripted(echo) as peer:
        pass
    with client(peer) as one, pytest.raises(Unanswered, match="refused") as caught:
        one.get("/")
    assert caught.value.reason == "refused"
