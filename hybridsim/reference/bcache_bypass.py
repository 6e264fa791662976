"""What bypasses bcache (2.12.2): sequential streams, and streams during congestion."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from hybridsim.foundation.cache_parameters import BcacheParameters
from hybridsim.foundation.codes import Reason
from hybridsim.reference.timers import JIFFY


@dataclass
class Stream:
    """A sequential stream."""

    last: int = -1
    size: int = 0
    expiry: int = 0


@dataclass
class Task:
    """The current and mean stream length of a task, in bytes."""

    seq: int = 0
    avg: int = 0


class Bypass:
    """Streams, tasks and congestion."""

    def __init__(self, parameters: BcacheParameters, draw: Callable[[], int]) -> None:
        self.parameters = parameters
        self.draw = draw
        self.streams = OrderedDict((number, Stream()) for number in range(128))  # oldest first
        self.tasks: dict[int, Task] = {}
        self.c = 0
        self.stamp = 0

    def why(self, now: int, task_number: int, offset: int, length: int) -> Reason:
        """Return the reason why a request is bypassed, or NONE."""
        congested = self.congested(now)
        cutoff = self.parameters.sequential_cutoff_bytes
        if congested == 0 and cutoff == 0:
            return Reason.NONE
        task = self.tasks.setdefault(task_number, Task())
        jiffies = now // JIFFY
        number = self.find(offset, jiffies)
        if number is None:
            number = next(iter(self.streams))
            self.streams[number].size = 0
            task.avg = (7 * task.avg + task.seq) % 2**32 // 8
        stream = self.streams[number]
        self.streams.move_to_end(number)
        if stream.size + length < 2**32:
            stream.size += length
        stream.last = offset + length
        stream.expiry = jiffies + 1250
        task.seq = stream.size
        sectors = max(task.seq, task.avg) // 512
        if cutoff > 0 and sectors >= cutoff // 512:
            return Reason.SEQUENTIAL
        if 0 < congested <= sectors:
            return Reason.CONGESTED
        return Reason.NONE

    def find(self, offset: int, jiffies: int) -> int | None:
        """Return the most recently used live stream that ends at `offset`, or None."""
        for number in reversed(self.streams):
            stream = self.streams[number]
            if stream.last == offset and jiffies < stream.expiry:
                return number
        return None

    def served(self, took_ns: int, now: int, is_write: bool) -> None:
        """Record the service time of a request to the fast tier."""
        p = self.parameters
        threshold = p.congested_write_us if is_write else p.congested_read_us
        took = took_ns // 1024
        if threshold == 0:
            return
        if took > threshold:
            self.stamp = now // 1024
            self.c -= min(took // 1024, 1024 + self.c)
        elif self.c < 0:
            self.c += 1

    def congested(self, now: int) -> int:
        """Return the stream length in sectors from which requests are bypassed; 0: none."""
        p = self.parameters
        if p.congested_read_us == 0 and p.congested_write_us == 0:
            return 0
        i = (now // 1024 - self.stamp) // 1024 + self.c
        if i >= 0:
            return 0
        i += 1024
        if i > 0:
            i = (64 + i % 64) * 2 ** (i // 64) // 64
        for _ in range(2):
            i -= (self.draw() % 2**16).bit_count()
        return max(i, 1)
