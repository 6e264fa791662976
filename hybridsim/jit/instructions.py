"""What lean/ knows beyond Python's own: fetching memory early, the log2 of a number, chains."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from numba.extending import overload

C = TypeVar("C", bound=type)


def by_page(*fields: str) -> Callable[[C], C]:
    """Name the arrays of a state machine, by page id, of which an access reads the page's entry.

    Loops that know the pages of the next accesses fetch these entries early.
    """

    def name(cls: C) -> C:
        cls.BY_PAGE = fields  # type: ignore[attr-defined]
        return cls

    return name


def prefetch(array: Any, index: int) -> None:
    """Make the processor fetch array[index], which is needed soon; any index is harmless.

    Instead of an array it may be a tuple of arrays: each is fetched.

    If the state is larger than the caches, waiting for memory is most of a loop's time.
    """


@overload(prefetch)
def _compiled_prefetch(array: Any, index: int) -> Any:
    def leave(array: Any, index: int) -> None:
        """Fetch nothing: what numba compiles instead of lean/ need not be fast."""

    return leave


def octave(number: int) -> int:
    """Return log2 of a number of at least 1, rounded down; 0 for 0.

    >>> [octave(each) for each in (0, 1, 2, 3, 4)]
    [0, 0, 1, 1, 2]
    """
    return (int(number) | 1).bit_length() - 1


@overload(octave)
def _compiled_octave(number: int) -> Any:
    def find(number: int) -> int:
        """Count: what numba compiles instead of lean/ need not be fast."""
        found = 0
        while number > 1:
            number >>= 1
            found += 1
        return found

    return find


def along(first: int, links: Any) -> Iterator[int]:
    """Yield an entry and those linked after it, up to a link of -1.

    A link is read before the loop's statements for its entry run, so that they may free it.

    >>> list(along(2, [-1, 0, 1]))
    [2, 1, 0]
    """
    while first >= 0:
        entry, first = int(first), links[first]
        yield entry


@overload(along)
def _compiled_along(first: int, links: Any) -> Any:
    return along
