"""Loads from the files of other tools: they replace the table that names the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from hybridsim.foundation.errors import WorkloadError
from hybridsim.foundation.reading import whole_text
from hybridsim.foundation.toml.problems import Locates, Path, Problem
from hybridsim.workloads import icf
from hybridsim.workloads.icf_loads import LoadTable, loads


class OfIcf:
    """Locates loads in such a file."""

    def __init__(self, text: str, name: str, tables: Sequence[LoadTable]) -> None:
        self._text, self._name, self._tables = text, name, tables

    def problem(self, path: Path, message: str, of: Literal["key", "value"] = "value") -> Problem:
        """Return a problem at the line of a load's access specification."""
        number = path[1] if len(path) > 1 else 0
        line = self._tables[number].line if isinstance(number, int) and self._tables else 1
        return Problem.at(message, self._text, self._name, line, 2)


class Renumbered:
    """Locates loads that were expanded from one table."""

    def __init__(self, origin: Locates, numbers: Sequence[int]) -> None:
        self._origin, self._numbers = origin, numbers

    def problem(self, path: Path, message: str, of: Literal["key", "value"] = "value") -> Problem:
        """Return a problem at the place of the original table."""
        if len(path) > 1 and isinstance(path[1], int):
            path = (path[0], self._numbers[path[1]], *path[2:])
        return self._origin.problem(path, message, of)


def of_icf(text: str, name: str) -> tuple[dict[str, Any], Locates]:
    """Return the loads of a file's tests, and their locator."""
    tables = loads(icf.read(text, name), {})
    return {"load": [each.table for each in tables]}, OfIcf(text, name, tables)


def with_files(workload: Mapping[str, Any], origin: Locates) -> tuple[Mapping[str, Any], Locates]:
    """Return a workload in which tables that name a file are replaced by the file's loads."""
    specified = workload.get("load")
    if not isinstance(specified, list):
        return workload, origin
    tables: list[Any] = []
    numbers: list[int] = []
    for number, table in enumerate(specified):
        is_file = isinstance(table, dict) and table.get("kind") == "iometer" and table.get("icf")
        expanded = _of_file(table, number, origin) if is_file else [table]
        tables += expanded
        numbers += [number] * len(expanded)
    return {**workload, "load": tables}, Renumbered(origin, numbers)


def _of_file(table: Mapping[str, Any], number: int, origin: Locates) -> list[dict[str, Any]]:
    path = str(table["icf"])
    try:
        text = whole_text(path, WorkloadError, errors="replace")
    except WorkloadError as error:
        raise WorkloadError(str(origin.problem(("load", number, "icf"), str(error)))) from None
    if not icf.detect(text):
        message = f"{path} is not a configuration file of Iometer, which begins with 'Version'"
        raise WorkloadError(str(origin.problem(("load", number, "icf"), message)))
    try:
        return [each.table for each in loads(icf.read(text, path), table)]
    except ValueError as error:
        key = "spec" if "access specification" in str(error) else "span"
        raise WorkloadError(str(origin.problem(("load", number, key), str(error)))) from None
