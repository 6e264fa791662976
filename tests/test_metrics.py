"""The collector equals a naive computation for any chunk sizes of the facts."""

from collections import Counter

import numpy as np
import pytest
from fakes import Facts
from hypothesis import given
from hypothesis import strategies as st

from hybridsim.answers.metrics import MAX_BINS, READS, REASONS, Collector, ConservationError, Kind
from hybridsim.foundation.codes import Op, Path, Reason
from hybridsim.foundation.histogram import Distribution

WIDTH = 1000
MISSES = sorted(REASONS[Kind.MISS])
WAYS = [
    (Op.READ, Path.HIT, Reason.NONE, Kind.HIT),
    *((Op.READ, Path.MISS, reason, Kind.MISS) for reason in MISSES),
    (Op.READ, Path.BYPASS, Reason.SEQUENTIAL, Kind.BYPASS),
    (Op.WRITE, Path.BYPASS, Reason.WRITE, Kind.WRITE),
    (Op.WRITE_ZEROES, Path.BYPASS, Reason.WRITE, Kind.WRITE),
    (Op.DISCARD, Path.BYPASS, Reason.DISCARD, Kind.OTHER),
    (Op.FLUSH, Path.BYPASS, Reason.FLUSH, Kind.OTHER),
]

requests = st.tuples(
    st.integers(0, 3_000_000),  # issue: from less than a bin to many doublings
    st.integers(0, 50_000),
    st.sampled_from(WAYS),
    st.integers(1, 5),  # pages
)


def facts_of(rows):
    rows = sorted(rows, key=lambda row: row[0] + row[1])
    issue = np.array([row[0] for row in rows], np.int64)
    pages = np.array([row[3] for row in rows], np.int32)
    op, path, reason, _ = (np.array(one, np.uint8) for one in zip(*(row[2] for row in rows)))
    hit = np.where(path == Path.HIT, pages, 0).astype(np.int32)
    done = issue + np.array([row[1] for row in rows], np.int64)
    length = pages.astype(np.int64) * 4096
    return Facts(np.arange(len(rows)), issue, done, op, length, path, reason, pages, hit)


def collected(rows, chunk):
    facts, collector = facts_of(rows), Collector(WIDTH)
    for start in range(0, len(rows), chunk):
        collector.add(facts.cut(start, start + chunk))
    return collector


@given(st.lists(requests, min_size=1, max_size=60), st.integers(0, 6), st.integers(0, 6))
def test_a_phase_equals_a_naive_computation(rows, first, more):
    collector = collected(rows, len(rows))
    collector.check()
    width = collector.width_ns
    start, end = first * width, (first + more) * width
    figures = collector.phase(start, end)
    inside = [row for row in rows if start <= row[0] < end]
    for kind in Kind:
        mine = [row for row in inside if row[2][3] == kind]
        expected = Distribution.of(np.array([row[1] for row in mine], np.int64))
        assert figures.latency[kind].count == expected.count
        assert figures.latency[kind].total_ns == expected.total_ns
        assert figures.latency[kind].max_ns == expected.max_ns
        assert figures.latency[kind].bins.tolist() == expected.bins.tolist()
        assert figures.pages[kind] == sum(row[3] for row in mine)
        assert figures.bytes[kind] == sum(row[3] * 4096 for row in mine)
        reasons = Counter(row[2][2] for row in mine)
        assert {reason: n for reason, n in figures.reasons[kind].items() if n} == reasons
        done = [row for row in rows if start <= row[0] + row[1] < end and row[2][3] == kind]
        assert figures.done[kind] == len(done)


@given(st.lists(requests, min_size=1, max_size=60), st.integers(1, 60))
def test_chunk_sizes_do_not_change_the_metrics(rows, chunk):
    one, other = collected(rows, chunk), collected(rows, len(rows))
    assert (one.width_ns, one.used) == (other.width_ns, other.used)
    for name, table in vars(one.bins).items():
        assert np.array_equal(table, vars(other.bins)[name]), name


@given(st.lists(requests, min_size=1, max_size=60))
def test_hits_misses_and_bypasses_add_up_to_all_reads(rows):
    figures = collected(rows, 7).whole()
    reads = sum(row[2][0] == Op.READ for row in rows)
    assert figures.reads.count == reads
    hits = figures.latency[Kind.HIT].count
    assert hits + sum(figures.read_reasons.values()) == reads
    assert figures.requests == len(rows)


def test_memory_is_bounded_and_bins_stay_fine():
    collector = Collector(WIDTH)
    size = sum(table.nbytes for table in vars(collector.bins).values())
    for end in (10**6, 10**9, 10**13):
        issue = np.linspace(0, end, 1000).astype(np.int64)
        rows = [(int(t), 10, WAYS[0], 1) for t in issue]
        collector.add(facts_of(rows))
        assert MAX_BINS // 2 <= collector.used <= MAX_BINS
        assert sum(table.nbytes for table in vars(collector.bins).values()) == size < 32 << 20
    assert collector.whole().requests == 3000


