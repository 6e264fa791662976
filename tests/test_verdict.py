"""Made-up machines, and what an admin reads about them."""

import numpy as np
import pytest
from fakes import SCENARIO, TRACE, Load, result

from hybridsim.foundation.codes import Reason
from hybridsim.foundation.wording import latency, ranged, span


def rising(share):
    return 0.9 * share


def never(share):
    return 0 * share


QUICK = Load(seconds=600, iops=300, hit_ratio=lambda share: 0.9 * (1 - np.exp(-share * 20)))
COLD_ONLY = {Reason.COLD: 1}
# In every fifth part of the time nearly all reads hit, else none: 1.15 times on average.
UNDECIDED = QUICK._replace(
    iops=20, hit_ratio=lambda share: np.where((share * 40).astype(int) % 5 == 2, 0.95, 0),
    misses={Reason.NOT_HOT: 1}, cached_disk_ns=9_000_000,
)  # fmt: skip


def text(verdict):
    advice = [f"{one.text} {one.command}" for one in verdict.advice]
    return "\n".join([verdict.headline, *verdict.reasons, *advice])


def test_a_cache_that_makes_reads_much_faster_is_worth_it():
    results = result(QUICK)
    verdict = results.verdict
    assert verdict.answer == "yes"
    pair = results.judgement.judged
    gain = pair.plain.both.total_ns / pair.cached.both.total_ns
    assert verdict.confidence["gain"] == pytest.approx(gain)
    assert verdict.confidence["low"] < gain < verdict.confidence["high"]
    known = [results.judgement.means[side]["all"] for side in ("none", "cached")]
    assert [each.value for each in known] == [pair.plain.both.mean_ns, pair.cached.both.mean_ns]
    assert all(each.low < each.value < each.high for each in known)
    before, after = (ranged(each.value, each.low, each.high) for each in known)
    assert verdict.headline.startswith(f"A request takes {after} on average instead of {before}")
    later = results.judgement.forecast
    assert f": {gain:.1f} times less; forecast {later.gain:.2f}, 90%: {later.low:.2f} to " in (
        verdict.headline
    )
    for which in ("reads", "writes"):
        before, after = (getattr(each, which) for each in (pair.plain, pair.cached))
        known = (results.judgement.means[side][which[:-1]] for side in ("cached", "none"))
        now, then = (ranged(each.value, each.low, each.high) for each in known)
        means = f"take {now} on average instead of {then}"
        assert f"{which.capitalize()} {means}; p99 is {latency(after.percentile(99))}" in text(
            verdict
        )
    assert not verdict.advice


def test_a_yes_that_may_be_wrong_leads_to_a_search_among_all_caches():
    # All hits fall into half of the minutes: on average the requests take two thirds of the time.
    varies = QUICK._replace(
        iops=20, hit_ratio=lambda share: np.where((share * 40).astype(int) % 2 == 0, 0.6, 0),
        misses={Reason.NOT_HOT: 1}, cached_disk_ns=9_000_000,
    )  # fmt: skip
    verdict = result(
        varies, scenario={**SCENARIO, "options": ["--cache bcache", "--mode open"]}
    ).verdict
    assert (verdict.answer, verdict.is_certain) == ("yes", False)
    assert verdict.advice[0].text == (
        "Another may gain more: let hybridsim advise search all kinds of cache."
    )
    assert verdict.advice[0].command == f"hybridsim advise {TRACE['name']} --mode open"


def test_data_that_is_touched_once_is_no_case_for_a_cache():
    results = result(QUICK._replace(hit_ratio=never, misses=COLD_ONLY, cached_disk_ns=9_000_000))
    assert results.verdict.answer == "no"
    assert "of the reads touch data for the first time" in text(results.verdict)


def test_no_names_the_machine_that_it_is_about():
    load = QUICK._replace(
        hit_ratio=never, misses={Reason.NOT_HOT: 1}, bypass=0, cached_disk_ns=9_000_000
    )
    scenario = {**SCENARIO, "cache": "64 GiB of an SSD, read-only"}
    verdict = result(load, scenario=scenario).verdict
    assert verdict.answer == "no"
    assert verdict.headline.startswith(
        "Not worth its cost: 64 GiB of an SSD, read-only. A request takes 9."
    )


