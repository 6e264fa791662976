"""From the data of a disk to the integers that `DESIGN.md` 2.6 computes with.

If a disk's zones are specified, they are used; the space of spare sectors is left at the end of
each zone.  Else the platters are 16 zones whose rates fall in even steps from the outer to the
inner one: a sequential read takes one revolution and one skew per track, so that a track of
`rate * (rev + skew)` bytes gives the datasheet's sustained rate.

An arm is described by a table of measured times, which is interpolated; by two pieces, a + b
sqrt(d) up to some distance and c + e d beyond it (Ruemmler and Wilkes, "An introduction to disk
drive modeling", 1994); or by a datasheet's times for track to track, average and full stroke, which
determine the curve a + b sqrt(x) + c x, x the share of the stroke.

A disk may be laid out for another capacity than its own.  It then keeps its rates and its seek
times: the same curve is stretched over the available cylinders, so that data spread over the whole
volume costs the same as data spread over the whole disk.  Or the volume takes the outer cylinders
only, and the arm moves only over these.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hybridsim.foundation.codes import Order
from hybridsim.foundation.errors import ScenarioError
from hybridsim.foundation.machine_parameters import HddParameters
from hybridsim.foundation.units import human_size
from hybridsim.storage.devices.hdd import HDD

if TYPE_CHECKING:
    from hybridsim.storage.drives import HardDisk
    from hybridsim.storage.drives.datasheet import Placement

TABLE_LENGTH_MAX = 131_073  # longer tables exceed the processor's cache

Array = npt.NDArray[np.int64]
Floats = npt.NDArray[Any]


def moves(drive: HardDisk, cylinders: int, whole_disk: int) -> dict[str, Any]:
    """Return the times for a disk of `cylinders` cylinders, with the whole stroke over them.

    They are by (distance + 2^seek_shift - 1) >> seek_shift; entry 0 is another track of the same
    cylinder.  Those of writes include settling.
    """
    farthest = max(1, cylinders - 1)
    shift = 0
    while _index(farthest, shift) + 1 > TABLE_LENGTH_MAX:
        shift += 1
    entries = np.arange(_index(farthest, shift) + 1, dtype=np.int64)
    share = np.minimum(entries << shift, farthest) / farthest
    distance = np.maximum(share * max(1, whole_disk - 1), 1.0)
    reads = _seeks(drive, drive.seek_table, distance, whole_disk)
    if drive.write_seek_table is None:
        writes = reads + drive.write_settle_ns
    else:
        writes = _seeks(drive, drive.write_seek_table, distance, whole_disk)
    reads[0] = max(drive.head_switch_ns, drive.reacquire_ns)
    writes[0] = reads[0] + drive.write_settle_ns
    return {"seek_shift": shift, "move_ns": reads, "write_move_ns": writes}


def _seeks(
    drive: HardDisk, table: list[list[float]] | None, distance: Floats, cylinders: int
) -> Array:
    """Return the times of distances in cylinders of the whole disk."""
    if table is not None:
        points = np.array(table)
        seek_ns = np.interp(distance, points[:, 0], points[:, 1] * 1e6)
    elif drive.seek_fit is not None:
        a, b, split, c, e = drive.seek_fit
        near, far = a + b * np.sqrt(distance), c + e * distance
        seek_ns = np.where(distance <= split, near, far) * 1e6
    else:
        share = distance / max(1, cylinders - 1)
        a, b, c = seek_curve(drive, cylinders)
        seek_ns = a + b * np.sqrt(share) + c * share
        if np.any(np.diff(seek_ns) < -1):
            raise ScenarioError(
                f"the seek times of {drive.name or 'this disk'} do not give a rising curve: "
                "check seek_track_to_track, seek_average and seek_full"
            )
    return np.rint(seek_ns).astype(np.int64)


def _index(distance: int, shift: int) -> int:
    return (distance + (1 << shift) - 1) >> shift


def seek_curve(drive: HardDisk, cylinders: int) -> tuple[float, float, float]:
    """Return a, b, c (ns) of a + b sqrt(x) + c x, x the share of the stroke, for its cylinders.

    Over random pairs of cylinders x has the density 2 (1 - x): the mean of sqrt(x) is 8/15, that
    of x is 1/3.  With a = full - b - c two equations remain, for the average and for one track.
    """
    track_ns, average_ns, full_ns = drive.seek_points_ns
    track = 1 / max(1, cylinders - 1)
    root_part, linear_part = 1 - sqrt(track), 1 - track
    short_of_average = full_ns - average_ns
    short_of_track = full_ns - track_ns
    determinant = 7 / 15 * linear_part - 2 / 3 * root_part
    if determinant == 0:  # two cylinders: one distance, which is the full stroke
        return float(full_ns), 0.0, 0.0
    b = (short_of_average * linear_part - 2 / 3 * short_of_track) / determinant
    c = (7 / 15 * short_of_track - short_of_average * root_part) / determinant
    return full_ns - b - c, b, c


ORDERS = {"sptf": Order.POSITION, "sstf": Order.DISTANCE, "clook": Order.SWEEP}
READ_AHEAD_TO = ("buffer", "track", "next track")  # by the number of tracks
ZONES = 16
SECTOR_BYTES = 512
CYLINDERS_WANTED = 1024  # a smaller disk gets fewer surfaces before it has fewer cylinders


class _Zone(NamedTuple):
    """A zone of a disk laid out for some capacity."""

    bytes: int
    cylinders: int
    track_bytes: int
    skew_ns: int
    cylinder_skew_ns: int


def hdd_parameters(
    drive: HardDisk, capacity_bytes: int | None = None, short_stroke: bool = False, **how: Any
) -> HddParameters:
    """Return the drive laid out for a capacity, by default its own; `how` replaces parameters.

    With `short_stroke` the capacity is on the outer cylinders of the whole drive.  Raises
    ScenarioError if the capacity is not positive, or larger than the drive with `short_stroke`.
    """
    capacity = drive.capacity_bytes if capacity_bytes is None else capacity_bytes
    read_ns = drive.overhead_ns
    hit_ns = _or(drive.hit_overhead_ns, read_ns)
    write_ns = _or(drive.write_overhead_ns, read_ns)
    write_hit_ns = _or(drive.write_hit_overhead_ns, write_ns)
    span_bytes = min(drive.media_cache_bytes, capacity)
    rest_bytes = capacity - span_bytes
    first = {"outer": 0, "middle": rest_bytes // 2, "inner": rest_bytes}[drive.media_cache_at]
    known: dict[str, Any] = {
        **_geometry(drive, capacity, short_stroke),
        "read_ns": read_ns,
        "hit_ns": hit_ns,
        "write_ns": write_ns,
        "write_hit_ns": write_hit_ns,
        "after_other_ns": [
            _or(drive.overhead_after_write_ns, read_ns),
            _or(drive.hit_overhead_after_write_ns, hit_ns),
            _or(drive.write_overhead_after_read_ns, write_ns),
            _or(drive.write_hit_overhead_after_read_ns, write_hit_ns),
        ],
        "host_ps_per_byte": 0 if drive.interface is None else round(10**12 / drive.interface),
        "aging_ppm": round(drive.aging * 1e6),
        "order": ORDERS[drive.order],
        "read_behind_bytes": _or(drive.read_behind_bytes, drive.read_ahead_bytes),
        "read_stop_tracks": READ_AHEAD_TO.index(drive.read_ahead_to),
        "takes_turns": drive.destage_rule == "turns",
        "is_protected": drive.power_loss_protection,
        "media_cache_span_bytes": span_bytes,
        "media_cache_first_byte": first,  # its places are those of bytes of the volume
    }
    return drive.parameters_of(HddParameters, **known | how)


def _geometry(drive: HardDisk, capacity: int, short_stroke: bool) -> dict[str, Any]:
    """Return the parameters of places and moves."""
    if capacity <= 0:
        raise ScenarioError(f"a disk needs a capacity above 0 bytes, not {capacity}")
    if short_stroke and capacity > drive.capacity_bytes:
        raise ScenarioError(
            f"{human_size(capacity)} do not fit on a disk of {human_size(drive.capacity_bytes)}"
        )
    surfaces, zones = _layout(drive, drive.capacity_bytes if short_stroke else capacity)
    whole_disk = drive.cylinders or sum(each.cylinders for each in _layout(drive)[1])
    cylinders = sum(each.cylinders for each in zones)
    starts = np.cumsum([0, *(each.bytes for each in zones)])
    first = np.cumsum([0, *(each.cylinders for each in zones[:-1])]) * surfaces
    return {
        "capacity_bytes": capacity,
        "zone_byte": starts.astype(np.int64),
        "zone_track": first.astype(np.int64),
        "zone_track_bytes": np.array([each.track_bytes for each in zones], np.int64),
        "zone_angle_ns": np.zeros(len(zones), np.int64),
        "zone_skew_ns": np.array([each.skew_ns for each in zones], np.int64),
        "zone_cylinder_skew_ns": np.array(
            [each.cylinder_skew_ns - each.skew_ns for each in zones], np.int64
        ),
        "surfaces": surfaces,
        "cylinders": cylinders,
        **moves(drive, cylinders, whole_disk),
    }


def _or(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value


def skew_ns(drive: HardDisk) -> int:
    """Return the skew of the next track: long enough to change head or cylinder in time."""
    if drive.skew_ns is not None:
        return drive.skew_ns
    return max(drive.head_switch_ns, drive.seek_points_ns[0])


def _layout(drive: HardDisk, capacity_bytes: int | None = None) -> tuple[int, list[_Zone]]:
    """Return the number of surfaces and the zones for a capacity, by default the drive's own."""
    capacity = drive.capacity_bytes if capacity_bytes is None else capacity_bytes
    if drive.zones is None:
        return _even_layout(drive, capacity)
    return _known_layout(drive, drive.zones, capacity)


