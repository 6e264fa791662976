"""Read an experiment, a TOML file with a cache, a load and its duration; see `examples/`.

name = "dmcache-hot"
seed = 1                          # random seed of fio

[cache]
kind = "dm-cache"                 # dm-cache, dm-writecache, bcache, open-cas, page, none
mode = "writethrough"
size = "512MiB"
block = "256KiB"                  # dm-writecache: "4KiB"; bcache: bucket = "512KiB"; open-cas: line

# open-cas, as casadm has them: mode = "wb" (wt, wb, wa, wo, pt), line = "4KiB", cleaning, wake_up,
# staleness_time, activity_threshold, flush_max_buffers, promotion, insertion_threshold,
# trigger_threshold_percent, sequential_cutoff, sequential_cutoff_policy; programs = "FOLDER"

# page: what `hybridsim serve` has; in the lab only: mode = "write-through", page = "64KiB",
# policy = "learned", and keys of the page cache as a scenario has them: fill, max_fills, ...

[origin]
size = "8GiB"                     # default: all of the slow device
raid = 5                          # level of an md RAID of the slow devices; chunk = "64KiB"
writeback_throttle = "off"        # of the slow devices' queues: auto, off, or a latency

[load]
duration = "150s"
job = '''                         # or file = "hot.fio", relative to this file
[hot]
rw=randread
bs=4k
iodepth=32
'''

[collect]                         # all optional
trace = true                      # blktrace of all three devices
calibrate = true                  # fio on the bare devices first

[restart]                         # optional: stop the cache, start it warm, same load again
duration = "60s"
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path

from validate import jobfile
from validate.errors import ExperimentError
from validate.sizes import microseconds_of
from validate.tables import Problems, Table

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
MIB = 1 << 20
KINDS = ("dm-cache", "dm-writecache", "bcache", "open-cas", "page", "none")
MODES = {
    "dm-cache": ("writethrough", "writeback", "passthrough"),
    "dm-writecache": ("writeback",),
    "bcache": ("writethrough", "writeback", "writearound", "none"),
    "open-cas": ("wt", "wb", "wa", "wo", "pt"),
    "page": ("write-through", "write-around", "read-only"),
    "none": ("none",),
}
POLICIES = ("smq", "cleaner")
REPLACEMENTS = ("lru", "fifo", "random")
RAID_LEVELS = (0, 1, 5, 6, 10)
BLOCK_MIN, BLOCK_MAX = 32 << 10, 1 << 30  # of dm-cache
WATERMARKS = (45, 50)  # of dm-writecache by default: low, high
WRITECACHE_BLOCKS = (512, 1024, 2048, 4096)  # bytes; up to a page
# An optional argument of a dm-writecache's table: the field of Cache, and its key.
WRITECACHE = {
    "high_watermark": "high_watermark_percent",
    "low_watermark": "low_watermark_percent",
    "autocommit_blocks": "autocommit_blocks",
    "autocommit_time": "autocommit_ms",
    "pause_writeback": "pause_writeback_ms",
}
LINES_KIB = (4, 8, 16, 32, 64)  # of Open CAS
OPEN_CAS_MIN = 48 * MIB  # Open CAS's metadata take some 36 MiB of it, and 40 bytes a line
PROMOTIONS, CUTOFFS = ("always", "nhit"), ("full", "always", "never")
CLEANINGS = ("alru", "acp", "nop")
WAKE_UNIT_US = {"alru": 10**6, "acp": 10**3}  # of casadm
# Of a page cache beside policy and page; `hybridsim serve` checks their values.
PAGE_KEYS = (
    "touches", "probability", "request_max", "write_price", "write_budget", "sequential_cutoff",
    "max_fills", "fill", "fill_when", "fill_rate",
)  # fmt: skip
SERVED_HEAD = MIB  # of the SSD, before the pages of `hybridsim serve`
BUCKETS_MIN = 513  # of bcache: with fewer it silently caches nothing
CACHE_MIN = 4 * MIB


@dataclass(frozen=True)
class Cache:
    """The cache to build, or that exists; None: the kernel's default."""

    kind: str
    mode: str
    size_bytes: int = 0
    block_bytes: int = 0  # dm-cache, dm-writecache; of Open CAS a line; of page a page
    bucket_bytes: int = 0  # bcache
    metadata_bytes: int = 0  # dm-cache: before the blocks on the fast device
    policy: str = ""  # dm-cache: smq, cleaner; bcache: replacement of buckets; page: its policy
    migration_threshold_sectors: int | None = None
    sequential_cutoff_bytes: int | None = None
    congested_read_us: int | None = None
    congested_write_us: int | None = None
    writeback_percent: int | None = None
    writeback_delay_s: int | None = None
    high_watermark_percent: int | None = None  # dm-writecache, as the others
    low_watermark_percent: int | None = None
    autocommit_blocks: int | None = None
    autocommit_ms: int | None = None
    pause_writeback_ms: int | None = None
    programs: str = ""  # Open CAS: folder of casadm and its modules; "": those of the machine
    promotion: str | None = None  # Open CAS, as the others
    insertion_threshold: int | None = None
    trigger_threshold_percent: int | None = None
    sequential_cutoff_policy: str | None = None
    cleaning: str | None = None
    wake_up_us: int | None = None
    flush_max_buffers: int | None = None
    staleness_time_s: int | None = None
    activity_threshold_ms: int | None = None
    settings: tuple[tuple[str, str], ...] = ()  # page: other keys of the page cache


