"""Serve a guest's disks: `python -m validate.lab.serve SCENARIO NAME=PART:BYTES...`.

PART selects a device of the scenario: `array` (the whole array), `member` (one drive of the array)
or `ssd` (the cache's drives).  Each disk has its own process, forked after the shared modules are
loaded.  At its end it writes its requests to NAME.requests.npy and a summary to NAME.model.json.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from hybridsim.engine.live import LiveArray
from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import Level, Op
from hybridsim.foundation.errors import HybridsimError
from hybridsim.foundation.machine_parameters import ArrayParameters
from hybridsim.jit.events import FAST
from hybridsim.scenario import Scenario, building
from hybridsim.serving import nbd
from hybridsim.storage.controller import Controller
from hybridsim.storage.drives import HardDisk, Placement
from hybridsim.storage.raid import Tier
from validate.lab.disk import PAGE, Disk, listening, wake_up_in_time
from validate.lab.processes import die_with_parent


def model(scenario: Scenario, part: str, size_bytes: int) -> tuple[LiveArray, nbd.Export]:
    """Return the live device of a part of a scenario, of `size_bytes` or more, and its export."""
    backing, cache = scenario.backing, scenario.cache
    tier: Tier | Controller
    if part == "ssd":
        drive, tier = cache.drive, _ssds(cache, size_bytes, scenario.seed + 1)
    else:
        if part == "member":
            single = {"kind": "single", "members": 1, "controller": None, "failed": ()}
            backing = backing.model_copy(update=single)
        drive, tier = backing.drive, building.slow_tier(backing, size_bytes, scenario.seed)
    is_disk = isinstance(drive, HardDisk)
    export = nbd.Export(size_bytes, can_trim=not is_disk, is_rotational=is_disk)
    return LiveArray(tier), export


def _ssds(cache: Any, size_bytes: int, seed: int) -> Tier:
    """Return the cache's drives as a stripe."""
    rows = -(-size_bytes // (cache.members * cache.chunk_bytes))
    bank = cache.drive.bank(cache.members, Placement(rows * cache.chunk_bytes, seed))
    return Tier.new(FAST, ArrayParameters(Level.STRIPE, cache.members, cache.chunk_bytes), bank)


def compile_model(scenario: Scenario, part: str, size_bytes: int) -> None:
    """Compile what a disk of this part runs, before it serves requests.

    Interpreted, a destage from a full write cache takes a millisecond and more: the answers to a
    burst of them were tens of milliseconds late.
    """
    live, _ = model(scenario, part, size_bytes)
    live.submit(0, 0, int(Op.READ), 0, PAGE)


class _EndedError(Exception):
    """Raised by SIGTERM."""


def _end(number: int, frame: FrameType | None) -> None:
    raise _EndedError


def serve(name: str, disk: Disk) -> None:
    """Serve a disk until SIGTERM; then write its requests and their summary."""
    wake_up_in_time()
    gc.freeze()
    gc.disable()  # avoids pauses of milliseconds; there are no reference cycles here
    listener = listening(Path(f"{name}.sock"))
    with contextlib.suppress(_EndedError):
        while True:
            connection, _ = listener.accept()
            with connection:
                disk.serve(connection)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    rows = np.array(disk.log.values, np.int64).reshape(-1, len(disk.log.columns))
    table = rows.ravel().view([(column, np.int64) for column in disk.log.columns])
    np.save(f"{name}.requests.npy", table, allow_pickle=False)
    Path(f"{name}.model.json").write_text(
        json.dumps({"size_bytes": disk.export.size_bytes} | summary(rows), indent=1)
    )


def summary(rows: Ints) -> dict[str, Any]:
    """Return the number of requests, and how late the answers were against the model."""
    if not len(rows):
        return {"requests": 0}
    arrival, done, sent = rows[:, 1], rows[:, 2], rows[:, 3]
    late_us = (sent - done) / 1e3
    return {
        "requests": len(rows),
        "mean_model_us": float((done - arrival).mean() / 1e3),
        "mean_late_us": float(late_us.mean()),
        "late_us": {str(p): float(np.percentile(late_us, p)) for p in (50, 90, 99, 99.9)},
        "worst_late_us": float(late_us.max()),
    }


def main(scenario_path: str, disks: list[str]) -> None:
    """Fork a process for each disk, and forward SIGTERM to them."""
    scenario = Scenario.load(scenario_path)
    children = []
    for text in disks:
        name, _, rest = text.partition("=")
        part, _, size = rest.partition(":")
        compile_model(scenario, part, int(size))
        live, export = model(scenario, part, int(size))
        child = os.fork()
        if not child:
            die_with_parent(signal.SIGTERM)
            signal.signal(signal.SIGTERM, _end)
            serve(name, Disk(export, live))
            os._exit(0)
        children.append(child)

    def end_all(number: int, frame: FrameType | None) -> None:
        for child in children:
            os.kill(child, number)

    signal.signal(signal.SIGTERM, end_all)
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    try:
        main(sys.argv[1], sys.argv[2:])
    except HybridsimError as error:
        sys.exit(str(error))
