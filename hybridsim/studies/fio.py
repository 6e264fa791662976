"""Run jobs of fio on the machine of a scenario."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hybridsim.engine import loops
from hybridsim.engine.machine import Run
from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import Op, Path
from hybridsim.foundation.errors import ScenarioError, UsageError
from hybridsim.foundation.units import human_size
from hybridsim.requests.inflight import Facts
from hybridsim.requests.jobs import ASKING_FIRST, START_NS, Jobs
from hybridsim.requests.source import NEVER
from hybridsim.scenario import Scenario, building
from hybridsim.studies.runs import Sampler
from hybridsim.traces.trace import Trace
from hybridsim.workloads.fio.conditions import Monitor
from hybridsim.workloads.fio.job import SECOND, SIMULATED, Job, RealRun, again, opened
from hybridsim.workloads.fio.jobfile import Written, read
from hybridsim.workloads.fio.options import (
    ELSEWHERE,
    IDLE_ENGINES,
    IGNORED,
    SYNC_ENGINES,
    engine_of,
)
from hybridsim.workloads.fio.pattern import READ, Seeding
from hybridsim.workloads.fio.places import Laid, lay_out
from hybridsim.workloads.fio.reader import DEVICE_ZONE_BYTES
from hybridsim.workloads.fio.requests import Feeds
from hybridsim.workloads.fio.results import FioResult, Moment, Results, endings

TOO_DEEP = 1 << 20
RETRY_NS = 10_000_000  # until the next attempt to reload a busy cache
SEEDINGS = {"3.33": Seeding.V3_33, "newer": Seeding.CHAINED}
READS = {"hits": Path.HIT, "misses": Path.MISS, "bypasses": Path.BYPASS}
Progress = Callable[[int, int], None]  # requests done, simulated ns


def fio(
    written: Written | str,
    scenario: Scenario,
    runs: int = 1,
    progress: Progress = lambda done, now_ns: None,
    interpreted: bool = False,
    cached: bool = True,
    seeding: str = "3.33",
    real: RealRun = SIMULATED,
    interval_ns: int = 0,
    report: Callable[[FioResult], None] = lambda result: None,
    eta_ns: int = 0,
    eta: Callable[[Moment], None] = lambda moment: None,
    limit_ns: int = 0,
) -> FioResult:
    """Run the jobs of a job file or command line on the machine of a scenario.

    >>> site = Scenario.default().with_options(cache="none")
    >>> fio("--name=j --rw=randread --bs=4k --size=1m --iodepth=4", site).frame()["requests"][0]
    np.int64(256)

    All jobs are run `runs` times in sequence, and the cache stays warm.  `progress` is called with
    the progress, first at the start.  `interpreted` runs the loop as plain Python, for small jobs.
    Without `cached` the machine has no cache.  Offsets are those of fio 3.33, or with
    `seeding="newer"` those of later releases.  `real` are events of a real run to repeat: a cache
    that was stopped and started there is restarted warm, if its kind supports it.  `report` is
    called with the results so far each `interval_ns` of simulated time, if that is not 0, and `eta`
    with the state of the jobs each `eta_ns`.  With a `limit_ns` no process runs longer than that
    after its ramp_time, as if its runtime were no longer.  Raises
    UsageError for jobs that cannot be run, ScenarioError for an array too small for them.
    """
    if isinstance(written, str):
        written = read(shlex.split(written))
    once = [opened(job, Trace.read) for job in seeded(real.jobs(written), seeding)]
    if limit_ns:
        once = [
            replace(job, run_ns=min(job.run_ns or NEVER, limit_ns + job.ramp_ns)) for job in once
        ]
    capacity_bytes = scenario.backing.held_bytes
    laid = lay_out(once, capacity_bytes)
    jobs = [again(job, run, laid.jobs) for run in range(runs) for job in laid.jobs]
    laid = replace(laid, jobs=jobs)
    pages = scenario.cache.pages(laid.files_bytes) if cached else 0
    if laid.volume_bytes > capacity_bytes:
        raise ScenarioError(
            f"the files of these jobs take {human_size(laid.volume_bytes)}, but the array holds "
            f"{human_size(capacity_bytes)}: specify smaller files (size=), or more or larger drives"
        )
    volume_bytes = laid.volume_bytes
    if scenario.backing.capacity == "trace":  # files lie at the beginning of whole drives
        volume_bytes = capacity_bytes
    machine = building.machine(scenario, "closed", volume_bytes, pages)
    for job in jobs:
        if job.depth > TOO_DEEP:
            raise UsageError(f"job {job.name}: iodepth={job.depth} exceeds the maximum {TOO_DEEP}")
    loops_of_jobs = Jobs.new(jobs)
    feeds = Feeds(laid)
    results = Results(jobs, loops_of_jobs, feeds)
    run = Run(machine._replace(source=loops_of_jobs), interpreted=interpreted)
    run.machine.clock[0] = real.lead_ns
    watch = Watch(pages > 0, real.lead_ns)
    reload_ns = min(real.reload_ns, NEVER - real.lead_ns) + real.lead_ns
    monitor = Monitor(jobs, loops_of_jobs, real.lead_ns)
    for of_job, checked in zip(results.of_jobs, monitor.of_jobs):
        of_job.checked = [checked]
    cache_bytes = pages * scenario.cache.page_bytes
    cache = f"{human_size(cache_bytes)}, {scenario.cache.words}" if pages else "none"
    words = f"{scenario.words[0]}; cache: {cache}"

    def result(time_ns: int) -> FioResult:
        results.end()
        return FioResult(
            jobs, results.of_jobs, results.reported(), written, words,
            [*_notes(once, laid), *(note for each in results.of_jobs for note in endings(each))],
            time_ns - real.lead_ns, watch.counters(),
        )  # fmt: skip

    timers = [
        Status(interval_ns, real.lead_ns, lambda time_ns: report(result(time_ns))),
        Status(eta_ns, real.lead_ns, lambda time_ns: eta(results.moment(time_ns, real.lead_ns))),
    ]
    end_ns = _run(run, feeds, results, watch, monitor, timers, progress, reload_ns)
    for of_job, generated in zip(results.of_jobs, feeds.generated):
        of_job.generated = generated
    return result(end_ns)


@dataclass
class Status:
    """Reports of the results so far, each `interval_ns`; 0: none."""

    interval_ns: int
    begin_ns: int
    report: Callable[[int], None]

    def __post_init__(self) -> None:
        self.due_ns = self.begin_ns + self.interval_ns if self.interval_ns else NEVER

    def report_at(self, time_ns: int) -> None:
        """Report, and set the time of the next report."""
        self.due_ns = time_ns + self.interval_ns
        self.report(time_ns)


class Watch:
    """Samples of the cache's counters each second from `begin_ns` on, which is their time 0."""

    def __init__(self, has_cache: bool, begin_ns: int = 0) -> None:
        self._has_cache = has_cache
        self._begin_ns = begin_ns
        self._samples = Sampler(SECOND)
        self._reads = np.zeros(max(Path) + 1, np.int64)  # complete, by path

    @property
    def due_ns(self) -> int:
        """Time of the next sample in ns."""
        return self._begin_ns + self._samples.due_ns if self._has_cache else NEVER

    def add(self, facts: Facts) -> None:
        """Count reads by path."""
        reads = facts.path[facts.op == Op.READ]
        self._reads += np.bincount(reads, minlength=len(self._reads))

    def sample(self, time_ns: int, run: Run) -> None:
        """Sample the counters of the cache, if there is one."""
        if self._has_cache:
            paths = {name: int(self._reads[path]) for name, path in READS.items()}
            totals = run.machine.cache.totals()
            self._samples.take(time_ns - self._begin_ns, paths | totals)

    def counters(self) -> dict[str, Ints]:
        """Return the counters over time, by name; empty without a cache."""
        return self._samples.columns()


