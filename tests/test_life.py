"""Events in the life of a machine (DESIGN.md 2.17): the engine against the reference."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path as FilePath
from types import SimpleNamespace

import pytest
from agreement import check, check_cut, relaxed, steady
from click.testing import CliRunner
from engine import batches, facts_of, machine
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scenarios import Scenario, scenarios
from scenarios_bcache import bcache_scenarios
from scenarios_dmcache import dmcache_scenarios
from scenarios_opencas import opencas_scenarios
from scenarios_writecache import writecache_scenarios

from hybridsim.cli import cli
from hybridsim.engine import loops
from hybridsim.engine.life import LivedRun
from hybridsim.foundation.codes import (
    BcacheMode,
    CasMode,
    Change,
    Cleaning,
    Cutoff,
    DmMode,
    Level,
    Mode,
    Op,
    Path,
    Replay,
    Restart,
)
from hybridsim.foundation.errors import ScenarioError, UsageError
from hybridsim.reference import (
    BcacheParameters,
    CacheParameters,
    DmCacheParameters,
    EventParameters,
    OpenCasParameters,
    Request,
    SourceParameters,
    WritecacheParameters,
)
from hybridsim.scenario import Scenario as Site
from hybridsim.scenario import building
from hybridsim.scenario.event import read_all
from hybridsim.studies.replay import replay
from hybridsim.traces.trace import Trace

ROOT = FilePath(__file__).parents[1]
KIB, MIB = 1 << 10, 1 << 20
MS, SECOND = 10**6, 10**9
usual = relaxed(4)
RESTARTS = [Change.REBOOT, Change.CRASH]
LAST = [Change.DETACH, Change.SSD_DIES]


@st.composite
def lives(draw: st.DrawFn, scenario: Scenario) -> Scenario:
    """Draw events for a machine: some reboots, then perhaps the removal of the cache."""
    span = max((request.arrival_ns for request in scenario.requests), default=0)
    span = round(span / scenario.source.speed)
    moments = st.integers(0, span) | st.integers(0, span) | st.integers(0, 2 * SECOND)
    changes = draw(st.lists(st.sampled_from(RESTARTS), max_size=2))
    changes += draw(st.lists(st.sampled_from(LAST), max_size=1))
    if not changes:
        changes = [draw(st.sampled_from([*RESTARTS, *LAST]))]
    times = sorted(draw(moments) for _ in changes)
    down = st.sampled_from([0, 0, 1, 3 * MS, 5 * SECOND, 100 * SECOND])
    events = [
        EventParameters(at, change, draw(down) if change in RESTARTS else 0)
        for at, change in zip(times, changes, strict=True)
    ]
    return replace(scenario, events=events)


@st.composite
def dying(draw: st.DrawFn, scenario: Scenario) -> Scenario:
    """Let the SSD of a cache die."""
    assume(getattr(scenario.cache, "pages", 1) > 0)
    span = max((request.arrival_ns for request in scenario.requests), default=0)
    at_ns = draw(st.integers(0, round(span / scenario.source.speed)))
    return replace(scenario, events=[EventParameters(at_ns, Change.SSD_DIES)])


@usual
@given(st.one_of(scenarios(), opencas_scenarios()).flatmap(dying))
def test_other_caches_whose_ssd_dies_equal_the_reference(scenario):
    check(scenario, interpreted=True)


@usual
@given(opencas_scenarios().flatmap(lives))
def test_opencas_with_events_equals_reference(scenario):
    assume(all(event.change != Change.DETACH for event in scenario.events))
    check(scenario, interpreted=True)


@usual
@given(scenarios(warm=False).flatmap(lives))
def test_a_page_cache_with_events_equals_reference(scenario):
    assume(scenario.cache.mode != Mode.WRITE_BACK)
    check(scenario, interpreted=True)


REDUNDANT = (Level.RAID1, Level.RAID5, Level.RAID6, Level.RAID10)


@st.composite
def failing(draw: st.DrawFn, scenario: Scenario) -> Scenario:
    """Let a member of a redundant array fail, and perhaps be rebuilt."""
    slow = scenario.slow
    assume(slow.level in REDUNDANT and slow.members > 1)
    scenario = replace(scenario, slow=replace(slow, failed=[], rebuild=None))
    span = max((request.arrival_ns for request in scenario.requests), default=0)
    span = round(span / scenario.source.speed)
    member = draw(st.integers(0, slow.members - 1))
    first = draw(st.integers(0, span) | st.just(0))
    second = first + draw(st.sampled_from([0, 1, MS]) | st.integers(0, span))
    rates = draw(st.sampled_from([(1, 10**9), (10**6, 10**8), (10**8, 10**8), (1000, 10**6)]))
    events = [EventParameters(first, Change.DISK_FAILS, member=member)]
    if draw(st.booleans() | st.just(True)):
        events.append(EventParameters(second, Change.REBUILD, 0, member, *rates))
    more = draw(lives(scenario)).events if draw(st.booleans()) else []
    return replace(scenario, events=[*events, *more])


@usual
@given(dmcache_scenarios(slow_kind="hdd").flatmap(failing))
def test_arrays_whose_members_fail_equal_the_reference(scenario):
    check(scenario, interpreted=True)


@st.composite
def passing(draw: st.DrawFn, scenario: Scenario) -> Scenario:
    """Let a sequential pass of reads begin, perhaps with other events."""
    span = max((request.arrival_ns for request in scenario.requests), default=0)
    first = draw(st.integers(0, round(span / scenario.source.speed)) | st.just(0))
    every = draw(st.sampled_from([1, 1000, 100_000, 10 * MS, 10 * MS, SECOND]))
    end = min(scenario.slow.capacity_bytes, 20 << 20)
    begins = EventParameters(first, Change.PASS, every_ns=every, end_bytes=end)
    more = draw(lives(scenario)).events if draw(st.booleans()) else []
    return replace(scenario, events=[begins, *more])


@usual
@given(st.one_of(dmcache_scenarios(), bcache_scenarios()).flatmap(passing))
def test_a_pass_of_reads_beside_the_load_equals_the_reference(scenario):
    check(scenario, interpreted=True)


@usual
@given(dmcache_scenarios().flatmap(lives))
def test_dmcache_with_events_equals_reference(scenario):
    check(scenario, interpreted=True)


@usual
@given(bcache_scenarios().flatmap(lives))
def test_bcache_with_events_equals_reference(scenario):
    check(scenario, interpreted=True)


@usual
@given(writecache_scenarios().flatmap(lives))
def test_writecache_with_events_equals_reference(scenario):
    check(scenario, interpreted=True)


@settings(usual, max_examples=10)
@given(dmcache_scenarios().flatmap(lives))
def test_batch_sizes_and_stops_do_not_change_a_life(scenario):
    check_cut(scenario)


def test_compiled_code_gives_the_same_life():
    load = whole_writes(range(16)) + reads(2, [number % 20 for number in range(400)])
    events = [(SECOND, CRASH, 0), (5 * SECOND, Change.REBOOT, SECOND), (9 * SECOND, DETACH, 0)]
    slow, fast = steady(5 * MS, ORIGIN), steady(50_000, 8 * MIB)
    parameters = [EventParameters(*event) for event in events]
    source = SourceParameters(Replay.OPEN, 1)
    check(Scenario(load, source, dm_cache(), slow, fast, events=parameters))


# --- what the events do --------------------------------------------------------------------------

BLOCK = 64 * KIB
ORIGIN = 64 * MIB
CRASH, REBOOT, DETACH, DIES = Change.CRASH, Change.REBOOT, Change.DETACH, Change.SSD_DIES


def dm_cache(mode=DmMode.WRITEBACK, blocks=16):
    return DmCacheParameters(BLOCK, blocks, mode, MIB)


def lived(requests, cache, *events, replay=Replay.OPEN):
    """Run a machine with events; return its facts, the run's machine and what happened."""
    slow, fast = steady(5 * MS, ORIGIN), steady(50_000, 8 * MIB)
    events = [EventParameters(*event) for event in events]
    source = SourceParameters(replay, 1)
    scenario = Scenario(list(requests), source, cache, slow, fast, events=events)
    check(scenario, interpreted=True)
    run = LivedRun(machine(scenario), events, 99, True)
    todo, facts = batches(scenario, ()), []
    while True:
        status, some = run.advance(1 << 62)
        if some is not None:
            facts += facts_of(some)
        elif status == loops.NEEDS_BATCH:
            run.feed(next(todo))
        else:
            return facts + facts_of(run.drained()), run


