"""The policies of a cell that are warm first, and those that follow a moving hot spot first.

Two levels for each: 90 % of the policy's own final level, which favours policies with few hits over
those that keep learning; and 90 % of the best baseline's final level, which many policies never
reach.  Times are the end of the first part of a curve (policy_curves.py) at the level: as a share
of the trace, or after a move in requests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from policy_curves import LASTS, STEADY, WARM, first_at, last, settled

Row = dict[str, Any]
Rows = dict[str, Row]  # of a cell, by policy
Time = Callable[[Row, list[Row]], float | None]  # of (row, baselines of its cell)


def warms(row: Row, baselines: list[Row]) -> float | None:
    """Return the share of the trace until 90 % of the best baseline's last hit ratio, or None."""
    level = WARM * max(map(last, (each["curve"] for each in baselines)), default=0.0)
    parts = len(row["curve"])
    part = first_at(row["curve"], level, max(parts // LASTS, 1)) if parts else None
    return None if part is None else (part + 1) / parts


def follows_alone(row: Row, baselines: list[Row]) -> int | None:
    """Return the requests after a move until 90 % of its own settled hits, or None."""
    return _requests(row, settled(row["followed"])) if "followed" in row else None


def follows(row: Row, baselines: list[Row]) -> int | None:
    """Return the requests after a move until 90 % of the best baseline's settled hits, or None."""
    known = [each["followed"] for each in baselines if "followed" in each]
    return _requests(row, max(map(settled, known))) if known and "followed" in row else None


def _requests(row: Row, level: float) -> int | None:
    part = first_at(row["followed"], WARM * level, STEADY)
    return None if part is None else (part + 1) * row["window"]


def fastest(
    cells: list[Rows], ours: str, baselines: Callable[[Rows], list[Row]], time: Time, margin: float
) -> tuple[list[bool], list[float], Counter[str]]:
    """Return by cell whether a policy is within `margin` of the fastest baseline, and ratios.

    The ratios are its times over those of the fastest baseline.  The third value counts the fastest
    policies.  Cells in which no baseline has a time are left out; a policy without a time is late.
    """
    met, ratios, first = [], [], Counter[str]()
    for rows in cells:
        theirs = baselines(rows)
        times = {row["policy"]: time(row, theirs) for row in theirs}
        known = [each for each in times.values() if each is not None]
        if not known:
            continue
        fastest_time, our = min(known), time(rows[ours], theirs)
        met.append(our is not None and our <= margin * fastest_time)
        ratios += [our / fastest_time] if our is not None else []
        first.update(name for name, each in times.items() if each == fastest_time)
        first.update([ours] * (our is not None and our <= fastest_time))
    return met, ratios, first


def first_line(first: Counter[str], cells: int) -> Iterator[str]:
    """Yield the policies that are first most often; ties count for each."""
    names = ", ".join(f"{name} {count}" for name, count in first.most_common(5))
    if first:
        yield f"          number of cells, of {cells}, in which a policy is first: {names}"
