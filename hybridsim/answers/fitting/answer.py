"""What a fit found: estimates with intervals, as text, as JSON, and as a scenario to replay on."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hybridsim.answers.fidelity import Fidelity
from hybridsim.foundation.units import format_rate, format_size, format_time, human_time
from hybridsim.foundation.version import __version__

if TYPE_CHECKING:
    from hybridsim.scenario import Scenario

SCHEMA = "hybridsim.fit/1"
NAME = "fitted"  # of the drive, by which a replay knows it
DIGITS = 3  # significant, of what is written
COMMENT_COLUMN = 36
ROUNDED = ("ns", "bytes/s", "/s")
WRITTEN = {"ns": format_time, "bytes": format_size, "bytes/s": format_rate}


@dataclass(frozen=True)
class Estimate:
    """One value of the model, how it was found and how far it may be off."""

    table: str  # of the scenario: backing or backing.drive
    key: str
    value: float | str
    unit: str = ""  # ns, bytes, bytes/s, or what is written as it is
    low: float | None = None  # 19 times in 20 the truth lies between
    high: float | None = None
    determined: bool = True  # by the measurement; else it is assumed
    how: str = ""

    @property
    def written(self) -> str:
        """The value as a scenario says it."""
        return self.word(self.value)

    def word(self, value: float | str) -> str:
        """Write a value of this quantity."""
        if isinstance(value, str):
            return value
        whole = _rounded(value) if self.unit in ROUNDED else round(value)
        return WRITTEN[self.unit](whole) if self.unit in WRITTEN else str(whole)

    @property
    def interval(self) -> str:
        """The interval in words, empty where there is none."""
        if self.low is None or self.high is None:
            return ""
        return f"{self.shown(self.low)} to {self.shown(self.high)}"

    def shown(self, value: float | str) -> str:
        """Write a value for the eye."""
        return (
            human_time(value)
            if self.unit == "ns" and not isinstance(value, str)
            else self.word(value)
        )


@dataclass(frozen=True)
class Fit:
    """A fitted device or array."""

    source: str
    what: str  # one sentence: what the device is like
    estimates: list[Estimate]
    used: int  # requests or results that it rests on
    notes: list[str] = field(default_factory=list)  # what to know, what could not be told
    fidelity: Fidelity | None = None

    def to_toml(self) -> str:
        """Return the model as a scenario file."""
        lines = [
            f"# Fitted by hybridsim {__version__} to {self.source}.",
            f"# {self.what}",
            "# All other keys have their defaults: hybridsim scenario show FILE",
        ]
        table = ""
        for one in self.estimates:
            if one.table != table:
                table = one.table
                lines += ["", f"[{table}]"]
            bare = one.unit in ("", "rpm", "/s") and not isinstance(one.value, str)
            said = one.written if bare else json.dumps(one.written)
            note = (
                (f"fitted: {one.interval}" if one.interval else "fitted")
                if one.determined
                else "assumed"
            )
            because = f"; {one.how}" if one.how else ""
            lines.append(f"{one.key} = {said}".ljust(COMMENT_COLUMN) + f"  # {note}{because}")
        return "\n".join(lines) + "\n"

    def scenario(self) -> Scenario:
        """Return the model as a scenario."""
        from hybridsim.scenario import Scenario

        return Scenario.loads(self.to_toml(), f"the fit to {self.source}")

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as what JSON can hold."""
        return {
            "schema": SCHEMA,
            "tool": {"version": __version__},
            "source": self.source,
            "what": self.what,
            "used": self.used,
            "estimates": {
                f"{one.table}.{one.key}": {
                    "value": one.value,
                    "unit": one.unit or None,
                    "low": one.low,
                    "high": one.high,
                    "told": one.determined,
                    "how": one.how,
                }
                for one in self.estimates
            },
            "fidelity": None if self.fidelity is None else self.fidelity.to_dict(),
            "notes": self.notes,
            "scenario": self.to_toml(),
        }

    def to_json(self, indent: int | None = 2) -> str:
        """Return all of it as JSON."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)


def _rounded(value: float) -> int:
    """Return a value with as many digits as mean something."""
    digits = DIGITS - len(str(int(abs(value))))
    return int(round(value, digits)) if digits < 0 else round(value)
