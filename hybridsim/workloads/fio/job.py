"""Jobs as numbers: the options of each process, with fio's defaults."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.machine_parameters import JobParameters
from hybridsim.foundation.units import human_size
from hybridsim.requests.jobs import ENDS_ALL, ENDS_GROUP, ENDS_KIN
from hybridsim.requests.source import NEVER
from hybridsim.workloads.fio import options
from hybridsim.workloads.fio.blocks import ones_of
from hybridsim.workloads.fio.conditions import Floor, Steady, steady_of
from hybridsim.workloads.fio.jobfile import COMMAND_LINE, Section, Written
from hybridsim.workloads.fio.options import OptionValue, Reader, Three, option, read_options
from hybridsim.workloads.fio.pattern import (
    ENDLESS,
    READ,
    SYNC,
    TRIM,
    WRITE,
    Distribution,
    Pattern,
    Service,
    Stream,
)
from hybridsim.workloads.fio.reader import (
    Shares,
    check_writers,
    distributed,
    goal_of,
    served,
    shares_of,
    sizes_of,
    zoned,
)

if TYPE_CHECKING:
    from hybridsim.traces.trace import Trace
    from hybridsim.workloads.fio.requests import Pace

SECOND, MILLISECOND, MICROSECOND = 10**9, 10**6, 10**3
DIRECTIONS = {
    "read": (READ,), "write": (WRITE,), "trim": (TRIM,), "rw": (READ, WRITE),
    "readwrite": (READ, WRITE), "trimwrite": (TRIM, WRITE),
}  # fmt: skip
EXITS = {"group": ENDS_KIN, "stonewall": ENDS_GROUP, "all": ENDS_ALL}
ZONE_MODES = ("none", "strided", "zbd")
PROCESSES = {"linear": False, "poisson": True}  # of arrivals
LOGS = ("bw", "lat", "iops", "hist")
BY_DIRECTION = frozenset({"bs", "ba", "rate", "rate_iops", "rate_min", "rate_iops_min"})
MIXED = ("1", "mixed")  # values of unified_rw_reporting
ERRORS_SHOWN = 20  # of a file that may be no job file
UNSET = ("0", "none")  # values of verify
FEW_BLOCKS = 12  # with at least as many, normal's mean of twelve numbers is never the last one
WORD = 64  # blocks of a word of fio's map
MIN_FILE_BYTES = 4096  # of a log's file
Percents = tuple[float, ...]
PERCENTS: Percents = (
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9,
    99.95, 99.99,
)  # fmt: skip


def _coarseness(text: str) -> int:
    if text not in tuple("0123456"):
        raise ValueError(f"{text!r}: must be 0 to 6; each step halves the number of bins")
    return int(text)


def _percents(text: str) -> Percents:
    return tuple(sorted(options.decimal(part) for part in text.split(":")))


def _unified(reader: Reader) -> str:
    return reader.read("unified_rw_reporting", str, "none")


def _skipped(text: str) -> tuple[int, ...]:
    kinds = {"read": READ, "write": WRITE, "trim": TRIM, "sync": SYNC}
    names = [name.strip() for name in text.split(",")]
    if not set(names) <= kinds.keys():
        raise ValueError(f"{text!r}: must be a list of read, write, trim and sync")
    return tuple(kinds[name] for name in names)


@dataclass(frozen=True)
class Replay:
    """Source of a job's requests if it is a log."""

    path: str
    redirect: str = option(lambda it: it.read("replay_redirect", str, ""))  # the file's other name
    is_unstalled: bool = option(lambda it: it.flag("replay_no_stall"))  # not at the log's times
    # 200: in half the time.
    time_percent: int = option(lambda it: it.number("replay_time_scale", 100, 1))
    scale: int = option(lambda it: it.number("replay_scale", 1, 1))  # divisor of offsets
    # offsets are rounded down to multiples of it
    align_bytes: int = option(lambda it: it.read("replay_align", options.size, 0))
    # directions that are not replayed
    skipped: tuple[int, ...] = option(lambda it: it.read("replay_skip", _skipped, ()))
    log: Trace | None = None  # the file at `path`, once it is open

    def placed(self, offset: Ints) -> Ints:
        """Return scaled and aligned offsets."""
        offset = offset // self.scale
        return offset // self.align_bytes * self.align_bytes if self.align_bytes else offset


def replay_of(reader: Reader) -> Replay | None:
    """Return the replay options of a job; None without read_iolog."""
    path = reader.read("read_iolog", str, "")
    if not path:
        return None
    return Replay(path, **read_options(Replay, reader))


