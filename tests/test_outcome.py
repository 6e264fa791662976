"""Results over time: the last bin of a run is usually partial."""

import numpy as np
import pytest
from fakes import facts

from hybridsim.answers.metrics import Collector, Counters
from hybridsim.answers.outcome import SECOND, Outcome
from hybridsim.foundation.codes import Op, Path, Reason

LATENCY_NS = 1000
BYTES_PER_S, BUSY = 10**8, 0.5


def run_of(end_ns, interval_ns):
    """Return the run of a machine with a constant load."""
    issue = np.arange(0, end_ns, interval_ns)
    one = np.ones(len(issue), np.uint8)
    collector = Collector()
    collector.add(
        facts(
            issue,
            np.full(len(issue), LATENCY_NS),
            Op.READ * one,
            Path.MISS * one,
            Reason.COLD * one,
        )
    )
    times = np.array([0, collector.last_done_ns])
    counters = {
        "time_ns": times,
        "fast_bytes_written": times * BYTES_PER_S // SECOND,
        "slow_busy_ns": (times * BUSY).astype(np.int64),
    }
    return Outcome(collector, Counters(counters), open_loop=True)


@pytest.mark.parametrize("bins", [2.3, 3.5, 10.9])
def test_a_constant_rate_does_not_fall_in_the_last_bin(bins):
    width = Collector().width_ns
    series = run_of(int(bins * width), width // 200).series()
    assert len(series.iops) == int(bins) + 1
    assert series.iops == pytest.approx([series.iops[0]] * len(series.iops), rel=0.02)
    assert series.ssd_write_bytes_per_s == pytest.approx([BYTES_PER_S] * len(series.iops), rel=1e-6)
    assert series.disk_utilisation == pytest.approx([BUSY] * len(series.iops), rel=1e-6)


def test_one_request_in_a_new_bin_is_not_a_peak():
    width = Collector().width_ns
    series = run_of(3 * width + 1, width // 4).series()
    assert series.iops[-1] <= 8 / 4 * series.iops[0]


MS = 10**6


def six_requests():
    """Two disks and an SSD for 3 ms in bins of 1 ms, small enough to work out by hand."""
    rows = [  # issue and latency in microseconds
        (100, 50, Op.READ, Path.HIT, Reason.NONE),
        (600, 900, Op.READ, Path.MISS, Reason.COLD),
        (1200, 300, Op.WRITE, Path.BYPASS, Reason.WRITE),
        (1700, 1500, Op.READ, Path.BYPASS, Reason.SEQUENTIAL),
        (2400, 200, Op.READ, Path.MISS, Reason.EVICTED),
        (2500, 1000, Op.FLUSH, Path.BYPASS, Reason.FLUSH),
    ]
    issue, latency, *others = (np.array(column) for column in zip(*rows))
    collector = Collector(MS)
    collector.add(facts(issue * 1000, latency * 1000, *others))
    columns = {  # in microseconds, but for the members, bytes and pages
        "time_ns": [1000, 2000, 3000, 4000],
        "slow_busy_ns": [500, 2000, 3000, 3400],
        "slow_seek_ns": [300, 900, 1400, 1400],
        "slow_rotation_ns": [200, 500, 800, 800],
        "slow_transfer_ns": [100, 200, 400, 400],
        "slow_queue_ns": [0, 700, 900, 5000],
        "fast_in_use_ns": [600, 900, 1500, 1500],
        "fast_requests_ns": [700, 1100, 2100, 2100],
    }
    counters = {name: np.array(column) * 1000 for name, column in columns.items()}
    counters |= {
        "slow_members": [2] * 4,
        "fast_members": [1] * 4,
        "slow_bytes_read": [4096, 8192, 8192, 8192],
        "slow_bytes_written": [0, 500, 600, 900],
        "fast_bytes_read": [10, 20, 30, 40],
        "fast_bytes_placed": [0, 2500, 8000, 8000],
        "fast_bytes_moved": [0, 0, 700, 700],
        "fast_bytes_written": [0, 3000, 9000, 9000],
        "pages_present": [1, 5, 9, 11],
        "fills_done": [0, 2, 3, 3],
    }
    return Outcome(collector, Counters(counters), open_loop=True)


def test_a_run_worked_out_by_hand():
    run = six_requests()
    assert (run.end_ns, run.drain_ns, run.last_done_ns) == (3 * MS, MS, 3_500_000)
    assert not run.saturated
    assert run.rebuild is None
    whole = run.whole
    assert whole.span_ns == 3 * MS
    assert whole.iops == 4 / 0.003  # two complete after the load has ended
    assert whole.utilisation == 0.5  # 3 ms of two disks, in 3 ms
    assert whole.ssd_utilisation == 0.5
    assert (whole.disk_queue_ns, whole.ssd_time_ns) == (900_000, 2_100_000)
    assert whole.disk_time_ns == {
        "seek": 1_400_000, "rotation": 800_000, "transfer": 400_000, "other": 400_000
    }  # fmt: skip
    assert whole.counters == {
        "fast_bytes_read": 30,
        "fast_bytes_written": 9000,
        "fast_bytes_placed": 8000,
        "fast_bytes_moved": 700,
        "slow_bytes_read": 8192,
        "slow_bytes_written": 600,
        "pages_present": 9,
        "fills_done": 3,
    }
    assert whole.per_day("fills_done") == 86_400_000
    assert whole.per_day("evictions") is None
    assert whole.figures.hit_ratio == whole.figures.page_hit_ratio == 0.25  # one read of four
    assert whole.share_of_reads(3) == 0.75


def test_a_phase_worked_out_by_hand():
    middle = six_requests().phase(MS, 2 * MS)
    assert (middle.figures.start_ns, middle.span_ns) == (MS, MS)
    assert middle.utilisation == 0.75
    assert middle.ssd_utilisation == 0.3
    assert middle.disk_time_ns == {
        "seek": 600_000, "rotation": 300_000, "transfer": 100_000, "other": 500_000
    }  # fmt: skip
    assert middle.iops == 2000
    assert middle.counters["fast_bytes_written"] == 3000
    assert middle.share_of_reads(1) == 1.0
    first = six_requests().phase(0, MS)  # in which commands begin that reach beyond it
    assert sum(first.disk_time_ns.values()) == 600_000 > 500_000
    assert first.disk_time_ns["other"] == 0
    nothing = six_requests().phase(MS, MS)
    assert (nothing.span_ns, nothing.iops, nothing.utilisation) == (0, None, None)
    assert nothing.per_day("fills_done") is None
    assert nothing.share_of_reads(1) == 0.0
    assert six_requests().phase(2 * MS, 9 * MS).figures.end_ns == 3 * MS  # the end of the load


def test_a_series_worked_out_by_hand():
    series = six_requests().series()
    assert series.start_ns == [0, MS, 2 * MS]
    assert series.reads == [2, 1, 1]
    assert series.hit == series.page_hit == [0.5, 0.0, 0.0]
    assert series.iops == [1000, 2000, 1000]
    assert series.outstanding == [1, 1, 2]
    assert series.disk_utilisation == [0.25, 0.75, 0.5]
    assert series.ssd_utilisation == [0.6, 0.3, 0.6]
    assert series.occupancy_pages == [1, 5, 9]
    assert series.ssd_write_bytes_per_s == [0, 3_000_000, 6_000_000]
    assert series.mean_ns == [475_000, 1_500_000, 200_000]
    assert series.writes == [0, 1, 0]
    assert series.write_mean_ns == [None, 300_000, None]
    assert series.write_p50_ns == series.write_p99_ns == [None, 300_000, None]
    assert series.reasons == {"cold": [1, 0, 0], "sequential": [0, 1, 0], "evicted": [0, 0, 1]}
    # A command's parts are counted when it begins: in the first bin they are cut to five sixths.
    assert series.disk_time_ns == {
        "seek": [250_000, 600_000, 500_000],
        "rotation": [167_000, 300_000, 300_000],
        "transfer": [83_000, 100_000, 200_000],
        "other": [0, 500_000, 0],
    }


def test_what_the_engine_did_not_count_is_none():
    run = six_requests()
    bare = Outcome(run.collector, Counters({"time_ns": [4 * MS]}), open_loop=True)
    assert (bare.whole.utilisation, bare.whole.ssd_utilisation) == (None, None)
    assert (bare.whole.disk_queue_ns, bare.whole.ssd_time_ns) == (None, None)
    assert (bare.whole.disk_time_ns, bare.whole.counters) == ({}, {})
    series = bare.series()
    assert series.disk_utilisation == series.ssd_utilisation == [None] * 3
    assert series.occupancy_pages == series.ssd_write_bytes_per_s == [None] * 3
    assert series.disk_time_ns == {}


@pytest.mark.parametrize("counted", ["slow_busy_ns", "slow_seek_ns"])
def test_disk_time_in_bins_needs_both_the_whole_and_its_parts(counted):
    columns = {"time_ns": [4 * MS], counted: [2 * MS]}
    run = Outcome(six_requests().collector, Counters(columns), open_loop=True)
    assert run.series().disk_time_ns == {}


def test_requests_are_found_by_time_and_times_by_request():
    run = six_requests()
    assert [run.issued_before(ms * MS) for ms in range(5)] == [0, 2, 4, 6, 6]
    assert [run.time_of(n) // MS for n in range(8)] == [0, 0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize(("busy", "late"), [(1.0, 8), (0.98, 8), (0.96, 0)])
@pytest.mark.parametrize("members", [1, 2])
def test_a_backlog_is_more_than_a_second_of_work_waiting_at_busy_disks(members, busy, late):
    """19 requests at once and one at 9.2 s, one done every half second: 18, 16, ... 2, 1 wait.

    Each takes `busy` half seconds, so in the ninth bin a second of work waits at most.
    """
    issue = np.array([0] * 19 + [92 * SECOND // 10])
    latency = np.arange(1, 21) * SECOND // 2 - issue
    some = np.ones(20, np.uint8)
    collector = Collector(SECOND)
    collector.add(facts(issue, latency, Op.READ * some, Path.MISS * some, Reason.COLD * some))
    counters = {
        "time_ns": [10 * SECOND],
        "slow_busy_ns": [round(busy * 10 * SECOND) * members],
        "slow_members": [members],
    }
    run = Outcome(collector, Counters(counters), open_loop=True)
    assert run.whole.overloaded == late / 10
    assert run.saturated == run.whole.saturated == (late >= 5)
    assert not run.phase(8 * SECOND, 10 * SECOND).saturated
    assert run.series().outstanding == [18, 16, 14, 12, 10, 8, 6, 4, 2, 1]
    closed = Outcome(collector, Counters(counters), open_loop=False)
    assert (closed.whole.overloaded, closed.saturated) == (0.0, False)


@pytest.mark.parametrize(
    ("late", "saturated"),
    [((16, 18), True), ((14, 17), False), ((19, 20), False), ((0, 10), True), ((0, 9), False)],
)
def test_a_machine_is_saturated_by_half_of_the_run_or_of_its_last_fifth(late, saturated):
    """Twenty bins of a second, of which those from and to these numbers are overloaded."""
    issue = np.arange(20) * SECOND
    some = np.ones(20, np.uint8)
    collector = Collector(SECOND)
    latency = np.full(20, SECOND // 2)
    collector.add(facts(issue, latency, Op.READ * some, Path.MISS * some, Reason.COLD * some))
    run = Outcome(collector, Counters({"time_ns": [20 * SECOND]}), open_loop=True)
    run._overloaded = (np.arange(20) >= late[0]) & (np.arange(20) < late[1])
    run.whole = run.phase(0, run.end_ns)
    assert run.saturated is saturated


@pytest.mark.parametrize(
    ("rebuilt", "share", "whole_ns"),
    [
        ([20, 50, 50, 50], 0.5, 4 * MS),  # half of it after 2 ms
        ([20, 50, 75, 100], 1.0, 4 * MS),
        ([100, 100, 100, 100], 1.0, MS),
        ([0, 0, 0, 0], 0.0, None),
    ],
)
def test_a_rebuild_goes_on_at_its_pace(rebuilt, share, whole_ns):
    columns = {"time_ns": np.arange(1, 5) * MS, "slow_rebuilt_bytes": np.array(rebuilt)}
    columns["slow_rebuild_bytes"] = np.full(4, 100)
    run = Outcome(six_requests().collector, Counters(columns), open_loop=True)
    assert (run.rebuild.share, run.rebuild.whole_ns) == (share, whole_ns)


def test_counters_grow_evenly_between_their_rows():
    counters = Counters({"time_ns": [100, 300], "fills": [50, 150], "members": 8})
    assert set(counters) == {"time_ns", "fills", "members"}
    times = np.array([0, 50, 100, 200, 300, 900])
    assert counters.at("fills", times).tolist() == [0, 25, 50, 100, 150, 150]
    assert counters.between("fills", 50, 200) == 75
    assert counters.at("evictions", times) is None
    assert counters.between("evictions", 0, 1) is None
    assert counters.at("members", times) is None  # a number without a row for each time
    assert (counters.constant("members", 1), counters.constant("fills", 1)) == (8, 150)
    assert counters.constant("evictions", 3) == 3
    from_zero = Counters({"time_ns": [0, 100], "fills": [10, 30]})
    assert from_zero.at("fills", np.array([0, 50])).tolist() == [10, 20]
    assert counters["fills"].tolist() == [50, 150]
