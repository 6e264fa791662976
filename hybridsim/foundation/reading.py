"""Read small text files of users: a failure is one error that names the file; JSON in a text."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from hybridsim.foundation.errors import HybridsimError
from hybridsim.foundation.printable import printable

LARGEST_BYTES = 1 << 26  # limit of a text file; files written by hand are 1000 times smaller
_OBJECT = re.compile(r"^[ \t]*(?=\{)", re.MULTILINE)


def whole_text(
    name: str | os.PathLike[str],
    wrong: type[HybridsimError],
    largest_bytes: int = LARGEST_BYTES,
    errors: str = "strict",
) -> str:
    """Return the text of a UTF-8 file; raise `wrong` if it cannot be read or decoded.

    A file larger than `largest_bytes` is refused, and so is an endless device or pipe.
    `errors` specifies how bytes that are not UTF-8 are handled, as in `bytes.decode`.
    """
    shown = printable(name)
    try:
        with Path(name).open("rb") as stream:
            content = stream.read(largest_bytes + 1)
    except OSError as error:
        raise wrong(f"cannot read {shown}: {error.strerror}") from None
    except ValueError:
        raise wrong(f"cannot read {shown}: a file name cannot contain a zero byte") from None
    if len(content) > largest_bytes:
        raise wrong(f"{shown} is larger than {largest_bytes >> 20} MiB: is it the right file?")
    try:
        return content.decode("utf-8", errors)
    except UnicodeDecodeError as error:
        raise wrong(f"{shown} is not UTF-8 text (byte {error.start}): save it as UTF-8") from None


def objects(text: str) -> list[dict[str, Any]]:
    """Return the JSON objects that begin on a line of their own, in order.

    Other lines, such as fio's messages, may stand before, between and behind them.

    Raises ValueError if one of them is cut off or damaged, RecursionError if it is too deep.
    """
    decoder, found, end = json.JSONDecoder(), list[dict[str, Any]](), 0
    for match in _OBJECT.finditer(text):
        if match.end() >= end:  # else it is inside of the last one
            whole, end = decoder.raw_decode(text, match.end())
            found.append(whole)
    return found
