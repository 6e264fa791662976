"""A workload: its loads, which run concurrently, and its end, from a TOML text or from one line.

A line is `gen:KIND,key=value,...`, with several loads joined by `+`.  The keys of the workload
itself (seed, requests, duration) may be in any of the loads.  Errors name their place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from operator import or_
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field, ValidationError

from hybridsim.foundation.errors import WorkloadError
from hybridsim.foundation.reading import whole_text
from hybridsim.foundation.registry import Registry
from hybridsim.foundation.suggest import hint
from hybridsim.foundation.toml.places import Path, Places
from hybridsim.foundation.toml.problems import Problem, cleaned, explain, parsed, report
from hybridsim.foundation.toml.table import Part, Time
from hybridsim.requests.rows import Requests, merged
from hybridsim.workloads import KINDS
from hybridsim.workloads.iometer import Icf, is_icf
from hybridsim.workloads.load import Count, Load, Seed
from hybridsim.workloads.stand_in import StandIn

DEFAULT_REQUESTS = 100_000

TABLES = tuple(Registry(KINDS).values())
AnyLoad: Any = Annotated[reduce(or_, TABLES), Field(discriminator="kind")]


class Workload(Part):
    """The keys of a workload; it ends after `requests` or `duration`."""

    seed: Seed = 1  # random seed: the same seed generates the same requests
    # number of requests: 500, 100k, 10M; default 100k if nothing else ends the load
    requests: Count | None = None
    duration: Time | None = Field(None, gt=0)  # length of the load, as 10m
    load: list[AnyLoad] = Field(min_length=1)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Reject a workload without requests."""
        if self.duration is not None and all(load.begin >= self.duration for load in self.loads):
            yield "duration", "the workload ends before a load begins"

    @property
    def loads(self) -> list[Load | StandIn]:
        """Return the sources of requests of all loads."""
        return [each.load() for each in self.load]

    @property
    def requests_max(self) -> int | None:
        """Return the maximum number of requests, None if there is none."""
        if self.requests is not None or self.duration is not None:
            return self.requests
        return None if all(load.ends for load in self.loads) else DEFAULT_REQUESTS


def generate(workload: Workload) -> Iterator[Requests]:
    """Yield the requests of a workload in order of arrival, in parts of any size."""
    streams = [load.requests(workload.seed, number) for number, load in enumerate(workload.loads)]
    remaining = workload.requests_max
    for part in merged(streams):
        rows = part
        if workload.duration is not None:
            rows = rows.between(0, int(np.searchsorted(rows.arrival_ns, workload.duration)))
        is_last = rows.rows < part.rows
        if remaining is not None:
            rows = rows.between(0, remaining)
            remaining -= rows.rows
        if rows.rows:
            yield rows
        if is_last or remaining == 0:
            return


SCHEME = "gen:"
LINE = "workload"  # the name of a line in errors
WHOLE = ("seed", "requests", "duration")


def read(text: str, name: str) -> Workload:
    """Return the workload of a text; raise WorkloadError with all problems."""
    if text.startswith(SCHEME):
        line = text.strip()
        place = LINE if name.startswith(SCHEME) else name  # a line may be in a file
        tables, places = _of_line(line, place)
        return _checked(*_with_files(tables, Located(line, place, partial(_in_line, places))))
    text = cleaned(text)
    if is_icf(text):
        loads = Icf(text, name).loads({})
        origin = Located(text, name, lambda path, of: (_line_of(path, [at for _, at in loads]), 2))
        return _checked({"load": [table for table, _ in loads]}, origin)
    tables = parsed(text, name, WorkloadError)
    return _checked(*_with_files(tables, Located(text, name, Places(text).line_column)))


class Located(NamedTuple):
    """Locates paths of tables and keys in a text: `place` returns the line and column of one."""

    text: str
    name: str
    place: Callable[[Path, Literal["key", "value"]], tuple[int, int]]

    def problem(self, path: Path, message: str, of: Literal["key", "value"] = "value") -> Problem:
        """Return a problem at the place of a path."""
        return Problem.at(message, self.text, self.name, *self.place(path, of))


def _in_line(places: Mapping[Path, int], path: Path, of: object) -> tuple[int, int]:
    """Return the place of the key of a path, or of what it is in, in a `gen:` line."""
    while path and path not in places:
        path = path[:-1]
    return 1, places.get(path, len(SCHEME)) + 1


def _line_of(path: Path, lines: Sequence[int]) -> int:
    """Return the line of a load's access specification in a file of Iometer."""
    number = path[1] if len(path) > 1 else 0
    return lines[number] if isinstance(number, int) and lines else 1


def _with_files(workload: Mapping[str, Any], origin: Located) -> tuple[Mapping[str, Any], Located]:
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

    def place(path: Path, of: Literal["key", "value"]) -> tuple[int, int]:
        if len(path) > 1 and isinstance(path[1], int):
            path = (path[0], numbers[path[1]], *path[2:])
        return origin.place(path, of)

    return {**workload, "load": tables}, origin._replace(place=place)


def _of_file(table: Mapping[str, Any], number: int, origin: Located) -> list[dict[str, Any]]:
    path = str(table["icf"])
    try:
        text = whole_text(path, WorkloadError, errors="replace")
        if not is_icf(text):
            raise WorkloadError(
                f"{path} is not a configuration file of Iometer, which begins with 'Version'"
            )
    except WorkloadError as error:
        raise WorkloadError(str(origin.problem(("load", number, "icf"), str(error)))) from None
    contents = Icf(text, path)
    try:
        return [each for each, _ in contents.loads(table)]
    except ValueError as error:
        key = "spec" if "access specification" in str(error) else "span"
        raise WorkloadError(str(origin.problem(("load", number, key), str(error)))) from None


def _checked(tables: Mapping[str, Any], origin: Located) -> Workload:
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
        problems = explain(error, origin, tables_of, path_in_text)
        raise WorkloadError(report(dict.fromkeys(problems), "workload")) from None


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


def tables_of(path: Path, kind: str = "") -> Sequence[type[Part]]:
    """Return the table that the path lies in: of that kind of load, or of all."""
    return [Workload] if len(path) == 1 else [Registry(KINDS)[kind]] if kind else TABLES


def path_in_text(loc: Path) -> Path:
    """Drop the kind that pydantic puts into the path of a load."""
    return (*loc[:2], *loc[3:]) if len(loc) > 2 and loc[2] in KINDS else loc
