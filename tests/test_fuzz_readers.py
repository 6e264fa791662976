"""Some damaged files of every reader; benchmarks/fuzz.py runs any number of them.

Traces are in test_fuzz_formats.py, where the reader runs without line tracing.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))
from fuzz import Reader, fuzz, readers

SLOW = {"fit": 4}  # a fit of a disk takes a second, traced


NAMES = [name for name in readers() if not name.startswith("trace-")]


@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_file_is_read_or_refused_with_its_name(name):
    count, _, failures = fuzz(name, SLOW.get(name, 25), seed=1)
    assert count > 0
    assert not failures


@pytest.mark.parametrize(
    ("raised", "words"), [(KeyError("a"), "KeyError"), (MemoryError(), "MemoryError")]
)
def test_the_fuzzer_reports_exceptions_that_are_not_the_projects(monkeypatch, raised, words):
    def read(path):
        raise raised

    monkeypatch.setattr("fuzz.readers", lambda: {"one": Reader([b"a"], read)})
    assert any(words in each for each in fuzz("one", 3, seed=1)[2])
