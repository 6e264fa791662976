"""A workload from a TOML text, or from one line; what is wrong with it is told with its place.

A line is `gen:KIND,key=value,...`, several loads joined with `+`.  Keys of the workload as a whole
(seed, requests, duration) may stand in any of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ValidationError

from hybridsim.foundation.errors import WorkloadError
from hybridsim.foundation.suggest import hint
from hybridsim.foundation.toml.parsing import cleaned, parsed
from hybridsim.foundation.toml.places import Path, Places
from hybridsim.foundation.toml.problems import Locates, Problem, explain, report
from hybridsim.workloads import KINDS, icf
from hybridsim.workloads.imported import of_icf, with_files
from hybridsim.workloads.workload import TABLES, Workload

SCHEME = "gen:"
LINE = "workload"  # how errors call it
WHOLE = ("seed", "requests", "duration")


def read(text: str, name: str) -> Workload:
    """Return the workload that a text says."""
    if text.startswith(SCHEME):
        line = text.strip()
        place = LINE if name.startswith(SCHEME) else name  # a line may stand in a file
        said, places = _of_line(line, place)
        return _checked(*with_files(said, OfLine(line, places, place)))
    text = cleaned(text)
    if icf.detect(text):
        return _checked(*of_icf(text, name))
    return _checked(*with_files(parsed(text, name, WorkloadError), OfToml(text, name)))


def _checked(said: Mapping[str, Any], origin: Locates) -> Workload:
    problems = []
    loads = said.get("load")
    for number, load in enumerate(loads if isinstance(loads, list) else []):
        if isinstance(load, dict) and load.get("kind") not in KINDS:
            path: Path = ("load", number, "kind")
            word = load.get("kind")
            what = "say the kind of load" if word is None else f"no kind of load {word!r}"
            problems.append(origin.problem(path, f"{what}: {hint(str(word), KINDS)}"))
    if problems:
        raise WorkloadError(report(problems, "workload"))
    try:
        return Workload.model_validate(said)
    except ValidationError as error:
        found = explain(error, origin, known_keys, path_in_text)
        raise WorkloadError(report(dict.fromkeys(found), "workload")) from None


class OfToml:
    """Where a TOML text says things."""

    def __init__(self, text: str, name: str) -> None:
        self._text = text
        self._name = name
        self._places = Places(text)

    def problem(self, path: Path, message: str, of: Literal["key", "value"] = "value") -> Problem:
        """Return a problem with its line."""
        line, column = self._places.line_column(path, of)
        return Problem.at(message, self._text, self._name, line, column)


class OfLine:
    """Where a line says things."""

    def __init__(self, text: str, places: Mapping[Path, int], name: str = LINE) -> None:
        self._text, self._name = text, name
        self._places = places

    def problem(self, path: Path, message: str, of: Literal["key", "value"] = "value") -> Problem:
        """Return a problem with its column."""
        while path and path not in self._places:
            path = path[:-1]
        column = self._places.get(path, len(SCHEME)) + 1
        return Problem.at(message, self._text, self._name, 1, column)


def _of_line(text: str, name: str) -> tuple[dict[str, Any], dict[Path, int]]:
    """Return what a line says as tables, and where each key stands."""
    said: dict[str, Any] = {"load": []}
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
                    f"{field!r} says nothing: write key=value", text, name, 1, at + 1
                )
                raise WorkloadError(str(problem))
            places[path] = at
            (said if key in WHOLE else table)[key] = value.strip()
            at += len(field) + 1
        places["load", number] = at - len(load) - 1
        said["load"].append(table)
    return said, places


def known_keys(path: Path) -> list[str]:
    """Return the keys of the table that the path lies in."""
    tables = [Workload] if len(path) == 1 else TABLES
    known = {
        fact.alias or name: None for table in tables for name, fact in table.model_fields.items()
    }
    return list(known)


def path_in_text(loc: Path) -> Path:
    """Drop the kind that pydantic puts into the path of a load."""
    return (*loc[:2], *loc[3:]) if len(loc) > 2 and loc[2] in KINDS else loc
