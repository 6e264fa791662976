"""The counters of a core of Open CAS, as casadm prints them.

Each reading stops the cleaner alru for up to a second (hybridsim/docs/model/opencas.md): the twin
of a run reads them at the same times.
"""

from __future__ import annotations

from validate import layout
from validate.collecting import Subject
from validate.errors import RunError


class Statistics:
    """Samples of `casadm --stats`."""

    file = layout.OPEN_CAS
    separator = ","

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def header(self) -> str:
        """Name the columns."""
        return f"Uptime,{self._lines()[0]}"

    def sample(self) -> list[str]:
        """Return one line."""
        return [self._lines()[-1]]

    def _lines(self) -> list[str]:
        output = self._subject.system.run(self._subject.statistics, record=False)
        lines = [line for line in output.splitlines() if line.strip()]
        if len(lines) != 2:
            raise RunError(f"casadm printed {len(lines)} lines: expected a header and one row")
        return lines

    def close(self) -> None:
        """Do nothing: no file is open."""


def of(subject: Subject) -> list[Statistics]:
    """Return the collector for an Open CAS."""
    return [Statistics(subject)] if subject.kind == "open-cas" else []
