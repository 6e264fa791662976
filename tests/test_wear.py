"""What the SSDs are written, and how long they last: against values worked out by hand."""

import dataclasses

import pytest

from hybridsim.answers.metrics import Collector, Kind
from hybridsim.answers.outcome import DAY, Phase, Wear, wear

TB, GB = 10**12, 10**9


def phase(counters, span_ns=DAY, start_ns=0, host_bytes=0):
    """A stretch of time in which these counters grew so much, and the host wrote so much."""
    figures = dataclasses.replace(
        Collector().whole(),
        start_ns=start_ns,
        end_ns=start_ns + span_ns,
        bytes={kind: host_bytes if kind == Kind.WRITE else 7 * GB for kind in Kind},
    )
    return Phase(
        figures=figures,
        utilisation=None,
        disk_time_ns={},
        disk_queue_ns=None,
        ssd_utilisation=None,
        ssd_time_ns=None,
        overloaded=0.0,
        counters=counters,
    )


def test_wear_of_a_day():
    """A drive of 400 GB rated for 730.5 TB: 200 GB a day are half a drive write, for ten years."""
    day = phase({"fast_bytes_written": 200 * GB, "fast_bytes_read": 600 * GB}, host_bytes=50 * GB)
    assert wear(day, 730_500 * GB, 400 * GB) == Wear(
        bytes_written=200 * GB,
        bytes_per_day=200.0 * GB,
        per_host_write=4.0,
        read_per_written=3.0,
        endurance_bytes=730_500 * GB,
        years=10.0,
        drive_writes_per_day=0.5,
        in_flash=None,
        cycles_per_year=None,
    )


@pytest.mark.parametrize(("span_ns", "per_day"), [(DAY // 24, 24), (DAY // 2, 2), (2 * DAY, 0.5)])
def test_the_rate_is_that_of_the_phase_whenever_it_began(span_ns, per_day):
    for start_ns in (0, DAY):
        result = wear(phase({"fast_bytes_written": 10 * GB}, span_ns, start_ns), TB, 5 * GB)
        assert result.bytes_written == 10 * GB
        assert result.bytes_per_day == pytest.approx(per_day * 10 * GB)
        assert result.drive_writes_per_day == pytest.approx(per_day * 2)
        assert result.years == pytest.approx(TB / (per_day * 10 * GB) / 365.25)


@pytest.mark.parametrize("factor", [2, 3, 10])
def test_more_writes_wear_a_drive_out_sooner_and_more_endurance_later(factor):
    one = wear(phase({"fast_bytes_written": GB}), TB, GB)
    busier = wear(phase({"fast_bytes_written": factor * GB}), TB, GB)
    sturdier = wear(phase({"fast_bytes_written": GB}), factor * TB, GB)
    larger = wear(phase({"fast_bytes_written": GB}), TB, factor * GB)
    assert busier.years == pytest.approx(one.years / factor)
    assert busier.drive_writes_per_day == pytest.approx(one.drive_writes_per_day * factor)
    assert sturdier.years == pytest.approx(one.years * factor)
    assert larger.drive_writes_per_day == pytest.approx(one.drive_writes_per_day / factor)
    assert larger.years == one.years


def test_what_the_flash_moved_costs_cycles_and_not_years():
    """100 GB a day, of which 80 GB were placed and 40 GB moved: 1.5 bytes for each.

    Of a drive of 300 GB that is half a cycle a day.  The rating counts what the drive is given.
    """
    counters = {
        "fast_bytes_written": 100 * GB,
        "fast_bytes_placed": 80 * GB,
        "fast_bytes_moved": 40 * GB,
    }
    result = wear(phase(counters), 36_525 * GB, 300 * GB)
    assert result.in_flash == 1.5
    assert result.cycles_per_year == pytest.approx(182.625)
    assert result.years == pytest.approx(1.0)
    unknown = wear(phase(counters), 36_525 * GB, None)
    assert (unknown.in_flash, unknown.cycles_per_year) == (1.5, None)
    still = wear(phase({"fast_bytes_written": GB, "fast_bytes_placed": GB}), None, 2 * GB)
    assert (still.in_flash, still.cycles_per_year) == (1.0, pytest.approx(182.625))


def test_what_is_unknown_is_none():
    """No rating, no capacity, no host writes, no SSD reads counted, no flash simulated."""
    result = wear(phase({"fast_bytes_written": GB}), None)
    assert result == Wear(GB, GB, None, None, None, None, None, None, None)
    placed_nothing = {"fast_bytes_written": 0, "fast_bytes_placed": 0, "fast_bytes_moved": GB}
    assert wear(phase(placed_nothing), TB, TB).in_flash is None


def test_an_ssd_that_is_not_written_never_wears_out():
    result = wear(phase({"fast_bytes_written": 0, "fast_bytes_read": GB}, host_bytes=GB), TB, TB)
    assert result == Wear(0, 0.0, 0.0, None, TB, None, 0.0, None, None)


def test_without_a_count_of_ssd_writes_or_time_there_is_no_wear():
    assert wear(phase({"fast_bytes_read": GB}), TB, TB) is None
    assert wear(phase({"fast_bytes_written": GB}, span_ns=0), TB, TB) is None
