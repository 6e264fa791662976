"""The table of a stand-in: the distributions that `hybridsim trace fit` writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from hybridsim.workloads.quantities import Count, Part, Size, Time

Share = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Quantiles = list[float]
Whole = Annotated[int, Field(ge=-99, lt=2**53)]
Pair = Annotated[list[Whole], Field(min_length=2, max_length=2)]
Triple = Annotated[list[Whole], Field(min_length=3, max_length=3)]
Five = Annotated[list[Whole], Field(min_length=5, max_length=5)]
Six = Annotated[list[Whole], Field(min_length=6, max_length=6)]


class Distributions(Part):
    """What is known of a capture; classes are those of hybridsim.workloads.standin.classes."""

    kind: Literal["stand-in"] = "stand-in"
    name: str = ""
    at: Size = 0
    begin: Time = 0
    accesses: Count  # requests that read or write data
    objects: list[Six] = Field(min_length=1)  # size, visits, writes, birth, life; number
    sizes: list[Quantiles]  # pages, by class
    counts: list[list[Quantiles]]  # visits, of one page and of more, by class
    pauses: list[list[list[Pair]]]  # between visits, over their mean, likewise
    serial: list[Annotated[float, Field(ge=0, le=1)]]  # how like a pause is to the one before it
    written: list[Share]  # of visits that write, by class of that share
    starts: list[Five] = Field(min_length=1)  # group, visits before, pause, how; number
    repeats: list[Share]  # visits that begin as one before and are as long, by group
    from_begin: list[list[Share]]  # visits that begin with the object, by group
    together: Share  # visits that come with one to the most visited neighbour
    shapes: list[Five] = Field(min_length=1)  # class, length, alignment, requests; number
    pace: list[list[Pair]]  # requests from one of a visit to the next
    order: list[Triple]  # which state follows which in order of address
    born_together: Share  # neighbours born in the same slice that are born at once
    gaps: list[list[Pair]]  # pages between neighbours
    reach: Count  # pages up to the end of the last
    bursts: list[Triple]  # which octave of gaps between arrivals follows which
    parts: list[Share] = Field(min_length=1)  # seconds that each 1/64 of the requests takes
    flushes: Share  # for each write

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Refuse classes that have no distribution, as after an edit."""
        for column, key in ((0, "sizes"), (1, "serial")):
            known = getattr(self, key)
            if any(not 0 <= row[column] < len(known) for row in self.objects):
                yield key, f"{key} has no entry for a class that objects names"
        for key in ("counts", "pauses"):
            known = [len(each) for each in getattr(self, key)]
            if len(known) != 2 or any(row[1] >= known[row[0] > 0] for row in self.objects):
                yield key, f"{key} has no entry for a class that objects names"
