"""Several concurrent closed loops: engine and reference agree, and each loop follows its rules."""

import os
from dataclasses import replace
from itertools import pairwise

import numpy as np
from engine import facts_of
from engine import machine as machine_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scenarios import scenarios

from hybridsim.engine import loops
from hybridsim.engine.machine import Run
from hybridsim.foundation.codes import Level, Mode, Op, Replay
from hybridsim.reference import (
    CacheParameters,
    JobParameters,
    Request,
    SourceParameters,
    SsdParameters,
    TierParameters,
    simulate,
)
from hybridsim.requests.jobs import JobBatch, Jobs

relaxed = settings(
    max_examples=int(os.environ.get("HYBRIDSIM_EXAMPLES", "40")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
MS = 10**6


class Fed:
    """Supplies the requests of each job in batches."""

    def __init__(self, scenario, piece):
        self.jobs = [
            [each for each in scenario.requests if each.stream == job]
            for job in range(len(scenario.source.jobs))
        ]
        self.supplied = [0] * len(self.jobs)
        self.piece = piece

    def batch(self, before):
        """Return the next batch: the rest of the previous one, and more requests of each job."""
        rows, following, ends, numbers, last = [], [], [], [], []
        for job, requests in enumerate(self.jobs):
            left = 0 if before is None else int(before.end[job] - before.next[job])
            first = self.supplied[job] - left
            self.supplied[job] = min(len(requests), self.supplied[job] + self.piece)
            following.append(len(rows))
            rows += requests[first : self.supplied[job]]
            ends.append(len(rows))
            numbers.append(first)
            last.append(self.supplied[job] == len(requests))
        columns = [
            [each.op | (each.flags if each.op == Op.WRITE else 0) for each in rows],
            *([getattr(each, name) for each in rows] for name in ("offset", "length", "stream")),
            *([getattr(each, name) for each in rows] for name in ("arrival_ns", "think_ns")),
            [each.may_pause for each in rows],
            following, ends, numbers, last,
        ]  # fmt: skip
        kinds = [np.uint8, *[np.int64] * 5, np.uint8, *[np.int64] * 3, np.uint8]
        return JobBatch._make(np.array(*each) for each in zip(columns, kinds))


def run(scenario, interpreted=True, piece=10**6):
    """Run jobs on the engine; return their facts and the finished machine."""
    source = Jobs.new(scenario.source.jobs)
    plain = replace(scenario, source=SourceParameters(Replay.CLOSED))
    going = Run(machine_of(plain)._replace(source=source), interpreted=interpreted)
    fed = Fed(scenario, piece)
    batch = fed.batch(None)
    going.feed(batch)
    facts = []
    while True:
        status, some = going.advance(loops.NEVER)
        if some is not None:
            facts += facts_of(some)
        elif status == loops.NEEDS_BATCH:
            batch = fed.batch(batch)
            going.feed(batch)
        else:
            return facts + facts_of(going.facts.drained()), going.machine


@st.composite
def jobs(draw):
    depth = draw(st.sampled_from([1, 1, 2, 3, 8]))
    return (
        {
            "depth": depth,
            "low": draw(st.just(depth) | st.integers(0, depth)),
            "reap_min": draw(st.sampled_from([1, 1, 2, 9])),
            "reap_max": draw(st.sampled_from([1, 2, 100])),
            "delay_ns": draw(st.sampled_from([0, 0, 10**6, 10**8])),
            "run_ns": draw(st.sampled_from([0, 0, 0, 10**7, 10**9])),
        }
        | draw(st.just({}) | searches())
        | draw(st.just({}) | pauses())
    )


@st.composite
def pauses(draw):
    """Draw the pauses of a job."""
    return {
        "pause_ns": draw(st.sampled_from([5, 10**6, 10**8])),
        "pause_after": draw(st.integers(0, 5)),
        "counts_issues": draw(st.sampled_from([0, 0, 1])),
        "pause_every_ns": draw(st.sampled_from([0, 0, 10**6, 3 * 10**7])),
        "ramp_ns": draw(st.sampled_from([0, 0, 10**7])),
    }


@st.composite
def searches(draw):
    """Draw settings with which a job searches its depth, or ends after a slow request."""
    return {
        "depth": draw(st.sampled_from([1, 3, 8, 9])),
        "low": 9,
        "ramp_ns": draw(st.sampled_from([0, 0, 10**7])),
        "limit_read_ns": draw(st.sampled_from([0, 0, 3 * 10**7])),
        "limit_write_ns": draw(st.sampled_from([0, 0, 10**7])),
        "limit_trim_ns": draw(st.sampled_from([0, 0, 0, 10**6])),
        "target_ns": draw(st.sampled_from([0, 10**5, 4 * 10**6, 2 * 10**7, 10**9])),
        "window_ns": draw(st.sampled_from([0, 10**5, 10**7, 10**8])),
        "share": draw(st.sampled_from([10**6, 10**6, 9 * 10**5, 6 * 10**5])),
        "keeps_on": draw(st.sampled_from([0, 0, 1])),
    }


def depend(draw, parameters):
    """Let jobs wait for earlier ones, end others, and share flows."""
    is_used = draw(st.sampled_from([False, True]))
    for number, each in enumerate(parameters if is_used else []):
        each.set = draw(st.just(number) | st.integers(0, number))
        each.after = draw(st.just(-1) | st.integers(-1, number - 1))
        each.ends = draw(st.sampled_from([0, 0, 0, 1, 2, 3]))
        each.kin = draw(st.integers(0, 1))
        each.weight = draw(st.sampled_from([0, 1, 1, 3, 10]))
        each.flow = draw(st.integers(0, 1))
        each.flow_sleep_ns = draw(st.sampled_from([0, 0, 10**6, 777]))
    for number, each in enumerate(parameters):
        if each.after == each.set or (each.after >= 0 and not set_before(parameters, number)):
            each.after = -1  # no job waits for itself, nor for a later one


def set_before(parameters, number):
    """Return whether all jobs of the set that a job waits for are before it."""
    after = parameters[number].after
    return all(at < number for at, each in enumerate(parameters) if each.set == after)


@st.composite
def loads(draw):
    """Draw a machine, and its requests distributed to jobs in groups."""
    scenario = draw(scenarios())
    parameters = [JobParameters(**each) for each in draw(st.lists(jobs(), min_size=1, max_size=4))]
    group = 0
    for each in parameters[1:]:
        group += draw(st.sampled_from([0, 0, 1]))
        each.group = group
    depend(draw, parameters)
    due = [0] * len(parameters)
    interval_ns = draw(st.sampled_from([0, 0, 10**4, 10**7]))
    think_ns = draw(st.sampled_from([0, 0, 5, 10**6]))
    every = draw(st.integers(1, 5))
    requests = []
    for i, request in enumerate(scenario.requests):
        job = i * 7 % 11 % len(parameters)
        due[job] += interval_ns
        pause = think_ns if i % every == 0 else 0
        requests.append(
            replace(request, arrival_ns=due[job], stream=job, think_ns=pause, may_pause=i % 7 != 3)
        )
    source = SourceParameters(Replay.CLOSED, jobs=parameters)
    return replace(scenario, requests=requests, source=source)


@relaxed
@given(loads())
def test_engine_equals_reference(scenario):
    facts, _ = run(scenario)
    assert facts == scenario.run().facts


@relaxed
@given(loads(), st.integers(1, 7))
def test_batch_sizes_do_not_change_the_facts(scenario, piece):
    assert run(scenario, piece=piece)[0] == run(scenario)[0]


# The rules on an SSD that reads 4 KiB in a millisecond, a limited number at a time.


def issued_ms(requests, *parameters, dies=64):
    """Return the issue times of the requests in milliseconds, by job."""
    device = SsdParameters(
        dies=dies, unit_bytes=4096, command_ns=0, interval_ns=0, read_ns=MS, program_ns=MS,
        scatter_ns=0, suspend_ns=0, write_ns=0, buffer_ns=0, link_bytes_per_s=2**40,
        capacity_bytes=1 << 30, flush_ns=5 * MS, is_protected=0,
    )  # fmt: skip
    tier = TierParameters(Level.STRIPE, 1, 65536, device, 1 << 30)
    cache = CacheParameters(4096, 0, Mode.READ_ONLY, 0, 1, ("always",))
    source = SourceParameters(Replay.CLOSED, jobs=list(parameters))
    facts = simulate(requests, source, cache, tier, None).facts
    issued = [[] for _ in parameters]
    for fact in sorted(facts, key=lambda fact: fact.number):
        issued[fact.number % len(parameters)].append(round(fact.issue_ns / MS, 1))
    return issued


def reads(count, job=0, due_ms=0, think_ms=0):
    """Return reads that are due in sequence, the first at 0."""
    return [
        Request(i * due_ms * MS, Op.READ, 4096 * i, 4096, job, think_ns=think_ms * MS * (i > 0))
        for i in range(count)
    ]


def test_each_job_keeps_its_own_depth():
    both = reads(4) + reads(4, job=1)
    parameters = JobParameters(depth=2, low=2), JobParameters(depth=4, low=4)
    assert issued_ms(both, *parameters) == [[0, 0, 1, 1], [0, 0, 0, 0]]


def test_a_group_begins_when_all_earlier_groups_are_complete():
    both = reads(3) + reads(2, job=1)
    parameters = JobParameters(), JobParameters(group=1, delay_ns=10 * MS)
    assert issued_ms(both, *parameters) == [[0, 1, 2], [13, 14]]


def test_a_request_is_issued_neither_before_its_due_time_nor_after_the_run():
    job = JobParameters(depth=4, low=4, run_ns=25 * MS)
    assert issued_ms(reads(9, due_ms=10), job) == [[0, 10, 20]]


def test_think_time_begins_when_all_requests_are_complete():
    job = JobParameters(depth=4, low=4)
    assert issued_ms(reads(4, think_ms=3), job) == [[0, 4, 8, 12]]


def test_a_job_pauses_after_a_number_of_completions_that_it_has_reaped():
    """As measured with fio 3.33: with blocks of 5 at depth 8 it pauses after 12, 13, 24, 25."""
    job = JobParameters(depth=8, low=8, pause_ns=1000 * MS, pause_after=5)
    (issued,) = issued_ms(reads(40), job)
    pauses = [at + 1 for at, (one, other) in enumerate(pairwise(issued)) if other - one > 999]
    assert pauses == [12, 13, 24, 25, 36, 37]


def test_a_job_pauses_after_a_number_of_issues():
    job = JobParameters(depth=8, low=8, pause_ns=1000 * MS, pause_after=5, counts_issues=1)
    (issued,) = issued_ms(reads(40), job)
    pauses = [at + 1 for at, (one, other) in enumerate(pairwise(issued)) if other - one > 999]
    assert pauses == [5, 10, 15, 20, 25, 30, 35]


def test_a_job_counts_anew_after_its_ramp_but_pauses_only_once_it_exceeds_the_count_before():
    job = JobParameters(pause_ns=3 * MS, ramp_ns=9 * MS)
    assert issued_ms(reads(8), job) == [[0, 4, 8, 12, 13, 14, 15, 19]]


def test_a_job_is_over_when_its_last_pause_is():
    both = reads(2) + reads(1, job=1)
    job = JobParameters(pause_ns=10 * MS)
    assert issued_ms(both, job, JobParameters(group=1)) == [[0, 11], [22]]
    assert issued_ms(both, replace(job, run_ns=5 * MS), JobParameters(group=1)) == [[0], [11]]


def test_a_job_whose_next_request_is_not_due_within_its_run_is_over_at_the_end_of_the_run():
    both = reads(9, due_ms=10) + reads(1, job=1)
    job = JobParameters(run_ns=25 * MS)
    assert issued_ms(both, job, JobParameters(group=1)) == [[0, 10, 20], [25]]


def test_a_job_may_drain_its_queue_before_it_issues_more():
    job = JobParameters(depth=4, low=0)
    assert issued_ms(reads(8), job, dies=2) == [[0, 0, 0, 0, 2, 2, 2, 2]]


def test_completions_are_reaped_in_batches():
    job = JobParameters(depth=4, low=4, reap_min=3, reap_max=3)
    assert issued_ms(reads(7), job, dies=1) == [[0, 0, 0, 0, 3, 3, 3]]


def issued_in_each_ms(target_ms, window_ms, **others):
    """Return reads issued per millisecond during a depth search; the device serves 4 at a time."""
    job = JobParameters(
        depth=64, low=64, target_ns=round(target_ms * MS), window_ns=window_ms * MS, **others
    )
    (issued,) = issued_ms(reads(400), job, dies=4)
    return [issued.count(ms) for ms in range(round(issued[-1]) + 1)]


# Depths 1, 2, 4; 8 is too high, so are 6 and 5: the queue drains before each change.
UP_AND_DOWN = [1] * 4 + [2] * 4 + [4] * 4 + [8, 4, 4, 4, 0, 6, 4, 4, 4, 0, 5, 4, 4, 4, 0]


def test_a_depth_search_doubles_and_then_bisects():
    assert issued_in_each_ms(1.5, 4, share=900_000) == UP_AND_DOWN + [4] * 8


def test_at_100_percent_late_completions_also_lower_the_depth_while_it_drains():
    # 8 of 12 requests at 4 servers are late: depths 6, 5, 4, 3, 2, 1 and no lower, as in fio.
    assert issued_in_each_ms(1.5, 4) == UP_AND_DOWN[:14]


def test_the_depth_is_at_least_one():
    assert issued_in_each_ms(0.5, 4) == [1]
    assert issued_in_each_ms(0.5, 4, share=900_000) == [1] * 400


def test_a_continuous_search_tries_higher_depths_from_time_to_time():
    issued = issued_in_each_ms(1.5, 4, share=900_000, keeps_on=1)
    assert sum(issued) == 400
    assert max(issued[35:]) == 5


def test_a_request_beyond_max_latency_ends_the_job():
    job = JobParameters(depth=4, low=4, limit_read_ns=round(2.5 * MS))
    assert issued_ms(reads(40), job, dies=1) == [[0, 0, 0, 0, 1, 2]]


def test_a_job_waits_for_its_flush():
    load = [Request(0, Op.WRITE, 0, 4096), Request(0, Op.FLUSH, 0, 0), *reads(1)]
    issued = issued_ms(load, JobParameters(depth=8, low=8))
    assert issued[0][:2] == [0, 0]
    assert issued[0][2] >= 5


def test_a_job_begins_when_the_jobs_that_it_waits_for_are_complete():
    load = reads(3) + reads(5, job=1) + reads(1, job=2) + reads(1, job=3)
    parameters = [
        JobParameters(set=0),
        JobParameters(set=0),
        JobParameters(set=1, after=0, delay_ns=10 * MS),
        JobParameters(set=2, group=1),
    ]
    assert issued_ms(load, *parameters) == [[0, 1, 2], [0, 2, 3, 4, 5], [16], [17]]


def test_the_end_of_a_job_may_end_its_group_or_all_jobs():
    load = reads(2) + reads(9, job=1) + reads(4, job=2)
    of_group = JobParameters(ends=2), JobParameters(), JobParameters(group=1)
    assert issued_ms(load, *of_group) == [[0, 1], [0, 2], [3, 4, 5, 6]]
    of_kin = JobParameters(ends=1, kin=1), JobParameters(), JobParameters(group=1, kin=1)
    assert issued_ms(load, *of_kin) == [[0, 1], [0, 2, 3, 4, 5, 6, 7, 8, 9], []]
    of_all = JobParameters(ends=3), JobParameters(), JobParameters(group=1)
    assert issued_ms(load, *of_all) == [[0, 1], [0, 2], []]


def test_jobs_of_a_flow_issue_requests_in_proportion_to_their_weights():
    load = reads(60) + reads(60, job=1)
    light, heavy = issued_ms(load, JobParameters(weight=1), JobParameters(weight=3))
    first_ms = 16
    assert abs(sum(each < first_ms for each in heavy) - 3 * sum(e < first_ms for e in light)) <= 3
    assert len(light) == len(heavy) == 60  # alone, the remaining job is not held up


def test_a_job_that_its_flow_holds_up_tries_again_after_its_flow_sleep():
    load = reads(4) + reads(60, job=1)
    light = JobParameters(weight=1, flow_sleep_ns=7 * MS)
    slow, _ = issued_ms(load, light, JobParameters(weight=3))
    quick, _ = issued_ms(load, replace(light, flow_sleep_ns=0), JobParameters(weight=3))
    assert quick[-1] < slow[-1]
    assert max(later - each for each, later in pairwise(slow)) >= 7
