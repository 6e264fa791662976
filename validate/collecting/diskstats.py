"""The kernel's counters of the devices, as /proc/diskstats has them."""

from __future__ import annotations

from dataclasses import dataclass

from validate import layout
from validate.collecting import Subject


@dataclass
class Diskstats:
    """The lines of some devices."""

    subject: Subject
    file: str = layout.DISKSTATS

    def header(self) -> str:
        """Return nothing: the file has none."""
        return ""

    def sample(self) -> list[str]:
        """Return their lines."""
        system, wanted = self.subject.system, set(self.subject.numbers.values())
        lines = system.read(system.proc / "diskstats").splitlines()
        return [line for line in lines if ":".join(line.split()[:2]) in wanted]

    def close(self) -> None:
        """Nothing is open."""


def of(subject: Subject) -> list[Diskstats]:
    """Return it: it suits every subject."""
    return [Diskstats(subject)]