@dataclass(frozen=True)
class Origin:
    """The slow device or array."""

    size_bytes: int = 0  # 0: all of the device
    raid_level: int | None = None
    chunk_bytes: int = 64 << 10
    throttle_us: int | None = None  # of writeback, in the queue; 0: off; None: as the kernel has it


@dataclass(frozen=True)
class Load:
    """The fio job and its duration."""

    job: jobfile.JobFile
    duration_s: int


@dataclass(frozen=True)
class Collect:
    """Optional measurements beyond counters and fio's logs."""

    trace: bool = False
    trace_start_s: int = 0
    trace_duration_s: int = 0  # 0: to the end
    calibrate: bool = False
    calibrate_s: int = 10  # each job on a bare device


@dataclass(frozen=True)
class Experiment:
    """One run, as its file specifies."""

    name: str
    text: str  # of the whole file
    cache: Cache
    origin: Origin
    load: Load
    collect: Collect = field(default_factory=Collect)
    restart_s: int = 0  # 0: no warm restart
    seed: int = 1

    @property
    def fast_bytes(self) -> int:
        """The bytes needed on the fast device."""
        return self.cache.metadata_bytes + self.cache.size_bytes


def load(path: str | Path) -> Experiment:
    """Read an experiment.  Raises ExperimentError with all problems of the file."""
    place = Path(path)
    try:
        text = place.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ExperimentError(f"cannot read {place}: {reason}") from None
    return parse(text, str(place), place.parent)


def parse(text: str, name: str = "experiment.toml", folder: Path = Path()) -> Experiment:
    """Return the experiment of a text; paths in it are relative to `folder`."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ExperimentError(f"{name}: not TOML: {error}") from None
    problems = Problems(name, text)
    whole = Table(tables, "", problems)
    experiment = Experiment(
        name=whole.matching("name", NAME, "letters, digits, . _ - and at most 64 of them"),
        text=text,
        cache=_placed(_cache(whole.table("cache")), folder),
        origin=_origin(whole.table("origin", {})),
        load=_load(whole.table("load"), folder),
        collect=_collect(whole.table("collect", {})),
        restart_s=_restart(whole, tables),
        seed=whole.integer("seed", 1, 0, 2**31 - 1),
    )
    whole.finish()
    if experiment.cache.kind == "page":
        if experiment.restart_s:
            problems.at("restart", "duration", "a page cache over NBD starts empty: leave it out")
        if experiment.origin.raid_level is not None or experiment.collect.trace:
            problems.add(f"{name}: kind page has neither raid nor trace: leave them out")
        if not experiment.cache.size_bytes or not experiment.origin.size_bytes:
            problems.add(f"{name}: kind page needs a size in [cache] and in [origin]")
    problems.raise_if_any()
    return experiment


def with_programs(what: Experiment, folder: Path | None) -> Experiment:
    """Return the experiment with Open CAS's programs from a folder; None: as it specifies them."""
    if folder is None or what.cache.kind != "open-cas":
        return what
    return replace(what, cache=replace(what.cache, programs=str(folder.resolve())))


def _placed(cache: Cache, folder: Path) -> Cache:
    """Return the cache with the path of its programs, which is relative to the experiment."""
    if not cache.programs:
        return cache
    return replace(cache, programs=str((folder / cache.programs).resolve()))


