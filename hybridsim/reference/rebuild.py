"""The rebuild of a replaced member (2.5.4), beside the load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hybridsim.foundation.codes import Op
from hybridsim.reference.clock import Parts
from hybridsim.reference.member import Health, Range
from hybridsim.reference.parameters import RebuildParameters

if TYPE_CHECKING:
    from hybridsim.reference.tier import Tier

SECOND = 10**9


class Rebuild:
    """Reads what is left and writes it to the new member, piece by piece, at a measured pace."""

    WINDOW = 16
    PIECE_BYTES = 64 * 1024
    QUIET_NS = 10_000_000

    def __init__(self, tier: Tier, parameters: RebuildParameters) -> None:
        self.tier = tier
        self.clock = tier.clock
        self.member = parameters.member
        self.rates = parameters
        self.pieces = [
            (row * tier.chunk + start, row * tier.chunk + min(start + self.PIECE_BYTES, tier.chunk))
            for row in range(tier.rows)
            for start in range(0, tier.chunk, self.PIECE_BYTES)
        ]
        self.chunks = {} if tier.parities else tier.chunks_by_place()
        self.next = 0
        self.oldest = 0  # piece that is not written
        self.written: set[int] = set()  # beyond it
        self.free = self.due = 0  # of the greatest and the least rate
        self.quiet_since = 0
        self.timer: int | None = None
        self.set_timer(0)

    @property
    def line(self) -> int:
        """The byte below which everything is rebuilt."""
        return self.pieces[self.oldest][0] if not self.is_over else self.pieces[-1][1]

    @property
    def is_over(self) -> bool:
        """Whether all is written."""
        return self.oldest == len(self.pieces)

    def rest(self) -> None:
        """Hear that no request is under way from now on."""
        self.quiet_since = self.clock.now
        self.look()

    def look(self) -> None:
        """Begin what may begin now, and see when to look again."""
        while self.next < len(self.pieces) and self.span < self.WINDOW:
            wait_until = self.wait_until()
            if wait_until is not None:
                if self.timer is None or wait_until < self.timer:
                    self.set_timer(wait_until)
                return
            self.begin()

    @property
    def span(self) -> int:
        """How many pieces the next is ahead of the oldest unwritten one."""
        return self.next - self.oldest

    def wait_until(self) -> int | None:
        """When the next piece may begin, or None for now."""
        now = self.clock.now
        if now < self.free:
            return self.free
        times = [self.due]
        if self.tier.outstanding == 0:
            times.append(self.quiet_since + self.QUIET_NS)
        return None if self.span == 0 or now >= min(times) else min(times)

    def set_timer(self, time: int) -> None:
        """Look again at `time`, unless another timer is set before that."""

        def ring() -> None:
            if self.timer == self.clock.now:
                self.timer = None
                self.look()

        self.timer = time
        self.clock.at(time, ring)

    def begin(self) -> None:
        """Read a piece, then write it."""
        piece = self.next
        start, end = self.pieces[piece]
        self.next += 1
        self.free = self.clock.now + (end - start) * SECOND // self.rates.max_bytes_per_s
        self.due = min(self.due, self.clock.now)
        self.due += (end - start) * SECOND // self.rates.min_bytes_per_s
        sources = self.sources(start, end)
        parts = Parts(lambda: self.write(piece))
        for each in sources:
            self.tier.to_member(Op.READ, each, parts.another())
        if not sources:
            self.write(piece)

    def sources(self, start: int, end: int) -> list[Range]:
        """What a piece is computed from, or copied from."""
        tier = self.tier
        whole = [n for n, each in enumerate(tier.members) if each.health == Health.WHOLE]
        if tier.parities:
            return [Range(member, start, end) for member in whole]
        row, within = divmod(start, tier.chunk)
        chunk = self.chunks.get((self.member, row * tier.chunk))
        if chunk is None:
            return []
        for copy in range(tier.copies):
            member, base = tier.place(chunk, copy)
            if member in whole:
                return [Range(member, base + within, base + within + end - start)]
        return []

    def write(self, piece: int) -> None:
        """Write a piece to the new member."""
        start, end = self.pieces[piece]

        def done() -> None:
            self.written.add(piece)
            while self.oldest in self.written:
                self.written.remove(self.oldest)
                self.oldest += 1
            if self.is_over:
                self.finish()
            else:
                self.look()

        self.tier.to_member(Op.WRITE, Range(self.member, start, end), done)

    def finish(self) -> None:
        """The member is as good as any."""
        self.tier.members[self.member].health = Health.WHOLE
