"""The I/O of `sysbench fileio`: modes seqwr, seqrewr, seqrd, rndrd, rndwr and rndrw.

As in the fileio test of sysbench 1.0: random offsets are uniform; rndrw has a ratio of reads to
writes of file-rw-ratio (here on average); modes that write call fsync after each file-fsync-freq
requests, for all files one by one, which is one FLUSH here.  The files are concatenated, and
requests bypass the page cache as with file-extra-flags=direct.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from hybridsim.foundation.toml.table import Part, Size, Time
from hybridsim.workloads.load import GIB, KIB, Load
from hybridsim.workloads.offsets import Random, Sequential
from hybridsim.workloads.quantities import Align, Count, Often, Rate, parse_number

Ratio = Annotated[float, BeforeValidator(parse_number), Field(ge=0, le=1e6)]


class Sysbench(Part):
    """I/O of sysbench fileio; options have sysbench's names without `file-`."""

    kind: Literal["sysbench"] = "sysbench"
    name: str = ""
    at: Size = 0
    rate: Rate = 100.0
    begin: Time = 0
    end: Time | None = None
    test_mode: Literal["seqwr", "seqrewr", "seqrd", "rndrd", "rndwr", "rndrw"] = Field(
        "rndrd", alias="test-mode"
    )
    total_size: Size = Field(2 * GIB, gt=0, alias="total-size")
    block_size: Align = Field(16 * KIB, alias="block-size")
    rw_ratio: Ratio = Field(1.5, alias="rw-ratio")
    fsync_freq: Often = Field(100, alias="fsync-freq")  # 0: never
    threads: Count = 1

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Reject blocks larger than the files."""
        if self.block_size > self.total_size:
            yield "block-size", "block-size must be at most total-size"

    def load(self) -> Load:
        """Return the equivalent load."""
        reads = {"seqrd": 1.0, "rndrd": 1.0, "rndrw": self.rw_ratio / (1 + self.rw_ratio)}
        common = self.model_dump(include={"name", "at", "rate", "begin", "end"})
        values = common | {
            "span": self.total_size,
            "size": str(self.block_size),
            "align": self.block_size,
            "read": f"{reads.get(self.test_mode, 0.0) * 100:.9f}%",
            "depth": self.threads,
            "flush_every": self.fsync_freq,
        }
        kind = Sequential if self.test_mode.startswith("seq") else Random
        return kind.model_validate(values)
