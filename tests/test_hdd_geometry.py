"""A disk laid out from its datasheet has the datasheet's seek times, rates and capacity."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridsim import catalog
from hybridsim.devices.hdd_geometry import TABLE_LENGTH_MAX, Geometry, geometry
from hybridsim.drives import HardDisk
from hybridsim.errors import ScenarioError

HDDS = catalog.names("hdd")
CAPACITIES = [None, 300 * 10**9, 5 * 10**9, 10**9]


def drive(name: str, **changes: object) -> HardDisk:
    rows = {key: row.value for key, row in catalog.load(name).rows.items()}
    return HardDisk.model_validate({"kind": "hdd", **rows, **changes})


def seek(g: Geometry, distance):
    return g.seek_ns[(distance + (1 << g.seek_shift) - 1) >> g.seek_shift]


@pytest.mark.parametrize("capacity", CAPACITIES)
@pytest.mark.parametrize("name", HDDS)
def test_seek_times_are_the_datasheets(name, capacity):
    d = drive(name)
    g = geometry(d, capacity)
    distance = np.arange(1, g.cylinders)
    pairs = 2.0 * (g.cylinders - distance)
    average = (pairs * seek(g, distance)).sum() / pairs.sum()
    assert average == pytest.approx(d.seek_average_ns, rel=0.01)
    assert seek(g, g.cylinders - 1) == d.seek_full_ns
    assert g.seek_ns[0] == 0
    assert np.all(np.diff(g.seek_ns) >= 0)
    assert len(g.seek_ns) <= TABLE_LENGTH_MAX


@pytest.mark.parametrize("name", HDDS)
def test_one_track_of_the_whole_disk_is_the_datasheets(name):
    d = drive(name)
    # a coarse table gives a few cylinders one time, that of the farthest
    assert seek(geometry(d), 1) == pytest.approx(d.seek_track_ns, rel=0.1)


@pytest.mark.parametrize("name", HDDS)
def test_a_shrunken_disk_keeps_its_stroke(name):
    d = drive(name)
    whole, part = geometry(d), geometry(d, 20 * 10**9)
    for share in (0.01, 0.1, 0.5, 0.9):
        far, near = share * (whole.cylinders - 1), share * (part.cylinders - 1)
        assert seek(part, round(near)) == pytest.approx(seek(whole, round(far)), rel=0.02)


@pytest.mark.parametrize("capacity", CAPACITIES)
@pytest.mark.parametrize("name", HDDS)
def test_sequential_rates_are_the_datasheets(name, capacity):
    d = drive(name)
    g = geometry(d, capacity)
    rates = g.zone_track_bytes * 1e9 / (g.rev_ns + g.skew_ns)
    assert rates[0] == pytest.approx(d.rate_outer, rel=0.01)
    assert rates[-1] == pytest.approx(d.rate_inner, rel=0.01)
    assert np.all(np.diff(g.zone_track_bytes) <= 0)
    assert np.all(g.zone_track_bytes % 512 == 0)


@pytest.mark.parametrize("name", HDDS)
def test_the_next_track_is_reached_in_time(name):
    d = drive(name)
    g = geometry(d)
    assert g.skew_ns >= g.head_switch_ns
    assert g.skew_ns >= d.seek_track_ns
    assert g.skew_ns < g.rev_ns


@given(st.sampled_from(HDDS), st.integers(512, 10**14))
def test_every_byte_has_one_place(name, capacity):
    g = geometry(drive(name), capacity)
    assert g.zone_byte[0] == g.zone_track[0] == 0
    assert g.zone_byte[-1] == g.capacity_bytes == capacity
    assert len(g.zone_byte) - 1 == len(g.zone_track) == len(g.zone_track_bytes)
    assert np.all(np.diff(g.zone_byte) > 0)
    assert np.all(g.zone_track % g.surfaces == 0)
    # zones fill whole tracks, and end where the next begins
    tracks, cut = np.divmod(np.diff(g.zone_byte), g.zone_track_bytes)
    assert np.all(cut[:-1] == 0)
    assert np.array_equal(g.zone_track[:-1] + tracks[:-1], g.zone_track[1:])
    last_track = g.zone_track[-1] + (capacity - 1 - g.zone_byte[-2]) // g.zone_track_bytes[-1]
    assert last_track // g.surfaces == g.cylinders - 1
    assert seek(g, g.cylinders - 1) <= drive(name).seek_full_ns


def test_arithmetic_by_hand():
    d = drive("seagate-cheetah-15k7")
    g = geometry(d)
    assert g.rev_ns == 4_000_000
    assert g.skew_ns == 400_000
    assert g.zone_track_bytes[0] == 1753 * 512  # 204 MB/s * 4.4 ms = 897,600, in sectors
    assert g.settle_ns == 500_000
    assert len(g.zone_track) == 16


def test_impossible_arms_are_refused():
    with pytest.raises(ValueError, match=r"the average lies between 2.47ms and 5.19ms"):
        drive("seagate-cheetah-15k7", seek_average="1ms")
    with pytest.raises(ValueError, match="inner tracks are shorter"):
        drive("seagate-cheetah-15k7", rate_inner="1GB/s")
    with pytest.raises(ValueError, match="shorter than a revolution"):
        drive("seagate-cheetah-15k7", head_switch="4ms")
    with pytest.raises(ScenarioError, match="capacity above 0 bytes"):
        geometry(drive("seagate-cheetah-15k7"), 0)
