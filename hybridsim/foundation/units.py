"""Sizes, times, rates and shares as people write them, and as integers of bytes and nanoseconds.

A bare k, m, g or t counts in 1024, as in fio; so does KiB; kB, MB, GB, TB, PB count in 1000.
Arithmetic is exact: a text that is not a whole number of bytes or nanoseconds is refused.
`format_*` returns text that reads back as the same number; `human_*` rounds for display.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from hybridsim.foundation.suggest import nearest

LARGEST = 2**63 - 1  # the maximum of an int64
LENGTH_MAX = 400  # maximum length of a text in characters
SIZES: dict[str, int] = {
    "B": 1,
    **{letter: 1024**power for power, letter in enumerate("kmgt", 1)},
    **{f"{letter}iB": 1024**power for power, letter in enumerate("KMGTP", 1)},
    **{f"{letter}B": 1000**power for power, letter in enumerate("kMGTP", 1)},
}
TIMES: dict[str, int] = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
}
RATES: dict[str, int] = {f"{unit}/s": factor for unit, factor in SIZES.items() if "B" in unit}
_NUMBER = re.compile(r"(\d++(?:_\d++)*+(?:\.\d++)?)\s*+(\D*+)", re.ASCII)


def parse_size(text: str | int) -> int:
    """Return the bytes of '64KiB', '32GB', '4k' or a plain number of bytes."""
    if isinstance(text, int) and not isinstance(text, bool):
        return _checked(Fraction(text), str(text), "bytes")
    return _parse(text, SIZES, "size", "64KiB, 32GB or 4k (= 4096)", "bytes", bare=1)


def parse_time(text: str | int) -> int:
    """Return the nanoseconds of '8.5ms', '20us' or '1h'; a bare number is refused."""
    if isinstance(text, int) and not isinstance(text, bool) and text != 0:
        raise ValueError(f"a time needs a unit: write '{text}ms', '{text}us' or '{text}s'")
    bare = 1 if text == 0 else 0
    return _parse(str(text), TIMES, "time", "8.5ms, 20us or 1h", "nanoseconds", bare)


def parse_rate(text: str) -> int:
    """Return the bytes per second of '270MB/s'."""
    return _parse(text, RATES, "rate", "270MB/s or 64KiB/s", "bytes a second")


def parse_percent(text: object) -> Fraction:
    """Return the exact share that '10%' stands for."""
    match = _matched(text)
    if match is None or match[2] != "%":
        raise ValueError(f"{text!r} is not a percentage: write for example '10%'")
    return Fraction(match[1].replace("_", "")) / 100


def _parse(
    text: object, units: Mapping[str, int], what: str, example: str, whole: str, bare: int = 0
) -> int:
    match = _matched(text)
    if match is None:
        raise ValueError(f"{text!r} is not a {what}: write for example {example}")
    factor = _factor(match[2], units, bare)
    if factor == 0:
        raise ValueError(_unknown_unit(match[1], match[2], units, what, example))
    return _checked(Fraction(match[1].replace("_", "")) * factor, text, whole)


def _matched(text: object) -> re.Match[str] | None:
    """Return number and unit of a text; None if it does not match or is too long."""
    if not isinstance(text, str) or len(text) > LENGTH_MAX:
        return None
    return _NUMBER.fullmatch(text.strip())


def _factor(unit: str, units: Mapping[str, int], bare: int) -> int:
    if not unit:
        return bare
    exact = units.get(unit.replace("µ", "u"))
    if exact is not None or units is TIMES:
        return exact or 0
    return {name.casefold(): factor for name, factor in units.items()}.get(unit.casefold(), 0)


def _unknown_unit(number: str, unit: str, units: Mapping[str, int], what: str, example: str) -> str:
    if not unit:
        return f"a {what} needs a unit: write for example {example}"
    near = nearest(unit, units)
    one, other = (near or "").casefold(), unit.casefold()
    begins = len(one) > 1 and (one.startswith(other) or other.startswith(one))
    remedy = f"did you mean '{number}{near}'?" if begins else f"choose from {', '.join(units)}"
    return f"unknown {what} unit {unit!r}: {remedy}"


def _checked(number: Fraction, text: object, whole: str) -> int:
    if number.denominator != 1:
        raise ValueError(f"{text!r} is not a whole number of {whole}")
    if not 0 <= number <= LARGEST:
        raise ValueError(f"{str(text)[:30]!r} is out of range: 0 to 2^63 - 1 {whole}")
    return int(number)


def format_size(size_bytes: int) -> str:
    """Return the shortest text that reads back as exactly these bytes: '64KiB', '32GB'."""
    return _exact(size_bytes, {unit: SIZES[unit] for unit in SIZES if "B" in unit}, "B")


def format_time(time_ns: int) -> str:
    """Return the shortest text that reads back as exactly this time: '500ms'."""
    return _exact(time_ns, TIMES, "ns")


def format_rate(bytes_per_s: int) -> str:
    """Return the shortest text that reads back as exactly this rate: '204MB/s'."""
    return _exact(bytes_per_s, RATES, "B/s")


def _exact(number: int, units: Mapping[str, int], smallest: str) -> str:
    """Return the number in the unit with the fewest digits, at most three after the point."""
    texts = [f"{number}{smallest}"]
    for unit, factor in units.items():
        if number >= factor and number * 1000 % factor == 0:
            whole, thousandths = divmod(number * 1000 // factor, 1000)
            texts.append(f"{whole}.{thousandths:03}".rstrip("0").rstrip(".") + unit)
    return min(texts, key=len)


def human_size(size_bytes: float) -> str:
    """Return bytes rounded for display, in units of 1024: '46.0 GiB'."""
    return _human(size_bytes, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"], 1024)


def human_rate(bytes_per_s: float) -> str:
    """Return a rate rounded for display, in units of 1000 as in datasheets: '72.0 MB/s'."""
    return _human(bytes_per_s, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"], 1000)


def human_count(count: float) -> str:
    """Return a count rounded for display: '954', '41.2 M'."""
    return _human(count, ["", "k", "M", "G", "T"], 1000)


def human_time(time_ns: float) -> str:
    """Return a time rounded for display: '88.0 us', '1.40 ms', '6h 12m'."""
    minutes = round(time_ns / TIMES["m"])
    if minutes >= 24 * 60:
        return f"{minutes // 1440}d {minutes % 1440 // 60}h"
    if minutes >= 60:
        return f"{minutes // 60}h {minutes % 60}m"
    if time_ns >= 100 * TIMES["s"]:
        return f"{round(time_ns / TIMES['s']) // 60}m {round(time_ns / TIMES['s']) % 60}s"
    return _human(time_ns, ["ns", "us", "ms", "s"], 1000)


def _human(number: float, units: list[str], step: int) -> str:
    """Round to three digits in the largest unit with at least one before the point."""
    value, rank = float(number), 0
    while rank + 1 < len(units) and round(abs(value), _digits(value)) >= step:
        value, rank = value / step, rank + 1
    digits = 0 if rank == 0 and value == int(value) else _digits(value)
    return f"{value:.{digits}f} {units[rank]}".rstrip()


def _digits(value: float) -> int:
    return max(0, 3 - len(str(int(abs(value)))))
