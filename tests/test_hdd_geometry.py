"""A disk geometry derived from a datasheet has its seek times, rates and capacity."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridsim.foundation.errors import ScenarioError
from hybridsim.foundation.machine_parameters import HddParameters
from hybridsim.storage import catalog
from hybridsim.storage.devices.hdd.platters import Platters
from hybridsim.storage.devices.hdd_geometry import TABLE_LENGTH_MAX, hdd_parameters
from hybridsim.storage.drives import HardDisk

ALL_HDDS = catalog.names("hdd")
HDDS = [name for name in ALL_HDDS if "seek_average" in catalog.load(name).rows]  # from datasheets
MEASURED = sorted(set(ALL_HDDS) - set(HDDS))
CAPACITIES = [None, 300 * 10**9, 5 * 10**9, 10**9]


def drive(name: str, **changes: object) -> HardDisk:
    rows = {key: row.value for key, row in catalog.load(name).rows.items()}
    return HardDisk.model_validate({"kind": "hdd", **rows, **changes})


def seek(g: HddParameters, distance):
    return g.move_ns[(distance + (1 << g.seek_shift) - 1) >> g.seek_shift]


@pytest.mark.parametrize("capacity", CAPACITIES)
@pytest.mark.parametrize("name", HDDS)
def test_seek_times_equal_the_datasheet(name, capacity):
    d = drive(name)
    g = hdd_parameters(d, capacity)
    distance = np.arange(1, g.cylinders)
    pairs = 2.0 * (g.cylinders - distance)
    average = (pairs * seek(g, distance)).sum() / pairs.sum()
    assert average == pytest.approx(d.seek_average_ns, rel=0.01)
    assert seek(g, g.cylinders - 1) == d.seek_full_ns
    assert g.move_ns[0] == d.head_switch_ns
    assert np.all(np.diff(g.move_ns[1:]) >= 0)
    assert len(g.move_ns) <= TABLE_LENGTH_MAX


@pytest.mark.parametrize("name", HDDS)
def test_the_single_track_seek_of_the_whole_disk_equals_the_datasheet(name):
    d = drive(name)
    # a coarse table gives several cylinders the time of the farthest
    assert seek(hdd_parameters(d), 1) == pytest.approx(d.seek_track_ns, rel=0.1)


@pytest.mark.parametrize("name", HDDS)
def test_a_reduced_capacity_keeps_the_full_stroke_time(name):
    d = drive(name)
    whole, part = hdd_parameters(d), hdd_parameters(d, 20 * 10**9)
    for share in (0.01, 0.1, 0.5, 0.9):
        far, near = share * (whole.cylinders - 1), share * (part.cylinders - 1)
        assert seek(part, round(near)) == pytest.approx(seek(whole, round(far)), rel=0.02)


@pytest.mark.parametrize("capacity", CAPACITIES)
@pytest.mark.parametrize("name", HDDS)
def test_sequential_rates_equal_the_datasheet(name, capacity):
    d = drive(name)
    g = hdd_parameters(d, capacity)
    rates = g.zone_track_bytes * 1e9 / (g.rev_ns + g.zone_skew_ns)
    assert rates[0] == pytest.approx(d.rate_outer, rel=0.01)
    assert rates[-1] == pytest.approx(d.rate_inner, rel=0.01)
    assert np.all(np.diff(g.zone_track_bytes) <= 0)
    assert np.all(g.zone_track_bytes % 512 == 0)


@pytest.mark.parametrize("name", HDDS)
def test_skew_covers_the_switch_to_the_next_track(name):
    d = drive(name)
    g = hdd_parameters(d)
    skew_ns = g.zone_skew_ns.min()
    assert skew_ns >= d.head_switch_ns
    assert d.skew_ns is not None or skew_ns >= d.seek_track_ns
    assert skew_ns < g.rev_ns
    assert not g.zone_cylinder_skew_ns.any()


@given(st.sampled_from(ALL_HDDS), st.integers(512, 10**14))
def test_every_byte_has_exactly_one_position(name, capacity):
    g = hdd_parameters(drive(name), capacity)
    assert g.zone_byte[0] == g.zone_track[0] == 0
    assert g.zone_byte[-1] == g.capacity_bytes == capacity
    assert len(g.zone_byte) - 1 == len(g.zone_track) == len(g.zone_track_bytes)
    assert np.all(np.diff(g.zone_byte) > 0)
    assert np.all(g.zone_track % g.surfaces == 0)
    # a zone ends before the next one begins; without unused tracks, exactly there
    tracks, cut = np.divmod(np.diff(g.zone_byte), g.zone_track_bytes)
    assert np.all(g.zone_track[:-1] + tracks[:-1] + (cut[:-1] > 0) <= g.zone_track[1:])
    last_track = g.zone_track[-1] + (capacity - 1 - g.zone_byte[-2]) // g.zone_track_bytes[-1]
    assert last_track // g.surfaces < g.cylinders
    assert len(g.move_ns) > (g.cylinders - 1 + (1 << g.seek_shift) - 1) >> g.seek_shift
    if name in HDDS:
        assert np.all(cut[:-1] == 0)
        assert np.array_equal(g.zone_track[:-1] + tracks[:-1], g.zone_track[1:])
        assert last_track // g.surfaces == g.cylinders - 1
        assert seek(g, g.cylinders - 1) <= drive(name).seek_full_ns


@pytest.mark.parametrize("name", MEASURED)
def test_a_measured_disk_has_its_measured_geometry(name):
    d = drive(name)
    g = hdd_parameters(d)
    assert g.surfaces == d.surfaces
    if d.zones is not None and catalog.load(name).rows["zones"].mark == "measured":
        assert g.cylinders == d.cylinders
        assert g.zone_track.tolist() == [zone[0] * d.surfaces for zone in d.zones]
        assert (g.zone_track_bytes // 512).tolist() == [zone[1] for zone in d.zones]
        skew_ns = d.zones[0][2] / d.zones[0][1] * d.rev_ns
        assert g.zone_skew_ns[0] == pytest.approx(skew_ns, abs=1)
    for distance, ms in d.seek_table or []:
        assert seek(g, int(distance)) == pytest.approx(ms * 1e6, rel=0.01)
    if d.seek_fit is not None:
        a, b, split, c, e = d.seek_fit
        scale = (d.cylinders - 1) / (g.cylinders - 1)  # cylinders by the table, by the zones
        near, far = int(split / 4), int(split * 1.2)
        assert seek(g, round(near / scale)) == pytest.approx((a + b * near**0.5) * 1e6, rel=0.01)
        assert seek(g, round(far / scale)) == pytest.approx((c + e * far) * 1e6, rel=0.01)


@pytest.mark.parametrize("name", ["seagate-cheetah-15k5", "hgst-ultrastar-7k8"])
def test_a_short_stroke_keeps_the_seek_times_of_outer_cylinders(name):
    d = drive(name)
    whole = hdd_parameters(d)
    outer = hdd_parameters(d, d.capacity_bytes // 10, short_stroke=True)
    assert outer.capacity_bytes == d.capacity_bytes // 10
    assert np.array_equal(outer.zone_track_bytes, whole.zone_track_bytes)
    assert np.array_equal(outer.move_ns, whole.move_ns)
    assert outer.zone_byte[-1] == d.capacity_bytes
    with pytest.raises(ScenarioError, match="do not fit on a disk of"):
        hdd_parameters(d, d.capacity_bytes + 1, short_stroke=True)


def test_writes_may_have_their_own_seek_table():
    settling = drive("seagate-cheetah-9lp")
    g = hdd_parameters(settling)
    assert np.all(g.write_move_ns == g.move_ns + settling.write_settle_ns)
    own = drive("seagate-cheetah-9lp", write_seek_table=[[1, 2.0], [6878, 12.0]])
    assert hdd_parameters(own).write_move_ns[1] == 2_000_000
    assert hdd_parameters(own).write_move_ns[-1] == 12_000_000


def test_the_geometry_equals_a_calculation_by_hand():
    d = drive("seagate-cheetah-15k7")
    g = hdd_parameters(d)
    assert g.rev_ns == 4_000_000
    assert set(g.zone_skew_ns) == {400_000}
    assert g.zone_track_bytes[0] == 1753 * 512  # 204 MB/s * 4.4 ms = 897,600, in sectors
    assert set(g.write_move_ns - g.move_ns) == {500_000}
    assert len(g.zone_track) == 16


def test_impossible_seek_times_are_refused():
    with pytest.raises(ValueError, match=r"the average must be between 2.47ms and 5.19ms"):
        drive("seagate-cheetah-15k7", seek_average="1ms")
    with pytest.raises(ValueError, match="inner tracks are shorter"):
        drive("seagate-cheetah-15k7", rate_inner="1GB/s")
    with pytest.raises(ValueError, match="shorter than a revolution"):
        drive("seagate-cheetah-15k7", head_switch="4ms")
    with pytest.raises(ValueError, match="specify the arm in exactly one way"):
        drive("seagate-cheetah-15k7", seek_table=[[1, 0.5], [1000, 7.0]])
    with pytest.raises(ValueError, match="distances rising from 1"):
        drive("seagate-cheetah-15k5", seek_table=[[5, 0.5], [4, 0.6]])
    with pytest.raises(ValueError, match="needs cylinders"):
        drive("maxtor-atlas-10k5", cylinders=None)
    with pytest.raises(ValueError, match="first cylinders rising from 0"):
        drive("seagate-cheetah-9lp", zones=[[1, 200, 20, 30]])
    with pytest.raises(ScenarioError, match="capacity above 0 bytes"):
        hdd_parameters(drive("seagate-cheetah-15k7"), 0)


def test_the_tracks_of_a_disk_in_motion_are_those_of_its_geometry():
    """Two zones of tracks of 1000 and 600 bytes; the second one begins within a track."""
    disk = replace(
        hdd_parameters(drive("seagate-cheetah-9lp")), surfaces=2, capacity_bytes=5300,
        zone_track=[0, 4], zone_track_bytes=[1000, 600], zone_byte=[0, 3500],
    )  # fmt: skip
    disk = Platters.new(disk)
    bytes_and_tracks = {
        0: (0, 0, 1000), 999: (0, 0, 1000), 1000: (1, 1000, 2000), 3400: (3, 3000, 4000),
        3500: (4, 3500, 4100), 4099: (4, 3500, 4100), 4100: (5, 4100, 4700), 5299: (6, 4700, 5300),
    }  # fmt: skip
    for byte, known in bytes_and_tracks.items():
        assert (disk.track_of(byte), disk.track_start(byte), disk.track_end(byte)) == known
