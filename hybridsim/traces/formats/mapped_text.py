"""Any text table with one request per line, with the columns specified by `--columns`."""

from __future__ import annotations

import csv
from collections.abc import Sequence

from hybridsim.foundation.errors import ColumnsError
from hybridsim.traces.formats.column_reader import ColumnReader
from hybridsim.traces.formats.columns import BLANKS, COMMENT, SKIPPED, Field, Table
from hybridsim.traces.formats.files import Source
from hybridsim.traces.formats.mapping import EXAMPLE, Mapping, read

SNIFFED = ",;\t|"
COLUMNS_MAX = 1000
MEND = (
    "correct --columns: op=COLUMN:R/W/D/F has the words for read, write, discard and flush; dates, "
    "hexadecimal numbers, and commas in numbers must be converted first"
)


def detect(head: bytes) -> bool:
    """Never auto-detected: the columns must be specified."""
    return False


class Reader(ColumnReader):
    """A table whose columns the user specified."""

    def __init__(
        self, sources: list[Source], device: str | None, use_dispatch: bool, spec: str = ""
    ) -> None:
        if not spec:
            raise ColumnsError(f"--format columns: specify the columns, as in --columns {EXAMPLE}")
        self.table = table_of(read(spec), sources[0])
        super().__init__(sources, device, use_dispatch)


def table_of(mapping: Mapping, source: Source) -> Table:
    """Return the table of a mapping, with the header and separator of the file."""
    lines = [line for line in source.head().splitlines() if line.strip()]
    first = next((line for line in lines if not line.startswith(COMMENT)), b"")
    text = first.decode("utf-8", "backslashreplace").lstrip("\ufeff")
    separator = mapping.separator or likely_separator(text)
    split_at = None if separator == BLANKS else separator
    names = [name.strip(' "') for name in fields_of(text, separator)]
    at = split_at.encode() if split_at else None
    widest = max((len(line.split(at)) for line in lines), default=0)
    places: dict[int, Field] = {}
    for column, field in mapping.columns.values():
        place = _place(column, names, widest, source.name)
        if place in places:
            raise ColumnsError(f"--columns: column {column!r} has two roles: specify another")
        places[place] = field
    fields = [places.get(index, SKIPPED) for index in range(max(places) + 1)]
    return Table(
        name="columns",
        separator=separator,
        fields=tuple(fields),
        ops=mapping.ops,
        exact=False,
        since_1970=None,
        whole_seconds=None,
        mend=MEND,
    )


def fields_of(line: str, separator: str) -> list[str]:
    """Split a line at the separators that are not within quotes."""
    if separator == BLANKS:
        return line.split()
    return next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])


def likely_separator(line: str) -> str:
    """Return the most frequent separator in a line; blanks if there is none."""
    most = max(SNIFFED, key=line.count)
    return most if most in line else BLANKS


def _place(column: str, names: Sequence[str], widest: int, file: str) -> int:
    """Return the index of a column; a number is an index from 1, even if a column has that name."""
    if column.isdigit():
        if 1 <= int(column) <= min(widest, COLUMNS_MAX):
            return int(column) - 1
    elif column in names:
        return list(names).index(column)
    raise ColumnsError(
        f"--columns: {file} has no column {column!r}; its first line is "
        f"{', '.join(names[:12])}; a number counts columns from 1"
    )
