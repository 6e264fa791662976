"""The kernel's counters of the devices, from /proc/diskstats."""

from __future__ import annotations

from dataclasses import dataclass

from validate import layout
from validate.collecting import Subject


@dataclass
class Diskstats:
    """The lines of the subject's devices."""

    subject: Subject
    file: str = layout.DISKSTATS
    separator: str = " "

    def header(self) -> str:
        """Return "": the file has no header."""
        return ""

    def sample(self) -> list[str]:
        """Return one line for each device."""
        system, wanted = self.subject.system, set(self.subject.numbers.values())
        lines = system.read(system.proc / "diskstats").splitlines()
        return [line for line in lines if ":".join(line.split()[:2]) in wanted]

    def close(self) -> None:
        """Do nothing: no file is open."""


def of(subject: Subject) -> list[Diskstats]:
    """Return the collector: it applies to all subjects."""
    return [Diskstats(subject)]
