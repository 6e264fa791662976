"""Read the parts of fio's results (--output-format=json or json+) that a fit uses."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hybridsim.answers.measurements import fio_json
from hybridsim.answers.measurements.gathering import NONSENSE
from hybridsim.answers.measurements.measurement import COMPLETION
from hybridsim.foundation.errors import FitError
from hybridsim.foundation.reading import whole_text
from hybridsim.workloads.fio.options import each_direction, size

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
