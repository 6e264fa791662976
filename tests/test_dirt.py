"""Dirty data over a run: how much, for how long, and how long the disks need for a flush."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hybridsim import Scenario
from hybridsim.answers.dirt import dirt

ROOT = Path(__file__).parent.parent
SECOND, MIB = 10**9, 1 << 20


def counters(levels, back, name="dirty_data", cleaned="written_back"):
    times = np.arange(len(levels)) * SECOND
    return {"time_ns": times, name: np.array(levels), cleaned: np.array(back)}


def test_percentiles_are_of_the_time():
    """A level counts for as long as it stays; the last sample is the end."""
    one = dirt("bcache", 4096, 4096, counters([0] * 50 + [100] * 49 + [900, 7], [0] * 101))
    assert (one.p50_bytes, one.p99_bytes, one.max_bytes, one.end_bytes) == (0, 100, 900, 7)
    uneven = {"time_ns": np.array([0, 1, 99, 100]), "dirty_data": np.array([5, 8, 3, 3])}
    assert dirt("bcache", 4096, 4096, uneven).p50_bytes == 8


def test_the_stay_is_what_is_held_by_what_leaves():
    """Little's law: a level of 100 bytes from which 10 bytes leave a second holds each for 10 s."""
    steady = counters([0, *[100] * 1000], np.arange(1001) * 10)
    one = dirt("bcache", 4096, 4096, steady)
    assert one.mean_stay_ns == pytest.approx(10 * SECOND, rel=0.01)
    assert one.oldest_ns == 1000 * SECOND
    growing = counters([0, 50, 100], [0, 0, 10])  # hardly anything has left: no average yet
    assert dirt("bcache", 4096, 4096, growing).mean_stay_ns is None


def test_no_mean_stay_is_longer_than_the_oldest_byte():
    """A load ends while as much is dirty as was ever written back: 400 byte seconds, 100 bytes."""
    levels, back = [0, 100, 100, 0, 100, 100, 100], [0, 0, 0, 100, 100, 100, 100]
    one = dirt("bcache", 4096, 4096, counters(levels, back))
    assert one.oldest_ns == 3 * SECOND
    assert one.mean_stay_ns is None


def test_no_byte_is_older_than_the_longest_time_without_a_clean_moment():
    one = dirt("bcache", 4096, 4096, counters([0, 4, 0, 4, 4, 4, 0, 4], [0] * 8))
    assert one.oldest_ns == 3 * SECOND


@pytest.mark.parametrize(
    ("kind", "column", "cleaned", "bytes_of_one", "piece"),
    [
        ("page", "dirty_pages", "cleaned_bytes", 65536, 65536),
        ("dm-cache", "dirty_blocks", "write_backs", 65536, 65536),
        ("bcache", "dirty_data", "written_back", 1, 8192),
        ("open-cas", "dirty", "cleaned_blocks", 4096, 8192),
        ("dm-writecache", "pages_present", "blocks_written_back", 65536, 8192),
    ],
)
def test_each_kind_counts_in_its_own_words(kind, column, cleaned, bytes_of_one, piece):
    """Writes of 5,000 bytes on average: extents are written back in pieces of 8 KiB."""
    one = dirt(kind, 65536, 5000, counters([0, 3, 2], [0, 1, 4], column, cleaned))
    assert one.end_bytes == 2 * bytes_of_one
    assert one.written_back_bytes == 4 * (1 if kind in ("page", "bcache") else bytes_of_one)
    assert one.piece_bytes == piece


def test_without_dirty_data_there_is_nothing_to_report():
    assert dirt("bcache", 4096, 4096, counters([0, 0], [0, 0])) is None
    assert dirt("none", 4096, 4096, counters([1, 1], [0, 0])) is None


PROGRAM = """
import json, sys
from hybridsim import Scenario, Trace, replay
from hybridsim.answers.result import plain
from hybridsim.studies.replay import flush_rate
from hybridsim.show.terminal import write
from hybridsim.studies import runs
runs.MOST = 0  # what is dirty at the end of the load does not depend on what comes after
site = Scenario.default()
one = Scenario.loads('[backing]\\nkind = "single"\\nmembers = 1\\nwrite_cache = "off"\\n')
rates = {
    "none": flush_rate(site, 1 << 40, 100, 4096),
    "sparse": flush_rate(one, 1 << 40, 400 * 4096, 4096),
    "dense": flush_rate(one, 1 << 30, (1 << 30) - 4096, 4096),
    "blocks": flush_rate(one, 1 << 40, 400 << 20, 1 << 20),
}
found = {}
for kind, mode in (("bcache", "write-back"), ("dm-cache", "write-back"), ("page", "write-through"),
                   ("dm-cache", "write-through"), ("open-cas", "write-back")):
    machine = site.with_options(cache=kind, cache_mode=mode, cache_size="8MiB")
    result = replay(Trace.read("gen:zipf,requests=500,span=64MiB,read=30%"), machine)
    document = plain(result.to_dict())
    found[f"{kind} {mode}"] = {each: document[each] for each in ("dirty", "metadata_ram")}
json.dump({"rates": rates, "found": found}, sys.stdout)
"""


@pytest.fixture(scope="module")
def flushed():
    """Flushes and replays, interpreted, as compiling takes longer."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_DISABLE_JIT": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_flush_is_as_fast_as_the_disks_write(flushed):
    """Far-apart pieces cost a seek and a turn each; neighbours are written in one go."""
    rates = flushed["rates"]
    assert rates["none"] is None
    a_second = rates["sparse"] / 4096  # of a disk of 7,200 rpm, in order of address
    assert 60 < a_second < 400
    assert rates["dense"] > 10 * rates["sparse"]
    assert 20 < rates["blocks"] / MIB < Scenario.default().backing.drive.rate_outer / MIB


def test_a_replay_reports_dirty_data_and_ram(flushed):
    found = flushed["found"]
    assert found["page write-through"] == {"dirty": None, "metadata_ram": None}
    assert found["dm-cache write-through"]["dirty"] is None
    assert found["dm-cache write-through"]["metadata_ram"]["size_bytes"] > 24 * 128
    for name in ("bcache write-back", "dm-cache write-back", "open-cas write-back"):
        one = found[name]["dirty"]
        assert 0 < one["p50_bytes"] <= one["p99_bytes"] <= one["max_bytes"]
        expected = one["end_bytes"] / one["flush_bytes_per_s"] * SECOND
        assert one["flush_ns"] == pytest.approx(expected, abs=1)
        assert found[name]["metadata_ram"]["source"]