def _run(
    run: Run, feeds: Feeds, results: Results, watch: Watch, monitor: Monitor,
    timers: Sequence[Status], progress: Progress, reload_ns: int,
) -> int:  # fmt: skip
    """Run to the end; return the time of the last completion in ns."""
    done, end_ns = 0, run.now_ns
    progress(done, end_ns)
    watch.sample(run.now_ns, run)
    run.feed(feeds.batch())
    while True:
        status = min(timers, key=lambda timer: timer.due_ns)
        until_ns = min(watch.due_ns, reload_ns, monitor.due_ns, status.due_ns)
        outcome, facts = run.advance(until_ns)
        while facts is None and outcome == loops.NEEDS_BATCH and feeds.are_by_rates:
            run.feed(feeds.batch(*_asking(run)))  # one request: facts are taken when many are there
            outcome, facts = run.advance(until_ns)
        if facts is None:
            facts = run.facts.drained()
        if facts.used[0]:
            results.add(facts)
            watch.add(facts)
            monitor.add(facts)
            done += int(facts.used[0])
            end_ns = int(facts.done_ns[-1])
            progress(done, end_ns)
        if outcome == loops.REACHED and until_ns == reload_ns:
            reload_ns = NEVER if _reload(run) else until_ns + RETRY_NS
        elif outcome == loops.REACHED and until_ns == monitor.due_ns:
            monitor.check(until_ns)
        elif outcome == loops.REACHED and until_ns == status.due_ns:
            status.report_at(until_ns)
        elif outcome == loops.REACHED:
            watch.sample(until_ns, run)
        elif outcome == loops.NEEDS_BATCH:
            run.feed(feeds.batch(*_asking(run)))
        elif outcome == loops.FINISHED:
            watch.sample(end_ns, run)
            return end_ns


