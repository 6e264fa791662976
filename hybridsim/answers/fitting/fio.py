"""Fit a model of a disk or an SSD to fio's results.

A disk at depth 1 takes overhead + seek + rotation + transfer.  For random positions the share x of
the stroke has the density 2 (1 - x) and the rotation is uniform, so the percentiles of the sum
separate seek and rotation.  What a disk does with several requests is `studies.fit`'s.

fio's percentiles also show a controller that holds completions back (DESIGN.md 2.10): it raises one
interrupt for all completions of a time.  With one request at a time it hardly does so, with four
nearly always: then the fastest of four take longer by that time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from hybridsim.answers.fitting.answer import ALONE, DRIVE, NAME, Estimate, Fit, assumed, like
from hybridsim.answers.fitting.array import (
    MEAN_ROOT,
    MEAN_SHARE,
    OVERHEADS_MS,
    apart,
    usual_disk,
    within,
)
from hybridsim.answers.fitting.capture import (
    CLIFF_TIMES,
    FAST_WRITES,
    FLASH_NS,
    SLOW_NS,
    SLOW_SHARE,
)
from hybridsim.answers.fitting.disks import MINUTE_MS, NUMBERS, USUAL_RPM
from hybridsim.answers.fitting.flash import CROWDED, KIB4, map_unit, of_ssd
from hybridsim.answers.fitting.rotations import Rotations, quantiles, rotations
from hybridsim.answers.measurements import NONSENSE, fio_json
from hybridsim.answers.measurements.measurement import COMPLETION
from hybridsim.foundation.errors import FitError
from hybridsim.foundation.reading import whole_text
from hybridsim.foundation.units import human_rate, human_time
from hybridsim.workloads.fio.options import each_direction, size

MS = 1e6
LIKE_DISK, RATES = "hgst-ultrastar-7k8", ("rate_outer", "rate_inner")
LIKE_SATA, LIKE_NVME = "samsung-pm883-960gb", "samsung-pm9a3-1920gb"
SATA_BYTES_PER_S = 600_000_000  # of the link
PERCENTS = (0.5, 99.0)  # fitted percentiles; those beyond have few requests and other causes
# Mean latencies of the same SSD in another run: at most 0.6 % apart on three of fio-plot's drives;
# other days and temperatures were not measured.
REPEATED = 0.02
FLASH_READ_NS, TWICE = 50_000, 1.2  # half of a read of TLC or QLC with its transfer; spread
# An SSD without its write cache programs a page for each write: 2 ms measured (Samsung 860 PRO);
# QLC takes 2 to 3 ms.  Four Ceph volumes take 3.9 ms and more.
SLOWEST_WRITE_NS = 3.5e6
TRANSFERS = 2.2  # of 4 KiB that fit into a latency, at least
ASLEEP = 2.1  # reads at depth 2 that are so many times those at depth 1
HOST_OFF = 0.25  # the same between repeated runs
# Random requests of such a size, with so many bytes under way, go by the rate of the link.
LARGE, FILLING = 64 * 1024, 2 * 2**20
FALLS = 0.9  # a rate lower than this share of the highest has fallen
POOR = 0.1  # relative error of a percentile that is noted
OTHER = 0.5  # relative error of a percentile from which on the device is not a disk
FASTEST_MS = 0.5  # a random read of any disk: the shortest seek without rotation
# Reordering by one arm gains less: at most 1.2, 1.8, 2.4 and 3.3 times at depths 2, 8, 16 and 32 in
# ideal simulations (shortest positioning time first).
GAIN_PER_DOUBLING = 0.5
LEVEL = 0.95  # of the intervals
# What the curve of seeks leaves out of the shortest, as shares of the value below and above it:
# fitted to the tables of the 13 measured arms in the catalog themselves, with requests as they
# come, it is 1.17 to 3.12 times the shortest seek (of disks after a formula 0.75 to 0.98).  It is
# exact for the mean, and 0.93 to 1 times the longest; but the percentiles of such an arm are off
# as well, which widens the interval of its rotation, and with it that of the longest seek.
SHORTEST_OFF = (0.68, 0.33)
# Overhead, shortest seek and transfer together: the later disks of the catalog but one need less
# than those of the early 1990s, whose electronics take up to 3.7 ms and 4 KiB at 2.3 MB/s.  Three
# of five measured disks of 2004 to 2009 need more too: with a longer base either kind is as likely.
OLD_BASE_MS, OLD_OVERHEADS_MS = 3.0, (0.0, 5.5)
EVENLY = (np.arange(8) + 0.5) / 8  # places in a range that stand for it
SHORTER = 0.9  # of a revolution: no shortest seek of a scenario is longer
# Requests at a time of which nearly all are held, and which a drive can serve.
HELD_FROM, HELD_TO = 3, 8
FAST = 20.0  # percentile that no wait for a die reaches at these depths, far below the limit
FREE = 0.7  # a rate below this share of the highest is not the limit of the drive
LONGER = 0.5  # of the latency, at least, that held ones take more
NEARLY = 0.9  # of that time: a latency that is so much longer than the fast ones is of a held one
# Measured: an HP Smart Array P420, with six SSDs behind it (`benchmarks/RESULTS.md`).
LIKE_CONTROLLER, HOLD_FROM, HOLD_WITHIN_NS = "an HP Smart Array P420", 5, 280_000.0
HOW = (
    "Measure with fio --direct=1 --rw=randread --bs=4k --iodepth=1 (and 2, 4, ... 32) "
    "--output-format=json over the whole device"
)

# The parts of fio's results (--output-format=json or json+) that a fit uses.
DIRECTIONS = ("read", "write")
DEVICES = ("/dev/", "\\\\.\\")  # how names of devices begin, on Unix and on Windows
NVME = "/dev/nvme"  # of Linux
LARGEST = 1e18  # limit of all numbers: 30 years in ns
USUAL = 95.0  # per cent of the requests that have a usual latency
FEWEST = 5  # percentiles up to there that determine a mean


@dataclass(frozen=True)
class Point:
    """The results of one job in one direction."""

    source: str  # file and job
    direction: str  # read or write
    pattern: str  # fio's rw: randread, read, randrw, ...
    block_bytes: int
    depth: int  # requests kept outstanding by all its processes together
    is_direct: bool
    is_even: bool  # offsets are uniform over the file or device
    requests: int
    iops: float
    bytes_per_s: float
    mean_ns: float
    percentiles_ns: dict[float, float]  # of the completion latency, by per cent
    on_file: bool = False  # measured on a file of a file system, not on a whole device
    is_nvme: bool = False  # as the device's name says

    @property
    def median_ns(self) -> float:
        """Median of the completion latency; the mean if it is not reported."""
        return self.percentiles_ns.get(50.0, self.mean_ns)

    @property
    def usual_ns(self) -> float:
        """Mean completion latency of the fastest 95 %: rare stalls are no latency of a drive."""
        percents = [each for each in sorted(self.percentiles_ns) if each <= USUAL]
        if len(percents) < FEWEST or percents[-1] < USUAL:
            return self.mean_ns
        values = [self.percentiles_ns[each] for each in percents]
        ends = [0.0, *percents], [values[0], *values]
        return float(np.trapezoid(ends[1], ends[0])) / USUAL

    @property
    def own_ns(self) -> float:
        """Time that fio and the kernel take for a request beside its completion latency.

        Only of requests one at a time, where nothing else is in the way; 0 of others.
        """
        alone = self.depth == 1 and self.iops > 0 and self.mean_ns > 0
        return max(1e9 / self.iops - self.mean_ns, 0.0) if alone else 0.0

    @property
    def is_random(self) -> bool:
        """Whether the job only reads or only writes, at random offsets."""
        return self.pattern == f"rand{self.direction}"


def looks_like_fio(path: str) -> bool:
    """Return whether a file is fio's JSON, which messages may precede."""
    try:
        with Path(path).open("rb") as stream:
            head = stream.read(1 << 16)
    except OSError:
        return False
    return b'"fio version"' in head and b"{" in head


