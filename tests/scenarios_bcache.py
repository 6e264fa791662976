"""Small machines with a bcache, and workloads that reach every branch of DESIGN.md 2.12."""

from random import Random

from hypothesis import strategies as st
from scenarios import KIB, Scenario, both_tiers, controllers, hosts
from scenarios_dmcache import Barriers

from hybridsim.foundation.codes import SYNC, BcacheMode, Kernel, Op, Replay, Reuse
from hybridsim.reference import BcacheParameters, Request, SourceParameters

LEAST_BUCKETS = 44  # with fewer, the lists of free buckets leave too few for data


class Extents(Barriers):
    """Requests of any length; more flushes and discards; some synchronous."""

    longest_write = 1 << 20

    def requests(self, count: int) -> list[Request]:
        result = super().requests(count)
        for request in result:
            request.flags |= self.random.choice([0, 0, SYNC])
            if request.op == Op.WRITE:
                request.length = min(request.length, self.longest_write)
        return result


@st.composite
def bcache_scenarios(
    draw: st.DrawFn,
    slow_kind: str = "any",
    fast_kind: str = "any",
    controller: bool = True,
    slow_members: int = 6,
) -> Scenario:
    """Draw a machine with a bcache and a workload for it."""
    slow, fast = draw(both_tiers(slow_kind, fast_kind, 256 * KIB, slow_members))
    bucket = draw(st.sampled_from([4 * KIB, 8 * KIB, 8 * KIB, 16 * KIB]))
    if fast.capacity_bytes // bucket < LEAST_BUCKETS:
        bucket = 4 * KIB
    maximum = fast.capacity_bytes // bucket
    buckets = min(maximum, draw(st.integers(LEAST_BUCKETS, 60) | st.integers(LEAST_BUCKETS, 100)))
    cache = BcacheParameters(
        bucket_bytes=bucket,
        buckets=buckets,
        block_bytes=draw(st.sampled_from([512, 512, KIB, 4 * KIB])),
        mode=draw(st.sampled_from([*[BcacheMode.WRITEBACK] * 4, *BcacheMode])),
        replacement=draw(st.sampled_from([Reuse.LRU, *Reuse])),
        sequential_cutoff_bytes=draw(st.sampled_from([0, 0, 16 * KIB, 64 * KIB, 4 << 20])),
        congested_read_us=draw(st.sampled_from([0, 0, 50, 2000])),
        congested_write_us=draw(st.sampled_from([0, 0, 100, 20_000])),
        writeback_percent=draw(st.sampled_from([0, 1, 10, 40])),
        writeback_delay_ns=draw(st.sampled_from([0, 1_000_000, 3 * 10**9])),
        open_buckets=draw(st.sampled_from([1, 2, 2, 5])),
        seed=draw(st.integers(0, 9)),
        kernel=draw(st.sampled_from(Kernel)),
        gc_nodes=draw(st.sampled_from([1, 2, 100])),
    )
    source = SourceParameters(mode=draw(st.sampled_from(Replay)), depth=draw(st.integers(1, 9)))
    pages = buckets * bucket // (4 * KIB)
    workload = Extents(
        capacity=slow.capacity_bytes,
        page_bytes=4 * KIB,
        hot=draw(st.integers(1, pages) | st.integers(1, 8 * pages)),
        interval_ns=draw(st.sampled_from([1, 100_000, 1_000_000, 20_000_000, *[400_000_000] * 2])),
        streams=draw(st.integers(1, 4)),
        reads=draw(st.sampled_from([10, 20, 50, 80, 95])),
        known=draw(st.sampled_from([50, 100, 100])),
        random=Random(draw(st.integers(0, 2**32))),
    )
    workload.longest_write = draw(st.sampled_from([bucket, 1 << 20]))
    workload.others = draw(st.sampled_from([0, 4, 20]))
    count = draw(st.integers(0, 40) | st.integers(0, 40) | st.integers(0, 600) | st.just(600))
    host = draw(st.none() | st.none() | hosts())
    dram = draw(st.none() | controllers(slow)) if controller else None
    return Scenario(workload.requests(count), source, cache, slow, fast, host, dram)
