"""The kinds of arrays, their capacity and the losses they survive."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from pydantic import Field

from hybridsim.foundation.codes import Level
from hybridsim.storage.drives import Part, Rate


class Kind(NamedTuple):
    """Properties of all arrays of one kind."""

    level: Level
    min_members: int
    usual_members: int
    copies: int = 1  # of each chunk; ALL: on every member
    parities: int = 0  # per row

    @property
    def is_redundant(self) -> bool:
        """Whether the array survives the loss of a member."""
        return self.copies != 1 or self.parities > 0


ALL = 0

KINDS = {
    "single": Kind(Level.STRIPE, 1, 1),
    "linear": Kind(Level.LINEAR, 1, 4),
    "stripe": Kind(Level.STRIPE, 1, 4),
    "raid1": Kind(Level.RAID1, 2, 2, copies=ALL),
    "raid5": Kind(Level.RAID5, 3, 4, parities=1),
    "raid6": Kind(Level.RAID6, 4, 4, parities=2),
    "raid10": Kind(Level.RAID10, 2, 4, copies=2),
}
RATE_MIN, RATE_MAX = 10**6, 2 * 10**8  # bytes per second, of a rebuild: md's defaults


class Rebuild(Part):
    """Rebuild of a replaced member, at md's speed limits."""

    member: int = Field(ge=0)
    min_bytes_per_s: Rate = Field(RATE_MIN, alias="min")  # guaranteed under load
    max_bytes_per_s: Rate = Field(RATE_MAX, alias="max")  # while the array is idle

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Refuse a minimum rate above the maximum."""
        if self.min_bytes_per_s > self.max_bytes_per_s:
            yield "min", "min cannot exceed max"


def chunks_held(kind: str, members: int, layout: str, rows: int) -> int:
    """Return the capacity in chunks of data of an array whose members have `rows` chunks each."""
    about = KINDS[kind]
    copies = about.copies or members
    if layout == "near":
        return rows * (members - about.parities) // copies
    return rows // copies * members


def row_chunks(kind: str, members: int) -> int:
    """Return the number of data chunks in a row (the best unit of writing)."""
    if kind == "linear":
        return 1
    about = KINDS[kind]
    return max(1, (members - about.parities) // (about.copies or members))


def rows_needed(kind: str, members: int, layout: str, chunks: int) -> int:
    """Return the chunks that each member needs for an array of `chunks` data chunks."""
    about = KINDS[kind]
    copies = about.copies or members
    if layout == "near":
        return -(-chunks * copies // (members - about.parities))
    return -(-chunks // members) * copies


def loses_data(kind: str, members: int, layout: str, lost: Collection[int]) -> bool:
    """Return whether the array loses data when the members `lost` fail."""
    about = KINDS[kind]
    if about.copies == ALL:
        return len(lost) == members
    if about.copies == 1:
        return len(lost) > about.parities
    # two copies on neighbours: in fixed pairs, or each with the next, cyclically
    paired = layout == "near" and members % 2 == 0
    firsts = range(0, members, 2 if paired else 1)
    return any(first in lost and (first + 1) % members in lost for first in firsts)


def wrong_losses(
    kind: str, members: int, layout: str, failed: tuple[int, ...], rebuild: Rebuild | None
) -> str:
    """Return what is wrong with the lost members (unknown members, data loss), or ""."""
    lost = [*failed, *([rebuild.member] if rebuild else [])]
    strange = [member for member in lost if not 0 <= member < members]
    if strange:
        return f"there is no member {strange[0]}: members are 0 to {members - 1}"
    if len(set(lost)) < len(lost):
        return "a member may be listed once, and not both as failed and as rebuilt"
    if lost and not KINDS[kind].is_redundant:
        return f"{kind} has no redundancy: it loses data with any failed member"
    if loses_data(kind, members, layout, lost):
        return f"{kind} of {members} members loses data when these members fail"
    return ""