def at(seconds, op, block, length=BLOCK):
    return Request(round(seconds * SECOND), op, block * BLOCK, length)


def whole_writes(blocks):
    return [at(0.1 * number, Op.WRITE, block) for number, block in enumerate(blocks)]


def reads(seconds, blocks):
    return [at(seconds + 0.1 * number, Op.READ, block) for number, block in enumerate(blocks)]


def test_a_clean_reboot_keeps_the_mapping_and_what_is_dirty():
    load = whole_writes(range(8)) + reads(1.5, range(8))
    facts, run = lived(load, dm_cache(), (SECOND, REBOOT, 60 * SECOND))
    (event,) = run.happened
    assert event.dirty_bytes == event.dirty_after_bytes == 8 * BLOCK
    assert event.resumed_ns - event.begun_ns == 60 * SECOND
    assert {fact.path for fact in facts if fact.op == Op.READ} == {Path.HIT}


def test_the_down_time_is_no_part_of_the_load():
    load = whole_writes(range(8)) + reads(1.5, range(8))
    without, _ = lived(load, dm_cache(), (2 * 10**9 * 10, REBOOT, 0))
    facts, run = lived(load, dm_cache(), (SECOND, REBOOT, 100 * SECOND))
    assert [fact.issue_ns for fact in facts] == [fact.issue_ns for fact in without]
    assert run.shift_ns == 100 * SECOND


