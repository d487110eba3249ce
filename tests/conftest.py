"""What every test needs: no run may find the certificates of whoever runs the tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from inferometer.calibration.certificate import FOLDER_VARIABLE


@pytest.fixture(autouse=True, scope="session")
def no_certificates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """An empty folder in the place of the user's; processes that a test starts inherit it."""
    before = os.environ.get(FOLDER_VARIABLE)
    os.environ[FOLDER_VARIABLE] = str(tmp_path_factory.mktemp("certificates"))
    yield
    if before is None:
        del os.environ[FOLDER_VARIABLE]
    else:
        os.environ[FOLDER_VARIABLE] = before
