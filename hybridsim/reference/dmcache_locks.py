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
    holds: int = -1  # the block that it holds
    overwrites: Work | None = None
    fua: bool = False
    send: Done | None = None  # what it does after the commit that it waits for

    @property
    def flagged_op(self) -> int:
        """What a tier is told to do."""
        return self.op | (FUA if self.fua else 0)


class Locks:
    """Who holds which block, and who waits to hold one, or for one not to be held."""

    def __init__(self) -> None:
        self.holders: Counter[int] = Counter()
        self.waiting: dict[int, Done] = {}  # by block: work that waits for the last holder
        self.parked: dict[Work, list[Bio]] = {}

    def hold(self, bio: Bio, block: int) -> None:
        """Let a bio hold a block."""
        bio.holds = block
        self.holders[block] += 1

    def let_go(self, bio: Bio) -> None:
        """End that; work that waited for it goes on."""
        if bio.holds < 0:
            return
        self.holders[bio.holds] -= 1
        if self.holders[bio.holds] == 0 and bio.holds in self.waiting:
            self.waiting.pop(bio.holds)()

    def when_free(self, block: int, then: Done) -> None:
        """Call `then` when nobody holds a block."""
        if self.holders[block]:
            self.waiting[block] = then
        else:
            then()

    def keeps_out(self, work: Work, bio: Bio) -> bool:
        """Whether a bio must wait for the end of work; if so it is parked."""
        if work.lock == Lock.EVERYBODY or (work.lock == Lock.WRITES and bio.op == Op.WRITE):
            self.parked.setdefault(work, []).append(bio)
            return True
        return False
