"""A stand-in for a capture, as written by `hybridsim trace fit`: distributions only."""

from __future__ import annotations

from collections.abc import Iterator

from hybridsim.requests.rows import Requests
from hybridsim.workloads.load import BLOCK_ROWS, WORKER_BITS
from hybridsim.workloads.standin.table import Distributions


class StandIn(Distributions):
    """A load that draws its requests from the distributions of a capture."""

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
