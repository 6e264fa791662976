"""Workers by dask.distributed: processes of this machine, or those of a running scheduler.

If a worker dies, dask assigns its point to another one.  If the scheduler dies, its state is lost:
running points are cancelled here, and submitted again as soon as a scheduler answers.  (The workers
of dask end with their scheduler and must be restarted with it.)
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import logging
import os
import queue
import time
import warnings
from collections import Counter
from concurrent.futures import CancelledError
from typing import Any

import dask
import distributed.utils
from distributed import Client, Future, KilledWorker, LocalCluster

from hybridsim.foundation.errors import UsageError
from hybridsim.studies.sweep import fork_server as nursery
from hybridsim.studies.sweep.point import Compute, Kind, Point, computed, has_code, shared, version
from hybridsim.studies.sweep.running import Settled, why_of

AHEAD = 2  # points per worker, so that no worker waits
CONNECT_S = 30
PATIENCE_S = 600  # to wait for a scheduler that disappeared
GATHER_S = 60
COUNT_AGAIN_S = 5.0  # workers come and go
SETTINGS: dict[str, Any] = {
    # Results are small; a worker must not spill its traces to disk.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    # Set MALLOC_TRIM_THRESHOLD_: otherwise each array of a replay is mapped anew.
    "distributed.nanny.pre-spawn-environ": nursery.ENVIRONMENT,
    "distributed.worker.multiprocessing-method": "forkserver",
    "distributed.worker.profile.enabled": False,  # it samples a worker's threads 100 times a second
    # Reduce other periodic work.
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.admin.tick.interval": "1s",
    "distributed.worker.memory.monitor-interval": "2s",
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.comm.timeouts.connect": "60s",  # busy machines start workers slowly
}


class Cluster:
    """The workers of a dask scheduler."""

    def __init__(self, compute: Compute, workers: int, scheduler: str | None = None) -> None:
        """Start `workers` processes here, or use those of the scheduler at an address."""
        self._compute = compute
        self._address = scheduler
        self._done: queue.SimpleQueue[Future] = queue.SimpleQueue()
        # By task, with its worker's address.
        self._under_way: dict[str, tuple[Point, Future, str | None]] = {}
        self._homes: dict[Any, str] = {}  # by disks: address of their last worker
        self._lost: list[Point] = []
        self._numbers = itertools.count()
        self._own = _started(workers) if scheduler is None else None
        self._client = self._connected(CONNECT_S)
        self._workers, self._counted = workers, 0.0
        link = str(self._client.dashboard_link or "")
        if importlib.util.find_spec("bokeh") is None:  # which the dashboard needs
            link = link.replace("/status", "/info/main/workers.html")
        self.link = link

    def has_code(self, kind: Kind) -> bool:
        """Return whether the workers find the machine code of a kind on this machine's disk."""
        return self._own is not None and has_code(kind)

    @property
    def words(self) -> str:
        """Description of the workers."""
        where = f"of {self._address}" if self._address else "on this machine"
        return f"{self.workers} worker{'s' * (self.workers != 1)} {where}"

    @property
    def workers(self) -> int:
        """Number of threads of the workers, as last reported."""
        if self._own is None and time.monotonic() - self._counted > COUNT_AGAIN_S:
            self._counted = time.monotonic()
            try:
                self._workers = sum(self._client.nthreads().values())
            except (OSError, TimeoutError, RuntimeError):
                self._workers = 0  # the scheduler does not answer
        return self._workers

    @property
    def lanes(self) -> int:
        """Number of sequences of points that run in parallel, each on its own worker."""
        return max(self.workers, 1) if self._own is not None else 1

    @property
    def room(self) -> int:
        """Maximum number of submitted points."""
        return AHEAD * max(self.workers, 1)

    def submit(self, point: Point) -> None:
        """Submit a point to a worker."""
        task = f"{point.key}-{next(self._numbers)}"
        home = self._home(point)
        future = self._client.submit(
            computed, self._compute, point, key=task, pure=False,
            workers=home and [home], allow_other_workers=bool(home),
        )  # fmt: skip
        self._under_way[task] = point, future, home
        future.add_done_callback(self._done.put)

    def _home(self, point: Point) -> str | None:
        """Return the worker that has the point's disks, or the least loaded one; None: any.

        Dask moves points from a busy worker to an idle one.
        """
        if self._own is None:
            return None
        loads = Counter(home for _point, _future, home in self._under_way.values())
        workers = [each.worker_address for each in self._own.workers.values()]
        workers = [address for address in workers if address]  # others are restarting
        if not workers:
            return None
        idlest = min(workers, key=loads.__getitem__)
        home = self._homes.setdefault(shared(point), idlest)
        if home not in workers or loads[home] > loads[idlest] + 1:
            home = self._homes[shared(point)] = idlest
        return home

    def next(self, timeout_s: float) -> Settled | None:
        """Return a settled point; None after `timeout_s` seconds."""
        self._resubmit_lost()
        try:
            future = self._done.get(timeout=timeout_s)
        except queue.Empty:
            return None
        if future.key not in self._under_way:  # dropped
            return None
        point, *_ = self._under_way.pop(future.key)
        try:
            row = future.result(timeout=GATHER_S)
        except KilledWorker as error:
            times = f"{error.allowed_failures + 1} workers"
            return Settled(point, None, f"{times} died while computing it: out of memory?")
        except (CancelledError, TimeoutError, OSError):
            self._lost.append(point)  # it is submitted again
        except Exception as error:
            return Settled(point, None, why_of(error))
        else:
            theirs = row["run"]["version"]
            if theirs == version():
                return Settled(point, row)
            why = f"the worker on {row['run']['host']} runs hybridsim {theirs}, not {version()}"
            return Settled(point, None, why)  # its result may differ
        return None

    def drop(self) -> None:
        """Release the submitted points; what a worker computes is of no interest any more."""
        for _point, future, _home in self._under_way.values():
            future.release()
        self._under_way.clear()
        self._lost.clear()

    def close(self) -> None:
        """Release the submitted points, and stop the workers that were started here."""
        self.drop()
        for each in filter(None, (self._client, self._own)):
            with contextlib.suppress(OSError, TimeoutError, CancelledError):  # already closed
                each.close(timeout=5)

    def _resubmit_lost(self) -> None:
        if not self._lost:
            return
        if self._client.status == "closed":
            self._client = self._connected(PATIENCE_S)
        if self._client.status == "running":
            lost, self._lost = self._lost, []
            for each in lost:
                self.submit(each)
        else:
            time.sleep(0.1)  # the client is reconnecting

    def _connected(self, patience_s: float) -> Client:
        begun = time.monotonic()
        while True:
            try:
                return Client(self._own or self._address, timeout=CONNECT_S, set_as_default=False)
            except (OSError, TimeoutError):
                if time.monotonic() - begun > patience_s or self._own:
                    raise UsageError(f"no dask scheduler answers at {self._address}") from None
            except ValueError as error:
                raise UsageError(
                    f"--scheduler {self._address}: {error}; expected for example tcp://host:8786"
                ) from None


def _started(workers: int) -> LocalCluster:
    """Start workers with the current environment."""
    dask.config.set(SETTINGS)
    # The fork server has the list of imports; dask would import pandas here only to add it.
    distributed.utils._forkserver_preload_set = True
    try:
        with nursery.deaf(), warnings.catch_warnings():
            # The dashboard takes another port then, which its link has.
            warnings.filterwarnings("ignore", message=r"Port \d+ is already in use")
            return LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, env=dict(os.environ),
                silence_logs=logging.CRITICAL,
            )  # fmt: skip
    except (OSError, RuntimeError, TimeoutError) as error:
        raise UsageError(f"cannot start the workers: {error}; use --workers 1") from error