def _cache(table: Table) -> Cache:
    kind = table.choice("kind", KINDS)
    if kind == "none":
        table.finish()
        return Cache(kind, "none")
    modes = MODES.get(kind, ("writethrough",))
    mode = table.choice("mode", modes, modes[0])
    size = table.size("size", 0, minimum=CACHE_MIN)  # `attach` reads the real size instead
    kinds = {
        "dm-cache": _dm_cache, "dm-writecache": _writecache, "open-cas": _open_cas, "page": _page,
    }  # fmt: skip
    read = kinds.get(kind, _bcache)
    cache = read(table, mode, size or 0)
    table.finish()
    return cache


def _dm_cache(table: Table, mode: str, size: int) -> Cache:
    block = table.size("block", 256 << 10, minimum=BLOCK_MIN, maximum=BLOCK_MAX, of=BLOCK_MIN)
    if block and size % block:
        table.refuse("size", f"is not a multiple of the block size: write {size // block * block}")
    threshold = table.size("migration_threshold", None, of=512)
    return Cache(
        "dm-cache",
        mode,
        size,
        block_bytes=block or 0,
        metadata_bytes=table.size("metadata", _metadata(size, block), minimum=2 * MIB, of=MIB),
        policy=table.choice("policy", POLICIES, "smq"),
        migration_threshold_sectors=None if threshold is None else threshold // 512,
    )


def _writecache(table: Table, mode: str, size: int) -> Cache:
    block = table.size("block", 4 << 10)
    if block not in WRITECACHE_BLOCKS:
        table.refuse("block", "dm-writecache has blocks of 512B, 1KiB, 2KiB or 4KiB")
    high = table.integer("high_watermark_percent", None, 0, 100)
    low = table.integer("low_watermark_percent", None, 0, 100)
    marks = [mark if one is None else one for one, mark in zip((low, high), WATERMARKS)]
    if marks[0] > marks[1]:
        table.refuse(
            "low_watermark_percent" if low is not None else "high_watermark_percent",
            f"the low watermark ({marks[0]}) is above the high one ({marks[1]}): write both",
        )
    return Cache(
        "dm-writecache",
        mode,
        size,
        block_bytes=block or 0,
        high_watermark_percent=high,
        low_watermark_percent=low,
        autocommit_blocks=table.integer("autocommit_blocks", None, 1),
        autocommit_ms=table.integer("autocommit_ms", None, 1, 3_600_000),
        pause_writeback_ms=table.integer("pause_writeback_ms", None, 0, 3_600_000),
    )


def _open_cas(table: Table, mode: str, size: int) -> Cache:
    line = table.size("line", 4 << 10)
    if line not in {kib << 10 for kib in LINES_KIB}:
        table.refuse("line", "Open CAS has lines of 4KiB, 8KiB, 16KiB, 32KiB or 64KiB")
    if 0 < size < OPEN_CAS_MIN:
        table.refuse("size", "write 48MiB or more: Open CAS's metadata take some 36 MiB of it")
    cleaning = table.choice("cleaning", CLEANINGS, None) or None
    wake_up = table.microseconds("wake_up", None)
    unit = WAKE_UNIT_US.get(cleaning or "alru", 10**6)
    if wake_up is not None and wake_up % unit:
        table.refuse("wake_up", f"is not a multiple of {'1s' if unit == 10**6 else '1ms'}")
    threshold = table.microseconds("activity_threshold", None)
    if threshold is not None and threshold % 1000:
        table.refuse("activity_threshold", "is not a multiple of 1ms")
    cutoff = table.size("sequential_cutoff", None, minimum=1 << 10, of=1 << 10)
    cache = Cache(
        "open-cas",
        mode,
        size,
        block_bytes=line or 0,
        programs=table.text("programs", ""),
        promotion=table.choice("promotion", PROMOTIONS, None) or None,
        insertion_threshold=table.integer("insertion_threshold", None, 2, 1000),
        trigger_threshold_percent=table.integer("trigger_threshold_percent", None, 0, 100),
        sequential_cutoff_bytes=cutoff,
        sequential_cutoff_policy=table.choice("sequential_cutoff_policy", CUTOFFS, None) or None,
        cleaning=cleaning,
        wake_up_us=wake_up,
        flush_max_buffers=table.integer("flush_max_buffers", None, 1, 10_000),
        staleness_time_s=table.seconds("staleness_time", None),
        activity_threshold_ms=None if threshold is None else threshold // 1000,
    )
    for name in ("staleness_time_s", "activity_threshold_ms"):
        if getattr(cache, name) is not None and (cleaning or "alru") != "alru":
            table.refuse(name.rpartition("_")[0], f"is of alru, but cleaning is {cleaning}")
    if cleaning == "nop" and (wake_up, cache.flush_max_buffers) != (None, None):
        table.refuse("cleaning", "nop has neither wake_up nor flush_max_buffers")
    return cache


