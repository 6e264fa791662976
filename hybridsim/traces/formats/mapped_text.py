"""Any text table with one request per line, with the columns specified by `--columns`."""

from __future__ import annotations

import csv
import dataclasses
import re
import string
from collections.abc import Sequence
from shlex import quote

from hybridsim.foundation.codes import Op
from hybridsim.foundation.errors import ColumnsError
from hybridsim.foundation.reading import whole_text
from hybridsim.foundation.suggest import hint
from hybridsim.foundation.toml.problems import cleaned, parsed
from hybridsim.foundation.units import parse_size
from hybridsim.traces.formats.column_reader import ColumnReader
from hybridsim.traces.formats.columns import BLANKS, BOM, COMMENT, OPS, SKIPPED, Field, Table, To
from hybridsim.traces.formats.files import Source
from hybridsim.traces.formats.msr import TICK_NS, TICKS_TO_1970

ROLES = {
    "time": To.TIME,
    "offset": To.OFFSET,
    "length": To.LENGTH,
    "op": To.OP,
    "device": To.DEVICE,
    "latency": To.RESPONSE,
    "process": To.PROCESS,
}
ALIASES = {"size": "length", "volume": "device", "response": "latency", "pid": "process"}
TIME_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
SECTOR_BYTES = 512
SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|", "blanks": " "}
SYMBOLS = frozenset(string.punctuation) - {'"'}
WORDS_OF = (Op.READ, Op.WRITE, Op.DISCARD, Op.FLUSH)
EXAMPLE = "time=ts:us,offset=lba:sectors,length=bytes,op=rw"


@dataclasses.dataclass(frozen=True)
class Mapping:
    """A parsed mapping: for each role its column (a name, or a number from 1) and its field."""

    columns: dict[To, tuple[str, Field]]
    ops: dict[str, Op | None] = dataclasses.field(default_factory=lambda: dict(OPS))
    separator: str | None = None


def read(spec: str) -> Mapping:
    """Return the mapping of a line, or of a TOML file with the same keys and values.

    Raises ColumnsError for an invalid role, column or unit.
    """
    pairs = _of_toml(spec) if spec.endswith(".toml") else _of_line(spec)
    columns: dict[To, tuple[str, Field]] = {}
    ops: dict[str, Op | None] = dict(OPS)
    separator = pairs.pop("separator", None)
    for key, value in pairs.items():
        name = ALIASES.get(key, key)
        if name not in ROLES:
            raise ColumnsError(
                f"--columns: unknown role {key!r}: {hint(key, [*ROLES, 'separator'])}"
            )
        column, _, unit = value.partition(":")
        if not column:
            raise ColumnsError(f"--columns: {key}: the column is missing, as in {EXAMPLE}")
        to = ROLES[name]
        if to in columns:
            raise ColumnsError(f"--columns: the role {name} is specified twice: remove one")
        columns[to] = column, _field(key, to, unit)
        if to == To.OP and unit:
            ops = _ops(unit)
    for needed in ("offset", "length"):
        if ROLES[needed] not in columns:
            raise ColumnsError(f"--columns: {needed} is missing, as in {EXAMPLE}")
    return Mapping(columns, ops, _separator(separator) if separator else None)


def _of_line(line: str) -> dict[str, str]:
    pairs = {}
    for each in line.split(","):
        key, equals, value = each.partition("=")
        if not equals:
            raise ColumnsError(
                f"--columns: {each!r} is not of the form ROLE=COLUMN, as in {EXAMPLE}"
            )
        if key.strip() in pairs:
            raise ColumnsError(f"--columns: {key.strip()} is specified twice: remove one")
        pairs[key.strip()] = value.strip()
    return pairs


def _of_toml(name: str) -> dict[str, str]:
    pairs = parsed(cleaned(whole_text(name, ColumnsError)), name, ColumnsError)
    return {key: str(value) for key, value in pairs.items()}


