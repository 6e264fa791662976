"""The pattern of a job: everything that determines its requests, independent of the machine."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from hybridsim.foundation.codes import Op
from hybridsim.workloads.fio.options import Three, option, percent

# Kinds of requests.  The first four are the codes of a trace, of which SYNC is no direction.
READ, WRITE, TRIM, SYNC = map(int, (Op.READ, Op.WRITE, Op.DISCARD, Op.FLUSH))
END_SYNC = 4  # a sync that waits for all requests before it, and is not reported: end_fsync
FIRST_OF_VERIFY = 5  # a read that waits for all requests before it
OF_VERIFY = 6  # a further read of verify after a pass: neither rates nor think times delay it
OF_BACKLOG = 7  # a read of verify_backlog, which rates do not delay
DATA_SYNC = 8  # fdatasync: fio reports its latency, but does not count it among the requests
MASK64 = (1 << 64) - 1
ENDLESS = 1 << 60  # end of a file without one, in bytes

# Observed in the output of fio 3.33 (tests/test_fio_offsets.py): a job has one random stream for
# each purpose, seeded in this order.
DEFAULT_SEED = 0x89
CHAIN = 0x9E370001
CHAINED_BEFORE = 4
REPEATED_SEED = 0xB1899BED  # of blocks, with randrepeat


class Stream(IntEnum):
    """Purpose of a random stream; the value is its place in the chain of seeds."""

    READ_SIZE = 0
    WRITE_SIZE = 1
    TRIM_SIZE = 2
    MIX = 4
    FILE = 5
    BLOCK = 6
    IS_RANDOM = 10
    POISSON_READ = 15
    ZONE = 16
    POISSON_WRITE = 17
    POISSON_TRIM = 18


class Distribution(IntEnum):
    """Distribution of random blocks."""

    RANDOM = 0
    ZIPF = 1
    PARETO = 2
    NORMAL = 3
    ZONED = 4
    ZONED_ABS = 5


class Generator(IntEnum):
    """Generator of random blocks."""

    TAUSWORTHE = 0
    LFSR = 1
    TAUSWORTHE64 = 2


TAUSWORTHE = Generator.TAUSWORTHE
GENERATORS = {name: Generator[name.upper()] for name in ("tausworthe", "tausworthe64", "lfsr")}


class Service(IntEnum):
    """Order of several files; those after RANDOM are skewed."""

    ROUNDROBIN = 0
    SEQUENTIAL = 1
    RANDOM = 2
    ZIPF = 3
    PARETO = 4
    NORMAL = 5


class Seeding(IntEnum):
    """Seeding scheme: that of fio 3.33, or of later releases, which seed in one chain."""

    V3_33 = 0
    CHAINED = 1


@dataclass(frozen=True)
class Sizes:
    """Request sizes of one direction, in bytes: one size, a range, or a weighted split."""

    minimum: int = 4096
    maximum: int = 4096
    split: tuple[tuple[int, int], ...] = ()  # (bytes, percent), by percent
    unit: int = 4096  # offsets of random requests are multiples of it


@dataclass(frozen=True)
class Pattern:
    """The requests of one job to one file, or to several files of the same size."""

    directions: tuple[int, ...] = (READ,)
    writes_what_it_trims: bool = False  # trimwrite: each trimmed block is written next
    is_random: bool = False
    file_names: tuple[str, ...] = ("",)
    file_bytes: int = 0  # starts at `offset_bytes`
    offset_bytes: int = option(lambda it: it.amount("offset")[0])
    end_bytes: int = 0  # of the file, if it is larger than offset_bytes + file_bytes
    # Of all files, if a pass moves less than all: filesize with size, io_size=%.
    total_bytes: int = 0
    thread: int = 1  # 1-based index of the process
    is_clone: bool = False  # of numjobs: all but the first process

    sizes: tuple[Sizes, Sizes, Sizes] = (Sizes(), Sizes(), Sizes())
    # Sizes of reads if sequential, of writes if random.
    sizes_by_order: bool = option(lambda it: it.flag("bs_is_seq_rand"))
    unaligned_sizes: bool = option(lambda it: it.flag("bs_unaligned"))
    read_percent: int = 50
    is_by_rates: bool = False  # a mix whose rates, too, decide which direction is next
    random_percent: Three = option(lambda it: it.three("percentage_random", percent, 100))
    every: int = 1  # a new random offset after this number of requests
    hole_bytes: int = 0  # between sequential requests; negative: backwards
    # `every` requests at one offset
    stays: bool = option(lambda it: it.read("rw_sequencer", str, "") == "identical")

    distribution: Distribution = Distribution.RANDOM
    shape: float = 0.0  # theta, h, or deviation in percent
    center: float | None = None
    zones: tuple[tuple[int, int], ...] = ()  # (accesses, size)
    generator: Generator = option(lambda it: it.choice("random_generator", GENERATORS, TAUSWORTHE))
    has_map: bool = option(lambda it: not it.flag("norandommap"))  # no block twice in a pass

    is_repeated: bool = option(lambda it: it.flag("randrepeat", True))
    repeats_all: bool = option(lambda it: it.flag("allrandrepeat"))
    seed: int | None = None  # randseed
    seeding: Seeding = Seeding.V3_33
    is_verified: bool = False  # reads and writes draw equal sizes
    reads_back: bool = False  # what was written is read: at the end of a pass, or of a backlog
    backlog: int = 0  # verify_backlog: writes before some are read; 0: at the end of a pass
    backlog_batch: int = 0  # reads at a time; 0: all of a backlog
    repeats_files: bool = True  # else a file that is done once is so in later passes (do_verify=0)

    zone_bytes: int = 0  # zonemode=strided: bytes in a zone until the next one; 0: no zones
    zone_range: int = 0  # bytes of a zone, and between two
    zone_skip: int = 0
    written_zone_bytes: int = 0  # zonemode=zbd: writes go to the write pointer of their zone

    pass_bytes: int = 0  # io_size, or the size of the region
    has_io_size: bool = False
    passes: int = 1
    is_endless: bool = False  # time_based
    requests: int = 0  # number_ios of a pass; 0: unlimited
    writes_between_syncs: int = option(lambda it: it.number("fsync", 0))
    writes_between_data_syncs: int = option(lambda it: it.number("fdatasync", 0))
    # After each pass.
    syncs_at_end: bool = option(lambda it: it.flag("end_fsync") or it.flag("fsync_on_close"))
    is_queued: bool = False  # an asynchronous engine: fio counts the bytes of a pass at its start
    queues_trims: bool = False  # ioengine=null; in other engines trims complete at once
    depth: int = 1  # requests outstanding at most
    freed: int = 1  # requests that complete before the next one, once all are outstanding
    open_files: int = 0  # at most this number is open at a time; 0: all

    service: Service = Service.ROUNDROBIN
    service_requests: int = 1  # consecutive requests to one file
    service_shape: float = 0.0

    @property
    def reads_back_alone(self) -> bool:
        """Whether all reads are of verify, in passes of their own."""
        return self.reads_back and not self.backlog and READ not in self.directions

    @property
    def files(self) -> int:
        """Number of files."""
        return len(self.file_names)

    @property
    def region_bytes(self) -> int:
        """Bytes of all files, or less: fio's size, which ends a pass of a queued engine."""
        return self.total_bytes or self.file_bytes * self.files

    @property
    def zones_of_files(self) -> tuple[int, int, int]:
        """Bytes before the next zone, of a zone, and between zones; zeros without zones.

        As in fio, openfiles turns zones off; so do several files for all clones.
        """
        is_off = self.open_files > 1 or (self.is_clone and self.files > 1 and not self.open_files)
        if not self.zone_bytes or is_off:
            return 0, 0, 0
        return self.zone_bytes, self.zone_range or self.zone_bytes, self.zone_skip

    @property
    def written_zones(self) -> int:
        """Number of zones with a write pointer."""
        return self.file_bytes // self.written_zone_bytes if self.written_zone_bytes else 0

    @property
    def map_bytes(self) -> int:
        """Bytes of a file, or of a zone, in which random blocks are drawn."""
        return self.zones_of_files[1] or self.file_bytes

    @property
    def is_unmapped(self) -> bool:
        """Whether norandommap is in effect; another alignment or distribution implies it."""
        is_aligned = all(sizes.unit == sizes.minimum for sizes in self.sizes)
        return not (self.has_map and is_aligned and self.distribution == Distribution.RANDOM)

    @property
    def uses_map(self) -> bool:
        """Whether a map of accessed blocks is used."""
        return self.is_random and not self.is_unmapped and self.generator != Generator.LFSR

    @property
    def may_unmark(self) -> bool:
        """Whether some requests do not mark the map of accessed blocks."""
        is_partly = min(self.random_percent) < 100 or self.every > 1
        return self.uses_map and (is_partly or self.writes_what_it_trims)

    @property
    def tracks(self) -> bool:
        """Whether the requests depend on how many are outstanding."""
        return self.may_unmark or (self.depth > 1 and self.has_syncs)

    @property
    def has_syncs(self) -> bool:
        """Whether syncs come between writes; as in fio, none between trims and writes."""
        every = self.writes_between_syncs or self.writes_between_data_syncs
        return every > 0 and WRITE in self.directions and not self.writes_what_it_trims

    @property
    def uses_register(self) -> bool:
        """Whether blocks come from a linear feedback shift register."""
        of_register = (Distribution.RANDOM, Distribution.ZONED, Distribution.ZONED_ABS)
        return (
            self.is_random and self.generator == Generator.LFSR and self.distribution in of_register
        )

    @property
    def block_bytes(self) -> int:
        """The smallest size of all directions: the block of the map."""
        return min(sizes.minimum for sizes in self.sizes)

    @property
    def rank_bytes(self) -> int:
        """The smallest size of reads and writes: the block of distributions."""
        return min(sizes.minimum for sizes in self.sizes[:TRIM])

    @property
    def is_reseeded(self) -> bool:
        """Whether each pass starts with the same seeds; randseed turns randrepeat off."""
        return self.is_repeated and self.seed is None

    def seeds(self) -> list[int]:
        """Return the seeds of all streams, in the order of the chain."""
        seed = DEFAULT_SEED if self.seed is None else self.seed
        seed = seed * CHAIN**CHAINED_BEFORE & MASK64
        seeds = []
        for place in range(max(Stream) + 1):
            seeds.append(seed * self.thread + place & MASK64)
            seed = seed * CHAIN & MASK64
        if self.seeding == Seeding.V3_33:
            if self.repeats_all:
                seeds = [
                    REPEATED_SEED * self.thread + place & MASK64 for place in range(len(seeds))
                ]
            # randseed is seen after the streams of the first process are seeded, before its clones.
            if self.is_repeated and not (self.is_clone and self.seed is not None):
                seeds[Stream.BLOCK] = REPEATED_SEED * self.thread & MASK64
        if self.is_verified:
            seeds[Stream.WRITE_SIZE] = seeds[Stream.READ_SIZE]
        if self.writes_what_it_trims:
            seeds[Stream.TRIM_SIZE] = seeds[Stream.WRITE_SIZE]
        return seeds

    @property
    def distribution_seeds(self) -> list[int]:
        """The seeds of zipf, pareto and normal: from the files' names unless randseed is set."""
        block_seed = self.seeds()[Stream.BLOCK]
        by_name = [hash_of(name) * self.thread for name in self.file_names]
        if self.seeding == Seeding.CHAINED:
            return [each * block_seed & MASK64 for each in by_name]
        if self.is_reseeded:
            return [each & MASK64 for each in by_name]
        return [block_seed] * self.files


