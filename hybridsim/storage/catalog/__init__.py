"""Drives as data: one TOML file per drive, in the folder of its kind.

A file has the drive's full name and a table `is` of rows `key = [value, mark, source]`; the keys
are those of `storage/drives/KIND.py`.  The mark is the provenance of the value: `read` in a
published text, `measured` on a drive, `fitted` to a measurement, `assumed`, or `recalled` from a
datasheet that was not available for checking.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from hybridsim.foundation.errors import ScenarioError
from hybridsim.foundation.suggest import hint

FOLDER = Path(__file__).parent
SYSTEM = "system"  # the folder of complete systems; each other folder is a kind of drive
KINDS = tuple(sorted({path.parent.name for path in FOLDER.glob("*/*.toml")} - {SYSTEM}))
MARKS = ("read", "measured", "fitted", "assumed", "recalled")


class Row(NamedTuple):
    """One value of a drive, with its provenance."""

    value: str | int | list[Any]  # a list is a table, such as that of seek times
    mark: str
    source: str

    @property
    def scalar(self) -> str | int:
        """The value of a row that is not a table; raises TypeError for a table."""
        if isinstance(self.value, list):
            raise TypeError("a table, not a value")
        return self.value


class Entry(NamedTuple):
    """A drive of the catalog."""

    key: str  # its name in scenarios
    kind: str
    name: str
    rows: dict[str, Row]


def names(kind: str | None = None) -> list[str]:
    """Return the names of the drives of one kind, or of all kinds."""
    kinds = KINDS if kind is None else (kind,)
    return [path.stem for each in kinds for path in sorted((FOLDER / each).glob("*.toml"))]


def systems() -> list[str]:
    """Return the names of the complete systems: the presets of scenarios."""
    return sorted(path.stem for path in (FOLDER / SYSTEM).glob("*.toml"))


@cache
def load(name: str) -> Entry:
    """Return the drive of this name.

    Raises ScenarioError, with a suggestion, if there is none; also for a value without a mark, or
    without a source.
    """
    if name not in names():
        raise ScenarioError(f"unknown drive {name!r}: {hint(name, names())}")
    kind = next(kind for kind in KINDS if name in names(kind))
    file = FOLDER / kind / f"{name}.toml"
    text = tomllib.loads(file.read_text(encoding="utf-8"))
    rows = {key: Row(*row) for key, row in text["is"].items()}
    for key, row in rows.items():
        if row.mark not in MARKS:
            raise ScenarioError(
                f"{file}: {key}: {row.mark!r} is none of the marks {', '.join(MARKS)}"
            )
        if not row.source and row.mark != "assumed":
            raise ScenarioError(f"{file}: {key}: {row.mark!r} needs a source, as its third value")
    return Entry(name, kind, text["name"], rows)
