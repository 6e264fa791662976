"""The captures of the repository, and functions that split and damage their records."""

from __future__ import annotations

import struct
from pathlib import Path

from hybridsim.foundation.codes import Op
from hybridsim.requests.rows import Findings, Requests, joined
from hybridsim.traces.formats.files import Source, zstd
from hybridsim.traces.trace import Trace

TRACES = Path(__file__).parents[1] / "traces"
CASES = sorted(path.name for path in (TRACES / "blktrace").iterdir())
LETTERS = {Op.READ: "R", Op.WRITE: "W", Op.DISCARD: "D", Op.FLUSH: "F", Op.WRITE_ZEROES: "Z"}
HEADER = struct.Struct("<IIQQIIIIIHH")  # magic sequence time sector bytes action pid device cpu …
HEADER_V8 = struct.Struct("<IIQQIIQIIHH12x")


def capture(case: str) -> Path:
    return TRACES / "blktrace" / case


def unpacked(path: Path) -> bytes:
    """Return the bytes of a file after removing every layer of compression."""
    with Source(path.name, path).open(Findings()) as stream:
        return stream.read(1 << 30)


def cpu_files(case: str) -> dict[str, bytes]:
    """Return the per-CPU files of a capture, decompressed, by blktrace's file names."""
    files = {}
    for path in sorted(capture(case).glob("*.blktrace.*")):
        prefix, cpu = path.name.split(".blktrace.")
        files[f"{prefix}.blktrace.{cpu.split('.')[0]}"] = unpacked(path)
    return files


def write_files(folder: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def records(data: bytes) -> list[bytes]:
    """Split a file of version 7 into its records."""
    out, at = [], 0
    while at < len(data):
        end = at + HEADER.size + HEADER.unpack_from(data, at)[-1]
        out.append(data[at:end])
        at = end
    return out


def swapped(data: bytes) -> bytes:
    """Return the same records in the other byte order."""
    return b"".join(
        struct.pack(">IIQQIIIIIHH", *HEADER.unpack_from(each)) + payload(each)
        for each in records(data)
    )


def payload(record: bytes) -> bytes:
    """Return a record's payload in the other byte order; payloads of block events stay the same."""
    rest = record[HEADER.size :]
    action = HEADER.unpack_from(record)[5]
    if action >> 16 & 1 << 10 and action & 0xFF == 1:
        return b"".join(rest[i : i + 4][::-1] for i in (0, 4))
    return rest


def as_version_8(data: bytes) -> bytes:
    """Return the same records with the headers of kernel 6.19."""
    out = []
    for each in records(data):
        _, sequence, time, sector, size, action, pid, *rest = HEADER.unpack_from(each)
        wide = (action >> 16) << 16 | action & 0xFFFF
        header = HEADER_V8.pack(0x65617408, sequence, time, sector, size, pid, wide, *rest)
        out.append(header + each[HEADER.size :])
    return b"".join(out)


def read(path: object, **options: object) -> Requests:
    """Return all requests of a trace."""
    return joined(list(Trace.read(path, **options).chunks()))  # type: ignore[arg-type]


def as_rows(requests: Requests) -> list[tuple[object, ...]]:
    """Return requests as (arrival, dispatch, completion, op, offset, length), -1 for unknown."""
    return [
        (*times, LETTERS[Op(op)], offset, length)
        for *times, op, offset, length in zip(
            requests.arrival_ns.tolist(),
            requests.dispatch_ns.tolist(),
            requests.complete_ns.tolist(),
            requests.op.tolist(),
            requests.offset_bytes.tolist(),
            requests.length_bytes.tolist(),
        )
    ]


def reference_rows(case: str) -> list[tuple[object, ...]]:
    """Return the requests that an independent program extracted, in the same form."""
    out = []
    text = zstd.decompress((capture(case) / "requests.csv.zst").read_bytes()).decode()
    for line in text.splitlines()[1:]:
        queued, issued, completed, _, op, sector, size, *_ = line.split(",")
        times = (int(queued), int(issued) or -1, int(completed) or -1)
        out.append((*times, op, int(sector) * 512, int(size)))
    return out


def codes(path: object, **options: object) -> dict[str, int]:
    """Return the number of warnings of a trace by code."""
    trace = Trace.read(path, **options)  # type: ignore[arg-type]
    return {each.code: each.count for each in trace.warnings}