def read(paths: list[str]) -> list[Point]:
    """Return the points of all files; raise MeasurementError if one is not fio's JSON."""
    points = []
    for path in paths:
        try:
            text = whole_text(path, FitError, fio_json.LARGEST_BYTES, errors="replace")
            for job in fio_json.load(path, text)["jobs"]:
                points += _points(path, job)
        except NONSENSE as error:
            raise FitError(f"{path}: damaged, or not JSON of fio ({error!r})") from error
        if not all(_is_sound(one) for one in points):
            raise FitError(f"{path}: damaged: a rate or latency is negative or not a number")
    if not points:
        raise FitError(
            f"{', '.join(paths)}: no job read or wrote any data, or what it did is reported as one "
            "sum (unified_rw_reporting=mixed)"
        )
    return points


def _is_sound(one: Point) -> bool:
    numbers = [one.iops, one.bytes_per_s, one.mean_ns, *one.percentiles_ns.values()]
    return (
        all(0 <= each < LARGEST for each in (*numbers, one.requests, one.block_bytes, one.depth))
        and min(one.requests, one.block_bytes, one.depth) > 0
        and all(0 <= each <= 100 for each in one.percentiles_ns)
    )


def _points(path: str, job: dict[str, Any]) -> list[Point]:
    options = job["options"]
    name = str(options.get("filename", ""))
    # The options name a file or a folder, and no device.
    is_on_file = "directory" in options or (name != "" and not name.startswith(DEVICES))
    result = []
    for direction in DIRECTIONS:
        part = job.get(direction, {})
        if not part.get("total_ios"):
            continue
        latency, unit_ns = fio_json.in_ns(part, COMPLETION)
        percentiles = latency.get("percentile") or {}
        result.append(
            Point(
                f"{path}, job {job.get('jobname', '?')}",
                direction,
                str(options.get("rw", options.get("readwrite", "read"))),
                _block_bytes(options, direction),
                int(options.get("iodepth", 1)) * int(options.get("numjobs", 1)),
                str(options.get("direct", "0")) == "1",
                str(options.get("random_distribution", "random")) == "random",
                int(part["total_ios"]),
                float(part.get("iops", 0.0)),
                float(part.get("bw_bytes", 1024 * part.get("bw", 0))),
                unit_ns * float(latency.get("mean", 0.0)),
                {float(name): unit_ns * float(value) for name, value in percentiles.items()},
                is_on_file,
                name.startswith(NVME),
            )
        )
    return result


