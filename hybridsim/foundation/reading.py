"""Small files that users write: their text, or the one error that names the file."""

from __future__ import annotations

import os
from pathlib import Path

from hybridsim.foundation.errors import HybridsimError
from hybridsim.foundation.printable import printable

LARGEST_BYTES = 1 << 26  # of a text that is read whole; what people write has a thousandth


def whole_text(
    name: str | os.PathLike[str],
    wrong: type[HybridsimError],
    largest_bytes: int = LARGEST_BYTES,
    errors: str = "strict",
) -> str:
    """Return the text of a file in UTF-8; raise `wrong` where there is none.

    A file larger than `largest_bytes` is refused, and so is a device or a pipe without end.
    `errors` says what becomes of bytes that are no UTF-8, as in `bytes.decode`.
    """
    shown = printable(name)
    try:
        with Path(name).open("rb") as stream:
            content = stream.read(largest_bytes + 1)
    except OSError as error:
        raise wrong(f"cannot read {shown}: {error.strerror}") from None
    except ValueError:
        raise wrong(f"cannot read {shown}: a name of a file has no zero bytes") from None
    if len(content) > largest_bytes:
        raise wrong(f"{shown} is larger than {largest_bytes >> 20} MiB: is it the right file?")
    try:
        return content.decode("utf-8", errors)
    except UnicodeDecodeError as error:
        raise wrong(f"{shown} is not UTF-8 text (byte {error.start}): save it as UTF-8") from None
