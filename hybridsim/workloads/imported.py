"""Loads that another tool's file says: they take the place of the table that names the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from hybridsim.foundation.errors import WorkloadError
from hybridsim.foundation.reading import whole_text
from hybridsim.foundation.toml.problems import Locates, Path, Problem
from hybridsim.workloads import icf
from hybridsim.workloads.icf_loads import Made, loads


class OfIcf:
    """Where such a file says things."""

    def __init__(self, text: str, name: str, made: Sequence[Made]) -> None:
        self._text, self._name, self._made = text, name, made

    def problem(self, path: Path, message: str, of: Literal["key", "value"] = "value") -> Problem:
        """Return a problem with the line of its load's access specification."""
        number = path[1] if len(path) > 1 else 0
        line = self._made[number].line if isinstance(number, int) and self._made else 1
        return Problem.at(message, self._text, self._name, line, 2)


class Renumbered:
    """Where loads were said that are several now."""

    def __init__(self, origin: Locates, numbers: Sequence[int]) -> None:
        self._origin, self._numbers = origin, numbers

    def problem(self, path: Path, message: str, of: Literal["key", "value"] = "value") -> Problem:
        """Return a problem with the place of its load."""
        if len(path) > 1 and isinstance(path[1], int):
            path = (path[0], self._numbers[path[1]], *path[2:])
        return self._origin.problem(path, message, of)


def of_icf(text: str, name: str) -> tuple[dict[str, Any], Locates]:
    """Return the loads of a file's tests, and where they are said."""
    made = loads(icf.read(text, name), {})
    return {"load": [each.table for each in made]}, OfIcf(text, name, made)


def with_files(said: Mapping[str, Any], origin: Locates) -> tuple[Mapping[str, Any], Locates]:
    """Return what was said, with the loads of files in it."""
    given = said.get("load")
    if not isinstance(given, list):
        return said, origin
    tables: list[Any] = []
    numbers: list[int] = []
    for number, table in enumerate(given):
        is_file = isinstance(table, dict) and table.get("kind") == "iometer" and table.get("icf")
        found = _of_file(table, number, origin) if is_file else [table]
        tables += found
        numbers += [number] * len(found)
    return {**said, "load": tables}, Renumbered(origin, numbers)


def _of_file(table: Mapping[str, Any], number: int, origin: Locates) -> list[dict[str, Any]]:
    path = str(table["icf"])
    try:
        text = whole_text(path, WorkloadError, errors="replace")
    except WorkloadError as error:
        raise WorkloadError(str(origin.problem(("load", number, "icf"), str(error)))) from None
    if not icf.detect(text):
        message = f"{path} is no configuration file of Iometer: those begin with 'Version'"
        raise WorkloadError(str(origin.problem(("load", number, "icf"), message)))
    try:
        return [each.table for each in loads(icf.read(text, path), table)]
    except ValueError as error:
        key = "spec" if "access specification" in str(error) else "span"
        raise WorkloadError(str(origin.problem(("load", number, key), str(error)))) from None
