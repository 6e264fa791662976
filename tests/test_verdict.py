"""Made-up machines, and what an admin is told about them."""

import numpy as np
import pytest
from fakes import SCENARIO, TRACE, Load, result

from hybridsim.foundation.codes import Reason


def rising(share):
    return 0.9 * share


def never(share):
    return 0 * share


QUICK = Load(seconds=600, iops=300, hit_ratio=lambda share: 0.9 * (1 - np.exp(-share * 20)))
COLD_ONLY = {Reason.COLD: 1}


def text(verdict):
    advice = [f"{one.text} {one.command}" for one in verdict.advice]
    return "\n".join([verdict.headline, *verdict.reasons, *advice])


def test_a_cache_that_makes_reads_much_faster_is_worth_it():
    found = result(QUICK)
    verdict = found.verdict
    assert verdict.answer == "yes"
    assert verdict.headline.startswith("Once warm, a read takes ")
    gain = found.phases["none"].figures.reads.mean_ns / found.phases["warm"].figures.reads.mean_ns
    assert verdict.confidence["mean_read_gain"] == gain > 8
    assert f"({gain:.0f} times less)" in verdict.headline
    assert "p99 of the reads" in text(verdict)
    assert not verdict.advice


def test_data_that_is_touched_once_is_no_case_for_a_cache():
    found = result(QUICK._replace(hit_ratio=never, misses=COLD_ONLY, cached_disk_ns=9_000_000))
    assert found.verdict.answer == "no"
    assert "touched once" in found.verdict.headline


def test_a_cache_that_never_gets_going_changes_little():
    load = QUICK._replace(
        hit_ratio=never, misses={Reason.NOT_HOT: 1}, bypass=0, cached_disk_ns=9_000_000
    )
    verdict = result(load).verdict
    assert verdict.answer == "no"
    assert "changes little" in verdict.headline


def test_a_small_gain_is_a_matter_of_price():
    load = QUICK._replace(
        hit_ratio=lambda share: np.minimum(share * 9, 0.2),
        misses={Reason.NOT_HOT: 1},
        cached_disk_ns=9_000_000,
    )
    verdict = result(load).verdict
    assert verdict.answer == "unsure"
    assert "price" in verdict.headline


def test_sequential_reads_are_left_to_the_disks():
    load = QUICK._replace(hit_ratio=never, bypass=0.9, cached_disk_ns=9_000_000)
    verdict = result(load).verdict
    assert verdict.answer == "no"
    assert "90% of the reads are sequential" in text(verdict)
    assert "explain 'sequential cutoff'" in text(verdict)


def test_too_short_a_capture_says_how_long_it_should_have_been():
    load = QUICK._replace(
        hit_ratio=lambda share: 0.3 * share,
        misses={Reason.NOT_HOT: 1},
        cached_disk_ns=9_000_000,
    )
    found = result(load)
    assert found.verdict.answer == "unsure"
    assert "too short" in found.verdict.headline
    assert found.warm_up.needed_ns > 600 * 10**9
    assert "sudo blktrace -d /dev/DISK -w " in text(found.verdict)


def test_a_gain_while_the_hit_ratio_still_rises_is_a_lower_bound():
    verdict = result(QUICK._replace(hit_ratio=rising)).verdict
    assert verdict.answer == "yes"
    assert verdict.headline.startswith("At the end of the run, ")
    assert "lower bound" in text(verdict)


def test_disks_that_cannot_keep_up_have_no_latency():
    found = result(QUICK._replace(backlog_ns_per_s=20_000_000))
    assert found.phases["none"].saturated
    assert found.verdict.answer == "yes"
    assert "disks alone cannot keep up" in found.verdict.headline
    assert "busy" in found.verdict.headline
    assert "times" not in text(found.verdict)
    assert found.verdict.confidence["mean_read_gain"] is None
    assert "hybridsim replay db01.blk --mode think" in text(found.verdict)


def test_without_completions_think_time_is_not_recommended():
    trace = {**TRACE, "has_completions": False, "name": "my trace"}
    verdict = result(QUICK._replace(backlog_ns_per_s=20_000_000), trace=trace).verdict
    assert "--mode think" not in text(verdict)
    assert "hybridsim replay 'my trace' --mode closed" in text(verdict)