def _block_bytes(options: dict[str, Any], direction: str) -> int:
    """Return the block size in bytes, as fio reads it: `4k,64k` is of reads and writes."""
    text = str(options.get("bs", options.get("blocksize", "4k")))
    try:
        return size(each_direction(text)[DIRECTIONS.index(direction)])
    except ValueError:
        return 4096


# What results show of a drive.


def fit(name: str, points: list[Point]) -> Fit:
    """Fit a disk or an SSD; raise FitError if the results are not sufficient for either."""
    chosen, why_not = usable(points)
    alone = [one for one in chosen if one.depth == 1]
    lowest = min(chosen, key=lambda one: (one.direction != "read", one.depth), default=None)
    if lowest is None:
        raise FitError(f"{name}: cannot be fitted: {'; '.join(why_not)}. {HOW}")
    if lowest.median_ns < FLASH_NS:
        _check_one_kind(name, lowest)
        _check_writes(name, chosen)
        return _ssd(name, chosen, points, why_not)
    reads = [one for one in alone if one.direction == "read"]
    if not reads:
        raise FitError(
            f"{name}: cannot be fitted: the latency of a disk at depth {lowest.depth} is mostly "
            f"waiting, and there are no random reads at depth 1. {HOW}"
        )
    point = max(reads, key=lambda one: one.requests)
    _check_one_arm(name, point, chosen)
    return _disk(name, point, [*why_not, *_fast_writes(point, chosen)])


