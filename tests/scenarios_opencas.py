"""Small machines with Open CAS, and workloads that reach every branch of DESIGN.md 2.13."""

from random import Random

from hypothesis import strategies as st
from scenarios import KIB, Scenario, Workload, both_tiers, controllers, hosts
from scenarios_dmcache import Barriers

from hybridsim.foundation.codes import CasMode, Cleaning, Cutoff, Promotion, Replay
from hybridsim.reference import OpenCasParameters, SourceParameters

MS, SECOND = 10**6, 10**9
MODES = [*CasMode, *[CasMode.WB] * 5, CasMode.WT, CasMode.WO]
CLEANING = [*Cleaning, Cleaning.ALRU, Cleaning.ACP]


class Streaming(Barriers):
    """Mostly long streams, and requests that span several lines."""

    def range(self, end: int) -> tuple[int, int]:
        if self.percent(50):
            length = 512 * self.random.choice([8, 16, 16, 24, 64])
            offset = end % self.capacity
            return offset, min(length, self.capacity - offset)
        return super().range(end)


@st.composite
def opencas_scenarios(
    draw: st.DrawFn,
    slow_kind: str = "any",
    fast_kind: str = "any",
    controller: bool = True,
    slow_members: int = 6,
) -> Scenario:
    """Draw a machine with Open CAS and a workload for it."""
    slow, fast = draw(both_tiers(slow_kind, fast_kind, 136 * KIB, slow_members))
    line = draw(st.sampled_from([4 * KIB, 4 * KIB, 4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB]))
    maximum = (fast.capacity_bytes - 4 * KIB) // line  # all metadata are in a few pages
    lines = draw(st.integers(1, 12) | st.integers(4, 40) | st.integers(30, 300))
    lines = max(1, min(lines, maximum - lines // 97))
    cache = OpenCasParameters(
        line_bytes=line,
        lines=lines,
        mode=draw(st.sampled_from(MODES)),
        promotion=draw(st.sampled_from([Promotion.ALWAYS, *Promotion])),
        insertion_threshold=draw(st.integers(2, 4)),
        trigger_threshold_lines=draw(st.just(0) | st.integers(0, lines)),
        sequential_cutoff_policy=draw(st.sampled_from(Cutoff)),
        sequential_cutoff_bytes=draw(st.sampled_from([8 * KIB, 32 * KIB, 128 * KIB])),
        margin_lines=draw(st.just(512) | st.integers(0, lines)),
        cleaning=draw(st.sampled_from(CLEANING)),
        wake_up_ns=draw(st.sampled_from([MS, 10 * MS, 300 * MS])),
        # -1 s: ages are whole seconds, so that only this makes lines of a short run stale.
        staleness_time_ns=draw(st.sampled_from([-SECOND, 0, 5 * MS, 500 * MS])),
        activity_threshold_ns=draw(st.sampled_from([0, 0, 5 * MS, 50 * MS])),
        flush_max_buffers=draw(st.integers(1, 3) | st.just(100)),
        stats_interval_ns=draw(st.sampled_from([0, 5 * MS, 300 * MS])),
        stats_start_ns=draw(st.sampled_from([0, 7 * MS, 2000 * MS])),
        queues=draw(st.sampled_from([1, 2, 2, 3])),
        backfills_max=draw(st.sampled_from([1, 3, 65_536])),
        backfills_resume=draw(st.sampled_from([1, 2])),
    )
    source = SourceParameters(mode=draw(st.sampled_from(Replay)), depth=draw(st.integers(1, 9)))
    kind = draw(st.sampled_from([Barriers, Barriers, Streaming]))
    workload: Workload = kind(
        capacity=slow.capacity_bytes,
        page_bytes=line,
        hot=draw(st.integers(1, 2 * lines + 1) | st.integers(1, 8 * lines + 1)),
        interval_ns=draw(st.sampled_from([1, 100_000, 1 * MS, 20 * MS, 200 * MS])),
        streams=draw(st.integers(1, 4)),
        reads=draw(st.sampled_from([5, 20, 50, 80, 95])),
        known=draw(st.sampled_from([50, 100, 100])),
        random=Random(draw(st.integers(0, 2**32))),
    )
    workload.others = draw(st.sampled_from([0, 4, 20]))
    count = draw(st.integers(0, 40) | st.integers(0, 40) | st.integers(0, 300) | st.just(300))
    host = draw(st.none() | st.none() | hosts())
    dram = draw(st.none() | controllers(slow)) if controller else None
    return Scenario(workload.requests(count), source, cache, slow, fast, host, dram)
