"""dm-cache's status, which is exact; without a flush, which would commit its metadata."""

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
        """Return nothing: the file has none."""
        return ""

    def sample(self) -> list[str]:
        """Return one line."""
        return [line for line in mapped.status(self.subject.mapped) if " cache " in line]

    def close(self) -> None:
        """Nothing is open."""


def of(subject: Subject) -> list[Status]:
    """Return it for a dm-cache."""
    return [Status(subject)] if subject.kind == "dm-cache" else []
