"""Layout of the jobs' files on the simulated volume: contiguous, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.units import human_size
from hybridsim.workloads.fio.job import Job, is_device
from hybridsim.workloads.fio.pattern import Pattern

ALIGNED_BYTES = 1 << 20


@dataclass(frozen=True)
class Laid:
    """Jobs with known sizes, and the offsets of their files on the volume."""

    jobs: list[Job]
    begin_bytes: dict[str, int]  # by file
    volume_bytes: int
    files_bytes: int  # total of all files


def lay_out(jobs: Sequence[Job], capacity_bytes: int) -> Laid:
    """Place files in order of first use; those without a size share the rest of the volume."""
    extents: dict[str, int] = {}
    for job in jobs:
        if job.is_idle:
            continue
        end = job.pattern.offset_bytes + job.pattern.file_bytes if job.has_size else 0
        most = max(sizes.maximum for sizes in job.pattern.sizes)
        for file in job.files:
            if end and is_device(file):  # a last block may exceed size, as there is more behind it
                end = min(
                    job.pattern.offset_bytes - (-job.pattern.file_bytes // most) * most,
                    max(end, capacity_bytes),
                )
            extents[file] = max(extents.get(file, 0), end)
    begin = 0
    begins: dict[str, int] = {}
    ends: dict[str, int] = {}
    if extents and extents.keys() == _of_one_export(jobs):
        begins, ends = dict.fromkeys(extents, 0), dict.fromkeys(extents, capacity_bytes)
        extents = {}
    share_bytes = _share(extents, capacity_bytes)
    for file, extent in extents.items():
        if not extent and not is_device(file) and file != list(extents)[-1]:
            raise UsageError(f"{file}: specify size=, because other files follow it on the volume")
        begins[file] = begin
        ends[file] = begin + (extent or share_bytes)
        begin = _aligned(ends[file])
    sized = [
        job if job.is_idle else _sized(job, ends[job.files[0]] - begins[job.files[0]])
        for job in jobs
    ]
    unsized = {file: share_bytes for file, extent in extents.items() if not extent}
    sized = _ended(sized, capacity_bytes, unsized)
    return Laid(
        sized,
        begins,
        max(ends.values(), default=ALIGNED_BYTES),
        sum({begins[f]: ends[f] - begins[f] for f in ends}.values()),
    )


def _aligned(end_bytes: int) -> int:
    return -(-end_bytes // ALIGNED_BYTES) * ALIGNED_BYTES


def _share(extents: dict[str, int], capacity_bytes: int) -> int:
    """Return the size of each file without one: equal parts of what the others leave."""
    unsized = sum(not extent for extent in extents.values())
    rest_bytes = capacity_bytes - sum(map(_aligned, extents.values()))
    if unsized < 2:
        return rest_bytes
    return rest_bytes // unsized // ALIGNED_BYTES * ALIGNED_BYTES


def _of_one_export(jobs: Sequence[Job]) -> set[str]:
    """Return the files without a size of ioengine=nbd: each is the whole of the same export."""
    remote = [job for job in jobs if job.specified.get("ioengine") == "nbd" and job.lacks_size]
    has_one = len({job.specified.get("uri") for job in remote}) == 1
    return {file for job in remote for file in job.files} if has_one else set()


def _ended(jobs: Sequence[Job], capacity_bytes: int, unsized: dict[str, int]) -> list[Job]:
    """Return jobs with the ends of their files, which grow from job to job; devices are whole.

    `unsized` are the sizes of the files for which no job has one.
    As in fio a job looks at the ends when it lays out its files: before the run, job by job, or
    with create_serialize=0 when it starts, in no known order.
    """
    owns = {
        number: job
        for number, job in enumerate(jobs)
        if not job.is_idle and job.specified.get("ioengine") != "null"  # its files are no real ones
    }
    late = {
        number: job for number, job in owns.items() if job.specified.get("create_serialize") == "0"
    }
    before: dict[str, int] = {}
    ends: dict[int, int] = {}  # by number of the job
    for number, job in owns.items():
        if number not in late:
            before = _grown(before, [job], capacity_bytes, unsized)
            ends[number] = _end(job, before)
    after = _grown(before, late.values(), capacity_bytes, unsized)
    for number, job in late.items():
        ends[number] = _end(job, after)
        alone = _grown(before, [job], capacity_bytes, unsized)
        if _end(job, alone) != ends[number] and _may_cross(job.pattern):
            raise UsageError(
                f"job {job.name}: another job with create_serialize=0 makes {job.files[0]} larger "
                "before or after this job's last block; remove create_serialize=0, or make size= "
                "a multiple of bs= for each file"
            )
    ended = []
    for number, job in enumerate(jobs):
        pattern = job.pattern
        own = pattern.offset_bytes + pattern.file_bytes
        end = max(ends.get(number, own), pattern.end_bytes)
        ended.append(job if job.is_idle else replace(job, pattern=replace(pattern, end_bytes=end)))
    return ended


def _grown(
    ends: dict[str, int], jobs: Iterable[Job], capacity_bytes: int, unsized: dict[str, int]
) -> dict[str, int]:
    """Return the ends of files after jobs have laid out theirs."""
    ends = dict(ends)
    for job in jobs:
        own = job.pattern.offset_bytes + job.pattern.file_bytes
        for file in job.files:
            whole = unsized.get(file, capacity_bytes)
            ends[file] = max(ends.get(file, 0), whole if is_device(file) else own)
    return ends


def _end(job: Job, ends: dict[str, int]) -> int:
    """Return the end of a job's files, which are equally long where a block may cross their end."""
    own = {file: ends[file] for file in job.files}
    end = max(own.values())
    if min(own.values()) < end and _may_cross(job.pattern):
        longest = max(own, key=lambda file: own[file])
        raise UsageError(
            f"job {job.name}: {longest} is larger than its other files by another job, and "
            f"size= is no multiple of a block: fio's last block fits in {longest} alone; "
            "make size= a multiple of bs= for each file, or use other names"
        )
    return end


def _may_cross(pattern: Pattern) -> bool:
    """Return whether a block may begin before the end of the size and end beyond it."""
    sizes = [pattern.sizes[kind] for kind in pattern.directions]
    return any(one.minimum < one.maximum or pattern.file_bytes % one.maximum for one in sizes)


def _sized(job: Job, extent_bytes: int) -> Job:
    pattern = job.pattern
    if not job.has_size:
        pattern = job.shares.of(pattern, extent_bytes)
    block_bytes = pattern.block_bytes
    if pattern.file_bytes < max(pattern.sizes[kind].minimum for kind in pattern.directions):
        raise UsageError(
            f"job {job.name}: {human_size(max(pattern.file_bytes, 0))} of {job.files[0]} is less "
            f"than a block of {human_size(block_bytes)}: increase size"
        )
    return replace(job, pattern=pattern)
