"""Hard disks from DiskSim's parameter files: each value by what its manual says of it."""

import subprocess
import sys
import tomllib

import pytest

from hybridsim.foundation.errors import ScenarioError
from hybridsim.storage.devices.hdd_geometry import hdd_parameters
from hybridsim.storage.drives import HardDisk
from hybridsim.storage.drives.disksim import catalog_text, drive

VALUES = {
    "Per-request overhead time": 0.0, "Time scale for overheads": 1.0,
    "Bulk sector transfer time": 0.1, "Number of buffer segments": 3,
    "Maximum number of write segments": 2, "Segment size (in blks)": 64,
    "Low (write) water mark": 0.0, "High (read) water mark": 0.75,
    "Enable caching in buffer": 1, "Buffer continuous read": 3,
    "Maximum read-ahead (blks)": 60, "Read-ahead over requested": 1,
    "Read any free blocks": 0, "Fast write level": 2, "Immediate buffer read": 0,
    "Read hit over. after read": 0.1, "Read hit over. after write": 0.2,
    "Read miss over. after read": 0.3, "Read miss over. after write": 0.4,
    "Write hit over. after read": 0.5, "Write hit over. after write": 0.6,
    "Write miss over. after read": 0.7, "Write miss over. after write": 0.8,
    "Read completion overhead": 0.01, "Write completion overhead": 0.02,
}  # fmt: skip
MODEL = """dm_disk D.model {{
  Number of data surfaces = 2, Number of cylinders = 40, Block count = {blocks}, # of 4200
  Mechanical Model = dm_mech_g1 {{
    {seeks},
    Add. write settling delay = {settle}, Head switch time = 0.2, Rotation speed (in rpms) = 7200
  }},
  Layout Model = dm_layout_g1 {{ Zones = [
    dm_layout_g1_zone {{ First cylinder number = 0, Last cylinder number = 9, Blocks per track = 60,
      Skew for track switch = 5.0, Skew for cylinder switch = 9.0, slips = [ 3, 4 ] }},
    dm_layout_g1_zone {{ First cylinder number = 10, Last cylinder number = 39,
      Blocks per track = 50, Skew for track switch = 4.0, Skew for cylinder switch = 8.0 }}
  ] }}
}}"""
TABLE = "Seek type = extracted, Full seek curve = d.seek"
EQUATION = (
    "Seek type = hplplus10, HPL seek equation values = [ 16, 1.0, 0.5, 2.0, 0.1, -1.0 ],\n"
    "First ten seek times = [ 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2.0 ]"
)


@pytest.fixture
def made(tmp_path):
    """Return a function that writes the files of a disk and reads them."""

    def make(changes=None, seeks=TABLE, settle=0.5, blocks=4200, bus=0.0):
        rows = ",\n".join(f"  {key} = {value}" for key, value in (VALUES | (changes or {})).items())
        path = tmp_path / "d.diskspecs"
        path.write_text(f"# a disk\ndisksim_disk DISK {{\n  Model = source d.model,\n{rows}\n}}\n")
        model = MODEL.format(seeks=seeks, settle=settle, blocks=blocks)
        (tmp_path / "d.model").write_text(model)
        (tmp_path / "d.seek").write_text("Seek distances measured: 2\n1,\t1.5\n39,  9.5\n")
        return drive(path, bus)

    return make


def test_values_become_parameters(made):
    values = made()
    disk = HardDisk.model_validate(values)
    assert disk.zones == [[0, 60, 5, 9], [10, 50, 4, 8]]
    assert disk.seek_table == [[1, 1.5], [39, 9.5]]
    assert (disk.rpm, disk.capacity_bytes, disk.surfaces) == (7200, 4200 * 512, 2)
    parameters = hdd_parameters(disk, disk.capacity_bytes)
    names = ("read_ns", "hit_ns", "write_ns", "write_hit_ns")
    assert [getattr(parameters, name) for name in names] == [310_000, 110_000, 820_000, 620_000]
    assert parameters.after_other_ns == [410_000, 210_000, 720_000, 520_000]
    assert parameters.segment_bytes == 64 * 512
    assert parameters.read_ahead_bytes == 60 * 512
    assert (parameters.read_watermark, parameters.write_watermark) == (75, 0)
    assert (parameters.write_cache_bytes, parameters.write_cache_ranges) == (64 * 512, 2)
    assert parameters.host_ps_per_byte == round(1e12 / 5_120_000)
    assert parameters.reacquire_ns == 0


