"""What each job is to do: its options with fio's defaults, as numbers."""

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
    thread: int  # from 1, over all jobs
    group: int  # jobs that run together: stonewall begins another
    reported_with: int  # group_reporting: results of equal numbers are one
    said: Mapping[str, str]  # all that was said for it, global or not
    own: Mapping[str, str]  # in its own section
    pattern: Pattern  # file_bytes is 0 if no size was said, or a share of the file
    files: tuple[str, ...]  # all of pattern.file_bytes; requests go to one after the other
    has_size: bool
    shares: Shares = WHOLE
    depth: int = 1
    low: int = 1
    reap_least: int = 1
    reap_most: int = 1
    delay_ns: int = 0
    ramp_ns: int = 0
    run_ns: int = 0  # after the ramp; 0: to the end
    bytes_per_s: tuple[int, int, int] = (0, 0, 0)
    requests_per_s: tuple[int, int, int] = (0, 0, 0)
    think_ns: int = 0
    think_blocks: int = 1
    is_direct: bool = False
    is_durable: bool = False  # each write is on the medium before it is complete
    syncs_at_end: bool = False
    is_unified: bool = False  # reads, writes and trims are told as one
    goal: Goal = NO_GOAL
    percents: tuple[float, ...] = PERCENTS
    logs: Mapping[str, str] = field(default_factory=dict)  # bw, lat, iops: prefix
    log_window_ns: int = 0  # 0: a line a request
    log_offsets: bool = False
    hist_window_ns: int = 0  # 0: no lines in a log of histograms
    hist_coarseness: int = 0  # 2^so many bins are one
    iolog: str = ""  # write_iolog: the file
    replay: Replay | None = None  # read_iolog: where requests come from
    is_poisson: bool = False  # arrivals at the rates are random, not even
    pace: Pace | None = None  # of a real run: no request comes before it came there

    @property
    def keeps_offsets(self) -> bool:
        """Whether a log of it tells offsets."""
        return bool(self.iolog) or self.log_offsets

    rate_window_ns: int = SECOND // 2
    iops_window_ns: int = SECOND // 2


def jobs_of(written: Written) -> list[Job]:
    """Return all processes; raise UsageError that names every mistake."""
    wrong = list(written.wrong)
    if not written.jobs and not wrong:
        wrong.append("no job: name a job file, or say --name=... and what it is to do")
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
        own = {key: said.value for key, said in section.options.items()}
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
    """Return what is a process's own: its files, and where in them it begins."""
    folder = reader.read("directory", str, "")
    number = reader.number("nrfiles", 1, 1)
    none: tuple[str, ...] = ()
    files = reader.read("filename", _names, none)
    if files and number not in (1, len(files)):
        reader.refuse(
            "nrfiles", f"nrfiles={number}, but filename names {len(files)}: leave one out"
        )
    files = files or tuple(f"{name}.{clone}.{file}" for file in range(number))
    if folder:
        files = tuple(f"{folder.rstrip('/')}/{file}" for file in files)
    increment, _ = amount(reader, "offset_increment")
    return files, one.pattern.offset_bytes + clone * increment


def _of_files(
    reader: Reader, pattern: Pattern, files: tuple[str, ...], thread: int, begin: int
) -> Pattern:
    """Return a process's own pattern; note what is not supported with several files."""
    number = len(files)
    own = replace(pattern, file_names=files, thread=thread, offset_bytes=begin)
    if number == 1:
        return own
    name = "nrfiles" if "nrfiles" in reader.given else "filename"
    if not pattern.file_bytes:
        reader.refuse(name, f"{name}: {number} files need a size=, which is that of all together")
    if own.writes_what_it_trims:
        reader.refuse(name, f"{name}: of {number} files none is written as soon as it is trimmed")
    if "openfiles" in reader.given:
        reader.refuse("openfiles", f"openfiles is not supported with {number} files a job")
    each = pattern.file_bytes // number
    each -= each % pattern.block_bytes  # whole blocks, as fio lays them out
    if pattern.file_bytes and not each:
        reader.refuse("size", f"size: less than a block for each of {number} files")
    return replace(own, file_bytes=each, rest_bytes=pattern.file_bytes - number * each)


