"""Apache Parquet files with one request per row; needs pyarrow (`hybridsim[parquet]`).

The columns are named as in the CSV of `trace convert`, or specified by `--columns`.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybridsim.foundation.codes import Op
from hybridsim.foundation.errors import ColumnsError, TraceError
from hybridsim.foundation.printable import printable
from hybridsim.requests.rows import UNKNOWN, Findings, Requests, requests_with
from hybridsim.traces.formats.column_reader import Volumes
from hybridsim.traces.formats.columns import Field, To
from hybridsim.traces.formats.files import Source
from hybridsim.traces.formats.line_parser import LENGTH_MAX, NUMBER_MAX, RESPONSE_MAX_NS, Of
from hybridsim.traces.formats.mapped_text import EXAMPLE, Mapping, read
from hybridsim.traces.formats.ordering import from_first, in_order, origin_of, spread_if_whole
from hybridsim.traces.formats.requests_csv import HEADER, LETTERS
from hybridsim.traces.formats.text import no_dispatch, only, report_limits

MAGIC = b"PAR1"
BATCH = 1 << 16
GROUP_ROWS = 1 << 20
COMPLETE = "complete_ns"
DEFAULT = Mapping(
    columns={
        To.TIME: ("arrival_ns", Field(To.TIME)),
        To.OFFSET: ("offset", Field(To.OFFSET)),
        To.LENGTH: ("length", Field(To.LENGTH)),
        To.OP: ("op", Field(To.OP)),
    },
    ops={letter: op for op, letter in LETTERS.items()},
)


def detect(head: bytes) -> bool:
    """Return whether the file begins with the magic bytes of Parquet."""
    return head.startswith(MAGIC)


def pyarrow(name: str) -> Any:
    """Return pyarrow with its Parquet module; raise TraceError if it is not installed."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise TraceError(
            f"{name}: Parquet needs pyarrow: install it, or hybridsim[parquet]; "
            "or convert the file to CSV"
        ) from None
    return pyarrow


@contextlib.contextmanager
def readable(name: str) -> Iterator[None]:
    """Raise errors of pyarrow in reading a file as TraceError, with the reason."""
    arrow = pyarrow(name)
    try:
        yield
    except (OSError, arrow.ArrowException, UnicodeDecodeError) as error:
        why = str(error).split("\n")[0]
        raise TraceError(
            f"{name}: cannot be read as Parquet: {printable(why)}; it is damaged, or compressed "
            "as a whole: then decompress it first"
        ) from None


class Reader:
    """A file; each pass reads it again, in batches of rows."""

    def __init__(
        self, sources: list[Source], device: str | None, use_dispatch: bool, spec: str = ""
    ) -> None:
        self._source = only(sources, "parquet")
        self.origin_unix_ns: int | None = None
        no_dispatch(self._source.name, use_dispatch)
        self._mapping = read(spec) if spec else DEFAULT
        with readable(self._source.name):
            place = self._source.spool or self._source.path
            self._file: Any = pyarrow(self._source.name).parquet.ParquetFile(place)
            have = self._file.schema_arrow.names
        wanted = [column for column, _ in self._mapping.columns.values()]
        missing = [column for column in wanted if column not in have]
        if missing:
            raise ColumnsError(
                f"{self._source.name}: no column {missing[0]!r}; it has {', '.join(have)}; "
                f"specify the columns, as in --columns {EXAMPLE}"
            )
        self._columns = wanted + [COMPLETE] * (self._mapping is DEFAULT and COMPLETE in have)
        survey = Rows(self._source.name, self._mapping)
        named = [column for to, (column, _) in self._mapping.columns.items() if to == To.DEVICE]
        if named:
            for _ in self._rows(survey, -1):
                pass
        else:
            survey.names.append("0")
        self.volumes = Volumes(self._source.name, device, survey.names, survey.devices)
        self.devices = self.volumes.devices

    def _rows(self, rows: Rows, wanted: int) -> Iterator[Requests]:
        with readable(self._source.name):
            batches = self._file.iter_batches(BATCH, columns=self._columns)
            yield from rows.requests(batches, wanted)

    def requests(self, findings: Findings) -> Iterator[Requests]:
        """Read the file and yield its requests in order of arrival."""
        rows = Rows(self._source.name, self._mapping)
        ordered = in_order(self._rows(rows, self.volumes.wanted), findings)
        is_spread, parts = spread_if_whole(ordered, None if self._mapping is not DEFAULT else False)

        def note(first_ns: int) -> None:
            self.origin_unix_ns = origin_of(None, first_ns)

        yield from from_first(map(self.volumes.laid_out, parts), note)
        if rows.bad > rows.read // 2:
            raise TraceError(
                f"{self._source.name}: {rows.bad:,} of {rows.read:,} rows are malformed: "
                f"for example {printable(rows.first_bad[:200])}; check the columns (--columns)"
            )
        if not rows.names:
            raise TraceError(
                f"{self._source.name}: contains no request in the format parquet; "
                "check the columns (--columns)"
            )
        self.volumes.count(rows.names, rows.devices)
        self.devices = self.volumes.devices
        self.volumes.report(findings)
        have = self._mapping.columns
        report_limits(findings, To.TIME in have, To.OP in have, is_spread)
        findings.count(rows.empty, "empty", "requests of length 0 were skipped", "none needed")
        findings.count(
            rows.bad,
            "malformed",
            "malformed rows (without a value, or with numbers out of range) were skipped",
            "none needed for a few; otherwise correct --columns",
            self._source.name,
        )


