"""bs, bsrange, bssplit and ba: the sizes of requests."""

from __future__ import annotations

from hybridsim.workloads.fio import options
from hybridsim.workloads.fio.pattern import Sizes
from hybridsim.workloads.fio.reader import Reader

Split = tuple[tuple[int, int], ...]  # (bytes, percent)


def sizes_of(reader: Reader, is_random: bool) -> tuple[Sizes, Sizes, Sizes]:
    """Return the sizes of reads, writes and trims."""
    exact = reader.three("bs", options.size, 4096)
    ranges = reader.read("bsrange", _ranges, [(size, size) for size in exact])
    unsplit: list[Split] = [(), (), ()]
    splits = reader.read("bssplit", _splits, unsplit)
    order = list(reader.specified)  # as in fio, the later one sets the limits of the sizes
    is_range_later = "bssplit" in order and "bsrange" in order[order.index("bssplit") :]
    units = reader.three("ba", options.size, 0)
    sizes = []
    for (minimum, maximum), split, unit in zip(ranges, splits, units):
        if split and not is_range_later:
            minimum, maximum = min(size for size, _ in split), max(size for size, _ in split)
        if (
            split
            and minimum > 0
            and minimum < min(min(size - size % minimum, maximum) for size, _ in split)
        ):
            reader.refuse(
                "bsrange",
                f"bsrange after bssplit: no size of bssplit is the minimum, {minimum} bytes: near "
                "the end of a file fio itself draws sizes without end",
            )
        if minimum <= 0 or maximum < minimum:
            name = "bsrange" if "bsrange" in reader.specified else "bs"
            problem = "the minimum must be at least 1 byte and not above the maximum"
            reader.refuse(name, f"{name}: {problem}")
        sizes.append(Sizes(minimum, maximum, split, unit if unit and is_random else minimum))
    return sizes[0], sizes[1], sizes[2]


def _ranges(text: str) -> list[tuple[int, int]]:
    ranges = []
    for part in options.each_direction(text):
        minimum, dash, maximum = part.partition("-" if "-" in part else ":")
        if not dash:
            raise ValueError(f"{part!r} is not a range; expected for example 4k-64k")
        least, most = sorted((options.size(minimum), options.size(maximum)))
        ranges.append((least, most))
    return ranges


def _splits(text: str) -> list[Split]:
    splits: list[Split] = []
    for part in options.each_direction(text):
        pairs = [pair.partition("/") for pair in part.split(":") if pair]
        shares = [(options.size(size), int(share) if share else -1) for size, _, share in pairs]
        shares = [(size, min(share, 100) if share else -1) for size, share in shares]
        rest = 100 - sum(share for _, share in shares if share >= 0)
        empty = sum(share < 0 for _, share in shares)
        if rest < 0 and empty:
            raise ValueError(f"{part!r}: the shares must not add up to more than 100")
        filled = [(size, share if share >= 0 else rest // empty) for size, share in shares]
        splits.append(tuple(sorted(filled, key=lambda pair: pair[1])))
    return splits
