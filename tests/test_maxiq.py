"""The figures of Adaptec's MaxIQ guide: benchmarks/maxiq.py, with a part of its longest table."""

from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
MISSED = {  # see benchmarks/RESULTS.md
    "8 GB in its text",  # its command line specifies 16
    "each miss is followed by the fill of its page",  # so the first seconds are slower than disks
}


@pytest.fixture
def maxiq(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import maxiq

    return maxiq


def test_one_set_of_parameters_gives_the_figures_of_all_its_machines(maxiq):
    rows = list(maxiq.rows(quick=True))
    assert {row.row for row in rows} == {"A1", "A2", "A3", "A4", "A5"}
    for row in rows:
        assert row.is_met == (row.note not in MISSED), row


def test_its_systems_differ_only_in_disks_and_host(maxiq):
    names = ("adaptec-maxiq-sata", "adaptec-maxiq-3x-sata", "adaptec-maxiq-8x-sas")
    caches = [maxiq.system(name).cache for name in names]
    assert caches[0] == caches[1] == caches[2]
    assert len({maxiq.system(name).backing.chunk_bytes for name in names}) == 1
