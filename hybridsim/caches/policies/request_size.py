"""Admission by the size of the request: what disks serve well, in large pieces, is left to them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.jit import method, state_machine


@state_machine
class RequestSize(NamedTuple):
    """The largest request that is let in, and the size of the present one."""

    most_bytes: int
    present_bytes: Ints

    @classmethod
    def new(cls, ids: int, pages: int, request_max_bytes: int = 64 * 1024) -> RequestSize:
        """Want the pages of requests up to that size."""
        return cls(request_max_bytes, np.zeros(1, np.int64))

    def grown(self, ids: int) -> RequestSize:
        """Return the same policy: it knows nothing of pages."""
        return self

    @method
    def request(self, offset, length, write):
        """Note the size of a request before its pages."""
        self.present_bytes[0] = length

    @method
    def consider(self, now, page, write, full):
        """Want the pages of requests that are small enough."""
        return self.present_bytes[0] <= self.most_bytes

    @method
    def evicted(self, page):
        """Hear that a page had to leave."""
