"""Fixtures and settings that all tests share."""

import os

# Before NumPy is imported: threads of its linear algebra spin beside other tests.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import functools
from pathlib import Path

import pytest
from desk import furnish
from hypothesis import settings

settings.register_profile("default", deadline=None, max_examples=60)
settings.load_profile("default")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Return a scheduler that runs a module with a fixture of its own in one process.

    So the fixture is made once, not once in each process.
    """
    from xdist.scheduler import LoadScopeScheduling

    @functools.cache
    def shares(path):
        return 'scope="module"' in (Path(config.rootpath) / path).read_text(encoding="utf-8")

    class Scheduler(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            path = nodeid.partition("::")[0]
            return path if shares(path) else nodeid

    return Scheduler(config, log)


@pytest.fixture(scope="session")
def desk(tmp_path_factory):
    """A folder in which the files exist that examples name."""
    folder = tmp_path_factory.mktemp("desk")
    furnish(folder)
    return folder
