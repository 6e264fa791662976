"""The fast tier: keys that the tables of all kinds of cache share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, field_validator

from hybridsim.caches import CACHE_MODES
from hybridsim.foundation.toml.table import Part, Size, size_text, word_or
from hybridsim.foundation.units import format_size, parse_percent, parse_size
from hybridsim.storage.drives import Drive

SECTOR_BYTES = 512
AUTO = "auto"  # value of a key: the kind's own choice


def share_or_size(text: Any) -> str:
    """Return a share or a size, normalised; raise ValueError if the text is neither."""
    if isinstance(text, str) and "%" in text:
        if not parse_percent(text) > 0:
            raise ValueError(f"{text!r}: a share must be above 0%")
        return text
    return size_text(text)


AutoSize = Annotated[str, word_or(share_or_size, AUTO)]


def word(code: IntEnum) -> Any:
    """Return the word that a table has for a code: "re-read" for Fill.RE_READ."""
    return code.name.lower().replace("_", "-")


class FastTier(Part):
    """Identical striped drives, and the size of the cache on them."""

    # the mode's word common to all kinds of cache: the kind's own; a kind may accept others too
    modes: ClassVar[Mapping[str, str]] = {}

    kind: str
    size: Annotated[str, BeforeValidator(share_or_size)] = "10%"  # size or share of the footprint
    members: int = Field(1, ge=1, le=64)  # striped
    chunk_bytes: Size = Field(64 * 1024, ge=SECTOR_BYTES)
    drive: Annotated[Drive, Field(discriminator="kind")]

    @property
    def endurance_bytes(self) -> int | None:
        """Rated endurance of all drives together, in bytes written; None if unknown."""
        rated: int | None = getattr(self.drive, "endurance_bytes", None)
        return None if rated is None else self.members * rated

    @field_validator("mode", mode="before", check_fields=False)
    @classmethod
    def _own_mode(cls, text: Any) -> Any:
        if not isinstance(text, str):
            return text
        if text in CACHE_MODES and cls.modes and text not in cls.modes:
            words = [word for word in CACHE_MODES if word in cls.modes]
            raise ValueError(
                f"this kind of cache has no mode {text!r}: choose from {', '.join(words)}"
            )
        return cls.modes.get(text, text)

    @property
    def write_policy(self) -> str:
        """Write policy, in the terms common to all kinds of cache."""
        mode = getattr(self, "mode", "write-back")
        return next((word for word, own in self.modes.items() if own == mode), mode)

    def pages(self, footprint_bytes: int) -> int:
        """Return how many pages, blocks or lines the cache has, for a trace with this footprint.

        A share of the footprint may exceed the drive's capacity: it asks how much SSD is needed.
        """
        page_bytes: int = self.page_bytes  # type: ignore[attr-defined]  # each kind's own
        if "%" in self.size:
            return max(1, int(parse_percent(self.size) * footprint_bytes / page_bytes))
        return parse_size(self.size) // page_bytes

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
