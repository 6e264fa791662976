"""Charts as plain data, which the HTML report and `hybridsim.plot` draw.

Axes with units, lines, bands, marks; no colours, no pixels.  Values have the units of the result:
nanoseconds, bytes, shares.  `Axis.per` is the size of the axis's unit in these; the unit is the one
that fits the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

Value = float | int | None  # None: unknown, a gap
Values = Sequence[Value]
ENDS = ("low", "value", "high")  # of an interval in a document, as in the rows of Ranges
TIMES = {"µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9, "days": 86400e9}
SIZES = {"B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}
RATES = {"B/s": 1.0, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9}
FEWEST = 3.0  # minimum length of an axis in its unit; below it, a smaller unit is used
FEWEST_TIMES = 10.0  # minimum length of an axis of times in minutes


def maximum(values: Iterable[Value]) -> float:
    """Return the largest known value; 0 without one."""
    return float(max((each for each in values if each is not None), default=0.0))


def _unit(units: dict[str, float], end: float, fewest: float = FEWEST) -> tuple[str, float]:
    fitting = [name for name, per in units.items() if end >= fewest * per]
    name = fitting[-1] if fitting else next(iter(units))
    return name, units[name]


@dataclass(frozen=True)
class Axis:
    """One axis of a chart."""

    label: str
    unit: str = ""
    per: float = 1.0  # size of the unit in that of the values: 6e10 for minutes and ns
    log: bool = False
    base: int = 10  # of the logarithm
    low: float | None = None  # in the unit of the values; None: from the values
    high: float | None = None

    @property
    def title(self) -> str:
        """The label with its unit."""
        both = self.label and self.unit
        return f"{self.label} ({self.unit})" if both else self.label or self.unit

    @classmethod
    def times(cls, end_ns: float, label: str = "time") -> Axis:
        """Return an axis of times from 0."""
        return cls(label, *_unit(TIMES, end_ns, FEWEST_TIMES), low=0, high=end_ns)

    @classmethod
    def latencies(cls, longest_ns: float, label: str = "latency", log: bool = False) -> Axis:
        """Return an axis of latencies; a logarithmic one is in milliseconds."""
        if log:
            return cls(label, "ms", TIMES["ms"], log=True)
        return cls(label, *_unit(TIMES, longest_ns), low=0)

    @classmethod
    def shares(cls, label: str, high: float | None = 1.0) -> Axis:
        """Return an axis of shares in percent."""
        return cls(label, "%", 0.01, low=0, high=high)

    @classmethod
    def sizes(cls, largest_bytes: float, label: str = "cache size", log: bool = False) -> Axis:
        """Return an axis of bytes."""
        return cls(label, *_unit(SIZES, largest_bytes), log=log, base=2, low=None if log else 0)

    @classmethod
    def rates(cls, largest: float, label: str) -> Axis:
        """Return an axis of bytes per second."""
        return cls(label, *_unit(RATES, largest), low=0)

    @classmethod
    def counts(cls, label: str, log: bool = False, base: int = 10) -> Axis:
        """Return an axis of plain numbers."""
        return cls(label, log=log, base=base, low=None if log else 0)


@dataclass(frozen=True)
class Line:
    """One series; `gid` identifies its data in a drawn figure.

    The interval of each value, where there is one, is drawn as a shaded range from `low` to `high`.
    """

    gid: str
    label: str
    x: Values
    y: Values
    style: str = "line"  # or "steps" (to the right of x), "points", "both", "area"
    role: str = ""  # of palette.ROLES; empty: the next free colour
    dashed: bool = False
    names: Sequence[str] = ()  # of the points, if they have names
    low: Values = ()
    high: Values = ()


@dataclass(frozen=True)
class Band:
    """A named range of the x axis."""

    label: str
    start: float
    end: float
    role: str = ""


@dataclass(frozen=True)
class Mark:
    """A position on the x axis, or a point if `y` is set.

    The interval of a position is drawn as a shaded range from `low` to `high`.
    """

    label: str
    x: float
    y: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Picture:
    """What all charts have; `gid` identifies it."""

    gid: str
    title: str
    x: Axis
    note: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class Chart(Picture):
    """Lines over one x axis.  Charts of one `sync` share their cursor."""

    y: Axis
    lines: Sequence[Line]
    bands: Sequence[Band] = ()
    marks: Sequence[Mark] = ()
    is_stacked: bool = False
    sync: str = ""
    is_direct: bool = False  # figures name each line at its end instead of in a legend


@dataclass(frozen=True)
class Bars(Picture):
    """Stacked horizontal bars: the parts of each row."""

    parts: Sequence[str]
    rows: Sequence[tuple[str, Sequence[float]]]
    roles: Sequence[str] = ()  # of the parts


@dataclass(frozen=True)
class Ranges(Picture):
    """An interval with its centre for each row; `marks` are values of interest, with names."""

    rows: Sequence[tuple[str, float, float, float]]  # name, low, centre, high
    marks: Sequence[tuple[str, float]] = ()


@dataclass(frozen=True)
class Dots(Picture):
    """Dots on a line for each row, with their centre."""

    rows: Sequence[tuple[str, Sequence[float]]]
    centres: Sequence[float]
    centre: str  # name of the centre, such as "geometric mean"
    judged: Sequence[str] = ()  # highlighted rows


@dataclass(frozen=True)
class Beside(Picture):
    """Figures of each row: a bar and its value for one figure, a dot each for several."""

    names: Sequence[str]  # of the figures
    rows: Sequence[tuple[str, Sequence[Value]]]
    bold: Sequence[str] = ()  # highlighted rows


@dataclass(frozen=True)
class Heat(Picture):
    """Counts over a grid; `counts[column][row]` with row 0 at the bottom."""

    y: Axis
    width: float  # of a column, in the unit of the x values
    height: float  # of a row
    counts: Sequence[Sequence[int]]
