"""Parse fio job files that are available as text."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hybridsim.workloads.fio.jobfile import Written, read_file


def written(job: str) -> Written:
    """Return the parsed text of a job file."""
    parsed = Written()
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / "job.fio"
        path.write_text(job, encoding="utf-8")
        read_file(str(path), parsed)
    return parsed
