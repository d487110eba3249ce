"""What every test needs: no run may find the certificates of whoever runs the tests, and no test is about speed."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from inferometer.calibration.certificate import FOLDER_VARIABLE

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


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
