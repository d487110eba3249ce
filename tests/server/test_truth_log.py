"""The truth log's memory."""

from __future__ import annotations

import json

from inferometer.server.truth_log import Entry, TruthLog


def entry(name: str, tokens: int) -> Entry:
    made = Entry(name, None, "chat", True, 5, tokens, 1)
    made.model_ns.extend(range(tokens))
    made.sent_ns.extend(range(tokens))
    made.ended.append(9)
    made.outcome = "finished"
    return made


def names(log: TruthLog) -> list[str]:
    return [json.loads(line)["id"] for line in log.json_lines().splitlines()]


def test_the_oldest_are_forgotten_when_the_log_is_full() -> None:
    """Memory is bounded by tokens (a row counts as 64 more), and the number forgotten is told."""
    log = TruthLog(token_limit=3 * (64 + 100))
    for number in range(5):
        log.add(entry(str(number), 100))
    assert names(log) == ["2", "3", "4"]
    assert log.forgotten == 2


def test_rows_without_tokens_are_bounded_too() -> None:
    """A million cancelled requests hold no more than the limit."""
    log = TruthLog(token_limit=640)
    for number in range(100):
        log.add(entry(str(number), 0))
    assert len(names(log)) == 10


def test_the_newest_stays_even_if_it_is_larger_than_the_log() -> None:
    """One answer is always worth having."""
    log = TruthLog(token_limit=10)
    log.add(entry("a", 5))
    log.add(entry("b", 1_000))
    assert names(log) == ["b"]


def test_after_a_reset_the_log_is_as_new() -> None:
    """Entries, the account of their size and the count of those forgotten are gone."""
    log = TruthLog(token_limit=200)
    for number in range(3):
        log.add(entry(str(number), 100))
    log.reset()
    assert (names(log), log.forgotten) == ([], 0)
    log.add(entry("new", 100))
    assert (names(log), log.forgotten) == (["new"], 0)
