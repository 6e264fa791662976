"""The offsets that fio 3.33 reads with random_distribution=zoned, norandommap and randrepeat=1.

fio draws with L'Ecuyer's taus88 (Mathematics of Computation 65, 1996).  The streams were identified
by comparison: draws with 400 known offsets, zones and draws together with the 13,669 reads in the
trace of a run.  All are equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

MASK = 0xFFFFFFFF
BLOCK_SEED = 0xB1899BED
DEFAULT_SEED, CHAIN = 0x89, 0x9E370001
ZONE_STREAM, MIX_STREAM = 16, 4


def taus88(seed: int) -> Iterator[int]:
    """Yield random numbers of 32 bits."""
    states = []
    last = 53
    for minimum in (1, 7, 15):
        last = (last * 69069 ^ seed) & MASK
        last += minimum if last < minimum else 0
        states.append(last)
    s1, s2, s3 = states
    drawn = 0
    while True:
        s1 = (s1 & 0xFFFFFFFE) << 12 & MASK ^ ((s1 << 13 & MASK) ^ s1) >> 19
        s2 = (s2 & 0xFFFFFFF8) << 4 & MASK ^ ((s2 << 2 & MASK) ^ s2) >> 25
        s3 = (s3 & 0xFFFFFFF0) << 17 & MASK ^ ((s3 << 3 & MASK) ^ s3) >> 11
        drawn += 1
        if drawn > 6:
            yield s1 ^ s2 ^ s3


def stream_seed(stream: int) -> int:
    """Return the seed of a stream for the first job."""
    seed = DEFAULT_SEED
    for _ in range(4 + stream):
        seed = seed * CHAIN & 0xFFFFFFFFFFFFFFFF
    return (seed + stream) & MASK


def zone_seed() -> int:
    """Return the seed of the stream that chooses zones for the first job."""
    return stream_seed(ZONE_STREAM)


def zoned(size_bytes: int, block_bytes: int, zones: Sequence[tuple[int, int]]) -> Iterator[int]:
    """Yield offsets; zones are (percent of accesses, percent of the size)."""
    blocks = size_bytes // block_bytes
    choices, draws = taus88(zone_seed()), taus88(BLOCK_SEED)
    by_percent = []
    begin = 0
    for accesses, size in zones:
        by_percent += [(begin * blocks // 100, blocks * size // 100)] * accesses
        begin += size
    while True:
        first, count = by_percent[next(choices) * 100 >> 32]
        yield (first + (count * next(draws) >> 32)) * block_bytes


def mixed_reads(percent: int) -> Iterator[bool]:
    """Yield for each request of a mixed load whether it is a read."""
    for drawn in taus88(stream_seed(MIX_STREAM)):
        yield 1 + (drawn * 100 >> 32) <= percent
