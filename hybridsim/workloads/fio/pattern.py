"""What decides which requests a job of fio makes, whatever the machine does with them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

READ, WRITE, TRIM = range(3)
SYNC = 3  # beside the directions
MASK64 = (1 << 64) - 1

# From fio 3.33's observed streams (tests/test_fio_offsets.py): a job has one stream of random
# numbers for each purpose, seeded one after the other.
DEFAULT_SEED = 0x89
CHAIN = 0x9E370001
CHAINED_BEFORE = 4
REPEATED_SEED = 0xB1899BED  # of blocks, in runs that are to repeat


class Stream(IntEnum):
    """What a stream of random numbers is for, by its place in the chain of seeds."""

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
    """How random blocks are spread."""

    RANDOM = 0
    ZIPF = 1
    PARETO = 2
    NORMAL = 3
    ZONED = 4
    ZONED_ABS = 5


class Generator(IntEnum):
    """Where random blocks come from."""

    TAUSWORTHE = 0
    LFSR = 1


class Service(IntEnum):
    """Which of several files is next; behind RANDOM some come more often than others."""

    ROUNDROBIN = 0
    SEQUENTIAL = 1
    RANDOM = 2
    ZIPF = 3
    PARETO = 4
    NORMAL = 5


class Seeding(IntEnum):
    """Whose seeds: those of fio 3.33, or of releases since seeds are one chain."""

    V3_33 = 0
    CHAINED = 1


@dataclass(frozen=True)
class Sizes:
    """How long the requests of one direction are: one size, a range, or a split by weight."""

    least: int = 4096
    most: int = 4096
    split: tuple[tuple[int, int], ...] = ()  # (bytes, percent), by percent
    unit: int = 4096  # offsets of random requests are multiples of it


@dataclass(frozen=True)
class Pattern:
    """One job's requests to a file, or to several of one size in turn, as offsets in the file."""

    directions: tuple[int, ...] = (READ,)
    writes_what_it_trims: bool = False  # each block is written as soon as it is trimmed
    is_random: bool = False
    file_names: tuple[str, ...] = ("",)
    file_bytes: int = 0  # from `offset_bytes` on
    offset_bytes: int = 0
    rest_bytes: int = 0  # of what was said for all of them, but is no whole block of each
    thread: int = 1  # from 1: the how-manieth job of all

    sizes: tuple[Sizes, Sizes, Sizes] = (Sizes(), Sizes(), Sizes())
    unaligned_sizes: bool = False
    read_percent: int = 50
    random_percent: tuple[int, int, int] = (100, 100, 100)
    every: int = 1  # requests between two random ones
    hole_bytes: int = 0  # of sequential requests
    stays: bool = False  # `every` requests at one place instead of one after the other

    distribution: Distribution = Distribution.RANDOM
    shape: float = 0.0  # theta, h, or deviation in percent
    center: float | None = None
    zones: tuple[tuple[tuple[int, int], ...], ...] = ((), (), ())  # by direction: (accesses, size)
    generator: Generator = Generator.TAUSWORTHE
    has_map: bool = True  # no block twice in a pass

    is_repeated: bool = True  # randrepeat
    seed: int | None = None  # randseed
    seeding: Seeding = Seeding.V3_33

    pass_bytes: int = 0  # io_size, or the region's
    passes: int = 1
    is_endless: bool = False  # time_based
    requests: int = 0  # number_ios; 0: any number
    writes_between_syncs: int = 0

    service: Service = Service.ROUNDROBIN
    service_requests: int = 1  # to a file, one after the other
    service_shape: float = 0.0

    @property
    def files(self) -> int:
        """How many files there are."""
        return len(self.file_names)

    @property
    def uses_map(self) -> bool:
        """Whether it is remembered what was touched."""
        return (
            self.is_random
            and self.has_map
            and self.distribution == Distribution.RANDOM
            and self.generator != Generator.LFSR
        )

    @property
    def uses_register(self) -> bool:
        """Whether blocks come from a shift register."""
        return self.is_random and self.generator == Generator.LFSR

    @property
    def block_bytes(self) -> int:
        """The least size of all directions: the block of distributions and of the map."""
        return min(sizes.least for sizes in self.sizes)

    def seeds(self) -> list[int]:
        """The seed of each stream, by its place in the chain."""
        seed = DEFAULT_SEED if self.seed is None else self.seed
        seed = seed * CHAIN**CHAINED_BEFORE & MASK64
        found = []
        for place in range(max(Stream) + 1):
            found.append(seed * self.thread + place & MASK64)
            seed = seed * CHAIN & MASK64
        if self.is_repeated and self.seeding == Seeding.V3_33:
            found[Stream.BLOCK] = REPEATED_SEED * self.thread & MASK64
        return found

    @property
    def distribution_seeds(self) -> list[int]:
        """The seeds of zipf, pareto and normal: by the files' names, where no seed is said."""
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
    """Return fio's hash of a file name, which seeds what is spread over the file.

    It is B. Jenkins' lookup3, but of a long name's blocks only each word's first byte counts.
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
        a, b, c = b, c, a  # the next pair
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