def test_think_times_count_from_the_completion_before_a_reboot():
    load = [
        Request(0, Op.READ, 0, BLOCK, complete_ns=MS),
        Request(SECOND, Op.READ, 0, BLOCK, complete_ns=SECOND + MS),
    ]
    facts, _ = lived(load, dm_cache(), (MS, REBOOT, 50 * SECOND), replay=Replay.THINK)
    first, second = facts
    assert second.issue_ns - first.done_ns == SECOND - MS


def test_after_a_crash_all_blocks_are_dirty_and_written_back_when_idle():
    load = whole_writes(range(16)) + reads(400, [0]) + reads(401, range(4))
    _clean, _ = lived(load, dm_cache(), (399 * SECOND, REBOOT, 0))
    _, run = lived(load, dm_cache(), (399 * SECOND, CRASH, 0))
    (event,) = run.happened
    assert event.dirty_bytes == 0  # written back in the idle minutes before
    assert event.dirty_after_bytes == 16 * BLOCK
    longer = load + reads(500, [0])
    _, run = lived(longer, dm_cache(), (399 * SECOND, CRASH, 0))
    totals = run.cache_totals()
    assert (totals["dirty_blocks"], totals["write_backs"]) == (0, 32)


def test_blocks_without_a_hint_get_the_level_that_the_kernel_hashes():
    _, run = lived(whole_writes(range(16)), dm_cache())
    cache = run.machine.cache.restarted(run.now_ns, Restart.UNCLEAN)
    levels = cache.smq.clean.level[:16]
    assert levels.tolist() == [(slot * 0x61C88647 % 2**32 >> 23) & 63 for slot in range(16)]


def test_a_write_through_cache_is_dirty_after_a_crash_and_takes_its_writes_alone():
    """As in the kernel; blocks above the migration threshold are never written back."""
    hot = [at(0.05 * number, Op.READ, 0, 4 * KIB) for number in range(60)]
    cache = DmCacheParameters(BLOCK, 16, DmMode.WRITETHROUGH, migration_threshold_bytes=0)
    before = [*hot, at(3.5, Op.WRITE, 0, 4 * KIB)]
    load = [*before, at(4.5, Op.WRITE, 0, 4 * KIB)]
    facts, run = lived(load, cache, (4 * SECOND, CRASH, 0))
    first, second = [fact for fact in facts if fact.op == Op.WRITE]
    assert first.done_ns - first.issue_ns >= 5 * MS  # to the disk too
    assert second.done_ns - second.issue_ns < MS
    assert run.cache_totals()["dirty_blocks"] == 1


