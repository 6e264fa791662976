"""The user's mapping of the columns of a table: `time=ts:us,offset=lba:sectors,...`."""

from __future__ import annotations

import string
from dataclasses import dataclass, field

from hybridsim.foundation.codes import Op
from hybridsim.foundation.errors import ColumnsError
from hybridsim.foundation.reading import whole_text
from hybridsim.foundation.suggest import hint
from hybridsim.foundation.toml.parsing import cleaned, parsed
from hybridsim.foundation.units import parse_size
from hybridsim.traces.formats.columns import OPS, Field, To
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


@dataclass(frozen=True)
class Mapping:
    """A parsed mapping: for each role its column (a name, or a number from 1) and its field."""

    columns: dict[To, tuple[str, Field]]
    ops: dict[str, Op | None] = field(default_factory=lambda: dict(OPS))
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
    text = cleaned(whole_text(name, ColumnsError))
    pairs = parsed(text, name, ColumnsError)
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
