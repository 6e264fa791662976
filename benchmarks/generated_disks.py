"""Captures and fio results of disks and stripes with known parameters, for the intervals of a fit.

Disks of the catalog, by the independent reference, serve random requests over all of them; the
times of a capture are those of the model plus what interrupts and wake-ups add.  Seeds draw the
load: reads and writes, sizes, think times or random arrivals; for stripes also members, chunk and
the number of requests outstanding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybridsim.answers.fitting import array, capture, disks
from hybridsim.answers.fitting.answer import Estimate
from hybridsim.answers.fitting.array import Arrangement
from hybridsim.answers.fitting.fio import Point
from hybridsim.answers.fitting.observed import Observed
from hybridsim.answers.fitting.service import Layout, pieces
from hybridsim.foundation.codes import Op
from hybridsim.foundation.machine_parameters import HddParameters
from hybridsim.reference.clock import Clock
from hybridsim.reference.hdd import Hdd
from hybridsim.storage import catalog
from hybridsim.storage.devices.hdd_geometry import ORDERS, hdd_parameters
from hybridsim.storage.drives import HardDisk

KIB = 1024
SINGLE = Layout(1, KIB * KIB)
FIO_PERCENTS = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95)
SIZES = ((4,), (4, 64), (4, 16, 128), (4, 64, 512))  # KiB
OTHER_SPEEDS = (0.85, 1.18)  # times that of the catalog, where it is to be an unusual one
TRACK_PAIRS = 4001  # distances, for the mean of a seek


@dataclass(frozen=True)
class Known:
    """A capture and the true values of what a fit estimates: rpm, ns, bytes/s."""

    name: str
    observed: Observed
    truth: dict[str, float]
    layout: Layout = SINGLE


def known(name: str, seed: int, requests: int = 1500) -> Known:
    """Return a capture of a disk of the catalog under the load that a seed draws."""
    rng = np.random.default_rng([seed, *name.encode()])
    drive = _drive(name)
    order = rng.choice(["fcfs", drive.order])
    clock = Clock()
    disk = _disk(clock, drive, str(order))
    shape = hdd_parameters(drive)
    length = rng.choice(np.array(SIZES[rng.integers(len(SIZES))]) * KIB, requests)
    pages = (drive.capacity_bytes - length) // 4096
    offset = (rng.random(requests) * pages).astype(np.int64) * 4096
    write = rng.random(requests) < rng.choice([0.0, 0.0, 0.3])
    mean_ns = (drive.seek_points_ns[1] + drive.rev_ns / 2) * rng.choice([0.0, 0.5, 2.0, -1.6])
    late = rng.exponential(rng.choice([5e3, 20e3, 60e3]), requests).astype(np.int64)
    begun, done = _served(clock, disk, rng, mean_ns, write, offset, length, late)
    rank = np.argsort(begun, kind="stable")
    observed = Observed(
        begun[rank], done[rank], offset[rank], length[rank].astype(np.int64), write[rank],
        np.zeros(requests, np.int64), drive.capacity_bytes,
    )  # fmt: skip
    idle = observed.outstanding() == 1
    return Known(f"{name} {seed}", observed, _truth(drive, shape, float(idle.mean()), write, late))


def known_stripe(name: str, seed: int, requests: int = 3000) -> Known:
    """Return a capture of a stripe of disks of the catalog, with a fixed number outstanding."""
    rng = np.random.default_rng([seed, *name.encode(), 1])
    drive = _drive(name)
    layout = Layout(int(rng.choice([2, 3, 4, 6, 8])), int(rng.choice([16, 64, 256])) * KIB)
    depth = int(layout.members * rng.choice([1, 2]))
    clock = Clock()
    disks = [_disk(clock, drive, "fcfs") for _ in range(layout.members)]
    length = rng.choice(np.array(SIZES[rng.integers(3)]) * KIB, requests)
    end = drive.capacity_bytes // layout.chunk_bytes * layout.chunk_bytes * layout.members
    offset = (rng.random(requests) * ((end - length) // 4096)).astype(np.int64) * 4096
    write = rng.random(requests) < rng.choice([0.0, 0.3])
    late = rng.exponential(rng.choice([5e3, 20e3, 60e3]), requests).astype(np.int64)
    begun, done = np.zeros(requests, np.int64), np.zeros(requests, np.int64)
    left, queued, idle = [0] * requests, [0] * layout.members, []
    waiting = iter(range(requests))

    def send():
        row = next(waiting, None)
        if row is None:
            return
        begun[row] = clock.now
        parts = list(_pieces(int(offset[row]), int(length[row]), layout))
        left[row] = len(parts)
        for member, place, size in parts:
            idle.append(not queued[member])
            queued[member] += 1

            def finished(member=member):
                queued[member] -= 1
                left[row] -= 1
                if not left[row]:
                    done[row] = clock.now + late[row]
                    clock.at(int(done[row]), send)

            op = Op.WRITE if write[row] else Op.READ
            disks[member].submit(int(op), place, size, finished)

    for _ in range(depth):
        clock.at(0, send)
    clock.run()
    rank = np.argsort(begun, kind="stable")
    observed = Observed(
        begun[rank], done[rank], offset[rank], length[rank].astype(np.int64), write[rank],
        np.zeros(requests, np.int64), end,
    )  # fmt: skip
    truth = _truth(drive, hdd_parameters(drive), float(np.mean(idle)), write, late)
    return Known(f"{layout} of {name} {seed}", observed, truth, layout)


def _pieces(offset: int, length: int, layout: Layout):
    """Yield member, place and size of each part of a request, parts of one member joined."""
    parts: dict[int, list[int]] = {}
    end = offset + length
    while offset < end:
        row, member = divmod(offset // layout.chunk_bytes, layout.members)
        size = min(layout.chunk_bytes - offset % layout.chunk_bytes, end - offset)
        place = row * layout.chunk_bytes + offset % layout.chunk_bytes
        parts.setdefault(member, [place, 0])[1] += size
        offset += size
    for member, (place, size) in parts.items():
        yield member, place, size


def known_unusual(name: str, seed: int) -> tuple[Point, dict[str, float]]:
    """Return fio's result of a disk of the catalog at another speed than it is built with."""
    faster = float(np.random.default_rng([seed, 77]).uniform(*OTHER_SPEEDS))
    return known_point(name, seed, faster=faster)


