"""Single rules of the models, worked out by hand, that random machines reach too rarely."""

from random import Random
from typing import get_args

import numpy as np
import pytest

from hybridsim.answers.fitting.array import MEMBERS
from hybridsim.answers.fitting.disks import service as service_of
from hybridsim.answers.fitting.service import (
    Pieces,
    Service,
    _of_pieces,
    log_likelihood,
    with_slopes,
)
from hybridsim.answers.measurements import _name_logs, job_of
from hybridsim.answers.measurements.measurement import Curve, Measurement, Name
from hybridsim.answers.measurements.samples import DmCache
from hybridsim.caches.bcache.buckets import Draws
from hybridsim.caches.bcache.inserts import CONGESTED_MAX, SLOWNESS, Bypass
from hybridsim.caches.bcache.keys import LIVE_BYTES
from hybridsim.caches.dmcache.smq import Hotspot
from hybridsim.caches.opencas.lines import Dirt
from hybridsim.caches.opencas.policies import Nhit, SequentialCutoff
from hybridsim.caches.page.table import Table
from hybridsim.caches.policies import Learned
from hybridsim.caches.policies.belady import Belady
from hybridsim.caches.policies.budget import Bucket, Budgeted
from hybridsim.caches.policies.learned.habits import EIGHTHS_MAX, age_of, eighths
from hybridsim.caches.policies.lhd import LHD
from hybridsim.caches.policies.memory import Memory, form, is_compatible
from hybridsim.foundation.cache_parameters import BcacheParameters, OpenCasParameters
from hybridsim.foundation.codes import BcacheMode, CasMode, Cleaning, Cutoff, Level, Op
from hybridsim.foundation.errors import ScenarioError
from hybridsim.foundation.histogram import Distribution
from hybridsim.foundation.machine_parameters import RebuildParameters
from hybridsim.requests.jobs import (
    BROKE_NS,
    DEPTH,
    DRAINS,
    IS_DONE,
    IS_FOUND,
    IS_LAST,
    JUDGED,
    LATE,
    LIMIT_READ_NS,
    MEASURED_NS,
    NOW,
    PAUSE_EVERY_NS,
    RAMP_NS,
    SINCE_NS,
    TARGET_NS,
    WINDOW_NS,
    Depths,
)
from hybridsim.requests.rows import Findings
from hybridsim.scenario import Scenario
from hybridsim.scenario.building import machine
from hybridsim.storage.devices.hdd.buffer import WriteCache
from hybridsim.storage.drives import DRIVES
from hybridsim.storage.raid import DUE_NS, Layout, Rebuild

KIB = 1 << 10
# A bcache by whose streams no request bypasses it.
UNLIMITED = BcacheParameters(
    512 * KIB, 64, 4 * KIB, BcacheMode.WRITETHROUGH, sequential_cutoff_bytes=0
)


class Events:
    """Events, as a state machine schedules them."""

    def __init__(self):
        self.times_ns = []

    def push(self, time_ns, kind, number):
        self.times_ns.append(time_ns)


def test_the_acp_cleaner_of_open_cas_wakes_at_the_next_end_of_its_wait_of_a_second():
    """A wait of 1 s that is set again ends each 1.024 s, as the steps of a kernel's timers are."""
    parameters = OpenCasParameters(4096, 8, CasMode.WB, cleaning=Cleaning.ACP)
    dirt, events = Dirt.new(parameters, 1 << 30), Events()
    dirt.written(42 * 1_024_000_000 - 1, 0, 0, events)
    assert events.times_ns == [42 * 1_024_000_000]


def test_a_range_ends_where_its_granules_can_be_stored():
    """Whole granules, and those that are valid already."""
    table = Table.new(16 * KIB, 4 * KIB, 4, 16)
    page, half = 16 * KIB, 2 * KIB
    ends = [
        table.storable(half, page - half, 0, page),
        table.storable(half, page - half, 0b0001, page),
        table.storable(half, page - half, 0b1000, page),
        table.storable(0, page - half, 0, page - half),  # the volume ends there
    ]
    assert ends == [
        (4 * KIB, 12 * KIB),
        (half, 12 * KIB),
        (4 * KIB, page - half),
        (0, page - half),
    ]


