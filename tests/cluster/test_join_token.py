"""The token: only whoever has it, and only with that conductor, gets in; its text is in no message."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.cluster.admission import new_token
from inferometer.cluster.identity import certificate_of
from inferometer.cluster.join_token import SECRET_BYTES, TOKEN_VARIABLE, JoinToken, fingerprint_of, read_token
from inferometer.errors import PlanError

SECRETS = st.binary(min_size=SECRET_BYTES, max_size=SECRET_BYTES)


@given(SECRETS, SECRETS)
def test_a_secret_makes_one_conductor_and_no_other(secret: bytes, different: bytes) -> None:
    """The same certificate each time: a conductor that takes over from a killed one is the same to its hosts."""
    token = JoinToken(secret, fingerprint_of(certificate_of(secret)))
    again = JoinToken.parse(str(token))
    assert again == token
    assert again.is_of(certificate_of(secret))
    assert again.admits(secret)
    assert again.admits(different) == again.is_of(certificate_of(different)) == (secret == different)


def test_two_tokens_have_nothing_in_common() -> None:
    one, other = new_token(), new_token()
    assert not one.admits(other.secret)
    assert one.probe_key() != other.probe_key()


@given(st.text(max_size=100))
def test_what_is_no_token_is_refused_without_being_repeated(text: str) -> None:
    token = str(new_token())
    with pytest.raises(PlanError) as refused:
        JoinToken.parse(token[:-3] + text + "!")
    assert token[:20] not in str(refused.value)


def test_its_secret_is_in_no_representation() -> None:
    token = new_token()
    assert repr(token.secret) not in repr(token)


def test_it_comes_from_a_file_or_the_environment(tmp_path: Path) -> None:
    token = new_token()
    (tmp_path / "token").write_text(f"{token}\n")
    assert read_token(tmp_path / "token", {}) == token
    assert read_token(None, {TOKEN_VARIABLE: str(token)}) == token


@pytest.mark.parametrize("file", [None, Path("/nowhere/token")])
def test_without_one_the_remedy_is_named(file: Path | None) -> None:
    with pytest.raises(PlanError, match=TOKEN_VARIABLE if file is None else "--token-file"):
        read_token(file, {})
