"""`bench`: the five measured loads, and the rule for a steady value."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from hybridsim import Scenario
from hybridsim.cli.bench import depths_of
from hybridsim.foundation.errors import ScenarioError, UsageError
from hybridsim.show.bench import text
from hybridsim.studies import bench as measuring
from hybridsim.studies.bench import (
    PARAMETERS,
    Bench,
    Point,
    Setting,
    bench,
    job,
    warm_up,
    written,
)
from hybridsim.workloads.fio.job import jobs_of
from hybridsim.workloads.fio.results import JobResult, Measured

SECOND, MS = 10**9, 10**6
SITE = Scenario.default()
SETTING = Setting(1 << 30, 4096, 1 << 20, [1, 8], 1000, 100_000)
BY_NAME = {each.name: each for each in PARAMETERS}


def jobs(name, turns=(0, 1)):
    parameter = BY_NAME[name]
    return jobs_of(written([job(SITE, SETTING, parameter, 8, turn, turn + 1) for turn in turns]))


def test_measurements_run_in_sequence_on_one_volume():
    first, second = jobs("hot random read")
    assert (first.group, second.group) == (0, 1)
    assert first.files == second.files
    assert first.depth == 8


@pytest.mark.parametrize("name", BY_NAME)
def test_a_measurement_ends_at_its_request_count_or_its_time_limit(name):
    """A time_based job of fio would go on, whatever number of requests is specified."""
    is_sequential = BY_NAME[name].is_sequential
    size, number = (1 << 20, 100) if is_sequential else (4096, 1000)
    for each in jobs(name):
        assert (each.pattern.pass_bytes, each.pattern.passes) == (number * size, 1)
        assert not each.pattern.is_endless
        assert each.run_ns == 120 * SECOND


def test_a_cache_is_warmed_with_the_specified_number_of_reads():
    (each,) = jobs_of(written([warm_up(SETTING)]))
    assert each.pattern.pass_bytes == SETTING.warm_up * SETTING.block_bytes
    assert not each.pattern.is_endless


def test_hot_reads_stay_in_the_hot_spot_and_cold_ones_out_of_it():
    (hot, _), (cold, _) = jobs("hot random read"), jobs("cold random read")
    assert hot.pattern.offset_bytes + hot.pattern.file_bytes == SETTING.hot_bytes
    assert cold.pattern.offset_bytes == SETTING.hot_bytes
    end = cold.pattern.offset_bytes + cold.pattern.file_bytes
    assert SITE.backing.held_bytes - end < 4096


def test_a_sequential_load_continues_at_the_offset_of_the_previous_one():
    """Otherwise the drives' own caches would serve it."""
    first, second = jobs("sequential read")
    moved = SETTING.requests // 10 * SETTING.sequential_bytes
    assert second.pattern.offset_bytes == first.pattern.offset_bytes + moved


