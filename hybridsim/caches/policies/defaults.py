"""What most policies have in common, so that the file of each says only what it does itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from hybridsim.foundation.arrays import longer
from hybridsim.jit import method, state_machine

C = TypeVar("C", bound=type)


def policy(cls: C) -> C:
    """Make a state machine a policy: it gets what it lacks of the methods of its role.

    An admission policy has `consider`, a replacement policy `evict`; where its pages are in
    `queues` (queues.py), a page that was removed leaves these.
    """
    lacking: list[Callable[..., Any]] = [grown]
    if hasattr(cls, "consider"):
        lacking += [request, evicted]
    if hasattr(cls, "evict"):
        lacking += [missed, touch]
        if "queues" in cls.__annotations__:
            lacking.append(remove)
    for each in lacking:
        if not hasattr(cls, each.__name__):
            setattr(cls, each.__name__, each)
    return state_machine(cls)


def grown(self: Any, ids: int) -> Any:
    """Return the same policy with room for `ids` pages: in its parts, and in arrays by page."""
    parts = {
        name: part.grown(ids) for name, part in self._asdict().items() if hasattr(part, "grown")
    }
    columns = getattr(self, "BY_PAGE", ())
    return self._replace(**parts, **{name: longer(getattr(self, name), ids) for name in columns})


@method
def request(self, offset, length, write):
    """Ignore a request."""


@method
def evicted(self, page):
    """Ignore an eviction."""


@method
def missed(self, page):
    """Ignore a miss."""


@method
def touch(self, page):
    """Ignore a use of a page."""


@method
def remove(self, page):
    """Remove a page."""
    self.queues.drop(page)