def test_detach_writes_all_back_under_load_then_the_disks_serve_everything():
    load = whole_writes(range(16)) + reads(2, [number % 16 for number in range(400)])
    facts, run = lived(load, dm_cache(), (3 * SECOND, DETACH))
    (event,) = run.happened
    assert event.dirty_bytes > 0
    assert event.removed_load_ns is not None
    out_ns = event.removed_load_ns
    served = {fact.path for fact in facts if fact.op == Op.READ and fact.issue_ns > out_ns + SECOND}
    assert served == {Path.BYPASS}
    written = run.machine.below.slow.device.totals(run.now_ns)["bytes_written"]
    assert written >= event.dirty_bytes


def test_a_clean_cache_is_detached_at_the_first_look():
    cache = dm_cache(DmMode.WRITETHROUGH)
    _, run = lived(reads(0, range(60)), cache, (2 * SECOND, DETACH))
    (event,) = run.happened
    assert event.dirty_bytes == 0
    assert SECOND <= event.removed_load_ns - 2 * SECOND < SECOND + 50 * MS


def test_what_was_dirty_is_lost_with_the_ssd():
    load = whole_writes([3, 5, 6]) + reads(2, [3, 5, 9])
    facts, run = lived(load, dm_cache(), (SECOND, DIES))
    (event,) = run.happened
    assert event.lost.tolist() == [[block * BLOCK, BLOCK] for block in (3, 5, 6)]
    assert {fact.path for fact in facts if fact.op == Op.READ} == {Path.BYPASS}


def test_bcache_loses_nothing_in_a_crash():
    cache = BcacheParameters(
        64 * KIB, 100, 4 * KIB, BcacheMode.WRITEBACK, sequential_cutoff_bytes=0
    )
    load = whole_writes(range(8)) + reads(1.5, range(8))
    facts, run = lived(load, cache, (SECOND, CRASH, 0))
    (event,) = run.happened
    assert event.dirty_after_bytes == event.dirty_bytes > 0
    assert {fact.path for fact in facts if fact.op == Op.READ} == {Path.HIT}


def test_writecache_loses_in_a_crash_what_was_not_committed():
    """Committed by a flush at 0.45 s; what is written after it waits for a second."""
    cache = WritecacheParameters(4 * KIB, 1000, 500, 450)
    load = [at(0.1 * number, Op.WRITE, number, 4 * KIB) for number in range(8)]
    load.insert(5, Request(450 * MS, Op.FLUSH, 0, 0))
    load += [at(1.5 + 0.1 * number, Op.READ, number, 4 * KIB) for number in range(8)]
    facts, _ = lived(load, cache, (SECOND, CRASH, 0))
    paths = [fact.path for fact in facts if fact.op == Op.READ]
    assert paths == [Path.HIT] * 5 + [Path.MISS] * 3
    facts, _ = lived(load, cache, (SECOND, REBOOT, 0))
    assert {fact.path for fact in facts if fact.op == Op.READ} == {Path.HIT}


def open_cas(mode, **more):
    how = {"sequential_cutoff_policy": Cutoff.NEVER, "cleaning": Cleaning.NOP, **more}
    return OpenCasParameters(line_bytes=4 * KIB, lines=1000, mode=mode, **how)


def pages_of(seconds, op, numbers):
    return [
        Request(round((seconds + 0.1 * number) * SECOND), op, number * 4 * KIB, 4 * KIB)
        for number in numbers
    ]


@pytest.mark.parametrize(("change", "hits"), [(REBOOT, 8), (CRASH, 3)])
def test_open_cas_keeps_everything_over_a_reboot_and_only_what_is_dirty_over_a_crash(change, hits):
    """Pages 0 to 4 were read, 5 to 7 written; one of those read is written to in half."""
    load = [*pages_of(0, Op.READ, range(5)), *pages_of(1, Op.WRITE, range(5, 8))]
    load.append(at(1.9, Op.WRITE, 0, 2 * KIB))
    load += pages_of(3, Op.READ, range(8))
    facts, run = lived(load, open_cas(CasMode.WB), (2 * SECOND, change, 0))
    (event,) = run.happened
    assert event.dirty_bytes == event.dirty_after_bytes == 14 * KIB
    paths = [fact.path for fact in facts if fact.op == Op.READ][5:]
    assert paths.count(Path.HIT) == hits
    assert paths[5:] == [Path.HIT] * 3


