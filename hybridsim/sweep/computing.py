"""What a worker does with a point."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from typing import Any

from hybridsim.sweep.point import Point, version

Compute = Callable[[Point], dict[str, Any]]  # what is worth keeping, by name


def replayed(point: Point) -> dict[str, Any]:
    """Replay a point; return the figures of its result, the same as `hybridsim replay` finds."""
    from hybridsim.sweep.figures import figures
    from hybridsim.sweep.kept import kept
    from hybridsim.verbs.replay import replay

    trace = kept(point.trace, point.digest, None)
    if trace.is_made and point.seed is not None:
        trace = kept(point.trace, point.digest, point.seed)
    return figures(replay(trace, point.scenario, alone=trace.alone))


def computed(compute: Compute, point: Point) -> dict[str, Any]:
    """Compute a point; return its figures, and how and by whom they were computed."""
    begun = time.monotonic()
    figures = compute(point)
    run = {
        "seconds": round(time.monotonic() - begun, 3),
        "host": socket.gethostname(),
        "process": os.getpid(),
        "version": version(),
    }
    return {"figures": figures, "run": run}


def compiled_kind(point: Point) -> tuple[Any, ...]:
    """Return what decides which machine code a point needs; points of one kind share it.

    It may tell apart what shares machine code, which costs little: the first point of each kind
    comes before the others, so that not all workers compile the same.
    """
    backing, cache = point.scenario.backing, point.scenario.cache
    drives = [
        (drive.kind, getattr(drive, "flash", None) is None)
        for drive in (backing.drive, cache.drive)
    ]
    policies = [getattr(cache, name, None) for name in ("admission", "replacement")]
    budget = getattr(cache, "write_budget", None) is None
    return (*drives, backing.controller is None, cache.kind, *policies, budget)
