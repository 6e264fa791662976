"""The trace formats: a family.  A reader is one file and one line in FORMATS."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from hybridsim.foundation.errors import TraceError, UsageError

if TYPE_CHECKING:
    from hybridsim.requests.rows import Device, Findings, Requests
    from hybridsim.traces.formats.files import Source

# name: module with detect(head) and Reader; in the order in which they are asked
FORMATS = {
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
    "parquet": "hybridsim.traces.formats.parquet",
    "columns": "hybridsim.traces.formats.mapped_text",
    "workload": "hybridsim.traces.formats.workload",
}

# those that can be written too: the module has write(chunks, put)
WRITTEN = ("csv", "fio-iolog", "msr", "spc", "oracle-general", "parquet")
Put = Callable[[Any], object]  # takes texts of a text format, else bytes
Write: TypeAlias = "Callable[[Iterator[Requests], Put], int]"
MAPPED = ("columns", "parquet")  # those that take what is said of columns, after a colon


class Reader(Protocol):
    """An open trace; each call of `requests` is a pass from the beginning."""

    devices: list[Device]
    origin_unix_ns: int | None

    def requests(self, findings: Findings) -> Iterator[Requests]:
        """Yield all requests in order of arrival, and note what is wrong with the trace."""


def open_reader(
    sources: list[Source], format: str | None, device: str | None, use_dispatch: bool
) -> tuple[str, Reader]:
    """Return the format's name and a reader; the format is recognised if not given.

    `columns:SAID` says what the columns of a table mean, see traces/formats/mapping.py.
    """
    name, _, said = (format or "").partition(":")
    if (name and name not in FORMATS) or (said and name not in MAPPED):
        raise UsageError(f"--format {format}: not known; there is {', '.join(FORMATS)}")
    if said:
        if _module("parquet").detect(sources[0].head()):
            name = "parquet"
        mapped: Reader = _module(name).Reader(sources, device, use_dispatch, said)
        return name, mapped
    name = name or recognise(sources)
    reader: Reader = _module(name).Reader(sources, device, use_dispatch)
    return name, reader


def writer(format: str) -> Write:
    """Return the function that writes requests in a format and tells how many they were."""
    assert format in WRITTEN, format
    write: Write = _module(format).write
    return write


def recognise(sources: list[Source]) -> str:
    """Return the name of the format that the first bytes show."""
    heads = [(each.name, head) for each in sources if (head := each.head())]
    if not heads:
        raise TraceError(f"{sources[0].name}: empty, there is nothing to read")
    for _, head in heads:
        fitting = [name for name in FORMATS if _module(name).detect(head)]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            raise TraceError(
                f"{heads[0][0]}: could be {' or '.join(fitting)}; say which with --format"
            )
    if any(_module("blktrace").holds_records(head) for _, head in heads):
        return "blktrace"
    name, head = heads[0]
    raise TraceError(
        f"{name}: format not recognised; it begins with {_glimpse(head)}. "
        f"Known are {', '.join(FORMATS)}; force one with --format, "
        "or say of any other table what its columns are with --columns"
    )


def _module(name: str) -> Any:
    return importlib.import_module(FORMATS[name])


def _glimpse(head: bytes) -> str:
    """Show the first line of a text, or the first bytes of anything else."""
    line = head.split(b"\n", 1)[0].strip()[:60]
    if line and all(32 <= byte < 127 or byte == 9 for byte in line):
        return repr(line.decode())
    return "the bytes " + head[:8].hex(" ")