def _asking(run: Run) -> tuple[int, int]:
    """Return the index of the job that is out of requests, and the time since its start in ns."""
    jobs = run.machine.source
    assert isinstance(jobs, Jobs)
    job = int(jobs.asking[jobs.counts[ASKING_FIRST]])
    return job, max(run.now_ns - int(jobs.standing[job, START_NS]), 0)


def _reload(run: Run) -> bool:
    """Restart the cache, if its kind supports it; return False while it is busy."""
    cache = run.machine.cache
    if not hasattr(cache, "reloaded"):
        return True
    if cache.is_at_rest():
        run.machine = run.machine._replace(cache=cache.reloaded(run.now_ns))
        return True
    return False


def seeded(jobs: Sequence[Job], seeding: str) -> list[Job]:
    """Return jobs with the seeds of these releases of fio."""
    if seeding not in SEEDINGS:
        raise UsageError(f"--seeding={seeding}: specify {' or '.join(SEEDINGS)}")
    chosen = SEEDINGS[seeding]
    return [replace(job, pattern=replace(job.pattern, seeding=chosen)) for job in jobs]


def _notes(jobs: Sequence[Job], laid: Laid) -> Iterator[str]:
    """Yield the ignored options, and differences from a real machine."""
    ignored = sorted({name for job in jobs for name in job.specified if name in IGNORED})
    if ignored:
        yield f"ignored, as they have no effect in a simulation: {', '.join(ignored)}"
    if not all(job.is_direct for job in jobs):
        yield "direct=0: there is no page cache of the host; each request is direct"
    engines = {engine_of(job.specified.get("ioengine", "psync")) for job in jobs}
    if elsewhere := sorted(engines & ELSEWHERE):
        yield f"ioengine={', '.join(elsewhere)}: its storage is the simulated volume here"
    if any("create_only" in job.specified and job.is_idle for job in jobs):
        yield "create_only: its jobs create their files and make no requests to them"
    engines_of_idle = {job.specified.get("ioengine", "") for job in jobs if job.is_idle}
    if idle := sorted(engines_of_idle & set(IDLE_ENGINES)):
        yield f"ioengine={', '.join(idle)}: its jobs make no requests to storage and take no time"
    zoned = [job for job in jobs if job.specified.get("zonemode") == "zbd"]
    if any(job.pattern.directions == (READ,) for job in zoned):
        yield "zonemode=zbd: all zones of the simulated device count as written for reads"
    if any(job.pattern.written_zone_bytes and "zonesize" not in job.specified for job in zoned):
        size = human_size(DEVICE_ZONE_BYTES)
        yield f"zonemode=zbd without zonesize: the simulated device has zones of {size}"
    if any("time_based" in job.specified and not job.run_ns for job in jobs):
        yield "time_based without runtime has no effect, as in fio"
    if any(job.pattern.is_by_rates for job in jobs):
        yield (
            "rate, rate_iops with a mix: as in fio, the rates also decide whether a read or a "
            "write is next, so their order depends on the time: here on the simulated one"
        )
    if any("sg_write_mode" in job.specified for job in jobs):
        yield "sg_write_mode: verifying commands are simulated as writes"
    waiting = [job for job in jobs if "iodepth" in job.specified and job.depth == 1]
    slow = {
        job.specified.get("ioengine", "psync") for job in waiting if job.specified["iodepth"] != "1"
    }
    if slow & set(SYNC_ENGINES):
        yield (
            f"ioengine={min(slow)} waits for each request, so iodepth is 1, as in fio; "
            "ioengine=libaio keeps more outstanding"
        )
    if any({"read_iolog", "write_iolog"} <= job.specified.keys() for job in jobs):
        yield "write_iolog is ignored where read_iolog is set, as in fio"
    own = [job for job in jobs if job.own.get("filename") is not None]
    added = sorted(
        {job.own["filename"] for job in own if job.specified["filename"] != job.own["filename"]}
    )
    if added:
        yield f"filename={', '.join(added)}: used in addition to the files of [global], as in fio"
    unsized = sorted({file for job in jobs if job.lacks_size for file in job.files})
    if unsized:
        are_apart = len({laid.begin_bytes[file] for file in unsized}) > 1
        use = "equal parts of the volume" if are_apart else "the size is that of the whole volume"
        yield f"no size= for {', '.join(unsized)}: {use}, {human_size(laid.volume_bytes)}"
