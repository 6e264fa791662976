"""Parse a workload from a TOML text or from one line; report errors with their place.

A line is `gen:KIND,key=value,...`, with several loads joined by `+`.  The keys of the workload
itself (seed, requests, duration) may be in any of the loads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ValidationError

from hybridsim.foundation.errors import WorkloadError
from hybridsim.foundation.registry import Registry
from hybridsim.foundation.suggest import hint
from hybridsim.foundation.toml.parsing import cleaned, parsed
from hybridsim.foundation.toml.places import Path, Places
from hybridsim.foundation.toml.problems import Locates, Problem, explain, report
from hybridsim.workloads import KINDS, icf
from hybridsim.workloads.imported import of_icf, with_files
from hybridsim.workloads.workload import TABLES, Workload

SCHEME = "gen:"
LINE = "workload"  # the name of a line in errors
WHOLE = ("seed", "requests", "duration")


def read(text: str, name: str) -> Workload:
    """Return the workload of a text; raise WorkloadError with all problems."""
    if text.startswith(SCHEME):
        line = text.strip()
        place = LINE if name.startswith(SCHEME) else name  # a line may be in a file
        tables, places = _of_line(line, place)
        return _checked(*with_files(tables, OfLine(line, places, place)))
    text = cleaned(text)
    if icf.detect(text):
        return _checked(*of_icf(text, name))
    return _checked(*with_files(parsed(text, name, WorkloadError), OfToml(text, name)))


def _checked(tables: Mapping[str, Any], origin: Locates) -> Workload:
    problems = []
    loads = tables.get("load")
    for number, load in enumerate(loads if isinstance(loads, list) else []):
        if isinstance(load, dict) and load.get("kind") not in KINDS:
            path: Path = ("load", number, "kind")
            word = load.get("kind")
            what = "specify the kind of load" if word is None else f"unknown kind of load {word!r}"
            problems.append(origin.problem(path, f"{what}: {hint(str(word), KINDS)}"))
    if problems:
        raise WorkloadError(report(problems, "workload"))
    try:
        return Workload.model_validate(tables)
    except ValidationError as error:
        problems = explain(error, origin, known_keys, path_in_text)
        raise WorkloadError(report(dict.fromkeys(problems), "workload")) from None


class OfToml:
    """Locates paths in a TOML text."""

    def __init__(self, text: str, name: str) -> None:
        self._text = text
        self._name = name
        self._places = Places(text)

    def problem(self, path: Path, message: str, of: Literal["key", "value"] = "value") -> Problem:
        """Return a problem at the line and column of a path."""
        line, column = self._places.line_column(path, of)
        return Problem.at(message, self._text, self._name, line, column)


class OfLine:
    """Locates paths in a line."""

    def __init__(self, text: str, places: Mapping[Path, int], name: str = LINE) -> None:
        self._text, self._name = text, name
        self._places = places

    def problem(self, path: Path, message: str, of: Literal["key", "value"] = "value") -> Problem:
        """Return a problem at the column of a path."""
        while path and path not in self._places:
            path = path[:-1]
        column = self._places.get(path, len(SCHEME)) + 1
        return Problem.at(message, self._text, self._name, 1, column)


def _of_line(text: str, name: str) -> tuple[dict[str, Any], dict[Path, int]]:
    """Return the tables of a line, and the position of each key."""
    tables: dict[str, Any] = {"load": []}
    places: dict[Path, int] = {}
    at = len(SCHEME)
    for number, load in enumerate(text[len(SCHEME) :].split("+")):
        table: dict[str, str] = {}
        for field in load.split(","):
            key, equals, value = field.partition("=")
            key = key.strip()
            path: Path = (key,) if key in WHOLE else ("load", number, key)
            if not equals and not table:
                path, key, value = ("load", number, "kind"), "kind", key
            elif not equals:
                problem = Problem.at(
                    f"{field!r} is not of the form key=value", text, name, 1, at + 1
                )
                raise WorkloadError(str(problem))
            places[path] = at
            (tables if key in WHOLE else table)[key] = value.strip()
            at += len(field) + 1
        places["load", number] = at - len(load) - 1
        tables["load"].append(table)
    return tables, places


def known_keys(path: Path, kind: str = "") -> list[str]:
    """Return the keys of the table that the path lies in: of that kind of load, or of all."""
    tables = [Workload] if len(path) == 1 else [Registry(KINDS)[kind]] if kind else TABLES
    known = {
        fact.alias or name: None for table in tables for name, fact in table.model_fields.items()
    }
    return list(known)


def path_in_text(loc: Path) -> Path:
    """Drop the kind that pydantic puts into the path of a load."""
    return (*loc[:2], *loc[3:]) if len(loc) > 2 and loc[2] in KINDS else loc
