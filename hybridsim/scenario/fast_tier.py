"""What tables of all kinds of cache have in common: the fast tier that it lies on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from hybridsim.foundation.units import format_size, parse_percent, parse_size
from hybridsim.storage.drives import Drive, Part, Size

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


class FastTier(Part):
    """Equal drives, striped, and how much of them the cache has."""

    kind: str
    size: Annotated[str, BeforeValidator(share_or_size)] = "10%"  # bytes or share of footprint
    members: int = Field(1, ge=1, le=64)  # equal drives, striped
    chunk_bytes: Size = Field(64 * 1024, alias="chunk", ge=SECTOR_BYTES)
    drive: Annotated[Drive, Field(discriminator="kind")]

    @property
    def endurance_bytes(self) -> int | None:
        """What may be written to all drives together in their life, where that is known."""
        rated: int | None = getattr(self.drive, "endurance_bytes", None)
        return None if rated is None else self.members * rated

    def pieces(self, piece_bytes: int, footprint_bytes: int) -> int:
        """Return how many pieces of a size fit, for a trace that touches so many bytes.

        A share is not held against the drive's capacity: it asks how much SSD, not which.
        """
        if "%" in self.size:
            return max(1, int(parse_percent(self.size) * footprint_bytes / piece_bytes))
        return parse_size(self.size) // piece_bytes

    def wrong_size(self, least_bytes: int, least: str) -> Iterator[tuple[str, str]]:
        """Refuse caches that hold nothing or more than their drives."""
        if "%" in self.size:
            return
        if parse_size(self.size) < least_bytes:
            no_unit = self.size.isdigit() and self.size != "0"
            meant = f"write {self.size}GiB" if no_unit else 'kind = "none"'
            yield "size", f"less than one {least} ({format_size(least_bytes)}): {meant}?"
        if parse_size(self.size) > self.members * self.drive.capacity_bytes:
            holds = format_size(self.members * self.drive.capacity_bytes)
            who = "drive holds" if self.members == 1 else "drives hold"
            yield "size", f"{self.size} is more than the {who} ({holds})"

    def wrong_chunk(self) -> Iterator[tuple[str, str]]:
        """Refuse chunks that end within a sector."""
        if self.chunk_bytes % SECTOR_BYTES:
            yield "chunk", f"a chunk is whole sectors of {SECTOR_BYTES} bytes"
