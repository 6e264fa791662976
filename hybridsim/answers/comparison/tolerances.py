"""Tolerances: the largest errors of a simulated run, by measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.suggest import nearest

# Shares of the real value, except for DISTANCES.  Those of curves and counters are the project's
# own targets for the comparison with real kernels; those of latencies were chosen, not measured.
DEFAULTS: Mapping[str, float | None] = MappingProxyType({
    "slat mean": None,  # a simulated host submits requests in no time
    "IOPS": 0.10, "bandwidth": 0.10, "mean": 0.10,
    "p50": 0.15, "p90": 0.15, "p95": 0.15, "p99": 0.15, "p99.9": 0.25,
    "KS": 0.10, "demerit": 0.10,
    "level": 0.10, "t50": 0.15, "t90": 0.15, "curve": 0.05,
    "hit ratio": 0.05, "counters": 0.05,
})  # fmt: skip
DISTANCES = {"KS", "demerit", "curve", "hit ratio"}  # absolute, not shares of a real value
NOT_JUDGED = "none"


@dataclass(frozen=True)
class Tolerances:
    """User tolerances override the defaults; None: reported, not checked."""

    specified: Mapping[str, float | None] = field(default_factory=dict)
    all_shares: float | None = None  # replaces all defaults that are shares

    def of(self, measure: str, kind: str = "") -> float | None:
        """Return the tolerance of a measure: by its name, by its last word, or by its kind."""
        for name in (measure, measure.rpartition(" ")[2], kind):
            if name in self.specified:
                return self.specified[name]
        for name in (measure, measure.rpartition(" ")[2], kind):
            if name in DEFAULTS:
                is_share = DEFAULTS[name] is not None and name not in DISTANCES
                return self.all_shares if is_share and self.all_shares else DEFAULTS[name]
        return None


def parse(texts: Sequence[str]) -> Tolerances:
    """Parse `10%` or `iops=5%,p99=20%,curve=0.05,p90=none`; raise UsageError if invalid."""
    specified: dict[str, float | None] = {}
    all_shares = None
    known = {name.casefold(): name for name in DEFAULTS}
    for part in (each.strip() for text in texts for each in text.split(",")):
        name, equals, value = part.rpartition("=")
        if not equals:
            all_shares = _share(part)
            continue
        folded = " ".join(name.replace("_", " ").casefold().split())
        is_percentile = folded.rpartition(" ")[2].startswith("p") and folded[-1:].isdigit()
        if folded not in known and not is_percentile:
            near = nearest(folded, sorted(known))
            hint = f"did you mean {near!r}?" if near else f"known are {', '.join(DEFAULTS)}, p1 ..."
            raise UsageError(f"--tolerance {part}: unknown figure {name!r}: {hint}")
        measure = known.get(folded, folded)
        specified[measure] = None if value == NOT_JUDGED else _share(value, measure)
    return Tolerances(specified, all_shares)


def _share(text: str, measure: str = "") -> float:
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise UsageError(f"--tolerance: {text!r} is not a share: write for example 10% or 0.1")
    if number > 1 and "%" not in text and measure not in DISTANCES:
        raise UsageError(f"--tolerance: {text} is {100 * number:g}%: did you mean {text}%?")
    return number
