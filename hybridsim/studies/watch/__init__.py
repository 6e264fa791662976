"""Caches that are simulated beside a running disk: what they would do now, in bounded memory.

`pieces` reads the requests while they come; `shadow` simulates the caches, `real` reads the
counters of a cache that runs; `watching` takes them together, and `kept` saves their state.
"""

from hybridsim.studies.watch.kept import Kept as Kept
from hybridsim.studies.watch.pieces import Piece as Piece
from hybridsim.studies.watch.pieces import of_disk as of_disk
from hybridsim.studies.watch.pieces import of_stream as of_stream
from hybridsim.studies.watch.real import Beside as Beside
from hybridsim.studies.watch.real import Real as Real
from hybridsim.studies.watch.real import counters_of as counters_of
from hybridsim.studies.watch.real import settings as settings
from hybridsim.studies.watch.shadow import KernelCache as KernelCache
from hybridsim.studies.watch.shadow import PageCaches as PageCaches
from hybridsim.studies.watch.shadow import Shadow as Shadow
from hybridsim.studies.watch.shadow import Simulated as Simulated
from hybridsim.studies.watch.watching import Snapshot as Snapshot
from hybridsim.studies.watch.watching import compile_for as compile_for
from hybridsim.studies.watch.watching import prometheus as prometheus
from hybridsim.studies.watch.watching import unseen as unseen
from hybridsim.studies.watch.watching import watch as watch
