"""The status of a dm-cache or dm-writecache, which is exact.

It is read without a flush, which would commit the cache's metadata.
"""

from __future__ import annotations

from dataclasses import dataclass

from validate import layout, mapped
from validate.collecting import Subject

FILES = {"dm-cache": layout.DM_CACHE, "dm-writecache": layout.WRITECACHE}
TARGETS = (" cache ", " writecache ")


@dataclass
class Status:
    """Samples of `dmsetup status`."""

    subject: Subject
    file: str
    separator: str = " "

    def header(self) -> str:
        """Return "": the file has no header."""
        return ""

    def sample(self) -> list[str]:
        """Return one line."""
        lines = mapped.status(self.subject.mapped)
        return [line for line in lines if any(target in line for target in TARGETS)]

    def close(self) -> None:
        """Do nothing: no file is open."""


def of(subject: Subject) -> list[Status]:
    """Return the collector for a mapped cache."""
    return [Status(subject, FILES[subject.kind])] if subject.kind in FILES else []