def test_the_cleaner_of_open_cas_goes_on_after_a_crash():
    """ALRU: all that is dirty counts as written when the cache started."""
    cleaning = {"cleaning": Cleaning.ALRU, "wake_up_ns": SECOND, "staleness_time_ns": 5 * SECOND}
    cache = open_cas(CasMode.WB, activity_threshold_ns=0, **cleaning)
    load = pages_of(0, Op.WRITE, range(8))
    _, run = lived([*load, *pages_of(20, Op.READ, [0])], cache, (SECOND, CRASH, 0))
    assert run.cache_totals()["dirty"] == 0
    _, run = lived([*load, *pages_of(6, Op.READ, [0])], cache, (SECOND, CRASH, 2 * SECOND))
    assert run.cache_totals()["dirty"] == 8


def test_a_page_cache_is_empty_after_a_reboot_and_counts_on():
    cache = CacheParameters(4 * KIB, 100, Mode.WRITE_THROUGH, 0, 8, ("touches", 1))
    load = [*pages_of(0, Op.READ, range(8)), *pages_of(2, Op.READ, range(8))]
    load += pages_of(4, Op.READ, range(8))
    facts, run = lived(load, cache, (SECOND, REBOOT, 60 * SECOND))
    paths = [fact.path for fact in facts]
    assert paths == [Path.MISS] * 16 + [Path.HIT] * 8
    totals = run.cache_totals()
    assert (totals["fills_done"], totals["pages_present"]) == (16, 8)


def test_a_page_cache_without_dirty_data_is_out_at_once():
    cache = CacheParameters(4 * KIB, 100, Mode.WRITE_THROUGH, 0, 8, ("touches", 1))
    load = [*pages_of(0, Op.READ, range(8)), *pages_of(2, Op.READ, range(8))]
    facts, run = lived(load, cache, (1500 * MS, DETACH))
    (event,) = run.happened
    assert event.removed_load_ns == 1500 * MS
    assert {fact.path for fact in facts[8:]} == {Path.BYPASS}


