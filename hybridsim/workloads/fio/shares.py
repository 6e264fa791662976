"""size, offset and io_size in percent of a file, whose size is known once files are laid out."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hybridsim.workloads.fio import options
from hybridsim.workloads.fio.pattern import Pattern
from hybridsim.workloads.fio.reader import Reader

OF_FILE = ("size", "offset", "offset_increment")


@dataclass(frozen=True)
class Shares:
    """Percent of a file; 0 if not specified in percent."""

    size: int = 0
    offset: int = 0
    moved: int = 0  # of the size
    align_bytes: int = 0  # of an offset in percent; 0: the block

    def further(self, percent: int) -> Shares:
        """Return a copy whose offset is `percent` larger."""
        return replace(self, offset=self.offset + percent) if percent else self

    def part_of(self, file_bytes: int, rest_bytes: int, block_bytes: int) -> int:
        """Return how much of the rest of a file, behind its offset, a size in percent takes."""
        if self.size in (0, 100):
            return rest_bytes
        taken = min(file_bytes * self.size // 100, rest_bytes)
        return taken - taken % block_bytes

    def of(self, pattern: Pattern, file_bytes: int) -> Pattern:
        """Return a pattern without a size, fitted to its files, each of `file_bytes`.

        The ends are block-aligned.
        """
        block = pattern.block_bytes
        begin, align = pattern.offset_bytes, self.align_bytes or block
        if self.offset:
            begin = -(-(begin + file_bytes * self.offset // 100) // align) * align
        size = self.part_of(file_bytes, file_bytes - begin, block)
        total = (size * self.moved // 100 if self.moved else size) * pattern.files
        pattern = replace(pattern, offset_bytes=begin, file_bytes=size, total_bytes=total)
        return pattern if pattern.has_io_size else replace(pattern, pass_bytes=total)


WHOLE = Shares()


def amount(reader: Reader, name: str) -> tuple[int, int]:
    """Return (bytes, percent) of an option; one of the two is 0."""

    def parse(text: str) -> tuple[int, int]:
        if not text.strip().endswith("%"):
            return options.size(text), 0
        percent = options.plain(text.strip()[:-1])
        if not 0 <= percent <= 100:
            raise ValueError(f"{text}: a share must be 0% to 100%")
        return 0, percent

    return reader.read(name, parse, (0, 0))


def shares_of(reader: Reader, has_size: bool) -> Shares:
    """Return the options in percent.

    size may be a share of filesize; but for io_size all others need a file without size=.
    """
    percents = {name: amount(reader, name)[1] for name in (*OF_FILE, "io_size")}
    has_share = percents["size"] > 0 and "filesize" in reader.specified
    for name, percent in percents.items():
        if not (percent and has_size) or (has_share and name in ("size", "io_size")):
            continue
        if name != "io_size" or "filesize" in reader.specified:
            reader.refuse(name, f"{name} in percent is a share of a file without size=: use bytes")
    align_bytes = reader.read("offset_align", options.size, 0)
    return Shares(percents["size"], percents["offset"], percents["io_size"], align_bytes)
