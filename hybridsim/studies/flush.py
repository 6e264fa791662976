"""How fast the disks of a scenario take dirty data back when nothing else loads them."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridsim.foundation.codes import Op
from hybridsim.requests.inflight import Batch
from hybridsim.scenario import Scenario, building
from hybridsim.studies.machine_run import Pump

WRITES = 400  # that are simulated: a stretch of the volume as dense as the whole
DEPTH = 32  # writes at a time
SECOND = 10**9


def flush_rate(
    scenario: Scenario, volume_bytes: int, dirty_bytes: int, piece_bytes: int
) -> float | None:
    """Return bytes a second of a flush in order of address; None for less than one piece.

    The dirty pieces are taken to be spread evenly at random over the volume, and to be written in
    order of address, DEPTH at a time, as bcache does and a disk scheduler brings about for others.
    """
    dirty = dirty_bytes // piece_bytes
    places = volume_bytes // piece_bytes
    if not dirty or not places:
        return None
    number = min(dirty, WRITES, places)
    span = max(places * number // max(dirty, number), number)
    chosen = np.random.default_rng(scenario.seed).choice(span, number, replace=False)
    offsets = np.sort(chosen).astype(np.int64) * piece_bytes
    # Flushes at the end, as many as are issued at a time: until the last one, all is on the disks.
    none = np.zeros(number + DEPTH, np.int64)
    op, offset, length = np.full(number + DEPTH, Op.FLUSH, np.uint8), none.copy(), none.copy()
    op[:number], offset[:number], length[:number] = Op.WRITE, offsets, piece_bytes
    site = scenario.with_options(depth=DEPTH)
    pump = Pump(building.machine(site, "closed", volume_bytes, 0, has_life=True), SECOND)
    pump.take(
        Batch(none, op, offset, length, none - 1, none.copy(), np.array([0, 1, 0]), none.copy())
    )
    took: Any = pump.collector.last_done_ns
    return number * piece_bytes * SECOND / took if took else None
