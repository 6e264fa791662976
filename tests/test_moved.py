"""Import paths of the last release lead to the new ones, with a warning."""

import importlib
import importlib.util
import subprocess
import sys

import pytest

from hybridsim.foundation.moved import MOVED, new_name

OWN_POLICY = """
import warnings
warnings.simplefilter("error")
try:
    import hybridsim.policies
except DeprecationWarning as warning:
    assert "hybridsim.caches.policies" in str(warning), warning
else:
    raise SystemExit("no warning")
warnings.simplefilter("ignore")
import hybridsim.policies.lru
from hybridsim.policies import LRU
import hybridsim.caches.policies.lru as new
assert hybridsim.policies.lru is new and LRU is new.LRU
assert new.__spec__.name == new.__name__ == "hybridsim.caches.policies.lru"
"""


@pytest.mark.parametrize("old", MOVED)
def test_the_old_path_is_the_same_module_as_the_new(old):
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match=old):
        module = importlib.import_module(old)
    assert module is importlib.import_module(MOVED[old])


def test_an_old_path_never_replaces_a_module_of_a_new_path():
    for old in MOVED:
        parent, _, name = old.rpartition(".")
        real = importlib.import_module(new_name(parent) or parent)
        if importlib.util.find_spec(f"{real.__name__}.{name}") and new_name(parent):
            assert MOVED[old] == f"{real.__name__}.{name}", old


def test_a_policy_written_for_the_last_release_still_imports():
    done = subprocess.run([sys.executable, "-c", OWN_POLICY], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_names_that_did_not_move_are_imported_by_python():
    assert new_name("hybridsim.caches.policies") is None
    assert new_name("hybridsim.traces") is None
    assert new_name("numpy") is None
    with pytest.raises(ModuleNotFoundError, match="nothing_of_this_name"):
        importlib.import_module("hybridsim.nothing_of_this_name")
