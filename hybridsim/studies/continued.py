"""The load that goes on after a capture, as input of a machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from hybridsim.answers.forecast import HORIZON
from hybridsim.answers.metrics import Collector
from hybridsim.foundation.errors import ScenarioError
from hybridsim.requests.continuation import continuation
from hybridsim.requests.rows import Requests, joined
from hybridsim.scenario import Scenario
from hybridsim.traces.trace import Trace

if TYPE_CHECKING:
    from hybridsim.requests.inflight import Facts

FEWEST, MOST = 40, 300_000  # requests of a capture that is continued; the most limit the time
CHUNK_ROWS = 1 << 13  # after each it is seen whether the machines keep up
BEHIND = 1 << 12  # requests outstanding, of a machine that does not
_known: WeakKeyDictionary[Trace, dict[int, Continued | None]] = WeakKeyDictionary()


@dataclass
class Continued:
    """The requests of a capture, and those after it."""

    name: str
    rows: Requests
    captured: int  # the first of the rows
    end_bytes: int

    def from_first(self) -> Iterator[Requests]:
        """Yield the requests; the first is at time 0."""
        return self.chunks()

    def chunks(self) -> Iterator[Requests]:
        """Yield the requests."""
        for start in range(0, self.rows.rows, CHUNK_ROWS):
            yield self.rows.between(start, start + CHUNK_ROWS)


def continued(trace: Trace, scenario: Scenario, end_bytes: int) -> Continued | None:
    """Return a capture with HORIZON times as many requests after it; None if it has no such.

    The volume, of `end_bytes` in the capture, grows to twice its size at most, if the disks of the
    scenario have the room.
    """
    room_bytes = _room(scenario, end_bytes)
    known = _known.setdefault(trace, {})
    if room_bytes not in known:
        known[room_bytes] = _continued(trace, room_bytes)
    return known[room_bytes]


def _continued(trace: Trace, room_bytes: int) -> Continued | None:
    rows = joined(list(trace.from_first()))
    half = rows.rows // 2
    if not (rows.length_bytes[:half].any() and rows.length_bytes[half:].any()):
        return None
    end_bytes = int((rows.offset_bytes + rows.length_bytes).max())
    more = continuation(rows, round(HORIZON * rows.rows), end_bytes=room_bytes)
    end_bytes = max(end_bytes, int((more.offset_bytes + more.length_bytes).max()))
    return Continued(trace.name, joined([rows, more]), rows.rows, end_bytes)


def _room(scenario: Scenario, end_bytes: int) -> int:
    """Return up to where a load may go on."""
    try:
        scenario.backing.member_bytes(2 * end_bytes)
    except ScenarioError:
        return end_bytes
    return 2 * end_bytes


class Pairs(Collector):
    """Keeps what pairs of machines are compared by, and no figures over time."""

    def add(self, facts: Facts) -> None:
        """Add a chunk of facts."""
        self.ledger.add(facts)
