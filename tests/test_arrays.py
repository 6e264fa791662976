"""Functions on arrays: the same values as numpy's own, slower ones."""

from __future__ import annotations

from copy import deepcopy
from typing import NamedTuple

import numpy as np
import pytest

from hybridsim.foundation.arrays import (
    Bytes,
    Int32s,
    Ints,
    distinct,
    grown_pool,
    more_records,
    pool_of,
    records,
)


@pytest.mark.parametrize("length", [0, 1, 2, 100, 10_000])
@pytest.mark.parametrize("values", [1, 7, 1 << 62])
def test_distinct_values_are_those_of_numpy_in_ascending_order(length, values):
    column = np.random.default_rng(length).integers(-values, values, length)
    before = column.copy()
    found = distinct(column)
    assert found.dtype == column.dtype
    assert found.tolist() == sorted(set(column.tolist())) == np.unique(column).tolist()
    assert np.array_equal(column, before)


class Things(NamedTuple):
    """A pool."""

    size: Ints
    kind: Bytes
    following: Int32s
    free: Ints  # [first free, number of free]


def free_entries(pool):
    entry, found = pool.free[0], []
    while entry != -1:
        found.append(int(entry))
        entry = pool.following[entry]
    assert len(found) == pool.free[1]
    return found


def test_a_pool_has_arrays_of_its_fields_types_and_all_entries_free():
    pool = pool_of(Things, 3)
    assert [each.dtype for each in pool] == [np.int64, np.uint8, np.int32, np.int64]
    assert free_entries(pool) == [0, 1, 2]


def test_a_grown_pool_keeps_what_it_holds_and_takes_new_entries_first():
    pool = pool_of(Things, 3)
    pool.size[:2] = 7, 8
    pool.free[:] = 2, 1  # 0 and 1 are used
    larger = grown_pool(pool, 5)
    assert larger.size.tolist() == [7, 8, 0, 0, 0]
    assert free_entries(larger) == [3, 4, 2]


def test_records_grow_as_they_began():
    kind = np.dtype([("clock", np.int64), ("page", np.int32)], align=True)
    few = records(kind, 2, page=-1)
    few[1].clock, few[1].page = 7, 3
    many = more_records(few, 4, page=-1)
    assert many.clock.tolist() == [0, 7, 0, 0]
    assert many.page.tolist() == [-1, 3, -1, -1]
    assert deepcopy(many).dtype == many.dtype
    assert few.page.tolist() == [-1, 3]
