"""From a disk's datasheet to the integers that `DESIGN.md` 2.6 computes with.

The platters are 16 zones whose rates fall in even steps from the outer to the inner one.  A
sequential read turns once and then skews once a track, so a track of `rate * (rev + skew)` bytes
gives the datasheet's sustained rate.  The seek time over a share x of the stroke is
a + b sqrt(x) + c x, through the datasheet's track-to-track, average and full stroke.

A disk may be laid out for another capacity than its own.  It then keeps its rates and its stroke:
the same curve is stretched over the cylinders there are, so that data spread over the whole
volume costs what data spread over the whole disk costs.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from hybridsim.errors import ScenarioError

if TYPE_CHECKING:
    from hybridsim.drives import HardDisk

ZONES = 16
SECTOR_BYTES = 512
TABLE_LENGTH_MAX = 65_537  # longer seek tables leave the processor's cache
CYLINDERS_WANTED = 1024  # a shrunken disk gives up surfaces before it has fewer

Array = npt.NDArray[np.int64]


class Geometry(NamedTuple):
    """Where the bytes of one disk lie, and what it costs to reach them."""

    capacity_bytes: int
    rev_ns: int
    zone_byte: Array  # first byte of each zone, then the capacity
    zone_track: Array  # first track of each zone
    zone_track_bytes: Array
    surfaces: int  # tracks of a cylinder
    cylinders: int
    seek_ns: Array  # by (distance + 2^seek_shift - 1) >> seek_shift
    seek_shift: int
    head_switch_ns: int
    skew_ns: int
    settle_ns: int
    overhead_ns: int
    read_ahead_bytes: int


class _Layout(NamedTuple):
    """Zones of a capacity, before the arm is considered."""

    zone_byte: Array
    zone_track: Array
    zone_track_bytes: Array
    surfaces: int
    cylinders: int


def geometry(drive: HardDisk, capacity_bytes: int | None = None) -> Geometry:
    """Return the drive laid out for a capacity; its own where none is given."""
    capacity = drive.capacity_bytes if capacity_bytes is None else capacity_bytes
    layout = _layout(drive, capacity)
    whole_disk = _layout(drive, drive.capacity_bytes)
    seek_ns, seek_shift = _seek_table(drive, layout.cylinders, whole_disk.cylinders)
    return Geometry(
        capacity_bytes=capacity,
        rev_ns=drive.rev_ns,
        zone_byte=layout.zone_byte,
        zone_track=layout.zone_track,
        zone_track_bytes=layout.zone_track_bytes,
        surfaces=layout.surfaces,
        cylinders=layout.cylinders,
        seek_ns=seek_ns,
        seek_shift=seek_shift,
        head_switch_ns=drive.head_switch_ns,
        skew_ns=skew_ns(drive),
        settle_ns=drive.write_settle_ns,
        overhead_ns=drive.overhead_ns,
        read_ahead_bytes=drive.read_ahead_bytes,
    )


def skew_ns(drive: HardDisk) -> int:
    """Return how far the next track starts behind: enough to change head or cylinder in time."""
    return max(drive.head_switch_ns, drive.seek_track_ns)


def _layout(drive: HardDisk, capacity_bytes: int) -> _Layout:
    """Lay the capacity on zones of about equally many cylinders, the last as long as needed."""
    if capacity_bytes <= 0:
        raise ScenarioError(f"a disk needs a capacity above 0 bytes, not {capacity_bytes}")
    outer = _track_bytes(drive, drive.rate_outer)
    inner = _track_bytes(drive, drive.rate_inner)
    tracks = 2 * capacity_bytes / (outer + inner)
    surfaces = min(drive.surfaces, max(1, int(tracks) // CYLINDERS_WANTED))
    cylinders = max(1, int(tracks / surfaces))
    zones = min(ZONES, cylinders)
    track_bytes = [_track_bytes(drive, rate) for rate in _rates(drive, zones)]
    first = [zone * cylinders // zones for zone in range(zones)]
    starts = [0]
    for zone in range(zones - 1):
        length = first[zone + 1] - first[zone]
        starts.append(starts[zone] + length * surfaces * track_bytes[zone])
    rest = capacity_bytes - starts[-1]
    last = -(-rest // (surfaces * track_bytes[-1]))
    return _Layout(
        zone_byte=np.array([*starts, capacity_bytes], np.int64),
        zone_track=np.array(first, np.int64) * surfaces,
        zone_track_bytes=np.array(track_bytes, np.int64),
        surfaces=surfaces,
        cylinders=first[-1] + last,
    )


def _rates(drive: HardDisk, zones: int) -> list[float]:
    """Return the rate of each zone: outer first, inner last."""
    step = (drive.rate_outer - drive.rate_inner) / max(1, zones - 1)
    return [drive.rate_outer - step * zone for zone in range(zones)]


def _track_bytes(drive: HardDisk, rate: float) -> int:
    """Return the bytes of a track that sustains the rate, in whole sectors."""
    sectors = rate * (drive.rev_ns + skew_ns(drive)) / 1e9 / SECTOR_BYTES
    return max(1, round(sectors)) * SECTOR_BYTES


def _seek_table(drive: HardDisk, cylinders: int, whole_disk: int) -> tuple[Array, int]:
    """Return the seek times by distance, and how many bits of the distance the table drops."""
    farthest = max(1, cylinders - 1)
    shift = 0
    while _index(farthest, shift) + 1 > TABLE_LENGTH_MAX:
        shift += 1
    entries = np.arange(_index(farthest, shift) + 1, dtype=np.int64)
    share = np.minimum(entries << shift, farthest) / farthest
    a, b, c = seek_curve(drive, whole_disk)
    seek_ns = np.rint(a + b * np.sqrt(share) + c * share).astype(np.int64)
    seek_ns[0] = 0
    if np.any(np.diff(seek_ns) < 0):
        raise ScenarioError(
            f"the seek times of {drive.name or 'this disk'} do not make a rising curve: "
            "check seek_track_to_track, seek_average and seek_full"
        )
    return seek_ns, shift


def _index(distance: int, shift: int) -> int:
    return (distance + (1 << shift) - 1) >> shift


def seek_curve(drive: HardDisk, cylinders: int) -> tuple[float, float, float]:
    """Return a, b, c (ns) of a + b sqrt(x) + c x, x the share of the stroke, for its cylinders.

    Over random pairs of cylinders x has the density 2 (1 - x): the mean of sqrt(x) is 8/15, that
    of x is 1/3.  With a = full - b - c two equations remain, for the average and for one track.
    """
    track = 1 / max(1, cylinders - 1)
    root_part, linear_part = 1 - sqrt(track), 1 - track
    short_of_average = drive.seek_full_ns - drive.seek_average_ns
    short_of_track = drive.seek_full_ns - drive.seek_track_ns
    determinant = 7 / 15 * linear_part - 2 / 3 * root_part
    if determinant == 0:  # two cylinders: one distance, which is the full stroke
        return float(drive.seek_full_ns), 0.0, 0.0
    b = (short_of_average * linear_part - 2 / 3 * short_of_track) / determinant
    c = (7 / 15 * short_of_track - short_of_average * root_part) / determinant
    return drive.seek_full_ns - b - c, b, c