class Rows:
    """One pass over batches of rows."""

    def __init__(self, name: str, mapping: Mapping) -> None:
        self._name = name
        self.names: list[str] = []
        self.devices = np.zeros((1, len(Of)), np.int64)
        self.read = self.bad = self.empty = 0
        self.first_bad = ""  # row
        self._mapping = mapping
        self._ops = {_plain(word): op for word, op in mapping.ops.items()}

    def requests(self, batches: Iterator[Any], wanted: int) -> Iterator[Requests]:
        """Yield the requests of the wanted device (an index; -1: all), with unchanged times."""
        for batch in batches:
            part, sound = self._converted(batch)
            self.read += len(sound)
            self.bad += int((~sound).sum())
            empty = sound & (part.length_bytes == 0) & (part.op != Op.FLUSH)
            self.empty += int(empty.sum())
            if not self.first_bad and not sound.all():
                (row,) = batch.slice(int(np.argmin(sound)), 1).to_pylist()
                self.first_bad = ", ".join(f"{name} {value}" for name, value in row.items())
            sound &= ~empty
            self._count(part, sound)
            if wanted >= 0:
                sound &= part.device == wanted
            if sound.any():
                yield part.where(sound)

    def _converted(self, batch: Any) -> tuple[Requests, NDArray[np.bool_]]:
        part = requests_with(batch.num_rows)
        sound = np.ones(batch.num_rows, bool)
        targets: dict[To, NDArray[Any]] = {
            To.TIME: part.arrival_ns,
            To.OFFSET: part.offset_bytes,
            To.LENGTH: part.length_bytes,
            To.PROCESS: part.stream,
            To.RESPONSE: part.complete_ns,
        }
        for to, (column, field) in self._mapping.columns.items():
            values = batch.column(column)
            if to in targets:
                targets[to][:], fine = _numbers(values, field)
                sound &= fine
            elif to == To.OP:
                part.op[:], fine = _looked_up(values, lambda word: self._ops.get(_plain(word)))
                sound &= fine
            else:
                part.device[:], _ = _looked_up(values, self._index)
        if not self._mapping.columns.get(To.DEVICE) and not self.names:
            self.names.append("0")
        sound &= part.length_bytes <= LENGTH_MAX
        if To.RESPONSE in self._mapping.columns:
            known = (part.complete_ns >= 0) & (part.complete_ns <= RESPONSE_MAX_NS)
            part.complete_ns[:] = np.where(known, part.arrival_ns + part.complete_ns, UNKNOWN)
        elif COMPLETE in batch.schema.names:
            values, fine = _numbers(batch.column(COMPLETE), Field(To.TIME))
            part.complete_ns[:] = np.where(fine & (values >= part.arrival_ns), values, UNKNOWN)
        return part, sound

    def _index(self, name: object) -> int:
        text = str(name)
        if text not in self.names:
            if len(self.names) == 0xFFFF:
                raise TraceError(
                    f"{self._name}: more than 65,535 devices: try another column for the device"
                )
            self.names.append(text)
        return self.names.index(text)

    def _count(self, part: Requests, sound: NDArray[np.bool_]) -> None:
        if len(self.names) > len(self.devices):
            grown = np.zeros((2 * len(self.names), len(Of)), np.int64)
            grown[: len(self.devices)] = self.devices
            self.devices = grown
        device, length = part.device[sound].astype(np.int64), part.length_bytes[sound]
        end = part.offset_bytes[sound] + length
        np.add.at(self.devices[:, Of.REQUESTS], device, 1)
        np.add.at(self.devices[:, Of.BYTES], device, length)
        np.maximum.at(self.devices[:, Of.END], device, end)


