"""Checks of token counts, prompt lengths and cache hits, on a whole run of which one thing is changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from inferometer.documents.workload import LearnedRatio, TokenizerFacts
from inferometer.journal.schema import EventClass
from inferometer.judge.judge import judge
from inferometer.judge.verdict import Check
from inferometer.measure.lengths import Probed
from inferometer.measure.measurement import measure

MS = 1_000_000

NATIVE = {"tokenizer": {"method": "native"}, "workload": {"count_template": False}}


def test_a_template_that_every_prompt_begins_with_is_no_unexpected_hit(run: Any) -> None:
    """Law: with the model's own tokenizer the constant part of the prompts may be cached; a token more in each may not."""
    columns = {"usage_input": lambda v: v * 0 + 110, "plan": NATIVE}  # 100 sent and a template of 10
    assert judge(*run(usage_cached=lambda v: v + 10, **columns)).check("cache_hits").value == 0.0
    beyond = judge(*run(usage_cached=lambda v: v + 21, **columns)).check("cache_hits")
    assert beyond.status == "fail"
    assert beyond.value == pytest.approx(0.1)


@pytest.mark.parametrize(("greeting", "status"), [(None, "pass"), (11, "fail"), (92, "pass"), (90, "fail")])
def test_what_is_cached_beyond_the_probes_greeting_is_no_template(
    run: Any, greeting: int | None, status: str
) -> None:
    """Law: by a reference tokenizer 100 constant tokens may be a template's, unless the server counted fewer, nine digits of a
    nonce apart, for a greeting with its template."""
    plan, _, record = run(usage_input=lambda v: v * 0 + 300, usage_cached=lambda v: v + 100)
    measurement = measure(plan, record, probed=Probed(greeting=greeting))
    check = judge(plan, measurement, record).check("cache_hits")
    assert check.status == status
    assert check.value == pytest.approx(1 / 3 if status == "fail" else 0.0)


@pytest.mark.parametrize(
    ("n", "beyond", "status"),
    [(1200, 1.0, "pass"), (1200, 4.0, "fail"), (15, 4.0, "unsure"), (15, 40.0, "fail")],
)
def test_a_mean_length_that_so_few_prompts_may_have_by_chance_is_undecided(
    run: Any, n: int, beyond: float, status: str
) -> None:
    """Law: prompts by a learned ratio scatter by a tenth around 100 tokens; 4 more in the mean are a miss of 1,200, and may be
    luck of 15."""
    rng = np.random.default_rng(3)
    scatter = rng.normal(0, 10, n)
    counted = np.rint(100 + beyond + scatter - scatter.mean())
    plan, _, record = run(n=n, warm=0, usage_input=counted)
    measurement = measure(plan, record, probed=Probed(template=0.0))
    check = judge(plan, measurement, record).check("prompt_length")
    assert (check.status, check.facts["judged_by"]) == (status, "mean")


@pytest.mark.parametrize(("beyond", "reason"), [(1.0, "dispute"), (4.0, "dispute"), (40.0, "mean")])
def test_a_disputed_count_is_the_reason_whatever_chance_explains(
    run: Any, beyond: float, reason: str
) -> None:
    """Law: where a server's /tokenize contradicts its usage, no mean of usage near the requested one decides, and more prompts
    would not: only a miss that is no luck is one by usage as well."""
    scatter = np.random.default_rng(3).normal(0, 10, 15)
    plan, _, record = run(n=15, warm=0, usage_input=np.rint(100 + beyond + scatter - scatter.mean()))
    measurement = measure(plan, record, probed=Probed(template=0.0))
    learned = LearnedRatio(1.0, 0.99, 1.01, 3, 0, 5, 3000, disputed=2.0)
    check = judge(plan, measurement, record, tokenizer=TokenizerFacts(learned=learned)).check("prompt_length")
    assert (check.status, check.facts["judged_by"]) == ("fail" if reason == "mean" else "unsure", reason)


