"""The host in front of the cache: its caps limit the load, and its overhead adds to latency."""

from dataclasses import replace

import pytest
from engine import simulate
from test_volume import BOTH, machine, same, volume

from hybridsim.foundation.codes import Op, Replay
from hybridsim.reference import HostParameters, LimitParameters, Request
from hybridsim.scenario import Scenario

SECOND = 10**9


def run(host, requests, depth=1, device=None, mode=Replay.CLOSED):
    device = device or volume(latency=(50_000,))
    facts, _ = simulate(
        machine(device, requests, depth, members=4, host=host, mode=mode), interpreted=True
    )
    return facts


def iops(facts):
    return len(facts) / facts[-1].done_ns * SECOND


def test_iops_do_not_exceed_the_cap():
    assert iops(run(HostParameters(max_iops=23_500), same(1500), 64)) == pytest.approx(
        23_500, rel=0.01
    )
    assert iops(run(None, same(1500), 64)) > 1_000_000


def test_bandwidth_does_not_exceed_the_cap():
    host = HostParameters(max_bandwidth=65_536 * 1000)
    for length, rate in ((65_536, 1000), (4096, 16_000)):
        facts = run(host, same(1200, length=length), 64)
        assert iops(facts) == pytest.approx(rate, rel=0.05)


def test_each_cap_is_reached_if_the_other_does_not_bind():
    host = HostParameters(max_iops=10_000, max_bandwidth=65_536 * 1000)
    assert iops(run(host, same(1200, length=4096), 64)) == pytest.approx(10_000, rel=0.05)
    assert iops(run(host, same(1200, length=65_536), 64)) == pytest.approx(1000, rel=0.05)


def test_overhead_adds_latency_but_does_not_limit_iops():
    host = HostParameters(overhead_ns=17_000)
    facts = run(host, same(1000), 10)
    assert {fact.done_ns - fact.issue_ns for fact in facts} == {67_000}


def test_latency_includes_the_wait_at_the_host():
    host = HostParameters(max_iops=1000)
    facts = run(host, same(5), mode=Replay.OPEN)
    assert [fact.done_ns - fact.issue_ns for fact in facts] == [
        50_000 + 1_000_000 * turn for turn in range(5)
    ]


def test_flushes_and_discards_count_towards_the_iops_cap():
    host = HostParameters(max_iops=1000, max_bandwidth=1)
    facts = run(host, [Request(0, op, 0, 0) for op in (Op.FLUSH, Op.DISCARD, Op.READ)] * 2, 6)
    assert facts[-1].done_ns == 50_000 + 5 * 1_000_000


def test_the_lower_cap_of_host_and_volume_limits_the_load():
    device = volume([LimitParameters(BOTH, 2**62, 2000)])
    facts = run(HostParameters(max_iops=5000), same(1200), 32, replace(device))
    assert iops(facts) == pytest.approx(2000, rel=0.05)
    facts = run(HostParameters(max_iops=500), same(1000), 32, device)
    assert iops(facts) == pytest.approx(500, rel=0.05)


def test_scenario_and_options_set_the_host():
    site = Scenario.loads('[host]\nmax_iops = 23_000\nmax_bandwidth = "300MB/s"\n')
    assert (site.host.max_iops, site.host.max_bandwidth, site.host.overhead_ns) == (
        23_000,
        300_000_000,
        0,
    )
    changed = site.with_options(max_iops=10, host_overhead="20us")
    assert (changed.host.max_iops, changed.host.overhead_ns) == (10, 20_000)


def test_a_controller_holds_completions_back_while_many_come():
    """One at a time, 50 us each: six are counted in 280 us, and one is held, as it comes alone."""
    host = HostParameters(hold_ns=120_000, hold_from=5, hold_within_ns=280_000)
    facts = run(host, same(70), 1, volume(latency=(50_000,)))
    took = [fact.done_ns - fact.issue_ns for fact in facts]
    assert took == ([50_000] * 6 + [170_000]) * 10


def test_a_controller_goes_on_while_each_interrupt_delivers_several():
    host = HostParameters(hold_ns=120_000, hold_from=5, hold_within_ns=280_000)
    facts = run(host, same(80), 4, volume(latency=(50_000,)))
    took = [fact.done_ns - fact.issue_ns for fact in facts]
    assert took == [50_000] * 24 + [170_000] * 56


def test_few_completions_are_delivered_at_once():
    host = HostParameters(hold_ns=120_000, hold_from=5, hold_within_ns=280_000)
    facts = run(host, same(80), 1, volume(latency=(75_000,)))
    assert {fact.done_ns - fact.issue_ns for fact in facts} == {75_000}
    burst = [replace(one, arrival_ns=turn) for turn, one in enumerate(same(8))]
    later = [replace(same(1)[0], arrival_ns=SECOND)]
    facts = run(host, burst + later, mode=Replay.OPEN, device=volume(latency=(75_000,)))
    assert {fact.done_ns - fact.issue_ns for fact in facts} == {75_000}