def _check_writes(name: str, points: list[Point]) -> None:
    """Refuse what reads as fast as flash and writes as no SSD does."""
    for one in points:
        is_alone = one.direction == "write" and one.depth == 1
        if is_alone and one.median_ns >= SLOWEST_WRITE_NS:
            raise FitError(
                f"{name}: this is no SSD: its reads are as fast as flash, but half of the random "
                f"writes of {one.source} take {human_time(one.median_ns)} or more. A network "
                'volume (Ceph, iSCSI) is described with kind = "volume" and its provider\'s '
                "figures; a cache above disks is measured without the cache"
            )


def _check_one_kind(name: str, point: Point) -> None:
    """Refuse what serves some requests from flash and others with an arm."""
    slow = [
        percent for percent, value in point.percentiles_ns.items()
        if percent <= 100 * (1 - SLOW_SHARE) and value >= SLOW_NS
    ]  # fmt: skip
    if slow or point.mean_ns >= SLOW_NS:
        share = f"{100 - min(slow):g}% of them" if slow else "so many that the mean is longer,"
        raise FitError(
            f"{name}: these are two devices: half of the requests of {point.source} take less than "
            f"{human_time(point.percentiles_ns.get(50.0, 0.0))}, as flash, and {share} "
            f"{human_time(SLOW_NS)} or more, as a disk. Measure the disk without its cache, or "
            "over places that the cache does not hold"
        )


def _check_one_arm(name: str, alone: Point, points: list[Point]) -> None:
    """Refuse rates at higher depths that no single arm reaches."""
    for one in points:
        same = one.direction == alone.direction and one.block_bytes == alone.block_bytes
        gain = one.iops / alone.iops if alone.iops else 0.0
        if same and gain > 1 + GAIN_PER_DOUBLING * np.log2(one.depth) > 1:
            raise FitError(
                f"{name}: {one.iops:.0f} random {one.direction}s a second at depth {one.depth} are "
                f"{gain:.1f} times those at depth 1, more than one arm reaches by reordering: "
                "several disks, or a disk with two actuators. fio's results determine one disk; "
                "capture it with blktrace instead"
            )


def _fast_writes(alone: Point, points: list[Point]) -> Iterator[str]:
    """Yield a note if random writes at depth 1 are faster than an arm's reads."""
    reads_ns = alone.median_ns
    for one in points:
        is_fast = one.median_ns < FAST_WRITES * reads_ns
        if one.direction == "write" and one.depth == 1 and is_fast:
            yield (
                f"The random writes of {one.source} take {human_time(one.median_ns)}, its random "
                f"reads {human_time(reads_ns)}: a write cache or shingled recording (SMR) takes "
                "them first. This model has neither: it is one of the reads. Measure random writes "
                "at depth 32 as well, longer than a cache fills; or set write_cache or media_cache "
                "by hand."
            )
            return


def checked(points: list[Point]) -> Point | None:
    """Return the random reads (else writes) at depth 1 that a fitted model is compared with."""
    alone = [one for one in usable(points)[0] if one.depth == 1 and len(one.percentiles_ns) > 4]
    return max(alone, key=lambda one: (one.direction == "read", one.requests), default=None)


def usable(points: list[Point]) -> tuple[list[Point], list[str]]:
    """Return the points of random direct requests, and why others are left out."""
    chosen, why_not = [], []
    for one in points:
        if not one.is_direct:
            why_not.append(f"{one.source} used the page cache (direct=0)")
        elif not one.is_random:
            if one.pattern not in ("read", "write"):
                why_not.append(f"{one.source} mixes reads and writes ({one.pattern})")
        elif not one.is_even:
            why_not.append(
                f"{one.source} has hot spots, which a cache may hold (random_distribution)"
            )
        elif one.mean_ns == 0:
            why_not.append(f"{one.source} has no latencies (gtod_reduce, disable_clat)")
        else:
            chosen.append(one)
    return chosen, list(dict.fromkeys(why_not))


