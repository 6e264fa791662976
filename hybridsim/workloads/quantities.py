"""The types of quantities in a workload: shares, counts, weighted lists, as users write them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field

from hybridsim.foundation.toml.table import Size
from hybridsim.foundation.units import parse_percent, parse_size

DEPTH_MAX = 4096
COUNT_MAX = 2**63 - 1
SHOWN = 30  # characters of an invalid value in a message
COUNTS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
Weight = TypeVar("Weight")


def parse_share(value: object) -> float:
    """Return the share of a text as '70%'."""
    if not isinstance(value, str):
        raise ValueError(f"a share needs a percent sign: '{value}%'")
    share = float(parse_percent(value))
    if share > 1:
        raise ValueError(f"{value} must be at most 100%")
    return share


def parse_count(value: object) -> int:
    """Return the integer of a text as '10M', or a number."""
    if isinstance(value, int) and not isinstance(value, bool):
        number: float = value
    else:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([kMG]?)", str(value).replace("_", ""))
        number = float(match[1]) * COUNTS[match[2]] if match else 0.5
    if abs(number) > COUNT_MAX or number != int(number):
        raise ValueError(f"{_short(value)} is not a count, as 500, 100k or 10M")
    return int(number)


def parse_number(value: object) -> float:
    """Return a number, or the number of a text as '2k'."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value) if abs(value) < COUNT_MAX else math.inf
    else:
        match = re.fullmatch(r"(-?\d+(?:\.\d+)?)([kMG]?)", str(value))
        number = float(match[1]) * COUNTS[match[2]] if match else math.nan
    if not math.isfinite(number):
        raise ValueError(f"{_short(value)} is not a number, as 0.9, 150 or 2k")
    return number


def _short(value: object) -> str:
    return repr(value if len(str(value)) <= SHOWN else str(value)[:SHOWN] + "...")


def parse_size_or_share(value: object) -> int | float:
    """Return bytes (an integer) or a share (a float)."""
    if isinstance(value, str) and value.endswith("%"):
        return parse_share(value)
    if isinstance(value, str | int):
        return parse_size(value)
    raise ValueError(f"{value!r} is neither a size nor a share, as '2GiB' or '10%'")


def weighted(
    text: object, first: Callable[[str], Weight], example: str
) -> tuple[tuple[Weight, float], ...]:
    """Return the pairs of 'a/70:b/30'; items without a weight share the rest up to 100 equally."""
    if not isinstance(text, str) or not text:
        raise ValueError(f"{text!r} is not a weighted list, as '{example}'")
    parts = [each.partition("/") for each in text.split(":")]
    specified = [parse_number(weight) if slash else None for _, slash, weight in parts]
    rest = max(100 - sum(each or 0 for each in specified), 0)
    default = rest / max(specified.count(None), 1)
    weights = [default if each is None else each for each in specified]
    pairs = [(first(name), weight) for (name, _, _), weight in zip(parts, weights)]
    if any(weight < 0 for _, weight in pairs) or not sum(weight for _, weight in pairs):
        raise ValueError(f"weights must be 0 or more, and not all 0, as in '{example}'")
    return tuple(pairs)


def _sizes(value: Any) -> tuple[tuple[int, float], ...]:
    if isinstance(value, int):
        value = str(value)
    sizes = weighted(value, parse_size, "4KiB/70:64KiB/30")
    if min(size for size, _ in sizes) < 1:
        raise ValueError("a request must have at least 1 byte")
    return sizes


def _depths(value: Any) -> tuple[int, ...]:
    """Return the depths of '8', of '1-512' (doubled from the first to the last), or of a list."""
    if isinstance(value, list) and value:
        depths = tuple(parse_count(each) for each in value)
        if not all(1 <= depth <= DEPTH_MAX for depth in depths):
            raise ValueError(f"{value!r}: a depth must be from 1 to {DEPTH_MAX}")
        return depths
    first, dash, last = str(value).partition("-")
    low = parse_count(first)
    high = parse_count(last) if dash else low
    if not 1 <= low <= high <= DEPTH_MAX:
        raise ValueError(f"{value!r} is not a depth, as 32 or '1-512'")
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


def bytes_of(value: int | float, whole_bytes: int) -> int:
    """Return a size in bytes; a share (a float) is of `whole_bytes`."""
    return int(value * whole_bytes) if isinstance(value, float) else value
