"""Trace formats: a family.  A format is one file and one line in FORMATS."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from hybridsim.foundation.errors import TraceError, UsageError
from hybridsim.traces.formats.columns import BOM

if TYPE_CHECKING:
    from hybridsim.requests.rows import Device, Findings, Requests
    from hybridsim.traces.formats.files import Source

# name: module with TABLE, or with detect(head) and Reader, or Lines; in the order of detection
FORMATS = {
    "thinned": "hybridsim.traces.formats.thinned",
    "blktrace": "hybridsim.traces.formats.blktrace",
    "fio-iolog": "hybridsim.traces.formats.fio_iolog",
    "blkparse": "hybridsim.traces.formats.blkparse",
    "csv": "hybridsim.traces.formats.requests_csv",
    "lis": "hybridsim.traces.formats.lis",
    "vscsi": "hybridsim.traces.formats.vscsi",
    "msr": "hybridsim.traces.formats.msr",
    "spc": "hybridsim.traces.formats.spc",
    "alibaba": "hybridsim.traces.formats.alibaba",
    "tencent": "hybridsim.traces.formats.tencent",
    "systor": "hybridsim.traces.formats.systor",
    "fiu": "hybridsim.traces.formats.fiu",
    "disksim": "hybridsim.traces.formats.disksim",
    "mqsim": "hybridsim.traces.formats.mqsim",
    "oracle-general": "hybridsim.traces.formats.oracle_general",
    "ftrace": "hybridsim.traces.formats.ftrace",
    "biosnoop": "hybridsim.traces.formats.biosnoop",
    "parquet": "hybridsim.traces.formats.parquet",
    "columns": "hybridsim.traces.formats.mapped_text",
    "workload": "hybridsim.traces.formats.workload",
}

# formats that can also be written: the module has write(chunks, put)
WRITTEN = ("csv", "fio-iolog", "msr", "spc", "oracle-general", "parquet")
Put = Callable[[Any], object]  # accepts str for text formats, else bytes
Write: TypeAlias = "Callable[[Iterator[Requests], Put], int]"
MAPPED = ("columns", "parquet")  # formats that accept a column mapping, after a colon


class Reader(Protocol):
    """An open trace; each call of `requests` is a pass from the start."""

    devices: list[Device]
    origin_unix_ns: int | None

    def requests(self, findings: Findings) -> Iterator[Requests]:
        """Yield all requests in order of arrival, and add the problems of the trace."""


def open_reader(
    sources: list[Source], format: str | None, device: str | None, use_dispatch: bool
) -> tuple[str, Reader]:
    """Return the name of the format and a reader; detect the format if it is not specified.

    `columns:SPEC` specifies the meaning of the columns of a table, see mapped_text.py.
    Raises UsageError for an unknown format.
    """
    name, _, spec = (format or "").partition(":")
    if (name and name not in FORMATS) or (spec and name not in MAPPED):
        raise UsageError(f"--format {format}: unknown; supported: {', '.join(FORMATS)}")
    if spec and _detects("parquet", sources[0].head()):
        name = "parquet"
    name = name or recognise(sources)
    module = _module(name)
    if hasattr(module, "Reader"):
        return name, module.Reader(sources, device, use_dispatch, *([spec] if spec else []))
    if hasattr(module, "Lines"):
        from hybridsim.traces.formats.event_text import TextReader

        return name, TextReader(module.Lines, sources, device, use_dispatch)
    from hybridsim.traces.formats.column_reader import ColumnReader

    return name, ColumnReader(module.TABLE, sources, device, use_dispatch)


def writer(format: str) -> Write:
    """Return the function that writes requests in a format, and returns their number."""
    assert format in WRITTEN, format
    write: Write = _module(format).write
    return write


def recognise(sources: list[Source]) -> str:
    """Return the name of the format detected from the first bytes; raise TraceError if unknown."""
    heads = [(each.name, head.removeprefix(BOM)) for each in sources if (head := each.head())]
    if not heads:
        raise TraceError(f"{sources[0].name}: the file is empty: capture or copy it again")
    for _, head in heads:
        fitting = [name for name in FORMATS if _detects(name, head)]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            raise TraceError(
                f"{heads[0][0]}: could be {' or '.join(fitting)}: specify it with --format"
            )
    if any(_module("blktrace").holds_records(head) for _, head in heads):
        return "blktrace"
    name, head = heads[0]
    columns = _module("columns").columns_of_text(head)
    if columns:
        raise TraceError(
            f"{name}: a table in no known format; it begins with {_glimpse(head)}. "
            f"By the names of its columns, specify (and check the units): {columns}"
        )
    raise TraceError(
        f"{name}: format not recognised; it begins with {_glimpse(head)}. "
        f"Supported: {', '.join(FORMATS)}. Specify one with --format, "
        "or the columns of any other table with --columns"
    )


def _module(name: str) -> Any:
    return importlib.import_module(FORMATS[name])


def _detects(name: str, head: bytes) -> bool:
    module = _module(name)
    return bool(module.detect(head) if hasattr(module, "detect") else module.TABLE.detects(head))


def _glimpse(head: bytes) -> str:
    """Return the first line of a text, or the first bytes of other data, for a message."""
    line = head.split(b"\n", 1)[0].strip()[:60]
    if line and all(32 <= byte < 127 or byte == 9 for byte in line):
        return repr(line.decode())
    return "the bytes " + head[:8].hex(" ")
