"""The link of a RAID controller (2.11)."""

from collections import deque

from hybridsim.reference.clock import Clock, Done


class Link:
    """The link between DRAM and host, which carries one transfer at a time."""

    def __init__(self, clock: Clock, latency_ns: int, bytes_per_s: int) -> None:
        self.clock = clock
        self.latency_ns = latency_ns
        self.bytes_per_s = bytes_per_s
        self.free = 0
        self.transfers: deque[tuple[int, Done]] = deque()  # (completion time, callback)

    def send(self, size: int, done: Done) -> None:
        """Transfer bytes after all transfers requested before."""
        self.free = max(self.free, self.clock.now) + size * 10**9 // self.bytes_per_s
        self.transfers.append((self.free + self.latency_ns, done))
        if len(self.transfers) == 1:
            self.schedule()

    def schedule(self) -> None:
        """Schedule the completion of the first transfer."""
        self.clock.at(self.transfers[0][0], self.complete)

    def complete(self) -> None:
        """Schedule the next transfer, then report the completion of this one."""
        _, done = self.transfers.popleft()
        if self.transfers:
            self.schedule()
        done()