# Disks.


def _disk(name: str, point: Point, notes: list[str]) -> Fit:
    """Fit base (overhead and shortest seek), reach and rotation to the latency percentiles."""
    percents = [p for p in sorted(point.percentiles_ns) if PERCENTS[0] <= p <= PERCENTS[1]]
    if len(percents) < 5:
        raise FitError(
            f"{name}: {point.source} has too few latency percentiles; let fio report its default "
            "percentile list"
        )
    if point.on_file:
        notes.append(
            f"{point.source} was measured on a file: the seeks are those within it, shorter than "
            "those of the disk. Measure the whole device (--filename=/dev/...), read only."
        )
    shares = np.array(percents) / 100
    rates = [like(LIKE_DISK, key, "bytes/s") for key in RATES]
    rate = sum(float(each.value) for each in rates) / len(rates)
    measured = np.array([point.percentiles_ns[p] for p in percents])
    transfer_ms = point.block_bytes / rate * 1e3
    seen = measured / MS - transfer_ms
    too_short = seen < FASTEST_MS
    if too_short.any():
        share = percents[int(np.flatnonzero(too_short)[-1])]
        raise FitError(
            f"{name}: cannot be fitted: at least {share:g}% of the reads of {point.source} took "
            f"less than {FASTEST_MS:g} ms, which no disk can. A cache served them: measure the "
            "disk without it, or addresses that it does not hold"
        )
    known = rotations(shares, measured, transfer_ms, point.requests)
    raw, ends = MINUTE_MS / known.middle_ms, known.rotation(LEVEL)
    known = known.with_usual()
    estimates = _disk_estimates(known, ends, raw)
    words = (
        f"One disk of {MINUTE_MS / known.middle_ms:,.0f} rpm; {point.iops:.0f} random reads a "
        "second at depth 1."
    )
    worst = float(np.abs(quantiles(*known.values(), shares) / seen - 1).max())
    if worst > OTHER:
        raise FitError(
            f"{name}: cannot be fitted: no disk has the latencies of {point.source}: one "
            f"percentile is {worst:.0%} from the best fit"
        )
    if worst > POOR:
        notes.append(f"One percentile is {worst:.0%} from the model: the disk may be another kind.")
    return Fit(name, words, estimates, point.requests, notes)


def _disk_estimates(known: Rotations, ends: tuple[float, float], raw: float) -> list[Estimate]:
    base, reach, rotation, linear = known.values()
    rpm = round(MINUTE_MS / rotation)
    how = f"a usual speed; the percentiles alone give {raw:,.0f}" if rpm in USUAL_RPM else ""
    overhead = min(usual_disk(MINUTE_MS / rpm)["overhead_ms"], base / 2)
    track = min(base - overhead, NUMBERS["track_ms"].high, rotation * SHORTER)
    mean = (1 - linear) * MEAN_ROOT + linear * MEAN_SHARE
    ranges = [OVERHEADS_MS, OLD_OVERHEADS_MS] if base > OLD_BASE_MS else [OVERHEADS_MS]
    overheads = np.concatenate([low + (high - low) * EVENLY for low, high in ranges])

    def seek(key: str, share: float, part: float | None) -> Estimate:
        """Interval of a seek: the assumed overhead is part of the base, and as uncertain there."""
        value = track + share * reach
        low, high = known.seek(part, LEVEL, overheads)
        if part == 0.0:
            below, above = (off * value for off in within(*SHORTEST_OFF))
            low, high = apart(value, (low, high), (below, above))
        low, high = max(min(low, value), 0.0), max(high, value)
        return Estimate(DRIVE, key, value * MS, "ns", low * MS, high * MS)

    not_split = "fio's percentiles determine only the sum of it and the shortest seek"
    return [
        ALONE,
        Estimate(DRIVE, "kind", "hdd"),
        Estimate(DRIVE, "name", NAME),
        Estimate(DRIVE, "rpm", rpm, "rpm", *_rpms(*ends, rpm), how=how),
        like(LIKE_DISK, "capacity", "bytes"),
        seek("seek_track_to_track", 0.0, 0.0),
        seek("seek_average", mean, None),
        seek("seek_full", 1.0, 1.0),
        *(like(LIKE_DISK, key, "bytes/s") for key in RATES),
        assumed("overhead", overhead * MS, "ns", not_split),
    ]  # fmt: skip


