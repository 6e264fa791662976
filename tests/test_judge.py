"""The judge: two machines that served the same requests, worked out by hand."""

from typing import NamedTuple

import numpy as np
import pytest

from hybridsim.answers.forecast import NO, UNSURE, YES, after_change, before_change
from hybridsim.answers.judge import Side, judge
from hybridsim.answers.metrics import GROUPS, JOINED, READ, SAMPLES, WRITE, Counters, Ledger
from hybridsim.answers.sampling import interval
from hybridsim.foundation.codes import Op, Path
from hybridsim.foundation.errors import UsageError
from hybridsim.studies.replay import replay
from hybridsim.traces.trace import Trace

MS, SECOND = 10**6, 10**9


class Facts(NamedTuple):
    number: np.ndarray
    issue_ns: np.ndarray
    done_ns: np.ndarray
    op: np.ndarray
    length: np.ndarray
    path: np.ndarray


def ledger(arrival_ns, latency_ns, writes=None, issue_ns=None, portions=1, missed=()):
    """What a machine does; requests are 4 KiB, and hits but for those in `missed`."""
    arrival = np.asarray(arrival_ns, np.int64)
    number = np.arange(len(arrival))
    issue = arrival if issue_ns is None else np.asarray(issue_ns, np.int64)
    op = np.where(np.zeros(len(arrival), bool) if writes is None else writes, Op.WRITE, Op.READ)
    path = np.full(len(arrival), Path.HIT, np.uint8)
    path[list(missed)] = Path.MISS
    done = issue + np.asarray(latency_ns, np.int64)
    result = Ledger()
    result.arrive(0, arrival)
    for part in np.array_split(np.argsort(done, kind="stable"), portions):
        result.add(
            Facts(
                number[part], issue[part], done[part], op[part].astype(np.uint8),
                np.full(len(part), 4096, np.int64), path[part],
            )
        )  # fmt: skip
    return result


def side(of, **columns):
    return Side(of, Counters(columns))


def even(count, gap_ns=10 * MS):
    return np.arange(count, dtype=np.int64) * gap_ns


def judged(before_ns, after_ns, count=4000, adapts=False, **how):
    """Two machines with latencies that may differ by request."""
    arrival = even(count)
    plain, cached = (np.broadcast_to(each, count) for each in (before_ns, after_ns))
    return judge(side(ledger(arrival, plain)), side(ledger(arrival, cached)), adapts, **how)


