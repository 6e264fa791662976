"""Bins and percentiles are those of fio, and no value is off by more than 1/128."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridsim.foundation.histogram import BINS, TOP_NS, VALUES, Distribution, bin_of, value_of

FIO = json.loads((Path(__file__).parent / "data" / "fio_3.33_clat.json").read_text())
times = st.lists(st.integers(0, 2**40), min_size=1, max_size=50)


def of_fio(bins):
    counts = np.zeros(BINS, np.int64)
    counts[bin_of(np.array([int(value) for value in bins]))] = list(bins.values())
    return counts


@pytest.mark.parametrize("ddir", ["read", "write"])
def test_each_value_in_fios_output_is_the_middle_of_its_bin(ddir):
    values = np.array([int(value) for value in FIO[ddir]["bins"]])
    assert value_of(bin_of(values)).tolist() == values.tolist()


@pytest.mark.parametrize("ddir", ["read", "write"])
def test_percentiles_equal_those_of_fio(ddir):
    fio = FIO[ddir]
    ours = Distribution(fio["N"], round(fio["mean"] * fio["N"]), fio["max"], of_fio(fio["bins"]))
    for percent, value in fio["percentile"].items():
        # fio gives the middle of the last bin, which may lie above the maximum.
        assert ours.percentile(float(percent)) == min(value, fio["max"]), percent


def test_bins_are_contiguous_and_end_at_17_seconds():
    assert bin_of(VALUES).tolist() == list(range(BINS))
    assert TOP_NS == 2**34 - 1
    assert bin_of(np.array([0, 127, 128, 129, 130, TOP_NS, TOP_NS + 1, 2**62])).tolist() == [
        0, 127, 128, 128, 129, BINS - 1, BINS - 1, BINS - 1,
    ]  # fmt: skip


@given(st.integers(0, TOP_NS))
def test_the_relative_error_of_a_bin_is_at_most_1_in_128(value):
    middle = int(value_of(bin_of(np.array([value])))[0])
    assert abs(middle - value) <= value / 128


@given(times, times)
def test_adding_distributions_equals_the_distribution_of_all_values(some, others):
    total = Distribution.of(np.array(some)) + Distribution.of(np.array(others))
    both = Distribution.of(np.array(some + others))
    assert (total.count, total.total_ns, total.max_ns) == (both.count, both.total_ns, both.max_ns)
    assert total.bins.tolist() == both.bins.tolist()


@given(times, st.floats(0, 100))
def test_a_percentile_is_in_the_bin_of_the_value_of_its_rank(some, percent):
    distribution = Distribution.of(np.array(some))
    rank = max(int(np.ceil(percent / 100 * len(some))), 1)
    exact = sorted(some)[rank - 1]
    expected = min(int(value_of(bin_of(np.array([exact])))[0]), max(some))
    assert distribution.percentile(percent) == expected


def test_an_empty_distribution_has_no_mean_and_no_percentile():
    assert Distribution().mean_ns is None
    assert Distribution().percentile(99) is None
    assert Distribution.of(np.array([], np.int64)).by_value() == {}
