"""What compare reads of samples of Open CAS and dm-writecache."""

import re

import pytest

from hybridsim.answers.measurements import gather
from hybridsim.answers.measurements.samples import OpenCas, Writecache
from hybridsim.foundation.errors import MeasurementError
from hybridsim.foundation.levels import LEVELS

HEADER = (
    "Uptime,Core Id,Core Device,Occupancy [4KiB Blocks],Occupancy [%],Dirty [4KiB Blocks],"
    "Read hits [Requests],Read hits [%],Pass-Through reads [Requests],"
    "Writes to core [4KiB Blocks],Cleaner core writes [4KiB Blocks]"
)
CAS = f"{HEADER}\n7.79,1,/dev/vda,1,0.0,0,5,0.0,2,8,3\n8.04,1,/dev/vda,12,0.1,4,9,0.2,2,16,7\n"
STATUS = (
    "5.59 0 4194304 writecache 0 16320 16320 0 0 0 0 0 0 0 0 0 0 0\n"
    "6.05 0 4194304 writecache 0 16320 16300 3 9 8 7 6 5 4 2 1 11 12\n"
)


def gathered(folder, name, text):
    (folder / name).write_text(text)
    return gather(str(folder / name))


def test_samples_of_casadm_give_the_counters_of_the_simulation():
    result = OpenCas().read("cas-stats.csv", CAS)
    assert {name: list(samples.value) for name, samples in result.counters.items()} == {
        "occupancy": [1, 12],
        "dirty": [0, 4],
        "read_hits": [5, 9],
        "pass_through_reads": [2, 2],
        "writes_to_core": [8, 16],
        "cleaned_blocks": [3, 7],
    }
    assert list(result.counters["dirty"].time_ns) == [7_790_000_000, 8_040_000_000]
    assert LEVELS & result.counters.keys() == {"occupancy", "dirty"}


def test_samples_of_a_writecache_give_its_status_fields_in_order():
    result = Writecache().read("writecache-status.log", STATUS)
    last = {name: samples.value[-1] for name, samples in result.counters.items()}
    assert last == {
        "free_blocks": 16300, "blocks_under_writeback": 3, "reads": 9, "read_hits": 8,
        "writes": 7, "write_hits_uncommitted": 6, "write_hits_committed": 5, "writes_around": 4,
        "writes_allocated": 2, "writes_blocked": 1, "flushes": 11, "discards": 12,
    }  # fmt: skip
    assert LEVELS & result.counters.keys() == {"free_blocks", "blocks_under_writeback"}


@pytest.mark.parametrize(("text", "name"), [(CAS, "read_hits"), (STATUS, "writes_allocated")])
def test_they_are_found_among_the_files_of_a_run(text, name, tmp_path):
    assert name in gathered(tmp_path, "samples", text).counters


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{CAS}9.0,1,/dev/vda,x,0,0,0,0,0,0,0\n", "cas-stats:4: not a line of uptime"),
        (f"{CAS}9.0,1,/dev/vda\n", "cas-stats:4: not a line of uptime"),
        (f"{HEADER}\n", "cas-stats: no samples below the header"),
        (f"{STATUS}7.0 0 4194304 writecache Error\n", "cas-stats:3: not a line of uptime"),
    ],
)
def test_a_line_that_is_none_is_refused_with_its_place(text, message, tmp_path):
    with pytest.raises(MeasurementError, match=re.escape(message)):
        gathered(tmp_path, "cas-stats", text)
