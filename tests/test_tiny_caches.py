"""Caches of a few blocks under writes larger than they are: each run ends, and loses no request."""

import signal
from collections.abc import Callable
from contextlib import contextmanager
from random import Random

import agreement
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenarios import KIB, Scenario
from scenarios_bcache import LEAST_BUCKETS, bcache_scenarios
from scenarios_dmcache import dmcache_scenarios
from scenarios_opencas import opencas_scenarios
from scenarios_writecache import writecache_scenarios

from hybridsim.foundation.codes import SYNC, BcacheMode, CasMode, DmMode, Op
from hybridsim.reference import (
    BcacheParameters,
    DmCacheParameters,
    OpenCasParameters,
    WritecacheParameters,
)

CPU_S = 120  # far more than any of these runs needs
WHOLE_BYTES = 1 << 20  # all that a cache of these tests holds, or more

few = agreement.relaxed(6)


@contextmanager
def ending():
    """Raise an error if the block takes CPU_S of CPU time: a run that stands still never ends."""

    def give_up(number, frame):
        raise AssertionError(f"the run has not ended after {CPU_S} s of CPU time")

    before = signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, CPU_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def shrink(cache, random):
    """Leave a cache its least size, or little more, and let it write back."""
    match cache:
        case BcacheParameters():
            cache.mode, cache.bucket_bytes = BcacheMode.WRITEBACK, 4 * KIB
            cache.buckets = LEAST_BUCKETS + random.randrange(4)
        case DmCacheParameters():
            cache.mode, cache.blocks = DmMode.WRITEBACK, random.randint(1, min(cache.blocks, 4))
        case OpenCasParameters():
            cache.mode, cache.lines = CasMode.WB, random.randint(1, min(cache.lines, 4))
            cache.trigger_threshold_lines = cache.margin_lines = 0
        case WritecacheParameters():
            cache.blocks = random.randint(1, min(cache.blocks, 4))
            cache.high_watermark_blocks = random.randint(0, cache.blocks)
            cache.low_watermark_blocks = random.randint(0, cache.high_watermark_blocks)


@st.composite
def tiny(draw: st.DrawFn, kind: Callable[[], st.SearchStrategy[Scenario]]) -> Scenario:
    """Draw a scenario of a kind with a tiny cache; half of its writes are large."""
    scenario = draw(kind())
    random = Random(draw(st.integers(0, 2**32)))
    shrink(scenario.cache, random)
    for request in scenario.requests:
        if request.op == Op.WRITE and request.length and random.random() < 0.5:
            length = random.choice([WHOLE_BYTES // 16, WHOLE_BYTES // 4, WHOLE_BYTES])
            request.length = min(length, scenario.slow.capacity_bytes - request.offset)
            request.flags |= random.choice([0, SYNC])
    return scenario


@pytest.mark.parametrize(
    "kind", [bcache_scenarios, dmcache_scenarios, opencas_scenarios, writecache_scenarios]
)
def test_each_run_ends_and_engine_equals_reference(kind):
    @few
    @given(tiny(kind))
    def compare(scenario):
        with ending():
            agreement.check(scenario, interpreted=True)

    compare()
