"""One replay of a sweep: its identity, the command that repeats it, its computation by a worker."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybridsim.foundation.printable import shell_line
from hybridsim.foundation.version import PACKAGE, __version__
from hybridsim.requests.rows import Requests
from hybridsim.scenario import Scenario, identity
from hybridsim.studies.sweep.named_trace import NamedTrace
from hybridsim.traces.summary import Summary
from hybridsim.traces.trace import CHUNK_ROWS, Trace, Watch

if TYPE_CHECKING:
    from hybridsim.answers.result import Result
    from hybridsim.studies.runs import SharedAlone

DETAIL = "replay"  # a command, and its options that the scenario does not have
CODE = "kinds"  # folder next to the machine code: one file for each compiled kind
TRACES_MAX = 2  # in memory: points are grouped by trace
SHARE_OF_MEMORY = 4  # a worker uses 1/4 of its core's share of the free memory


@dataclass(frozen=True)
class Point:
    """One replay."""

    trace: NamedTrace
    digest: str  # of the trace
    values: tuple[tuple[str, Any], ...]  # of the keys that are varied
    scenario: Scenario  # with these values and the seed
    seed: int | None  # None: the seeds of scenario and trace
    detail: str = DETAIL  # what is computed; part of the key

    @functools.cached_property
    def key(self) -> str:
        """A hash of all inputs: trace, scenario, seed, version, detail."""
        whole = [self.digest, identity(self.scenario), self.seed, version(), self.detail]
        return hashlib.sha256(json.dumps(whole).encode()).hexdigest()

    @property
    def what(self) -> str:
        """The command that computes it."""
        return self.detail.partition(" ")[0]

    @property
    def command(self) -> str:
        """The command line that computes this point alone."""
        return command_of(self.what, self.trace, self.scenario, options_of(self.scenario))


def command_of(what: str, trace: NamedTrace, site: Scenario, options: list[str]) -> str:
    """Return the command line for a trace and the scenario file of a machine, with options."""
    file = ["--scenario", site.origin.name] if site.origin.name else []
    return shell_line(["hybridsim", what, *trace.arguments, *file, *options])


def options_of(site: Scenario, is_wanted: Callable[[Any], bool] = lambda path: True) -> list[str]:
    """Return the words of those options of a scenario whose key is wanted."""
    options = [option for path, option in site.options_by_path() if is_wanted(path)]
    return [word for option in options for word in option.split(" ", 1)]


def point(
    trace: NamedTrace, digest: str, scenario: Scenario, values: dict[str, Any], seed: int | None
) -> Point:
    """Return a point; raise ScenarioError for invalid values."""
    site = scenario.with_values(values)
    site = site if seed is None else site.with_options(seed=seed)
    return Point(trace, digest, tuple(values.items()), site, seed)


@functools.cache
def version() -> str:
    """Return the version with a hash of the source: results of other code are not reused."""
    digest = hashlib.sha256()
    for source in sorted(PACKAGE.rglob("*.py")):
        digest.update(source.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:12]}"


Compute = Callable[[Point], dict[str, Any]]  # returns figures by name
Kind = tuple[Any, ...]


def result_of(point: Point, shared_folder: str | None = None) -> Result:
    """Replay a point.

    In `shared_folder` processes that replay the same trace share the results of the disks alone; by
    default each process has its own.
    """
    from hybridsim.studies.replay import replay

    trace = kept(point.trace, point.digest, None)
    if trace.is_generated and point.seed is not None:
        trace = kept(point.trace, point.digest, point.seed)
    alone = trace.alone if shared_folder is None else shared_alone(shared_folder)
    result = replay(trace, point.scenario, alone=alone)
    remember_code(compiled_kind(point))
    return result


def replayed(point: Point) -> dict[str, Any]:
    """Replay a point; return the figures of its result, as of `hybridsim replay`."""
    from hybridsim.studies.sweep.figures import figures

    return figures(result_of(point))


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
    from hybridsim.studies.runs import Alone

    return point.digest, point.seed, Alone.which(point.scenario, point.scenario.replay.mode, 0)


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
    from hybridsim.jit.code_folder import cache_folder

    return cache_folder() / CODE / hashlib.sha256(repr(kind).encode()).hexdigest()[:16]


class Kept(Trace):
    """A trace whose requests stay in memory if they fit."""

    def __init__(self, trace: Trace, room_bytes: int) -> None:
        """Keep at most `room_bytes` of requests."""
        from hybridsim.studies.runs import Alone

        super().__init__(trace.name, trace.format, trace._reader)
        self.alone = Alone()
        self._room_bytes = room_bytes
        self._chunks: list[Requests] | None = None
        self._summary: Summary | None = None

    def chunks(self, rows: int = CHUNK_ROWS) -> Iterator[Requests]:
        """Yield the requests: from the file the first time, then from memory."""
        if rows != CHUNK_ROWS:
            yield from super().chunks(rows)
        elif self._chunks is not None:
            yield from self._chunks
        else:
            yield from self._first_pass()

    def _first_pass(self) -> Iterator[Requests]:
        chunks: list[Requests] = []
        held = 0
        for chunk in super().chunks():
            held += sum(column.nbytes for column in chunk)
            if held <= self._room_bytes:
                chunks.append(chunk)
            else:
                chunks.clear()
            yield chunk
        if held <= self._room_bytes:
            self._chunks = chunks

    def summary(self, watch: Watch = iter) -> Summary:
        """Return the summary of the trace, which is computed once."""
        if self._summary is None:
            self._summary = super().summary(watch)
        return self._summary


@functools.lru_cache(maxsize=TRACES_MAX)
def kept(trace: NamedTrace, digest: str, seed: int | None) -> Kept:
    """Return an open trace; the last TRACES_MAX ones are reused."""
    free_bytes = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return Kept(trace.open(seed), free_bytes // (SHARE_OF_MEMORY * (os.cpu_count() or 1)))


@functools.lru_cache(maxsize=1)
def shared_alone(folder: str) -> SharedAlone:
    """Return the results of the disks alone that the processes share in a folder."""
    from hybridsim.studies.runs import SharedAlone

    return SharedAlone(folder)
