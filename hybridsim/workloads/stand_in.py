"""A stand-in for a capture, as `hybridsim trace fit` writes it: distributions, nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from hybridsim.requests.rows import Requests
from hybridsim.workloads.load import BLOCK_ROWS, WORKER_BITS
from hybridsim.workloads.standin.table import Distributions


class StandIn(Distributions):
    """A load that draws its requests from the distributions of a capture."""

    @property
    def ends(self) -> bool:
        """Tell that it has an end."""
        return True

    def load(self) -> StandIn:
        """Return what makes the requests."""
        return self

    def requests(self, seed: int, number: int) -> Iterator[Requests]:
        """Yield the requests; all of them are made before the first, 200 bytes each or so."""
        from hybridsim.workloads.standin.making import generated  # SciPy takes a while to import

        rows = generated(self, seed, number)
        rows.arrival_ns[:] += self.begin
        rows.offset_bytes[:] += self.at
        rows.stream[:] = number << WORKER_BITS
        for start in range(0, rows.rows, BLOCK_ROWS):
            yield rows.between(start, start + BLOCK_ROWS)