@pytest.mark.parametrize(
    ("changes", "tracks", "ahead", "whole"),
    [
        ({"Buffer continuous read": 0}, 0, 0, 0),
        ({"Buffer continuous read": 1}, 1, 60, 0),
        ({"Buffer continuous read": 3}, 0, 60, 0),
        ({"Buffer continuous read": 4}, 2, 120, 0),
        ({"Buffer continuous read": 4, "Read any free blocks": 1}, 2, 120, 0),
        ({"Immediate buffer read": 1, "Read any free blocks": 1}, 0, 60, 1),
        ({"Enable caching in buffer": 0}, 0, 0, 0),
    ],
)
def test_the_read_ahead_stops_where_the_file_has_it(made, changes, tracks, ahead, whole):
    disk = HardDisk.model_validate(made(changes))
    parameters = hdd_parameters(disk, disk.capacity_bytes)
    assert parameters.read_stop_tracks == tracks
    assert parameters.read_ahead_bytes == ahead * 512
    assert parameters.read_tracks == whole


def test_without_fast_writes_there_is_no_write_cache(made):
    assert made({"Fast write level": 0})["write_cache"] == "0B"


def test_the_slower_of_disk_and_bus_limits_the_transfer(made):
    assert made(bus=0.2)["interface"] == "2560000B/s"
    assert "interface" not in made({"Bulk sector transfer time": 0.0})


def test_data_given_to_the_host_may_go_at_once(made):
    assert made({"Read-ahead over requested": -1})["read_behind"] == "0B"


def test_cylinders_beyond_the_last_block_are_left_out(made):
    assert made()["cylinders"] == 40
    assert made(blocks=1301)["cylinders"] == 12
    assert made(blocks=1301)["seek_table"] == [[1, 1.5], [11, pytest.approx(1.5 + 80 / 38)]]
    assert made(blocks=600)["zones"] == [[0, 60, 5, 9]]
    with pytest.raises(ScenarioError, match=r"d\.model: the zones have fewer blocks"):
        made(blocks=4201)


def test_seek_times_by_an_equation_become_a_table(made):
    table = made(seeks=EQUATION)["seek_table"]
    assert table[:2] == [[1, 1.1], [2, 1.2]]
    assert [11, pytest.approx(1 + 0.5 * 11**0.5)] in table
    assert [16, pytest.approx(3.6)] in table
    assert table[-1] == [39, pytest.approx(5.9)]


def test_writes_that_settle_faster_than_reads_have_their_own_table(made):
    values = made(settle=-0.5)
    assert values["write_seek_table"] == [[1, 1.0], [39, 9.0]]
    assert "write_settle" not in values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("disk", "not a disk of DiskSim 4.0"),
        ("disksim_disk D {\n Max queue length = 1 }", "no value of 'Model'"),
        ("disksim_disk D {\n Model = dm_disk M {} }", "must be in a file of its own"),
        ("disksim_disk D {\n Model = source none.model, }", "none.model: cannot be read"),
    ],
)
def test_other_files_are_refused_with_the_reason(tmp_path, text, message):
    path = tmp_path / "d.diskspecs"
    path.write_text(text)
    with pytest.raises(ScenarioError, match=message):
        drive(path)


def test_a_value_that_is_no_number_is_named(made):
    with pytest.raises(ScenarioError, match=r"d\.diskspecs: 'Fast write level' is not a number"):
        made({"Fast write level": "much"})
    with pytest.raises(ScenarioError, match=r"seek type 'linear' is not supported"):
        made(seeks="Seek type = linear")


def test_the_command_prints_a_file_of_the_catalog(made, tmp_path):
    values = made()
    rows = tomllib.loads(catalog_text(values))["is"]
    again = HardDisk.model_validate({"kind": "hdd", **{key: row[0] for key, row in rows.items()}})
    assert again == HardDisk.model_validate({**values, "name": again.name})
    command = [sys.executable, "-m", "hybridsim.storage.drives.disksim", tmp_path / "d.diskspecs"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == catalog_text(values)
    bad = subprocess.run([*command[:-1], tmp_path / "none"], capture_output=True, text=True)
    assert bad.returncode == 1
    assert "cannot be read" in bad.stderr
    assert "Traceback" not in bad.stderr
