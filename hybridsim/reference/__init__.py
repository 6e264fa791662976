"""A second implementation of the model of DESIGN.md part 2: plain SimPy, slow but readable.

It is written from the text alone and shares no code with the compiled engine, which must agree with
it to the nanosecond. One file per section of the text:

    parameters   inputs and outputs; caches' and machines' parameters are in foundation/
    clock        2.1  time and order, timers
    source       2.2  when requests are issued
    cache        2.3  the page cache: pages, fills, cleaner, warm start
    policies     2.4  admission and replacement
    learned      2.4.1, 2.4.4  the learned policy, a write budget
    runs         2.3, 2.11  sequential runs, and other runs and units
    device       the interfaces of devices, of what may be the slow tier, and of caches
    tier         2.5  arrays: parity writes, rebuild
    hdd, ssd     2.6, 2.7  devices
    flash        2.8  SSDs in detail
    volume, limits  2.9, 2.10  cloud volumes, and the host in front of the cache
    controller   2.11  a RAID controller's DRAM
    bcache, bcache_buckets
                 2.12  bcache with its buckets, index, journal, bypass and write-back
    opencas      2.13  Open CAS with its lines, streams, promotion and cleaning
    dmcache, smq 2.14  dm-cache with its policy, locks and workers
    writecache   2.15  dm-writecache
    throttle     2.16  writeback throttling
    machine      the assembly, and events in its life (2.17); subclass `Machine` to replace a part
    models       policies and devices by name: the lines that a new one adds

A layer hands a request down by calling `submit(op, offset, length, done)` on the layer below, which
calls `done()` when it is complete: later, from an event, never from within `submit`. What does one
thing after another is a generator of such calls, its steps (`clock.in_turn`).
"""

# ruff: noqa: F401 - what tests and users of the reference import from here

from hybridsim.foundation.cache_parameters import (
    BcacheParameters,
    BudgetParameters,
    CacheParameters,
    DmCacheParameters,
    OpenCasParameters,
    WritecacheParameters,
)
from hybridsim.foundation.machine_parameters import (
    ControllerParameters,
    EventParameters,
    FlashParameters,
    HddParameters,
    HostParameters,
    JobParameters,
    LimitParameters,
    RebuildParameters,
    SsdParameters,
    ThrottleParameters,
    TierParameters,
    VolumeParameters,
)
from hybridsim.reference.cache import PageCache, Verdict
from hybridsim.reference.clock import Clock, Done, Parts
from hybridsim.reference.controller import Controller
from hybridsim.reference.flash import Flash
from hybridsim.reference.hdd import Hdd
from hybridsim.reference.machine import Machine, simulate
from hybridsim.reference.parameters import Fact, Outcome, Request, SourceParameters
from hybridsim.reference.policies import Admission, Lru, Replacement, Touches
from hybridsim.reference.source import ClosedSource, OpenSource, Source, ThinkSource
from hybridsim.reference.ssd import Ssd
from hybridsim.reference.throttle import Throttle
from hybridsim.reference.tier import Tier
