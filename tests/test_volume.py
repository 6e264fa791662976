"""Cloud volumes: their limits, the variation of their latency, and rules with numbers."""

from random import Random

import numpy as np
import pytest
from agreement import check
from engine import simulate
from hypothesis import given, settings
from hypothesis import strategies as st
from scenarios import Scenario, latencies

from hybridsim.foundation.codes import DmMode, Level, Mode, Op, Replay
from hybridsim.foundation.machine_parameters import READ_OR_WRITE, WHOLE_REQUEST
from hybridsim.foundation.toml.table import ContradictionError
from hybridsim.jit.limits import NOTHING, READS, WRITES, Limits
from hybridsim.reference import (
    CacheParameters,
    DmCacheParameters,
    LimitParameters,
    RebuildParameters,
    Request,
    SourceParameters,
    SsdParameters,
    TierParameters,
    VolumeParameters,
)
from hybridsim.storage import catalog
from hybridsim.storage.devices import volume as volume_timing
from hybridsim.storage.drives import CloudVolume

MIB = 2**20
SECOND = 10**9
BOTH = [Op.READ, Op.WRITE]


def volume(limits=(), latency=(400_000,), **changes):
    parameters = {
        "limits": list(limits),
        "read_latency_ns": latencies(list(latency)),
        "write_latency_ns": latencies(list(latency)),
        "stream_bytes_per_s": 2**62,
        "capacity_bytes": 2**30,
    }
    return VolumeParameters(**parameters | changes)


def machine(device, requests, depth=1, members=1, host=None, mode=Replay.CLOSED):
    tier = TierParameters(Level.STRIPE, members, MIB, device, members * device.capacity_bytes)
    cache = CacheParameters(4096, 0, Mode.READ_ONLY, 0, 1, ("touches", 1))
    return Scenario(requests, SourceParameters(mode, depth), cache, tier, tier, host)


def same(count, op=Op.READ, length=4096):
    return [Request(0, op, 0, length)] * count


def run(scenario):
    facts, finished = simulate(scenario, interpreted=True)
    return facts, finished.below.slow.device.totals(finished.clock[0])


