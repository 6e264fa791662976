"""The result of a fit: estimates with intervals, as JSON and as a scenario file."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hybridsim.answers.fidelity import Fidelity
from hybridsim.foundation.documents import headed
from hybridsim.foundation.in_notebooks import DataFrame, frame_of
from hybridsim.foundation.units import (
    format_rate,
    format_size,
    format_time,
    human_time,
    parse_rate,
    parse_size,
    parse_time,
)
from hybridsim.foundation.version import __version__
from hybridsim.storage import catalog

if TYPE_CHECKING:
    from hybridsim.scenario import Scenario

SCHEMA = "hybridsim.fit/1"
DRIVE = "backing.drive"  # table of a scenario
NAME = "fitted"  # name of the fitted drive, which replays test for
DIGITS = 3  # significant digits that are written
COMMENT_COLUMN = 36
ROUNDED = ("ns", "bytes/s", "/s")
WRITTEN = {"ns": format_time, "bytes": format_size, "bytes/s": format_rate}
PARSED: dict[str, Callable[[str], float]] = {
    "ns": parse_time, "bytes": parse_size, "bytes/s": parse_rate, "/s": float,
}  # fmt: skip


@dataclass(frozen=True)
class Estimate:
    """One value of the model, with its origin and its interval."""

    table: str  # of the scenario: backing or backing.drive
    key: str
    value: float | str
    unit: str = ""  # ns, bytes or bytes/s, which are formatted; others are written as numbers
    low: float | None = None  # ends of the 95% interval
    high: float | None = None
    determined: bool = True  # by the measurement; else assumed
    how: str = ""

    @property
    def written(self) -> str:
        """The value as written in a scenario."""
        return self.word(self.value)

    def word(self, value: float | str) -> str:
        """Return a value of this quantity as written in a scenario."""
        if isinstance(value, str):
            return value
        whole = _rounded(value) if self.unit in ROUNDED else round(value)
        return WRITTEN[self.unit](whole) if self.unit in WRITTEN else str(whole)

    @property
    def interval(self) -> str:
        """The interval as text, empty if there is none."""
        if self.low is None or self.high is None:
            return ""
        return f"{self.shown(self.low)} to {self.shown(self.high)}"

    def shown(self, value: float | str) -> str:
        """Return a value of this quantity as text for display."""
        is_time = self.unit == "ns" and not isinstance(value, str)
        return human_time(float(value)) if is_time else self.word(value)


def assumed(key: str, value: float | str, unit: str, how: str) -> Estimate:
    """Return a value of the drive that the measurement does not determine."""
    return Estimate(DRIVE, key, value, unit, determined=False, how=how)


def like(drive: str, key: str, unit: str, why: str = "") -> Estimate:
    """Return a value that the measurement does not determine: that of a drive of the catalog."""
    value = PARSED[unit](str(catalog.load(drive).rows[key].value))
    return assumed(key, value, unit, f"{why}as {drive}")


# A drive of a fit is all of the array.
ALONE = Estimate("backing", "kind", "single", determined=False, how="treated as one device")


@dataclass(frozen=True)
class Fit:
    """A fitted device or array."""

    source: str
    what: str  # one sentence that describes the device
    estimates: list[Estimate]
    used: int  # requests or results that the fit is based on
    notes: list[str] = field(default_factory=list)  # remarks on the measurement and the fit
    fidelity: Fidelity | None = None

    @property
    def by_key(self) -> dict[str, Estimate]:
        """The estimates by their keys."""
        return {one.key: one for one in self.estimates}

    def having(self, more: list[Estimate]) -> Fit:
        """Return the fit with estimates of the drive, in place of those of the same keys."""
        new = {one.key: one for one in more}
        estimates = [new.pop(one.key, one) for one in self.estimates]
        end = max(place for place, one in enumerate(estimates) if one.table == DRIVE) + 1
        return replace(self, estimates=[*estimates[:end], *new.values(), *estimates[end:]])

    def to_toml(self) -> str:
        """Return the model as a scenario file."""
        lines = [
            f"# Fitted by hybridsim {__version__} to {self.source}.",
            f"# {self.what}",
            "# Other keys have the values of the default scenario: hybridsim scenario show FILE",
        ]
        table = ""
        for one in self.estimates:
            if one.table != table:
                table = one.table
                lines += ["", f"[{table}]"]
            bare = one.unit in ("", "rpm", "/s") and not isinstance(one.value, str)
            text = one.written if bare else json.dumps(one.written)
            note = f"fitted: {one.interval}" if one.interval else "fitted"
            note = note if one.determined else "assumed"
            because = f"; {one.how}" if one.how else ""
            lines.append(f"{one.key} = {text}".ljust(COMMENT_COLUMN) + f"  # {note}{because}")
        return "\n".join(lines) + "\n"

    def scenario(self) -> Scenario:
        """Return the model as a scenario."""
        from hybridsim.scenario import Scenario

        return Scenario.loads(self.to_toml(), f"the fit to {self.source}")

    def frame(self) -> DataFrame:
        """Return a pandas frame: a row per value of the model.

        Columns: `key` of the scenario, `value`, `unit`, ends `low` and `high` of its 95% interval,
        `determined` (by the measurement; else assumed), `how`.  NaN where unknown.  Needs pandas
        (`hybridsim[notebooks]`).
        """
        return frame_of(
            {
                "key": f"{each.table}.{each.key}", "value": each.value, "unit": each.unit,
                "low": each.low, "high": each.high, "determined": each.determined, "how": each.how,
            }
            for each in self.estimates
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"<Fit to {self.source}: {self.what}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the JSON."""
        return {
            **headed(SCHEMA),
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
        """Return the fit as JSON."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)


def _rounded(value: float) -> int:
    """Return a value rounded to DIGITS significant digits."""
    digits = DIGITS - len(str(int(abs(value))))
    return int(round(value, digits)) if digits < 0 else round(value)
