"""The table `cache`: the fast tier and what decides about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from hybridsim.drives import Drive, Part, Rate, Size, Time
from hybridsim.policies import ADMISSION, REPLACEMENT
from hybridsim.suggest import hint
from hybridsim.units import format_size, parse_percent, parse_size

SECTOR_BYTES = 512
GRANULES_MAX = 64  # of a page
MERGE_PAGES_MAX = 256


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


def _chance(text: Any) -> str:
    if not 0 < parse_percent(str(text)) <= 1:
        raise ValueError(f"{text!r} is no probability: above 0% and at most 100%")
    return str(text)


def _name_of(family: Mapping[str, Any]) -> BeforeValidator:
    """Take a name of a family of policies."""

    def check(name: Any) -> Any:
        if name not in family:
            raise ValueError(f"no policy {str(name)[:40]!r}: {hint(str(name), family)}")
        return name

    return BeforeValidator(check)


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


def _share(text: Any) -> str:
    if not isinstance(text, str) or not 0 <= parse_percent(text) <= 1:
        raise ValueError(f"{text!r} is no share: from '0%' to '100%'")
    return text


Share = Annotated[str, BeforeValidator(_share)]


class Cache(Part):
    """The fast tier and what decides about it.

    Of write-back: cleaning above 10% is bcache's writeback_percent, 50% and 45% are dm-writecache's
    high and low watermark, 1 s is what dm-cache takes for idle; how many cleans at once, and of how
    many bytes, are assumptions.
    """

    kind: Literal["none", "page"] = "page"
    page_bytes: Size = Field(64 * 1024, alias="page", ge=SECTOR_BYTES, le=2**30)
    size: Annotated[str, BeforeValidator(share_or_size)] = "10%"  # bytes or share of footprint
    members: int = Field(1, ge=1, le=64)  # equal drives, striped
    chunk_bytes: Size = Field(64 * 1024, alias="chunk", ge=SECTOR_BYTES)
    mode: Literal["read-only", "write-around", "write-through", "write-back"] = "write-through"
    admission: Annotated[str, _name_of(ADMISSION)] = "learned"
    touches: int = Field(2, ge=1, le=255)  # with admission "touches": cached from this access on
    probability: Annotated[str, BeforeValidator(_chance)] = "10%"  # with "probabilistic"
    request_max_bytes: Size = Field(64 * 1024, alias="request_max")  # with "request-size"
    replacement: Annotated[str, _name_of(REPLACEMENT)] = "lru"
    sequential_cutoff_bytes: Size = Field(2**20, alias="sequential_cutoff")  # 0: never bypass
    max_fills: int = Field(8, ge=1, le=65_536)
    fill: Literal["re-read", "piggyback"] = "re-read"  # piggyback: the read that missed is longer
    fill_when: Literal["background", "foreground"] = "background"  # foreground: requests wait
    fill_piece_bytes: Size = Field(0, alias="fill_piece")  # read of the disks at once; 0: all
    fill_rate: Rate | None = None  # bytes a second that fills may take
    sub_page: bool = False  # fill what was read of a page, not all of it
    discards: bool = False  # tell the SSD of pages that are dropped
    dirty_high: Share = "50%"  # in write-back: of the cache; above it writes go to the disks
    dirty_low: Share = "45%"  # until no more than this is dirty
    clean_above: Share = "10%"  # cleaning goes on beside the load
    clean_idle_ns: Time = Field(1_000_000_000, alias="clean_idle")  # with no request: cleans all
    clean_order: Literal["oldest", "elevator"] = "elevator"
    clean_merge_bytes: Size = Field(512 * 1024, alias="clean_merge")  # most of one write
    max_cleans: int = Field(8, ge=1, le=64)
    clean_rate: Rate | None = None  # bytes a second that are cleaned
    drive: Annotated[Drive, Field(discriminator="kind")]

    @property
    def words(self) -> str:
        """How a report calls the cache."""
        return f"{self.mode}, {self.admission}"

    @property
    def write_policy(self) -> str:
        """What a write does, in the words that all kinds of cache share."""
        return self.mode

    @property
    def endurance_bytes(self) -> int | None:
        """What may be written to all drives together in their life, where that is known."""
        return endurance_bytes(self.drive, self.members)

    @property
    def granule_bytes(self) -> int:
        """How much of a page can be there without the rest."""
        if not self.sub_page and self.mode != "write-back":
            return self.page_bytes
        return -(-self.page_bytes // GRANULES_MAX // SECTOR_BYTES) * SECTOR_BYTES

    @property
    def merge_pages(self) -> int:
        """How many pages at most are cleaned by one write."""
        return min(max(1, self.clean_merge_bytes // self.page_bytes), MERGE_PAGES_MAX)

    @property
    def policy_parameters(self) -> dict[str, int]:
        """Return what policies may want to know, by the names that they have for it."""
        return {
            "touches": self.touches,
            "probability_per_million": int(parse_percent(self.probability) * 1_000_000),
            "request_max_bytes": self.request_max_bytes,
        }

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
        if self.fill_piece_bytes % SECTOR_BYTES:
            yield "fill_piece", f"a piece is whole sectors of {SECTOR_BYTES} bytes"
        if self.chunk_bytes % SECTOR_BYTES:
            yield "chunk", f"a chunk is whole sectors of {SECTOR_BYTES} bytes"
        if parse_percent(self.dirty_low) >= parse_percent(self.dirty_high):
            yield "dirty_low", f"dirty_low must be below dirty_high ({self.dirty_high})"
        elif parse_percent(self.clean_above) > parse_percent(self.dirty_low):
            text = f"under load nothing would be cleaned down to dirty_low ({self.dirty_low})"
            yield "clean_above", text
        yield from wrong_size(self.size, self.page_bytes, "page", self.drive, self.members)
