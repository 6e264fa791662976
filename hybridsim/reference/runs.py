"""Sequential runs of requests (2.3, 2.11)."""

from dataclasses import dataclass


@dataclass
class Run:
    """Requests that each begin where the one before ended."""

    end: int
    length: int
    requests: int = 0


class Runs:
    """The recent sequential runs, at most `limit`."""

    def __init__(self, limit: int = 32) -> None:
        self.limit = limit
        self.runs: list[Run] = []  # the most recently used first

    def extend(self, offset: int, length: int) -> Run:
        """Add a request to the run that it continues, or to a new one; return the run."""
        for run in self.runs:
            if run.end == offset:
                self.runs.remove(run)
                break
        else:
            run = Run(offset, 0)
        run.end += length
        run.length += length
        run.requests += 1
        self.runs.insert(0, run)
        del self.runs[self.limit :]
        return run
