"""The search for the smallest SSD: which sizes it tries, and what it answers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridsim import Scenario
from hybridsim.errors import ScenarioError, UsageError
from hybridsim.verbs.mrc import Curve
from hybridsim.verbs.size import Search, first_sizes, possible, size, sizes_of

GRID = list(range(100, 200))


def curve(distinct=1000, page_bytes=4096):
    pages = np.arange(1, distinct + 1)
    ratio = np.maximum(1 - pages / 400, 0.1)
    return Curve("lru", "always", page_bytes, pages, ratio, 0 * ratio, 1, 1, distinct, 1.0)


def searched(meets, grid=GRID, first=(150, 199)):
    """Return the search when it is over, and how often each size was tried."""
    search, tried = Search(grid, first), []
    while sizes := search.next():
        tried += sizes
        for each in sizes:
            search.told(each, meets(each))
    return search, tried


@given(st.integers(100, 199))
def test_the_answer_is_the_smallest_size_that_meets_and_the_one_below_fails(smallest):
    search, tried = searched(lambda size: size >= smallest)
    assert search.answer == smallest
    assert search.below == (smallest - 1 if smallest > 100 else None)
    assert len(tried) == len(set(tried)) <= 15


@given(st.lists(st.booleans(), min_size=100, max_size=100))
def test_whatever_meets_the_answer_was_tried_and_so_was_its_neighbour(meets):
    search, tried = searched(lambda size: meets[size - 100])
    assert len(tried) == len(set(tried))
    if search.answer is not None:
        assert meets[search.answer - 100]
        assert search.below == (search.answer - 1 if search.answer > 100 else None)
        assert search.below is None or not meets[search.below - 100]


def test_before_it_says_that_nothing_meets_it_looks_between():
    search, tried = searched(lambda size: size == 174, first=[100, 150, 199])
    assert search.answer == 174
    search, tried = searched(lambda size: False, first=[100, 150, 199])
    assert (search.answer, search.below) == (None, None)
    assert sorted(tried) == [100, 125, 150, 174, 199]


def test_sizes_are_whole_pages_four_to_a_doubling_up_to_all_that_is_touched():
    sizes = [each // 4096 for each in sizes_of(curve(40))]
    assert sizes == [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40]
    assert sizes_of(curve(1)) == [4096]


def test_the_curve_says_where_to_look_first():
    known = curve()
    grid = sizes_of(known)
    wanted = [each // 4096 for each in first_sizes(known, grid)]
    assert wanted == [192, 320, 384, 1024]  # half, 80 % and 95 % of the fall to 360 pages


def test_sizes_that_the_cache_cannot_have_are_left_out():
    small = Scenario.loads('[cache]\nkind = "bcache"\n')
    sizes, why = possible(small, [2**power for power in range(12, 50)])
    assert sizes[0] == 2**22  # 513 buckets of 4 KiB are a little more than 2 MiB
    assert sizes[-1] == 2**40
    assert "drive holds" in why
    with pytest.raises(ScenarioError):
        possible(small, [4096])


@pytest.mark.parametrize(
    ("scenario", "require", "said"),
    [("", [], "say what must be reached"), ('[cache]\nkind = "none"', ["hit>1%"], "no cache")],
)
def test_what_cannot_be_answered_is_refused_before_the_trace_is_read(scenario, require, said):
    with pytest.raises(UsageError, match=said):
        size(None, Scenario.loads(scenario), require)
