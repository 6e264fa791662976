"""Some damaged files of every reader; benchmarks/fuzz.py damages as many as you like.

Those of traces are in test_fuzz_formats.py, where they are read without being traced line by line.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))
from fuzz import Reader, fuzz, readers

SLOW = {"fit": 4}  # a fit of a disk takes a second, traced


NAMES = [name for name in readers() if not name.startswith("trace-")]


@pytest.mark.parametrize("name", NAMES)
def test_damage_ends_in_success_or_in_an_error_with_the_name(name):
    count, _, found = fuzz(name, SLOW.get(name, 25), seed=1)
    assert count > 0
    assert not found


@pytest.mark.parametrize(
    ("raised", "words"), [(KeyError("a"), "KeyError"), (MemoryError(), "MemoryError")]
)
def test_what_is_no_error_of_the_project_is_found(monkeypatch, raised, words):
    def read(path):
        raise raised

    monkeypatch.setattr("fuzz.readers", lambda: {"one": Reader([b"a"], read)})
    assert any(words in each for each in fuzz("one", 3, seed=1)[2])
