"""Small machines with a dm-cache, and workloads that reach every branch of DESIGN.md 2.14."""

from random import Random

from hypothesis import strategies as st
from scenarios import KIB, Scenario, Workload, both_tiers, controllers, hosts

from hybridsim.foundation.codes import DmMode, Op, Replay
from hybridsim.reference import DmCacheParameters, SourceParameters

METADATA_BYTES = 20 * KIB


class Barriers(Workload):
    """More flushes and discards, also of whole blocks."""

    others = 4  # percent

    def op(self) -> Op:
        if self.percent(self.others):
            return self.random.choice([Op.FLUSH, Op.DISCARD, Op.DISCARD])
        return super().op()


@st.composite
def dmcache_scenarios(
    draw: st.DrawFn,
    slow_kind: str = "any",
    fast_kind: str = "any",
    controller: bool = True,
    slow_members: int = 6,
) -> Scenario:
    """Draw a machine with a dm-cache and a workload for it."""
    slow, fast = draw(both_tiers(slow_kind, fast_kind, 64 * KIB, slow_members))
    block = draw(st.sampled_from([4 * KIB, 4 * KIB, 8 * KIB, 16 * KIB, 12 * KIB, 40 * KIB]))
    maximum = (fast.capacity_bytes - METADATA_BYTES) // block
    blocks = max(
        1, min(draw(st.integers(1, 20) | st.integers(4, 12) | st.integers(4, 60)), maximum)
    )
    cache = DmCacheParameters(
        block_bytes=block,
        blocks=blocks,
        mode=draw(st.sampled_from([DmMode.WRITETHROUGH, *[DmMode.WRITEBACK] * 4, *DmMode])),
        migration_threshold_bytes=draw(st.sampled_from([0, 16 * KIB, 64 * KIB, 2**20])),
        worker_delay_ns=draw(st.sampled_from([0, 0, 20_000, 50_000])),
        part_bytes=draw(st.sampled_from([KIB, 3 * KIB, 512 * KIB])),
    )
    source = SourceParameters(mode=draw(st.sampled_from(Replay)), depth=draw(st.integers(1, 9)))
    workload = Barriers(
        capacity=slow.capacity_bytes,
        page_bytes=block,
        hot=draw(st.integers(1, 2 * blocks + 1) | st.integers(1, 8 * blocks + 1)),
        interval_ns=draw(
            st.sampled_from([1, 100_000, 1_000_000, 20_000_000, 50_000_000, *[400_000_000] * 3])
        ),
        streams=draw(st.integers(1, 4)),
        reads=draw(st.sampled_from([20, 50, 80, 95, 100])),
        known=draw(st.sampled_from([50, 100, 100])),
        random=Random(draw(st.integers(0, 2**32))),
    )
    workload.others = draw(st.sampled_from([0, 4, 20]))
    count = draw(st.integers(0, 40) | st.integers(0, 40) | st.integers(0, 600) | st.just(600))
    host = draw(st.none() | st.none() | hosts())
    dram = draw(st.none() | controllers(slow)) if controller else None
    return Scenario(workload.requests(count), source, cache, slow, fast, host, dram)