def _field(key: str, to: To, unit: str) -> Field:
    if to in (To.OP, To.DEVICE, To.PROCESS):
        return Field(to)
    if to in (To.TIME, To.RESPONSE):
        if unit == "filetime":
            return Field(to, TICK_NS, TICKS_TO_1970 if to == To.TIME else 0)
        if unit not in TIME_UNITS:
            raise ColumnsError(
                f"--columns: {key}: specify the unit of the time: {', '.join(TIME_UNITS)} or "
                f"filetime, as in {key}=COLUMN:us"
            )
        return Field(to, TIME_UNITS[unit])
    if unit in ("", "B", "bytes"):
        return Field(to)
    if unit == "sectors":
        return Field(to, SECTOR_BYTES)
    try:
        return Field(to, parse_size(unit if unit[0].isdigit() else f"1{unit}"))
    except ValueError:
        raise ColumnsError(
            f"--columns: {key}: unknown unit {unit!r}: specify bytes, sectors, KiB, or a size: 4KiB"
        ) from None


def _ops(unit: str) -> dict[str, Op | None]:
    """Return the operations of the words for read, write, discard and flush, in this order."""
    words = unit.split("/")
    if not 2 <= len(words) <= len(WORDS_OF) or any(len(word) > 7 for word in words):
        raise ColumnsError(
            f"--columns: op: {unit!r} is not of the form READ/WRITE: specify the words for a read "
            "and a write, as in op=COLUMN:0/1 (optionally followed by those for discard and flush)"
        )
    return {word.lower(): op for word, op in zip(words, WORDS_OF)}


def _separator(value: str) -> str:
    separator = SEPARATORS.get(value, value)
    if separator not in (*SEPARATORS.values(), *SYMBOLS):
        raise ColumnsError(
            f"--columns: separator must be one of {', '.join(SEPARATORS)}, or one character"
        )
    return separator


SNIFFED = ",;\t|"
COLUMNS_MAX = 1000
MEND = (
    "correct --columns: op=COLUMN:R/W/D/F has the words for read, write, discard and flush; dates, "
    "hexadecimal numbers, and commas in numbers must be converted first"
)


def detect(head: bytes) -> bool:
    """Never auto-detected: the columns must be specified."""
    return False


def Reader(  # noqa: N802
    sources: list[Source], device: str | None, use_dispatch: bool, spec: str = ""
) -> ColumnReader:
    """Return the reader of a table whose columns the user specified."""
    if not spec:
        raise ColumnsError(f"--format columns: specify the columns, as in --columns {EXAMPLE}")
    return ColumnReader(table_of(read(spec), sources[0]), sources, device, use_dispatch)


def table_of(mapping: Mapping, source: Source) -> Table:
    """Return the table of a mapping, with the header and separator of the file."""
    lines = [line for line in source.head().splitlines() if line.strip()]
    first = next((line for line in lines if not line.startswith(COMMENT)), b"")
    text = first.decode("utf-8", "backslashreplace").lstrip("\ufeff")
    separator = mapping.separator or likely_separator(text)
    names = [name.strip(' "') for name in fields_of(text, separator)]
    at = None if separator == BLANKS else separator.encode()
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


# The --columns option for a table, suggested from the names of its columns and its first rows.

NAMES = {  # of columns in common tables, without their units, punctuation and capitals
    "time": "time timestamp ts t arrival arrivaltime starttime issuetime when datetime",
    "op": "op opcode operation type rw iotype rwbs direction dir optype cmd command readwrite",
    "offset": "offset off lba lbn slba sector startsector block blkno addr address position pos",
    "length": "length len size bytes nbytes count sectors nsectors blocks iosize requestsize",
    "device": "device dev disk volume vol lun deviceid volumeid disknumber asu devid",
    "latency": "latency lat response responsetime servicetime rt",
    "pid": "pid process processid",
}
ROLE_OF = {name: role for role, names in NAMES.items() for name in names.split()}
PLAIN = re.compile(r"[^\s,:='\"A-Za-z_]*[A-Za-z_][^\s,:='\"]*")  # a name that needs no quotes
UNIT = re.compile(r"[\s_(\[]+(ns|us|ms|s|sec|seconds|bytes|b|kb|kib|sectors)[)\]]?$")
TIMES = {"ns": "ns", "us": "us", "ms": "ms", "s": "s", "sec": "s", "seconds": "s"}
SIZES = {"bytes": "", "b": "", "kb": ":KiB", "kib": ":KiB", "sectors": ":sectors"}
IN_SECTORS = ("lba", "lbn", "slba", "sector", "sectors", "nsectors", "startsector", "blkno")
SINCE_1970 = {10: "s", 13: "ms", 16: "us", 19: "ns", 18: "filetime"}
"""Units of integer times by their digits: since 1970 until 2286, or of Windows since 1601."""
WORDS = ("r read rd get 0 40 28", "w write wr put 1 42 2a", "d discard trim", "f flush sync")
CODES = (("0", "1"), ("40", "42"), ("28", "2a"))
"""Of a read and a write; the latter two are SCSI's READ(10) and WRITE(10)."""
REPLACED = {  # what the names and the first rows do not tell
    ":UNIT": "; replace UNIT by ns, us, ms or s",
    ":READ/WRITE": "; replace READ and WRITE by the words of that column",
}
ROWS = 200


