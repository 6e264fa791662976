"""The volumes of a fleet summed up: what one setting would do for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridsim.answers.verdict import NO, UNSURE, YES
from hybridsim.studies.sweep.answer import Setting

QUANTILES = (10, 25, 50, 75, 90)
MEAN, ALONE = "mean.reads.warm", "alone.mean.reads.warm"
READS = "reads.warm"


@dataclass(frozen=True)
class FleetRow:
    """One setting of the keys, for all volumes."""

    values: dict[str, Any]
    settings: list[Setting]  # one a volume
    answers: dict[str, int]  # volumes by answer
    requests: int
    ssd_bytes: int
    mean_ns: float | None  # of all warm reads of all volumes whose latencies are known
    alone_ns: float | None  # of the same reads without the caches
    gains: list[float]  # of these volumes, ascending

    @property
    def gain(self) -> float | None:
        """How many times shorter all these reads are on average."""
        return self.alone_ns / self.mean_ns if self.mean_ns and self.alone_ns else None

    @property
    def quantiles(self) -> dict[int, float]:
        """The distribution of the volumes' gains: percent to times."""
        if not self.gains:
            return {}
        found = np.percentile(self.gains, QUANTILES, method="inverted_cdf")
        return dict(zip(QUANTILES, map(float, found)))

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "values": self.values,
            "volumes": len(self.settings),
            "answers": self.answers,
            "requests": self.requests,
            "ssd_bytes": self.ssd_bytes,
            "mean_ns": self.mean_ns,
            "alone_ns": self.alone_ns,
            "gain": self.gain,
            "gains": self.gains,
        }


def fleet_rows(settings: Sequence[Setting]) -> list[FleetRow]:
    """Return a row for each setting of the keys, the one that saves most first."""
    by_values: dict[str, list[Setting]] = {}
    for each in settings:
        by_values.setdefault(repr(each.values), []).append(each)
    rows = [_row(each) for each in by_values.values()]
    return sorted(rows, key=lambda row: -(row.gain or 0.0))


def gain_of(setting: Setting) -> float | None:
    """Return how many times shorter a volume's warm reads are on average."""
    of_seeds = [(one[ALONE], one[MEAN]) for one in setting.figures if one[ALONE] and one[MEAN]]
    if not of_seeds:
        return None
    before, after = map(sum, zip(*of_seeds))
    return float(before / after)


def _row(settings: list[Setting]) -> FleetRow:
    firsts = [each.figures[0] for each in settings]
    answers = [str(one["answer"]) for one in firsts]
    known = [one for one in firsts if one[MEAN] and one[ALONE]]
    weights = [one[READS] for one in known]
    gains = [gain for each in settings if (gain := gain_of(each)) is not None]
    return FleetRow(
        settings[0].values,
        settings,
        {answer: answers.count(answer) for answer in (YES, NO, UNSURE)},
        sum(one["requests"] for one in firsts),
        sum(one["ssd_bytes"] for one in firsts),
        _mean([one[MEAN] for one in known], weights),
        _mean([one[ALONE] for one in known], weights),
        sorted(gains),
    )


def _mean(values: Sequence[float], weights: Sequence[int]) -> float | None:
    whole = sum(weights)
    return sum(value * weight for value, weight in zip(values, weights)) / whole if whole else None
