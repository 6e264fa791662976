"""Why a page was let in, in words; and how high the threshold stood."""

from __future__ import annotations

from hybridsim.units import human_count, human_ns, human_size
from hybridsim.verbs.why import (
    FILLED,
    HIT,
    RIVAL,
    ROOM,
    SCAN,
    TOO_LITTLE,
    UNKNOWN,
    WORTHLESS,
    Decision,
    Moment,
    Page,
    Why,
)

TOLD = 16  # decisions on a page; of more the first and the last
