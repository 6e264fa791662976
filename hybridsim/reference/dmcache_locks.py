"""Bios of dm-cache, and the locks that they and the work in the background take (2.14.2)."""

from collections import Counter
from dataclasses import dataclass

from hybridsim.foundation.codes import FUA, Op
from hybridsim.reference.cache import Verdict
from hybridsim.reference.clock import Done
from hybridsim.reference.smq import Lock, Work


@dataclass(eq=False)
class Bio:
    """The part of a request that lies in one block."""

    op: Op
    offset: int
    length: int
    done: Done
    verdict: Verdict
    marked: bool = False
    accounted: bool = False
    holds: int = -1  # the block that the bio holds
    overwrites: Work | None = None
    fua: bool = False
    send: Done | None = None  # called after the commit that the bio waits for

    @property
    def flagged_op(self) -> int:
        """The op for a tier, with FUA."""
        return self.op | (FUA if self.fua else 0)


class Locks:
    """Blocks held by bios; bios and work that wait for them."""

    def __init__(self) -> None:
        self.holders: Counter[int] = Counter()
        self.waiting: dict[int, Done] = {}  # by block: work that waits for the last holder
        self.parked: dict[Work, list[Bio]] = {}

    def hold(self, bio: Bio, block: int) -> None:
        """Make a bio hold a block."""
        bio.holds = block
        self.holders[block] += 1

    def release(self, bio: Bio) -> None:
        """Release a bio's block; resume work that waits for it."""
        if bio.holds < 0:
            return
        self.holders[bio.holds] -= 1
        if self.holders[bio.holds] == 0 and bio.holds in self.waiting:
            self.waiting.pop(bio.holds)()

    def when_free(self, block: int, then: Done) -> None:
        """Call `then` when no bio holds the block."""
        if self.holders[block]:
            self.waiting[block] = then
        else:
            then()

    def keeps_out(self, work: Work, bio: Bio) -> bool:
        """Park a bio that must wait for the end of work; return whether it must."""
        if work.lock == Lock.ALL or (work.lock == Lock.WRITES and bio.op == Op.WRITE):
            self.parked.setdefault(work, []).append(bio)
            return True
        return False
