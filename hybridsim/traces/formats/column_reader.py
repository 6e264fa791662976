"""Read text formats with one request per line, by a table of their columns."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import weakref
from collections.abc import Collection, Iterator

import numpy as np
from numpy.typing import NDArray

from hybridsim.foundation.errors import TraceError
from hybridsim.requests.rows import (
    DTYPES,
    UNKNOWN,
    Device,
    Findings,
    Requests,
    joined,
    merged,
)
from hybridsim.traces.formats.columns import BLANKS, BOM, COMMENT, Table, To
from hybridsim.traces.formats.files import ByteStream, Source
from hybridsim.traces.formats.line_parser import (
    BEYOND,
    DEVICES_MAX,
    NUMBER_MAX,
    Of,
    Seen,
    Tally,
    nothing_seen,
    parse,
    plan_of,
)
from hybridsim.traces.formats.ordering import (
    WINDOW,
    from_first,
    in_order,
    origin_of,
    spread_if_whole,
)
from hybridsim.traces.formats.text import Malformed, no_dispatch, report_limits

CACHE_BYTES_MAX = 1 << 30  # some 40 million requests
OPTIONAL = ("flags", "stream", "dispatch_ns", "complete_ns")


class Kept:
    """The parts of a trace in an unnamed temporary file; dropped if they exceed `max_bytes`.

    Columns in `absent` (keys of OPTIONAL) are not written.
    """

    def __init__(self, absent: Collection[str], max_bytes: int) -> None:
        self._stored = [i for i, name in enumerate(Requests._fields) if name not in absent]
        self._max_bytes = max_bytes
        self._places: list[tuple[int, int]] = []  # of each part: offset, rows
        self._end = 0
        self.is_whole = False  # whether all parts are stored
        with contextlib.suppress(OSError):
            file = tempfile.TemporaryFile(prefix="hybridsim-")  # noqa: SIM115
            self._descriptor = file.fileno()
            self._close = weakref.finalize(self, file.close)
            self.is_whole = True

    def add(self, part: Requests) -> None:
        """Write a part, unless the cache was dropped."""
        if not self.is_whole:
            return
        columns, size = self._stored_columns(part)
        written = -1
        if self._end + size <= self._max_bytes:
            with contextlib.suppress(OSError):  # the disk is full
                written = os.pwritev(self._descriptor, columns, self._end)
        if written != size:
            self.drop()
            return
        self._places.append((self._end, part.rows))
        self._end += size

    def _stored_columns(self, part: Requests) -> tuple[list[memoryview], int]:
        columns = [part[index].data for index in self._stored]
        return columns, sum(column.nbytes for column in columns)

    def drop(self) -> None:
        """Drop all parts and the file."""
        if self.is_whole:
            self.is_whole = False
            self._places.clear()
            self._close()

    def parts(self, wanted: int) -> Iterator[Requests]:
        """Yield the parts, with the requests of the wanted device (an index; -1: all devices)."""
        for begin, rows in self._places:
            part = room_for(rows)
            part.stream[:] = part.complete_ns[:] = UNKNOWN
            columns, size = self._stored_columns(part)
            got = os.preadv(self._descriptor, columns, begin)
            assert got == size, "the unnamed file was changed"
            yield part if wanted < 0 else part.where(part.device == wanted)


ALL = "all"
ALIGN_BYTES = 1 << 20
NAMED_MAX = 8


class Volumes:
    """The volumes of a trace and the selection: a name, ALL, or the one with most bytes.

    ALL concatenates them in the order of their first appearance; the size of each is the end of
    its requests, rounded up to a MiB.
    """

    def __init__(
        self, file: str, asked: str | None, names: list[str], seen: NDArray[np.int64]
    ) -> None:
        self._asked = asked is not None
        self._all = asked == ALL and ALL not in names
        most = max(range(len(names)), key=lambda i: (seen[i, Of.BYTES], -i))
        self._chosen = names[most] if asked is None or self._all else asked
        if self._chosen not in names:
            listed = ", ".join(names[:NAMED_MAX]) + (", ..." if len(names) > NAMED_MAX else "")
            raise TraceError(f"{file}: contains no device {asked!r}, only {listed}; or specify all")
        self.wanted = -1 if self._all else names.index(self._chosen)  # -1: all
        self._begin_bytes: NDArray[np.int64] | None = None
        if self._all:
            ends = seen[: len(names), Of.END]
            sizes = (ends + ALIGN_BYTES - 1) // ALIGN_BYTES * ALIGN_BYTES
            if sum(sizes.tolist()) > NUMBER_MAX:
                raise TraceError(
                    f"{file}: its volumes are too large to be concatenated: "
                    "choose one with --device"
                )
            self._begin_bytes = np.concatenate(([0], np.cumsum(sizes)[:-1]))
        self.count(names, seen)

    def laid_out(self, part: Requests, sign: int = 1) -> Requests:
        """Return requests with their offsets in the concatenation."""
        if self._begin_bytes is None:
            return part
        begin_bytes = self._begin_bytes[part.device]
        return part._replace(offset_bytes=part.offset_bytes + sign * begin_bytes)

    def apart(self, part: Requests) -> Requests:
        """Return requests of the concatenation with the offsets on their own volumes."""
        return self.laid_out(part, -1)

    def of_chosen(self, counts: NDArray[np.int64]) -> int:
        """Return the sum of a per-device count over the selected devices."""
        return int(counts.sum() if self._all else counts[self.wanted])

    def count(self, names: list[str], seen: NDArray[np.int64]) -> None:
        """Set the devices from the counts of a pass."""
        self.devices = [
            Device(
                name,
                int(seen[index, Of.REQUESTS]),
                int(seen[index, Of.BYTES]),
                chosen=self._all or name == self._chosen,
            )
            for index, name in enumerate(names)
        ]

    def report(self, findings: Findings) -> None:
        """Add a finding that there are several volumes, and which one is replayed."""
        others = sorted(
            (each for each in self.devices if not each.chosen), key=lambda each: -each.bytes
        )
        if not others or self._asked:
            return
        more = f", ... ({len(others):,} in all)" if len(others) > NAMED_MAX else ""
        findings.add(
            "several-devices",
            f"only {self._chosen}, the device with most bytes, is replayed",
            count=len(self.devices),
            place="also in the trace: "
            + ", ".join(each.name for each in others[:NAMED_MAX])
            + more,
            fix="choose another with --device, or all, concatenated as on one array, with "
            "--device all",
        )


BLOCK_BYTES = 1 << 20
LINE_BYTES = 24  # an estimate; shorter lines take another pass of the loop
TAIL_BYTES = 4096
WINDOW_MIN = 1 << 14
SURVEY_BYTES = 4 * BLOCK_BYTES
HEADER_LINES = 1000  # among which the names of the columns are looked for
HEADER = re.compile(rb'[\s"]*[A-Za-z_]')


class ColumnReader:
    """A trace with one request per line, in one or several files.

    The list of volumes is complete only at the end of the files.  The requests read for it are
    cached on disk; if they are too many, or the start of the file was enough, each pass reads the
    files again.
    """

    def __init__(
        self, table: Table, sources: list[Source], device: str | None, use_dispatch: bool
    ) -> None:
        self.table, self._sources = table, sources
        self._name = ", ".join(each.name for each in sources)
        no_dispatch(self._name, use_dispatch)
        self.origin_unix_ns: int | None = None
        self._survey_findings = Findings()
        self._known, *_ = self._files = self._opened(self._survey_findings, nothing_seen())
        found_in = {"stream": To.PROCESS, "complete_ns": To.RESPONSE}
        absent = {n for n in OPTIONAL if n not in found_in or not table.has(found_in[n])}
        self._kept = [Kept(absent, CACHE_BYTES_MAX // len(sources)) for _ in sources]
        for lines, kept in zip(self._files, self._kept):
            self._survey(lines, kept, device)
        if not self._known.names:
            raise self._known.malformed.refuse(self.table.name)
        self.volumes = Volumes(self._name, device, self._known.names, self._known.seen.devices)
        self.devices = self.volumes.devices

    def _survey(self, lines: Lines, kept: Kept, device: str | None) -> None:
        """Read a file and cache its requests; or, if that is enough, its start, and cache none."""
        for part in lines.parts():
            kept.add(part)
            is_enough = lines.read_bytes >= SURVEY_BYTES and len(self._files) == 1
            is_clear = device in lines.names if device is not None else len(lines.names) == 1
            if is_enough and is_clear:
                kept.drop()
                break

    def requests(self, findings: Findings) -> Iterator[Requests]:
        """Yield the requests of all files in order of arrival."""
        wanted = self.volumes.wanted
        if all(each.is_whole for each in self._kept):
            files = self._files
            findings.take(self._survey_findings)
            unsorted = [each.parts(wanted) for each in self._kept]
        else:
            files = self._opened(findings, nothing_seen(self._known.seen, again=True))
            unsorted = [each.parts(wanted) for each in files]
        window = max(WINDOW // len(files), WINDOW_MIN)
        streams = [in_order(each, findings, window) for each in unsorted]
        parts = merged(streams)
        is_spread, parts = spread_if_whole(parts, self.table.whole_seconds)

        def note(first_ns: int) -> None:
            self.origin_unix_ns = origin_of(self.table.since_1970, first_ns)

        yield from from_first(map(self.volumes.laid_out, parts), note)
        self.volumes.count(files[0].names, files[0].seen.devices)
        self.devices = self.volumes.devices
        self._report(files, findings)
        has_ops = self.table.has(To.OP) or self.table.has(To.LOW_BIT)
        report_limits(findings, self.table.has(To.TIME), has_ops, is_spread)

    def _opened(self, findings: Findings, seen: Seen) -> list[Lines]:
        """Open all files again; they share one list of devices."""
        names = list(self._known.names) if seen.known[0] else []
        shared = [seen, *(nothing_seen(seen) for _ in self._sources[1:])]
        return [
            Lines(source, self.table, findings, own, names)
            for source, own in zip(self._sources, shared)
        ]

    def _report(self, files: list[Lines], findings: Findings) -> None:
        for each in files:
            malformed, lines = each.seen.tally[Tally.MALFORMED], each.seen.tally[Tally.LINES]
            if malformed > lines // 2:
                raise each.malformed.too_many(int(lines), self.table.name)
            each.malformed.report(findings)
        for what, code, text, fix in (
            (Tally.EMPTY, "empty", "requests of length 0 were skipped", "none needed"),
            (Tally.NO_DIRECTION, "no-direction",
             "lines without a direction (read or write) were skipped", "none needed for a few"),
        ):  # fmt: skip
            findings.count(sum(each.seen.tally[what] for each in files), code, text, fix)
        findings.count(
            self.volumes.of_chosen(files[0].seen.devices[:, Of.ABSURD]),
            "absurd-latency",
            "response times exceed an hour; these requests count as incomplete",
            "none needed for a few",
        )
        self.volumes.report(findings)


class Lines:
    """One pass over the lines of a file."""

    def __init__(
        self, source: Source, table: Table, findings: Findings, seen: Seen, names: list[str]
    ) -> None:
        self.malformed = Malformed(source, table.mend)
        self.names = names  # of the devices, in the order of the parser's indices
        self.seen = seen
        self.read_bytes = 0
        self._source = source
        self._table = table
        self._plan = plan_of(table)
        self._findings = findings
        self._held = 0
        self._block = np.empty(BLOCK_BYTES + 1 + BEYOND, np.uint8)

    def parts(self, wanted: int = -1) -> Iterator[Requests]:
        """Yield the requests of the wanted device (an index; -1: all), with unchanged times.

        Each part is a block of the file, so that the order does not depend on the caller.
        """
        with self._source.open(self._findings) as stream:
            while stop := self._fill(stream):
                is_first = self.seen.tally[Tally.LINES] == 0
                has_mark = is_first and self._block[: len(BOM)].tobytes() == BOM
                at, parts = len(BOM) if has_mark else 0, []
                while at < stop:
                    at, out = self._parse(at, stop, wanted)
                    parts.append(out)
                yield joined(parts)
                self._held -= stop
                self._block[: self._held] = self._block[stop : stop + self._held].copy()

    def _fill(self, stream: ByteStream) -> int:
        """Fill the rest of the block; return the end of its last line, 0 at the end of the file.

        A line longer than a block is cut at the block's end; the end of the file ends a line.
        """
        room = memoryview(self._block)[self._held : BLOCK_BYTES]  # type: ignore[arg-type]
        got = stream.readinto(room)
        self.read_bytes += got
        self._held += got
        stop = self._end_of_lines()
        if stop and got:
            return stop
        if stop != self._held:
            self._block[self._held] = ord("\n")
            self._held += 1
        return self._held

    def _end_of_lines(self) -> int:
        for begin in (max(self._held - TAIL_BYTES, 0), 0):
            newline = self._block[begin : self._held].tobytes().rfind(b"\n")
            if newline >= 0:
                return begin + newline + 1
        return 0

    def _parse(self, at: int, stop: int, wanted: int) -> tuple[int, Requests]:
        tally = self.seen.tally
        before = tally.copy()
        out = room_for((stop - at) // LINE_BYTES + 1)
        with np.errstate(over="ignore"):  # in hashes, if the parser is not compiled
            at, rows = parse(self._block, at, stop, self._plan, self.seen, wanted, out)
        bad = int(tally[Tally.MALFORMED] - before[Tally.MALFORMED])
        if bad:
            self._show(int(before[Tally.MALFORMED]), bad)
        if tally[Tally.OVER]:
            raise TraceError(
                f"{self._source.name}: more than {DEVICES_MAX:,} devices as {self._table.name}: "
                "try another --format, or another column"
            )
        for index in range(len(self.names), int(self.seen.known[0])):
            row = self.seen.devices[index]
            self.names.append(self._name(self._block[row[Of.FIRST_AT] : row[Of.FIRST_END]]))
        room = len(out.arrival_ns)
        out = out.between(0, rows)
        if rows < room // 2:  # release unused memory
            out = Requests._make(column.copy() for column in out)
        return at, out

    def _show(self, known: int, bad: int) -> None:
        """Note malformed lines; the first line that is no comment may be a header."""
        shown = self.seen.bad[known : known + bad].tolist()
        for number, begin, end in shown:
            line = self._block[begin:end].tobytes().rstrip(b"\r")
            if HEADER.match(line) and self._begins_table(number, begin):
                self.seen.tally[Tally.MALFORMED] -= 1
            else:
                self.malformed.add(number, line)
        self.malformed.add_unseen(bad - len(shown))

    def _begins_table(self, number: int, begin: int) -> bool:
        """Return whether there are only comments and blank lines before a line."""
        if number > HEADER_LINES:
            return False
        before = self._block[:begin].tobytes().removeprefix(BOM).split(b"\n")
        return len(before) == number and all(
            not line.strip() or line.lstrip().startswith(COMMENT) for line in before
        )

    def _name(self, part: NDArray[np.uint8]) -> str:
        text = part.tobytes().decode("utf-8", "backslashreplace").replace('"', "")
        words = text.split(None if self._table.separator == BLANKS else self._table.separator)
        return self._table.joined_by.join(word.strip() for word in words) or "0"


def room_for(rows: int) -> Requests:
    """Return empty rows for the parser to fill."""
    out = Requests._make(np.empty(rows, dtype) for dtype in DTYPES)
    out.flags[:] = 0
    out.dispatch_ns[:] = UNKNOWN
    return out
