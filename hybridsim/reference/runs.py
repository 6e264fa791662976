"""Sequential runs (2.3, 2.11): which request continues which."""

from dataclasses import dataclass


@dataclass
class Run:
    """Requests that continue each other."""

    end: int
    length: int
    requests: int = 0


class Runs:
    """The sequential runs of late."""

    def __init__(self, most: int = 32) -> None:
        self.most = most
        self.runs: list[Run] = []  # the most recently used first

    def extend(self, offset: int, length: int) -> Run:
        """Add a request to the run that it continues, or to a new one; returns that run."""
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
        del self.runs[self.most :]
        return run