HASH_BEGIN = 0x61C88647
MASK32 = 0xFFFFFFFF


def hash_of(name: str) -> int:
    """Return fio's hash of a file name, which seeds the distributions over the file.

    It is B. Jenkins' lookup3, except that of all but the last 12-byte block only the first byte of
    each word counts.
    """
    data = name.encode()
    a = b = c = HASH_BEGIN + len(data)
    while len(data) > 12:
        a, b, c = _mixed(a + data[0], b + data[4], c + data[8])
        data = data[12:]
    if not data:
        return c & MASK32
    data = data.ljust(12, b"\0")
    words = (int.from_bytes(data[i : i + 4], "little") for i in (0, 4, 8))
    a, b, c = (each + word & MASK32 for each, word in zip((a, b, c), words))
    for turn in (14, 11, 25, 16, 4, 14, 24):
        c = (c ^ b) - _turned(b, turn) & MASK32
        a, b, c = b, c, a  # rotate to the next pair
    return b


def _mixed(a: int, b: int, c: int) -> tuple[int, int, int]:
    a, b, c = a & MASK32, b & MASK32, c & MASK32
    for turn in (4, 6, 8, 16, 19, 4):
        a = (a - c & MASK32) ^ _turned(c, turn)
        c = c + b & MASK32
        a, b, c = b, c, a
    return a, b, c


def _turned(word: int, by: int) -> int:
    return (word << by | word >> 32 - by) & MASK32
