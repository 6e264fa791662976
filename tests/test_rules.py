"""Single rules of the models, worked out by hand, that random machines reach too rarely."""

from hybridsim.caches.bcache.buckets import Buckets
from hybridsim.caches.bcache.bypass import CONGESTED_MAX, SLOWNESS, Bypass
from hybridsim.caches.bcache.keys import LIVE_BYTES
from hybridsim.caches.policies.lhd import LHD
from hybridsim.requests.rows import Findings
from hybridsim.scenario import Scenario
from hybridsim.scenario.building import machine
from hybridsim.storage.devices.hdd.write_cache import WriteCache

KIB = 1 << 10


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
    bypass = Bypass.new(0, 2000, 20000, Buckets.new(64 * KIB, 200, 0, 7, 64), 16)
    twin = Buckets.new(64 * KIB, 200, 0, 7, 64)
    slowness = -300
    for _ in range(20):
        bypass.state[SLOWNESS] = slowness
        expected = CONGESTED_MAX + slowness
        expected = (64 + expected % 64) * 2 ** (expected // 64) // 64
        expected -= sum(int(twin.draw() & 0xFFFF).bit_count() for _ in range(2))
        assert bypass.congestion(0) == expected


def test_bcache_reports_its_data_in_pages_of_4_kib():
    cache = machine(Scenario.default().with_options(cache="bcache"), "open", 1 << 40, 1 << 16).cache
    keys = cache.inserts.allocator.buckets.keys
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
