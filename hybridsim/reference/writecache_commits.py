"""Commits of dm-writecache (2.15)."""

from collections.abc import Callable, Iterator

from hybridsim.foundation.codes import FUA, Op
from hybridsim.reference.clock import Done, Parts
from hybridsim.reference.tier import Tier

SUPERBLOCK_BYTES, REGION_BYTES, REGION_SLOTS = 4 * 1024, 64 * 1024, 4096


class Commits:
    """Makes written data and metadata durable."""

    def __init__(self, fast: Tier, start: int, over: Callable[[bool], None]) -> None:
        self.fast = fast
        self.start = start
        self.over = over  # called at the end with whether slots were allocated
        self.under_way = False
        self.allocated = 0  # slots since the last commit began
        self.overwrote = False
        self.regions: set[int] = set()  # changed metadata regions
        self.writes = 0  # data writes under way to the fast tier
        self.waiting: Done | None = None  # called when these writes end
        self.count = 0

    def changed(self, slot: int) -> None:
        """Record that the metadata of a slot changed."""
        self.regions.add(slot // REGION_SLOTS)

    def begin(self, parts: Parts | None = None) -> None:
        """Begin a commit if data were written; the commit becomes a part of `parts`."""
        has_allocated = self.allocated > 0
        if not has_allocated and not self.overwrote:
            return
        self.allocated = 0
        self.overwrote = False
        self.under_way = True
        self.count += 1
        part_done = parts.another() if parts else None
        steps = self.steps(has_allocated)

        def go_on() -> None:
            step = next(steps, None)
            if step is not None:
                step(go_on)
                return
            self.under_way = False
            self.over(has_allocated)
            if part_done:
                part_done()

        go_on()

    def steps(self, has_allocated: bool) -> Iterator[Callable[[Done], None]]:
        """Yield the steps of a commit, carried out one after another."""
        if has_allocated:
            last = -1
            while ahead := sorted(region for region in self.regions if region > last):
                last = ahead[0]
                self.regions.remove(last)
                at = self.start + SUPERBLOCK_BYTES + last * REGION_BYTES
                yield self.sending(Op.WRITE, at, REGION_BYTES)
        yield self.wait
        yield self.sending(Op.FLUSH, 0, 0)
        if has_allocated:
            yield self.sending(Op.WRITE | FUA, self.start, SUPERBLOCK_BYTES)

    def sending(self, op: int, offset: int, length: int) -> Callable[[Done], None]:
        """Return a request to the fast tier as a step."""
        return lambda done: self.fast.submit(op, offset, length, done)

    def wait(self, done: Done) -> None:
        """Wait for the writes under way, as a step."""
        if self.writes:
            self.waiting = done
        else:
            done()

    def go_on_without_writes(self) -> None:
        """Handle the end of a write."""
        if self.waiting and not self.writes:
            done, self.waiting = self.waiting, None
            done()
