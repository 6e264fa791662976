"""The table `cache`: the fast tier and what decides about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from hybridsim.drives import Drive, Part, Size
from hybridsim.units import format_size, parse_percent, parse_size

SECTOR_BYTES = 512


def share_or_size(text: Any) -> str:
    """Return a share or a size as it is said; raise ValueError for what is neither."""
    if isinstance(text, str) and "%" in text:
        if not parse_percent(text) > 0:
            raise ValueError(f"{text!r} is nothing: a share is above 0%")
        return text
    if isinstance(text, int) and not isinstance(text, bool):
        text = format_size(parse_size(text))
    parse_size(text)
    return str(text)


def endurance_bytes(drive: Drive, members: int) -> int | None:
    """Return what may be written to drives together in their life, where that is known."""
    rated: int | None = getattr(drive, "endurance_bytes", None)
    return None if rated is None else members * rated


def wrong_size(
    size: str, least_bytes: int, least: str, drive: Drive, members: int
) -> Iterator[tuple[str, str]]:
    """Refuse caches that hold nothing or more than their drives."""
    if "%" in size:
        return
    if parse_size(size) < least_bytes:
        yield "size", f'less than one {least} ({format_size(least_bytes)}): kind = "none"?'
    if parse_size(size) > members * drive.capacity_bytes:
        holds = format_size(members * drive.capacity_bytes)
        who = "drive holds" if members == 1 else "drives hold"
        yield "size", f"{size} is more than the {who} ({holds})"


class Cache(Part):
    """The fast tier and what decides about it."""

    kind: Literal["none", "page"] = "page"
    page_bytes: Size = Field(64 * 1024, alias="page", ge=SECTOR_BYTES, le=2**30)
    size: Annotated[str, BeforeValidator(share_or_size)] = "10%"  # bytes or share of footprint
    members: int = Field(1, ge=1, le=64)  # equal drives, striped
    chunk_bytes: Size = Field(64 * 1024, alias="chunk", ge=SECTOR_BYTES)
    mode: Literal["read-only", "write-through"] = "write-through"
    admission: Literal["learned", "always", "touches"] = "learned"
    touches: int = Field(2, ge=1, le=255)  # with admission "touches": cached from this access on
    replacement: Literal["lru"] = "lru"
    sequential_cutoff_bytes: Size = Field(2**20, alias="sequential_cutoff")  # 0: never bypass
    max_fills: int = Field(8, ge=1, le=65_536)
    drive: Annotated[Drive, Field(discriminator="kind")]

    @property
    def words(self) -> str:
        """How a report calls the cache."""
        return f"{self.mode}, {self.admission}"

    @property
    def endurance_bytes(self) -> int | None:
        """What may be written to all drives together in their life, where that is known."""
        return endurance_bytes(self.drive, self.members)

    def pages(self, footprint_bytes: int) -> int:
        """Return how many pages the cache has, for a trace that touches so many bytes.

        A share is not held against the drive's capacity: it asks how much SSD, not which.
        """
        if self.kind == "none":
            return 0
        if "%" in self.size:
            return max(1, int(parse_percent(self.size) * footprint_bytes / self.page_bytes))
        return parse_size(self.size) // self.page_bytes

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Refuse caches that hold no page or more than their drive."""
        if self.page_bytes % SECTOR_BYTES:
            yield "page", f"a page is whole sectors of {SECTOR_BYTES} bytes"
        if self.chunk_bytes % SECTOR_BYTES:
            yield "chunk", f"a chunk is whole sectors of {SECTOR_BYTES} bytes"
        yield from wrong_size(self.size, self.page_bytes, "page", self.drive, self.members)
