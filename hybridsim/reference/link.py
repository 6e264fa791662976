"""The link of a RAID controller (2.11): one transfer after the other."""

from collections import deque

from hybridsim.reference.clock import Clock, Done


class Link:
    """The way between DRAM and host, one transfer after the other."""

    def __init__(self, clock: Clock, latency_ns: int, bytes_per_s: int) -> None:
        self.clock = clock
        self.latency_ns = latency_ns
        self.bytes_per_s = bytes_per_s
        self.free = 0
        self.transfers: deque[tuple[int, Done]] = deque()  # (completion, whom it concerns)

    def send(self, size: int, done: Done) -> None:
        """Carry some bytes after all that were asked for before."""
        self.free = max(self.free, self.clock.now) + size * 10**9 // self.bytes_per_s
        self.transfers.append((self.free + self.latency_ns, done))
        if len(self.transfers) == 1:
            self.schedule()

    def schedule(self) -> None:
        """Let the first transfer be complete in time."""
        self.clock.at(self.transfers[0][0], self.complete)

    def complete(self) -> None:
        """Go on to the next transfer before the world hears of this one."""
        _, done = self.transfers.popleft()
        if self.transfers:
            self.schedule()
        done()