def test_disks_go_on_writing_while_the_machine_is_down():
    """Scattered writes, still in the disk's cache at a reboot, are on the platters after it."""
    site = Site.loads(
        '[backing]\nkind = "single"\nmembers = 1\ndrive = {like = "hgst-ultrastar-7k8"}\n'
        '[cache]\nkind = "dm-cache"\nmode = "writethrough"\nsize = "64MiB"\n'
    )
    built = building.machine(site, "open", 10**12, 1024, has_life=True)
    run = LivedRun(
        built, [EventParameters(SECOND // 3, REBOOT, down_ns=60 * SECOND)], interpreted=True
    )
    load = [at(0.001 * number, Op.WRITE, number * 16_000, 4 * KIB) for number in range(250)]
    load.append(at(9, Op.READ, 0))
    scenario = SimpleNamespace(requests=load, source=SourceParameters(Replay.OPEN))
    run.feed(next(batches(scenario, ())))
    run.advance(SECOND // 3)
    assert not run.machine.below.slow.device.write_cache.is_clean(0)
    run.advance(SECOND // 3 + 1)
    assert run.now_ns > 60 * SECOND
    assert run.machine.below.slow.device.write_cache.is_clean(0)


# --- a scenario's events -------------------------------------------------------------------------

DM = '[cache]\nkind = "dm-cache"\n'
WRONG = {
    "at='1s'": "needs exactly one of",
    "at='1s'\nreboot='clean'\ndetach=true": "not reboot and detach",
    "at='1s'\nreboot='unclear'": "did you mean 'unclean'",
    "at='1s'\ndetach=true\ndown='1s'": "it needs reboot",
    "reboot='clean'": "missing: at",
    "at='1s'\nrebot='clean'": "did you mean 'reboot'",
}


@pytest.mark.parametrize(("table", "why"), WRONG.items())
def test_an_event_without_a_meaning_is_refused_with_its_place(table, why):
    with pytest.raises(ScenarioError, match=why) as error:
        Site.loads(f"{DM}[[event]]\n{table}\n", "site.toml")
    assert "site.toml:" in str(error.value)


def test_events_that_cannot_happen_are_refused():
    site = Site.loads(DM)
    with pytest.raises(ScenarioError, match="removed before that, by at=1s,detach"):
        site.with_events(read_all(["at=2s,reboot=clean", "at=1s,detach"]))
    with pytest.raises(ScenarioError, match="no cache"):
        Site.default().with_options(cache="none").with_events(read_all(["at=2s,ssd=dies"]))
    pages = Site.default().with_options(cache_mode="write-back")
    for text in ("at=2s,reboot=clean", "at=2s,detach"):
        with pytest.raises(ScenarioError, match="open what becomes of dirty data"):
            pages.with_events(read_all([text]))
    with pytest.raises(ScenarioError, match="only while nothing uses its device"):
        Site.default().with_options(cache="open-cas").with_events(read_all(["at=2s,detach"]))
    site = Site.default()  # RAID-5 of four disks
    wrong = {
        "at=1s,rebuild": "member 0 has not failed",
        "at=1s,disk=fails,member=4": "members are 0 to 3",
        "at=1s,disk=fails;at=2s,disk=fails,member=1": "loses data",
        "at=1s,disk=fails;at=2s,disk=fails": "has failed already",
        "at=1s,disk=fails;at=2s,rebuild;at=3s,disk=fails,member=2": "none fails from then on",
        "at=1s,backup=1MB/s;at=2s,backup=1MB/s": "only one backup",
        "at=1s,detach,member=1": "needs disk or rebuild",
        "at=1s,disk=fails,max=1MB/s": "needs rebuild",
        "at=1s,disk=fails;at=2s,rebuild,min=2MB/s,max=1MB/s": "min cannot exceed max",
        "at=1s,backup=0MB/s": "backup must be above 0",
    }
    for texts, why in wrong.items():
        with pytest.raises(ScenarioError, match=why):
            site.with_events(read_all(texts.split(";")))
    for text in ("at=1s,at=2s,detach", "at=,detach", "=1,detach", ""):
        with pytest.raises(UsageError, match="expected for example"):
            read_all([text])


def test_a_scenario_with_events_reads_back_as_itself():
    texts = ["at=1m,reboot=unclean,down=30s", "at=10m,detach"]
    site = Site.loads(DM).with_events(read_all(texts))
    assert Site.loads(site.to_toml()).events == site.events
    assert [event.text for event in site.events] == texts
    assert site.options == [f"--event {text}" for text in texts]


def test_a_cache_that_is_gone_is_not_saved():
    site = Site.default().with_events(read_all(["at=1s,ssd=dies"]))
    with pytest.raises(UsageError, match="no cache to save"):
        replay(Trace.read("gen:zipf,requests=9,span=1MiB"), site, save_cache="x.npz")


def test_only_replay_carries_events_out(tmp_path):
    file = tmp_path / "site.toml"
    file.write_text(f"{DM}[[event]]\nat = '1s'\ndetach = true\n")
    ran = CliRunner().invoke(cli, ["bench", str(file)])
    assert isinstance(ran.exception, UsageError)
    assert "only `replay` simulates events" in str(ran.exception)


# --- the report ----------------------------------------------------------------------------------

PROGRAM = """
import json, sys
from hybridsim import Scenario, Trace, replay
from hybridsim.answers.result import plain
from hybridsim.foundation.errors import UsageError
from hybridsim.scenario import building
from hybridsim.scenario.event import read_all
from hybridsim.show.terminal import render
load = "gen:zipf,requests=2000,span=64MiB,read=60%,rate=100"
found = {}
for name, kind, mode, events in json.loads(sys.argv[1]):
    site = Scenario.default().with_options(cache=kind, cache_mode=mode, cache_size="16MiB")
    try:
        result = replay(Trace.read(load), site.with_events(read_all(events)))
    except UsageError as error:
        found[name] = str(error)
        continue
    found[name] = plain(result.to_dict()) | {"text": render(result, 100)}
json.dump(found, sys.stdout)
"""
REPLAYS = [
    ["crash", "dm-cache", "write-back", ["at=8s,reboot=unclean,down=1h"]],
    ["clean", "bcache", "write-back", ["at=8s,reboot=clean", "at=12s,detach"]],
    ["empty", "open-cas", "write-through", ["at=8s,reboot=unclean"]],
    ["pages", "page", "write-through", ["at=8s,reboot=clean", "at=12s,detach"]],
    ["dies", "bcache", "write-back", ["at=10s,ssd=dies"]],
    ["through", "dm-cache", "write-through", ["at=10s,ssd=dies"]],
    ["backup", "dm-cache", "write-through", ["at=8s,backup=10MB/s"]],
    ["disk", "page", "write-through", ["at=5s,disk=fails,member=1", "at=8s,rebuild,max=20MB/s"]],
    ["late", "dm-cache", "write-back", ["at=10m,detach"]],
]


@pytest.fixture(scope="module")
def replayed():
    """Replays, interpreted, as compiling takes longer."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(REPLAYS)], capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_DISABLE_JIT": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_crash_reports_the_flush_and_the_latencies_around_it(replayed):
    (event,) = replayed["crash"]["events"]
    assert event["dirty_after_bytes"] == event["cached_bytes"] > event["dirty_bytes"]
    assert event["down_ns"] == 3600 * SECOND
    assert event["before"]["reads"] > 0
    assert event["before"]["end_ns"] <= event["at_ns"] < event["during"]["end_ns"]
    assert replayed["crash"]["phases"]["whole"]["end_ns"] < 30 * SECOND  # without the hour
    assert "The cache came up with" in " ".join(replayed["crash"]["text"].split())


def test_two_events_of_bcache_are_reported_in_order(replayed):
    reboot, detach = replayed["clean"]["events"]
    assert (reboot["what"], detach["what"]) == ("reboot", "detach")
    assert reboot["dirty_after_bytes"] == reboot["dirty_bytes"] > 0
    assert detach["warm_again_ns"] is None
    assert detach["flush_ns"] is None or 0 < detach["flush_ns"] < 10 * SECOND


def test_a_cache_that_comes_up_empty_says_so(replayed):
    (event,) = replayed["empty"]["events"]
    assert event["cached_bytes"] > event["cached_after_bytes"] == 0
    assert "The cache came up empty" in " ".join(replayed["empty"]["text"].split())
    reboot, detach = replayed["pages"]["events"]
    assert reboot["cached_after_bytes"] == detach["flush_ns"] == 0


def test_a_lost_ssd_reports_what_was_lost_and_the_errors(replayed):
    (event,) = replayed["dies"]["events"]
    lost = event["lost"]
    assert lost["bytes"] == event["dirty_bytes"] > 0
    assert 0 < lost["age_p50_ns"] <= lost["age_p99_ns"] <= 10 * SECOND
    assert 0 < lost["read_errors"] <= lost["reads_after"]
    (event,) = replayed["through"]["events"]
    assert event["lost"]["bytes"] == event["lost"]["read_errors"] == 0


def test_a_backup_is_read_beside_the_load_and_is_no_part_of_its_figures(replayed):
    (event,) = replayed["backup"]["events"]
    backup = event["backup"]
    assert backup["read_bytes"] == backup["of_bytes"] > 60 * MIB
    assert event["flush_ns"] >= backup["of_bytes"] * SECOND // 10_000_000 - SECOND
    assert 0 < backup["mean_ns"] <= backup["p99_ns"]
    whole = replayed["backup"]["phases"]["whole"]
    assert whole["read"]["n"] + whole["write"]["n"] == 2000


def test_a_disk_that_fails_and_its_rebuild_are_reported(replayed):
    disk, rebuild = replayed["disk"]["events"]
    assert (disk["what"], rebuild["what"]) == ("disk", "rebuild")
    assert rebuild["flush_ns"] >= 20 * MIB * SECOND // 20_000_000  # a member has a third of 64 MiB
    assert replayed["disk"]["rebuild"]["cached"]["share"] == 1
    assert replayed["disk"]["rebuild"]["none"] is not None


def test_an_event_after_the_end_of_the_load_is_an_error(replayed):
    assert "at=10m,detach: the load ends after" in replayed["late"]
