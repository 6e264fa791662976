"""The load of the machine: a busy machine makes measurements noisy."""

from __future__ import annotations

from dataclasses import dataclass

from validate import layout
from validate.collecting import Subject


@dataclass
class HostLoad:
    """Load averages, and time of all processors in ticks."""

    subject: Subject
    file: str = layout.HOST_LOAD
    separator: str = " "

    def header(self) -> str:
        """Name the columns."""
        return "uptime load1 load5 load15 running/all last_pid user nice system idle iowait steal"

    def sample(self) -> list[str]:
        """Return one line."""
        system = self.subject.system
        ticks = system.read(system.proc / "stat").splitlines()[0].split()
        chosen = [ticks[at] for at in (1, 2, 3, 4, 5, 8)]
        return [f"{system.read(system.proc / 'loadavg')} {' '.join(chosen)}"]

    def close(self) -> None:
        """Do nothing: no file is open."""


def of(subject: Subject) -> list[HostLoad]:
    """Return the collector: it applies to all subjects."""
    return [HostLoad(subject)]
