"""A chart as plain data: axes with units, lines, bands, marks; no colours, no pixels.

Values are what the result has: nanoseconds, bytes, shares.  An axis says how many of these make one
of the units that it is labelled with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

Value = float | int | None  # None: unknown, a gap
Values = Sequence[Value]


@dataclass(frozen=True)
class Axis:
    """What is shown along one side of a chart."""

    label: str
    unit: str = ""
    per: float = 1.0  # of what the values count, in one unit: 6e10 ns in a minute
    log: bool = False
    base: int = 10  # of the logarithm
    low: float | None = None  # in what the values count; None: as the values say
    high: float | None = None

    @property
    def title(self) -> str:
        """The label with its unit."""
        return f"{self.label} ({self.unit})" if self.unit else self.label


@dataclass(frozen=True)
class Line:
    """One series.  `gid` names it for who looks for its data in a figure."""

    gid: str
    label: str
    x: Values
    y: Values
    style: str = "line"  # or "steps" (to the right of x), "points", "both", "area"
    role: str = ""  # of palette.ROLES; none: the next colour
    dashed: bool = False
    names: Sequence[str] = ()  # of the points, where each has one


@dataclass(frozen=True)
class Band:
    """A stretch of the x axis that has a name."""

    label: str
    start: float
    end: float
    role: str = ""


@dataclass(frozen=True)
class Mark:
    """A place on the x axis, or a point if `y` is said."""

    label: str
    x: float
    y: float | None = None


@dataclass(frozen=True)
class Chart:
    """Lines over one x axis.  Charts of one `sync` share their cursor."""

    kind: ClassVar[str] = "chart"
    gid: str
    title: str
    x: Axis
    y: Axis
    lines: Sequence[Line]
    bands: Sequence[Band] = ()
    marks: Sequence[Mark] = ()
    is_stacked: bool = False
    sync: str = ""
    note: str = ""


@dataclass(frozen=True)
class Bars:
    """Stacked horizontal bars: of each row how much each part takes."""

    kind: ClassVar[str] = "bars"
    gid: str
    title: str
    x: Axis
    parts: Sequence[str]
    rows: Sequence[tuple[str, Sequence[float]]]
    note: str = ""
    roles: Sequence[str] = ()  # of the parts


@dataclass(frozen=True)
class Dots:
    """Dots along a line for each row, and where their centre is."""

    kind: ClassVar[str] = "dots"
    gid: str
    title: str
    x: Axis
    rows: Sequence[tuple[str, Sequence[float]]]
    centres: Sequence[float]
    centre: str  # what it is
    judged: Sequence[str] = ()  # rows that the figure is about


@dataclass(frozen=True)
class Heat:
    """Counts over a grid; `counts[column][row]` with row 0 at the bottom."""

    kind: ClassVar[str] = "heat"
    gid: str
    title: str
    x: Axis
    y: Axis
    width: float  # of a column, in what the x axis counts
    height: float  # of a row
    counts: Sequence[Sequence[int]] = field(default_factory=list)
    note: str = ""
