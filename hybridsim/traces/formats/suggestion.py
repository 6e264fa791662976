"""The --columns option for a table, suggested from the names of its columns and its first rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from shlex import quote

from hybridsim.traces.formats.columns import BOM, COMMENT
from hybridsim.traces.formats.mapped_text import fields_of, likely_separator

NAMES = {  # of columns in common tables, without their units, punctuation and capitals
    "time": "time timestamp ts t arrival arrivaltime starttime issuetime when datetime",
    "op": "op opcode operation type rw iotype rwbs direction dir optype cmd command readwrite",
    "offset": "offset off lba lbn slba sector startsector block blkno addr address position pos",
    "length": "length len size bytes nbytes count sectors nsectors blocks iosize requestsize",
    "device": "device dev disk volume vol lun deviceid volumeid disknumber asu devid",
    "latency": "latency lat response responsetime servicetime rt",
    "pid": "pid process processid",
}
ROLES = {name: role for role, names in NAMES.items() for name in names.split()}
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
        role = ROLES.get(re.sub(r"[^a-z]", "", bare), "")
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
