"""The fast tier: keys that the tables of all kinds of cache share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from hybridsim.foundation.units import format_size, parse_percent, parse_size
from hybridsim.storage.drives import Drive, Part, Size

SECTOR_BYTES = 512


def share_or_size(text: Any) -> str:
    """Return a share or a size, normalised; raise ValueError if the text is neither."""
    if isinstance(text, str) and "%" in text:
        if not parse_percent(text) > 0:
            raise ValueError(f"{text!r}: a share must be above 0%")
        return text
    if isinstance(text, int) and not isinstance(text, bool):
        text = format_size(parse_size(text))
    parse_size(text)
    return str(text)


class FastTier(Part):
    """Identical striped drives, and the size of the cache on them."""

    kind: str
    size: Annotated[str, BeforeValidator(share_or_size)] = "10%"  # size or share of the footprint
    members: int = Field(1, ge=1, le=64)  # striped
    chunk_bytes: Size = Field(64 * 1024, alias="chunk", ge=SECTOR_BYTES)
    drive: Annotated[Drive, Field(discriminator="kind")]

    @property
    def endurance_bytes(self) -> int | None:
        """Rated endurance of all drives together, in bytes written; None if unknown."""
        rated: int | None = getattr(self.drive, "endurance_bytes", None)
        return None if rated is None else self.members * rated

    def pieces(self, piece_bytes: int, footprint_bytes: int) -> int:
        """Return how many pieces of `piece_bytes` the cache has, for a trace with this footprint.

        A share of the footprint may exceed the drive's capacity: it asks how much SSD is needed.
        """
        if "%" in self.size:
            return max(1, int(parse_percent(self.size) * footprint_bytes / piece_bytes))
        return parse_size(self.size) // piece_bytes

    def wrong_size(self, minimum_bytes: int, piece: str) -> Iterator[tuple[str, str]]:
        """Yield (key, message) for a cache smaller than one piece or larger than its drives."""
        if "%" in self.size:
            return
        if parse_size(self.size) < minimum_bytes:
            no_unit = self.size.isdigit() and self.size != "0"
            meant = f"did you mean {self.size}GiB?" if no_unit else 'for no cache use kind = "none"'
            yield "size", f"less than one {piece} ({format_size(minimum_bytes)}): {meant}"
        if parse_size(self.size) > self.members * self.drive.capacity_bytes:
            holds = format_size(self.members * self.drive.capacity_bytes)
            drives = "drive holds" if self.members == 1 else "drives hold"
            needed = -(-parse_size(self.size) // self.drive.capacity_bytes)
            mend = f"take a larger drive, or {needed} (members = {needed})"
            yield "size", f"{self.size} is more than the {drives} ({holds}): {mend}"

    def wrong_chunk(self) -> Iterator[tuple[str, str]]:
        """Yield (key, message) for a chunk that is not a multiple of a sector."""
        if self.chunk_bytes % SECTOR_BYTES:
            yield "chunk", f"a chunk must be a multiple of {SECTOR_BYTES} bytes"
