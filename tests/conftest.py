"""Fixtures and settings that all tests share."""

import pytest
from desk import furnish
from hypothesis import settings

settings.register_profile("default", deadline=None, max_examples=60)
settings.load_profile("default")


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items):
    """Tests that share a fixture of their module run in one process, so that it is made once."""
    for item in items:
        fixtures = item._fixtureinfo.name2fixturedefs.values()
        if any(each.scope == "module" for found in fixtures for each in found):
            item.add_marker(pytest.mark.xdist_group(item.module.__name__))


@pytest.fixture(scope="session")
def desk(tmp_path_factory):
    """A folder in which the files exist that examples name."""
    folder = tmp_path_factory.mktemp("desk")
    furnish(folder)
    return folder