def measured(iops, seconds=10, spread=0.0):
    """Return a fake measurement: reads at a rate, with scattered latencies."""
    count = iops * seconds
    latency_ns = np.full(count, 10 * MS, np.int64)
    latency_ns[::2] += int(10 * MS * spread)
    latency_ns[1::2] -= int(10 * MS * spread)
    reads = Measured()
    reads.add(latency_ns, np.arange(count) * (SECOND // iops), np.full(count, 4096, np.int64))
    directions = [reads, Measured(), Measured(), Measured()]
    return JobResult([], directions, np.zeros(1), np.zeros(1), 0, seconds * SECOND)


@pytest.mark.parametrize(
    ("rates", "spread", "steady"),
    [
        ((1000, 1000), 0.0, True),
        ((1000, 1049), 0.0, True),
        ((1000, 1100), 0.0, False),  # still warming up
        ((1000, 800), 0.0, False),
        ((10, 11), 0.9, True),  # too few requests with such scatter for a decision
    ],
)
def test_a_value_is_steady_if_two_measurements_agree(rates, spread, steady):
    pair = [measured(rate, spread=spread) for rate in rates]
    point = Point.of("warm", BY_NAME["hot random read"], 8, pair)
    assert point.iops == rates[1]
    assert point.steady is steady


def bench_of(drift=0.0, states=("without", "cold", "warm"), depths=(1, 2, 4, 8, 16, 32, 64, 128)):
    points = [
        Point(state, name, depth, 123_456.0, 1.234e9, 1e6, 456_789_000, drift, abs(drift) < 0.05)
        for state in states
        for name in BY_NAME
        for depth in depths
    ]
    setting = Setting(1 << 30, 4096, 1 << 20, list(depths), 1000, 1)
    return Bench("machine " * 12, {}, setting, points, ["a note " * 20])


@pytest.mark.parametrize("drift", [0.0, -0.5])
def test_the_report_fits_one_screen_and_marks_values_that_are_not_steady(drift):
    report = text(bench_of(drift))
    assert max(map(len, report.splitlines())) <= 80
    assert "random: IOPS" in report
    assert len(report.splitlines()) <= 40
    assert ("*" in report) is bool(drift)
    assert ("-50%" in report) is bool(drift)
    assert text(bench_of(drift), ascii_only=True).isascii()


def test_queue_depths_double_by_default_or_are_those_specified():
    assert depths_of("1-512") == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
    assert depths_of("3-20") == [3, 6, 12]
    assert depths_of("1,32") == [1, 32]
    for wrong in ("", "0", "8-2", "a", "1-", "1,,2", "99999"):
        with pytest.raises(UsageError, match="--depths"):
            depths_of(wrong)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"hot_bytes": 1024}, UsageError, "too small"),
        ({"hot_bytes": 1 << 50}, ScenarioError, "do not fit on the array"),
        ({"block_bytes": 0}, UsageError, "at least 512 bytes"),
        ({"depths": []}, UsageError, "depths must be at least 1"),
    ],
)
def test_unmeasurable_loads_are_refused(options, error, words):
    with pytest.raises(error, match=words):
        bench(SITE, **options)


def test_all_machines_serve_the_same_requests_at_a_depth(monkeypatch):
    """The random offsets and the place of a job do not depend on the jobs before it."""
    asked = []

    def fake(jobs, scenario, progress=None, cached=True):
        asked.append([
            (each.pattern.seeds(), each.depth, each.pattern.offset_bytes, each.pattern.pass_bytes)
            for each in jobs_of(jobs)
        ])  # fmt: skip
        return SimpleNamespace(machine="m", of_jobs=[None] * len(asked[-1]))

    point = Point("", "", 1, 1.0, 1.0, 1.0, 1, 0.0, True)
    monkeypatch.setattr(measuring, "fio", fake)
    monkeypatch.setattr(Point, "of", lambda *_: point)
    bench(SITE.with_options(cache="page"), [1, 8], hot_bytes=1 << 30, requests=100)
    without, *empty, warm = asked
    assert len(without) == 20
    assert without == [each for jobs in empty for each in jobs] == warm[1:]
    assert len({tuple(seeds) for seeds, *_ in warm}) == 21  # a warm-up and 20 measurements


def test_a_gain_is_of_the_same_requests():
    same = bench_of()
    assert same.gain("hot random read", 8) == 1.0
    points = [
        replace(each, iops=2 * each.iops, requests=7 if each.depth == 8 else 0)
        if each.state == "warm" else each
        for each in same.points
    ]  # fmt: skip
    results = replace(same, points=points)
    assert results.gain("hot random read", 4) == 2.0
    assert results.gain("hot random read", 8) is None  # cut short
    assert results.gain("hot random read", 999) is None
    assert {"parameter": "random write", "depth": 4, "gain": 2.0} in results.to_dict()["gains"]
    (line,) = [one for one in text(results).splitlines() if one.startswith("hot, gain")]
    assert line.split()[2:] == ["2.00", "2.00", "2.00", "\N{EN DASH}", *["2.00"] * 4]
