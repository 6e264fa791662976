"""What a sweep varies: keys of a scenario, traces and seeds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from hybridsim.foundation.errors import UsageError
from hybridsim.scenario import Scenario
from hybridsim.scenario.overrides import value_of, values_of
from hybridsim.studies.sweep.named_trace import NamedTrace
from hybridsim.studies.sweep.objectives import Objective
from hybridsim.studies.sweep.quantities import EXAMPLE, Range

Kind = Literal["grid", "random", "pareto"]
KINDS = ("grid", "random", "pareto")
OBJECTIVES = ("mean", "hit", "dwpd")
TRIALS = 100  # where nothing is said, of kinds that are no grid
POINTS_MAX = 1_000_000


@dataclass(frozen=True)
class Axis:
    """A key of the scenario, and the values that it takes."""

    key: str
    choices: tuple[Any, ...] | Range

    @property
    def values(self) -> list[Any]:
        """The values of a grid."""
        return self.choices.values if isinstance(self.choices, Range) else list(self.choices)

    def at(self, share: float) -> Any:
        """Return the value at a share from 0 (included) to 1 of all of them."""
        if isinstance(self.choices, Range):
            return self.choices.at(share)
        return self.choices[int(share * len(self.choices))]


@dataclass(frozen=True)
class Plan:
    """All that is to be tried, and what is wanted of it."""

    traces: tuple[NamedTrace, ...]
    scenario: Scenario
    axes: tuple[Axis, ...] = ()
    kind: Kind = "grid"
    seeds: int = 0  # of each setting that is left to chance; 0: the scenario's own
    trials: int = TRIALS  # settings, where it is no grid
    seed: int = 1  # of the search, where it draws
    objectives: tuple[Objective, ...] = field(
        default_factory=lambda: tuple(map(Objective.parse, OBJECTIVES))
    )
    fleet: int | None = None  # volumes of each trace, those with most bytes; 0: all

    def __post_init__(self) -> None:
        keys = [axis.key for axis in self.axes]
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if twice:
            raise UsageError(f"{twice} is varied twice: write all its values after one another")
        if self.kind not in KINDS:
            raise UsageError(f"no kind of sweep {self.kind!r}: there is {', '.join(KINDS)}")
        if self.kind != "grid" and not self.axes:
            raise UsageError(f"{self.kind}: say what is to be varied: --vary cache.size={EXAMPLE}")
        if self.kind == "pareto" and len(self.objectives) < 2:
            raise UsageError("a Pareto front has two objectives or more: --objective mean,dwpd")
        if self.seeds < 0 or self.trials < 1:
            raise UsageError("seeds and points are counted from 1")
        if self.settings > POINTS_MAX:
            raise UsageError(f"{self.settings:,} settings are too many for one sweep: "
                             f"at most {POINTS_MAX:,}")  # fmt: skip

    @property
    def settings(self) -> int:
        """How many settings of all keys there are, for each trace."""
        if self.kind != "grid":
            return self.trials
        number = 1
        for axis in self.axes:
            number *= len(axis.values)
        return number


def axes_of(texts: Iterable[str]) -> tuple[Axis, ...]:
    """Return what texts like `cache.size=16GiB,32GiB` or `cache.size=1GiB..64GiB:7:log` vary."""
    return tuple(map(axis_of, texts))


def axis_of(text: str) -> Axis:
    """Return one of them."""
    key, equals, said = text.partition("=")
    if not equals or not said.strip() or not key.strip():
        raise UsageError(f"--vary {text}: write for instance --vary cache.size=16GiB,32GiB "
                         f"or --vary cache.size={EXAMPLE}")  # fmt: skip
    if ".." in said:
        return Axis(key.strip(), range_of(said))
    return Axis(key.strip(), tuple(dict.fromkeys(values_of(said))))


def range_of(text: str) -> Range:
    """Return the range that `LOW..HIGH[:STEPS][:log]` says."""
    low, _, rest = text.partition("..")
    high, *more = rest.split(":")
    log = "log" in more
    numbers = [each for each in more if each != "log"]
    if len(numbers) > 1 or any(not each.isdigit() for each in numbers):
        raise UsageError(f"{text} is no range: write for instance {EXAMPLE}")
    return Range(value_of(low), value_of(high), int(numbers[0]) if numbers else 0, log)
