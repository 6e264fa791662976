"""From the data of an arm to its times by distance in cylinders, as integers.

An arm is described by a table of measured times, which is interpolated; by two pieces, a + b
sqrt(d) up to some distance and c + e d beyond it (Ruemmler and Wilkes, "An introduction to disk
drive modeling", 1994); or by a datasheet's times for track to track, average and full stroke, which
determine the curve a + b sqrt(x) + c x, x the share of the stroke.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hybridsim.foundation.errors import ScenarioError

if TYPE_CHECKING:
    from hybridsim.storage.drives import HardDisk

TABLE_LENGTH_MAX = 131_073  # longer tables exceed the processor's cache

Array = npt.NDArray[np.int64]
Floats = npt.NDArray[Any]


class Moves(NamedTuple):
    """Times by (distance + 2^shift - 1) >> shift; entry 0 is another track of the same cylinder."""

    shift: int
    read_ns: Array
    write_ns: Array  # settling included


def moves(drive: HardDisk, cylinders: int, whole_disk: int) -> Moves:
    """Return the times for a disk of `cylinders` cylinders, with the whole stroke over them."""
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
    return Moves(shift, reads, writes)


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
