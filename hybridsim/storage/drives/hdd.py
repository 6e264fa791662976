"""The data of a hard disk, from its datasheet or from measurements."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import ClassVar, Literal

from pydantic import Field

from hybridsim.foundation.toml.table import Rate, Size, Time
from hybridsim.foundation.units import format_time
from hybridsim.storage.drives.datasheet import Datasheet

ARM = "seek_track_to_track, seek_average and seek_full, or seek_table, or seek_fit"


class HardDisk(Datasheet):
    """A disk with one arm: geometry, arm, electronics, buffer.

    The arm is described by a datasheet's three times, by a table of times, or by two fitted pieces;
    the platters by the rates of the outer and the inner tracks, or by zones.
    """

    device: ClassVar[str] = "hybridsim.storage.devices.hdd_geometry:bank"
    rotates: ClassVar[bool] = True

    kind: Literal["hdd"]
    rpm: int = Field(ge=1000, le=30_000)
    capacity_bytes: Size = Field(ge=2**20)
    seek_track_ns: Time | None = Field(None, alias="seek_track_to_track")  # to the next track
    seek_average_ns: Time | None = None  # random pairs, read
    seek_full_ns: Time | None = None  # from the first track to the last, read
    seek_table: list[list[float]] | None = None  # [cylinders, ms], interpolated
    write_seek_table: list[list[float]] | None = None  # settling included
    seek_fit: list[float] | None = None  # ms: a + b sqrt(d) up to a split, c + e d: [a b split c e]
    write_settle_ns: Time = 0  # extra for a write that moves the arm
    cylinders: int | None = Field(None, ge=2, le=10**7)  # unit of distances and zones
    zones: list[list[float]] | None = None  # [first cylinder, sectors per track, skew, cylinder's]
    rate_outer: Rate | None = None  # sustained, sequential, bytes per second
    rate_inner: Rate | None = None
    surfaces: int = Field(4, ge=1, le=64)
    head_switch_ns: Time = 500_000
    reacquire_ns: Time = 0  # to another place of the same cylinder
    skew_ns: Time | None = None  # default: what head and arm need
    overhead_ns: Time = 200_000  # of each command, in the electronics
    hit_overhead_ns: Time | None = None  # of commands without platters
    write_overhead_ns: Time | None = None
    # of writes that the write cache takes; default: as write_overhead
    write_hit_overhead_ns: Time | None = None
    # the same four after a command of the other kind; default: as they are above
    overhead_after_write_ns: Time | None = None
    hit_overhead_after_write_ns: Time | None = None
    write_overhead_after_read_ns: Time | None = None
    write_hit_overhead_after_read_ns: Time | None = None
    interface: Rate | None = None  # bytes per second between host and disk; default: no limit
    # percent of a read that is buffered before its transfer to the host begins, and of a write that
    # has arrived before the platters are written
    read_watermark: int = Field(0, ge=0, le=100)
    write_watermark: int = Field(100, ge=0, le=100)
    window: int = Field(32, ge=1, le=1024)  # number of commands that it chooses from
    order: Literal["sptf", "sstf", "clook"] = "sptf"  # by position, by distance, in a sweep
    # by position: share of a command's waiting that its positioning time is taken to be shorter
    aging: float = Field(0.006, ge=0, le=1)
    age_limit_ns: Time = 5 * 10**9  # in the disk, then it is next
    read_ahead_bytes: Size = 2**20  # per segment
    segments: int = Field(8, ge=1, le=1024)  # number of streams with read-ahead
    read_behind_bytes: Size | None = None  # default: as read_ahead
    read_tracks: bool = False  # a read leaves its whole track in the buffer, and nothing beyond
    # where the read-ahead stops: with the buffer, at the end of the track, or, in a stream that
    # began on an earlier track, at the end of the next one
    read_ahead_to: Literal["buffer", "track", "next track"] = "buffer"
    segment_bytes: Size | None = Field(None, ge=512)  # ring; default: no limit
    # 0: writes go to the platters; the catalog has an eighth of most datasheets' buffers
    write_cache_bytes: Size = 0
    write_cache_ranges: int = Field(256, ge=1, le=65_536)  # maximum number of separate ranges
    destage_window: int = Field(32, ge=1, le=65_536)  # number of oldest ones that it chooses from
    # a crowded write cache: each waiting request has its share of the arm, or the sides take turns
    destage_rule: Literal["shares", "turns"] = "shares"
    flush_ns: Time = 0  # time of a flush after the writes that it waits for
    # the write cache survives a loss of power: no flush waits for it, no command goes around it,
    # and a host that turns off the write cache does not turn off this one
    power_loss_protection: bool = False
    # drive-managed shingled recording: a log on the platters takes writes, except long runs in
    # sequence; while the disk is idle, and when the log is full, whole bands are written anew
    media_cache_bytes: Size = 0  # 0: none, the disk is not shingled
    media_cache_at: Literal["outer", "middle", "inner"] = "middle"  # cylinders
    # of each piece of a band in a write to the log
    media_cache_padding_bytes: Size = 0
    # written to it at once, more in pieces; default: no limit
    media_cache_write_bytes: Size | None = Field(None, ge=2**16)
    media_cache_entries: int = Field(250_000, ge=2, le=2**24)  # number of pieces of bands
    media_cache_idle_ns: Time = 10**9  # then it is cleaned
    media_cache_run_bytes: Size = 2**30  # a longer run passes by
    # entries whose map is in memory: with more, a write to it is followed by one of its map
    media_cache_map: int | None = Field(None, ge=1, le=2**24)
    media_cache_map_write_ns: Time = 0
    media_cache_piece_ns: Time = 0  # of each entry when a band is cleaned, beside its access
    band_bytes: Size = Field(30 * 2**20, ge=2**16)  # shingled; written as a whole

    @property
    def rev_ns(self) -> int:
        """Time of one revolution."""
        return round(60 * 10**9 / self.rpm)

    @property
    def seek_points_ns(self) -> tuple[int, int, int]:
        """Time to the next track, on average, and over the full stroke."""
        if self.seek_table is not None:
            near, far = self.seek_table[0][1], self.seek_table[-1][1]
        elif self.seek_fit is not None:
            a, b, _, c, e = self.seek_fit
            near, far = a + b, c + e * (self.cylinders or 1)
        else:
            return self.seek_track_ns or 0, self.seek_average_ns or 0, self.seek_full_ns or 0
        return round(near * 1e6), round((near + far) / 2 * 1e6), round(far * 1e6)

    @property
    def rates(self) -> tuple[int, int]:
        """Sustained rates of the outer and of the inner tracks, if no zones are specified."""
        return self.rate_outer or 0, self.rate_inner or 0

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield (key, problem) for rates, seek times and tables that no disk has."""
        points = [self.seek_track_ns, self.seek_average_ns, self.seek_full_ns]
        forms = [self.seek_table is not None, self.seek_fit is not None, None not in points]
        if sum(forms) != 1 or (not forms[2] and points != [None] * 3):
            yield "seek_average", f"specify the arm in exactly one way: {ARM}"
        elif forms[2]:
            yield from self._wrong_points()
        else:
            yield from self._wrong_tables()
        if self.zones is not None:
            yield from self._wrong_zones(self.zones)
        elif self.rate_outer is None or self.rate_inner is None:
            yield "rate_outer", "specify rate_outer and rate_inner, or zones"
        elif self.rate_inner > self.rate_outer:
            yield "rate_inner", "rate_inner cannot exceed rate_outer: inner tracks are shorter"
        late_ns = max(self.head_switch_ns, self.skew_ns or 0)
        if late_ns >= self.rev_ns:
            late = "head_switch" if self.head_switch_ns == late_ns else "skew"
            yield late, f"{late} must be shorter than a revolution ({format_time(self.rev_ns)})"
        if self.write_cache_bytes and self.write_cache_bytes < 4096:
            yield "write_cache", "the minimum of a write cache is 4KiB; 0 disables it"

    def _wrong_points(self) -> Iterator[tuple[str, str]]:
        track_ns, average_ns, full_ns = self.seek_points_ns
        if track_ns >= self.rev_ns:
            yield (
                "seek_track_to_track",
                f"seek_track_to_track must be shorter than a revolution "
                f"({format_time(self.rev_ns)})",
            )
        # a + b sqrt(x) + c x through the three points grows over the whole stroke within these
        reach = full_ns - track_ns
        low, high = track_ns + reach // 3, track_ns + reach * 11 // 15
        if not (reach > 0 and low <= average_ns <= high):
            yield (
                "seek_average",
                "no arm has these seek times: with this track-to-track and full stroke the average "
                f"must be between {low / 1e6:.3g}ms and {high / 1e6:.3g}ms",
            )

    def _wrong_tables(self) -> Iterator[tuple[str, str]]:
        if self.cylinders is None:
            yield "cylinders", "a seek_table or seek_fit needs cylinders, the unit of its distances"
        for key in ("seek_table", "write_seek_table"):
            table = getattr(self, key)
            if table is not None and not (_rises(table, 2) and table[0][0] >= 1):
                yield (
                    key,
                    f"{key} must be a list of [cylinders, ms], distances rising from 1 or more",
                )
        fit = self.seek_fit
        if fit is not None and (len(fit) != 5 or min(fit[0], fit[3], sum(fit[:2])) < 0):
            yield (
                "seek_fit",
                "seek_fit must be [a, b, split, c, e]: a + b sqrt(d) to split, c + e d",
            )

    def _wrong_zones(self, zones: list[list[float]]) -> Iterator[tuple[str, str]]:
        starts = _rises(zones, 4) and zones[0][0] == 0
        if not starts or min(zone[1] for zone in zones) < 1:
            yield (
                "zones",
                "zones must be a list of [first cylinder, sectors of a track, skew, cylinder skew] "
                "with skews in sectors and the first cylinders rising from 0",
            )
        elif self.cylinders is None or self.cylinders <= zones[-1][0]:
            yield "cylinders", "zones need cylinders, more than the last zone's first cylinder"


def _rises(table: list[list[float]], columns: int) -> bool:
    """Return whether rows of `columns` numbers, none negative, have a rising first column."""
    rows = len(table) > 0 and all(len(row) == columns and min(row) >= 0 for row in table)
    return rows and all(a[0] < b[0] for a, b in pairwise(table))
