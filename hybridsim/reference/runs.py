"""Runs of numbers, the units that bytes touch, and sequential runs of requests (2.3, 2.11)."""

from collections.abc import Iterator
from dataclasses import dataclass

from hybridsim.foundation.codes import Op


def runs(numbers: set[int]) -> Iterator[tuple[int, int]]:
    """Yield [first, end) of each run of consecutive numbers."""
    starts = sorted(each for each in numbers if each - 1 not in numbers)
    ends = sorted(each + 1 for each in numbers if each + 1 not in numbers)
    return zip(starts, ends, strict=True)


def touched(start: int, end: int, unit: int) -> range:
    """Return the units of which [start, end) has at least one byte."""
    return range(start // unit, -(-end // unit))


def covered(start: int, end: int, unit: int) -> range:
    """Return the units of which [start, end) has all bytes."""
    return range(-(-start // unit), end // unit)


def split(start: int, end: int, unit: int) -> Iterator[tuple[int, int, int]]:
    """Yield each unit that [start, end) touches, with the bytes [first, last) in it."""
    for number in touched(start, end, unit):
        yield number, max(start, number * unit), min(end, (number + 1) * unit)


@dataclass(eq=False)
class Run:
    """Requests that each begin where the one before ended."""

    end: int
    op: Op | None = None  # of all, if that matters
    length: int = 0
    requests: int = 0

    def extend(self, length: int) -> None:
        """Add a request."""
        self.end += length
        self.length += length
        self.requests += 1


class Runs:
    """The recent sequential runs, at most `limit`."""

    def __init__(self, limit: int = 32) -> None:
        self.limit = limit
        self.runs: list[Run] = []  # the most recently used first

    def extend(self, offset: int, length: int) -> Run:
        """Add a request to the run that it continues, or to a new one; return the run."""
        run = next((each for each in self.runs if each.end == offset), Run(offset))
        run.extend(length)
        self.runs = [run, *(each for each in self.runs if each is not run)][: self.limit]
        return run
