"""The pattern of a job: everything that determines its requests, independent of the machine."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

READ, WRITE, TRIM = range(3)
SYNC = 3  # not a direction
MASK64 = (1 << 64) - 1

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

    least: int = 4096
    most: int = 4096
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
    offset_bytes: int = 0
    rest_bytes: int = 0  # remainder of the size that is not a whole block per file
    thread: int = 1  # 1-based index of the process

    sizes: tuple[Sizes, Sizes, Sizes] = (Sizes(), Sizes(), Sizes())
    unaligned_sizes: bool = False
    read_percent: int = 50
    random_percent: tuple[int, int, int] = (100, 100, 100)
    every: int = 1  # a new random offset after this number of requests
    hole_bytes: int = 0  # between sequential requests
    stays: bool = False  # rw_sequencer=identical: `every` requests at one offset

    distribution: Distribution = Distribution.RANDOM
    shape: float = 0.0  # theta, h, or deviation in percent
    center: float | None = None
    zones: tuple[tuple[tuple[int, int], ...], ...] = ((), (), ())  # by direction: (accesses, size)
    generator: Generator = Generator.TAUSWORTHE
    has_map: bool = True  # no block is accessed twice in a pass

    is_repeated: bool = True  # randrepeat
    seed: int | None = None  # randseed
    seeding: Seeding = Seeding.V3_33

    pass_bytes: int = 0  # io_size, or the size of the region
    passes: int = 1
    is_endless: bool = False  # time_based
    requests: int = 0  # number_ios; 0: unlimited
    writes_between_syncs: int = 0

    service: Service = Service.ROUNDROBIN
    service_requests: int = 1  # consecutive requests to one file
    service_shape: float = 0.0

    @property
    def files(self) -> int:
        """Number of files."""
        return len(self.file_names)

    @property
    def uses_map(self) -> bool:
        """Whether a map of accessed blocks is used."""
        return (
            self.is_random
            and self.has_map
            and self.distribution == Distribution.RANDOM
            and self.generator != Generator.LFSR
        )

    @property
    def uses_register(self) -> bool:
        """Whether blocks come from a linear feedback shift register."""
        return self.is_random and self.generator == Generator.LFSR

    @property
    def block_bytes(self) -> int:
        """The smallest size of all directions: the block of distributions and of the map."""
        return min(sizes.least for sizes in self.sizes)

    def seeds(self) -> list[int]:
        """Return the seeds of all streams, in the order of the chain."""
        seed = DEFAULT_SEED if self.seed is None else self.seed
        seed = seed * CHAIN**CHAINED_BEFORE & MASK64
        seeds = []
        for place in range(max(Stream) + 1):
            seeds.append(seed * self.thread + place & MASK64)
            seed = seed * CHAIN & MASK64
        if self.is_repeated and self.seeding == Seeding.V3_33:
            seeds[Stream.BLOCK] = REPEATED_SEED * self.thread & MASK64
        return seeds

    @property
    def distribution_seeds(self) -> list[int]:
        """The seeds of zipf, pareto and normal: from the files' names unless randseed is set."""
        block_seed = self.seeds()[Stream.BLOCK]
        by_name = [hash_of(name) * self.thread for name in self.file_names]
        if self.seeding == Seeding.CHAINED:
            return [each * block_seed & MASK64 for each in by_name]
        if self.is_repeated and self.seed is None:
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
