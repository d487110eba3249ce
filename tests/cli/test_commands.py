"""Every command can be called by its name."""

from __future__ import annotations

import pytest
from commands import finish

from inferometer.cli.app import COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str) -> None:
    """`--help` of each command in the table ends well and shows how the command is called."""
    code, stdout, stderr = finish(name, "--help")
    assert (code, stderr) == (0, "")
    assert f"inferometer {name}" in stdout