def columns_of_text(head: bytes) -> str:
    """Return the option for a text with a line of names, or "" without an offset and a length."""
    text = head.removeprefix(BOM).decode("utf-8", "replace")
    lines = [line for line in text.splitlines()[: ROWS + 2] if line.strip()]
    lines = [line for line in lines if not line.startswith(COMMENT.decode())]
    if len(lines) < 2 or lines[0].lstrip()[:1] in "{[<":  # JSON, HTML
        return ""
    separator = likely_separator(lines[0])
    names, *rows = (fields_of(line, separator) for line in lines[: ROWS + 1])
    return columns_of([name.strip(' "') for name in names], rows[:-1] or rows)


def columns_of(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return the option for columns, or "" if none is an offset and a length."""
    roles: dict[str, str] = {}
    for index, name in enumerate(names):
        bare, unit = _split(name)
        role = ROLE_OF.get(re.sub(r"[^a-z]", "", bare), "")
        role = "op" if role == "time" and "time" in roles else role  # some tables have TIME and T
        if role and role not in roles:
            values = [row[index].strip(' "') for row in rows if index < len(row)]
            column = name if PLAIN.fullmatch(name) else index + 1
            roles[role] = f"{role}={column}{_unit(role, bare, unit, values)}"
    if not {"offset", "length"} <= roles.keys():
        return ""
    option = "--columns " + quote(",".join(roles[role] for role in NAMES if role in roles))
    return option + "".join(text for word, text in REPLACED.items() if word in option)


def _split(name: str) -> tuple[str, str]:
    """Return a name in small letters without its unit, and the unit, or ""."""
    small = name.lower()
    match = UNIT.search(small)
    return (small[: match.start()], match[1]) if match else (small, "")


def _unit(role: str, bare: str, unit: str, values: Sequence[str]) -> str:
    if role in ("device", "pid"):
        return ""
    if role == "op":
        return _words(values)
    if role in ("time", "latency"):
        return ":" + TIMES.get(unit, _unit_of_times(values) if role == "time" else "UNIT")
    return SIZES.get(unit, ":sectors" if bare in IN_SECTORS else "")


def _unit_of_times(values: Sequence[str]) -> str:
    first = values[0] if values else ""
    whole, point, _ = first.partition(".")
    if not whole.isdigit():
        return "UNIT"
    return SINCE_1970.get(len(whole), "s" if point and len(whole) < 6 else "UNIT")


def _words(values: Sequence[str]) -> str:
    """Return the words for a read, a write, a discard and a flush that differ from the default."""
    seen = dict.fromkeys(value.lower() for value in values)
    if seen and all(word in ("r", "w", "read", "write") for word in seen):
        return ""
    found = [next((word for word in known.split() if word in seen), "") for known in WORDS]
    if seen.keys() - set(found) or not seen:
        return ":READ/WRITE" if seen else ""
    read, write = (word or known.split()[0] for word, known in zip(found[:2], WORDS))
    for pair in CODES:
        if seen.keys() & set(pair):
            read, write = pair
    others = found[2:] if found[3] else found[2:3]
    return ":" + "/".join([read, write, *(word or "-" for word in others if any(found[2:]))])
