"""Export of a sweep's records as JSONL, CSV or Parquet, by the suffix of the file.

To add a file type: a function that returns its bytes, and a line in WRITERS.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.suggest import hint
from hybridsim.foundation.writing import whole_file

Records = Sequence[dict[str, Any]]


def _jsonl(records: Records) -> bytes:
    return "".join(json.dumps(each, allow_nan=False) + "\n" for each in records).encode()


def _csv(records: Records) -> bytes:
    text = io.StringIO()
    names = list(dict.fromkeys(name for each in records for name in each))
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue().encode()


def _parquet(records: Records) -> bytes:
    import pyarrow
    import pyarrow.parquet

    names = list(dict.fromkeys(name for each in records for name in each))
    columns = {name: _column([each.get(name) for each in records]) for name in names}
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), file, compression="zstd")
    return file.getvalue()


def _column(values: list[Any]) -> list[Any]:
    """Return values of one type: text if numbers and text are mixed."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) > 1 and kinds <= {int, float}:
        return [None if value is None else float(value) for value in values]
    if len(kinds) > 1 or kinds & {list, dict}:
        return [None if value is None else str(value) for value in values]
    return values


WRITERS: dict[str, Callable[[Records], bytes]] = {
    ".jsonl": _jsonl,
    ".csv": _csv,
    ".parquet": _parquet,
}


def check(file: str) -> None:
    """Raise UsageError early for a file that could not be written at the end."""
    suffix = Path(file).suffix
    if suffix not in WRITERS:
        raise UsageError(f"-o {file}: unknown file type: {hint(suffix, WRITERS)}")
    if suffix == ".parquet":
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise UsageError(
                f"-o {file} needs pyarrow: pip install 'hybridsim[parquet]'; "
                ".jsonl and .csv need no extra package"
            ) from None


def write(records: Records, file: str) -> None:
    """Write records to a file; raise UsageError if this fails."""
    data = WRITERS[Path(file).suffix](records)
    with whole_file(file) as stream:
        stream.write(data)
