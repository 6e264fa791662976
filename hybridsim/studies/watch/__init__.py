"""Caches that are simulated beside a running disk: what they would do now, in bounded memory.

`pieces` reads the requests while they come; `pages` and `machines` simulate the caches, `real`
reads the counters of a cache that runs; `watching` takes them together, `kept` saves their state,
and `metrics` writes them for Prometheus.
"""

from hybridsim.studies.watch.kept import Kept
from hybridsim.studies.watch.machines import KernelCache
from hybridsim.studies.watch.metrics import prometheus
from hybridsim.studies.watch.pages import PageCaches
from hybridsim.studies.watch.pieces import Piece, of_disk, of_stream
from hybridsim.studies.watch.real import Beside, Real, counters_of, settings
from hybridsim.studies.watch.shadow import Shadow, Simulated
from hybridsim.studies.watch.watching import Snapshot, compile_for, unseen, watch

__all__ = [
    "Beside",
    "Kept",
    "KernelCache",
    "PageCaches",
    "Piece",
    "Real",
    "Shadow",
    "Simulated",
    "Snapshot",
    "compile_for",
    "counters_of",
    "of_disk",
    "of_stream",
    "prometheus",
    "settings",
    "unseen",
    "watch",
]
