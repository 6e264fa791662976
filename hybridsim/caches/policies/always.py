"""Admit every page that is missed."""

from __future__ import annotations

from typing import NamedTuple

from hybridsim.caches.policies.defaults import policy
from hybridsim.jit import method


@policy
class Always(NamedTuple):
    """Has no state."""

    @classmethod
    def new(cls, ids: int, pages: int) -> Always:
        """Return the policy."""
        return cls()

    @method
    def consider(self, now, page, write, full):
        """Admit every page."""
        return True
