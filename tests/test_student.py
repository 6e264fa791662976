"""Student's t: how far an interval reaches, beside scipy's quantiles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtr, stdtrit

from hybridsim.answers.sampling import student_below, student_reach


@given(st.integers(1, 3000), st.floats(0.001, 0.9999))
def test_reach_is_scipys_quantile(freedom, level):
    assert student_reach(freedom, level) == pytest.approx(
        stdtrit(freedom, (1 + level) / 2), rel=1e-8
    )


@given(st.integers(1, 200), st.floats(-50, 50))
def test_below_is_scipys_distribution(freedom, value):
    found = float(student_below(freedom, np.array([value]))[0])
    assert found == pytest.approx(stdtr(freedom, value), abs=1e-9)
