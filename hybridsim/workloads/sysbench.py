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
from hybridsim.workloads.load import GIB, KIB, Align, Count, Load, Often, Rate, parse_number
from hybridsim.workloads.offsets import Random, Sequential

Ratio = Annotated[float, BeforeValidator(parse_number), Field(ge=0, le=1e6)]


class Sysbench(Part):
    """I/O of sysbench fileio; options have sysbench's names without `file-`."""

    kind: Literal["sysbench"] = "sysbench"
    name: str = ""  # a comment
    at: Size = 0  # offset of the load's range on the volume
    rate: Rate = 100.0  # requests per second
    begin: Time = 0  # start time of the load
    end: Time | None = None  # end time of the load
    # sysbench test: seqwr, seqrewr, seqrd, rndrd, rndwr or rndrw
    test_mode: Literal["seqwr", "seqrewr", "seqrd", "rndrd", "rndwr", "rndrw"] = Field(
        "rndrd", alias="test-mode"
    )
    total_size: Size = Field(2 * GIB, gt=0, alias="total-size")  # total size of all files
    block_size: Align = Field(16 * KIB, alias="block-size")  # request size
    rw_ratio: Ratio = Field(1.5, alias="rw-ratio")  # ratio of reads to writes in rndrw
    fsync_freq: Often = Field(100, alias="fsync-freq")  # requests between two FLUSHes; 0: none
    threads: Count = 1  # number of threads: requests outstanding

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