def _known_layout(
    drive: HardDisk, rows: list[list[float]], capacity: int
) -> tuple[int, list[_Zone]]:
    """Lay a capacity out on the zones of a real disk, in the same shares as on the whole disk."""
    first = [int(zone[0]) for zone in rows]
    counts = np.diff([*first, drive.cylinders or first[-1] + 1])
    weights = counts * np.array([zone[1] for zone in rows])
    ends = np.rint(np.cumsum(weights) / weights.sum() * capacity / SECTOR_BYTES) * SECTOR_BYTES
    ends = np.minimum(ends, capacity)
    ends[-1] = capacity
    share = capacity / drive.capacity_bytes
    tracks = int(counts.sum() * drive.surfaces * share)
    surfaces = min(drive.surfaces, max(1, tracks // CYLINDERS_WANTED))
    zones = []
    for zone, count, size in zip(rows, counts, np.diff([0, *ends]), strict=True):
        track_bytes = int(zone[1]) * SECTOR_BYTES
        needed = -(-int(size) // (surfaces * track_bytes))
        kept = round(int(count) * share * drive.surfaces / surfaces)
        sector_ns = drive.rev_ns / zone[1]
        skews = (round(zone[2] * sector_ns), round(zone[3] * sector_ns))
        if size > 0:
            zones.append(_Zone(int(size), max(needed, kept), track_bytes, *skews))
    return surfaces, zones


def _even_layout(drive: HardDisk, capacity: int) -> tuple[int, list[_Zone]]:
    """Lay a capacity out on zones of about equally many cylinders, the last as long as needed."""
    rates = drive.rates
    skew = skew_ns(drive)
    outer, inner = (_track_bytes(drive, rate) for rate in rates)
    tracks = 2 * capacity / (outer + inner)
    surfaces = min(drive.surfaces, max(1, int(tracks) // CYLINDERS_WANTED))
    cylinders = max(1, int(tracks / surfaces))
    count = min(ZONES, cylinders)
    step = (rates[0] - rates[1]) / max(1, count - 1)
    zones = []
    rest = capacity
    for zone in range(count):
        track_bytes = _track_bytes(drive, rates[0] - step * zone)
        length = (zone + 1) * cylinders // count - zone * cylinders // count
        size = length * surfaces * track_bytes
        if zone == count - 1:
            size = rest
            length = -(-rest // (surfaces * track_bytes))
        zones.append(_Zone(size, length, track_bytes, skew, skew))
        rest -= size
    return surfaces, zones


def _track_bytes(drive: HardDisk, rate: float) -> int:
    """Return the bytes of a track that sustains the rate, in whole sectors."""
    sectors = rate * (drive.rev_ns + skew_ns(drive)) / 1e9 / SECTOR_BYTES
    return max(1, round(sectors)) * SECTOR_BYTES


def bank(drive: HardDisk, members: int, use: Placement) -> Any:
    """Return `members` idle disks."""
    options = dict(use.overrides)
    if drive.power_loss_protection:
        options.pop("write_cache_bytes", None)
    return HDD.new(members, hdd_parameters(drive, use.capacity_bytes, use.short_stroke, **options))