@dataclass(kw_only=True)
class Job(JobParameters):
    """One process of a job: what the machine takes of it, and what its requests are.

    Of the machine's parameters `kin` is its reporting group, `set` the index of its section, and
    the fields from `limit_read_ns` to `keeps_on` are its latency options.
    """

    name: str
    thread: int = 0  # 1-based index over all jobs
    reported_with: int = 0  # group_reporting: results with equal numbers are merged
    specified: Mapping[str, str]  # all its options, global ones included
    own: Mapping[str, str] = field(default_factory=dict)  # the options of its own section
    pattern: Pattern  # file_bytes is 0 without a size, or with a size in percent
    files: tuple[str, ...] = ()  # each of pattern.file_bytes
    has_size: bool
    shares: Shares = field(default_factory=Shares)
    bytes_per_s: Three = option(lambda it: it.three("rate", options.size, 0))
    requests_per_s: Three = option(lambda it: it.three("rate_iops", options.size, 0))
    is_poisson: bool = option(lambda it: it.choice("rate_process", PROCESSES, False))
    is_direct: bool = option(lambda it: it.flag("direct"))
    # writes complete when they are on the medium
    is_durable: bool = option(lambda it: it.read("sync", str, "0") not in ("0", "none"))
    reports_apart: bool = option(lambda it: _unified(it) not in MIXED)  # reads, writes, trims
    reports_mixed: bool = option(lambda it: _unified(it) in (*MIXED, "2", "both"))  # their sum
    percents: Percents = option(lambda it: it.read("percentile_list", _percents, PERCENTS))
    logs: Mapping[str, str] = field(default_factory=dict)  # bw, lat, iops: prefix
    log_window_ns: int = option(lambda it: it.time("log_avg_msec", MILLISECOND))  # 0: no window
    log_offsets: bool = option(lambda it: it.flag("log_offset"))
    log_maxima: bool = option(lambda it: it.flag("log_max_value"))  # instead of means of latencies
    log_is_shared: bool = option(lambda it: not it.flag("per_job_logs", True))  # one file a prefix
    hist_window_ns: int = option(lambda it: it.time("log_hist_msec", MILLISECOND))  # 0: no log
    # 2^coarseness bins are merged into one
    hist_coarseness: int = option(lambda it: it.read("log_hist_coarseness", _coarseness, 0))
    iolog: str = ""  # path of write_iolog
    replay: Replay | None = option(replay_of)  # read_iolog: source of the requests
    pace: Pace | None = None  # of a real run: no request is issued earlier than there
    floor: Floor = option(lambda it: Floor(**read_options(Floor, it)))
    steady: Steady = option(steady_of)
    is_idle: bool = False  # its engine makes no requests to storage
    rate_window_ns: int = option(lambda it: it.time("bwavgtime", MILLISECOND) or SECOND // 2)
    iops_window_ns: int = option(lambda it: it.time("iopsavgtime", MILLISECOND) or SECOND // 2)

    @property
    def lacks_size(self) -> bool:
        """Whether no option and no log determines the size of its files."""
        return not (self.has_size or self.shares.size or self.replay or self.is_idle)

    @property
    def percent(self) -> float:
        """The share of requests that must meet the latency target, in percent."""
        return self.share / 10**4


def opened(job: Job, read: Callable[[str], Trace]) -> Job:
    """Return a replaying job with its log open and the log's file and size; others unchanged.

    `read` opens a trace by its path.  Raises UsageError for a log of several files, TraceError for
    an unreadable one.
    """
    if job.replay is None:
        return job
    trace = read(job.replay.path)
    summary = trace.summary()
    if len(trace.devices) > 1:
        names = ", ".join(device.name for device in trace.devices)
        raise UsageError(
            f"job {job.name}: read_iolog={job.replay.path} has requests to {len(trace.devices)} "
            f"files ({names}); only logs of one file are supported: split it"
        )
    end = job.replay.placed(np.array([summary.max_end_bytes]))[0]
    end = max(int(end) + job.replay.align_bytes, MIN_FILE_BYTES)
    pattern = replace(job.pattern, file_bytes=end, pass_bytes=end, offset_bytes=0)
    file = job.replay.redirect or trace.devices[0].name
    log = replace(job.replay, log=trace)
    return replace(job, replay=log, pattern=pattern, files=(file,), has_size=True)


def jobs_of(written: Written) -> list[Job]:
    """Return all processes of all jobs; raise UsageError with all mistakes."""
    wrong = list(written.wrong)
    if not written.jobs and not wrong:
        wrong.append("no job: specify a job file, or --name=... with the options of a job")
    jobs: list[Job] = []
    group, reported = -1, -1
    names: dict[str, int] = {}
    writers: dict[str, int] = {}
    exits = False
    for number, (section, common) in enumerate(written.jobs):
        specified = {key: common[key] for key in common if key not in section.options}
        specified |= section.options  # in the order of their places
        if "filename" in common and "filename" in section.options:  # as in fio: files add up
            added = section.options["filename"]
            all_files = f"{common['filename'].value}:{added.value}"
            specified["filename"] = replace(added, value=all_files)
        for key in BY_DIRECTION & common.keys() & section.options.keys():
            before, after = common[key].value, section.options[key]
            specified[key] = replace(after, value=options.filled(before, after.value))
        reader = Reader(specified, wrong, section.place)
        begins = reader.flag("stonewall") or not jobs
        group += begins
        reported += begins or reader.flag("new_group")
        name = reader.read("name", str, section.name)
        one = replace(_job(reader, name, names), set=number)
        exits = exits or reader.flag("exitall")
        names[name] = number
        count = reader.number("numjobs", 1, 1)
        together = reader.flag("group_reporting")
        own = {key: option.value for key, option in section.options.items()}
        named = _files_named(section, common)
        if _is_nrfiles_later(reader, section, common):
            named = named[: reader.number("nrfiles", 1, 1)]
        for clone in (0, *range(count - 1, 0, -1)):  # as fio numbers them
            thread = len(jobs) + 1
            files = _of_clone(reader, section.name, clone, named)
            increment, share = reader.amount("offset_increment")
            begin = one.pattern.offset_bytes + clone * increment
            pattern = replace(one.pattern, file_names=files, thread=thread, is_clone=clone > 0)
            pattern = _of_files(reader, one, replace(pattern, offset_bytes=begin))
            jobs.append(
                replace(
                    one,
                    thread=thread,
                    group=group,
                    kin=reported,
                    reported_with=reported if together else -thread,
                    own=own,
                    files=files,
                    shares=one.shares.further(clone * share),
                    pattern=pattern,
                )
            )
            check_writers(reader, pattern, group, writers)
    if wrong:
        raise UsageError(_listed(list(dict.fromkeys(wrong))))
    if not exits:  # as in fio, exitall of one job is that of all
        jobs = [replace(job, ends=0) for job in jobs]
    return jobs


def _listed(wrong: Sequence[str]) -> str:
    """Return the lines of all errors, or of the first ones where the text is no job file at all."""
    if len(wrong) <= ERRORS_SHOWN:
        return "\n".join(wrong)
    more = f"... and {len(wrong) - ERRORS_SHOWN} more errors; is this a job file of fio?"
    return "\n".join([*wrong[:ERRORS_SHOWN], more])


def _is_nrfiles_later(reader: Reader, section: Section, common: Mapping[str, OptionValue]) -> bool:
    """Return whether fio reads nrfiles after filename, whose files it then reduces in number.

    In a section of a job file fio reads filename last, on a command line in the order of options.
    """
    if not {"nrfiles", "filename"} <= reader.specified.keys():
        return False
    for options_of in (section.options, common):
        if "nrfiles" in options_of and "filename" in options_of:
            order = list(options_of)
            is_file = not options_of["filename"].place.startswith(COMMAND_LINE)
            is_later = not is_file and order.index("nrfiles") > order.index("filename")
            break
    else:
        is_later = "nrfiles" in section.options
    number = reader.number("nrfiles", 1, 1)
    if "nrfiles" in section.options and "filename" in section.options and "filename" in common:
        if number < len(_names(common["filename"].value)):
            reader.refuse(
                f"nrfiles={number} with a filename both before it and after it: fio itself fails; "
                "name all files once",
            )
    return is_later


def _files_named(section: Section, common: Mapping[str, OptionValue]) -> tuple[str, ...]:
    """Return the files that filename names, in their folders.

    As in fio they are in the first folder of the directory that is known when fio reads filename,
    and those of [global] and of the section add up.  In a section of a job file fio reads directory
    before filename, on a command line in the order of options.
    """
    result: list[str] = []
    inherited = None
    for options_of in (common, section.options):
        folder = options_of.get("directory", inherited)
        if "filename" in options_of:
            named, order = options_of["filename"], list(options_of)
            if "directory" in options_of and named.place.startswith(COMMAND_LINE):
                if order.index("directory") > order.index("filename"):
                    folder = inherited
            first = _names(folder.value)[:1] if folder else ()
            result += ["/".join((*first, file)) for file in _names(named.value)]
        inherited = options_of.get("directory", inherited)
    return tuple(result)


def _of_clone(reader: Reader, name: str, clone: int, files: tuple[str, ...]) -> tuple[str, ...]:
    """Return the files of one process (clone) of a job; as in fio clones share named files."""
    if files:
        return files
    none: tuple[str, ...] = ()
    folders = reader.read("directory", _names, none)
    number = reader.number("nrfiles", 1, 1)
    form = reader.read("filename_format", str, "") or "$jobname.$jobnum.$filenum"
    if number == 1 and name.startswith("/dev/"):
        files = (name,)  # as in fio: a job may have the name of a device
    if not files:
        files = tuple(_named(form, name, clone, file) for file in range(number))
        if clone and files == tuple(_named(form, name, 0, file) for file in range(number)):
            reader.refuse(f"filename_format={form}: clones need $jobnum, or a filename")
    if folders:
        folder = folders[clone % len(folders)]
        # As in fio also after a slash: the name seeds zipf, pareto and normal.
        files = tuple(f"{folder}/{file}" for file in files)
    return files


def _named(form: str, name: str, clone: int, file: int) -> str:
    """Return the name of a file from filename_format; keywords are in any case."""
    values = {"jobname": name, "jobnum": str(clone), "filenum": str(file), "clientuid": ""}
    return re.sub(
        r"\$(jobname|jobnum|filenum|clientuid)",
        lambda match: values[match[1].lower()],
        form,
        flags=re.IGNORECASE,
    )


def is_device(file: str) -> bool:
    """Return whether a file is a device by its name; it is as large as the volume."""
    return file.startswith("/dev/") and not file.startswith("/dev/shm/")


def _of_files(reader: Reader, job: Job, own: Pattern) -> Pattern:
    """Return the pattern of one process; refuse options that do not work with several files."""
    if job.is_idle:
        return job.pattern
    own = _of_all_files(reader, job, own)
    if job.has_size and job.shares.moved:  # io_size=50%
        total = own.file_bytes * job.shares.moved // 100 * own.files
        own = replace(own, total_bytes=total, pass_bytes=total)
    return own


def _of_all_files(reader: Reader, job: Job, own: Pattern) -> Pattern:
    pattern = job.pattern
    number = own.files
    begin = own.offset_bytes
    is_null = reader.read("ioengine", str, "psync") == "null"
    if "filesize" in reader.specified:
        each = pattern.file_bytes - begin
        if each <= 0:
            reader.refuse("filesize must be larger than the offset in the file")
        each = job.shares.part_of(pattern.file_bytes, each, pattern.block_bytes)
        own = replace(own, file_bytes=each)
        size = pattern.total_bytes or each * number
        if size < pattern.block_bytes:
            reader.refuse(f"size is less than a block of {human_size(pattern.block_bytes)}")
        if is_null and pattern.total_bytes:  # as in fio: its files have no other size
            end = max(begin + each, pattern.total_bytes // number)
            own = replace(own, end_bytes=max(own.end_bytes, end))
        own = replace(own, total_bytes=min(size, each * number))
        if not own.has_io_size:
            own = replace(own, pass_bytes=own.total_bytes)
    _check_end(reader, own, number)
    own = zoned(reader, own)
    if number == 1:
        return own
    name = "nrfiles" if "nrfiles" in reader.specified else "filename"
    if not pattern.file_bytes and not all(map(is_device, own.file_names)):
        reader.refuse(f"{name}: {number} files need a size=, which is that of all together")
    if "openfiles" in reader.specified:
        opened = reader.number("openfiles", 0)
        if 0 < opened < number and job.depth > 1:
            reader.refuse("openfiles is supported only with iodepth=1: fio's own "
                          "order of files depends on the time of completions")  # fmt: skip
        own = replace(own, open_files=opened)
    if job.depth > 1 and pattern.service > Service.RANDOM and _may_end(own, number):
        reader.refuse(
            f"file_service_type={reader.specified['file_service_type'].value} with "
            f"iodepth={job.depth} and requests that reach the end of a file: which file fio opens "
            "again depends on the time of completions; use iodepth=1",
        )
    if "filesize" in reader.specified:
        return own
    each = pattern.file_bytes // number
    if pattern.file_bytes and each < pattern.block_bytes:
        reader.refuse(f"size must be at least one block for each of the {number} files")
    rest = pattern.file_bytes - each * number
    if rest >= pattern.block_bytes:
        reader.refuse(f"size must be a multiple of the {number} files")
    if not own.has_io_size:
        own = replace(own, pass_bytes=each * number)
    return replace(own, file_bytes=each)


def _check_end(reader: Reader, pattern: Pattern, number: int) -> None:
    """Refuse jobs that fio itself does not end, or whose lengths it reads beyond its own memory."""
    file_bytes = pattern.file_bytes
    if "filesize" not in reader.specified:
        file_bytes //= number
    blocks = file_bytes // pattern.rank_bytes
    is_wide = pattern.distribution == Distribution.NORMAL and pattern.shape > 0
    if pattern.is_random and is_wide and 1 < blocks < FEW_BLOCKS:
        reader.refuse(
            f"random_distribution=normal with a deviation over only {blocks} blocks: fio itself "
            "may search for a block without end; use larger files",
        )
    own = replace(pattern, file_bytes=file_bytes)
    blocks, seed = own.map_bytes // own.block_bytes, own.seeds()[Stream.BLOCK]
    if own.uses_register and blocks and (seed + 1) & ones_of(blocks) == 0:
        reader.refuse(
            f"random_generator=lfsr does not start with the seed of process {own.thread} for "
            f"{blocks} blocks, nor in fio: specify another randseed or size",
        )
    has_zones = pattern.zone_bytes > 0
    mapped_bytes = (pattern.zone_range or pattern.zone_bytes) if has_zones else file_bytes
    blocks = mapped_bytes // pattern.block_bytes
    is_partial = pattern.unaligned_sizes and mapped_bytes % pattern.block_bytes > 0
    is_mixed = any(each.maximum > each.minimum for each in pattern.sizes)
    is_outside = blocks % (2 * WORD) == 0 or blocks == WORD  # other memory follows the map's words
    if pattern.uses_map and is_mixed and (has_zones or is_partial) and is_outside:
        name = "zonesize" if has_zones else "bs_unaligned"
        reader.refuse(
            f"{name} with random requests of several sizes, which may end beyond the last of "
            f"{blocks} blocks: fio itself looks them up outside of its map; use norandommap",
        )


def _check_order(reader: Reader, pattern: Pattern, uncertain: Sequence[str]) -> None:
    """Refuse jobs whose requests depend in fio on when others complete.

    With the `uncertain` options, which are set, that is open.
    """
    engine = reader.read("ioengine", str, "psync")
    depth = pattern.depth
    is_repeating = pattern.is_random and not pattern.uses_map and pattern.directions != (READ,)
    if reader.flag("serialize_overlap") and depth > 1 and is_repeating:
        reader.refuse(
            "serialize_overlap=1 is supported only where requests do not overlap: with a random "
            "map or iodepth=1",
        )
    if reader.flag("rate_ignore_thinktime") and reader.time("thinktime", MICROSECOND):
        if {"rate", "rate_iops"} & reader.specified.keys():
            reader.refuse(
                "rate_ignore_thinktime=1 with a rate and a think time is not supported",
            )
    if depth > 1 and pattern.may_unmark and not pattern.writes_what_it_trims:
        kind = reader.specified["rw"].value
        partly = f"rw={kind}" if pattern.every > 1 else "percentage_random"
        # posixaio's completions are taken in no fixed order
        for option in (*uncertain, *["ioengine"] * (engine == "posixaio")):
            reader.refuse(
                f"{option}={reader.specified[option].value} with {partly}, a random map and "
                f"iodepth={depth}: which requests fio does not mark in its map depends on the "
                "time of completions; use norandommap",
            )
    is_again = pattern.is_endless or reader.number("loops", 1) > 1
    has_rest = any(pattern.file_bytes % pattern.sizes[each].maximum for each in pattern.directions)
    is_partly = min(pattern.random_percent) < 100
    for name in ("fsync_on_close", "end_fsync"):
        if not (reader.flag(name) and pattern.may_unmark and is_partly and is_again and has_rest):
            continue
        if WRITE in pattern.directions:
            reader.refuse(
                f"{name}=1 with percentage_random, a random map, several passes and a size that is "
                "no multiple of a block is not supported; use a multiple of bs",
            )
    for name in ("fsync", "fdatasync"):
        every = reader.number(name, 0)
        is_free = depth == 1 or not every or WRITE not in pattern.directions
        if is_free or pattern.writes_what_it_trims:
            continue
        is_seldom = pattern.directions == (WRITE,) and every >= depth
        if engine != "libaio" and not (engine == "null" and is_seldom):
            reader.refuse(
                f"{name}={every} with ioengine={engine} and iodepth={depth}: where fio syncs "
                "depends on the time of completions; use iodepth=1 or ioengine=libaio",
            )
        is_batch = reader.number("iodepth_batch", 1) > 1
        for option in (*uncertain, *["iodepth_batch"] * is_batch):
            if is_batch or not is_seldom:
                reader.refuse(
                    f"{option}={reader.specified[option].value} with {name}={every} and "
                    f"iodepth={depth}: where fio syncs depends on the time of completions; use "
                    "iodepth=1",
                )


def _may_end(pattern: Pattern, number: int) -> bool:
    """Return whether a request may find no place in a file that is chosen by a skewed order."""
    is_drawn = pattern.is_random and pattern.every == 1
    lengths = {each.minimum for each in pattern.sizes} | {each.maximum for each in pattern.sizes}
    ranked = (Distribution.ZIPF, Distribution.PARETO, Distribution.NORMAL)
    if pattern.distribution in ranked:  # their last block may lie beyond the end of the file
        each = pattern.file_bytes if pattern.total_bytes else pattern.file_bytes // number
        units = {pattern.sizes[kind].unit for kind in pattern.directions}
        if each % pattern.rank_bytes or units != {pattern.rank_bytes}:
            return True
    return not is_drawn or (pattern.uses_map and len(lengths) > 1)


def _job(reader: Reader, name: str, earlier: Mapping[str, int]) -> Job:
    engine = reader.read("ioengine", options.engine_of, "psync")
    if engine in options.OTHER_ENGINES:
        reader.refuse(f"ioengine={engine} {options.OTHER_ENGINES[engine]}")
    elif engine not in options.ENGINES + options.SYNC_ENGINES + options.IDLE_ENGINES:
        names = ", ".join(options.ENGINES[:2] + options.SYNC_ENGINES[:6])
        reader.refuse(f"ioengine={engine} is not supported; supported are {names}")
    is_idle = engine in options.IDLE_ENGINES or reader.flag("create_only")
    if not is_idle and reader.number("kb_base", 1024) != 1024:
        reader.refuse("kb_base=1000 is not supported: use kb_base=1024")
    depth = reader.number("iodepth", 1, 1)
    is_queued = engine not in options.SYNC_ENGINES
    if not is_queued:
        depth = 1  # as in fio: synchronous engines have one request outstanding
    is_offload = reader.read("io_submit_mode", str, "inline") == "offload"
    if is_offload and not is_queued and reader.number("iodepth", 1, 1) > 1:
        reader.refuse(
            f"io_submit_mode=offload with ioengine={engine} and an iodepth is not supported: use "
            "ioengine=libaio",
        )
    if engine == "vsync":
        several = [
            name
            for name in ("iodepth", "loops", "io_size", "verify")
            if name in reader.specified and reader.specified[name].value not in ("0", "1")
        ]
        for name in (*several, *["time_based"] * reader.flag("time_based")):
            reader.refuse(
                f"{name} with ioengine=vsync, which merges neighbouring requests and so counts "
                "those of a pass otherwise, is not supported: use ioengine=psync or libaio",
            )
    pattern = _pattern(reader)
    has_size = pattern.file_bytes > 0
    if engine == "null":
        is_queued = depth > 1
        pattern = replace(pattern, queues_trims=is_queued)
        if "size" not in reader.specified:  # as in fio, holes do not start again at its end
            pattern = replace(pattern, end_bytes=ENDLESS)
    pattern = replace(pattern, is_queued=is_queued)
    is_verified = reader.read("verify", str, "0") not in (*UNSET, "null")
    reads_back = is_verified and WRITE in pattern.directions and reader.flag("do_verify", True)
    is_only_checked = pattern.directions == (READ,) and reader.read("verify", str, "0") not in UNSET
    pattern = replace(
        pattern,
        # As in fio 3.33, a job that only reads and has verify= never begins a file again.
        repeats_files=pattern.repeats_files and (pattern.is_endless or not is_only_checked),
        is_verified=is_verified,
        reads_back=reads_back,
        backlog=reader.number("verify_backlog", 0) if reads_back else 0,
        backlog_batch=reader.number("verify_backlog_batch", 0) if reads_back else 0,
    )
    minimum = reader.number("iodepth_batch_complete_min", 1)
    maximum = max(reader.number("iodepth_batch_complete_max", minimum), minimum)
    if maximum == 0 and is_queued and not is_offload:
        depth = 1  # as in fio, which then waits for a completion after each request
    minimum, maximum = max(minimum, 1), max(maximum, 1)
    low = min(reader.number("iodepth_low", depth), depth)
    freed = minimum * max(1, -(-(depth - low) // minimum))
    pattern = replace(pattern, depth=depth, freed=min(freed, depth))
    uncertain = {
        "rate": "rate" in reader.specified,
        "rate_iops": "rate_iops" in reader.specified,
        "thinktime": reader.time("thinktime", MICROSECOND) > 0,
        "iodepth_batch_complete_max": maximum > minimum,
        "latency_target": "latency_target" in reader.specified,
        "io_submit_mode": is_offload,
    }
    _check_order(reader, pattern, [name for name, is_set in uncertain.items() if is_set])
    logs = {
        kind: name if prefix.value in ("", "1") else prefix.value
        for kind in LOGS
        if (prefix := reader.specified.get(f"write_{kind}_log"))
    }
    ramp_ns = reader.time("ramp_time", SECOND)
    run_ns = reader.time("runtime", SECOND)
    pause_ns = reader.time("thinktime", MICROSECOND)
    busy_ns = reader.time("thinktime_iotime", MICROSECOND)
    waitee = reader.read("wait_for", str, "")
    if waitee and waitee not in earlier:
        known = f"earlier jobs are {', '.join(earlier)}" if earlier else "it is the first job"
        reader.refuse(f"wait_for={waitee}: no earlier job has this name; {known}")
    return Job(
        **read_options(Job, reader),
        **goal_of(reader),
        name=name,
        specified={key: option.value for key, option in reader.specified.items()},
        pattern=pattern,
        has_size=has_size,
        shares=shares_of(reader, has_size),
        depth=depth,
        low=low,
        reap_min=minimum,
        reap_max=maximum,
        delay_ns=reader.time("startdelay", SECOND),
        ramp_ns=ramp_ns,
        run_ns=ramp_ns + run_ns if run_ns else 0,
        pause_ns=pause_ns,
        pause_after=reader.number("thinktime_blocks", int(not busy_ns), 1),
        counts_issues=reader.read("thinktime_blocks_type", str, "complete") == "issue",
        pause_every_ns=busy_ns + pause_ns if busy_ns else 0,
        logs=logs,
        iolog="" if "read_iolog" in reader.specified else reader.read("write_iolog", str, ""),
        is_idle=is_idle,
        after=earlier.get(waitee, -1),
        ends=reader.choice("exit_what", EXITS, ENDS_KIN),
        weight=reader.number("flow", 0),
        flow=reader.number("flow_id", 0),
        flow_sleep_ns=reader.time("flow_sleep", MICROSECOND),
    )


def _pattern(reader: Reader) -> Pattern:
    kind, _, how = reader.read("rw", str, "read").partition(":")
    plain = kind.removeprefix("rand")
    is_random = kind != plain
    if plain not in DIRECTIONS:
        names = "read, write, randread, randwrite, rw, randrw, trim, randtrim, "
        names += "trimwrite and randtrimwrite"
        reader.refuse(f"rw={kind} is not supported; supported are {names}")
        plain = "read"
    seed = reader.read("randseed", options.plain, -1)
    size, _ = reader.amount("size")
    total = 0
    if "filesize" in reader.specified:
        total, size = size, reader.read("filesize", _one_size, 0)
    moved = reader.amount("io_size")[0]
    passes = max(1, reader.number("loops", 1))
    # As in fio, time_based without a runtime has no effect.
    is_endless = reader.flag("time_based") and reader.time("runtime", SECOND) > 0
    rates = (*reader.three("rate", options.size, 0), *reader.three("rate_iops", options.size, 0))
    pattern = Pattern(
        **read_options(Pattern, reader),
        **served(reader),
        **distributed(reader),
        **_zones(reader),
        directions=DIRECTIONS[plain],
        writes_what_it_trims=plain == "trimwrite",
        is_random=is_random,
        file_bytes=size,
        total_bytes=total,
        sizes=sizes_of(reader, is_random),
        read_percent=_read_percent(reader),
        is_by_rates=any(rates) and plain in ("rw", "readwrite"),
        every=reader.read("rw", _every, 1) if how and is_random else 1,
        hole_bytes=reader.read("rw", _hole, 0) if how and not is_random else 0,
        repeats_files=is_endless or passes > 1 or reader.flag("do_verify", True),
        seed=None if seed < 0 else seed,
        pass_bytes=moved or size,
        has_io_size=moved > 0,
        passes=passes,
        is_endless=is_endless,
        requests=0 if is_endless else reader.number("number_ios", 0),
    )
    if pattern.has_syncs and any(rates) and reader.choice("rate_process", PROCESSES, False):
        name = "fsync" if pattern.writes_between_syncs else "fdatasync"
        reader.refuse(
            f"{name} with rate_process=poisson and a rate: fio 3.33 itself divides by zero at the "
            "first sync, and dies; use rate_process=linear",
        )
    return pattern


def _read_percent(reader: Reader) -> int:
    """Return the share of reads; of rwmixread and rwmixwrite the later one counts."""
    for name in reversed(list(reader.specified)):
        if name == "rwmixread":
            return reader.read(name, options.percent, 50)
        if name == "rwmixwrite":
            return 100 - reader.read(name, options.percent, 50)
    return 50


def _zones(reader: Reader) -> dict[str, Any]:
    """Return zonesize, zonerange and zoneskip of zonemode=strided; nothing without zones."""
    names = {"zone_bytes": "zonesize", "zone_range": "zonerange", "zone_skip": "zoneskip"}
    zones = {each: reader.read(name, options.size, 0) for each, name in names.items()}
    mode = reader.choice("zonemode", {each: each for each in ZONE_MODES}, "none")
    if mode == "strided" and not zones["zone_bytes"]:
        reader.refuse("zonemode=strided needs a zonesize: for example zonesize=256m")
    if mode == "none" and zones["zone_bytes"]:
        reader.refuse("zonesize needs zonemode=strided")
    is_on = mode == "strided" and reader.number("openfiles", 0) <= 1
    return zones if is_on else {}


def _one_size(text: str) -> int:
    if "-" in text or "," in text:
        raise ValueError(f"{text}: a range of sizes is not supported; use one size")
    return options.size(text)


def _names(text: str) -> tuple[str, ...]:
    names = text.replace("\\:", "\0").split(":")
    return tuple(name.replace("\0", ":") for name in names if name)


def _every(text: str) -> int:
    number = options.plain(text.partition(":")[2])
    if number < 1:
        raise ValueError(f"{text}: a new offset after each {number} requests is not possible")
    return number


def _hole(text: str) -> int:
    hole = text.partition(":")[2].strip()
    return -options.size(hole[1:]) if hole.startswith("-") else options.size(hole)


@dataclass(frozen=True)
class RealRun:
    """Age of the cache, pace, and later load of a real run; times in ns."""

    lead_ns: int = 0  # age of the cache at the start of the jobs, the origin of all times
    paces: Sequence[Pace] = ()  # upper limits: one per process, of both loads
    later: Written | None = None  # jobs of a second fio on the same cache
    gap_ns: int = 0  # from the end of the jobs to the start of those
    reload_ns: int = NEVER  # time of a stop and restart of the cache in between

    def jobs(self, written: Written) -> list[Job]:
        """Return the jobs followed by those of the later fio, in later groups."""
        jobs = jobs_of(written)
        if self.later is not None:
            jobs += [
                replace(again(job, 1, jobs), delay_ns=job.delay_ns + self.gap_ns)
                for job in jobs_of(self.later)
            ]
        if self.paces:
            jobs = [replace(job, pace=pace) for job, pace in zip(jobs, self.paces, strict=True)]
        return jobs


SIMULATED = RealRun()  # no constraints


def again(job: Job, run: int, once: Sequence[Job]) -> Job:
    """Return the copy of a job for a repeated run, in groups after those of all earlier runs."""
    own = {name: getattr(job, name) for name in ("group", "kin", "set", "flow")}
    past = {name: run * (max(getattr(each, name) for each in once) + 1) for name in own}
    reported = run * (max(abs(each.reported_with) for each in once) + 1)
    return replace(
        job,
        **{name: number + past[name] for name, number in own.items()},
        after=job.after + past["set"] if job.after >= 0 else -1,
        reported_with=job.reported_with + (reported if job.reported_with >= 0 else -reported),
    )