def _rpms(low_ms: float, high_ms: float, taken: int) -> tuple[float, float]:
    """Return the interval of the speed; a usual speed that was taken may lie beyond the 95 %."""
    return min(round(MINUTE_MS / high_ms), taken), max(round(MINUTE_MS / low_ms), taken)


# SSDs.


def _ssd(name: str, chosen: list[Point], points: list[Point], notes: list[str]) -> Fit:
    hold_ns = _hold_ns(chosen)
    if hold_ns:
        chosen = [_at_once(one, hold_ns) if one.depth == 1 else one for one in chosen]
    drive = _alike(points)
    values: dict[str, Estimate] = {}
    for kind in ("read", "write"):
        values |= _of_kind(kind, [one for one in chosen if one.direction == kind], drive)
        latency_ns = float(values[f"{kind}_latency"].value)
        values[f"sequential_{kind}"] = _streamed(kind, points, drive, latency_ns)
    streamed, writes = values["sequential_write"], values["random_write_iops"]
    if streamed.determined and not writes.determined:  # what is measured stands
        least = float(streamed.value) / 0.9 / 131_072 + 1
        if float(writes.value) < least:
            how = "as many as its sequential writes need"
            values["random_write_iops"] = replace(writes, value=least, how=how)
    wanted = 0.9 * float(values["random_write_iops"].value) * 131_072
    if float(streamed.value) > wanted:
        how = "limited to the rate of its random writes of that size"
        values["sequential_write"] = assumed("sequential_write", wanted, "bytes/s", how)
    latency_ns = max(float(values[f"{kind}_latency"].value) for kind in ("read", "write"))
    reads = float(values["random_read_iops"].value)
    words = f"Flash; at most {reads:,.0f} random reads a second."
    notes = [*notes, *_unwritten(chosen), *_held_back(chosen, hold_ns)]
    if not any(values[f"sequential_{kind}"].determined for kind in ("read", "write")):
        notes.append(
            f"Larger requests rest on the link of {drive}, which measured drives miss by a factor "
            "of two: give sequential results too, or random ones of 128 KiB at depth 32."
        )
    estimates = [
        *of_ssd(like(drive, "capacity", "bytes"), values, latency_ns),
        _map_unit(chosen),
        *_host(chosen),
        *_held(hold_ns),
    ]  # fmt: skip
    return Fit(name, words, estimates, sum(one.requests for one in chosen), notes)


def _unwritten(points: list[Point]) -> Iterator[str]:
    """Yield a note if a part of the reads was answered without flash."""
    ends = [
        (one, one.percentiles_ns.get(10.0, 0.0), one.percentiles_ns.get(90.0, 0.0))
        for one in points if one.depth == 1
    ]  # fmt: skip
    longest = max((most for one, _, most in ends if one.direction == "write"), default=0.0)
    for one, least, most in ends:
        is_split = 0 < least < FLASH_READ_NS < most / TWICE
        if one.direction == "read" and is_split and longest < most / TWICE:
            yield (
                f"A part of the reads of {one.source} takes {human_time(least)}, less than flash "
                f"does, and a part {human_time(most)}: an SSD answers what was never written, or "
                "was discarded, without its flash. Write the whole drive first."
            )
            return


