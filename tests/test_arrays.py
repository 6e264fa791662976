"""Functions on arrays: the same values as numpy's own, slower ones."""

from __future__ import annotations

import numpy as np
import pytest

from hybridsim.foundation.arrays import distinct


@pytest.mark.parametrize("length", [0, 1, 2, 100, 10_000])
@pytest.mark.parametrize("values", [1, 7, 1 << 62])
def test_distinct_values_are_those_of_numpy_in_ascending_order(length, values):
    column = np.random.default_rng(length).integers(-values, values, length)
    before = column.copy()
    found = distinct(column)
    assert found.dtype == column.dtype
    assert found.tolist() == sorted(set(column.tolist())) == np.unique(column).tolist()
    assert np.array_equal(column, before)
