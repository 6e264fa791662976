"""Admission by the size of the request: large requests are left to the disks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.policies.defaults import policy
from hybridsim.foundation.arrays import Ints
from hybridsim.jit import method


@policy
class RequestSize(NamedTuple):
    """The maximum size of a request whose pages are admitted, and the size of the current one."""

    max_bytes: int
    current_bytes: Ints

    @classmethod
    def new(cls, ids: int, pages: int, request_max_bytes: int = 64 * 1024) -> RequestSize:
        """Admit the pages of requests up to that size."""
        return cls(request_max_bytes, np.zeros(1, np.int64))

    @method
    def request(self, offset, length, write):
        """Record the size of a request before its pages."""
        self.current_bytes[0] = length

    @method
    def consider(self, now, page, write, full):
        """Admit the pages of requests that are small enough."""
        return self.current_bytes[0] <= self.max_bytes
