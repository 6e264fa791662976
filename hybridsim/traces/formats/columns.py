"""Tables of the columns of text formats, which make the definition of a format a few lines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from hybridsim.foundation.codes import Op

LINES_SEEN = 20
SECTOR_BYTES = 512
SECOND_NS = 10**9
COMMENT = b"#"
BOM = b"\xef\xbb\xbf"  # Windows programs write it at the start of a text


class To(IntEnum):
    """The meaning of a field of a line; TIME to PROCESS are numbers."""

    NOTHING = 0
    TIME = 1
    OFFSET = 2
    LENGTH = 3
    RESPONSE = 4  # time from arrival to completion
    PROCESS = 5
    OP = 6  # a word of Table.ops
    LOW_BIT = 7  # a hexadecimal number, odd for a read
    DEVICE = 8  # adjacent fields of this kind form one name


NUMBERS = (To.TIME, To.OFFSET, To.LENGTH, To.RESPONSE, To.PROCESS)


@dataclass(frozen=True)
class Field:
    """One field; a number means `(number - zero) * scale` nanoseconds or bytes, with decimals."""

    to: To
    scale: int = 1
    zero: int = 0


SKIPPED = Field(To.NOTHING)
OPS: Mapping[str, Op | None] = {"r": Op.READ, "w": Op.WRITE, "read": Op.READ, "write": Op.WRITE}
BITS: Mapping[str, Op | None] = {"0": Op.READ, "1": Op.WRITE}
BLANKS = " "  # as a separator: any run of blanks and tabs


@dataclass(frozen=True)
class Table:
    """A text format with one request per line.

    `line` is the regular expression of a line, for detection.  The field with index `elastic` may
    contain separators: it is delimited from the right.  A line may have more fields unless `exact`.
    The words of `ops` match in any case; a word with None marks a line that is not a request.
    """

    name: str
    separator: str
    fields: tuple[Field, ...]
    line: bytes = b"(?!)"
    header: bytes = b""
    ops: Mapping[str, Op | None] = field(default_factory=lambda: OPS)
    elastic: int = -1
    exact: bool = True
    since_1970: bool | None = False  # None: decided by the magnitude of the times
    # Whether the requests of a second are spread evenly over it; None: decided by the times.
    whole_seconds: bool | None = False
    joined_by: str = "_"  # between the fields of a device name
    mend: str = "try another --format"  # where lines are malformed

    def has(self, what: To) -> bool:
        """Return whether a field has this meaning."""
        return any(each.to == what for each in self.fields)

    def detects(self, head: bytes) -> bool:
        """Return whether the first lines are of this format, after a header and comments.

        A header alone is a trace without requests.
        """
        first = head.removeprefix(BOM).split(b"\n")[: LINES_SEEN + 1]
        whole = first[:-1] if len(first) > 1 else first
        lines = [line.strip() for line in whole]
        lines = [line for line in lines if line and not line.startswith(COMMENT)]
        has_header = bool(lines and self.header) and lines[0].lower() == self.header.lower()
        like = re.compile(self.line)
        return bool(lines) and all(like.fullmatch(line) for line in lines[has_header:])