class Missed:
    """A replacement policy that records misses."""

    def __init__(self):
        self.pages = []

    def missed(self, page):
        self.pages.append(page)


def test_a_fill_within_a_budget_is_charged_and_known_to_the_policy():
    replacement = Missed()
    budgeted = Budgeted(None, replacement, Bucket.new(64, 10, 4, 0), np.zeros(8))
    fills = int(budgeted.bucket.state[0])
    for page in (5, 9):
        budgeted.missed(page)
    assert replacement.pages == [5, 9]
    assert int(budgeted.bucket.state[0]) == fills - 2


def test_open_cas_keeps_its_settings_when_it_is_loaded_again():
    """Its streams and counts of misses are gone."""
    parameters = OpenCasParameters(
        4 * KIB, 16, CasMode.WT, insertion_threshold=2, trigger_threshold_lines=7,
        sequential_cutoff_policy=Cutoff.ALWAYS, margin_lines=3,
    )  # fmt: skip
    cutoff = SequentialCutoff.new(parameters)
    assert not cutoff.is_long(Op.READ, 0, 8 * KIB)
    again = SequentialCutoff.new(cutoff)
    assert again[:3] == (2, 1 << 20, 3)
    assert (
        again.fresh.table.find(8 * KIB << 1 | Op.READ)
        < 0
        <= cutoff.fresh.table.find(8 * KIB << 1 | Op.READ)
    )
    nhit = Nhit.new(parameters, 16)
    assert [bool(nhit.passes(5)) for _ in range(2)] == [False, True]
    again = Nhit.new(nhit, 16)
    assert again[:2] == (2, 7)
    assert [bool(again.passes(5)) for _ in range(2)] == [False, True]


def test_ages_of_the_learned_policy_are_eighths_of_octaves():
    assert [eighths(1 << octave) for octave in range(26)] == [8 * octave for octave in range(26)]
    assert [eighths(8 + each) for each in range(8)] == list(range(24, 32))
    assert eighths(1 << 40) == EIGHTHS_MAX
    assert [age_of(time) for time in (0, 1, 2, 3, 4, 6, 1 << 20)] == [0, 0, 1, 2, 3, 4, 39]


def test_a_coarse_block_that_replaces_another_rises_at_its_first_hit_of_a_tick():
    hotspot = Hotspot.new(16, 65536, 1 << 40)
    entries = len(hotspot.hit_epoch)
    for number in range(entries + 1):
        assert hotspot.touch(number * hotspot.blocks_each) == 0
    assert hotspot.touch(entries * hotspot.blocks_each) == 1
    assert hotspot.touch(entries * hotspot.blocks_each) == 1  # once a tick


def write_cache(ranges, size_bytes):
    return WriteCache.new(1, ranges, size_bytes, 4)


def test_a_write_cache_is_crowded_above_three_quarters_of_its_bytes():
    cache = write_cache(100, 8 * KIB)
    cache.used_bytes[0] = 6 * KIB
    assert not cache.is_crowded(0)
    cache.used_bytes[0] = 6 * KIB + 512
    assert cache.is_crowded(0)


def test_a_write_cache_is_crowded_above_three_quarters_of_its_ranges():
    cache = write_cache(8, 1 << 20)
    cache.ranges[0] = 6
    assert not cache.is_crowded(0)
    cache.ranges[0] = 7
    assert cache.is_crowded(0)