def test_two_saturated_machines_cannot_be_told_apart():
    load = QUICK._replace(backlog_ns_per_s=20_000_000, cached_backlog_ns_per_s=10_000_000)
    verdict = result(load).verdict
    assert verdict.answer == "unsure"
    assert "neither alone nor with the cache" in verdict.headline


def test_a_cache_that_overloads_the_disks_is_refused():
    verdict = result(QUICK._replace(cached_backlog_ns_per_s=20_000_000)).verdict
    assert verdict.answer == "no"
    assert "no longer do" in verdict.headline


def test_a_closed_loop_is_never_saturated():
    scenario = {**SCENARIO, "mode": "closed"}
    found = result(QUICK._replace(backlog_ns_per_s=20_000_000), scenario=scenario)
    assert not found.phases["none"].saturated
    assert found.warm_up.measure == "IOPS"


@pytest.mark.parametrize("mode", ["read-only", "write-through"])
def test_writes_are_explained(mode):
    verdict = result(QUICK._replace(writes=0.8), scenario={**SCENARIO, "cache_mode": mode}).verdict
    assert f"A {mode} cache sends each to the disks" in text(verdict)
    assert verdict.answer == "yes"


def test_a_load_without_reads_needs_no_cache():
    verdict = result(QUICK._replace(writes=1.0)).verdict
    assert verdict.answer == "no"
    assert "no reads" in verdict.headline


def test_a_cache_that_is_too_small_should_be_larger():
    load = QUICK._replace(hit_ratio=lambda s: 0.6 + 0 * s, misses={Reason.EVICTED: 1})
    assert "double `size`" in text(result(load).verdict)
    scenario = {**SCENARIO, "cache_bytes": 64 << 30, "file": "site.toml"}
    command = "hybridsim replay db01.blk --scenario site.toml --cache-size 128GiB"
    assert command in text(result(load, scenario=scenario).verdict)


def test_too_few_reads_are_no_grounds():
    assert result(Load(seconds=1, iops=1, writes=0.0)).verdict.answer == "unsure"
    verdict = result(Load(seconds=120, iops=1)).verdict
    assert verdict.answer == "unsure"
    assert "too short" in verdict.headline


def test_an_option_set_by_hand_stays_in_the_command():
    load = QUICK._replace(hit_ratio=lambda s: 0.6 + 0 * s, misses={Reason.EVICTED: 1})
    options = ["--members 8", "--cache-size 64GiB"]
    scenario = {**SCENARIO, "cache_bytes": 64 << 30, "options": options}
    command = "hybridsim replay db01.blk --members 8 --cache-size 128GiB"
    assert command in text(result(load, scenario=scenario).verdict)


def test_the_command_names_the_same_trace():
    load = QUICK._replace(hit_ratio=lambda s: 0.6 + 0 * s, misses={Reason.EVICTED: 1})
    trace = {**TRACE, "name": "a b, c", "arguments": ["a b", "c", "--device", "all"]}
    scenario = {**SCENARIO, "cache_bytes": 64 << 30}
    command = "hybridsim replay 'a b' c --device all --cache-size 128GiB"
    assert command in text(result(load, trace, scenario).verdict)


@pytest.mark.parametrize(
    ("mode", "writes", "is_told"),
    [("write-through", 0.45, True), ("write-through", 0.3, False), ("write-back", 0.45, False)],
)
def test_many_writes_speak_for_write_back(mode, writes, is_told):
    told = text(
        result(QUICK._replace(writes=writes), TRACE, {**SCENARIO, "cache_mode": mode}).verdict
    )
    assert ("--cache-mode write-back" in told) == is_told


def test_what_could_be_changed_in_the_scenario_is_named():
    for reason, word in ((Reason.BUSY, "max_fills"), (Reason.NOT_HOT, "--admission always")):
        load = QUICK._replace(hit_ratio=lambda s: 0.3 + 0 * s, misses={reason: 1})
        assert word in text(result(load).verdict)


def test_pages_lost_to_writes_speak_for_write_through():
    load = QUICK._replace(hit_ratio=lambda s: 0.6 + 0 * s, misses={Reason.OVERWRITTEN: 1})
    assert "write-through" in text(result(load).verdict)


def test_a_cache_that_costs_more_than_it_saves_is_called_that():
    load = QUICK._replace(hit_ratio=lambda share: 0.3 * (1 - np.exp(-share * 20)))
    verdict = result(load._replace(cached_disk_ns=20_000_000)).verdict
    assert verdict.answer == "no"
    assert verdict.headline.startswith("It slows reads down")
