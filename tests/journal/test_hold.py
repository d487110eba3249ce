"""Who may seal a journal: nobody, while a worker lives that writes to it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from inferometer.errors import RecordError
from inferometer.journal import hold


def test_a_journal_is_sealed_from_outside_only_once_all_who_write_to_it_have_ended(tmp_path: Path) -> None:
    """Law: workers hold it together; whoever wants it alone is refused until the last of them is gone. `recover` of a run that
    was going removed its journal, and 4,000 measured requests with it."""
    first, second = hold.join(tmp_path), hold.join(tmp_path)
    for ending in (first, second):
        with pytest.raises(RecordError, match="under way"), hold.alone(tmp_path, patience_s=0):
            pytest.fail("it was not alone")
        os.close(ending)
    with hold.alone(tmp_path, patience_s=0):
        pass
    os.close(hold.join(tmp_path))