def test_bcache_lowers_the_congested_limit_by_the_bits_of_two_random_words():
    """Of 16 bits each, so that requests of nearly the limit bypass at random."""
    bypass = Bypass.new(UNLIMITED, Draws.new(7), 16)
    twin = Draws.new(7)
    slowness = -300
    for _ in range(20):
        bypass.state[SLOWNESS] = slowness
        expected = CONGESTED_MAX + slowness
        expected = (64 + expected % 64) * 2 ** (expected // 64) // 64
        expected -= sum(int(twin.draw() & 0xFFFF).bit_count() for _ in range(2))
        assert bypass.congestion(0) == expected


def test_bcache_reports_its_data_in_pages_of_4_kib():
    cache = machine(Scenario.default().with_options(cache="bcache"), "open", 1 << 40, 1 << 16).cache
    keys = cache.inserts.buckets.keys
    keys.state[LIVE_BYTES] = 8 << 30
    assert cache.totals()["pages_present"] == 2 << 20


def test_lhd_forgets_an_eighth_of_its_events_each_time_it_learns():
    policy = LHD.new(16, 8)
    policy.hits[0, 3], policy.evictions[0, 3] = 800, 1600
    policy.learn()
    assert (policy.hits[0, 3], policy.evictions[0, 3]) == (700, 1400)


def test_findings_of_one_code_add_up_and_keep_three_places():
    findings, others = Findings(), Findings()
    for place in ("a", "b"):
        findings.add("late", "Requests are late.", count=2, place=place)
    others.add("late", "Requests are late.", count=5, place="c")
    others.add("late", "Requests are late.", place="d")
    findings.take(others)
    (warning,) = findings.list()
    assert (warning.count, warning.place) == (2 + 2 + 5 + 1, "a; b; c; d")


@pytest.mark.parametrize("is_last", [0, 1])
def test_results_are_reset_before_the_window_at_the_depth_that_was_found(is_last):
    depths = Depths.new(np.zeros((2, PAUSE_EVERY_NS + 1), np.int64))
    depths.state[1, IS_FOUND], depths.state[1, IS_LAST], depths.state[1, DRAINS] = 1, is_last, 1
    assert depths.drained(700, 1) == (not is_last)
    assert depths.state[1, [DRAINS, SINCE_NS, IS_LAST]].tolist() == [0, 700, 1]
    assert depths.state[1, MEASURED_NS] == (0 if is_last else 700)


def test_latencies_of_the_logs_of_one_job_are_added_up():
    measurement = Measurement([])
    for number, latencies in ((1, [100, 200]), (2, [300]), (3, [5000])):
        name = Name(job_of(number), "read", "lat")
        measurement.latencies[name] = Distribution.of(latencies)
        measurement.curves[name] = Curve.of_windows(np.arange(1, 4) * 10**9, np.zeros(3))
    _name_logs(measurement)
    ((name, together),) = measurement.latencies.items()
    assert (name.job, together.count) == ("", 4)
    assert together.total_ns == 5600


def test_the_heap_of_next_uses_stays_in_order_when_it_drops_outdated_entries():
    """Belady's policy keeps an entry a use; with many of them it keeps the valid ones only."""
    pages = 500
    policy, random = Belady.new(pages, pages), Random(3)
    uses = list(range(10, 10 + 3 * pages))
    random.shuffle(uses)
    for at, use in enumerate(uses):
        policy.upcoming[at % pages] = use
        policy.touch(at % pages)
    last = dict(enumerate(uses[-pages:]))
    order = [int(policy.evict()) for _ in range(pages)]
    assert order == sorted(last, key=last.get, reverse=True)
    assert policy.evict() == -1


@pytest.mark.parametrize("roles", [(True, True), (True, False), (False, True)])
def test_a_memory_of_each_role_can_be_continued_from(roles):
    memory = Memory(np.zeros(0), np.zeros(0), {"form": np.array(form(*roles))})
    assert is_compatible(memory)
    assert not is_compatible(memory._replace(learned={"form": np.array(form(*roles)) + 1}))


def test_a_rebuild_is_due_at_its_minimum_rate():
    rebuild = Rebuild.new(
        Layout.new(Level.RAID1, 2, 1 << 40, 1 << 40, 1), RebuildParameters(1, 1000, 10**9)
    )
    length = rebuild.length_of(0)
    rebuild.begin(0)
    assert rebuild.state[DUE_NS] == length * 10**6  # 1,000 bytes a second


def test_a_class_without_events_of_its_own_has_the_chances_of_the_class_above():
    for above in (0, 1):
        reuse = Learned.new(16, 8).reuse
        reuse.chance[above] = 0.75
        reuse.publish(above + 1, above)
        assert np.allclose(reuse.chance[above + 1], 0.75)


def test_the_density_of_a_service_time_is_the_derivative_of_its_distribution():
    service = Service(0.3, 0.7, 9.0, 0.4, 0.2, 8.33, 6.0, 0.6, 0.5, 0.05, 0.02)
    random = np.random.default_rng(5)
    count = 400
    zeros, no = np.zeros(count), np.zeros(count, np.bool_)
    seen = Pieces(
        np.arange(count), zeros, zeros, random.uniform(0, 25e6, count), np.full(count, 65536.0),
        random.uniform(0, 0.6, count), random.uniform(0.3, 0.7, count),
        random.uniform(0, 1, count), random.random(count) < 0.5,
        random.random(count) < 0.5, np.zeros(count, np.int64), no, ~no, ~no,
    )  # fmt: skip
    density, _ = _of_pieces(service, seen)
    step_ms = 1e-5
    ends = (
        _of_pieces(service, seen._replace(complete_ns=seen.complete_ns + by * 1e6))[1]
        for by in (-step_ms, step_ms)
    )
    slope = -np.subtract(*ends) / (2 * step_ms)
    assert np.allclose(density, slope, rtol=1e-3, atol=1e-6)


def test_the_slopes_of_a_service_time_are_those_of_its_likelihood():
    random = np.random.default_rng(5)
    count = 400
    begins = np.flatnonzero(random.random(count) < 0.7)
    begins[0] = 0
    no = np.zeros(count, np.bool_)
    seen = Pieces(
        begins, np.zeros(count), random.uniform(-1e6, 0.9e6, count),
        random.uniform(0, 25e6, count), np.full(count, 65536.0), random.uniform(0, 0.6, count),
        random.uniform(0.3, 0.7, count), random.uniform(0, 1, count), random.random(count) < 0.5,
        random.random(count) < 0.5, np.zeros(count, np.int64), no, ~no, ~no,
    )  # fmt: skip
    values = {
        "overhead_ms": 0.3, "track_ms": 0.7, "reach_ms": 8.3, "linear": 0.4, "bend": 0.2,
        "rotation_ms": 8.33, "per_mib_ms": 6.0, "inner": 0.6, "settle_ms": 0.5, "noise_ms": 0.15,
        "stray": 0.02,
    }  # fmt: skip
    value, slopes = with_slopes(service_of(values), seen)
    assert np.array_equal(value, log_likelihood(service_of(values), seen))
    assert slopes.keys() == values.keys()
    step = 1e-6
    for name, slope in slopes.items():
        low, high = (
            log_likelihood(service_of({**values, name: values[name] + by}), seen)
            for by in (-step, step)
        )
        assert np.allclose(slope, (high - low) / (2 * step), atol=1e-4)


def test_a_track_ends_where_its_last_byte_is():
    text = '[backing]\nkind = "single"\nmembers = 1\ndrive = {like = "hgst-ultrastar-7k8"}\n'
    machine_of = machine(Scenario.loads(text), "open", 1 << 40, 0)
    platters = machine_of.below.slow.device.arm.platters
    for byte in (0, 5 << 20, 1 << 30, 900 << 30):
        zone, track = platters.zone_of(byte), platters.track_of(byte)
        start = platters.zone_byte[zone]
        start += (track - platters.zone_track[zone]) * platters.zone_track_bytes[zone]
        size = platters.zone_track_bytes[zone]
        assert platters.is_on_track(zone, track, start + 1)
        assert platters.is_on_track(zone, track, start + size)
        assert not platters.is_on_track(zone, track, start + size + 1)


def test_bcache_lets_no_request_bypass_a_slow_device_for_less_than_a_sector():
    bypass = Bypass.new(UNLIMITED, Draws.new(7), 16)
    bypass.state[SLOWNESS] = -CONGESTED_MAX
    assert bypass.congestion(0) == 1


def test_a_flush_is_not_judged_by_a_latency_target():
    options = np.zeros((1, PAUSE_EVERY_NS + 1), np.int64)
    options[0, [DEPTH, TARGET_NS, WINDOW_NS]] = 8, 1000, 10**9
    depths = Depths.new(options)
    depths.on_completion(5, 0, int(Op.FLUSH), 10**6)
    assert depths.state[0, JUDGED] == 0
    depths.on_completion(5, 0, int(Op.READ), 10**6)
    assert depths.state[0, [JUDGED, LATE]].tolist() == [1, 1]


def test_a_search_doubles_the_depth_until_a_window_fails():
    options = np.zeros((1, PAUSE_EVERY_NS + 1), np.int64)
    options[0, [DEPTH, TARGET_NS]] = 50, 1000
    depths = Depths.new(options)
    seen = [int(depths.state[0, NOW])]
    for _ in range(6):
        depths.met(0, 0)
        seen.append(int(depths.state[0, NOW]))
    assert seen == [1, 2, 4, 8, 16, 32, 50]
    assert depths.state[0, IS_FOUND] == 0
    depths.met(0, 0)
    assert depths.state[0, [NOW, IS_FOUND]].tolist() == [50, 1]


def test_only_the_first_late_request_after_the_ramp_ends_a_job():
    options = np.zeros((1, PAUSE_EVERY_NS + 1), np.int64)
    options[0, [DEPTH, RAMP_NS, LIMIT_READ_NS]] = 8, 100, 1000
    depths = Depths.new(options)
    depths.begin(50, 0)
    depths.on_completion(149, 0, int(Op.READ), 5000)
    assert depths.state[0, IS_DONE] == 0
    depths.on_completion(150, 0, int(Op.READ), 2000)
    depths.on_completion(151, 0, int(Op.READ), 7000)
    assert depths.state[0, [IS_DONE, BROKE_NS]].tolist() == [1, 2000]


def test_a_fit_looks_for_a_single_disk_too():
    assert set(range(1, 9)) <= set(MEMBERS)


def test_a_status_of_dm_cache_has_these_counters_in_this_order():
    status = "5.00 0 4194304 cache 8 27/4096 128 31/512 11 12 13 14 15 16 17 1 writeback"
    counters = DmCache().read("status", status).counters
    assert {name: int(samples.value[0]) for name, samples in counters.items()} == {
        "used_blocks": 31, "read_hits": 11, "read_misses": 12, "write_hits": 13,
        "write_misses": 14, "demotions": 15, "promotions": 16, "dirty_blocks": 17,
    }  # fmt: skip


def test_the_defaults_of_open_cas_are_those_of_ocf():
    """OCF 22.6: ocf_seq_cutoff.c, ocf_cleaning_policy.h (alru)."""
    defaults = OpenCasParameters(4096, 8, CasMode.WT)
    names = ("wake_up_ns", "staleness_time_ns", "activity_threshold_ns")
    assert [getattr(defaults, name) / 10**9 for name in names] == [20, 120, 10]
    assert defaults.margin_lines == 512


@pytest.mark.parametrize("kind", DRIVES)
def test_a_kind_of_drive_is_listed_under_the_name_that_scenarios_use(kind):
    assert get_args(DRIVES[kind].model_fields["kind"].annotation) == (kind,)


def test_a_disk_may_read_ahead_for_a_single_stream():
    drive = 'drive = {like = "hgst-ultrastar-7k8", segments = 1}\n'
    backing = f'[backing]\nkind = "single"\nmembers = 1\n{drive}'
    assert Scenario.loads(backing).backing.drive.segments == 1
    with pytest.raises(ScenarioError, match="segments"):
        Scenario.loads(backing.replace("segments = 1", "segments = 0"))
