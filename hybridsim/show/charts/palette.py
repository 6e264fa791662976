"""Colours that are distinguishable with any form of colour blindness.

M. Okabe and K. Ito, "Color Universal Design", 2008 (jfly.uni-koeln.de/color); on a dark page the
same hues, lighter where they would sink into it.
"""

from __future__ import annotations

from collections.abc import Sequence

BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, YELLOW, GREY = range(8)
LIGHT = ("#0072b2", "#d55e00", "#009e73", "#b0588c", "#c98a00", "#3f9fd6", "#a69a00", "#6b6b6b")
DARK = ("#4da6e0", "#ff8a4c", "#2cc79b", "#e39ac4", "#f0b94a", "#8fd0f5", "#f0e442", "#a8a8a8")

# Frequent series have the same colour in all charts.
ROLES = {
    "none": GREY, "cold": SKY, "warm": VERMILLION, "cached": VERMILLION, "real": BLUE,
    "simulated": VERMILLION, "mean": BLUE, "p50": GREEN, "p99": VERMILLION, "other": GREY,
}  # fmt: skip
INTERVAL = ROLES["warm"]  # colour of the interval of a mark


def colours(roles: Sequence[str]) -> list[int]:
    """Return a colour for each role; empty roles get unused colours, in order."""
    used = {ROLES[each] for each in roles if each in ROLES}
    free = iter([each for each in range(8) if each not in used] + list(range(8)) * len(roles))
    return [ROLES[each] if each in ROLES else next(free) for each in roles]