def _held_back(points: list[Point], hold_ns: float) -> Iterator[str]:
    """Yield a note on held completions: for so long, or as reads become fewer, then more."""
    if hold_ns:
        yield (
            f"The controller holds completions back for {human_time(hold_ns)} while many come, to "
            "raise fewer interrupts (interrupt coalescing; host.hold): at 4 requests at a time an "
            "SSD behind it serves fewer than at 2."
        )
        return
    reads = {one.depth: one for one in points if one.direction == "read"}
    depths = sorted(reads)
    if {1, 2} <= set(depths) and reads[2].iops > ASLEEP * reads[1].iops:
        yield (
            f"Reads at depth 2 are {reads[2].iops / reads[1].iops:.1f} times those at depth 1: one "
            "at a time the processor, the link or the drive falls asleep between them (wake_up); "
            "turn off power saving, or expect this of requests that come one at a time."
        )
        return
    for few, more in pairwise(depths):
        deepest = reads[depths[-1]].iops
        if reads[more].iops < FALLS * reads[few].iops and deepest > reads[few].iops:
            yield (
                f"Reads at depth {more} are fewer than at depth {few} ({reads[more].iops:,.0f} and "
                f"{reads[few].iops:,.0f} a second): the controller holds completions back "
                "(interrupt coalescing), which is not modelled. From there on, until the rate "
                "no longer grows, the model is too fast."
            )
            return


def _host(points: list[Point]) -> Iterator[Estimate]:
    """Yield the host's time for a request, which fio's completion latency lacks."""
    own = [one.own_ns for one in points if one.own_ns > 0]
    if own:
        low, high = min(own) * (1 - HOST_OFF), max(own) * (1 + HOST_OFF)
        how = "fio and the kernel, beside the completion latency, at depth 1"
        yield Estimate("host", "overhead", float(np.mean(own)), "ns", low, high, how=how)


def _alike(points: list[Point]) -> str:
    """Return the drive of the catalog that has the values that were not measured, by the link."""
    fastest = max(one.iops * one.block_bytes for one in points)
    shortest = min(one.usual_ns / one.block_bytes for one in points if one.usual_ns > 0)
    is_sata = fastest <= SATA_BYTES_PER_S and shortest >= 1e9 / SATA_BYTES_PER_S
    return LIKE_SATA if is_sata and not any(one.is_nvme for one in points) else LIKE_NVME


def _of_kind(kind: str, points: list[Point], drive: str) -> dict[str, Estimate]:
    """Return the latency at depth 1 and the rate at the greatest depths."""
    smallest = min((one.block_bytes for one in points), default=0)  # latencies and rates are its
    points = [one for one in points if one.block_bytes == smallest]
    alone = [one for one in points if one.depth == 1 and one.mean_ns > 0]
    latency, iops = f"{kind}_latency", f"random_{kind}_iops"
    if alone:
        value = alone[0].usual_ns
        ends = value * (1 - REPEATED), value * (1 + REPEATED)
        how = "mean of the fastest 95% at depth 1"
        found = Estimate(DRIVE, latency, value, "ns", *ends, how=how)
    else:
        found = like(drive, latency, "ns", f"no random {kind}s at depth 1; ")
    if crowded := [one for one in points if one.depth > 1]:
        return {latency: found, iops: _highest(kind, iops, crowded)}
    why = f"no random {kind}s at more than depth 1; "
    return {latency: found, iops: like(drive, iops, "/s", why)}


def _highest(kind: str, key: str, crowded: list[Point]) -> Estimate:
    """Return the rate of random requests that a drive keeps up.

    Reads: the highest measured.  Writes: that of the greatest depth, since what is faster with
    fewer requests was measured before the erased flash, or the SLC cache, had run out.
    """
    best = max(crowded, key=lambda one: one.iops)
    deepest = max(crowded, key=lambda one: one.depth)
    if kind == "write" and deepest.iops < best.iops * FALLS:
        how = (
            f"measured at depth {deepest.depth}; {best.iops:,.0f} at depth {best.depth}, before "
            "erased flash or an SLC cache had run out"
        )
        return Estimate(DRIVE, key, deepest.iops, "/s", how=how)
    how = f"the highest measured, at depth {best.depth}: a lower bound"
    return Estimate(DRIVE, key, best.iops, "/s", how=how)