@pytest.mark.parametrize(("hits", "answer"), [(0.1, "no"), (0.3, "yes")])
def test_the_whole_work_decides_reads_and_writes(hits, answer):
    """Of 70 % reads some no longer cost 9.1 ms: 0.1 of them gain 1.07 times, 0.3 gain 1.26."""
    load = QUICK._replace(
        hit_ratio=lambda share: hits + 0 * share,
        misses={Reason.NOT_HOT: 1},
        cached_disk_ns=9_000_000,
    )
    results = result(load)
    assert results.verdict.confidence["gain"] == pytest.approx(1 / (1 - 0.7 * hits), rel=0.01)
    assert results.verdict.answer == answer


def test_sequential_reads_are_left_to_the_disks():
    load = QUICK._replace(hit_ratio=never, bypass=0.9, cached_disk_ns=9_000_000)
    verdict = result(load).verdict
    assert verdict.answer == "no"
    assert "90% of the reads are sequential" in text(verdict)
    assert "explain 'sequential cutoff'" in text(verdict)


def test_an_unsure_answer_says_how_long_to_record():
    results = result(UNDECIDED)
    assert results.judgement.low < 1.15 <= results.judgement.high
    assert results.verdict.answer == "unsure"
    assert results.verdict.headline.startswith("Not yet: record ")
    minutes = -(-results.judgement.more_ns // 60_000_000_000)
    command = f"sudo blktrace -d /dev/DISK -w {3600 + 60 * minutes} "  # the trace tells an hour
    assert command in text(results.verdict)
    duration = span((3600 + 60 * minutes) * 10**9)
    assert results.verdict.action.startswith(f"Record {duration} in total before you decide")


def test_more_of_a_generated_load_is_generated_not_captured():
    verdict = result(UNDECIDED, trace={**TRACE, "format": "workload"}).verdict
    assert verdict.headline.startswith("Not yet: generate ")
    assert "blktrace" not in text(verdict)
    assert verdict.action.startswith("Generate ")
    assert "in total" in verdict.action
    assert not [each for each in verdict.advice if "total" in each.text]  # once


def test_the_verdict_on_a_machine_that_lost_its_cache_is_none_on_the_cache():
    condition = "with the SSD dead from 13 s on"
    verdict = result(QUICK).verdict.under(condition)
    assert verdict.headline.startswith("With the SSD dead from 13 s on: A request ")
    assert "replay without --event" in verdict.action
    assert not verdict.advice


def test_a_gain_while_the_hit_ratio_still_rises_is_a_lower_bound():
    verdict = result(QUICK._replace(hit_ratio=rising)).verdict
    assert verdict.answer == "yes"
    assert "lower bound" in text(verdict)


def test_disks_that_cannot_keep_up_have_no_latency():
    results = result(QUICK._replace(backlog_ns_per_s=20_000_000))
    assert results.phases["none"].saturated
    assert results.verdict.answer == "yes"
    assert "disks alone cannot keep up" in results.verdict.headline
    assert "busy" in results.verdict.headline
    assert "times" not in text(results.verdict)
    assert results.verdict.confidence["mean_read_gain"] is None
    assert "hybridsim replay db01.blk --mode think" in text(results.verdict)


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
    assert "with the cache (100% busy) they do not" in verdict.headline


def test_a_closed_loop_is_never_saturated():
    scenario = {**SCENARIO, "mode": "closed"}
    results = result(QUICK._replace(backlog_ns_per_s=20_000_000), scenario=scenario)
    assert not results.phases["none"].saturated
    assert results.warm_up.measure == "IOPS"


@pytest.mark.parametrize("mode", ["read-only", "write-through"])
def test_writes_are_explained(mode):
    verdict = result(QUICK._replace(writes=0.8), scenario={**SCENARIO, "cache_mode": mode}).verdict
    assert f"A {mode} cache sends each to the disks" in text(verdict)
    assert verdict.answer == "yes"


def test_a_load_without_reads_gains_nothing_by_a_cache_that_serves_reads():
    verdict = result(QUICK._replace(writes=1.0, cached_disk_ns=9_000_000)).verdict
    assert verdict.answer == "no"
    assert "Writes take 9." in text(verdict)
    assert "Reads take" not in text(verdict)


def test_a_cache_that_is_too_small_should_be_larger():
    load = QUICK._replace(hit_ratio=lambda s: 0.6 + 0 * s, misses={Reason.EVICTED: 1})
    assert "double `size`" in text(result(load).verdict)
    scenario = {**SCENARIO, "cache_bytes": 64 << 30, "file": "site.toml"}
    command = "hybridsim replay db01.blk --scenario site.toml --cache-size 128GiB"
    assert command in text(result(load, scenario=scenario).verdict)


def test_too_few_reads_are_no_grounds():
    assert result(Load(seconds=1, iops=1, writes=0.0)).verdict.answer == "unsure"
    verdict = result(Load(seconds=36, iops=1)).verdict
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
    ("mode", "writes", "is_mentioned"),
    [("write-through", 0.45, True), ("write-through", 0.3, False), ("write-back", 0.45, False)],
)
def test_many_writes_speak_for_write_back(mode, writes, is_mentioned):
    advice = text(
        result(QUICK._replace(writes=writes), TRACE, {**SCENARIO, "cache_mode": mode}).verdict
    )
    assert ("--cache-mode write-back" in advice) == is_mentioned


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
    assert "more; forecast 0." in verdict.headline