def _page(table: Table, mode: str, size: int) -> Cache:
    page = table.size("page", 64 << 10) or 1
    if size % page:
        table.refuse("size", f"is not a multiple of the page: write {size // page * page}")
    policy = table.text("policy", "learned")
    given = [(key, table.plain(key)) for key in PAGE_KEYS]
    settings = tuple((key, text) for key, text in given if text is not None)
    return Cache(
        "page", mode, size, block_bytes=page, metadata_bytes=SERVED_HEAD, policy=policy,
        settings=settings,
    )  # fmt: skip


def _metadata(size: int, block: int) -> int:
    """Return the bytes for dm-cache's metadata: 4 MiB and 16 bytes a block; 8 MiB or more."""
    need = 4 * MIB + 16 * (size // max(block, 1))
    return max(8 * MIB, -(-need // MIB) * MIB)


def _bcache(table: Table, mode: str, size: int) -> Cache:
    bucket = table.size("bucket", 512 << 10, minimum=4 << 10, maximum=16 * MIB, of=4 << 10)
    if bucket and bucket & (bucket - 1):
        table.refuse("bucket", "is not a power of two: write for example '512KiB'")
    if bucket and size and size // bucket < BUCKETS_MIN:
        table.refuse(
            "size",
            f"{size // bucket} buckets of {bucket >> 10} KiB: bcache needs {BUCKETS_MIN}, and with "
            "fewer it silently caches nothing; write a larger size or a smaller bucket",
        )
    return Cache(
        "bcache",
        mode,
        size,
        bucket_bytes=bucket or 0,
        policy=table.choice("replacement", REPLACEMENTS, "lru"),
        sequential_cutoff_bytes=table.size("sequential_cutoff", None),
        congested_read_us=table.microseconds("congested_read_threshold", None),
        congested_write_us=table.microseconds("congested_write_threshold", None),
        writeback_percent=table.integer("writeback_percent", None, 0, 40),
        writeback_delay_s=table.integer("writeback_delay", None, 0, 3600),
    )


def _origin(table: Table) -> Origin:
    origin = Origin(
        size_bytes=table.size("size", 0, of=4096),
        raid_level=table.integer("raid", None),
        chunk_bytes=table.size("chunk", 64 << 10, minimum=4 << 10, of=4 << 10),
        throttle_us=_throttle(table),
    )
    if origin.raid_level is not None and origin.raid_level not in RAID_LEVELS:
        table.refuse("raid", f"supported levels are {', '.join(map(str, RAID_LEVELS))}")
    table.finish()
    return origin


def _throttle(table: Table) -> int | None:
    """Return the target of writeback throttling in microseconds, 0 for none, None for auto."""
    text = table.text("writeback_throttle", "auto")
    if text in ("auto", "off"):
        return None if text == "auto" else 0
    try:
        return microseconds_of(text)
    except ValueError:
        table.refuse("writeback_throttle", f"{text!r} is none of auto, off and a time as '75ms'")
        return None


def _load(table: Table, folder: Path) -> Load:
    text, file = table.text("job", ""), table.text("file", "")
    place = f"{table.problems.name}: [load] job"
    if bool(text) == bool(file):
        table.refuse("job", "specify one fio job: its text as job, or its path as file")
    elif file:
        path = folder / file
        place = str(path)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            table.refuse(
                "file", f"cannot read {path}: {getattr(error, 'strerror', 'it is not UTF-8 text')}"
            )
    job = jobfile.JobFile(())
    if text:
        try:
            job = jobfile.parse(text, place)
        except ExperimentError as error:
            table.problems.add(str(error))
    load = Load(job, table.seconds("duration"))
    table.finish()
    return load


def _collect(table: Table) -> Collect:
    collect = Collect(
        trace=table.boolean("trace", False),
        trace_start_s=table.seconds("trace_start", 0),
        trace_duration_s=table.seconds("trace_duration", 0),
        calibrate=table.boolean("calibrate", False),
        calibrate_s=table.seconds("calibrate_duration", 10),
    )
    table.finish()
    return collect


def _restart(whole: Table, tables: dict[str, object]) -> int:
    """Return the seconds of the load after a warm restart; 0 without one."""
    if "restart" not in tables:
        return 0
    table = whole.table("restart")
    seconds = table.seconds("duration", 60)
    table.finish()
    return seconds