def _plain(word: object) -> str:
    if isinstance(word, float) and word.is_integer():  # integers of a column with missing values
        word = int(word)
    return str(word).strip().lower()


def _numbers(values: Any, field: Field) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return a column of numbers, scaled, and which of them are in range."""
    known = values.is_valid().to_numpy(zero_copy_only=False)
    if values.null_count and pyarrow("").types.is_integer(values.type):
        values = values.fill_null(0)  # else pyarrow returns floats, which are not exact
    numbers = values.to_numpy(zero_copy_only=False)
    if numbers.dtype.kind == "M":
        numbers = numbers.astype("datetime64[ns]").astype(np.int64)
        return numbers, known & (numbers >= 0)
    if numbers.dtype.kind not in "iuf":
        raise ColumnsError(f"--columns: a column of type {values.type} does not contain numbers")
    top = NUMBER_MAX // field.scale
    with np.errstate(invalid="ignore"):
        fine = known & (numbers >= field.zero) & (numbers <= top + field.zero)
    kept = np.where(fine, numbers, field.zero)
    if numbers.dtype.kind == "f":
        return np.rint((kept - field.zero) * field.scale).astype(np.int64), fine
    return (kept.astype(np.int64) - field.zero) * field.scale, fine


def _looked_up(
    values: Any, code_of: Callable[[object], int | None]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the code of each value, and which have one; look up each distinct value once."""
    encoded = values.dictionary_encode() if not hasattr(values, "dictionary") else values
    codes = [code_of(word) for word in encoded.dictionary.to_pylist()]
    table = np.array([-1 if code is None else code for code in codes] + [-1], np.int64)
    index = encoded.indices.fill_null(len(codes)).to_numpy(zero_copy_only=False)
    matched = table[index]
    return np.maximum(matched, 0), matched >= 0


def write(chunks: Iterator[Requests], put: Callable[[bytes], object]) -> int:
    """Write requests with the columns of the CSV; return their number."""
    arrow = pyarrow("the output")
    names = HEADER.split(",")
    letters = arrow.array([LETTERS[op] for op in sorted(LETTERS)])
    schema = arrow.schema(
        [(name, arrow.dictionary(arrow.int8(), arrow.string()) if name == "op" else arrow.int64())
         for name in names]
    )  # fmt: skip
    rows = 0
    with arrow.parquet.ParquetWriter(
        arrow.PythonFile(_Sink(put), mode="w"),
        schema,
        compression="zstd",
        use_dictionary=["op", "length"],
        column_encoding={
            name: "DELTA_BINARY_PACKED" for name in names if name[0] in "adc" or name == "offset"
        },
    ) as out:
        for chunk in chunks:
            columns = [
                chunk.arrival_ns,
                arrow.DictionaryArray.from_arrays(chunk.op.astype(np.int8), letters),
                chunk.offset_bytes,
                chunk.length_bytes,
                *(
                    arrow.array(column, mask=column == UNKNOWN)
                    for column in (chunk.dispatch_ns, chunk.complete_ns)
                ),
            ]
            out.write_table(arrow.table(columns, schema=schema), GROUP_ROWS)
            rows += chunk.rows
    return rows


class _Sink(io.RawIOBase):
    """A file object for pyarrow that passes its data on."""

    def __init__(self, put: Callable[[bytes], object]) -> None:
        self._put = put
        self._at = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        part = bytes(data)
        self._put(part)
        self._at += len(part)
        return len(part)

    def tell(self) -> int:
        return self._at
