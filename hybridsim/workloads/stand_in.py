"""A stand-in for a capture, as written by `hybridsim trace fit`: distributions only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from hybridsim.foundation.toml.table import Part, Size, Time
from hybridsim.requests.rows import Requests
from hybridsim.workloads.load import BLOCK_ROWS, WORKER_BITS, Count

Share = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Quantiles = list[float]
Whole = Annotated[int, Field(ge=-99, lt=2**53)]
Pair = Annotated[list[Whole], Field(min_length=2, max_length=2)]
Triple = Annotated[list[Whole], Field(min_length=3, max_length=3)]
Five = Annotated[list[Whole], Field(min_length=5, max_length=5)]
Six = Annotated[list[Whole], Field(min_length=6, max_length=6)]


class StandIn(Part):
    """A load that draws its requests from the distributions of a capture.

    Classes as in hybridsim.workloads.standin.measured.
    """

    kind: Literal["stand-in"] = "stand-in"
    name: str = ""
    at: Size = 0
    begin: Time = 0
    accesses: Count  # requests that read or write data
    objects: list[Six] = Field(min_length=1)  # size, visits, writes, birth, life; number of objects
    sizes: list[Quantiles]  # pages, by class
    counts: list[list[Quantiles]]  # visits; for one page and for more, by class
    pauses: list[list[list[Pair]]]  # relative to the mean pause; as counts
    serial: list[Annotated[float, Field(ge=0, le=1)]]  # correlation of consecutive pauses
    written: list[Share]  # mean share of visits that write, by class
    starts: list[Five] = Field(min_length=1)  # group, earlier visits, pause, start; number
    repeats: list[Share]  # same length at a repeated start, by group
    from_begin: list[list[Share]]  # visits that start at the object's begin, by group
    together: Share  # visits together with one to the hottest neighbour
    shapes: list[Five] = Field(min_length=1)  # class, length, alignment, requests; number
    pace: list[list[Pair]]  # requests between two of a visit
    order: list[Triple]  # transitions of states in order of address
    born_together: Share  # same-age neighbours that are born together
    gaps: list[list[Pair]]  # pages between neighbours
    reach: Count  # pages up to the end of the last
    bursts: list[Triple]  # transitions of octaves of gaps
    parts: list[Share] = Field(min_length=1)  # duration of each 1/64 of the requests, in seconds
    flushes: Share  # per write

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield (key, message) for classes without a distribution, as after an edit."""
        for column, key in ((0, "sizes"), (1, "serial")):
            table = getattr(self, key)
            if any(not 0 <= row[column] < len(table) for row in self.objects):
                yield key, f"{key} has no entry for a class that objects refers to"
        for key in ("counts", "pauses"):
            sizes = [len(each) for each in getattr(self, key)]
            if len(sizes) != 2 or any(row[1] >= sizes[row[0] > 0] for row in self.objects):
                yield key, f"{key} has no entry for a class that objects refers to"

    @property
    def ends(self) -> bool:
        """Return True: the load has an end."""
        return True

    def load(self) -> StandIn:
        """Return the source of the requests."""
        return self

    def requests(self, seed: int, number: int) -> Iterator[Requests]:
        """Yield the requests; all are generated before the first, some 200 bytes each."""
        from hybridsim.workloads.standin.making import generated  # SciPy takes a while to import

        rows = generated(self, seed, number)
        rows.arrival_ns[:] += self.begin
        rows.offset_bytes[:] += self.at
        rows.stream[:] = number << WORKER_BITS
        for start in range(0, rows.rows, BLOCK_ROWS):
            yield rows.between(start, start + BLOCK_ROWS)
