"""Admit every page that is missed."""

from __future__ import annotations

from typing import NamedTuple

from hybridsim.jit import method, state_machine


@state_machine
class Always(NamedTuple):
    """Has no state."""

    @classmethod
    def new(cls, ids: int, pages: int) -> Always:
        """Return the policy."""
        return cls()

    def grown(self, ids: int) -> Always:
        """Return the same policy."""
        return self

    @method
    def request(self, offset, length, write):
        """Ignore a request."""

    @method
    def consider(self, now, page, write, full):
        """Admit every page."""
        return True

    @method
    def evicted(self, page):
        """Ignore an eviction."""
