"""Parse and format sizes and times; k, m, g are powers of 1024, as in fio, and MB of 1000."""

from __future__ import annotations

import re
from fractions import Fraction

SECTOR = 512
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SIZES = {
    "": 1, "B": 1,
    **{letter: 1024**power for power, letter in enumerate("kmgt", 1)},
    **{f"{letter}iB": 1024**power for power, letter in enumerate("KMGT", 1)},
    **{f"{letter}B": 1000**power for power, letter in enumerate("kMGT", 1)},
}  # fmt: skip
MICROSECONDS = {"us": 1, "ms": 10**3, "s": 10**6, "m": 60 * 10**6, "h": 3600 * 10**6}
_NUMBER = re.compile(r"\s*+(\d++(?:_\d++)*+(?:\.\d++)?+)\s*+([A-Za-z]*+)\s*+", re.ASCII)


def size_of(text: object) -> int:
    """Return the bytes of '64KiB', '4k' or a number of bytes; raise ValueError otherwise."""
    if isinstance(text, int) and not isinstance(text, bool) and text >= 0:
        return text
    return _amount(text, SIZES, "size", "'64KiB', '32GB' or '4k'")


def microseconds_of(text: object) -> int:
    """Return the microseconds of '150s', '20m' or '2ms'; raise ValueError otherwise."""
    if text in (0, "0"):
        return 0
    return _amount(text, MICROSECONDS, "time", "'150s', '20m' or '2ms'")


def seconds_of(text: object) -> int:
    """Return whole seconds, at least one; raise ValueError otherwise."""
    seconds, rest = divmod(microseconds_of(text), 10**6)
    if rest or not seconds:
        raise ValueError(
            f"{text!r} is not a positive whole number of seconds: write for example '150s'"
        )
    return seconds


def _amount(text: object, units: dict[str, int], what: str, example: str) -> int:
    match = _NUMBER.fullmatch(text) if isinstance(text, str) else None
    unit = match[2] if match else ""
    factor = units.get(unit, units.get(unit.lower()) if len(unit) == 1 else None)
    if match is None or factor is None:
        raise ValueError(f"{text!r} is not a {what}: write for example {example}")
    amount = Fraction(match[1].replace("_", "")) * factor
    if amount.denominator != 1:
        raise ValueError(f"{text!r} is not a whole number of the smallest unit")
    return int(amount)


def human(size_bytes: int) -> str:
    """Return a size with a unit: '8 GiB', '512 KiB'."""
    for unit, name in ((1 << 40, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if size_bytes >= unit:
            return f"{size_bytes / unit:.4g} {name}"
    return f"{size_bytes} B"
