"""Commits of dm-writecache, and the lock that they hold (2.15)."""

from collections.abc import Callable, Iterator

from hybridsim.foundation.codes import FUA, Op
from hybridsim.reference.clock import Done, Parts
from hybridsim.reference.tier import Tier

SUPERBLOCK_BYTES, REGION_BYTES, REGION_SLOTS = 4 * 1024, 64 * 1024, 4096
Step = Callable[[Done], None]


class Commits:
    """Makes written data and metadata durable."""

    def __init__(self, fast: Tier, start: int, over: Callable[[bool], None], unlock: Done) -> None:
        self.fast = fast
        self.start = start
        self.over = over  # called at the end with whether slots were allocated
        self.unlock = unlock  # called whenever the lock is given back
        self.locked = False
        self.allocated = 0  # slots since the last commit began
        self.overwrote = False
        self.freed: set[int] = set()  # regions of the metadata with slots that were freed
        self.new: set[int] = set()  # and with slots that were allocated
        self.reads = 0  # of data from the fast tier, under way
        self.writes = 0
        self.for_reads: Done | None = None  # called when these reads end
        self.for_writes: Done | None = None
        self.count = 0

    def was_freed(self, slot: int) -> None:
        """Record that a slot was freed."""
        self.freed.add(slot // REGION_SLOTS)

    def was_allocated(self, slot: int) -> None:
        """Record that a slot was allocated."""
        self.new.add(slot // REGION_SLOTS)

    def begin(self, parts: Parts | None = None) -> None:
        """Begin a commit if data were written; the commit becomes a part of `parts`."""
        has_allocated = self.allocated > 0
        if not has_allocated and not self.overwrote:
            return
        self.allocated = 0
        self.overwrote = False
        self.count += 1
        part_done = parts.another() if parts else None

        def end() -> None:
            self.over(has_allocated)
            self.unlock()
            if part_done:
                part_done()

        self.hold(self.steps(has_allocated), end)

    def note_freed(self, done: Done) -> None:
        """Make it durable that slots were freed."""

        def end() -> None:
            done()
            self.unlock()

        self.hold(
            iter([self.wait_for_reads, self.writing(self.freed), self.sending(Op.FLUSH)]), end
        )

    def hold(self, steps: Iterator[Step], end: Done) -> None:
        """Take the lock for some steps, carried out one after another."""
        self.locked = True

        def go_on() -> None:
            step = next(steps, None)
            if step is not None:
                step(go_on)
                return
            self.locked = False
            end()

        go_on()

    def steps(self, has_allocated: bool) -> Iterator[Step]:
        """Yield the steps of a commit."""
        if has_allocated:
            yield self.writing(self.freed, self.new)
        yield self.wait_for_writes
        yield self.sending(Op.FLUSH)
        if has_allocated:
            yield self.sending(Op.WRITE | FUA, self.start, SUPERBLOCK_BYTES)

    def sending(self, op: int, offset: int = 0, length: int = 0) -> Step:
        """Return a request to the fast tier as a step."""
        return lambda done: self.fast.submit(op, offset, length, done)

    def writing(self, *kinds: set[int]) -> Step:
        """Return as a step: write the regions of these kinds, each run of them at once."""

        def write(done: Done) -> None:
            regions = sorted(set().union(*kinds))
            for kind in kinds:
                kind.clear()
            firsts = [each for each in regions if each - 1 not in regions]
            parts = Parts(done)
            for first in firsts:
                end = first
                while end in regions:
                    end += 1
                at = self.start + SUPERBLOCK_BYTES + first * REGION_BYTES
                self.fast.submit(Op.WRITE, at, (end - first) * REGION_BYTES, parts.another())
            if not firsts:
                done()

        return write

    def wait_for_reads(self, done: Done) -> None:
        """Wait for the reads under way, as a step."""
        if self.reads:
            self.for_reads = done
        else:
            done()

    def wait_for_writes(self, done: Done) -> None:
        """Wait for the writes under way, as a step."""
        if self.writes:
            self.for_writes = done
        else:
            done()

    def read_ended(self) -> None:
        """Count a read of data that is complete."""
        self.reads -= 1
        if self.for_reads and not self.reads:
            done, self.for_reads = self.for_reads, None
            done()

    def write_ended(self) -> None:
        """Count a write of data that is complete."""
        self.writes -= 1
        if self.for_writes and not self.writes:
            done, self.for_writes = self.for_writes, None
            done()
