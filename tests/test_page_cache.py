"""Writes and fills of the page cache, by mode (DESIGN.md 2.3).

Most tests use the reference, which equals the engine on random machines (test_engine.py).
"""

import os
from dataclasses import replace
from typing import Any

import pytest
from agreement import both
from contents import checked
from engine import simulate as in_engine
from hypothesis import HealthCheck, given, settings
from scenarios import Scenario, scenarios
from test_reference import (
    MS,
    OPEN,
    PAGE,
    SECTOR,
    TestCache,
    by_number,
    done,
    read,
    write,
)

from hybridsim.caches import PageCache
from hybridsim.caches.policies import LRU, Touches
from hybridsim.foundation.codes import FUA, PREFLUSH, Fill, FillWhen, Mode, Op, Path, Reason
from hybridsim.foundation.errors import ScenarioError
from hybridsim.reference import CacheParameters, Outcome, Request, simulate
from hybridsim.scenario import Scenario as Site
from hybridsim.scenario import building

PLACE = building.Place(pages=8, origin_bytes=1 << 30, seed=1)

SLOW, FAST = TestCache.SLOW, TestCache.FAST  # 1 ms and 0.1 ms per request
BACK = CacheParameters(
    PAGE, 8, Mode.WRITE_BACK, 0, 8, ("touches", 1), granule_bytes=SECTOR,
    dirty_high=8, dirty_low=7, clean_above=8, clean_idle_ns=1000 * MS, max_cleans=4,
)  # fmt: skip
READ_ONLY = replace(BACK, mode=Mode.READ_ONLY, granule_bytes=0)
SUB_PAGE = replace(READ_ONLY, granule_bytes=SECTOR, sub_page=True)


def run(*requests: Request, cache: CacheParameters = BACK, **more: Any) -> Outcome:
    return both(requests, OPEN, replace(cache, **more), SLOW, FAST)


def paths(outcome: Outcome) -> list[tuple[Path, Reason]]:
    return [(fact.path, fact.reason) for fact in by_number(outcome)]


def counted(outcome: Outcome, *names: str) -> list[int]:
    return [outcome.counters.get(name, 0) for name in names]


def flush(at: float) -> Request:
    return Request(round(at * MS), Op.FLUSH, 0, 0)


def discard(at: float, offset: int, length: int) -> Request:
    return Request(round(at * MS), Op.DISCARD, offset, length)


