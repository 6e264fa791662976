"""Warm starts: kept pages, preloaded pages, saved caches, and learned state."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest
from agreement import both
from captures import TRACES
from click.testing import CliRunner
from contents import checked
from engine import cache_of, simulate
from hypothesis import HealthCheck, given, settings
from scenarios import Scenario, scenarios
from test_engine import check
from test_page_cache import READ_ONLY, counted, paths
from test_reference import MS, OPEN, PAGE, SECTOR, TestCache, read, write

from hybridsim import Scenario as Site
from hybridsim import Trace, replay
from hybridsim.caches.page import cache as page_cache
from hybridsim.caches.page.fills import WarmStart
from hybridsim.caches.policies import LRU, REPLACEMENT, Learned, pair
from hybridsim.caches.policies.larc import LARC
from hybridsim.caches.policies.learned.habits import CLASS_MAX
from hybridsim.caches.policies.learned.policy import CLOCK, HELD
from hybridsim.caches.policies.memory import Memory, learner, recall, remembered, stamps_of
from hybridsim.caches.policies.write_budget import parse_write_budget
from hybridsim.caches.warm_start.ranking import Ranking, ranked
from hybridsim.caches.warm_start.saved_cache import SavedCache
from hybridsim.cli import cli
from hybridsim.foundation.codes import Mode, Path, Reason
from hybridsim.foundation.errors import UsageError
from hybridsim.scenario import building
from hybridsim.show.terminal import render
from hybridsim.studies.warm_start import begin, opened
from hybridsim.traces.example import CAPTURE, SITE, demo_file

SLOW, FAST = TestCache.SLOW, TestCache.FAST  # 1 ms and 0.1 ms per request
HIT, COLD = (Path.HIT, Reason.NONE), (Path.MISS, Reason.COLD)
LOAD = replace(
    READ_ONLY, preload_idle_ns=MS, preload_chunk_bytes=8 * PAGE, preload_gap_bytes=0,
    preload_reads=1, preload_rate=0,
)  # fmt: skip
LOADED = ("preload_reads", "pages_preloaded", "slow_read_bytes")
SMALL = TRACES / "blktrace" / "loop_ext4_buffered_meta"

relaxed = settings(
    max_examples=int(os.environ.get("HYBRIDSIM_EXAMPLES", "60")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def run(*requests, cache=LOAD, **more):
    return both(requests, OPEN, replace(cache, **more), SLOW, FAST)


class TestKept:
    def test_kept_pages_hit_at_once(self):
        outcome = run(read(0, 3 * PAGE), read(5, 4 * PAGE), kept=[(3, 1)])
        assert paths(outcome) == [HIT, COLD]
        assert counted(outcome, "pages_kept", "warm_pages_used") == [1, 1]

    def test_the_last_kept_page_is_the_most_recently_used(self):
        requests = [read(0, 9 * PAGE), read(10, 2 * PAGE), read(20, PAGE)]
        outcome = run(*requests, kept=[(1, 1), (2, 1)], pages=2)
        assert paths(outcome)[1:] == [HIT, (Path.MISS, Reason.EVICTED)]

    def test_granules_that_were_not_kept_are_misses(self):
        cache = replace(LOAD, granule_bytes=SECTOR, sub_page=True)
        outcome = run(read(0, 0), read(5, SECTOR), kept=[(0, 0b01)], cache=cache)
        assert paths(outcome) == [HIT, COLD]

    def test_kept_pages_unknown_to_the_admission_policy_can_be_evicted(self):
        outcome = run(read(0, 9 * PAGE), kept=[(1, 1)], pages=1, admission=("learned", 0))
        assert counted(outcome, "evictions", "warm_pages_used") == [1, 0]

    @pytest.mark.parametrize("admission", [("always",), ("learned", 0)])
    @pytest.mark.parametrize("replacement", ["lru", "learned", "slru"])
    def test_compiled_code_keeps_them_as_python_does(self, monkeypatch, admission, replacement):
        kept = [(int(page), 1) for page in np.random.default_rng(2).permutation(300)[:200]]
        cache = replace(LOAD, kept=kept, pages=256, admission=admission, replacement=replacement)
        scenario = Scenario(cache=cache, slow=SLOW, fast=FAST, source=OPEN, requests=[])
        interpreted = leaves(cache_of(scenario))
        monkeypatch.setattr(page_cache, "KEPT_COMPILED", 0)
        for one, other in zip(interpreted, leaves(cache_of(scenario)), strict=True):
            np.testing.assert_array_equal(one, other)


def leaves(machine):
    if not isinstance(machine, tuple):
        return [machine]
    return [leaf for part in machine for leaf in leaves(part)]


class TestPreload:
    def test_pages_are_preloaded_when_the_disks_are_idle(self):
        outcome = run(read(10, 2 * PAGE), preload=[2, 3])
        assert paths(outcome) == [HIT]
        assert counted(outcome, *LOADED) == [1, 2, 2 * PAGE]
        assert counted(outcome, "fast_write_bytes", "warm_pages_used") == [2 * PAGE, 1]

    @pytest.mark.parametrize(
        ("limits", "reads", "pages_read"),
        [
            ({}, 3, 4),
            ({"preload_gap_bytes": PAGE}, 2, 5),
            ({"preload_gap_bytes": 9 * PAGE}, 2, 5),
            ({"preload_gap_bytes": 9 * PAGE, "preload_chunk_bytes": 16 * PAGE}, 1, 13),
            ({"preload_gap_bytes": 9 * PAGE, "preload_chunk_bytes": PAGE}, 4, 4),
        ],
    )
    def test_close_pages_are_preloaded_in_one_read(self, limits, reads, pages_read):
        outcome = run(read(50, PAGE), preload=[1, 2, 4, 13], **limits)
        assert counted(outcome, *LOADED) == [reads, 4, pages_read * PAGE]

    def test_preloading_follows_the_order_of_the_list(self):
        outcome = run(read(50, 0), preload=[3, 4, 2])
        assert counted(outcome, *LOADED)[:2] == [2, 3]

    def test_preloading_waits_while_requests_arrive(self):
        load = [read(0.9 * at, PAGE * (20 + at)) for at in range(20)]
        outcome = run(*load, read(17.5, 2 * PAGE), read(60, 2 * PAGE), preload=[2], max_fills=0)
        assert paths(outcome)[-2:] == [COLD, HIT]

    def test_preload_rate_allows_preloading_under_load(self):
        load = [read(0.9 * at, PAGE * (20 + at)) for at in range(20)]
        rest = {"preload": [2], "max_fills": 0, "preload_rate": 10**6}
        assert paths(run(*load, read(30, 2 * PAGE), **rest))[-1] == HIT

    def test_preload_rate_spaces_out_reads(self):
        load = [read(0.9 * at, PAGE * (20 + at)) for at in range(40)]
        limits = {"preload": [2, 4, 6, 8], "max_fills": 0, "preload_reads": 1}
        slow = run(*load, preload_rate=PAGE * 50, **limits)  # one in 20 ms
        fast = run(*load, preload_rate=PAGE * 500, **limits)
        assert counted(slow, "preload_reads") < counted(fast, "preload_reads")

    def test_preload_reads_sets_the_number_of_concurrent_reads(self):
        two = replace(SLOW, device=SLOW.device._replace(dies=4))
        for reads, until in ((1, 4), (4, 1)):
            cache = replace(LOAD, preload=[0, 5, 10, 15], preload_reads=reads)
            request = read(1 + until + 0.5, 15 * PAGE)
            outcome = both([request], OPEN, cache, two, FAST)
            assert counted(outcome, "pages_preloaded", "warm_pages_used") == [4, 1]

    def test_preloading_evicts_no_pages(self):
        outcome = run(read(50, 0), preload=[5, 6, 7], pages=2)
        assert counted(outcome, "pages_preloaded", "evictions") == [2, 1]
        full = run(read(0, 0), read(50, 0), preload=[5, 6, 7], pages=1)
        assert counted(full, "pages_preloaded") == [0]

    def test_present_pages_are_not_preloaded(self):
        outcome = run(read(50, 2 * PAGE), preload=[2, 3], kept=[(2, 1)])
        assert counted(outcome, *LOADED) == [1, 1, PAGE]

    def test_a_read_does_not_wait_for_a_preload_in_flight(self):
        outcome = run(read(1.5, 2 * PAGE), preload=[2])
        assert paths(outcome) == [(Path.MISS, Reason.FILLING)]

    @pytest.mark.parametrize("mode", Mode)
    def test_a_preload_does_not_overwrite_newer_data(self, mode):
        cache = replace(
            LOAD, mode=mode, preload=[2, 3], granule_bytes=SECTOR, clean_idle_ns=50 * MS
        )
        requests = [write(1.5, 2 * PAGE), read(10, 2 * PAGE, PAGE), read(20, 3 * PAGE)]
        machine = checked(Scenario(requests, OPEN, cache, SLOW, FAST))
        assert machine.cache.counters["pages_preloaded"] == 2

    def test_a_whole_page_write_dooms_its_preload(self):
        outcome = run(write(1.5, 2 * PAGE, PAGE), preload=[2, 3])
        assert counted(outcome, "pages_preloaded", "preloads_doomed") == [1, 1]


@relaxed
@given(scenarios(warm=True))
def test_warm_engine_equals_reference(scenario):
    check(scenario, interpreted=True)


@relaxed
@given(scenarios("ssd", "ssd", warm=True))
def test_every_read_returns_the_last_written_data(scenario):
    if scenario.cache.pages > 0:
        checked(scenario)


class TestSavedCache:
    @pytest.mark.parametrize("replacement", REPLACEMENT)
    def test_a_saved_cache_has_the_pages_of_the_cache(self, replacement):
        reads = [read(10 * at, page * PAGE) for at, page in enumerate([1, 2, 3, 1, 4, 5, 6, 1, 7])]
        cache = replace(READ_ONLY, pages=4, replacement=replacement)
        machine = simulate(Scenario(reads, OPEN, cache, SLOW, FAST), interpreted=True)[1]
        present = machine.cache.counts[6]
        saved = SavedCache.of(machine.cache, SLOW.capacity_bytes)
        assert len(saved.pages) == len(set(saved.pages)) == present > 0
        again = replace(cache, kept=[(int(page), 1) for page in saved.pages[::-1]])
        hits = [read(0, page * PAGE) for page in saved.pages]
        assert set(paths(run(*hits, cache=again))) == {HIT}

    def test_the_best_page_of_a_saved_cache_comes_first(self):
        reads = [read(10 * at, page * PAGE) for at, page in enumerate([1, 2, 3, 1])]
        scenario = Scenario(reads, OPEN, READ_ONLY, SLOW, FAST)
        saved = SavedCache.of(simulate(scenario, interpreted=True)[1].cache, SLOW.capacity_bytes)
        assert saved.pages.tolist() == [1, 3, 2]

    def test_a_saved_cache_reads_back_equal(self, tmp_path):
        path = str(tmp_path / "state.npz")
        pages, valid = np.array([7, 0, 3]), np.array([-1, 1, 5])
        SavedCache("", PAGE, SECTOR, 8 * PAGE, pages, valid).write(path)
        loaded = opened(path)
        assert (loaded.page_bytes, loaded.granule_bytes, loaded.volume_bytes) == (
            PAGE,
            SECTOR,
            8 * PAGE,
        )
        assert loaded.pages.tolist() == [7, 0, 3]
        assert loaded.valid.tolist() == [-1, 1, 5]

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ({"format": np.array("hybridsim.cache/9")}, "its format is"),
            ({"pages": np.array([1, 1])}, "twice"),
            ({"pages": np.array([1, 99])}, "outside"),
            ({"pages": np.array([1.0, 2.0])}, "columns"),
            ({"valid": np.array([1])}, "columns"),
            ({"valid": np.array([1, 0])}, "no valid data"),
            ({"page_bytes": np.array(0)}, "0 bytes"),
            ({"volume_bytes": np.array([1, 2])}, "not a cache saved"),
        ],
    )
    def test_an_invalid_saved_cache_is_refused_with_the_reason(self, tmp_path, wrong, message):
        path = tmp_path / "state.npz"
        SavedCache("", PAGE, PAGE, 8 * PAGE, np.array([1, 2]), np.array([1, 1])).write(str(path))
        with np.load(path) as stored:
            changed = dict(stored) | wrong
        np.savez(path, **changed)
        with pytest.raises(UsageError, match=message) as error:
            opened(str(path))
        assert str(path) in str(error.value)

    def test_a_truncated_saved_cache_is_refused(self, tmp_path):
        path = tmp_path / "state.npz"
        SavedCache("", PAGE, PAGE, 8 * PAGE, np.array([1, 2]), np.array([1, 1])).write(str(path))
        path.write_bytes(path.read_bytes()[:200])
        with pytest.raises(UsageError, match="not a cache saved"):
            opened(str(path))


def csv_trace(path, rows):
    head = "arrival_ns,op,offset,length,dispatch_ns,complete_ns\n"
    lines = (f"{i * MS},{op},{at},{size},,\n" for i, (op, at, size) in enumerate(rows))
    path.write_text(head + "".join(lines))
    return Trace.read(path)


class TestRanking:
    def of(self, tmp_path, rows, pages, cutoff=0):
        rows = [(op, page * PAGE, size) for op, page, size in rows]
        return ranked(csv_trace(tmp_path / "past.csv", rows), PAGE, pages, cutoff).tolist()

    def test_the_most_read_pages_rank_first(self, tmp_path):
        rows = [("R", page, SECTOR) for page in [1, 2, 1, 3, 1, 2]]
        assert self.of(tmp_path, rows, 2) == [1, 2]

    @pytest.mark.parametrize("half_life", [None, 1, 256])
    def test_recent_reads_rank_before_older_ones(self, half_life):
        ranking = Ranking(2)
        ranking.add(np.array([5, 6, 6]), np.array([True, True, True]))
        assert ranking.best(half_life).tolist() == [6, 5]

    def test_writes_do_not_count_for_the_ranking(self, tmp_path):
        rows = [("W", 1, SECTOR)] * 5 + [("R", 2, SECTOR), ("R", 3, SECTOR), ("R", 3, SECTOR)]
        assert self.of(tmp_path, rows, 5) == [3, 2]

    def test_sequential_reads_beyond_the_cutoff_do_not_count(self, tmp_path):
        scan = [("R", page, PAGE) for page in range(100, 150)]
        pages = self.of(tmp_path, [("R", 2, SECTOR), *scan], 100, cutoff=8 * PAGE)
        assert set(pages) == {2, *range(100, 107)}

    def test_the_half_life_adapts_to_a_moving_hot_spot(self, tmp_path):
        rng = np.random.default_rng(1)
        for moves in (True, False):
            rows = []
            for part in range(5):
                hot = 100 * part * moves + rng.integers(0, 100, (8000, 1))
                both = np.hstack([hot, 1000 + rng.integers(0, 3000, (8000, 1))]).ravel()
                rows += [("R", page, SECTOR) for page in both.tolist()]
            pages = self.of(tmp_path, rows, 100)
            hot = range(400, 500) if moves else range(100)
            assert len(set(hot) & set(pages)) > 90, moves


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    """Return a cache saved after a replay, and the result of that replay."""
    path = str(tmp_path_factory.mktemp("state") / "state.npz")
    site = Site.default().with_options(admission="always")
    cold = replay(Trace.read(SMALL), site, save_cache=path)
    return path, cold


PAGES = 20


def lived(memory=None, pages=(), scans=2000):
    """Run a learned policy on hot pages and on scans whose pages are read twice, far apart."""
    policy = Learned.new(8192, PAGES)
    if memory:
        recall(policy, memory)
    for page in pages:
        policy.admit(page)
    taken = 0
    rng = np.random.default_rng(3)
    for at in range(scans):
        scanned = 1000 + 2000 * bool(memory) + at
        for page in (*rng.integers(0, PAGES, 2), scanned, scanned - 50):
            policy.request(int(page) * PAGE, PAGE, 0)
            wanted = policy.consider(0, page, 0, policy.state[HELD] == PAGES)
            if policy.pages.position[page] != -1:
                policy.touch(page)
            elif wanted:
                if policy.state[HELD] == PAGES:
                    policy.evicted(policy.evict())
                policy.admit(page)
                taken += page >= 1000
    return policy, taken


@pytest.fixture(scope="module")
def past():
    policy, _ = lived(scans=1500)
    held = policy.held[:PAGES].astype(np.int64)
    return policy, Memory(held, stamps_of(policy, held), remembered(policy))


class TestMemory:
    """The learned state of a policy survives a restart."""

    def test_a_restored_policy_continues_with_its_state(self, past):
        before, memory = past
        after = Learned.new(8192, PAGES)
        recall(after, memory)
        for page, name in enumerate(memory.numbers):
            after.admit(page)
            assert after.promise(after.held_stamp[page]) == before.promise(before.pages.stamp[name])
        assert after.state[CLOCK] == before.state[CLOCK]
        assert np.array_equal(after.reuse.worth.sure, before.reuse.worth.sure)
        assert (after.reuse.sample == -1).all()

    def test_a_restored_policy_still_rejects_scans(self, past):
        """A policy without learned state admits pages on their second read until it is full."""
        pages, memory = range(PAGES), past[1]
        ignorant = memory._replace(learned=remembered(Learned.new(1, PAGES)),
                                   stamps=np.full(PAGES, -1))  # fmt: skip
        assert lived(memory, pages, 100)[1] < lived(ignorant, pages, 100)[1] / 2

    @pytest.mark.parametrize(
        ("admission", "replacement", "has_state"),
        [(Learned, Learned, True), (Learned, LRU, True), (LARC, Learned, True), (LARC, LRU, False)],
    )
    @pytest.mark.parametrize("budget", [None, parse_write_budget("5%", PAGE)])
    def test_the_learned_policy_is_located_in_each_role_and_within_a_budget(
        self, admission, replacement, has_state, budget
    ):
        policies = pair(admission, replacement, 64, PAGES, {"write_budget": budget})
        learned = learner(*policies)
        assert (learned is not None) == has_state
        if learned:
            does = admission is Learned, replacement is Learned
            assert Memory(*[np.zeros(0, np.int64)] * 2, remembered(learned)).is_of(*does)

    def test_pages_have_their_stamps_whether_kept_or_preloaded(self, past):
        memory = past[1]._replace(numbers=past[1].numbers + 7)
        site = Site.default()
        some = memory.numbers[:5].copy()
        for warm in (WarmStart(some, np.ones(5, np.int64), memory=memory),
                     WarmStart(preload=some, memory=memory)):  # fmt: skip
            cache = building.machine(site, "open", 1 << 30, PAGES, warm).cache
            ids = [cache.table.ids.find(number) for number in memory.numbers.tolist()]
            assert cache.admission.pages.stamp[ids].tolist() == memory.stamps.tolist()
            assert cache.table.ids.used[0] == PAGES
            assert [cache.table.has_slot(page) for page in ids[:5]] == [len(warm.kept) > 0] * 5

    def test_learned_state_reads_back_equal(self, past, tmp_path):
        path = str(tmp_path / "state.npz")
        memory = past[1]
        ones = np.ones(PAGES, np.int64)
        SavedCache("", PAGE, SECTOR, 1 << 30, memory.numbers, ones, memory).write(path)
        memory_read = opened(path).memory
        assert memory_read.stamps.tolist() == memory.stamps.tolist()
        assert memory_read.learned.keys() == memory.learned.keys()
        for name, column in memory.learned.items():
            assert memory_read.learned[name].tobytes() == column.tobytes(), name

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("stamps", np.full(PAGES, CLASS_MAX)),  # no such class
            ("stamps", np.full(PAGES, 1 << 60)),  # in the future
            ("stamps", np.zeros(3, np.int64)),
            ("learned.reuse.state", np.array([0, 99, 0, 0])),  # no such age
            ("learned.worth.value", np.zeros(3)),
            ("learned.worth.state", np.array([np.nan])),
        ],
    )
    def test_impossible_learned_state_is_refused(self, past, tmp_path, name, value):
        path, memory = tmp_path / "state.npz", past[1]
        ones = np.ones(PAGES, np.int64)
        SavedCache("", PAGE, PAGE, 1 << 30, memory.numbers, ones, memory).write(str(path))
        with np.load(path) as stored:
            arrays = dict(stored)
        assert arrays[name].dtype == value.dtype
        np.savez(path, **(arrays | {name: value}))
        with pytest.raises(UsageError, match="the state of its learned policy is invalid"):
            opened(str(path))

    def test_other_policies_start_with_the_pages_only(self, past):
        memory = past[1]
        ones = np.ones(PAGES, np.int64)
        page = Site.default().cache.page_bytes
        saved = SavedCache("x", page, page, 1 << 30, memory.numbers, ones, memory)
        trace = Trace.read(SMALL)
        other = memory.learned | {"form": memory.learned["form"] + 1}
        newer = replace(saved, memory=memory._replace(learned=other))
        for source, options in ((saved, {"admission": "always", "replacement": "lru"}),
                                (newer, {})):  # fmt: skip
            begun = begin(source, Site.default().with_options(**options), trace.summary(), True)
            assert begun.warm.memory is None
            assert any("only the pages" in each.text for each in begun.warnings)
        whole = begin(saved, Site.default(), trace.summary(), True)
        assert whole.warm.memory.numbers.tolist() == memory.numbers.tolist()
        assert not whole.warnings


class TestReplay:
    def test_a_repeated_load_starts_warm(self, tmp_path):
        trace, site = Trace.read(demo_file(CAPTURE)), Site.load(demo_file(SITE))
        path = str(tmp_path / "state.npz")
        cold = replay(trace, site, save_cache=path)
        for kept in (True, False):
            begun = replay(trace, site, warm_start=opened(path), ssd_kept=kept)
            beginning = begun.beginning
            assert beginning.is_kept == kept
            assert beginning.remembers
            assert "including the state of the learned policy" in render(begun, details=True)
            assert beginning.used_share > 0.1
            assert beginning.first_hit_ratio > beginning.cold_first_hit_ratio + 0.05
            # Relative to its own, higher final hit ratio: t90 may be later.
            for share in (50, 95):
                assert (
                    beginning.warm_up.reached_ns[share] < beginning.cold_warm_up.reached_ns[share]
                )
            assert begun.cached.end_ns < cold.cached.end_ns
            assert beginning.cold_warm_up.reached_ns == cold.warm_up.reached_ns
            assert ("kept on the SSD" in render(begun, details=True)) == kept

    def test_a_trace_can_select_the_pages_to_preload(self):
        begun = replay(Trace.read(SMALL), warm_start=Trace.read(SMALL))
        beginning = begun.beginning
        assert 0 < beginning.there <= beginning.chosen
        document = json.loads(begun.to_json())["warm_start"]
        assert document["counters"]["pages_preloaded"] == beginning.there
        assert "pages loaded" in render(begun, details=True)

    def test_a_cold_start_reports_no_warm_start(self, state):
        cold = state[1]
        assert json.loads(cold.to_json())["warm_start"] is None
        assert "warm start" not in render(cold, details=True)
        assert "pages_kept" not in cold.phases["whole"].counters

    def test_a_smaller_cache_keeps_the_best_pages(self, state):
        site = Site.default().with_options(cache_size="256KiB")
        begun = replay(Trace.read(SMALL), site, warm_start=opened(state[0]), ssd_kept=True)
        assert begun.beginning.counters["pages_kept"] == 4
        assert any("only the best ones are used" in each.text for each in begun.warnings)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--warm-start", "STATE", "--cache-page", "4KiB"], "use --cache-page 64KiB"),
            (
                ["--warm-start", "STATE", "--ssd-kept", "--cache-mode", "write-back"],
                "parts of pages",
            ),
            (["--warm-start", str(SMALL), "--ssd-kept"], "is a trace"),
            (["--warm-start", "STATE", "--cache", "bcache"], "use --cache page"),
            (["--save-cache", "x.npz", "--cache", "none"], "use --cache page"),
            (["--warm-start", "-"], "standard input"),
            (["--ssd-kept"], "--warm-start"),
            (["--save-cache", "/no/such/folder/x.npz"], "no such folder"),
        ],
    )
    def test_options_that_do_not_fit_are_refused_with_the_correction(self, state, options, message):
        options = [state[0] if each == "STATE" else each for each in options]
        outcome = CliRunner().invoke(cli, ["replay", str(SMALL), *options])
        assert isinstance(outcome.exception, UsageError)
        assert message in str(outcome.exception)


def test_tables_grow_for_all_kept_pages():
    """More pages than the initial size of the tables."""
    kept = [(page, 1) for page in range(40)]
    cache = replace(READ_ONLY, pages=60, kept=kept)
    assert cache_of(Scenario([], OPEN, cache, SLOW, FAST)).table.ids.room() > 0
