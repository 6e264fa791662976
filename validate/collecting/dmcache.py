"""dm-cache's status, which is exact; read without a flush, which would commit its metadata."""

from __future__ import annotations

from dataclasses import dataclass

from validate import layout, mapped
from validate.collecting import Subject


@dataclass
class Status:
    """Samples of `dmsetup status`."""

    subject: Subject
    file: str = layout.DM_CACHE

    def header(self) -> str:
        """Return "": the file has no header."""
        return ""

    def sample(self) -> list[str]:
        """Return one line."""
        return [line for line in mapped.status(self.subject.mapped) if " cache " in line]

    def close(self) -> None:
        """Do nothing: no file is open."""


def of(subject: Subject) -> list[Status]:
    """Return the collector for a dm-cache."""
    return [Status(subject)] if subject.kind == "dm-cache" else []
