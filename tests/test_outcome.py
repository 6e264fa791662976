"""Results over time: the last bin of a run is usually partial."""

import numpy as np
import pytest
from fakes import facts

from hybridsim.answers.counters import Counters
from hybridsim.answers.metrics import Collector
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
