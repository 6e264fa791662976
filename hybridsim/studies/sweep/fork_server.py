"""A process that imports what workers need, once: they are forked from it, and begin at once."""

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
    "hybridsim.studies.sweep.worker_cache",
]
ENVIRONMENT = {"OMP_NUM_THREADS": "1"}  # one thread a worker; what forks has none to lose


def wanted(workers: int | None, scheduler: str | None) -> int:
    """Return how many processes to start here, one a core if nothing is said; 1 is this one."""
    cores = len(os.sched_getaffinity(0)) if find_spec("distributed") else 1
    return 1 if scheduler else workers or cores


def begin() -> None:
    """Begin to import, beside what this process does; once is enough."""
    get_context("forkserver").set_forkserver_preload(IMPORTED)
    with deaf(), _environment():
        forkserver.ensure_running()


@contextlib.contextmanager
def deaf() -> Iterator[None]:
    """Start processes that no interrupt from the keyboard reaches: it is for this one alone."""
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