class TestWriteBack:
    def test_a_write_has_the_latency_of_the_ssd(self) -> None:
        outcome = run(write(0, 0), read(1, 0), write(2, 0))
        assert done(outcome) == [0.1, 1.1, 2.1]
        assert paths(outcome)[1] == (Path.HIT, Reason.NONE)
        assert counted(outcome, "slow_write_bytes", "fast_write_bytes") == [0, 2 * SECTOR]

    def test_unwritten_sectors_of_a_page_are_read_from_the_disks(self) -> None:
        outcome = run(write(0, SECTOR), read(1, 0, PAGE))
        assert paths(outcome)[1] == (Path.MISS, Reason.COLD)
        assert counted(outcome, "fast_read_bytes") == [SECTOR]
        # Sectors 0 and 2 to 7; then the page from its first to its last gap, for the fill.
        assert counted(outcome, "slow_read_bytes") == [7 * SECTOR]
        assert counted(outcome, "fast_write_bytes") == [8 * SECTOR]

    def test_partial_granules_are_written_to_the_disks(self) -> None:
        outcome = run(write(0, SECTOR // 2, 2 * SECTOR))
        assert counted(outcome, "fast_write_bytes", "slow_write_bytes") == [SECTOR, SECTOR]

    def test_dirty_pages_are_cleaned_when_idle(self) -> None:
        outcome = run(write(0, 0), read(20, 50 * PAGE), clean_idle_ns=5 * MS)
        assert counted(outcome, "write_backs", "slow_write_bytes") == [1, SECTOR]

    def test_dirty_pages_above_clean_above_are_cleaned_under_load(self) -> None:
        writes = [write(10 * at, 2 * PAGE * at) for at in range(4)]
        assert counted(run(*writes, clean_above=2), "write_backs") == [2]

    def test_adjacent_pages_are_cleaned_by_one_write(self) -> None:
        writes = [write(at / 10, PAGE * page, PAGE) for at, page in enumerate([2, 0, 1, 4])]
        more = {"clean_idle_ns": 5 * MS, "max_cleans": 1}
        apart = run(*writes, read(30, 40 * PAGE), **more)
        joined = run(*writes, read(30, 40 * PAGE), clean_merge_pages=8, **more)
        assert counted(apart, "write_backs", "cleaned_bytes") == [4, 4 * PAGE]
        assert counted(joined, "write_backs", "cleaned_bytes") == [2, 4 * PAGE]

    @pytest.mark.parametrize(("window", "order"), [(1, [5, 1, 3]), (3, [1, 3, 5])])
    def test_clean_window_selects_the_oldest_page_or_the_next_by_address(
        self, window: int, order: list[int]
    ) -> None:
        writes = [write(at / 10, PAGE * page) for at, page in enumerate([5, 1, 3])]
        limits = {"max_cleans": 1, "clean_idle_ns": 5 * MS, "clean_window": window}
        scenario = Scenario(
            [*writes, read(50, 60 * PAGE)], OPEN, replace(BACK, **limits), SLOW, FAST
        )
        machine = checked(scenario)
        assert machine.cache.cleaner.order == order

    def test_above_dirty_high_writes_go_through(self) -> None:
        writes = [write(at, PAGE * at) for at in range(3)]
        outcome = run(*writes, dirty_high=2, dirty_low=1)
        assert done(outcome) == [0.1, 1.1, 3]
        assert counted(outcome, "writes_limited") == [1]
        # Dirty pages may be written again; clean pages are kept up to date.
        more = [write(5, 0), read(10, 4 * PAGE), write(20, 4 * PAGE), read(30, 4 * PAGE)]
        again = run(*writes[:2], *more, dirty_high=2, dirty_low=1)
        assert done(again)[2] == 5.1
        assert done(again)[4:] == [21, 30.1]

    def test_clean_rate_spaces_out_cleans(self) -> None:
        writes = [write(at / 10, 2 * PAGE * at) for at in range(4)]
        quick = run(*writes, read(14, 40 * PAGE), clean_idle_ns=5 * MS)
        slow = run(*writes, read(14, 40 * PAGE), clean_idle_ns=5 * MS, clean_rate=100 * SECTOR)
        assert counted(quick, "write_backs") == [4]
        assert counted(slow, "write_backs") == [1]

    def test_clean_pages_are_evicted_before_dirty_ones(self) -> None:
        # Page 0 is dirty and the oldest, page 1 clean: page 2 takes the place of page 1.
        requests = [write(0, 0), read(1, PAGE), read(5, 2 * PAGE), read(10, 0), read(11, PAGE)]
        outcome = run(*requests, pages=2)
        assert paths(outcome)[3:] == [(Path.HIT, Reason.NONE), (Path.MISS, Reason.EVICTED)]

    def test_with_only_dirty_pages_a_write_goes_to_the_disks_and_one_page_is_cleaned(self) -> None:
        requests = [write(0, 0), write(1, PAGE), write(2, 2 * PAGE), write(10, 2 * PAGE)]
        outcome = run(*requests, pages=2)
        assert done(outcome) == [0.1, 1.1, 3, 10.1]
        assert counted(outcome, "stalls", "evictions") == [1, 1]

    def test_a_read_after_a_write_that_found_no_room_reports_that_the_cache_was_busy(self) -> None:
        requests = [write(0, 0), write(1, PAGE), write(2, 2 * PAGE), read(2.5, 2 * PAGE)]
        scenario = Scenario(requests, OPEN, replace(BACK, pages=2), SLOW, FAST)
        facts, _ = in_engine(scenario, interpreted=True)
        assert facts == scenario.run().facts
        last = max(facts, key=lambda fact: fact.number)
        assert (last.path, last.reason) == (Path.MISS, Reason.BUSY)

    def test_a_flush_goes_to_both_tiers(self) -> None:
        slow_flush = replace(SLOW, device=SLOW.device._replace(flush_ns=2 * MS, is_protected=1))
        fast_flush = replace(FAST, device=FAST.device._replace(flush_ns=5 * MS, is_protected=1))
        requests = [write(0, 0), flush(1), flush(20), write(30, 0), flush(31)]
        outcome = simulate(requests, OPEN, BACK, slow_flush, fast_flush)
        assert done(outcome)[1] == 1.1 + 5
        through = simulate(requests, OPEN, replace(BACK, mode=Mode.WRITE_THROUGH), slow_flush, FAST)
        assert done(through)[1] == 2 + 2

    def test_a_preflush_precedes_its_write(self) -> None:
        barrier = replace(write(1, PAGE), flags=PREFLUSH | FUA)
        fast_flush = replace(FAST, device=FAST.device._replace(flush_ns=5 * MS, is_protected=1))
        outcome = simulate([write(0, 0), barrier], OPEN, BACK, SLOW, fast_flush)
        assert done(outcome) == [0.1, 6.2]  # 5.1 for the flush, 0.1 to write

    def test_a_discard_drops_dirty_data(self) -> None:
        outcome = run(
            write(0, 0, PAGE), discard(1, 0, PAGE), read(20, 0), clean_idle_ns=5 * MS, discards=True
        )
        assert counted(outcome, "write_backs") == [0]
        assert paths(outcome)[2] == (Path.MISS, Reason.OVERWRITTEN)

    def test_a_discard_of_half_a_granule_keeps_the_other_half(self) -> None:
        outcome = run(write(0, 0), discard(1, 0, SECTOR // 2), read(5, SECTOR // 2, SECTOR // 2))
        assert paths(outcome)[2] == (Path.HIT, Reason.NONE)

    def test_a_clean_in_flight_does_not_restore_discarded_data(self) -> None:
        # The clean reads it until 0.1; it is discarded at 0.03 and written past the cache at 0.05.
        requests = [write(0, 0), discard(0.03, 0, PAGE), write(0.05, 0, 4 * SECTOR)]
        cache = replace(BACK, clean_idle_ns=0, sequential_cutoff_bytes=2 * SECTOR)
        machine = checked(Scenario(requests, OPEN, cache, SLOW, FAST))
        assert (machine.cache.cleaner.order, machine.cache.counters["write_backs"]) == ([0], 0)


class TestFills:
    def test_piggyback_fills_read_the_disks_once(self) -> None:
        again = run(read(0, 0), read(5, 0), cache=READ_ONLY)
        once = run(read(0, 0), read(5, 0), cache=READ_ONLY, fill=Fill.PIGGYBACK)
        assert counted(again, "slow_read_bytes") == [SECTOR + PAGE]
        assert counted(once, "slow_read_bytes") == [PAGE]
        assert paths(once)[1] == (Path.HIT, Reason.NONE)

    @pytest.mark.parametrize(("fill", "answered"), [(Fill.RE_READ, 2.1), (Fill.PIGGYBACK, 1.1)])
    def test_a_foreground_fill_delays_the_completion(self, fill: Fill, answered: float) -> None:
        outcome = run(read(0, 0), cache=READ_ONLY, fill=fill, fill_when=FillWhen.FOREGROUND)
        assert done(outcome) == [answered]

    def test_fills_above_the_rate_are_declined(self) -> None:
        # A page takes over 100 ms of tokens; the bucket is empty for the second, not the third.
        reads = [read(at, PAGE * at) for at in (0, 10, 50)]
        outcome = run(*reads, read(60, 10 * PAGE), cache=READ_ONLY, fill_rate=30_000)
        assert counted(outcome, "fills_started", "fills_over_rate") == [2, 2]
        assert paths(outcome)[1] == (Path.MISS, Reason.COLD)

    def test_sub_page_fills_read_only_the_missing_granules(self) -> None:
        requests = [read(0, SECTOR), read(5, SECTOR), read(6, 0, 2 * SECTOR), read(10, 0)]
        outcome = run(*requests, cache=SUB_PAGE)
        assert counted(outcome, "fast_write_bytes") == [2 * SECTOR]
        assert [path for path, _ in paths(outcome)] == [Path.MISS, Path.HIT, Path.MISS, Path.HIT]

    def test_a_write_past_the_cache_drops_only_its_granules(self) -> None:
        requests = [read(0, 0, PAGE), write(5, 0), read(10, SECTOR), read(11, 0)]
        assert paths(run(*requests, cache=SUB_PAGE))[2:] == [
            (Path.HIT, Reason.NONE),
            (Path.MISS, Reason.COLD),
        ]
        assert paths(run(*requests, cache=READ_ONLY))[2] == (Path.MISS, Reason.OVERWRITTEN)

    def test_dropped_pages_are_discarded_on_the_ssd_if_enabled(self) -> None:
        slow_discards = replace(FAST, device=FAST.device._replace(command_ns=MS))
        for discards, last in ((False, 1), (True, 2)):
            cache = replace(READ_ONLY, discards=discards)
            requests = [read(0, 0), write(10, 0)]
            machine = checked(Scenario(requests, OPEN, cache, SLOW, slow_discards))
            assert len(machine.cache.fast.submitted) == last


@settings(
    max_examples=int(os.environ.get("HYBRIDSIM_EXAMPLES", "60")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(scenarios("ssd", "ssd"))
def test_every_read_returns_the_last_written_data(scenario: Scenario) -> None:
    """With any fills and cleans in flight, in all modes; and no data are lost at the end."""
    if scenario.cache.pages > 0:
        checked(scenario)


def test_a_page_has_at_most_64_granules() -> None:
    admission, replacement = Touches.new(8, 4, 1), LRU.new(8)
    small = CacheParameters(1 << 18, 4, Mode.WRITE_BACK, 0, 1, ("touches", 1), granule_bytes=4096)
    assert PageCache.new(small, admission, replacement, 8).table.granules == 64
    with pytest.raises(ValueError, match="at most 64 granules"):
        PageCache.new(replace(small, page_bytes=1 << 19), admission, replacement, 8)


# Scenarios.


def test_write_around_is_another_name_for_read_only() -> None:
    caches = [
        building.cache(Site.loads(f'[cache]\nmode = "{mode}"').cache, PLACE)
        for mode in ("read-only", "write-around")
    ]
    assert caches[0].mode == caches[1].mode == Mode.READ_ONLY


def test_defaults_of_write_back_are_set() -> None:
    site = Site.loads('[cache]\nmode = "write-back"')
    cache = building.cache(site.cache, PLACE._replace(pages=1000))
    dirty = cache.dirty
    assert (dirty.dirty_high, dirty.dirty_low, dirty.clean_above) == (500, 450, 100)
    assert (dirty.clean_merge_pages, dirty.clean_window, dirty.max_cleans) == (8, 128, 8)
    assert (cache.table.granule_bytes, cache.table.granules) == (1024, 64)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('dirty_low = "60%"', "dirty_low must be below dirty_high"),
        ('clean_above = "46%"', "cleaning would never reach it"),
        ('dirty_high = "150%"', "is not a share"),
    ],
)
def test_contradictory_settings_are_refused(text: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        Site.loads(f'[cache]\nmode = "write-back"\n{text}')