# --- token buckets ------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from([7, 1000, 2999, 10**6, 140 * MIB]),
    st.sampled_from([0, 1, 10**6, 10**9]),
    st.sampled_from([1, 4096, WHOLE_REQUEST]),
    st.lists(
        st.tuples(st.sampled_from([0, 0, 1, 10**5, 3 * 10**8]), st.integers(0, 10**6)), max_size=40
    ),
)
def test_requests_do_not_exceed_rate_and_burst(rate, burst_ns, unit, arrivals):
    """In any interval of time, without its last request, which may overdraw."""
    limits = Limits.new(1, [LimitParameters([Op.READ], unit, rate, burst_ns)])
    now, starts, units = 0, [], [0]
    for gap, length in arrivals:
        now += gap
        start, _ = limits.admit(now, 0, READS, length)
        assert start >= now
        starts.append(start)
        units.append(units[-1] + max(-(-length // unit), 1))
    assert starts == sorted(starts)
    for i, first in enumerate(starts):
        for j in range(i, len(starts)):
            allowed = rate * (starts[j] - first + burst_ns + 1)
            assert (units[j] - units[i]) * SECOND <= allowed


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 10**9), st.integers(0, 10**9), st.lists(st.integers(1, MIB), min_size=1))
def test_a_backlog_is_served_at_exactly_the_rate(rate, burst_ns, lengths):
    """However many requests there are, no fraction of a nanosecond is lost."""
    limits = Limits.new(1, [LimitParameters([Op.WRITE], 1, rate, burst_ns)])
    for number, length in enumerate(lengths):
        start, _ = limits.admit(0, 0, WRITES, length)
        assert start == max(0, sum(lengths[:number]) * SECOND // rate - burst_ns)


def test_the_tightest_limit_decides_and_is_named():
    rows = [LimitParameters([Op.READ], WHOLE_REQUEST, 1000), LimitParameters(READ_OR_WRITE, 1, MIB)]
    limits = Limits.new(2, rows)
    assert limits.admit(0, 0, READS, 512) == (0, NOTHING)
    assert limits.admit(0, 0, READS, MIB) == (1_000_000, 0)  # a millisecond of requests
    assert limits.admit(0, 0, READS, 512) == (1_001_000_000, 1)  # a second of bytes after that
    assert limits.admit(0, 1, READS, 512) == (0, NOTHING)  # each member has its own


def test_burst_credits_are_spent_and_refilled():
    """gp2 of 100 GiB: 3,000 IOPS while credits last, then 300; here 1/1000 of its credits."""
    like = catalog.load("aws-gp2")
    rows = {key: row.value for key, row in like.rows.items()}
    rows |= {"capacity": "100GiB", "iops_credits": rows["iops_credits"] // 1000}
    limits = Limits.new(1, list(volume_timing.limits(CloudVolume(kind="volume", **rows))))
    lasts_s = 5400 // (3000 - 300)
    starts = [limits.admit(0, 0, READS, 4096)[0] for _ in range(3000 * lasts_s + 3000)]
    first_second, spent = np.searchsorted(starts, [SECOND, lasts_s * SECOND])
    assert first_second == 3000
    assert spent == 3000 * lasts_s
    assert np.searchsorted(starts, (lasts_s + 5) * SECOND) - spent == pytest.approx(5 * 300, abs=1)
    rested = starts[-1] + 9 * SECOND  # 2,700 credits: a second at 3,000
    later = [limits.admit(rested, 0, READS, 4096)[0] for _ in range(3301)]
    assert later[3000] - rested == pytest.approx(SECOND, rel=0.01)
    assert later[3300] - later[3000] == pytest.approx(SECOND, rel=0.01)


# --- the device ---------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [4, 32])
@pytest.mark.parametrize(
    ("length", "limit", "iops"),
    [
        (4096, LimitParameters(BOTH, 2**62, 5000), 5000),
        (65_536, LimitParameters(BOTH, 16_384, 5000), 1250),  # counts as four
        (65_536, LimitParameters(BOTH, 1, 100 * 65_536), 100),
    ],
)
def test_enough_requests_in_flight_reach_the_cap(length, limit, iops, depth):
    facts, _ = run(machine(volume([limit]), same(1000, length=length), depth))
    assert len(facts) / facts[-1].done_ns * SECOND == pytest.approx(iops, rel=0.01)


def test_littles_law():
    limit = LimitParameters(BOTH, 2**62, 5000)
    facts, _ = run(machine(volume([limit], latency=(1, 500_000, 9_000_000)), same(3000), 16))
    under_way = sum(fact.done_ns - fact.issue_ns for fact in facts) / facts[-1].done_ns
    assert under_way == pytest.approx(16, rel=0.02)


def test_a_single_request_takes_its_latency_and_transfer_time():
    facts, _ = run(machine(volume(stream_bytes_per_s=MIB * 100), same(3, length=MIB)))
    assert [fact.done_ns - fact.issue_ns for fact in facts] == [10_400_000] * 3


def test_limits_may_apply_to_one_direction():
    limits = [LimitParameters([Op.READ], 2**62, 1000), LimitParameters([Op.WRITE], 2**62, 500)]
    for op, iops in ((Op.READ, 1000), (Op.WRITE, 500)):
        facts, _ = run(machine(volume(limits), same(500, op), 8))
        assert len(facts) / facts[-1].done_ns * SECOND == pytest.approx(iops, rel=0.01)


def test_flushes_and_discards_take_a_round_trip_and_no_tokens():
    device = volume([LimitParameters(BOTH, 2**62, 1)], write_latency_ns=[7] * 1024)
    facts, _ = run(machine(device, [Request(0, op, 0, 0) for op in (Op.FLUSH, Op.DISCARD)] * 2))
    assert [fact.done_ns - fact.issue_ns for fact in facts] == [7] * 4


def test_latencies_have_the_frequencies_of_the_table():
    table = [1] * 512 + [1000] * 502 + [10**6] * 10
    facts, _ = run(machine(volume(read_latency_ns=table), same(10_000)))
    times = np.array([fact.done_ns - fact.issue_ns for fact in facts])
    assert (times == 1).mean() == pytest.approx(0.5, abs=0.015)
    assert (times == 10**6).mean() == pytest.approx(10 / 1024, rel=0.3)
    runs = np.count_nonzero(np.diff(times == 1)) / len(times)
    assert runs == pytest.approx(0.5, abs=0.015)  # they are independent


def test_seeds_and_members_draw_differently_and_runs_are_reproducible():
    table = list(range(1024))
    random = Random(1)
    requests = [Request(0, Op.READ, random.randrange(200) * MIB, 4096) for _ in range(200)]

    def times(seed, members):
        device = volume(read_latency_ns=table, seed=seed)
        facts, _ = run(machine(device, requests, members=members))
        return [fact.done_ns - fact.issue_ns for fact in facts]

    assert times(1, 1) == times(1, 1)
    assert times(1, 1) != times(2, 1)
    assert times(1, 2) != times(1, 1)


def test_busy_time_is_the_time_with_requests_waiting_for_a_limit():
    limit = LimitParameters(BOTH, 2**62, 1000)
    idle = [Request(number * 10_000_000, Op.READ, 0, 4096) for number in range(100)]
    facts, totals = run(machine(volume([limit]), idle, mode=Replay.OPEN))
    assert totals["busy_ns"] == totals["iops_limit_ns"] == 0
    assert totals["latency_ns"] == sum(fact.done_ns - fact.issue_ns for fact in facts)
    facts, totals = run(machine(volume([limit]), same(1000), 8))
    assert totals["busy_ns"] / facts[-1].done_ns == pytest.approx(1, abs=0.01)
    assert totals["bandwidth_limit_ns"] == 0
    waited = totals["iops_limit_ns"] + totals["latency_ns"]
    assert waited == sum(fact.done_ns - fact.issue_ns for fact in facts)


def test_a_wait_in_progress_at_the_end_counts_up_to_the_end():
    """A rebuild runs on its own: its next request may wait for a limit when all others are done."""
    device = volume([LimitParameters(BOTH, 2**62, 1000)], capacity_bytes=MIB)
    whole = SsdParameters(1, 4096, 0, 0, 0, 0, 0, 0, 0, 0, 10**9, MIB)
    slow = TierParameters(Level.LINEAR, 1, 512, whole, MIB)
    rebuild = RebuildParameters(0, 100_000, 100_000)
    fast = TierParameters(Level.RAID5, 4, 512, device, 3 * MIB, rebuild=rebuild)
    cache = DmCacheParameters(4096, 3, DmMode.WRITEBACK, 0, 0, 1024)
    load = [Request(0, Op.WRITE, 12_288, 12_288)]
    scenario = Scenario(load, SourceParameters(Replay.OPEN), cache, slow, fast)
    check(scenario, interpreted=True)
    _, finished = simulate(scenario, interpreted=True)
    device = finished.below.fast.device
    assert device.throttled_until_ns.max() > finished.clock[0]  # a request still waits
    assert device.totals(finished.clock[0])["busy_ns"] <= 4 * finished.clock[0]


def test_in_a_stall_nothing_completes():
    """One of 5 ms in each 50 ms, at times that are drawn; depth 1, a request each 0.4 ms."""
    stalls = {"stall_ns": 5_000_000, "stall_every_ns": 50_000_000}
    facts, totals = run(machine(volume(**stalls), same(5000)))
    ends = np.array([fact.done_ns for fact in facts])
    late = np.diff(ends, prepend=0) > 400_000
    assert late.sum() == pytest.approx(ends[-1] / 50e6, abs=1)
    assert np.diff(ends).max() <= 5_000_000 + 400_000
    begins = ends[late] % 50_000_000
    assert np.unique(begins // 10_000_000).size == 5  # anywhere
    assert totals["latency_ns"] == sum(fact.done_ns - fact.issue_ns for fact in facts)


def test_after_a_stall_requests_are_faster_for_they_came_together():
    """A limit goes on counting: 32 requests at 200 a second take 160 ms each, or less after it."""
    limit = LimitParameters(BOTH, 2**62, 200)
    stalls = {"stall_ns": 250_000_000, "stall_every_ns": 10 * SECOND}
    facts, _ = run(machine(volume([limit], **stalls), same(20_000), 32))
    times = np.array([fact.done_ns - fact.issue_ns for fact in facts[100:]])
    assert np.median(times) == pytest.approx(160e6, rel=0.02)
    assert (times < 140e6).mean() == pytest.approx((times > 180e6).mean(), rel=0.3)
    assert times.mean() == pytest.approx(160e6, rel=0.02)  # no rate is lost


def test_a_request_that_continues_none_counts_as_a_multiple_of_a_unit():
    """As EBS's st1 counts: 4 KiB at random as 1 MiB, in sequence as what they are."""
    limit = LimitParameters(BOTH, 1, 100 * MIB)
    random = Random(2)
    apart = [Request(0, Op.READ, random.randrange(9) * 8192, 4096) for _ in range(200)]
    sequence = [Request(0, Op.READ, number * 4096, 4096) for number in range(30_000)]
    for requests, rate in ((apart, 100), (sequence, 100 * 256)):
        device = volume([limit], capacity_bytes=2**28, random_unit_bytes=MIB)
        facts, totals = run(machine(device, requests, 32, members=1))
        done_ns = facts[-1].done_ns - 400_000
        assert len(facts) / done_ns * SECOND == pytest.approx(rate, rel=0.02)
        assert totals["bytes_read"] == 4096 * len(requests)


# --- rules --------------------------------------------------------------------------------------


def model(**rows):
    return CloudVolume(
        kind="volume", **{"read_latency": "1ms", "write_latency": "1ms", "capacity": "1GiB"} | rows
    )


@pytest.mark.parametrize(
    ("name", "capacity", "iops", "bandwidth"),
    [
        ("alibaba-ultra", "399GiB", 4992, 140 * MIB),  # the document's examples
        ("alibaba-ultra", "2TiB", 5000, 140 * MIB),
        ("alibaba-ssd", "500GiB", 16_800, 300 * MIB),
        ("alibaba-ssd", "774GiB", 25_000, 300 * MIB),
        ("oracle-balanced", "50GiB", 3000, 24_000_000),
        ("oracle-balanced", "1024GiB", 25_000, 480_000_000),
        ("aws-gp2", "20GiB", 100, 250 * MIB),
        ("aws-gp2", "900GiB", 2700, 250 * MIB),
        ("aws-gp2", "8TiB", 16_000, 250 * MIB),
    ],
)
def test_rates_scale_with_size(name, capacity, iops, bandwidth):
    rows = {key: row.value for key, row in catalog.load(name).rows.items()}
    drive = model(**rows | {"capacity": capacity})
    assert (drive.sustained_iops, drive.sustained_bandwidth) == (iops, bandwidth)


# EBS's documentation (hdd-vols.md, 2023): size in TiB; base and burst rate of st1 and sc1 in MiB/s
EBS = {
    0.125: (5, 31, 1.5, 10),
    0.5: (20, 125, 6, 40),
    1: (40, 250, 12, 80),
    2: (80, 500, 24, 160),
    3: (120, 500, 36, 240),
    3.125: (125, 500, 37.5, 250),
    8: (320, 500, 96, 250),
    12.5: (500, 500, 150, 250),
    16: (500, 500, 192, 250),
}


@pytest.mark.parametrize("size", EBS)
def test_rates_and_bursts_of_ebs_disks_scale_with_size(size):
    for name, (base, burst) in {"aws-st1": EBS[size][:2], "aws-sc1": EBS[size][2:]}.items():
        rows = {key: row.value for key, row in catalog.load(name).rows.items()}
        drive = model(**rows | {"capacity": f"{round(size * 1024)}GiB"})
        assert drive.sustained_bandwidth / MIB == pytest.approx(base, rel=0.01)
        assert drive.peak_bandwidth / MIB == pytest.approx(burst, rel=0.01)
        assert drive.credits_bytes == size * 2**40


# Hours of a scan of the whole volume with a full bucket, of the same page: st1, sc1.
SCANS = {1: (1.17, 3.64), 2: (1.17, 3.64), 3: (1.75, 3.64), 5: (2.91, 5.83), 16: (9.32, 18.64)}


@pytest.mark.parametrize("size", SCANS)
def test_scans_of_ebs_disks_take_as_long_as_documented(size):
    """In requests of 1 GiB, one after another."""
    for name, hours in zip(("aws-st1", "aws-sc1"), SCANS[size]):
        rows = {key: row.value for key, row in catalog.load(name).rows.items()}
        drive = model(**rows | {"capacity": f"{size}TiB"})
        limits = Limits.new(1, list(volume_timing.limits(drive)))
        starts = [limits.admit(0, 0, READS, 2**30)[0] for _ in range(1024 * size + 1)]
        assert starts[-1] / 3600e9 == pytest.approx(hours, rel=0.01)


@pytest.mark.parametrize(("gib", "lasts_s"), [(20, 1862), (100, 2000), (334, 2703), (750, 7200)])
def test_bursts_of_gp2_last_as_long_as_documented(gib, lasts_s):
    """EBS's documentation (general-purpose.md, 2023), here with 1/100 of the credits."""
    rows = {key: row.value for key, row in catalog.load("aws-gp2").rows.items()}
    rows |= {"capacity": f"{gib}GiB", "iops_credits": rows["iops_credits"] // 100}
    limits = Limits.new(1, list(volume_timing.limits(model(**rows))))
    count = round(3000 * lasts_s / 100)
    starts = [limits.admit(0, 0, READS, 4096)[0] for _ in range(round(count * 1.05))]
    assert starts[round(count * 0.98)] / SECOND == pytest.approx(lasts_s / 100 * 0.98, rel=0.01)
    rate = (len(starts) - 1 - round(count * 1.01)) / (starts[-1] - starts[round(count * 1.01)])
    assert rate * SECOND == pytest.approx(max(100, 3 * gib), rel=0.02)


def test_percentiles_become_a_table():
    table = volume_timing.quantiles(model(read_latency="p1 1ms, p50 2ms, p99 8ms").read_latency)
    assert len(table) == 1024
    assert (np.diff(table) >= 0).all()
    assert (table[0], table[-1]) == (1_000_000, 8_000_000)
    assert np.mean(table[511:513]) == pytest.approx(2_000_000, rel=1e-3)
    normal = volume_timing.quantiles(model(read_latency="p10 1ms, p90 4ms").read_latency)
    assert normal[512] == pytest.approx(2_000_000, rel=0.01)  # log-normal between two of them
    constant = volume_timing.quantiles(model(read_latency="300us").read_latency)
    assert set(constant) == {300_000}


@pytest.mark.parametrize("text", ["500us", "p50 500us, p99 2ms", "p0.1 1us, p99.95 1s"])
def test_a_latency_specification_is_reproduced(text):
    assert model(read_latency=text).model_dump()["read_latency"] == text


@pytest.mark.parametrize(
    "text", ["fast", 3, "p50", "p50 1ms p99 2ms", "p0 1ms", "p101 1ms", "p99 1ms, p50 2ms",
             "p50 2ms, p99 1ms", "50 1ms", "p50 0ms"],
)  # fmt: skip
def test_invalid_latencies_are_refused(text):
    with pytest.raises(ValueError, match=r"latency|percentile|time|ascend"):
        model(read_latency=text)


@pytest.mark.parametrize(
    ("rows", "key"),
    [
        ({"iops_peak": 50, "iops_credits": 9}, "iops_peak"),
        ({"iops": 100, "iops_peak": 200}, "iops_credits"),
        ({"bandwidth": "1MB/s", "bandwidth_credits": "1GB"}, "bandwidth_credits"),
        ({"iops": 0}, "iops"),
        ({"iops_per_gib": 3}, "iops"),
        ({"iops_max": 3}, "iops_max"),
        ({"stall": "1s", "stall_every": "1s"}, "stall_every"),
        ({"stall_every": "1s"}, "stall_every"),
    ],
)
def test_contradictory_rules_are_refused(rows, key):
    with pytest.raises(ValueError, match=key) as error:
        model(**rows)
    assert isinstance(error.value.errors()[0]["ctx"]["error"], ContradictionError)
