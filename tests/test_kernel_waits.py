"""Waits of a Linux kernel (DESIGN.md 2.1): engine and reference, and what kernels do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridsim.jit.jiffies import expiry_ns
from hybridsim.reference.clock import expiry

MS, SECOND = 10**6, 10**9
TIMES = st.integers(0, 10**13)
DELAYS = st.integers(0, 10**12) | st.integers(0, 3 * SECOND) | st.sampled_from(
    [jiffies * 4 * MS for limit in (63, 504, 4032, 32_256) for jiffies in (limit - 1, limit)]
)  # fmt: skip


@given(TIMES, DELAYS)
def test_engine_equals_reference(now, delay):
    assert expiry_ns(now, delay) == expiry(now, delay)


@given(TIMES, DELAYS)
def test_a_wait_is_never_short_and_at_most_an_eighth_and_a_jiffy_long(now, delay):
    waited = expiry(now, delay) - now
    assert delay <= waited <= delay * 65 // 56 + 8 * MS


@pytest.mark.parametrize(
    ("delay", "period"),
    [
        (1 * SECOND, 1024 * MS),  # of dm-cache's waker
        (5 * SECOND, 5120 * MS),  # of bcache's writeback_rate in validate/results/wbt-*
        (100 * MS, 104 * MS),
        (0, 0),
    ],
)
def test_period_of_a_timer_that_is_set_again_when_it_expires(delay, period):
    assert expiry(expiry(0, delay), delay) == 2 * period
