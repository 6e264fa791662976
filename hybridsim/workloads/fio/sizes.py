"""bs, bsrange, bssplit and ba: how long requests are."""

from __future__ import annotations

from hybridsim.workloads.fio import options
from hybridsim.workloads.fio.pattern import Sizes
from hybridsim.workloads.fio.reader import Reader

Split = tuple[tuple[int, int], ...]  # (bytes, percent)


def sizes_of(reader: Reader) -> tuple[Sizes, Sizes, Sizes]:
    """Return the sizes of reads, writes and trims."""
    exact = reader.three("bs", options.size, 4096)
    ranges = reader.read("bsrange", _ranges, [(size, size) for size in exact])
    unsplit: list[Split] = [(), (), ()]
    splits = reader.read("bssplit", _splits, unsplit)
    units = reader.three("ba", options.size, 0)
    found = []
    for (least, most), split, unit in zip(ranges, splits, units):
        if split:
            least, most = min(size for size, _ in split), max(size for size, _ in split)
        if least <= 0 or most < least:
            name = "bsrange" if "bsrange" in reader.given else "bs"
            reader.refuse(name, f"{name}: a block is at least a byte, and the least comes first")
        found.append(Sizes(least, most, split, unit or least))
    return found[0], found[1], found[2]


def _ranges(text: str) -> list[tuple[int, int]]:
    found = []
    for part in options.each_direction(text):
        least, dash, most = part.partition("-")
        if not dash:
            raise ValueError(f"{part!r} is no range: write 4k-64k")
        found.append((options.size(least), options.size(most)))
    return found


def _splits(text: str) -> list[Split]:
    found: list[Split] = []
    for part in options.each_direction(text):
        pairs = [pair.partition("/") for pair in part.split(":")]
        given = [(options.size(size), int(share) if share else -1) for size, _, share in pairs]
        left = 100 - sum(share for _, share in given if share >= 0)
        empty = sum(share < 0 for _, share in given)
        if left < 0 or (left > 0 and not empty):
            raise ValueError(f"{part!r}: the shares must add up to 100")
        filled = [(size, share if share >= 0 else left // empty) for size, share in given]
        found.append(tuple(sorted(filled, key=lambda pair: pair[1])))
    return found