def known_point(
    name: str, seed: int, requests: int = 6000, faster: float = 1.0
) -> tuple[Point, dict[str, float]]:
    """Return fio's result of random reads of 4 KiB at depth 1, and the truth."""
    rng = np.random.default_rng([seed, *name.encode(), 2])
    drive = _drive(name)
    drive = drive.model_copy(update={"rpm": round(drive.rpm * faster)})
    clock = Clock()
    length = np.full(requests, 4096)
    offset = (rng.random(requests) * (drive.capacity_bytes // 4096)).astype(np.int64) * 4096
    late = rng.exponential(rng.choice([5e3, 20e3, 60e3]), requests).astype(np.int64)
    write = np.zeros(requests, np.bool_)
    disk = _disk(clock, drive, "fcfs")
    begun, done = _served(clock, disk, rng, 0.0, write, offset, length, late)
    took = done - begun
    percentiles = {
        percent: _binned(float(np.percentile(took, percent))) for percent in FIO_PERCENTS
    }
    point = Point(
        f"{name} {seed}", "read", "randread", 4096, 1, True, True, requests,
        1e9 / float(took.mean()), 0.0, float(took.mean()), percentiles,
    )  # fmt: skip
    truth = _truth(drive, hdd_parameters(drive), 1.0, write, late)
    return point, {key: truth[key] for key in ("rpm", "seek_average", "seek_full")}


def _binned(took_ns: float) -> float:
    """Return the middle of fio's bin of a latency: each power of two has 64."""
    width = 2.0 ** (int(took_ns).bit_length() - 7)
    return (took_ns // width + 0.5) * width


def _drive(name: str) -> HardDisk:
    rows = catalog.load(name).rows
    return HardDisk(kind="hdd", **{key: row.value for key, row in rows.items()})


def _disk(clock: Clock, drive: HardDisk, order: str) -> Hdd:
    """Return a disk by the independent reference, without a write cache."""
    parameters = hdd_parameters(
        drive, write_cache_bytes=0, order=ORDERS.get(order, ORDERS["sptf"]),
        host_ps_per_byte=0, age_limit_ns=0 if order == "fcfs" else drive.age_limit_ns,
        window=1 if order == "fcfs" else drive.window,
    )  # fmt: skip
    return Hdd(clock, parameters)


def _served(clock, disk, rng, mean_ns, write, offset, length, late):
    """Return dispatch and completion, which the host notices `late`.

    A mean below 0 is that of the time between arrivals, else of the pause after a completion.
    """
    requests = len(offset)
    begun, done = np.zeros(requests, np.int64), np.zeros(requests, np.int64)
    pause = rng.exponential(abs(mean_ns), requests).astype(np.int64) if mean_ns else begun.copy()

    def send(row):
        begun[row] = clock.now

        def finished():
            done[row] = clock.now + late[row]
            if mean_ns >= 0 and row + 1 < requests:
                clock.at(done[row] + int(pause[row]), lambda: send(row + 1))

        op = Op.WRITE if write[row] else Op.READ
        disk.submit(int(op), int(offset[row]), int(length[row]), finished)

    if mean_ns >= 0:
        clock.at(0, lambda: send(0))
    else:
        for row, at in enumerate(np.cumsum(pause).tolist()):
            clock.at(at, lambda row=row: send(row))
    clock.run()
    return begun, done


def _truth(drive, shape: HddParameters, idle_share: float, write, late) -> dict[str, float]:
    """Return what a fit estimates, as the catalog has it; the rate is the mean over all bytes.

    The overhead is the mean over the requests that find the disk idle, and over what came before
    each: a scenario has one for reads and writes, several disks have two, and others after a
    request of the other kind.  What a write takes more than a read is its settling, and its longer
    overhead where the disk is idle.  No settling is below 0, as a key or as an estimate.  That the
    host notices a completion late is part of the overhead: the next request that already waits at
    the disk does not see it.
    """
    cylinders = shape.cylinders
    share = (np.arange(TRACK_PAIRS) + 0.5) / TRACK_PAIRS
    index = np.maximum(share * (cylinders - 1), 1).astype(np.int64) + (1 << shape.seek_shift) - 1
    seek = shape.move_ns[np.minimum(index >> shape.seek_shift, len(shape.move_ns) - 1)]
    weight = 2 * (1 - share)
    sizes = np.diff(shape.zone_byte)
    # Once a cylinder the skew is longer by `zone_cylinder_skew_ns`.
    skew_ns = shape.zone_skew_ns + shape.zone_cylinder_skew_ns / shape.surfaces
    sustained = shape.zone_track_bytes / (drive.rev_ns + skew_ns) * 1e9
    settle = shape.write_move_ns[1:].astype(float) - shape.move_ns[1:]
    writes, (after_write, _, after_read, _) = float(np.mean(write)), shape.after_other_ns
    read_ns = (1 - writes) * shape.read_ns + writes * after_write
    write_ns = writes * shape.write_ns + (1 - writes) * after_read
    return {
        "rpm": drive.rpm,
        "seek_track_to_track": float(shape.move_ns[1]),
        "seek_average": float((seek * weight).sum() / weight.sum()),
        "seek_full": float(shape.move_ns[-1]),
        "rate_mean": float(sizes.sum() / (sizes / sustained).sum()),
        "write_settle": max(float(settle.mean()) + idle_share * (write_ns - read_ns), 0.0),
        "overhead": float((1 - writes) * read_ns + writes * write_ns + late.mean()),
    }


def estimates(observed: Observed, layout: Layout = SINGLE) -> dict[str, Estimate]:
    """Fit the disks of a capture whose layout is known; FitError where it is refused."""
    random = capture._scattered(observed)
    both = (random & ~observed.is_write, random & observed.is_write)
    capture._check_writes("a generated disk", *(capture._calm(observed, each) for each in both))
    seen = pieces(observed, observed.entered_ns(0), layout)
    found = disks.fit(seen, array.usual_disk)
    array._check("a generated disk", found)
    one = Arrangement(layout, 0, 99.0, layout, 1)
    result = {each.key: each for each in array._drive(observed, one, found)}
    return result | {"rate_mean": result["rate_outer"]}
