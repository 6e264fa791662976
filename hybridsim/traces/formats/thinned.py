"""Thinned captures, as `trace thin` and `trace record --max` write them (docs/reference/).

Device "sample" has the requests to the sampled regions, with the rate and the exact totals of all
requests as `Reader.sample`; each stretch is a device of its own that has all requests of its time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

import numpy as np

from hybridsim.foundation.arrays import Ints, distinct
from hybridsim.foundation.errors import TraceError
from hybridsim.foundation.suggest import hint
from hybridsim.requests.pages import SPAN, hashed_regions
from hybridsim.requests.rows import Device, Findings, Requests, in_chunks, requests_with
from hybridsim.traces.formats.files import Source
from hybridsim.traces.formats.text import no_dispatch, only
from hybridsim.traces.thinned.layout import (
    SIGNATURE,
    STRETCH,
    Block,
    Counts,
    DamagedError,
    Kind,
    Skipped,
    blocks,
    rows_of_bytes,
)
from hybridsim.traces.thinned.thinner import (
    MINUTE_NS,
    SLICE_NS,
    Chosen,
    Settings,
    Stretch,
    settings_of,
    thinned_rows,
)

SAMPLE, WORST, TYPICAL = "sample", "worst", "typical"
PAGE_BYTES = 1 << 12
# Of the sample that is read: accesses to pages of PAGE_BYTES at most, which bound memory and time,
# but not fewer regions.  A part of the regions of stretches shows how many there are at least.
ACCESSES_MAX, REGIONS_ENOUGH, PART = 1 << 25, 1 << 12, 1 / 32
MOVES_MAX = 1 << 25  # requests of a sample that are kept in memory


def detect(head: bytes) -> bool:
    """Return whether the file begins with the signature, of any version."""
    return head.startswith(SIGNATURE[:-1])


@dataclass(frozen=True)
class Thinned:
    """What a thinned capture holds besides requests; None of it is an estimate."""

    settings: Settings
    threshold: int  # of the sample that is read, which may be a part of the one in the file
    total: Counts  # of all requests
    stretches: dict[str, Stretch]  # by name
    worst: str  # names; empty: no stretch
    typical: str
    interruptions: tuple[int, ...]  # times at which recording began again
    end_bytes: int  # of the last request of all stretches

    @property
    def rate(self) -> float:
        """Share of the regions that are sampled."""
        return self.threshold / SPAN

    @property
    def origin_unix_ns(self) -> int | None:
        """Unix time of time 0; None: unknown."""
        return self.settings.origin_unix_ns

    @property
    def choices(self) -> str:
        """The ways to choose a stretch, for messages."""
        if not self.stretches:
            return "the capture is too short to have one: capture for longer"
        worst = f"--device {WORST} (the worst minute, {self.worst})"
        return f"{worst} or --device {TYPICAL} (a typical one, {self.typical})"


def what_caches_see(rows: Requests) -> Requests:
    """Return a copy in which all else is unknown, in 25 bytes a request."""
    blank = (np.broadcast_to(of[:1], rows.rows) for of in requests_with(1)[4:])
    return Requests._make((*(column.copy() for column in rows[:4]), *blank))


class Reader:
    """A thinned capture; each pass reads the file again, but for `moves`."""

    def __init__(self, sources: list[Source], device: str | None, use_dispatch: bool) -> None:
        self._source = only(sources, "thinned")
        self._about = self._survey()
        stretches = self._about.stretches
        names = {WORST: self._about.worst, TYPICAL: self._about.typical}
        chosen = names.get(device or SAMPLE) or device or SAMPLE
        if chosen != SAMPLE and chosen not in stretches:
            known = [SAMPLE, *(each for each in names if stretches), *stretches]
            raise TraceError(
                f"{self._source.name}: contains no stretch {device!r}: {hint(str(device), known)}"
            )
        no_dispatch(self._source.name, use_dispatch)
        self._chosen = stretches.get(chosen)
        self.devices = [Device(name, 0, 0, chosen=name == chosen) for name in (SAMPLE, *stretches)]
        self.origin_unix_ns = self._about.origin_unix_ns
        self.capture = self._about  # also of a stretch
        self._moves: list[Requests] | None = None  # of all the sample

    @property
    def sample(self) -> Thinned | None:
        """What the sample stands for; None: the requests of a stretch, which is complete."""
        return self._about if self._chosen is None else None

    def requests(self, findings: Findings) -> Iterator[Requests]:
        """Read the file and yield its requests."""
        kind = Kind.SAMPLE if self._chosen is None else Kind.STRETCH
        rows = 0
        for one, part in self._blocks(findings, kind):
            if self._chosen is None:
                part = thinned_rows(part, self._about.threshold, self._about.settings)
            elif one.begin_ns != self._chosen.begin_ns:
                continue
            if part.rows:
                rows += part.rows
                yield part
                if self._chosen is not None:
                    break
        if not rows:
            raise TraceError(
                f"{self._source.name}: no request is sampled at a rate of {self._about.rate:.3%}: "
                "take a higher --rate or --max"
            )
        findings.count(
            self._about.total.of("lost")[0],
            "dropped",
            "events were dropped while recording; their requests are missing",
            "record again with a larger --buffer",
        )

    def moves(self, findings: Findings, rows: int) -> Iterator[Requests]:
        """Yield `requests`, `rows` at a time; only `what_caches_see` is right.

        At most MOVES_MAX are kept in memory; then the file is read once.
        """
        if self._moves is not None:
            yield from self._moves
            return
        kept: list[Requests] = []
        for part in in_chunks(self.requests(findings), rows):
            if len(kept) * rows < MOVES_MAX:
                kept.append(what_caches_see(part))
            yield part
        if len(kept) * rows < MOVES_MAX:
            self._moves = kept

    def counts(self) -> Iterator[Counts]:
        """Yield the counts of each minute that has requests, in order."""
        blocks = self._blocks(Findings(), Kind.COUNTS)
        for number, parts in groupby(blocks, key=lambda each: each[0].begin_ns // MINUTE_NS):
            minute = Counts.none(number * MINUTE_NS, MINUTE_NS)
            for _, counts in parts:
                minute.add(counts)
            yield minute

    def in_full(self, begins: Collection[int] | None = None) -> Iterator[tuple[Stretch, Requests]]:
        """Yield stretches, each with all its requests, in order of the file.

        `begins`: times at which they begin; default: all that were chosen.
        """
        chosen = {one.begin_ns for one in self._about.stretches.values()}
        if begins is not None:
            chosen &= set(begins)
        for one, rows in self._blocks(Findings(), Kind.STRETCH, begins=chosen):
            if one.begin_ns in chosen:
                chosen.remove(one.begin_ns)
                yield Stretch.of(one), rows

    def _blocks(
        self, findings: Findings, *kinds: Kind, begins: Collection[int] | None = None
    ) -> Iterator[tuple[Block, Any]]:
        """Yield blocks whose payload is right, with its content; others are findings.

        `begins`: only those that begin at one of these times.
        """
        with self._source.open(findings) as stream:
            signature = stream.read(len(SIGNATURE))
            if signature[:-1] != SIGNATURE[:-1]:
                raise TraceError(f"{self._source.name}: no thinned capture: try another --format")
            if signature != SIGNATURE:
                raise TraceError(
                    f"{self._source.name}: has version {signature[-1]} of the format; this "
                    f"hybridsim reads version {SIGNATURE[-1]}: use the one that wrote it"
                )
            for one in blocks(stream.read, kinds):
                if isinstance(one, Skipped):
                    self._note(one, findings)
                    continue
                if begins is not None and one.begin_ns not in begins:
                    continue
                try:
                    found = content(one)
                except DamagedError as error:
                    findings.add(
                        "damaged", "blocks have impossible values and were skipped",
                        place=f"{self._source.name} block {one.number}: {error}",
                        fix="copy the file again",
                    )  # fmt: skip
                else:
                    yield one, found

    def _note(self, one: Skipped, findings: Findings) -> None:
        place = f"{self._source.name} byte {one.begin:,}: {one.bytes:,} bytes"
        if one.is_tail:
            findings.add(
                "truncated",
                f"the last block is incomplete and was skipped; at most {SLICE_NS // 10**9} s of "
                "counters and sample are missing, or one stretch",
                place=place,
                fix="none needed: recording ended without notice",
            )
        else:
            findings.add(
                "damaged",
                "damaged blocks were skipped; what they held is missing",
                place=place,
                fix="copy the file again",
            )

    def _survey(self) -> Thinned:
        """Read the file once: its settings, stretches and totals."""
        settings: Settings | None = None
        threshold, chosen, interruptions = SPAN, Chosen(), []
        total: Counts | None = None
        regions: list[Ints] = []  # of stretches
        end_bytes = 0
        for one, found in self._blocks(Findings(), Kind.START, Kind.COUNTS, Kind.STRETCH):
            if one.kind == Kind.START:
                again, lowest = found
                if settings is not None and b'"interruption":true' in one.payload:
                    interruptions.append(one.begin_ns)
                settings, threshold = settings or again, min(threshold, lowest)
            elif one.kind == Kind.STRETCH:
                chosen.take(Stretch.of(one))
                ends = found.offset_bytes + found.length_bytes
                end_bytes = max(end_bytes, int(ends.max(initial=0)))
                if settings is not None:
                    each = found.offset_bytes // settings.region_bytes
                    regions.append(distinct(each[hashed_regions(each, 0) < PART * SPAN]))
            else:
                if total is None:
                    total = Counts.none(found.begin_ns, found.span_ns)
                total.add(found)
                total.span_ns = max(total.span_ns, found.begin_ns + found.span_ns - total.begin_ns)
        if settings is None:
            raise TraceError(
                f"{self._source.name}: no block of settings is whole, so nothing can be read: copy "
                "the file again"
            )
        if total is None or not total.requests:
            raise TraceError(
                f"{self._source.name}: contains no request: capture for longer, or under load"
            )
        accesses = total.page_accesses(PAGE_BYTES) or 0
        if accesses > ACCESSES_MAX:  # as if it had been thinned to this rate
            known = len(distinct(np.concatenate(regions))) / PART if regions else 0
            share = max(ACCESSES_MAX / accesses, REGIONS_ENOUGH / max(known, 1))
            threshold = min(threshold, max(round(share * SPAN), 1))
        names = {self._name(one, settings): one for one in chosen.all().values()}
        worst, typical = (
            min(
                ((one.place(role), name) for name, one in names.items() if one in of.values()),
                default=(0, next(iter(names), "")),
            )[1]
            for role, of in chosen.by_role.items()
        )
        gaps = tuple(interruptions)
        return Thinned(settings, threshold, total, names, worst, typical, gaps, end_bytes)

    @staticmethod
    def _name(one: Stretch, settings: Settings) -> str:
        """Return the time of a stretch at the device: 2026-11-22T02:13, or 3h12m."""
        if settings.origin_unix_ns is not None:
            at_s = (settings.origin_unix_ns + one.begin_ns) // 10**9 + settings.utc_offset_s
            if 0 <= at_s < 1 << 37:
                return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%dT%H:%M}"
        minutes = one.begin_ns // MINUTE_NS
        return f"{minutes // 60}h{minutes % 60:02}m"


def content(one: Block) -> Any:
    """Return what a block holds; raise DamagedError if that is not what its kind promises."""
    if one.kind == Kind.START:
        return settings_of(one)
    if one.kind == Kind.COUNTS:
        return Counts.of_bytes(one.payload, one.begin_ns, one.span_ns)
    if one.kind == Kind.SAMPLE:
        return rows_of_bytes(one.payload, one.begin_ns)
    Stretch.of(one)
    return rows_of_bytes(one.payload[STRETCH.size :], one.begin_ns)
