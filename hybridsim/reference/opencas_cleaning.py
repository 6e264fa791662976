"""How and when Open CAS writes dirty lines to the core (2.13.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from hybridsim.foundation.codes import Cleaning, Op
from hybridsim.reference.clock import Done, Parts
from hybridsim.reference.opencas_lines import Claim, Line, runs

if TYPE_CHECKING:
    from hybridsim.reference.opencas import OpenCas

SECOND = 10**9
CHUNK_BYTES = 100 * 2**20
SECTOR = 512


def each_of(submits: Iterable[Callable[[Done], None]], done: Done) -> None:
    """Submit all, and call `done` with the last; at once if there are none."""
    parts = Parts(done)
    last = None
    for submit in submits:
        last = parts.another()
        submit(last)
    if last is None:
        done()


class Cleaner:
    """Cleans lines for others, and by itself as its policy says."""

    def __init__(self, cache: OpenCas) -> None:
        self.cache = cache
        self.clock = cache.clock
        self.parameters = cache.parameters
        self.asleep = True
        self.evicting = False

    def clean(self, lines: list[Line], done: Done) -> None:
        """Clean lines that are locked, in order of core lines."""
        cache, size = self.cache, self.parameters.line_bytes

        def read(line: Line) -> Callable[[Done], None]:
            return lambda then: cache.fast.submit(Op.READ, line.number * size, size, then)

        def write(line: Line, first: int, end: int) -> Callable[[Done], None]:
            assert line.holds is not None
            at, length = line.holds * size + first * SECTOR, (end - first) * SECTOR

            def submit(then: Done) -> None:
                cache.counts["cleaned"] += length
                cache.slow.submit(Op.WRITE, at, length, then)

            return submit

        def write_all() -> None:
            parts = [write(line, *run) for line in lines for run in runs(line.dirty)]
            each_of(parts, lambda: cache.slow.submit(Op.FLUSH, 0, 0, end))

        def end() -> None:
            for line in lines:
                cache.lines.change(line, line.valid, set())
            cache.write_metadata(lines, Op.WRITE, done)

        each_of([read(line) for line in lines], write_all)

    def clean_batch(self, lines: list[Line], done: Done) -> None:
        """Clean lines that nobody has locked yet."""
        lines = sorted(lines, key=lambda line: line.holds or 0)
        claim = Claim(lines, False, lambda: None)

        def end() -> None:
            claim.give_back()
            done()

        self.clean(lines, end)

    def make_room(self) -> None:
        """Clean some lines, so that they can be taken another time."""
        if self.evicting:
            return
        lines = self.cache.lines.choose_dirty(32)
        if lines:
            self.evicting = True
            self.clean_batch(lines, self.made_room)

    def made_room(self) -> None:
        """Be ready to do it again."""
        self.evicting = False

    # By itself.

    def wake(self) -> None:
        """A line has become dirty."""
        if self.asleep and self.parameters.cleaning != Cleaning.NOP:
            self.asleep = False
            alru = self.parameters.cleaning == Cleaning.ALRU
            period = self.parameters.wake_ns if alru else SECOND
            self.clock.at((self.clock.now // period + 1) * period, self.come)

    def come(self) -> None:
        """Clean what the policy chooses, if there is something."""
        if not any(self.cache.lines.dirty):
            self.asleep = True
            return
        if self.parameters.cleaning == Cleaning.ALRU:
            lines, pause = self.oldest(), 0
        else:
            lines, pause = self.densest(), self.parameters.wake_ns
        if lines:
            self.clean_batch(lines, lambda: self.come_in(pause))
        else:
            self.come_in(self.parameters.wake_ns)

    def come_in(self, pause: int) -> None:
        """Come again."""
        self.clock.at(self.clock.now + pause, self.come)

    def oldest(self) -> list[Line]:
        """What was not written for long, if nothing is going on (ALRU)."""
        p, now = self.parameters, self.clock.now
        if now - self.cache.last_io < p.activity_ns:
            return []
        stale = self.cache.lines.all_dirty(lambda line: line.made_dirty[0] <= now - p.staleness_ns)
        return sorted(stale, key=lambda line: line.made_dirty)[: p.flush_lines]

    def densest(self) -> list[Line]:
        """The first dirty lines of the chunk that has the most (ACP)."""
        size = self.parameters.line_bytes
        held = [line.holds or 0 for lines in self.cache.lines.dirty for line in lines]
        dirty = Counter(core_line * size // CHUNK_BYTES for core_line in held)

        def rank(chunk: int) -> tuple[int, int]:
            return -(10 * dirty[chunk] // (CHUNK_BYTES // size)), chunk

        chunk = min(dirty, key=rank)
        lines = self.cache.lines.all_dirty(
            lambda line: (line.holds or 0) * size // CHUNK_BYTES == chunk
        )
        return lines[: self.parameters.flush_lines]
