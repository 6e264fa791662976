"""What a worker does with a point."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hybridsim.studies.sweep.point import Point, version

Compute = Callable[[Point], dict[str, Any]]  # what is worth keeping, by name
Kind = tuple[Any, ...]
CODE = "kinds"  # beside the machine code: a file for each kind that is compiled


def replayed(point: Point) -> dict[str, Any]:
    """Replay a point; return the figures of its result, the same as `hybridsim replay` finds."""
    from hybridsim.studies.replay import replay
    from hybridsim.studies.sweep.figures import figures
    from hybridsim.studies.sweep.worker_cache import kept

    trace = kept(point.trace, point.digest, None)
    if trace.is_made and point.seed is not None:
        trace = kept(point.trace, point.digest, point.seed)
    found = figures(replay(trace, point.scenario, alone=trace.alone))
    _remember_code(compiled_kind(point))
    return found


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


def compiled_kind(point: Point) -> Kind:
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


def shared(point: Point) -> tuple[Any, ...]:
    """Return what a worker keeps of a point for the next: those of a trace and disks share it."""
    from hybridsim.studies.disks_alone import disks

    return point.digest, point.seed, disks(point.scenario, point.scenario.replay.mode, 0)


def has_code(kind: Kind) -> bool:
    """Tell whether a point of this kind was computed on this machine, by this source."""
    return _mark(kind).exists()


@functools.cache
def _remember_code(kind: Kind) -> None:
    with contextlib.suppress(OSError):
        _mark(kind).parent.mkdir(exist_ok=True)
        _mark(kind).touch()


def _mark(kind: Kind) -> Path:
    from hybridsim.jit import cache_folder

    return cache_folder() / CODE / hashlib.sha256(repr(kind).encode()).hexdigest()[:16]
