"""Every command can be called by its name."""

from __future__ import annotations

import os

import pytest
from commands import finish

from inferometer.cli.app import COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str) -> None:
    """`--help` of each command in the table ends well and shows how the command is called."""
    code, stdout, stderr = finish(name, "--help")
    assert (code, stderr) == (0, "")
    assert f"inferometer {name}" in stdout


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("word", [b"runs/\xff\xc3(", b"http://127.0.0.1:1/\xff", b"--out=\xff"])
def test_a_word_whose_bytes_are_no_text_is_refused(name: str, word: bytes) -> None:
    """Law: of every command, by name, whatever the word was to be."""
    code, stdout, stderr = finish(name, os.fsdecode(word))
    assert (code, stdout) == (2, "")
    assert "udcff" in stderr
    assert "holds bytes that are no UTF-8" in stderr
