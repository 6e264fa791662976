"""A load goes on after a capture as it did in the capture's second half, at other addresses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridsim.requests.continuation import (
    MOST_BYTES,
    PAGE_BYTES,
    PAGES,
    REGION_BYTES,
    _later,
    _places,
    _untouched,
    continuation,
    growth,
    window,
)
from hybridsim.requests.rows import UNKNOWN, no_requests


def requests(regions, op=0, length=4096):
    """One request a millisecond, each somewhere in the region that is listed."""
    rows = no_requests(len(regions))
    rows.arrival_ns[:] = np.arange(len(regions)) * 10**6
    rows.offset_bytes[:] = np.asarray(regions) * REGION_BYTES + 512 * (np.arange(len(regions)) % 8)
    rows.length_bytes[:] = length
    rows.op[:] = op
    rows.complete_ns[:] = UNKNOWN
    rows.dispatch_ns[:] = UNKNOWN
    return rows


def regions_of(rows):
    return rows.offset_bytes // REGION_BYTES


def test_only_addresses_and_times_differ_from_the_second_half():
    draws = np.random.default_rng(1)
    rows = requests(draws.integers(0, 100, 400), op=draws.integers(0, 2, 400))
    more = continuation(rows, 500)
    assert more.rows == 500
    for name in ("op", "length_bytes", "stream", "flags"):
        again = np.resize(getattr(rows, name)[200:], 500)
        assert (getattr(more, name) == again).all()
    assert (
        more.offset_bytes % REGION_BYTES == np.resize(rows.offset_bytes[200:] % REGION_BYTES, 500)
    ).all()
    assert (np.diff(more.arrival_ns) == 10**6).all()
    assert more.arrival_ns[0] == rows.arrival_ns[-1] + 10**6
    assert (more.complete_ns == UNKNOWN).all()


def test_same_rows_and_seed_give_the_same_requests():
    rows = requests(np.random.default_rng(2).zipf(1.3, 300) % 1000)
    one, again, other = (continuation(rows, 700, seed) for seed in (5, 5, 6))
    assert all((a == b).all() for a, b in zip(one, again))
    assert (one.offset_bytes != other.offset_bytes).any()


def test_a_scan_goes_on_to_new_data_in_sequence():
    more = continuation(requests(np.arange(200)), 300)
    assert regions_of(more).tolist() == list(range(200, 500))


def test_what_is_always_popular_stays_popular():
    draws = np.random.default_rng(3)
    hot = draws.integers(0, 10, 2000)
    cold = 1000 + draws.integers(0, 4000, 2000)
    rows = requests(np.where(draws.random(2000) < 0.9, hot, cold))
    more = regions_of(continuation(rows, 4000))
    assert np.mean(more < 10) == pytest.approx(0.9, abs=0.02)
    assert len(np.unique(more[more < 10])) == 10


def test_a_hot_spot_that_moved_in_the_capture_moves_on():
    draws = np.random.default_rng(4)
    places = np.repeat([0, 100], 1000) + draws.integers(0, 10, 2000)
    more = regions_of(continuation(requests(places), 2000))
    known = set(places.tolist())
    assert not known & set(more[:1000].tolist())
    assert len(np.unique(more[:1000])) == 10
    assert not set(more[:1000].tolist()) & set(more[1000:].tolist())


def test_data_of_which_all_is_known_bring_nothing_new():
    draws = np.random.default_rng(5)
    rows = requests(draws.integers(0, 50, 4000))
    assert set(regions_of(continuation(rows, 8000)).tolist()) <= set(range(50))


def test_of_a_set_touched_at_random_the_growth_falls_faster_and_faster():
    total, rows = 1000, np.array([250, 500, 1000, 2000])
    different = total * (1 - np.exp(-rows / total))
    later = _later(list(different), 2)
    really = total * (1 - np.exp(-4))
    assert different[-1] < later < 1.1 * really
    assert _later([100, 200, 400, 800], 10 / 3) == pytest.approx(800 * 10 / 3)


def test_reads_and_writes_keep_their_own_regions():
    draws = np.random.default_rng(6)
    op = np.tile([0, 1], 1000)
    rows = requests(draws.integers(0, 20, 2000) + 100 * op, op=op)
    more = continuation(rows, 2000)
    assert (regions_of(more)[more.op == 1] >= 100).all()
    assert (regions_of(more)[more.op == 0] < 100).all()


def test_what_comes_back_after_a_long_time_is_read_or_written_as_before():
    draws = np.random.default_rng(7)
    op = np.tile([0, 1], 1500)
    rows = requests(draws.integers(0, 1200, 3000) + 2000 * op, op=op)  # much of it only once
    more = continuation(rows, 6000)
    read, written = (set(regions_of(more)[more.op == each].tolist()) for each in (0, 1))
    assert not read & set(regions_of(rows)[rows.op == 1].tolist())
    assert not written & set(regions_of(rows)[rows.op == 0].tolist())


def test_a_sequence_of_requests_of_several_sizes_goes_on_without_overlaps():
    rows = requests(np.zeros(600, np.int64), op=1)
    rows.length_bytes[:] = np.tile([4096, 16384, 8192], 200)
    rows.offset_bytes[:] = np.cumsum(rows.length_bytes) - rows.length_bytes
    more = continuation(rows, 900)
    follows = more.offset_bytes[1:] == (more.offset_bytes + more.length_bytes)[:-1]
    assert follows.mean() > 0.99
    assert np.mean(more.offset_bytes > rows.offset_bytes[-1]) > 0.99  # but for a begun region


def test_streams_that_read_here_and_write_there_go_on_in_sequence():
    draws = np.random.default_rng(9)
    rows = requests(np.arange(600) % 2 * 10_000 + np.arange(600) // 2, op=draws.integers(0, 2, 600))
    more = regions_of(continuation(rows, 900))
    assert (more[2:] == more[:-2] + 1).mean() > 0.95


def stream_beside_reads(lasts):
    """A stream of writes through regions of which one in four was read at random before."""
    draws = np.random.default_rng(4)
    rows = requests(draws.integers(0, 400, 2000))
    mine = np.flatnonzero(np.arange(2000) % 2 & (lasts | (np.arange(2000) > 1300)))
    rows.offset_bytes[mine] = 40 * REGION_BYTES + 8192 + 4096 * np.arange(len(mine))
    rows.length_bytes[mine] = 4096
    rows.op[mine] = 1
    return rows


@pytest.mark.parametrize("lasts", [True, False])
def test_a_stream_moves_as_one_through_what_was_read_at_random(lasts):
    more = continuation(stream_beside_reads(lasts), 3000)
    for again in range(3):  # repetitions
        mine = more.between(again * 1000, (again + 1) * 1000)
        assert (np.diff(mine.offset_bytes[mine.op == 1]) == 4096).all()


def test_a_stream_that_lasts_goes_on_where_it_was():
    rows = stream_beside_reads(lasts=True)
    more = continuation(rows, 3000)
    writes = np.append(rows.offset_bytes[rows.op == 1], more.offset_bytes[more.op == 1])
    assert (np.diff(writes) == 4096).all()


def test_pages_of_16_kib_stay_whole():
    draws = np.random.default_rng(8)
    rows = requests(np.zeros(4000, np.int64), length=16384)
    rows.offset_bytes[:] = 16384 * draws.zipf(1.2, 4000).clip(max=2000)
    more = continuation(rows, 4000)
    assert np.mean(more.offset_bytes % 16384 == 0) > 0.95
    pages = [len(np.unique(each.offset_bytes[2000:] // 4096)) for each in (rows, more)]
    assert pages[1] == pytest.approx(pages[0], rel=0.1)


def test_what_is_read_again_in_large_requests_is_read_again():
    each = 4 * REGION_BYTES
    rows = requests(4 * (np.arange(400) % 100), length=each)
    rows.offset_bytes[:] = regions_of(rows) * REGION_BYTES
    more = continuation(rows, 400)
    assert sorted(set(more.offset_bytes.tolist())) == [each * n for n in range(100)]


def test_large_requests_take_no_more_memory_than_small_ones():
    # 256 pages a request, of which at most the 16 of the region matter in which it begins.
    draws = np.random.default_rng(4)
    rows = requests(draws.integers(0, 10**6, 2000), length=1 << 20)
    places = _places(rows.between(1000, 2000), rows.between(0, 1000))
    assert len(places.page) <= 1000 * PAGES
    assert set(places.page[places.of_request]) == set(rows.offset_bytes[1000:] // PAGE_BYTES)


def test_a_request_longer_than_what_is_counted_goes_on():
    rows = requests(np.arange(60) * 2000, length=MOST_BYTES + (1 << 20))
    rows.offset_bytes[:] += REGION_BYTES // 2
    assert continuation(rows, 60).rows == 60


def test_nothing_is_beyond_the_end_of_the_volume():
    rows = requests(np.arange(3000))
    end = 3500 * REGION_BYTES
    assert regions_of(continuation(rows, 9000, end_bytes=end)).max() < 3500


def test_a_volume_without_room_takes_no_request_beyond_its_end():
    rows = requests([*range(10), *range(5), *range(20, 24), 24], length=12 * 4096)
    rows.offset_bytes[:] = regions_of(rows) * REGION_BYTES
    end = int((rows.offset_bytes + rows.length_bytes).max())
    more = continuation(rows, 100, end_bytes=end)
    assert (more.offset_bytes + more.length_bytes).max() <= end


def test_requests_without_data_stay_where_they_are():
    rows = requests(np.arange(100))
    rows.length_bytes[::5], rows.op[::5], rows.offset_bytes[::5] = 0, 3, 0
    more = continuation(rows, 100)
    assert (more.offset_bytes[more.length_bytes == 0] == 0).all()


def test_a_window_counts_each_region_that_a_request_touches():
    rows = requests([4, 4, 9], op=[0, 1, 1], length=[4096, 4096, 3 * REGION_BYTES])
    region, level, writes = window(rows)
    assert region.tolist() == [4, 9, 10, 11, 12]  # the last begins within region 9
    assert level.tolist() == [1, 0, 0, 0, 0]
    assert writes.tolist() == [1, 2, 2, 2, 2]
    growths = growth(rows, window(rows))
    assert growths == [[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 4]]  # at least 1


@given(st.sets(st.integers(0, 60), min_size=1), st.sets(st.integers(0, 60), min_size=1))
def test_untouched_regions_are_the_next_ones(seen, wanted):
    found = _untouched(np.array(sorted(wanted)), np.array(sorted(seen)))
    taken = set(seen)
    for want, got in zip(sorted(wanted), found):
        assert got >= want
        assert got not in taken
        assert all(each in taken for each in range(want, got))
        taken.add(int(got))