@pytest.mark.parametrize(("kept", "status"), [(4, "pass"), (1, "fail"), (2, "fail")])
def test_a_server_that_forgets_earlier_turns_is_found_with_a_learned_ratio_too(
    run: Any, kept: int, status: str
) -> None:
    """Law: of conversations of four turns, a server that reads the last message, or the last two and the reply between, counts
    hardly more tokens for longer prompts; one that reads all of them, with tokens of its template around each, does."""
    turn = np.arange(1300) % 4
    sent = 60 * (turn + 1) + 16 * turn
    last = np.minimum(turn, kept - 1)
    columns = {
        "turn": turn,
        "turns": np.full(1300, 4),
        "session": np.arange(1300) // 4,
        "input_tokens_asked": sent,
        "input_tokens_sent": sent,
        "usage_input": 60 * (last + 1) + 16 * last + 9 + 5 * last,
    }
    plan, _, record = run(**columns)
    measurement = measure(plan, record, probed=Probed(template=9.0))
    assert judge(plan, measurement, record).check("prompt_length").status == status


def test_of_a_conversations_template_a_hit_holds_what_stands_in_front_of_its_end(run: Any) -> None:
    """Law: 10 tokens around one message and 10 around the next: a hit of half a second turn has 10 + 5 of them, not all."""
    turn = np.tile([0, 1], 650)
    columns = {
        "turn": turn,
        "turns": np.full(1300, 2),
        "session": np.arange(1300) // 2,
        "usage_input": 110 + 10 * turn,
        "usage_cached": np.where(turn, 60, 10),
    }
    _, measurement, _ = run(plan=NATIVE, **columns)
    assert measurement.throughput.cached_beyond_template == pytest.approx(45 / (110 + 120))


def test_texts_that_lost_characters_do_not_witness_against_the_server(run: Any) -> None:
    """Law: a text with U+FFFD re-encodes to any number of tokens; without it the tokenizer's count convicts."""
    counts = {"usage_output": lambda v: v + 4, "plan": NATIVE}
    assert judge(*run(**counts)).check("token_counts").status == "fail"
    lossy = judge(*run(text=lambda v: ["\ufffd"] * len(v), **counts)).check("token_counts")
    assert lossy.status == "unsure"


def test_a_count_between_events_and_tokens_of_the_text_agrees_with_both(run: Any) -> None:
    """Law: merged events are too few and a re-encoded text may be too many; between the two nothing contradicts."""
    between = {"usage_output": lambda v: v + 2, "output_tokens_local": lambda v: v + 4, "plan": NATIVE}
    check = judge(*run(**between)).check("token_counts")
    assert (check.status, check.facts["against"]) == ("pass", "both")


def test_a_text_of_more_words_than_tokens_contradicts_a_server_that_agrees_with_events(run: Any) -> None:
    """Law: no tokenizer makes one token of two words, so events of several words are no tokens, whatever usage says: the count
    is unsure, streamed or not, and gaps are times between chunks. Characters that nobody sees are no words."""
    crowded = {"text": lambda v: ["two words " * 4] * len(v)}
    for stream in (True, False):
        plan = {"target": {"stream": stream}}
        check = judge(*run(**crowded, plan=plan)).check("token_counts")
        assert (check.status, check.facts["against"], check.value) == ("unsure", "words", 1.0)
    assert judge(*run(**crowded)).check("tokens_per_event").facts["method"] == "chunk"
    unseen = judge(*run(text=lambda v: ["three words here \u200b \u200b \u200b"] * len(v)))
    assert unseen.check("token_counts").status == "pass"


def test_counts_that_are_wrong_in_turns_are_wrong(run: Any) -> None:
    """Law: of answers that end by themselves one is counted twice as long, the next as much too short: no sum shows it, each
    figure per token does. A token more or less in turns is what encoding again may make."""
    free = {"plan": {"workload": {"ignore_eos": False}}, "output_tokens_asked": lambda v: v * 4}

    def alternating(by: float) -> Any:
        return lambda v: v + by * np.where(np.arange(len(v)) % 2, 1, -1)

    wrong = judge(*run(usage_output=alternating(3), **free)).check("token_counts")
    assert wrong.status == "fail"
    assert judge(*run(usage_output=alternating(1), **free)).check("token_counts").status == "pass"


