"""A fork server that imports the workers' modules once, so that workers start at once."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from importlib.util import find_spec
from multiprocessing import forkserver, get_context

IMPORTED = [
    "distributed",
    "hybridsim.studies.replay",
    "hybridsim.studies.sweep.figures",
    "hybridsim.studies.sweep.point",
]
ENVIRONMENT = {"OMP_NUM_THREADS": "1"}  # one thread per worker; a forking process must have none


def wanted(workers: int | None, scheduler: str | None) -> int:
    """Return the number of processes to start, by default one per core; 1 is this process."""
    cores = len(os.sched_getaffinity(0)) if find_spec("distributed") else 1
    return 1 if scheduler else workers or cores


def begin() -> None:
    """Start the fork server, which imports in parallel with this process; idempotent."""
    get_context("forkserver").set_forkserver_preload(IMPORTED)
    with deaf(), _environment():
        forkserver.ensure_running()


@contextlib.contextmanager
def deaf() -> Iterator[None]:
    """Start processes that ignore keyboard interrupts, which only this process handles."""
    handler = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


@contextlib.contextmanager
def _environment() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in ENVIRONMENT}
    os.environ.update(ENVIRONMENT)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
