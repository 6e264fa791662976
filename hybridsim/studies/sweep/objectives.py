"""Objectives of a sweep: any measure that requirements can use, cost, gain, size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from hybridsim.answers.advice.alternatives import cache_cost, drives_cost, pricing
from hybridsim.answers.requirements import Measure, parse_measure
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.units import human_size
from hybridsim.foundation.wording import NONE, times
from hybridsim.scenario import Scenario
from hybridsim.studies.sweep.figures import FORECAST, GAIN, PERCENTILES, WHOLE_GAIN, name_of

MORE = ("hit", "iops", "years")  # larger is better
COST, SSD = "cost", "ssd"
GAINS = (GAIN, WHOLE_GAIN, FORECAST)
OWN = {
    GAIN: "the judge's gain: what the second half of the requests costs without and with the cache",
    WHOLE_GAIN: "the same for all requests",
    FORECAST: "the gain that is forecast for the time after the trace",
    COST: "price of disks and SSDs as bought: whole drives, mirrored if they alone hold writes",
    SSD: "size of the cache on the SSD",
}
Figures = Mapping[str, Any]


class Objective(NamedTuple):
    """One objective, and whether it is minimised or maximised."""

    text: str
    measure: Measure | None  # None: one of OWN

    @classmethod
    def parse(cls, text: str) -> Objective:
        """Parse an objective; raise UsageError if the text is not one."""
        text = text.strip()
        if text in OWN:
            return cls(text, None)
        measure = parse_measure(text)
        percent = measure.measure[1:]
        if percent[:1].isdigit() and float(percent) not in PERCENTILES:
            percentiles = ", ".join(f"p{each:g}" for each in PERCENTILES)
            raise UsageError(f"{text!r}: a sweep stores {percentiles}")
        return cls(text, measure)

    @property
    def wants_less(self) -> bool:
        """Whether it is minimised."""
        return self.text not in GAINS if self.measure is None else self.measure.measure not in MORE

    @property
    def is_time(self) -> bool:
        """Whether it is a time in nanoseconds."""
        return self.measure is not None and self.measure.is_time

    @property
    def is_share(self) -> bool:
        """Whether it is shown in percent."""
        return self.measure is not None and self.measure.is_share

    def value(self, figures: Figures, scenario: Scenario) -> float | None:
        """Return the value for a machine; None if unknown."""
        if self.measure is not None:
            value = figures[name_of(self.measure)]
            return None if value is None else float(value)
        if self.text in GAINS:
            gain = figures[self.text]
            return None if gain is None else float(gain)
        if self.text == SSD:
            return float(figures["ssd_bytes"])
        price = pricing(scenario).price
        disks = drives_cost(scenario.backing, price)
        ssds = cache_cost(scenario, price) if figures["ssd_bytes"] else 0.0
        return None if disks is None or ssds is None else disks + ssds

    def worded(self, value: float | None) -> str:
        """Return the text of a value."""
        if value is None:
            return NONE
        if self.measure is not None:
            return self.measure.worded(value)
        if self.text in GAINS:
            return times(value)
        return human_size(value) if self.text == SSD else f"{value:,.2f}"
