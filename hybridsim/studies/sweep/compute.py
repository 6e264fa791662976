"""Computation of a point by a worker."""

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

Compute = Callable[[Point], dict[str, Any]]  # returns figures by name
Kind = tuple[Any, ...]
CODE = "kinds"  # folder next to the machine code: one file for each compiled kind


def replayed(
    point: Point,
    more: Callable[[Any], dict[str, Any]] | None = None,
    shared_folder: str | None = None,
    has_intervals: bool = True,
) -> dict[str, Any]:
    """Replay a point; return the figures of its result, as of `hybridsim replay`.

    `more` returns further figures of the Result; without intervals it takes less time.  In
    `shared_folder` processes that replay the same
    trace share the results of the disks alone; by default each process has its own.
    """
    from hybridsim.studies.replay import replay
    from hybridsim.studies.sweep.figures import figures
    from hybridsim.studies.sweep.worker_cache import kept, shared_alone

    trace = kept(point.trace, point.digest, None)
    if trace.is_generated and point.seed is not None:
        trace = kept(point.trace, point.digest, point.seed)
    alone = trace.alone if shared_folder is None else shared_alone(shared_folder)
    result = replay(trace, point.scenario, alone=alone)
    row = figures(result, has_intervals)
    if more is not None:
        row |= more(result)
    remember_code(compiled_kind(point))
    return row


def computed(compute: Compute, point: Point) -> dict[str, Any]:
    """Compute a point; return its figures, with duration, host, process and version."""
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
    """Return the kind of a point: points of one kind share their machine code.

    Points of different kinds may share it too.  The first point of each kind runs before the
    others, so that not all workers compile the same code.
    """
    backing, cache = point.scenario.backing, point.scenario.cache
    drives = [
        (drive.kind, getattr(drive, "flash", None) is None)
        for drive in (backing.drive, cache.drive)
    ]
    policies = [getattr(cache, name, None) for name in ("admission", "replacement")]
    budget = getattr(cache, "write_budget", None) is None
    return (*drives, backing.controller is None, cache.kind, *policies, budget, point.what)


def shared(point: Point) -> tuple[Any, ...]:
    """Return the key of the data that a worker keeps for its next point: trace and disks."""
    from hybridsim.studies.disks_alone import disks

    return point.digest, point.seed, disks(point.scenario, point.scenario.replay.mode, 0)


def has_code(kind: Kind) -> bool:
    """Return whether this source computed a point of this kind on this machine before."""
    return _mark(kind).exists()


@functools.cache
def remember_code(kind: Kind) -> None:
    """Note that this source computed a point of this kind here: its machine code is on disk."""
    with contextlib.suppress(OSError):
        _mark(kind).parent.mkdir(exist_ok=True)
        _mark(kind).touch()


def _mark(kind: Kind) -> Path:
    from hybridsim.jit import cache_folder

    return cache_folder() / CODE / hashlib.sha256(repr(kind).encode()).hexdigest()[:16]