def _job(reader: Reader, name: str) -> Job:
    pattern, has_size = _pattern(reader)
    engine = reader.read("ioengine", str, "psync").split(",")[0]
    if engine not in options.ENGINES + options.SYNC_ENGINES:
        known = ", ".join(options.ENGINES[:2] + options.SYNC_ENGINES)
        reader.refuse("ioengine", f"ioengine={engine} is no access to a disk here; {known} are")
    depth = reader.number("iodepth", 1, 1)
    if engine in options.SYNC_ENGINES:
        depth = 1  # as in fio: a call that waits
    least = reader.number("iodepth_batch_complete_min", 1)
    bounded = max(least, 1)
    logs = {
        kind: f"{_prefix(reader, kind, name)}"
        for kind in ("bw", "lat", "iops", "hist")
        if f"write_{kind}_log" in reader.given
    }
    return Job(
        name,
        thread=0,
        group=0,
        reported_with=0,
        said={key: said.value for key, said in reader.given.items()},
        own={},
        pattern=pattern,
        files=(),
        has_size=has_size,
        shares=shares_of(reader, has_size),
        depth=depth,
        low=min(reader.number("iodepth_low", depth), depth),
        reap_least=bounded,
        reap_most=max(reader.number("iodepth_batch_complete_max", bounded), bounded),
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
        iolog="" if "read_iolog" in reader.given else reader.read("write_iolog", str, ""),
        replay=replay_of(reader),
        is_poisson=reader.read("rate_process", _is_poisson, False),
        rate_window_ns=reader.time("bwavgtime", MILLISECOND) or SECOND // 2,
        iops_window_ns=reader.time("iopsavgtime", MILLISECOND) or SECOND // 2,
    )


def _prefix(reader: Reader, kind: str, name: str) -> str:
    said = reader.given[f"write_{kind}_log"].value
    return name if said in ("", "1") else said


def _pattern(reader: Reader) -> tuple[Pattern, bool]:
    kind, _, how = reader.read("rw", str, "read").partition(":")
    plain = kind.removeprefix("rand")
    is_random = kind != plain
    if plain not in DIRECTIONS:
        known = "read, write, randread, randwrite, rw, randrw, trim, randtrim, "
        known += "trimwrite and randtrimwrite are"
        reader.refuse("rw", f"rw={kind} is not supported; {known}")
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
        else reader.number("number_ios", 0) * reader.number("loops", 1, 1),  # so many a loop
        writes_between_syncs=reader.number("fsync", 0) or reader.number("fdatasync", 0),
        service=order.service,
        service_requests=order.requests,
        service_shape=order.shape,
    )
    if pattern.is_endless and "runtime" not in reader.given:
        reader.refuse("time_based", "time_based needs a runtime: runtime=60 is a minute")
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
        raise ValueError(f"{text!r}: 0 to 6, each halves the number of bins")
    return int(text)


def _is_poisson(text: str) -> bool:
    if text not in ("linear", "poisson"):
        raise ValueError(f"{text}: linear and poisson are known")
    return text == "poisson"


def _percents(text: str) -> tuple[float, ...]:
    return tuple(sorted(float(part) for part in text.split(":")))


def _every(text: str) -> int:
    return max(1, int(text.partition(":")[2]))


def _hole(text: str) -> int:
    return options.size(text.partition(":")[2])


def _generator(text: str) -> Generator:
    known = {"tausworthe": Generator.TAUSWORTHE, "lfsr": Generator.LFSR}
    if text not in known:
        raise ValueError(f"{text}: tausworthe and lfsr are supported")
    return known[text]