def test_a_tail_that_gets_worse_while_the_mean_gets_better_is_in_the_sentence():
    """Nearly all hit; what does not takes 20 ms instead of 9, and is more than 1 in 100."""
    load = QUICK._replace(hit_ratio=lambda share: 0.9 + 0 * share, writes=0, bypass=0)
    verdict = result(load._replace(cached_disk_ns=20_000_000)).verdict
    assert verdict.answer == "yes"
    assert "but the slowest 1% get slower: " in verdict.headline


def test_phases_that_contradict_each_other_are_one_sentence():
    def after_a_third(share):
        return np.where(share < 1 / 3, 0.0, 0.9)

    load = QUICK._replace(hit_ratio=after_a_third, cached_disk_ns=9_000_000)
    advice = text(result(load).verdict)
    assert "The gain is 1.00 times while the cache fills, 2.6" in advice


def test_a_cache_that_is_not_steady_is_not_called_warm():
    """The hit ratio still rises at the end: the later phase is the last fifth, not a warm cache."""
    load = QUICK._replace(hit_ratio=lambda share: 0.9 * share, cached_disk_ns=9_000_000)
    results = result(load)
    assert not results.warm_up.steady
    advice = text(results.verdict)
    assert "times before the last fifth of the run, " in advice
    assert "full or warm" not in advice


def test_a_quiet_end_never_decides_alone():
    """1,000 requests a second for 80 s that gain 2.5 times, then 2 a second that gain nothing."""
    results = result_of_busy_then_quiet()
    last_fifth = results.cached.phase(96 * 10**9, 120 * 10**9).figures.reads
    same_alone = results.plain.phase(96 * 10**9, 120 * 10**9).figures.reads
    assert same_alone.mean_ns == last_fifth.mean_ns
    assert results.verdict.answer == "yes"


def result_of_busy_then_quiet():
    from fakes import collected, facts

    from hybridsim.answers.result import conclude
    from hybridsim.foundation.codes import Op, Path

    busy = np.arange(80_000, dtype=np.int64) * 1_000_000
    quiet = 80_000_000_000 + np.arange(80, dtype=np.int64) * 500_000_000
    issue = np.concatenate([busy, quiet])
    reads = np.full(len(issue), int(Op.READ))
    slow = np.full(len(issue), 10_000_000, np.int64)
    fast = np.where(issue < 80_000_000_000, 4_000_000, slow)
    plain = facts(issue, slow, reads, np.full(len(issue), Path.BYPASS), no_cache(issue))
    cached = facts(issue, fast, reads, np.full(len(issue), Path.MISS), cold(issue))
    return conclude(TRACE, SCENARIO, collected(cached), {}, collected(plain), {})


def no_cache(rows):
    return np.full(len(rows), int(Reason.NO_CACHE))


def cold(rows):
    return np.full(len(rows), int(Reason.COLD))


def test_the_confidence_has_the_gain_of_the_slowest_1_percent_of_the_reads():
    results = result(QUICK)
    phases = [results.phases[name].figures.reads for name in ("none", "warm")]
    before, after = (each.percentile(99) for each in phases)
    assert results.verdict.confidence["p99_read_gain"] == pytest.approx(before / after)
    assert before != phases[0].percentile(98) or after != phases[1].percentile(98)