def test_merged_bins_of_a_series_keep_all_counts():
    collector = collected([(t * 700, 10, WAYS[t % 2], 1) for t in range(500)], 100)
    for factor in (1, 2, 8):
        series = collector.series(collector.width_ns * factor)
        assert series.reads.sum() == series.done.sum() == 500
        assert series.hits.sum() == 250
        assert series.width_ns == collector.width_ns * factor


def test_percentiles_of_a_bin_equal_those_of_its_requests():
    rows = [(t * 100, t * t % 977, WAYS[t % len(WAYS)], 1) for t in range(3000)]
    collector = collected(rows, 100)
    each = [
        collector.phase(i * collector.width_ns, (i + 1) * collector.width_ns).reads.percentile(99)
        for i in range(collector.used)
    ]
    assert collector.percentiles(99) == each


def test_a_request_of_zero_length_is_neither_read_nor_write():
    facts = facts_of([(0, 10, (Op.READ, Path.BYPASS, Reason.FLUSH, Kind.OTHER), 1)])
    collector = Collector()
    collector.add(facts._replace(length=np.zeros(1, np.int64)))
    collector.check()
    assert collector.whole().latency[Kind.OTHER].count == 1


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ((Op.READ, Path.HIT, Reason.COLD), "a HIT has the reason COLD"),
        ((Op.READ, Path.MISS, Reason.NONE), "a MISS has the reason NONE"),
        ((Op.WRITE, Path.BYPASS, Reason.EVICTED), "a WRITE has the reason EVICTED"),
    ],
)
def test_a_reason_that_does_not_match_the_path_is_an_error(way, reason):
    collector = collected([(0, 1, (*way, Kind.HIT), 1)], 1)
    with pytest.raises(ConservationError, match=reason):
        collector.check()


def test_lost_requests_and_impossible_times_are_errors():
    collector = collected([(0, 1, WAYS[0], 1)], 1)
    collector.bins.count[0, Kind.HIT] += 1
    with pytest.raises(ConservationError, match="do not add up"):
        collector.check()
    with pytest.raises(ConservationError, match="before it was issued"):
        collected([(5, -1, WAYS[0], 1)], 1)
    collector = collected([(0, 1, WAYS[0], 1)], 1)
    collector.bins.pages_hit[0, Kind.HIT] += 9
    with pytest.raises(ConservationError, match="more pages"):
        collector.check()


def test_every_reason_belongs_to_a_kind():
    assert set().union(*REASONS.values()) == set(Reason)
    assert len(READS) + 2 == len(Kind)


def test_shares_worked_out_by_hand():
    """Pages count by themselves: two of three reads miss, and half of their pages are there."""
    rows = [(0, 10, WAYS[0], 4), (1, 10, WAYS[1], 3), (2, 10, WAYS[1], 1)]
    whole = collected(rows, 3).whole()
    assert whole.hit_ratio == pytest.approx(1 / 3)
    assert whole.page_hit_ratio == 0.5
    assert whole.read_reasons == {MISSES[0]: 2}
    nothing = Collector().whole()
    assert (nothing.hit_ratio, nothing.page_hit_ratio, nothing.read_reasons) == (None, None, {})
    assert (nothing.requests, nothing.start_ns, nothing.end_ns) == (0, 0, 0)


def test_a_series_begins_at_zero_and_counts_each_bin():
    rows = [(500, 1000, WAYS[0], 1), (700, 10, WAYS[1], 1), (2500, 10, WAYS[-1], 1)]
    collector = collected(rows, 1)
    assert (collector.last_issue_ns, collector.last_done_ns) == (2500, 2510)
    assert collector.end_ns == 3 * WIDTH
    series = collector.series()
    assert series.start_ns.tolist() == [0, 1000, 2000]
    assert series.reads.tolist() == [2, 0, 0]
    assert series.hits.tolist() == [1, 0, 0]
    assert series.done.tolist() == [1, 1, 1]
    joined = collected(rows, 3).series(2 * WIDTH)
    assert joined.start_ns.tolist() == [0, 2000]
    assert (joined.reads.tolist(), joined.done.tolist()) == ([2, 0], [2, 1])
    empty = Collector().series()
    assert (empty.reads.tolist(), empty.done.tolist()) == ([0], [0])


def test_a_bin_without_reads_has_no_percentile():
    rows = [(500, 100, WAYS[0], 1), (2500, 30, WAYS[1], 1), (1500, 10, WAYS[-1], 1)]
    assert collected(rows, 3).percentiles(50) == [100, None, 30]


def test_bins_that_are_joined_keep_the_longest_latency():
    """Two reads in neighbouring bins, and one so late that these become one bin."""
    rows = [(0, 30, WAYS[0], 1), (WIDTH, 40, WAYS[0], 1), (MAX_BINS * WIDTH, 10, WAYS[0], 1)]
    collector = collected(rows, 1)
    assert collector.width_ns == 2 * WIDTH
    first = collector.phase(0, 2 * WIDTH).latency[Kind.HIT]
    assert (first.count, first.total_ns, first.max_ns) == (2, 70, 40)
