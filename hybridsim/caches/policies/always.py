"""Admission of every page that is missed."""

from __future__ import annotations

from typing import NamedTuple

from hybridsim.jit import method, state_machine


@state_machine
class Always(NamedTuple):
    """Knows nothing."""

    @classmethod
    def new(cls, ids: int, pages: int) -> Always:
        """Make the policy."""
        return cls()

    def grown(self, ids: int) -> Always:
        """Return the same policy."""
        return self

    @method
    def request(self, offset, length, write):
        """Hear of a request before its pages."""

    @method
    def consider(self, now, page, write, full):
        """Want every page."""
        return True

    @method
    def evicted(self, page):
        """Hear that a page had to leave."""
