"""Fixtures and settings that all tests share."""

import pytest
from desk import furnish
from hypothesis import settings

settings.register_profile("default", deadline=None, max_examples=60)
settings.load_profile("default")


@pytest.fixture(scope="session")
def desk(tmp_path_factory):
    """A folder in which the files exist that examples name."""
    folder = tmp_path_factory.mktemp("desk")
    furnish(folder)
    return folder
