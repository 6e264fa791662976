"""What `sysbench fileio` asks of its files: modes seqwr, seqrewr, seqrd, rndrd, rndwr and rndrw.

Facts of sysbench 1.0's fileio test: random places are uniform; rndrw keeps reads to writes at
file-rw-ratio (here by chance); while something is written, an fsync is due after each
file-fsync-freq requests.  It then fsyncs all files, one by one: here that is one FLUSH.  The files
lie one behind the other, and requests by-pass the page cache as with file-extra-flags=direct.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from hybridsim.workloads.even import Random
from hybridsim.workloads.load import GIB, KIB, Load
from hybridsim.workloads.quantities import (
    Align,
    Count,
    Often,
    Part,
    Rate,
    Size,
    Time,
    parse_number,
)
from hybridsim.workloads.sequential import Sequential

Ratio = Annotated[float, BeforeValidator(parse_number), Field(ge=0, le=1e6)]


class Sysbench(Part):
    """The options that matter, by sysbench's names without `file-`; a worker for each thread."""

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
        """Refuse blocks that are no part of the files."""
        if self.block_size > self.total_size:
            yield "block-size", "a block is larger than the total-size"

    def load(self) -> Load:
        """Return the load that these options mean."""
        reads = {"seqrd": 1.0, "rndrd": 1.0, "rndrw": self.rw_ratio / (1 + self.rw_ratio)}
        common = self.model_dump(include={"name", "at", "rate", "begin", "end"})
        meant = common | {
            "span": self.total_size,
            "size": str(self.block_size),
            "align": self.block_size,
            "read": f"{reads.get(self.test_mode, 0.0) * 100:.9f}%",
            "depth": self.threads,
            "flush_every": self.fsync_freq,
        }
        kind = Sequential if self.test_mode.startswith("seq") else Random
        return kind.model_validate(meant)