def _map_unit(points: list[Point]) -> Estimate:
    """Return the unit of the drive's map, from its fastest random writes of each size."""
    fastest: dict[int, float] = {}
    for one in points:
        is_crowded = one.direction == "write" and one.depth >= CROWDED
        if is_crowded and one.block_bytes >= KIB4 and one.iops > 0:
            fastest[one.block_bytes] = max(one.iops, fastest.get(one.block_bytes, 0.0))
    sizes = np.array(sorted(fastest), np.int64)
    return map_unit(sizes, np.array([1e9 / fastest[size] for size in sizes.tolist()]))


def _streamed(kind: str, points: list[Point], drive: str, latency_ns: float) -> Estimate:
    """Return the rate of sequential requests: measured, or no slower than one random one."""
    key = f"sequential_{kind}"
    rates = [one.bytes_per_s for one in points if one.pattern == kind and one.is_direct]
    if rates:
        how = "the highest measured"
        if kind == "write" and max(rates) > CLIFF_TIMES * min(rates):
            how += f"; {human_rate(min(rates))} was measured too: a cache of the SSD (SLC) may fill"
        return Estimate(DRIVE, key, max(rates), "bytes/s", how=how)
    large = [one for one in usable(points)[0] if one.direction == kind and one.block_bytes >= LARGE]
    filling = [one for one in large if one.block_bytes * one.depth >= FILLING]
    best = max(filling, key=lambda one: one.bytes_per_s, default=None)
    if best is not None and best.bytes_per_s > 0:
        how = f"random {kind}s of {best.block_bytes // 1024} KiB at depth {best.depth}"
        return Estimate(DRIVE, key, best.bytes_per_s, "bytes/s", how=how)
    usual = like(drive, key, "bytes/s", f"no sequential {kind}s; ")
    value, least = float(usual.value), TRANSFERS * KIB4 * 1e9 / latency_ns
    if value < least:
        usual = replace(usual, how=f"no sequential {kind}s; as fast as a random {kind} is short")
    return replace(usual, value=max(value, least))


# Completions that are held.


def _hold_ns(points: list[Point]) -> float:
    """Return for how long completions are held, from random reads of one size; 0: not at all."""
    reads = [one for one in points if one.direction == "read" and FAST in one.percentiles_ns]
    first = [one for one in reads if one.depth == 1]
    if not first:
        return 0.0
    alone = min(first, key=lambda one: one.block_bytes)
    same = [one for one in reads if one.block_bytes == alone.block_bytes]
    top = max(one.iops for one in same)
    some = [one for one in same if HELD_FROM <= one.depth <= HELD_TO and one.iops < FREE * top]
    if not some:
        return 0.0
    shallow = min(some, key=lambda one: one.depth)
    fast_ns = alone.percentiles_ns[FAST]
    longer_ns = shallow.percentiles_ns[FAST] - fast_ns
    return longer_ns if longer_ns >= LONGER * fast_ns else 0.0


def _at_once(point: Point, hold: float) -> Point:
    """Return a point with its latencies as if none had been held."""
    least_ns = point.percentiles_ns.get(FAST, 0.0) + NEARLY * hold
    known = point.percentiles_ns.items()
    return replace(point, percentiles_ns={p: ns - hold * (ns >= least_ns) for p, ns in known})


def _held(hold: float) -> Iterator[Estimate]:
    """Yield the keys of the host."""
    if hold:
        how = "of several reads at a time the fastest fifth takes so much longer than of one"
        why = f"as {LIKE_CONTROLLER}"
        yield Estimate("host", "hold", hold, "ns", how=how)
        yield Estimate("host", "hold_from", HOLD_FROM, determined=False, how=why)
        yield Estimate("host", "hold_within", HOLD_WITHIN_NS, "ns", determined=False, how=why)
