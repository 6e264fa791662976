"""A captured trace of block requests: read from a file of any supported format, as a stream.

trace = Trace.read("sda.blktrace.0")
for requests in trace.chunks():
    requests.arrival_ns, requests.offset_bytes, ...

summary and address_map describe it after one pass.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridsim.foundation.codes import Op
from hybridsim.foundation.errors import TraceError, UsageError
from hybridsim.foundation.in_notebooks import table_html
from hybridsim.foundation.printable import printable
from hybridsim.foundation.wording import percent
from hybridsim.requests.rows import Device, Findings, Requests, TraceWarning, in_chunks
from hybridsim.traces.formats import Reader, open_reader
from hybridsim.traces.formats.files import (
    STDIN,
    Arriving,
    Source,
    cpu_of,
    inline,
    per_cpu_files,
    source,
)
from hybridsim.traces.formats.ordering import from_first
from hybridsim.traces.summary import Summary, summarize

if TYPE_CHECKING:
    from pandas import DataFrame

    from hybridsim.traces.formats.thinned import Thinned
    from hybridsim.traces.thinned.layout import Counts
    from hybridsim.traces.thinned.thinner import Stretch


__all__ = ["Device", "Requests", "Summary", "Trace", "TraceWarning"]

CHUNK_ROWS = 65_536
WORKLOAD = "workload"  # the format of generated requests
GENERATED = "gen:"  # prefix of a workload specified in place of a file
PathLike = str | os.PathLike[str]
Watch = Callable[[Iterator[Requests]], Iterator[Requests]]


Selection = tuple[tuple[str, ...], str | None, str | None, bool]


class Trace:
    """The requests to one device in order of arrival, with all that the trace records of them.

    Requests are not kept in memory: each call of `chunks` reads the files again.
    """

    def __init__(self, name: str, format: str, reader: Reader) -> None:
        self.name = name
        self.format = format
        # what opens it again: paths, format, device, use_dispatch
        self.selection: Selection = ((name,), None, None, False)
        self._reader = reader
        self._warnings: list[TraceWarning] | None = None
        self._sources: list[Source] = []

    @classmethod
    def read(
        cls,
        path: PathLike | Sequence[PathLike],
        format: str | None = None,
        device: str | None = None,
        use_dispatch: bool = False,
        so_far: Callable[[Trace], None] | None = None,
    ) -> Trace:
        """Open a trace.

        `path` is a file, several, a directory or prefix of per-CPU files, or `-` for standard
        input; compressed or not.  It may also be a workload to generate: its TOML file, or a line
        as "gen:hot-spot,span=64GiB,hot=10%".

        `device` is a device of the trace; default: the one with the most bytes queued.  With
        `use_dispatch` the requests are those issued to the device, after merging and scheduling,
        and arrive at their issue times.  A stream is read to its end; until then, `so_far` gets
        each second the trace of what has arrived.  Raises TraceError if a file cannot be read.

        >>> Trace.read("gen:zipf,requests=100,span=16MiB")
        <Trace gen:zipf,requests=100,span=16MiB (workload)>
        """
        paths = [path] if isinstance(path, str | os.PathLike) else list(path)
        if not paths:
            raise TraceError("no trace file specified: pass a file name")

        def arriving(one: Source) -> None:
            assert so_far is not None
            with suppress(TraceError):  # too little to be recognised
                so_far(cls(one.name, *open_reader([one], format, device, use_dispatch)))

        look = arriving if so_far else None
        files = [each for one in paths for each in sources_of(os.fspath(one), look)]
        sources = list({(each.name, each.path): each for each in files}.values())
        names = [os.fspath(each) for each in paths]
        trace = cls(
            printable(", ".join(names)), *open_reader(sources, format, device, use_dispatch)
        )
        trace.selection = (tuple(names), format, device, use_dispatch)
        trace._sources = sources
        return trace

    def __repr__(self) -> str:
        return f"<Trace {self.name} ({self.format})>"

    def _repr_html_(self) -> str:
        rows = [("name", self.name), ("format", self.format)]
        if len(self.devices) > 1:
            rows.append(("devices", ", ".join(each.name for each in self.devices)))
        return table_html("Trace", rows)

    def frame(self, rows: int | None = None) -> DataFrame:
        """Return the requests, or the first `rows`, as a pandas frame: a row per request.

        Columns: those of a chunk; times in ns from the start of the trace, lengths and offsets in
        bytes, -1 for times that are unknown.  Needs pandas (`hybridsim[notebooks]`).

        >>> Trace.read("gen:zipf,requests=100,span=16MiB").frame(3).shape[0]
        3
        """
        from pandas import DataFrame, concat

        parts: list[Any] = [DataFrame(columns=Requests._fields)]
        for chunk in self.chunks():
            parts.append(DataFrame(chunk._asdict()))
            if rows is not None and sum(map(len, parts)) >= rows:
                break
        return concat(parts[1:] or parts, ignore_index=True)[:rows]

    def seeded(self, seed: int) -> Trace:
        """Return a workload with another random seed; a capture unchanged."""
        seeded = getattr(self._reader, "seeded", None)
        if seeded is None:
            return self
        again = Trace(self.name, self.format, seeded(seed))
        again.selection = self.selection
        return again

    @property
    def arguments(self) -> list[str]:
        """The command-line arguments that select this trace."""
        return arguments(*self.selection)

    @property
    def is_generated(self) -> bool:
        """Whether the requests are generated from a workload, not captured."""
        return self.format == WORKLOAD

    @property
    def devices(self) -> list[Device]:
        """The devices in the trace; their counts are complete after a full pass."""
        return self._reader.devices

    @property
    def origin(self) -> int | None:
        """Unix time of time 0 in nanoseconds, if the trace has it."""
        return self._reader.origin_unix_ns

    @property
    def sample(self) -> Thinned | None:
        """What the requests are a sample of; None: they are all requests."""
        return getattr(self._reader, "sample", None)

    @property
    def capture(self) -> Thinned | None:
        """The thinned capture that the requests are from; None: another format."""
        return getattr(self._reader, "capture", None)

    def counts(self) -> Iterator[Counts]:
        """Yield the counters of each minute of a thinned capture; nothing for other formats."""
        counts = getattr(self._reader, "counts", None)
        yield from counts() if counts else ()

    def in_full(self, begins: Collection[int] | None = None) -> Iterator[tuple[Stretch, Requests]]:
        """Yield the stretches of a thinned capture with all requests; none for other formats.

        `begins`: times at which the wanted ones begin; default: all.
        """
        in_full = getattr(self._reader, "in_full", None)
        yield from in_full(begins) if in_full else ()

    def sampled(self) -> Iterator[Requests]:
        """Yield the reads and writes of a thinned capture's sample, which stays in memory.

        Only arrivals, offsets, lengths and operations are right.
        """
        moves = getattr(self._reader, "moves", None)
        yield from moves(Findings(), CHUNK_ROWS) if moves else ()

    @property
    def warnings(self) -> list[TraceWarning]:
        """Problems of the trace noted in the last full pass; reads the trace if there was none."""
        if self._warnings is None:
            for _ in self.recorded():
                pass
        return list(self._warnings or [])

    def chunks(self, rows: int = CHUNK_ROWS) -> Iterator[Requests]:
        """Yield the requests in order of arrival, `rows` at a time, with the times of the trace.

        Raises TraceError for a sample, which is not the load of a disk: see `recorded`.
        """
        if self.sample is not None:
            raise TraceError(
                f"{self.name} holds {percent(self.sample.rate)} of the regions, which has hit "
                "ratios (hits, mrc) but no latencies; these need all requests of a minute: "
                f"{self.sample.choices}"
            )
        yield from self.recorded(rows)

    def recorded(self, rows: int = CHUNK_ROWS) -> Iterator[Requests]:
        """Yield what the trace has, as `chunks`: also of a sample, for callers that scale it."""
        findings = Findings()
        yield from in_chunks(self._reader.requests(findings), rows)
        self._warnings = findings.list()

    def from_first(self) -> Iterator[Requests]:
        """Yield the requests with the first one of a capture at time 0.

        A generated workload begins before its first request and keeps its times.
        """
        yield from self.chunks() if self.is_generated else from_first(self.chunks())

    @property
    def has_volumes(self) -> bool:
        """Whether the format distinguishes volumes, which can be read apart."""
        return getattr(self._reader, "volumes", None) is not None

    def chunks_apart(self) -> Iterator[Requests]:
        """Yield the requests of device "all" with offsets relative to their own volumes."""
        volumes = getattr(self._reader, "volumes", None)
        if volumes is None:
            raise TraceError(
                f"{self.name}: a trace of format {self.format} has one volume: "
                "replay it without --fleet"
            )
        yield from (volumes.apart(part) for part in self.chunks())

    @contextmanager
    def reading(self, on_read: Callable[[int, int], None]) -> Iterator[None]:
        """Call `on_read` with the bytes read and their total while the files are read.

        Bytes are those on disk: of a compressed file, compressed.
        """
        whole_bytes = sum(each.size_bytes for each in self._sources)
        places = [0] * len(self._sources)

        def watch(number: int, read_bytes: int) -> None:
            places[number] = read_bytes
            on_read(sum(places), whole_bytes)

        for number, each in enumerate(self._sources):
            each.watchers.append(partial(watch, number))
        try:
            yield
        finally:
            for each in self._sources:
                each.watchers.pop()

    def summary(self, watch: Watch = iter) -> Summary:
        """Read the trace once and return its summary; `watch` wraps the iterator of chunks.

        Raises TraceError for a sample.
        """
        return self._summed(watch(self.chunks()))

    def summary_of_recorded(self, watch: Watch = iter) -> Summary:
        """Return the summary of what the trace has, also of a sample."""
        return self._summed(watch(self.recorded()))

    def _summed(self, chunks: Iterator[Requests]) -> Summary:
        tally, failed = summarize(chunks, 0 if self.is_generated else None), Findings()
        failed.count(
            tally.errors,
            "errors",
            "requests failed during the capture; they are replayed as if they had succeeded",
            "see the kernel log of that time for the device errors",
        )
        return Summary(
            requests=tally.requests,
            reads=tally.count[Op.READ],
            writes=tally.count[Op.WRITE] + tally.count[Op.WRITE_ZEROES],
            discards=tally.count[Op.DISCARD],
            flushes=tally.count[Op.FLUSH],
            bytes_read=tally.bytes[Op.READ],
            bytes_written=tally.bytes[Op.WRITE] + tally.bytes[Op.WRITE_ZEROES],
            bytes_discarded=tally.bytes[Op.DISCARD],
            span_ns=tally.span_ns,
            active_ns=tally.active_ns,
            max_end_bytes=tally.max_end_bytes,
            footprint_bytes=tally.footprint.bytes,
            footprint_is_exact=tally.footprint.is_exact,
            sequential_reads=tally.sequential[Op.READ],
            sequential_writes=tally.sequential[Op.WRITE],
            incomplete=tally.incomplete,
            errors=tally.errors,
            requeues=tally.requeues,
            devices=self.devices,
            warnings=[*self.warnings, *failed.list()],
            address_map=tally.address_map,
            requests_sha256=tally.hash.hexdigest(),
            recorded=tally.recorded,
        )


def arguments(
    paths: Sequence[str], format: str | None, device: str | None, use_dispatch: bool
) -> list[str]:
    """Return the command-line arguments that select a trace."""
    form, _, columns = (format or "").partition(":")
    words = list(paths)
    words += ["--format", form] if form not in ("", "columns") else []
    words += ["--columns", columns] if columns else []
    words += ["--device", device] if device else []
    return words + (["--use-dispatch"] if use_dispatch else [])


def sources_of(name: str, arriving: Arriving | None = None) -> list[Source]:
    """Return the files of a path: the file itself, or the per-CPU files of one capture.

    `arriving` is that of `source`.
    """
    path = Path(name)
    if name == STDIN:
        return [source(name, arriving)]
    if name.startswith(GENERATED):
        return [inline(name)]
    try:
        files = per_cpu_files(path) if cpu_of(path) >= 0 or not path.is_file() else []
        exists = path.exists()
    except OSError as error:
        raise TraceError(f"{name}: cannot be read: {error.strerror}") from None
    if files:
        return [source(file) for file in files]
    if path.is_dir():
        raise TraceError(
            f"{name}: the directory contains no per-CPU files of blktrace (NAME.blktrace.0, ...)"
        )
    if not exists:
        shown = printable(name)
        raise TraceError(f"{shown}: no such file, nor {printable(path.name)}.blktrace.0")
    return [source(name, arriving)]


def captures_of(paths: Sequence[str]) -> int:
    """Return the number of captures that paths name: per-CPU files of one are counted once."""
    found: list[set[str]] = []
    for path in paths:
        files = {str(each.path) if each.path else each.name for each in sources_of(path)}
        if not any(files & each for each in found):
            found.append(files)
    return len(found)


@contextmanager
def watched(trace: Trace, on_read: Callable[[int, int, int], None] | None) -> Iterator[Watch]:
    """Yield what passes the chunks of a trace on, and call `on_read` while its files are read.

    It gets the requests so far, the bytes read and their total.
    """
    if on_read is None:
        yield iter
        return
    requests, place = 0, (0, 0)

    def report(*now: int) -> None:
        nonlocal place
        place = now[0], now[1]
        on_read(requests, *place)

    def counted(chunks: Iterator[Requests]) -> Iterator[Requests]:
        nonlocal requests
        for chunk in chunks:
            yield chunk
            requests += chunk.rows
            on_read(requests, *place)

    with trace.reading(report):
        yield counted


def check_is_read(trace: object) -> None:
    """Raise UsageError if a path was passed instead of a Trace."""
    if isinstance(trace, str | os.PathLike):
        path = os.fspath(trace)
        raise UsageError(f"expected a Trace, not the path {path!r}: use Trace.read({path!r})")


class Rows:
    """Hands out requests as the reader of a file does."""

    origin_unix_ns: int | None = None

    def __init__(self, name: str, rows: Requests) -> None:
        """Keep the requests of the only device; columns may be those of records in a file."""
        self.rows = rows
        self.devices = [Device(name, rows.rows, int(rows.length_bytes.sum()), True)]

    def requests(self, findings: Findings) -> Iterator[Requests]:
        """Yield all requests."""
        for first in range(0, self.rows.rows, CHUNK_ROWS):
            part = self.rows.between(first, first + CHUNK_ROWS)
            yield Requests._make(map(np.ascontiguousarray, part))


def in_memory(name: str, rows: Requests, is_generated: bool = False) -> Trace:
    """Return requests as a trace that begins at 0."""
    rows = rows.later(-int(rows.arrival_ns[0]))
    return Trace(name, WORKLOAD if is_generated else "captured", Rows(name, rows))
