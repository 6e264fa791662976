"""A sweep as a TOML file: `[sweep]` has traces and options, `[vary]` varied, `[set]` fixed keys.

[sweep]
scenario = "site.toml"            # relative to this file; or preset = "digitalocean-volume"
traces = ["db.blktrace.0", {path = "fleet.csv.zst", format = "alibaba", device = "7"}]
kind = "pareto"                   # grid (default), random, pareto
points = 200                      # of random and pareto
seeds = 5
objectives = ["mean", "dwpd", "cost"]

[vary]
cache.size = {from = "16GiB", to = "256GiB", steps = 5, scale = "log"}
cache.policy = ["lru", "arc", "learned"]

[set]
backing.members = 8
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any, Literal

from pydantic import Field, ValidationError

from hybridsim.foundation.errors import ScenarioError, UsageError
from hybridsim.foundation.printable import printable
from hybridsim.foundation.reading import whole_text
from hybridsim.foundation.toml.places import Path, Places
from hybridsim.foundation.toml.problems import Problem, cleaned, explain, parsed, report
from hybridsim.scenario import Scenario
from hybridsim.scenario.event import check_no_events
from hybridsim.scenario.overrides import path_of
from hybridsim.storage.drives import Part
from hybridsim.studies.sweep.figures import Objective
from hybridsim.studies.sweep.named_trace import NamedTrace
from hybridsim.studies.sweep.plan import OBJECTIVES, TRIALS, Axis, Plan, Range, axis_of
from hybridsim.traces.trace import GENERATED

MARK = "[sweep]"


class TraceTable(Part):
    """A trace and the options for reading it."""

    path: str | list[str]
    format: str | None = None
    device: str | None = None
    use_dispatch: bool = False


class RangeTable(Part):
    """A range of values."""

    low: str | int | float = Field(alias="from")
    high: str | int | float = Field(alias="to")
    steps: int = Field(0, ge=0)
    scale: Literal["linear", "log"] = "linear"


class SweepTable(Part):
    """Scenario, traces, search and objectives."""

    scenario: str | None = None
    preset: str | None = None
    traces: list[str | TraceTable] = Field(min_length=1)
    kind: Literal["grid", "random", "pareto"] = "grid"
    points: int = Field(TRIALS, ge=1)
    seeds: int = Field(0, ge=0)
    seed: int = Field(1, ge=0)
    objectives: list[str] = Field(list(OBJECTIVES), min_length=1)
    fleet: int | None = Field(None, ge=0)


class SweepFile(Part):
    """All tables of the file."""

    sweep: SweepTable
    vary: dict[str, Any] = Field(default_factory=dict)
    set_: dict[str, Any] = Field(default_factory=dict, alias="set")


def is_plan(path: str) -> bool:
    """Return whether a file is a sweep and not a trace."""
    if not path.endswith(".toml"):
        return False
    try:
        lines = whole_text(path, UsageError).splitlines()
    except UsageError:
        return False
    return any(line.strip().startswith(MARK) for line in lines)


def load(path: str) -> Plan:
    """Read a plan; raise ScenarioError with all its problems and their places."""
    return loads(whole_text(path, UsageError), path)


def loads(text: str, name: str = "sweep.toml") -> Plan:
    """Read a plan from text; paths in it are relative to the file `name`."""
    text = cleaned(text)
    tables = parsed(text, name, ScenarioError)
    origin = _Origin(text, name)
    try:
        file = SweepFile.model_validate(tables)
    except ValidationError as error:
        problems = explain(error, origin, _known_keys, _path_in_text)
        raise ScenarioError(report(problems, "sweep")) from None
    try:
        return _plan(file, FilePath(name).parent, origin)
    except (ScenarioError, UsageError) as error:
        if printable(name) in str(error):
            raise
        raise type(error)(f"{printable(name)}: {error}") from None


def of_tables(tables: Mapping[str, Any]) -> Plan:
    """Return the plan of the tables of such a file, as dictionaries; keys may be dotted.

    Paths are relative to the current folder.  Raises UsageError or ScenarioError with the key.
    """
    origin = _Origin()
    try:
        file = SweepFile.model_validate(dict(tables))
    except ValidationError as error:
        raise UsageError(
            report(explain(error, origin, _known_keys, _path_in_text), "plan")
        ) from None
    return _plan(file, FilePath(), origin)


def _plan(file: SweepFile, folder: FilePath, origin: _Origin) -> Plan:
    table = file.sweep
    scenario = _scenario(table, folder, origin).with_values(dict(_flat(file.set_)))
    axes = []
    for key, choices in _flat(file.vary, is_vary=True):
        try:
            path_of(key)
            axes.append(_axis(key, choices))
        except (ScenarioError, UsageError, ValidationError) as error:
            text = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
            raise ScenarioError(str(origin.problem(("vary", *key.split(".")), text))) from None
    return Plan(
        tuple(_trace(each, folder) for each in table.traces), scenario, tuple(axes), table.kind,
        table.seeds, table.points, table.seed, tuple(map(Objective.parse, table.objectives)),
        table.fleet,
    )  # fmt: skip


def _scenario(table: SweepTable, folder: FilePath, origin: _Origin) -> Scenario:
    if table.scenario and table.preset:
        text = "specify a scenario or a preset, not both: a scenario can name its preset"
        raise ScenarioError(str(origin.problem(("sweep", "preset"), text)))
    if table.scenario:
        scenario = Scenario.load(folder / table.scenario)
        check_no_events(scenario)
        return scenario
    return Scenario.default().with_options(preset=table.preset)


def _trace(entry: str | TraceTable, folder: FilePath) -> NamedTrace:
    table = TraceTable(path=entry) if isinstance(entry, str) else entry
    paths = [table.path] if isinstance(table.path, str) else table.path
    beside = tuple(path if path.startswith(GENERATED) else str(folder / path) for path in paths)
    return NamedTrace.here(beside, table.format, table.device, table.use_dispatch)


def _flat(tables: dict[str, Any], before: str = "", is_vary: bool = False) -> list[tuple[str, Any]]:
    """Return values by dotted key, for `cache.size` as well as for a table `[vary.cache]`."""
    values = []
    for name, value in tables.items():
        key = before + name
        if isinstance(value, dict) and not (is_vary and {"from", "to"} & value.keys()):
            values += _flat(value, key + ".", is_vary)
        else:
            values.append((key, value))
    return values


def _axis(key: str, choices: Any) -> Axis:
    if isinstance(choices, dict):
        table = RangeTable.model_validate(choices)
        return Axis(key, Range(table.low, table.high, table.steps, table.scale == "log"))
    if isinstance(choices, str):
        return axis_of(f"{key}={choices}")
    if not isinstance(choices, list | tuple | range) or not choices:
        raise UsageError(f"{key}: needs a list of values, or {{from = ..., to = ..., steps = ...}}")
    return Axis(key, tuple(choices))


class _Origin:
    """The places of values in the file, for errors; the keys of a plan that is no file."""

    def __init__(self, text: str = "", name: str = "") -> None:
        self._text, self._name, self._places = text, name, Places(text)

    def problem(self, path: Path, message: str, of: Literal["key", "value"] = "value") -> Problem:
        """Return a problem that is located at this path."""
        if not self._name:
            return Problem(message, ".".join(map(str, path)) or "the plan")
        line, column = self._places.line_column(path, of)
        return Problem.at(message, self._text, self._name, line, column)


def _known_keys(path: Path, kind: str = "") -> list[str]:
    table: type[Part] = SweepFile if len(path) == 1 else SweepTable
    if len(path) > 3:
        table = TraceTable
    return [fact.alias or name for name, fact in table.model_fields.items()]


def _path_in_text(loc: Path) -> Path:
    """Return the path without the union member that pydantic inserts for a trace."""
    return tuple(part for part in loc if part not in ("str", "TraceTable"))
