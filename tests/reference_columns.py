"""The naive parser of a line of columns, with which traces/formats/line_parser.py must agree."""

from __future__ import annotations

import re
from fractions import Fraction

from hybridsim.foundation.codes import Op
from hybridsim.traces.formats.columns import BLANKS, NUMBERS, Table, To
from hybridsim.traces.formats.line_parser import LENGTH_MAX, PLACES, RESPONSE_MAX_NS, limit_of

NUMBER = re.compile(r"(\d{1,19})(?:\.(\d*))?(?:[eE]([+-]?\d{1,3}))?")
EXPONENT_MAX = 99
HEXADECIMAL = re.compile(r"[0-9a-fA-F]+")


def parse_line(table: Table, text: str) -> tuple[object, ...] | str:
    """Return (time, offset, length, op, device, response, process), or why it is malformed."""
    values = values_of(table, fields_of(table, text))
    if values is None:
        stripped = text.lstrip(' "\r' if table.separator == "\t" else ' "\r\t')
        return "blank" if stripped[:1] in ("", "#") else "malformed"
    if values[To.OP] is None:
        return "no direction"
    if values[To.LENGTH] == 0 and values[To.OP] != Op.FLUSH:
        return "empty"
    response = values[To.RESPONSE]
    return (
        values[To.TIME],
        values[To.OFFSET],
        values[To.LENGTH],
        int(values[To.OP]),
        values[To.DEVICE],
        -1 if response > RESPONSE_MAX_NS else response,
        values[To.PROCESS],
    )


def is_unknown(table: Table, text: str) -> bool:
    """Return whether a response time says that it is unknown."""
    return text[:1] in ("-", "n", "N") or (not text and table.separator != BLANKS)


def fields_of(table: Table, text: str) -> list[str] | None:
    """Split a line into one field per column; None if it has too few."""
    if table.separator == BLANKS:
        fields = text.replace('"', " ").split()
    else:
        fields = [each.strip(' "\r' + "\t" * (table.separator != "\t")) for each in
                  text.split(table.separator)]  # fmt: skip
    more = len(fields) - len(table.fields)
    if table.elastic >= 0 and more > 0:
        stretched = fields[table.elastic : table.elastic + more + 1]
        fields[table.elastic : table.elastic + more + 1] = [" ".join(stretched)]
        more = 0
    if more < 0 or (more > 0 and table.exact):
        return None
    return fields[: len(table.fields)]


def values_of(table: Table, fields: list[str] | None) -> dict[To, object] | None:
    if fields is None:
        return None
    values: dict[To, object] = {
        To.TIME: 0, To.OFFSET: 0, To.LENGTH: 0, To.OP: Op.READ,
        To.DEVICE: (), To.RESPONSE: -1, To.PROCESS: -1,
    }  # fmt: skip
    for text, field in zip(fields, table.fields):
        if field.to in NUMBERS:
            match = NUMBER.fullmatch(text)
            if field.to == To.RESPONSE and is_unknown(table, text):
                continue
            if match is None:
                return None
            if match[3] is not None:
                if abs(int(match[3])) > EXPONENT_MAX:
                    return None
                exact = Fraction(text) - field.zero
                if not 0 <= exact <= limit_of(field.to) // field.scale:
                    return None
                values[field.to] = round(exact * field.scale)
                continue
            value = int(match[1]) - field.zero
            if not 0 <= value <= limit_of(field.to) // field.scale:
                return None
            part = (match[2] or "")[:PLACES]
            values[field.to] = value * field.scale + int(part or 0) * field.scale // 10 ** len(part)
        elif field.to == To.OP:
            if text.lower() not in table.ops:
                return None
            values[To.OP] = table.ops[text.lower()]
        elif field.to == To.LOW_BIT:
            if not HEXADECIMAL.fullmatch(text):
                return None
            values[To.OP] = Op.READ if int(text, 16) & 1 else Op.WRITE
        elif field.to == To.DEVICE:
            if any(letter in text for letter in '"\r\t'):
                return None
            values[To.DEVICE] = (*values[To.DEVICE], text)  # type: ignore[misc]
    assert values[To.LENGTH] <= LENGTH_MAX  # type: ignore[operator]
    return values