def test_tokens_sent_in_parts_that_are_counted_contradict_the_models_own_tokenizer(run: Any) -> None:
    """Law: a server that sends each token as several events and counts those agrees with the events, not with the text."""
    check = judge(*run(output_tokens_local=lambda v: v // 3, plan=NATIVE)).check("token_counts")
    assert (check.status, check.facts["against"]) == ("unsure", "parts")


@pytest.mark.parametrize(("share", "status"), [(0.04, "pass"), (0.1, "unsure")])
def test_answers_that_nobody_counted_are_no_counted_ones(run: Any, share: float, status: str) -> None:
    """Law: where more than a twentieth of the answers has neither usage nor a tokenizer's count, figures per token rest on
    characters, whatever the other answers say."""

    def some(values: Any) -> list[int | None]:
        return [None if at < share * len(values) else int(one) for at, one in enumerate(values)]

    columns = {"usage_output": some, "output_tokens_local": lambda v: [None] * len(v), "warm": 0}
    check = judge(*run(**columns)).check("token_counts")
    assert check.status == status
    assert check.facts.get("against") == ("estimate" if status == "unsure" else "events")


def test_whole_answers_have_no_events_to_contradict_the_servers_count(run: Any) -> None:
    """Law: of answers that were not streamed only the model's own tokenizer, or their words, can contradict usage."""
    whole = {"target": {"stream": False}}
    events = {
        "event_ns": lambda v: [times[-1:] for times in v],
        "event_class": lambda v: [bytes([EventClass.CONTENT])] * len(v),
        **{name: lambda v: v * 0 for name in ("first_text", "first_visible", "first_answer")},
    }
    assert judge(*run(plan=whole, **events)).check("token_counts").status == "note"
    assert judge(*run(plan=whole | NATIVE, **events)).check("token_counts").status == "pass"


def test_twice_the_tokens_by_the_models_own_tokenizer_contradict_usage_and_events(run: Any) -> None:
    """Law: encoding again may add tokens, but hardly double them; another model's tokenizer may."""
    changes = {"text": lambda v: ["\u6f22"] * len(v), "output_tokens_local": lambda v: 3 * v}
    check = judge(*run(**changes, plan=NATIVE)).check("token_counts")
    assert (check.status, check.facts["against"], check.value) == ("unsure", "encoded", 2.0)
    assert judge(*run(**changes)).check("token_counts").status == "pass"


def test_text_held_back_counts_as_a_token_of_its_own_event(run: Any) -> None:
    """Law: deltas without text, one a token, let event and usage counts agree where the text has characters of several bytes,
    or has lost some; in a text of single bytes they are padding."""
    kinds = bytes(
        [EventClass.ROLE, EventClass.CONTENT, EventClass.EMPTY, EventClass.CONTENT, EventClass.EMPTY]
    )

    def counted(text: str) -> Check:
        changes = {"event_class": lambda v: [kinds] * len(v), "text": lambda v: [text] * len(v)}
        return judge(*run(**changes)).check("token_counts")

    for text in ("\u2764\u00e9", "\ufffd word"):
        assert (counted(text).status, counted(text).facts["against"]) == ("pass", "events")
    assert counted("some words").status == "unsure"


def test_without_usage_no_sums_are_told(run: Any) -> None:
    """Law: sums are those of answers that have both counts; of none they would say that the client saw no events."""
    check = judge(*run(usage_output=lambda v: [None] * len(v))).check("token_counts")
    assert (check.status, check.value) == ("unsure", None)
    assert {"server", "events", "tokenizer", "words"}.isdisjoint(check.facts)


@pytest.mark.parametrize(("api", "status"), [("completions", "unsure"), ("vllm-grpc", "pass")])
@pytest.mark.parametrize("stream", [True, False])
def test_token_ids_are_counted_by_the_client(run: Any, api: str, status: str, stream: bool) -> None:
    """Law: several tokens in an event are the server's word where it counts them, and the client's own count where they come
    as ids, streamed or not: an engine that makes several in a step can be measured."""
    plan = {"target": {"url": "http://h", "model": "m", "api": api, "stream": stream}}
    check = judge(*run(usage_output=lambda v: v * 2, plan=plan)).check("token_counts")
    assert check.status == (status if stream or status == "pass" else "note")
    assert (check.facts.get("against") == "ids") == (api == "vllm-grpc")
