"""What the tables of a workload are made of: shares, counts, weighted lists, in people's words."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field

from hybridsim.foundation.toml.table import Part, Size, Time
from hybridsim.foundation.units import parse_percent, parse_size

__all__ = [
    "Align",
    "Count",
    "Depths",
    "Often",
    "Part",
    "Rate",
    "Seed",
    "Share",
    "Size",
    "SizeOrShare",
    "Sizes",
    "Time",
    "bytes_of",
]

DEEPEST = 4096
COUNT_MAX = 2**63 - 1
SHOWN = 30  # letters of what makes no sense
COUNTS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
Weight = TypeVar("Weight")


def parse_share(said: object) -> float:
    """Return the share that '70%' is."""
    if not isinstance(said, str):
        raise ValueError(f"a share is written with its sign: '{said}%'")
    share = float(parse_percent(said))
    if share > 1:
        raise ValueError(f"{said} is more than all: at most 100%")
    return share


def parse_count(said: object) -> int:
    """Return the number that '10M' or 500 is."""
    if isinstance(said, int) and not isinstance(said, bool):
        number: float = said
    else:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([kMG]?)", str(said).replace("_", ""))
        number = float(match[1]) * COUNTS[match[2]] if match else 0.5
    if abs(number) > COUNT_MAX or number != int(number):
        raise ValueError(f"{_short(said)} is no count: write for instance 500, 100k or 10M")
    return int(number)


def parse_number(said: object) -> float:
    """Return a number that may stand in quotes, as it does on the command line."""
    if isinstance(said, int | float) and not isinstance(said, bool):
        number = float(said) if abs(said) < COUNT_MAX else math.inf
    else:
        match = re.fullmatch(r"(-?\d+(?:\.\d+)?)([kMG]?)", str(said))
        number = float(match[1]) * COUNTS[match[2]] if match else math.nan
    if not math.isfinite(number):
        raise ValueError(f"{_short(said)} is no number: write for instance 0.9, 150 or 2k")
    return number


def _short(said: object) -> str:
    return repr(said if len(str(said)) <= SHOWN else str(said)[:SHOWN] + "...")


def parse_size_or_share(said: object) -> int | float:
    """Return bytes (an integer) or a share (a float) of what is around it."""
    if isinstance(said, str) and said.endswith("%"):
        return parse_share(said)
    if isinstance(said, str | int):
        return parse_size(said)
    raise ValueError(f"{said!r} is neither a size nor a share: write '2GiB' or '10%'")


def weighted(
    text: object, first: Callable[[str], Weight], example: str
) -> tuple[tuple[Weight, float], ...]:
    """Return the pairs of 'a/70:b/30'; what has no weight gets an equal part of what is left."""
    if not isinstance(text, str) or not text:
        raise ValueError(f"{text!r} is no list: write for instance '{example}'")
    parts = [each.partition("/") for each in text.split(":")]
    said = [parse_number(weight) if slash else None for _, slash, weight in parts]
    left = max(100 - sum(each or 0 for each in said), 0) / max(said.count(None), 1)
    weights = [left if each is None else each for each in said]
    found = [(first(name), weight) for (name, _, _), weight in zip(parts, weights)]
    if any(weight < 0 for _, weight in found) or not sum(weight for _, weight in found):
        raise ValueError(f"weights are 0 or more, and not all 0: '{example}'")
    return tuple(found)


def _sizes(said: Any) -> tuple[tuple[int, float], ...]:
    if isinstance(said, int):
        said = str(said)
    found = weighted(said, parse_size, "4KiB/70:64KiB/30")
    if min(size for size, _ in found) < 1:
        raise ValueError("a request has at least 1 byte")
    return found


def _depths(said: Any) -> tuple[int, ...]:
    """Return the depths that '8' or '1-512' is: from the first, doubled up to the last.

    A list names them.
    """
    if isinstance(said, list) and said:
        depths = tuple(parse_count(each) for each in said)
        if not all(1 <= depth <= DEEPEST for depth in depths):
            raise ValueError(f"{said!r}: a depth is from 1 to {DEEPEST}")
        return depths
    first, dash, last = str(said).partition("-")
    low = parse_count(first)
    high = parse_count(last) if dash else low
    if not 1 <= low <= high <= DEEPEST:
        raise ValueError(f"{said!r} is no depth: write for instance 32 or '1-512'")
    return tuple(low << power for power in range(20) if low << power <= high)


Share = Annotated[float, BeforeValidator(parse_share)]
Count = Annotated[int, BeforeValidator(parse_count), Field(ge=1)]
Often = Annotated[int, BeforeValidator(parse_count), Field(ge=0)]
Seed = Annotated[int, BeforeValidator(parse_count), Field(ge=0, lt=2**63)]
Rate = Annotated[float, BeforeValidator(parse_number), Field(gt=0, le=1e9, allow_inf_nan=False)]
SizeOrShare = Annotated[int | float, BeforeValidator(parse_size_or_share)]
Sizes = Annotated[tuple[tuple[int, float], ...], BeforeValidator(_sizes)]
Depths = Annotated[tuple[int, ...], BeforeValidator(_depths)]
Align = Annotated[Size, Field(ge=1)]


def bytes_of(said: int | float, whole_bytes: int) -> int:
    """Return a size, or the bytes that a share of the whole is."""
    return int(said * whole_bytes) if isinstance(said, float) else said
