"""Jobs as numbers: the options of each process, with fio's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hybridsim.foundation.errors import UsageError
from hybridsim.workloads.fio import options
from hybridsim.workloads.fio.arrivals import Pace
from hybridsim.workloads.fio.distribution import distributed, served
from hybridsim.workloads.fio.goal import NO_GOAL, Goal, goal_of
from hybridsim.workloads.fio.jobfile import Written
from hybridsim.workloads.fio.pattern import (
    READ,
    TRIM,
    WRITE,
    Generator,
    Pattern,
)
from hybridsim.workloads.fio.reader import Reader
from hybridsim.workloads.fio.replay import Replay, replay_of
from hybridsim.workloads.fio.shares import WHOLE, Shares, amount, shares_of
from hybridsim.workloads.fio.sizes import sizes_of

SECOND, MILLISECOND, MICROSECOND = 10**9, 10**6, 10**3
DIRECTIONS = {
    "read": (READ,), "write": (WRITE,), "trim": (TRIM,), "rw": (READ, WRITE),
    "readwrite": (READ, WRITE), "trimwrite": (TRIM,),
}  # fmt: skip
PERCENTS = (
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9,
    99.95, 99.99,
)  # fmt: skip


@dataclass(frozen=True)
class Job:
    """One process of a job."""

    name: str
    thread: int  # 1-based index over all jobs
    group: int  # jobs that run concurrently; stonewall starts a new group
    reported_with: int  # group_reporting: results with equal numbers are merged
    said: Mapping[str, str]  # all its options, global ones included
    own: Mapping[str, str]  # the options of its own section
    pattern: Pattern  # file_bytes is 0 without a size, or with a size in percent
    files: tuple[str, ...]  # each of pattern.file_bytes
    has_size: bool
    shares: Shares = WHOLE
    depth: int = 1
    low: int = 1
    reap_least: int = 1
    reap_most: int = 1
    delay_ns: int = 0
    ramp_ns: int = 0
    run_ns: int = 0  # after the ramp; 0: unlimited
    bytes_per_s: tuple[int, int, int] = (0, 0, 0)
    requests_per_s: tuple[int, int, int] = (0, 0, 0)
    think_ns: int = 0
    think_blocks: int = 1
    is_direct: bool = False
    is_durable: bool = False  # writes complete when they are on the medium
    syncs_at_end: bool = False
    is_unified: bool = False  # reads, writes and trims are reported together
    goal: Goal = NO_GOAL
    percents: tuple[float, ...] = PERCENTS
    logs: Mapping[str, str] = field(default_factory=dict)  # bw, lat, iops: prefix
    log_window_ns: int = 0  # 0: one line per request
    log_offsets: bool = False
    hist_window_ns: int = 0  # 0: no histogram log
    hist_coarseness: int = 0  # 2^coarseness bins are merged into one
    iolog: str = ""  # path of write_iolog
    replay: Replay | None = None  # read_iolog: source of the requests
    is_poisson: bool = False  # arrivals at the rates are a Poisson process
    pace: Pace | None = None  # of a real run: no request is issued earlier than there

    @property
    def keeps_offsets(self) -> bool:
        """Whether one of its logs has offsets."""
        return bool(self.iolog) or self.log_offsets

    rate_window_ns: int = SECOND // 2
    iops_window_ns: int = SECOND // 2


def jobs_of(written: Written) -> list[Job]:
    """Return all processes of all jobs; raise UsageError with all mistakes."""
    wrong = list(written.wrong)
    if not written.jobs and not wrong:
        wrong.append("no job: specify a job file, or --name=... with the options of a job")
    jobs: list[Job] = []
    group, reported = -1, -1
    for section, common in written.jobs:
        reader = Reader({**common, **section.options}, wrong)
        begins = reader.flag("stonewall") or not jobs
        group += begins
        reported += begins or reader.flag("new_group")
        name = reader.read("name", str, section.name)
        one = _job(reader, name)
        count = reader.number("numjobs", 1, 1)
        together = reader.flag("group_reporting")
        own = {key: option.value for key, option in section.options.items()}
        for clone in range(count):
            thread = len(jobs) + 1
            files, begin = _of_clone(reader, one, name, clone)
            _, share = amount(reader, "offset_increment")
            jobs.append(
                replace(
                    one,
                    thread=thread,
                    group=group,
                    reported_with=reported if together else -thread,
                    own=own,
                    files=files,
                    shares=one.shares.further(clone * share),
                    pattern=_of_files(reader, one.pattern, files, thread, begin),
                )
            )
    if wrong:
        raise UsageError("\n".join(dict.fromkeys(wrong)))
    return jobs


def _of_clone(reader: Reader, one: Job, name: str, clone: int) -> tuple[tuple[str, ...], int]:
    """Return the files of one process (clone) of a job, and its offset in them."""
    folder = reader.read("directory", str, "")
    number = reader.number("nrfiles", 1, 1)
    none: tuple[str, ...] = ()
    files = reader.read("filename", _names, none)
    if files and number not in (1, len(files)):
        reader.refuse(
            "nrfiles", f"nrfiles={number}, but filename names {len(files)}: remove one of the two"
        )
    files = files or tuple(f"{name}.{clone}.{file}" for file in range(number))
    if folder:
        files = tuple(f"{folder.rstrip('/')}/{file}" for file in files)
    increment, _ = amount(reader, "offset_increment")
    return files, one.pattern.offset_bytes + clone * increment


def _of_files(
    reader: Reader, pattern: Pattern, files: tuple[str, ...], thread: int, begin: int
) -> Pattern:
    """Return the pattern of one process; refuse options that do not work with several files."""
    number = len(files)
    own = replace(pattern, file_names=files, thread=thread, offset_bytes=begin)
    if number == 1:
        return own
    name = "nrfiles" if "nrfiles" in reader.specified else "filename"
    if not pattern.file_bytes:
        reader.refuse(name, f"{name}: {number} files need a size=, which is that of all together")
    if own.writes_what_it_trims:
        reader.refuse(name, f"{name}: trimwrite is not supported with {number} files")
    if "openfiles" in reader.specified:
        reader.refuse("openfiles", f"openfiles is not supported with {number} files per job")
    each = pattern.file_bytes // number
    each -= each % pattern.block_bytes  # whole blocks, as in fio
    if pattern.file_bytes and not each:
        reader.refuse("size", f"size must be at least one block for each of the {number} files")
    return replace(own, file_bytes=each, rest_bytes=pattern.file_bytes - number * each)


def _job(reader: Reader, name: str) -> Job:
    pattern, has_size = _pattern(reader)
    engine = reader.read("ioengine", str, "psync").split(",")[0]
    if engine not in options.ENGINES + options.SYNC_ENGINES:
        names = ", ".join(options.ENGINES[:2] + options.SYNC_ENGINES)
        reader.refuse("ioengine", f"ioengine={engine} is not supported; supported are {names}")
    depth = reader.number("iodepth", 1, 1)
    if engine in options.SYNC_ENGINES:
        depth = 1  # as in fio: synchronous engines have one request outstanding
    minimum = max(reader.number("iodepth_batch_complete_min", 1), 1)
    logs = {
        kind: f"{_prefix(reader, kind, name)}"
        for kind in ("bw", "lat", "iops", "hist")
        if f"write_{kind}_log" in reader.specified
    }
    return Job(
        name,
        thread=0,
        group=0,
        reported_with=0,
        said={key: option.value for key, option in reader.specified.items()},
        own={},
        pattern=pattern,
        files=(),
        has_size=has_size,
        shares=shares_of(reader, has_size),
        depth=depth,
        low=min(reader.number("iodepth_low", depth), depth),
        reap_least=minimum,
        reap_most=max(reader.number("iodepth_batch_complete_max", minimum), minimum),
        delay_ns=reader.time("startdelay", SECOND),
        ramp_ns=reader.time("ramp_time", SECOND),
        run_ns=reader.time("runtime", SECOND),
        bytes_per_s=reader.three("rate", options.size, 0),
        requests_per_s=reader.three("rate_iops", options.whole, 0),
        think_ns=reader.time("thinktime", MICROSECOND),
        think_blocks=reader.number("thinktime_blocks", 1, 1),
        is_direct=reader.flag("direct"),
        is_durable=reader.read("sync", str, "0") not in ("0", "none"),
        syncs_at_end=reader.flag("end_fsync"),
        is_unified=reader.read("unified_rw_reporting", str, "none") in ("1", "mixed"),
        goal=goal_of(reader),
        percents=reader.read("percentile_list", _percents, PERCENTS),
        logs=logs,
        log_window_ns=reader.time("log_avg_msec", MILLISECOND),
        log_offsets=reader.flag("log_offset"),
        hist_window_ns=reader.time("log_hist_msec", MILLISECOND),
        hist_coarseness=reader.read("log_hist_coarseness", _coarseness, 0),
        iolog="" if "read_iolog" in reader.specified else reader.read("write_iolog", str, ""),
        replay=replay_of(reader),
        is_poisson=reader.read("rate_process", _is_poisson, False),
        rate_window_ns=reader.time("bwavgtime", MILLISECOND) or SECOND // 2,
        iops_window_ns=reader.time("iopsavgtime", MILLISECOND) or SECOND // 2,
    )


def _prefix(reader: Reader, kind: str, name: str) -> str:
    prefix = reader.specified[f"write_{kind}_log"].value
    return name if prefix in ("", "1") else prefix


def _pattern(reader: Reader) -> tuple[Pattern, bool]:
    kind, _, how = reader.read("rw", str, "read").partition(":")
    plain = kind.removeprefix("rand")
    is_random = kind != plain
    if plain not in DIRECTIONS:
        names = "read, write, randread, randwrite, rw, randrw, trim, randtrim, "
        names += "trimwrite and randtrimwrite"
        reader.refuse("rw", f"rw={kind} is not supported; supported are {names}")
        plain = "read"
    seed = reader.read("randseed", int, -1)
    size, _ = amount(reader, "size")
    moved = amount(reader, "io_size")[0] or size
    mixed = reader.number("rwmixread", 100 - reader.number("rwmixwrite", 50))
    randomness = reader.three("percentage_random", int, 100)
    order = served(reader)
    pattern = Pattern(
        directions=DIRECTIONS[plain],
        writes_what_it_trims=plain == "trimwrite",
        is_random=is_random,
        file_bytes=size,
        offset_bytes=amount(reader, "offset")[0],
        sizes=sizes_of(reader),
        unaligned_sizes=reader.flag("bs_unaligned"),
        read_percent=mixed,
        random_percent=randomness,
        every=reader.read("rw", _every, 1) if how and (is_random or how.isdigit()) else 1,
        stays=reader.read("rw_sequencer", str, "sequential") == "identical",
        generator=reader.read("random_generator", _generator, Generator.TAUSWORTHE),
        has_map=not reader.flag("norandommap"),
        is_repeated=reader.flag("randrepeat", True),
        seed=None if seed < 0 else seed,
        pass_bytes=moved,
        passes=reader.number("loops", 1, 1),
        is_endless=reader.flag("time_based"),
        requests=0
        if reader.flag("time_based")
        else reader.number("number_ios", 0) * reader.number("loops", 1, 1),  # per loop
        writes_between_syncs=reader.number("fsync", 0) or reader.number("fdatasync", 0),
        service=order.service,
        service_requests=order.requests,
        service_shape=order.shape,
    )
    if pattern.is_endless and "runtime" not in reader.specified:
        reader.refuse("time_based", "time_based needs a runtime: for example runtime=60")
    if not is_random and how:
        pattern = replace(pattern, hole_bytes=reader.read("rw", _hole, 0), every=1)
    if pattern.generator == Generator.LFSR and len(set(pattern.sizes)) > 1:
        reader.refuse("random_generator", "random_generator=lfsr needs one block size")
    return distributed(reader, pattern), size > 0


def _names(text: str) -> tuple[str, ...]:
    names = text.replace("\\:", "\0").split(":")
    return tuple(name.replace("\0", ":") for name in names if name)


def _coarseness(text: str) -> int:
    if text not in tuple("0123456"):
        raise ValueError(f"{text!r}: must be 0 to 6; each step halves the number of bins")
    return int(text)


def _is_poisson(text: str) -> bool:
    if text not in ("linear", "poisson"):
        raise ValueError(f"{text}: must be linear or poisson")
    return text == "poisson"


def _percents(text: str) -> tuple[float, ...]:
    return tuple(sorted(float(part) for part in text.split(":")))


def _every(text: str) -> int:
    return max(1, int(text.partition(":")[2]))


def _hole(text: str) -> int:
    return options.size(text.partition(":")[2])


def _generator(text: str) -> Generator:
    generators = {"tausworthe": Generator.TAUSWORTHE, "lfsr": Generator.LFSR}
    if text not in generators:
        raise ValueError(f"{text}: must be tausworthe or lfsr")
    return generators[text]
