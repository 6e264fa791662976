"""What bypasses Open CAS: long streams, and core lines with too few misses (2.13.2)."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from hybridsim.foundation.codes import Op

BUCKETS = 10
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


class Chunks:
    """Parts of the core by their numbers of dirty lines, in buckets, for ACP."""

    def __init__(self, lines_each: int) -> None:
        self.lines_each = lines_each
        self.dirty: Counter[int] = Counter()
        self.bucket: Counter[int] = Counter()  # of each chunk; those in bucket 0 are not cleaned
        self.order: list[list[int]] = [[] for _ in range(BUCKETS + 1)]
        self.now: int | None = None  # the chunk that is being cleaned
        self.next = 0  # its core line from which on lines were not looked at

    def load(self, core_lines: Iterable[int]) -> None:
        """Begin with these dirty core lines."""
        self.__init__(self.lines_each)  # type: ignore[misc]
        self.dirty.update(core_line // self.lines_each for core_line in core_lines)
        for chunk in sorted(self.dirty):
            self.bucket[chunk] = BUCKETS * self.dirty[chunk] // self.lines_each
            self.order[self.bucket[chunk]].append(chunk)

    def changed(self, core_line: int, by: int) -> None:
        """Count a core line that became dirty (1), clean (-1) or was written again (0)."""
        chunk = core_line // self.lines_each
        self.dirty[chunk] += by
        share, bucket = BUCKETS * self.dirty[chunk], self.bucket[chunk]
        if share > bucket * self.lines_each:
            self.move(chunk, bucket + 1, len(self.order[bucket + 1]))
        elif bucket and share <= (bucket - 1) * self.lines_each:
            self.move(chunk, bucket - 1, 0)

    def move(self, chunk: int, bucket: int, place: int) -> None:
        """Put a chunk into another bucket."""
        if chunk in self.order[self.bucket[chunk]]:
            self.order[self.bucket[chunk]].remove(chunk)
        self.order[bucket].insert(place, chunk)
        self.bucket[chunk] = bucket

    def choose(self) -> bool:
        """Choose a chunk unless one is being cleaned; return whether there is one."""
        if self.now is None:
            first = [chunks[0] for chunks in reversed(self.order[1:]) if chunks]
            if not first:
                return False
            self.now, self.next = first[0], first[0] * self.lines_each
        return True


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