class TestLedger:
    def test_sums_do_not_depend_on_the_portions_in_which_facts_come(self):
        rng = np.random.default_rng(1)
        latency = rng.integers(1, 10 * MS, 10_000)
        one, many = (ledger(even(10_000), latency, portions=n) for n in (1, 37))
        for name in ("count", "total_ns", "bytes", "arrival_ns", "issue_ns", "done_ns", "latency"):
            np.testing.assert_array_equal(getattr(one, name), getattr(many, name))

    def test_groups_double_when_the_requests_outgrow_them_and_nothing_is_lost(self):
        count = 3 * GROUPS + 5
        latency = np.arange(count, dtype=np.int64) + 1
        result = ledger(even(count), latency, writes=np.arange(count) % 3 == 0)
        assert result.each == 4
        assert result.used == -(-count // 4)
        assert result.count.sum() == count == result.latency.sum()
        assert result.total_ns.sum() == latency.sum()
        first = latency[:4]
        assert result.total_ns[0].tolist() == [first[1] + first[2], first[0] + first[3]]
        assert result.times_ns()[:3].tolist() == [0, 40 * MS, 80 * MS]

    def test_memory_does_not_grow_with_the_run(self):
        small, large = (ledger(even(n, 1), np.ones(n, np.int64)) for n in (10, 300_000))
        sizes = [sum(x.nbytes for x in vars(one).values() if isinstance(x, np.ndarray))
                 for one in (small, large)]  # fmt: skip
        assert sizes[0] == sizes[1] < 3_000_000

    def test_a_flush_and_an_empty_request_have_no_direction_but_take_time(self):
        result = Ledger()
        ops = np.array([Op.FLUSH, Op.READ, Op.WRITE_ZEROES], np.uint8)
        result.add(Facts(np.arange(3), even(3), even(3) + 5, ops, np.array([0, 0, 4096]), ops))
        assert result.count.sum(axis=0).tolist() == [0, 1]
        assert result.progress_ns().tolist() == [5, 10 * MS + 5, 20 * MS + 5]

    def test_a_distribution_is_of_the_groups_between_two_borders(self):
        latency = np.repeat([10, 20], 2 * JOINED)
        result = ledger(even(4 * JOINED), latency)
        half = result.distribution(2 * JOINED, 4 * JOINED, READ)
        assert (half.count, half.mean_ns, half.max_ns) == (2 * JOINED, 20, 20)
        assert result.distribution(0, 4 * JOINED, WRITE).count == 0


class TestGain:
    def test_it_is_plain_over_cached_of_the_second_half(self):
        after = np.where(np.arange(4000) < 2000, 9 * MS, 3 * MS)
        result = judged(9 * MS, after)
        assert result.gain == 3
        assert result.sampled == pytest.approx((3 / 1.005, 3 * 1.005))
        assert result.answer == YES
        assert result.pairs["whole"].gain("latency") == 1.5

    def test_reads_and_writes_count_alike(self):
        """Nine writes of 10 ms that stay, one read of 10 ms that takes 1: 100 / 91."""
        arrival, writes = even(3200), np.arange(3200) % 10 != 0
        before = np.full(3200, 10 * MS)
        after = np.where(writes, 10 * MS, MS)
        result = judge(
            side(ledger(arrival, before, writes)), side(ledger(arrival, after, writes)), False
        )
        assert result.gain == pytest.approx(100 / 91)
        assert result.answer == NO
        assert result.judged.plain.reads.mean_ns / result.judged.cached.reads.mean_ns == 10

    def test_where_the_load_adapts_it_is_the_time_of_the_work(self):
        """Each request comes 1 ms after the one before: 10 ms of latency become 4."""
        count = 4000
        slow, fast = even(count, 11 * MS), even(count, 5 * MS)
        result = judge(
            side(ledger(even(count), np.full(count, 10 * MS), issue_ns=slow)),
            side(ledger(even(count), np.full(count, 4 * MS), issue_ns=fast)),
            adapts=True,
        )
        assert result.gain == pytest.approx(11 / 5)
        assert result.judged.gain("throughput") == pytest.approx(11 / 5)
        assert result.judged.gain("latency") == 2.5

    @pytest.mark.parametrize("adapts", [False, True])
    def test_throughput_is_the_time_of_the_work_whatever_the_load_does(self, adapts):
        slow, fast = even(4000, 11 * MS), even(4000, 5 * MS)
        result = judge(
            side(ledger(even(4000), np.full(4000, 10 * MS), issue_ns=slow)),
            side(ledger(even(4000), np.full(4000, 4 * MS), issue_ns=fast)),
            adapts,
            "throughput",
        )
        assert result.judged.gain("throughput", adapts) == result.judged.gain("throughput")
        assert result.gain == pytest.approx(11 / 5)

    @pytest.mark.parametrize(
        ("goal", "gain"), [("latency", 1.51), ("p99", 0.5), ("disk-time", 4.0)]
    )
    def test_goals(self, goal, gain):
        """1 in 50 takes 20 ms instead of 10, the others 6.36; the disks work a quarter as long."""
        after = np.where(np.arange(4000) % 50 == 0, 20 * MS, 6.36 * MS)
        plain, cached = (
            side(
                ledger(even(4000), np.broadcast_to(each, 4000)),
                time_ns=[40 * SECOND],
                slow_busy_ns=[busy],
            )
            for each, busy in ((10 * MS, 32 * SECOND), (after.astype(np.int64), 8 * SECOND))
        )
        result = judge(plain, cached, False, goal)
        assert result.gain == pytest.approx(gain, rel=0.01)
        assert result.answer == (YES if gain > 1.15 else NO)

    def test_phases_hold_the_same_requests_of_both_machines(self):
        result = judged(9 * MS, 3 * MS, warm=1000)
        each, at = 2, round(1000 / 2 / JOINED) * JOINED * 2
        assert result.pairs["filling"].end == result.pairs["warm"].first == at
        for name in ("filling", "warm", "whole", "judged"):
            pair = result.pairs[name]
            assert pair.plain.both.count == pair.cached.both.count == pair.end - pair.first
        assert each == 2


class TestSure:
    def test_an_interval_over_equal_blocks_is_a_point(self):
        assert interval(20, lambda often: often.sum(axis=1) / 10) == (2, 2)

    def test_an_interval_holds_the_mean_of_unequal_blocks(self):
        values = np.arange(20.0)
        low, high = interval(20, lambda often: often @ values / 20)
        assert 6.5 < low < 8.5
        assert 10.5 < high < 12.5

    def test_the_same_question_has_the_same_answer(self):
        latency = np.random.default_rng(3).integers(MS, 9 * MS, 4000)
        first, second = (judged(9 * MS, latency) for _ in range(2))
        assert (first.low, first.high) == (second.low, second.high)

    def test_an_answer_between_yes_and_no_says_how_much_longer_to_record(self):
        """Half of the blocks gains 10 times, the others lose as much: 1.18 on average."""
        result = judged(10 * MS, np.where(np.arange(4000) // 100 % 2 == 0, 16 * MS, MS))
        assert result.low < 1.05 < 1.15 < result.high
        assert result.answer == UNSURE
        assert result.more_ns >= 40 * SECOND

    def test_a_few_requests_are_too_few(self):
        result = judged(9 * MS, MS, count=30)
        assert result.answer == UNSURE
        assert result.too_short == "14 reads and writes in its second half"

    def test_a_short_capture_is_judged_by_its_interval(self):
        """64 requests: equal ones decide, those of which half lose and half gain do not."""
        assert judged(9 * MS, MS, count=64).answer == YES
        uneven = np.where(np.arange(64) // 4 % 2 == 0, 16 * MS, MS)
        result = judged(10 * MS, uneven, count=64)
        assert result.answer == UNSURE
        assert result.low < 1 < result.high

    def test_requests_that_come_at_once_are_one_moment(self):
        arrival = np.zeros(4000, np.int64)
        arrival[-1] = SECOND
        result = judge(
            side(ledger(arrival, np.full(4000, 9))), side(ledger(arrival, np.full(4000, 1))), False
        )
        assert result.answer == UNSURE
        assert "at once" in result.too_short

    def test_two_runs_of_other_requests_are_no_pair(self):
        with pytest.raises(ValueError, match="different requests"):
            judge(
                side(ledger(even(10), np.ones(10))), side(ledger(even(9000), np.ones(9000))), False
            )


class TestDirty:
    """4,000 writes of 4 KiB in 40 s, 10 ms on the disks and 1 ms on the SSD: 8 MiB a half."""

    HALF = 2000 * 4096

    def found(self, dirty_bytes, marks=(), busy_s=(20, 0), kind="open-cas", **columns):
        arrival, writes = even(4000), np.ones(4000, bool)
        times = [20 * SECOND, 40 * SECOND]
        plain, cached = ({"time_ns": times, "slow_busy_ns": [0, busy * SECOND]} for busy in busy_s)
        before = ledger(arrival, np.full(4000, 10 * MS), writes)
        after = ledger(arrival, np.full(4000, MS), writes)
        cached |= {"dirty_bytes": dirty_bytes, **columns}
        return judge(
            side(before, **plain), side(after, **cached)._replace(marks=marks, kind=kind), False
        )

    def test_a_level_that_stays_costs_nothing(self):
        result = self.found([1 << 20, 1 << 20], marks=[2 << 20])
        assert result.dirty_is_steady
        assert result.gain == result.charged == 10
        assert result.changes_ns is None

    def test_what_grows_is_free_while_the_disks_have_time_for_it(self):
        """A quarter of the writes is put off, 5 s of the disks' time; they are idle."""
        result = self.found([0, self.HALF // 4])
        assert result.dirty_grown == pytest.approx(0.25, rel=0.01)
        assert result.gain == result.charged == 10
        assert result.answer == YES

    def test_what_the_disks_have_no_time_for_is_charged(self):
        """A quarter is put off and the disks are busy all the time: 1 ms + 10 / 4 ms."""
        result = self.found([0, self.HALF // 4], busy_s=(20, 20))
        assert result.gain == 10
        assert result.charged == pytest.approx(10 / 3.5, rel=0.02)

    def test_the_forecast_counts_what_comes_after_the_room_is_used_up(self):
        """2 MiB in 20 s: 6 MiB more take a minute, 9 / 14 of the 7/3 of 40 s."""
        result = self.found([0, self.HALF // 4], marks=[self.HALF])
        assert result.gain == 10
        assert result.changes_ns == pytest.approx(60 * SECOND, rel=0.02)
        share, later = 9 / 14, after_change(result.course)
        left = share * np.exp(-before_change(result.course)) + (1 - share) * np.exp(-later)
        assert result.forecast.gain == pytest.approx(1 / left, rel=0.02)
        assert np.exp(later) < 1.2  # all are writes, and the disks take them as before
        assert result.forecast.change < 0.5

    def test_a_level_that_is_reached_already_is_part_of_the_gain(self):
        result = self.found([1 << 20, 4 << 20], marks=[1 << 20])
        assert result.course.settled
        assert result.changes_ns is None
        assert result.forecast.change == 1

    @pytest.mark.parametrize("power", [1.0, 0.5])
    def test_a_level_grows_by_a_power_of_the_requests(self, power):
        """New pages become rarer: with the root of the requests, a third of the level needs 9 x."""
        times = np.arange(0, 41) * SECOND
        level = 0.6 * self.HALF * (times / times[-1]) ** power
        result = self.found(level.astype(int), marks=[self.HALF], time_ns=times)
        assert result.changes_ns == pytest.approx(
            ((1 / 0.6) ** (1 / power) - 1) * 40 * SECOND, rel=0.05
        )

    @pytest.mark.parametrize("kind", ["page", "dm-cache"])
    def test_kinds_that_clean_early_keep_their_cheap_writes(self, kind):
        result = self.found([0, self.HALF // 4], marks=[self.HALF], kind=kind)
        assert result.changes_ns is None
        assert result.forecast.change == 1

    def test_a_mark_that_is_far_away_is_none(self):
        result = self.found([0, self.HALF // 4], marks=[20 << 20])
        assert result.changes_ns is None
        assert result.answer == YES

    def test_of_bcache_the_buckets_in_use_count_and_not_the_dirty_data(self):
        """20 % more of the buckets in use in 20 s: 40 % are reached 20 s later."""
        result = self.found(
            [0, 1 << 20], marks=[1 << 30], kind="bcache", cache_available_percent=[100, 80]
        )
        assert result.changes_ns == pytest.approx(20 * SECOND, rel=0.02)


class TestCourse:
    """Reads of 10 ms on the disks and 1 ms on the SSD; hits as a function of the request."""

    def found(self, hit, count=8000, **columns):
        missed = np.flatnonzero(~hit(np.arange(count) / count))
        latency = np.full(count, MS)
        latency[missed] = 10 * MS
        plain = ledger(even(count), np.full(count, 10 * MS), missed=range(count))
        columns = {"time_ns": [0, count * 5 * MS, count * 10 * MS], **columns}
        cached = side(ledger(even(count), latency, missed=missed), **columns)
        return judge(side(plain), cached._replace(kind="bcache"), False)

    @staticmethod
    def share(of):
        """Hits in a share `of` (by place) of the requests, evenly spread."""
        return lambda place: np.modf(np.arange(len(place)) * 0.6180339887)[0] < of(place)

    def test_a_hit_ratio_that_stays_goes_on(self):
        result = self.found(self.share(lambda place: 0.5 + 0 * place))
        assert result.course.hits == pytest.approx(0.5, abs=0.01)
        assert result.course.rising == pytest.approx(0, abs=0.02)
        assert result.forecast.gain == pytest.approx(result.gain, rel=0.02)

    def test_the_rise_is_by_the_logarithm_of_the_requests(self):
        result = self.found(self.share(lambda place: 0.6 + 0.3 * np.log(np.maximum(place, 0.1))))
        assert result.course.rising == pytest.approx(0.3, abs=0.03)

    def test_a_cache_that_fills_gains_more_than_one_that_is_full(self):
        rises = self.share(lambda place: 0.2 + 0.6 * place)
        fills, full = (
            self.found(rises, pages_present=pages) for pages in ([0, 500, 1000], [0, 1000, 1000])
        )
        assert (fills.course.filling, full.course.filling) == (1, 0)
        assert fills.gain == full.gain
        assert fills.forecast.gain > full.forecast.gain > full.gain
        assert fills.forecast.trend > 1.1

    def test_what_a_hit_saves_is_measured(self):
        """All reads as hits save 9 ms of 10."""
        result = self.found(self.share(lambda place: 0.5 + 0 * place))
        assert result.course.per_hit == pytest.approx(0.9, abs=0.001)
        assert result.course.without_cheap == pytest.approx(0.45, abs=0.01)

    def test_a_load_that_varies_widens_the_interval(self):
        count = 8000
        rng = np.random.default_rng(1)
        even_load = rng.integers(9 * MS, 11 * MS, count)
        uneven = even_load * (1 + np.arange(count) * 8 // count % 2)
        widths = []
        for before in (even_load, uneven):
            result = judge(side(ledger(even(count), before)),
                           side(ledger(even(count), before // 2)), False)  # fmt: skip
            assert result.gain == pytest.approx(2, rel=0.001)
            widths.append(result.high / result.low)
        assert widths[1] > 1.2 * widths[0]

    @pytest.mark.parametrize("goal", ["p99", "disk-time"])
    def test_goals_that_do_not_add_up_have_an_interval_of_this_capture_only(self, goal):
        busy = {"time_ns": [0, 40 * SECOND], "slow_busy_ns": [0, 30 * SECOND]}
        plain, cached = (
            side(ledger(even(4000), np.full(4000, each * MS)), **busy) for each in (9, 3)
        )
        result = judge(plain, cached, False, goal)
        assert result.forecast is None
        assert (result.low, result.high) == result.sampled

    def test_disk_time_needs_drives_that_are_busy(self):
        plain, cached = (side(ledger(even(4000), np.full(4000, each * MS))) for each in (9, 3))
        with pytest.raises(UsageError, match="disk-time: the drives behind the cache have no busy"):
            judge(plain, cached, False, "disk-time")


def test_uniform_random_reads_are_never_worth_a_cache_by_chance():
    """5,000 reads of 512 bytes over 49 MiB: a tenth of it in the cache is a tenth of hits.

    The buffers of the disks give some seeds more than that, and others less.
    """
    load = Trace.read("gen:random,span=49MiB,size=512,align=512,read=100%,rate=80,requests=5000")
    results = [replay(load.seeded(seed)) for seed in range(1, 7)]
    for result in results:
        assert result.verdict.answer != YES
        assert 0.95 < result.judgement.gain < 1.2
        assert result.judgement.expected < 1.2
        assert result.judgement.low < 1.15
    assert 1.05 < np.mean([each.judgement.gain for each in results]) < 1.15


class TestLuck:
    """4,000 reads, every second of them a hit that takes 1 ms instead of 10."""

    def found(self, missed_ns, before_wait_ns=0, after_wait_ns=0):
        hit = np.arange(4000) % 2 == 0
        missed = np.flatnonzero(~hit)
        times = [20 * SECOND, 40 * SECOND]
        before = ledger(even(4000), np.full(4000, 10 * MS), missed=range(4000))
        after = ledger(even(4000), np.where(hit, MS, missed_ns), missed=missed)
        waited = [[0, wait] for wait in (before_wait_ns, after_wait_ns)]
        return judge(
            side(before, time_ns=times, slow_queue_ns=waited[0]),
            side(after, time_ns=times, slow_queue_ns=waited[1]),
            False,
        )

    def test_misses_that_take_what_they_took_are_no_luck(self):
        result = self.found(10 * MS)
        assert result.by_chance == 0
        assert result.gain == pytest.approx(20 / 11)

    @pytest.mark.parametrize("missed_ns", [5 * MS, 15 * MS])
    def test_misses_that_changed_though_nothing_waited_are_luck(self, missed_ns):
        result = self.found(missed_ns)
        assert result.gain == pytest.approx(20 / 11)
        assert result.judged.gain("latency") == pytest.approx(20 * MS / (MS + missed_ns))
        assert result.by_chance == pytest.approx((10 * MS - missed_ns) / (MS + missed_ns))

    @pytest.mark.parametrize("missed_ns", [5 * MS, 15 * MS])
    def test_luck_may_last_so_the_interval_holds_the_gain_with_and_without_it(self, missed_ns):
        result = self.found(missed_ns)
        low, high = sorted((result.gain, result.judged.gain("latency")))
        assert result.sampled == pytest.approx((low, high), rel=0.006)

    def test_what_reads_wait_less_for_the_disks_is_the_cache_s_merit(self):
        """Half of the judged requests, the misses, waited half of all the time: 5 of 10 ms each."""
        result = self.found(5 * MS, before_wait_ns=2000 * 10 * MS)
        assert result.by_chance == 0
        assert result.gain == pytest.approx(20 / 6)

    def test_what_they_wait_more_is_its_fault(self):
        result = self.found(15 * MS, after_wait_ns=2000 * 10 * MS)
        assert result.by_chance == 0
        assert result.gain == pytest.approx(20 / 16)

    def test_a_sample_of_a_long_run_is_of_the_same_requests_on_both_machines(self):
        count = 3 * SAMPLES
        latency = np.arange(count, dtype=np.int64)
        one, other = (ledger(even(count, 1), latency, portions=n) for n in (1, 50))
        assert one.stride == 4
        kept = one.sample_ns[: -(-count // 4)]
        np.testing.assert_array_equal(kept, latency[::4])
        np.testing.assert_array_equal(one.sample_ns, other.sample_ns)
