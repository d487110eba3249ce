"""Guardrails: a check of the prompt before the engine sees it, and checks of the answer before the client does.

    input    a request enters the queue input_check + input_check_per_token * prompt tokens after its arrival, or after the
             check before it if that ended later; a share of the requests, drawn, is refused then and gets a fixed answer
    output   an answer is held back until `output_check_tokens` of it are there, or its end; these come out together,
             output_check + output_check_per_token * their number later, or as much after the check before them

Prompts are checked so that none overtakes another. Checks run beside the engine and cost it nothing; with `checks_on_engine`
they are part of its iterations (costs.py), and nothing waits for them here. They can be switched on and off while answers are
under way: then `release` gives what was held back.
"""

from __future__ import annotations

import random
from typing import Generic

from inferometer.server.engine.emission import GOES_ON, REFUSED, K, Tokens
from inferometer.server.engine.settings import Settings


class Guard(Generic[K]):
    """Both checks of one engine."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._checked_at = 0
        self._held: dict[int, tuple[K, int, int]] = {}  # by request: it, the first token held, and how many
        self._released: dict[int, int] = {}  # by request: when its latest check ends

    def checked_at(self, prompt_tokens: int, now: int) -> int:
        """When a prompt that arrives now has been looked at."""
        s = self.settings
        beside = not s.checks_on_engine
        cost = round(s.input_check_ns + s.input_check_per_token_ns * prompt_tokens) if beside else 0
        self._checked_at = max(self._checked_at, now + cost)
        return self._checked_at

    def release(self, now: int) -> list[Tokens[K]]:
        """The checks end at `now`: what was held back for the next ones."""
        self._checked_at = min(self._checked_at, now)
        self._released.clear()
        held = [(key, first, count, GOES_ON) for key, first, count in self._held.values()]
        self._held.clear()
        return held

    def refused(self, key: K, max_tokens: int, draw: random.Random) -> Tokens[K] | None:
        """The answer to a request that is refused; None if it is not."""
        share = self.settings.refusal_share
        if not share or draw.random() >= share:
            return None
        return key, 0, min(self.settings.refusal_tokens, max_tokens), REFUSED

    def hold(self, at: int, tokens: list[Tokens[K]]) -> dict[int, list[Tokens[K]]]:
        """Take in what was generated at `at`: what is to come out, by instant."""
        s = self.settings
        found: dict[int, list[Tokens[K]]] = {}
        for key, index, count, end in tokens:
            _, first, held = self._held.pop(id(key), (key, index, 0))
            held += count
            if held < s.output_check_tokens and end == GOES_ON:
                self._held[id(key)] = key, first, held
                continue
            begins = max(at, self._released.pop(id(key), 0))
            release = begins
            if not s.checks_on_engine:
                release += round(s.output_check_ns + s.output_check_per_token_ns * held)
            if end == GOES_ON:
                self._released[id(key)] = release
            found.setdefault(release, []).append((key, first, held, end))
        return found

    def forget(self, key: K) -> None:
        """A request is gone."""
        self._held.pop(id(key), None)
        self._released.pop(id(key), None)
