"""What bypasses Open CAS: long streams, and core lines with too few misses (2.13.2)."""

from dataclasses import dataclass

from hybridsim.foundation.codes import Op

NEW_STREAMS, ESTABLISHED_STREAMS, ESTABLISHING_REQUESTS = 64, 128, 8


@dataclass(eq=False)
class Stream:
    """Consecutive requests of one direction."""

    op: Op
    end: int
    length: int
    requests: int


class Streams:
    """The recent streams; both lists are in order of use, the most recent first."""

    def __init__(self, sequential_cutoff_bytes: int) -> None:
        self.sequential_cutoff_bytes = sequential_cutoff_bytes
        self.new: list[Stream] = []
        self.established: list[Stream] = []

    def extend(self, op: Op, offset: int, length: int) -> bool:
        """Add a request to its stream; return whether the stream is long."""
        for streams in (self.new, self.established):
            for stream in streams:
                if (stream.op, stream.end) == (op, offset):
                    return self.extended(streams, stream, length)
        self.new.insert(0, Stream(op, offset + length, length, 1))
        del self.new[NEW_STREAMS:]
        return False

    def extended(self, streams: list[Stream], stream: Stream, length: int) -> bool:
        """Extend a stream; return whether it is long."""
        stream.end += length
        stream.length += length
        stream.requests += 1
        is_long = stream.length >= self.sequential_cutoff_bytes
        streams.remove(stream)
        if streams is self.new and (is_long or stream.requests >= ESTABLISHING_REQUESTS):
            streams = self.established
        streams.insert(0, stream)
        del self.established[ESTABLISHED_STREAMS:]
        return is_long


class Nhit:
    """Counts misses of core lines that are not cached."""

    def __init__(self, threshold: int, room: int) -> None:
        self.threshold = threshold
        self.room = room
        self.misses: dict[int, int] = {}  # in order of insertion

    def refuses(self, core_lines: range) -> bool:
        """Count a miss of each core line; return whether any has too few misses."""
        passing = [self.passes(core_line) for core_line in core_lines]
        return not all(passing)

    def passes(self, core_line: int) -> bool:
        """Count a miss; return whether the threshold is reached."""
        if core_line in self.misses:
            self.misses[core_line] += 1
            return self.misses[core_line] >= self.threshold
        if len(self.misses) == self.room:
            del self.misses[next(iter(self.misses))]
        self.misses[core_line] = 1
        return False

    def forget(self, core_lines: range) -> None:
        """Reset the counts of these core lines."""
        for core_line in core_lines:
            if core_line in self.misses:
                self.misses[core_line] = 0
