"""Small machines with a dm-writecache, and workloads that reach every branch of DESIGN.md 2.15."""

from random import Random

from hypothesis import strategies as st
from scenarios import KIB, Scenario, both_tiers, controllers, hosts
from scenarios_dmcache import Barriers

from hybridsim.caches.writecache import metadata_bytes
from hybridsim.foundation.codes import Replay
from hybridsim.reference import SourceParameters, WritecacheParameters


@st.composite
def writecache_scenarios(
    draw: st.DrawFn,
    slow_kind: str = "any",
    fast_kind: str = "any",
    controller: bool = True,
    slow_members: int = 6,
) -> Scenario:
    """Draw a machine with a dm-writecache and a workload for it."""
    minimum = metadata_bytes(1) + 4 * KIB
    slow, fast = draw(both_tiers(slow_kind, fast_kind, minimum, slow_members))
    block = draw(st.sampled_from([4 * KIB, 4 * KIB, KIB, 512]))
    maximum = (fast.capacity_bytes - metadata_bytes(1)) // block
    blocks = max(
        1, min(draw(st.integers(1, 20) | st.integers(4, 60) | st.just(4000)), maximum, 4096)
    )
    high = draw(st.just(blocks // 2) | st.integers(0, blocks))
    cache = WritecacheParameters(
        block_bytes=block,
        blocks=blocks,
        high_watermark_blocks=high,
        low_watermark_blocks=draw(st.just(high * 9 // 10) | st.integers(0, high)),
        pause_writeback_ns=draw(st.sampled_from([0, 1, 100_000, 20_000_000, 3 * 10**9])),
        pass_time_ns=draw(st.sampled_from([0, 1, 200_000, 5_000_000])),
        autocommit_blocks=draw(st.sampled_from([1, 7, 65_536, 65_536])),
        autocommit_time_ns=draw(st.sampled_from([1, 3_000_000, 10**9, 10**9])),
    )
    source = SourceParameters(mode=draw(st.sampled_from(Replay)), depth=draw(st.integers(1, 9)))
    workload = Barriers(
        capacity=slow.capacity_bytes,
        page_bytes=block,
        hot=draw(st.integers(1, 2 * blocks + 1) | st.integers(1, 8 * blocks + 1)),
        interval_ns=draw(st.sampled_from([1, 100_000, 1_000_000, 20_000_000, 400_000_000])),
        streams=draw(st.integers(1, 4)),
        reads=draw(st.sampled_from([0, 20, 50, 80])),
        known=draw(st.sampled_from([50, 100, 100])),
        random=Random(draw(st.integers(0, 2**32))),
    )
    workload.others = draw(st.sampled_from([0, 4, 20]))
    count = draw(st.integers(0, 40) | st.integers(0, 40) | st.integers(0, 600))
    host = draw(st.none() | st.none() | hosts())
    dram = draw(st.none() | controllers(slow)) if controller else None
    return Scenario(workload.requests(count), source, cache, slow, fast, host, dram)
