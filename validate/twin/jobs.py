"""Job files of fio that are at hand as text."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hybridsim.workloads.fio.jobfile import Written, read_file


def written(job: str) -> Written:
    """Return what the text of a job file says."""
    found = Written()
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / "job.fio"
        path.write_text(job, encoding="utf-8")
        read_file(str(path), found)
    return found
