"""The plan of a sweep: the keys of a scenario, traces and seeds it varies; ranges of values.

As a TOML file, `[sweep]` has traces and options, `[vary]` varied, `[set]` fixed keys:

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

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, Literal, NamedTuple

from pydantic import Field, ValidationError

from hybridsim.foundation.errors import ScenarioError, UsageError
from hybridsim.foundation.printable import printable
from hybridsim.foundation.reading import whole_text
from hybridsim.foundation.toml.places import Path
from hybridsim.foundation.toml.problems import cleaned, explain, report
from hybridsim.foundation.toml.table import Part
from hybridsim.foundation.units import (
    format_rate,
    format_size,
    format_time,
    parse_percent,
    parse_rate,
    parse_size,
    parse_time,
)
from hybridsim.scenario import Scenario
from hybridsim.scenario.event import check_no_events
from hybridsim.scenario.origin import Origin, path_of, value_of, values_of
from hybridsim.studies.sweep.figures import Objective
from hybridsim.studies.sweep.named_trace import NamedTrace
from hybridsim.traces.trace import GENERATED

EXAMPLE = "1GiB..64GiB:7:log"
STEPS_MAX = 10_000
ROUND_BYTES = 4096  # sizes inside of a range are rounded to blocks


class Quantity(NamedTuple):
    """Parser and formatter of values of one kind."""

    read: Callable[[Any], float]
    written: Callable[[float], Any]


def _size(number: float) -> str:
    size = round(number)
    return format_size(size - size % ROUND_BYTES if size > ROUND_BYTES else size)


QUANTITIES = (
    Quantity(lambda text: float(parse_percent(text)), lambda number: f"{number * 100:.6g}%"),
    Quantity(parse_size, _size),
    Quantity(parse_time, lambda number: format_time(round(number))),
    Quantity(parse_rate, lambda number: format_rate(round(number))),
)
WHOLE = Quantity(float, round)
REAL = Quantity(float, lambda number: float(f"{number:.6g}"))


def _quantity_of(*values: Any) -> Quantity | None:
    """Return the kind of these values; None if they have none or differ."""
    if not any(isinstance(each, bool) for each in values):
        for kind, quantity in ((int, WHOLE), (int | float, REAL)):
            if all(isinstance(each, kind) for each in values):
                return quantity
    for quantity in QUANTITIES:
        try:
            for each in values:
                quantity.read(each)
        except (ValueError, TypeError, AttributeError):
            continue
        return quantity
    return None


def number_of(value: Any) -> float | None:
    """Return a value of any kind as a number; None if it is a word."""
    quantity = None if isinstance(value, bool) else _quantity_of(value)
    return quantity and float(quantity.read(value))


@dataclass(frozen=True)
class Range:
    """A range of values, spaced evenly or (log) by equal factors."""

    low: Any
    high: Any
    steps: int = 0  # of a grid; 0: unspecified
    log: bool = False

    def __post_init__(self) -> None:
        low, high = self._ends
        if not low < high or (self.log and low <= 0):
            raise UsageError(f"{self}: the lower end must come first{', above 0' * self.log}")
        if self.steps == 1 or not 0 <= self.steps <= STEPS_MAX:
            raise UsageError(f"{self}: steps must be 2 to {STEPS_MAX:,}")

    def __str__(self) -> str:
        return f"{self.low}..{self.high}" + f":{self.steps}" * (self.steps > 0) + ":log" * self.log

    @property
    def quantity(self) -> Quantity:
        """The kind of its ends; raises UsageError if they have none or differ."""
        quantity = _quantity_of(self.low, self.high)
        if quantity is None:
            raise UsageError(
                f"{self.low}..{self.high} is not a range; expected for example {EXAMPLE}"
            )
        return quantity

    @property
    def _ends(self) -> tuple[float, float]:
        read = self.quantity.read
        return read(self.low), read(self.high)

    def at(self, share: float) -> Any:
        """Return the value at `share` (0 to 1) of the way from the lower to the upper end."""
        if share in (0.0, 1.0):
            return self.low if share == 0 else self.high
        low, high = self._ends
        if self.log:
            return self.quantity.written(math.exp(math.log(low) + share * math.log(high / low)))
        return self.quantity.written(low + share * (high - low))

    @property
    def values(self) -> list[Any]:
        """Return the values of a grid, without duplicates."""
        if not self.steps:
            raise UsageError(f"{self}: a grid needs a number of steps: {self.low}..{self.high}:5")
        every = [self.at(step / (self.steps - 1)) for step in range(self.steps)]
        return list(dict.fromkeys(every))


Kind = Literal["grid", "random", "pareto"]
OBJECTIVES = ("mean", "hit", "dwpd")
TRIALS = 100  # default, for kinds other than grid
POINTS_MAX = 1_000_000


@dataclass(frozen=True)
class Axis:
    """A key of the scenario and its values."""

    key: str
    choices: tuple[Any, ...] | Range

    @property
    def values(self) -> list[Any]:
        """The values of the key in a grid."""
        return self.choices.values if isinstance(self.choices, Range) else list(self.choices)

    def at(self, share: float) -> Any:
        """Return the value at `share` of the choices or the range, in [0, 1)."""
        if isinstance(self.choices, Range):
            return self.choices.at(share)
        return self.choices[int(share * len(self.choices))]


@dataclass(frozen=True)
class Plan:
    """What a sweep tries, and its objectives."""

    traces: tuple[NamedTrace, ...]
    scenario: Scenario
    axes: tuple[Axis, ...] = ()
    kind: Kind = "grid"
    seeds: int = 0  # of each setting that depends on the seed; 0: the scenario's seed
    trials: int = TRIALS  # settings, except in a grid
    seed: int = 1  # of a random or Pareto search
    objectives: tuple[Objective, ...] = field(
        default_factory=lambda: tuple(map(Objective.parse, OBJECTIVES))
    )
    fleet: int | None = None  # number of volumes of each trace, the largest first; 0: all

    def __post_init__(self) -> None:
        keys = [axis.key for axis in self.axes]
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if twice:
            raise UsageError(f"{twice} is varied twice: list all its values once")
        if self.kind != "grid" and not self.axes:
            raise UsageError(f"{self.kind}: specify what to vary: --vary cache.size={EXAMPLE}")
        if self.kind == "pareto" and len(self.objectives) < 2:
            raise UsageError("a Pareto search needs at least two objectives: --objective mean,dwpd")
        if self.settings > POINTS_MAX:
            raise UsageError(f"{self.settings:,} settings exceed the limit of a sweep: "
                             f"at most {POINTS_MAX:,}")  # fmt: skip

    @property
    def settings(self) -> int:
        """Number of settings of all keys, for each trace."""
        if self.kind != "grid":
            return self.trials
        return math.prod(len(axis.values) for axis in self.axes)


def axis_of(text: str) -> Axis:
    """Return the axis of a text: `cache.size=16GiB,32GiB` or `cache.size=1GiB..64GiB:7:log`."""
    key, equals, choices = text.partition("=")
    if not equals or not choices.strip() or not key.strip():
        raise UsageError(f"--vary {text}: expected for example --vary cache.size=16GiB,32GiB "
                         f"or --vary cache.size={EXAMPLE}")  # fmt: skip
    if ".." in choices:
        return Axis(key.strip(), range_of(choices))
    return Axis(key.strip(), tuple(dict.fromkeys(values_of(choices))))


def range_of(text: str) -> Range:
    """Return the range of a text `LOW..HIGH[:STEPS][:log]`."""
    low, _, rest = text.partition("..")
    high, *more = rest.split(":")
    log = "log" in more
    numbers = [each for each in more if each != "log"]
    if len(numbers) > 1 or any(not each.isdigit() for each in numbers):
        raise UsageError(f"{text} is not a range; expected for example {EXAMPLE}")
    return Range(value_of(low), value_of(high), int(numbers[0]) if numbers else 0, log)


# The same as a file.

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
    kind: Kind = "grid"
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
    origin = Origin.read(cleaned(text), name)
    file = _read(origin.specified, origin, "sweep", ScenarioError)
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
    origin = Origin("the plan")
    file = _read(tables, origin, "plan", UsageError)
    return _plan(file, FilePath(), origin)


def _read(
    tables: Mapping[str, Any], origin: Origin, what: str, wrong: type[ScenarioError | UsageError]
) -> SweepFile:
    try:
        return SweepFile.model_validate(dict(tables))
    except ValidationError as error:
        problems = explain(error, origin, _tables_of, _path_in_text)
        raise wrong(report(problems, what)) from None


def _plan(file: SweepFile, folder: FilePath, origin: Origin) -> Plan:
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


def _scenario(table: SweepTable, folder: FilePath, origin: Origin) -> Scenario:
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


def _flat(
    tables: dict[str, Any], before: str = "", is_vary: bool = False
) -> Iterator[tuple[str, Any]]:
    """Yield values by dotted key, for `cache.size` as well as for a table `[vary.cache]`."""
    for name, value in tables.items():
        if isinstance(value, dict) and not (is_vary and {"from", "to"} & value.keys()):
            yield from _flat(value, f"{before}{name}.", is_vary)
        else:
            yield before + name, value


def _axis(key: str, choices: Any) -> Axis:
    if isinstance(choices, dict):
        table = RangeTable.model_validate(choices)
        return Axis(key, Range(table.low, table.high, table.steps, table.scale == "log"))
    if isinstance(choices, str):
        return axis_of(f"{key}={choices}")
    if not isinstance(choices, list | tuple | range) or not choices:
        raise UsageError(f"{key}: needs a list of values, or {{from = ..., to = ..., steps = ...}}")
    return Axis(key, tuple(choices))


def _tables_of(path: Path, kind: str = "") -> list[type[Part]]:
    return [TraceTable if len(path) > 3 else SweepTable if len(path) > 1 else SweepFile]


def _path_in_text(loc: Path) -> Path:
    """Return the path without the union member that pydantic inserts for a trace."""
    return tuple(part for part in loc if part not in ("str", "TraceTable"))
