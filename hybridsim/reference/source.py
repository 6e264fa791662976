"""The source (2.2): when each request is issued, of a trace or of jobs (2.2.1, 2.2.2)."""

from abc import ABC, abstractmethod
from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import count

from hybridsim.foundation.codes import Op
from hybridsim.foundation.machine_parameters import JobParameters
from hybridsim.reference.clock import Clock
from hybridsim.reference.parameters import Request, SourceParameters


class Source(ABC):
    """Issues requests by number, and is notified of their completion."""

    def __init__(
        self,
        clock: Clock,
        parameters: SourceParameters,
        requests: Sequence[Request],
        issue: Callable[[int], None],
    ) -> None:
        self.clock = clock
        self.parameters = parameters
        self.requests = requests
        self.issue = issue
        self.is_held = False
        self.shift = 0  # for how long the load was held so far
        self.scheduled: dict[int, int] = {}  # arrivals to come, by number

    @abstractmethod
    def start(self) -> None:
        """Begin, at time 0."""

    def completed(self, number: int) -> None:  # noqa: B027 - optional
        """Record that a request has completed."""

    def request(self, number: int) -> Request:
        """Return a request by its number."""
        return self.requests[number]

    def is_over(self, answered: int) -> bool:
        """Whether all requests are complete; `answered` is the number of complete ones."""
        return answered == len(self.requests)

    def arrive(self, number: int, time: int) -> None:
        """Issue a request at `time`, or now if that is past."""
        time = self.scheduled[number] = max(time, self.clock.now)

        def arrive() -> None:
            if not self.is_held and self.scheduled.get(number) == time:
                del self.scheduled[number]
                self.issue(number)

        self.clock.arrive(time, number, arrive)

    def delay(self, by: int) -> None:
        """End the hold of the load: what is to come does so later (2.17)."""
        self.is_held = False
        self.shift += by
        for number, time in sorted(self.scheduled.items()):
            self.arrive(number, time + by)

    def scaled(self, time: int) -> int:
        """Return a trace time divided by the replay speed, rounded half to even as in float64."""
        return round(float(time) / self.parameters.speed)

    def arrival(self, number: int) -> int:
        """Return when a request arrives that waits for no other one."""
        return self.scaled(self.requests[number].arrival_ns) + self.shift


class OpenSource(Source):
    """Issues requests at their recorded arrival times, whatever the machine's speed."""

    def start(self) -> None:
        """Schedule all arrivals."""
        for number in range(len(self.requests)):
            self.arrive(number, self.arrival(number))


class ClosedSource(Source):
    """Keeps a fixed number of requests outstanding."""

    def start(self) -> None:
        """Issue the first requests, up to the depth."""
        self.next = 0
        for _ in range(self.parameters.depth):
            self.issue_next()

    def completed(self, number: int) -> None:
        """Issue the next request."""
        self.issue_next()

    def delay(self, by: int) -> None:
        """End the hold of the load: the next requests are issued now."""
        self.scheduled = dict.fromkeys(self.scheduled, self.clock.now - by)
        super().delay(by)

    def issue_next(self) -> None:
        """Issue the next request now, if there is one."""
        if self.next < len(self.requests):
            self.arrive(self.next, self.clock.now)
            self.next += 1


class ThinkSource(Source):
    """Issues each request after its parent in the trace completes, after the same think time."""

    LOADED = 4096

    def start(self) -> None:
        """Determine the parents and load the first requests."""
        self.parents = parents(self.requests)
        self.next = 0
        self.outstanding = 0  # requests loaded and not complete
        self.completion: dict[int, int] = {}
        self.waiting: dict[int, list[int]] = defaultdict(list)  # by parent
        self.load()

    def load(self) -> None:
        """Load requests in order while there is room."""
        while self.outstanding < self.LOADED and self.next < len(self.requests):
            number = self.next
            parent = self.parents[number]
            self.next += 1
            self.outstanding += 1
            if parent < 0:
                self.arrive(number, self.arrival(number))
            elif parent in self.completion:
                self.follow(number)
            else:
                self.waiting[parent].append(number)

    def completed(self, number: int) -> None:
        """Schedule the requests that waited for this one, and load more."""
        self.completion[number] = self.clock.now
        self.outstanding -= 1
        for child in self.waiting.pop(number, []):
            self.follow(child)
        self.load()

    def delay(self, by: int) -> None:
        """End the hold of the load: think times do not pass while it is held."""
        self.completion = {number: time + by for number, time in self.completion.items()}
        super().delay(by)

    def follow(self, number: int) -> None:
        """Schedule a request at its gap after the completion of its parent."""
        parent = self.parents[number]
        gap = self.requests[number].arrival_ns - self.requests[parent].complete_ns
        self.arrive(number, self.completion[parent] + self.scaled(gap))


WINDOW = 65_536  # maximum distance to a parent, in requests


def parents(requests: Sequence[Request]) -> list[int]:
    """Return, for each request, the number of its parent in the trace; -1: none.

    The parent is the last request to complete before the arrival: of the same stream if there is
    one, otherwise of any stream.
    A request without a recorded completion is no parent.
    """
    all_streams: list[tuple[int, int]] = []  # (completion, number) in order
    by_stream: dict[int, list[tuple[int, int]]] = defaultdict(list)

    result = []
    for number, request in enumerate(requests):
        parent = latest(by_stream[request.stream], request.arrival_ns)
        if number - parent > WINDOW or parent < 0:
            parent = latest(all_streams, request.arrival_ns)
        if number - parent > WINDOW:
            parent = -1
        result.append(parent)

        if request.complete_ns >= 0:
            insort(all_streams, (request.complete_ns, number))
            insort(by_stream[request.stream], (request.complete_ns, number))
    return result


def latest(completions: list[tuple[int, int]], time: int) -> int:
    """Return the number of the last of the sorted (completion, number) not after `time`, or -1."""
    after = bisect_right(completions, time, key=lambda each: each[0])
    return completions[after - 1][1] if after > 0 else -1


# Jobs: several closed loops at once (2.2.1), and their search for a depth (2.2.2).

ALL = 10**6


class Depth:
    """The queue depth of a job, fixed or searched: the maximum that meets a latency."""

    def __init__(self, parameters: JobParameters) -> None:
        self.parameters = parameters
        self.now = 1 if parameters.target_ns else parameters.depth
        self.lowest = 1
        self.highest = parameters.depth
        self.stable = 0
        self.since = 0
        self.judged = self.late = 0
        self.drains = self.is_found = self.is_last = self.is_done = False
        self.measured = 0  # when the measurement of results began

    def window(self, now: int) -> None:
        """Begin a window."""
        self.since = now
        self.judged = self.late = 0

    def on_completion(self, now: int, op: Op, took: int) -> None:
        """Evaluate the latency `took` of a completed request."""
        parameters = self.parameters
        limits = {
            Op.READ: parameters.limit_read_ns,
            Op.WRITE: parameters.limit_write_ns,
            Op.DISCARD: parameters.limit_trim_ns,
        }
        if op not in limits or self.is_done or now < self.since:
            return
        if 0 < limits[op] < took:
            self.is_done = True
        elif parameters.target_ns:
            self.judge(now, took > parameters.target_ns)

    def judge(self, now: int, is_late: bool) -> None:
        """Count a request and adjust the depth."""
        share = self.parameters.share
        if is_late and share == ALL:
            if self.now == 1:
                self.is_done = True
            else:
                self.lower()
        elif not self.drains:
            self.judged += 1
            self.late += is_late
            if now - self.since >= self.parameters.window_ns:
                if (self.judged - self.late) * ALL >= self.judged * share:
                    self.rise(now)
                elif self.now > 1:
                    self.lower()

    def lower(self) -> None:
        """Lower the depth half way to the highest depth that met the target."""
        self.highest = self.now
        if self.lowest == self.now:
            self.lowest -= 1
        self.now = (self.now + self.lowest) // 2
        self.stable = 0
        self.drains = True

    def rise(self, now: int) -> None:
        """Raise the depth, up to the specified one."""
        depth = self.parameters.depth
        before = self.lowest = self.now
        if before + 1 == self.highest:
            self.stable += 1
            if self.stable == 3:
                self.highest, self.stable = self.highest + 1, 0
        higher = 2 * before if self.highest == depth else (before + self.highest) // 2
        self.now = min(higher, depth)
        if self.now == before and not self.parameters.keeps_on:
            self.is_found = True
            self.is_done = self.is_last
            self.drains = not self.is_last
        self.window(now)

    def empty(self, now: int) -> None:
        """Handle the completion of the last request under way."""
        if self.drains:
            self.drains = False
            self.window(now)
            if self.is_found and not self.is_last:
                self.is_last = True
                self.measured = now


ENDS_KIN, ENDS_GROUP, ENDS_ALL = 1, 2, 3


class Job:
    """One closed loop: its requests, and its state."""

    def __init__(self, number: int, parameters: JobParameters, requests: list[Request]) -> None:
        self.number = number
        self.parameters = parameters
        self.requests = requests
        self.next = 0
        self.issued = 0  # issued and not reaped
        self.unreaped = 0  # complete and not reaped
        self.is_full = False
        self.flush: int | None = None  # the FLUSH that the job waits for
        self.next_scheduled = False
        self.is_over = False
        self.start = -1  # not begun
        self.has_left = False
        self.flowed = 0  # requests counted in its flow
        self.held_since: int | None = None  # when its flow held it up
        self.idle_since = 0
        self.counted = 0  # towards a pause
        self.paused_at = 0  # what was counted when the last pause was decided
        self.paused = 0  # when that was
        self.checks = False  # a pause may follow the last request
        self.is_pausing = False  # waits for its requests, to pause
        self.is_ramped = False
        self.resumes = 0  # after its last pause
        self.leaves = 0  # not before this time
        self.depth = Depth(parameters)
        self.issued_at: dict[int, int] = {}  # by request number, of requests under way

    @property
    def under_way(self) -> int:
        """The number of requests issued and not complete."""
        return self.issued - self.unreaped

    def reap(self) -> None:
        """While the job is full, reap complete requests in portions."""
        while self.is_full:
            minimum = min(self.parameters.reap_min, self.issued)
            if self.unreaped < minimum:
                break
            portion = min(self.unreaped, self.parameters.reap_max)
            self.unreaped -= portion
            self.issued -= portion
            if not self.parameters.counts_issues:
                self.counted += portion
            self.is_full = self.issued > self.parameters.low

    @property
    def counts_completions(self) -> bool:
        """Whether the job pauses, after a number of requests that are reaped."""
        return self.parameters.pause_ns > 0 and not self.parameters.counts_issues

    def check_pause(self, now: int) -> None:
        """Begin to pause if enough requests count, or enough time passed, since the last pause."""
        if not self.checks or self.is_full:
            return
        self.checks = False
        after, every_ns = self.parameters.pause_after, self.parameters.pause_every_ns
        is_counted = 0 < after <= self.counted - self.paused_at
        if is_counted or 0 < every_ns <= now - self.paused:
            self.paused_at, self.paused = self.counted, now
            self.is_pausing = True
            self.pause_if_idle(now)

    def pause_if_idle(self, now: int) -> None:
        """Pause now if all requests are complete; they are reaped."""
        if not self.is_pausing or self.under_way:
            return
        self.is_pausing = False
        self.reap_all()
        self.resumes = now + self.parameters.pause_ns

    def reap_all(self) -> None:
        """Reap all requests, which are complete."""
        if self.counts_completions:
            self.counted += self.unreaped
        self.issued = self.unreaped = 0


class JobsSource(Source):
    """All jobs; a group begins when all jobs of the group before are over."""

    def request(self, number: int) -> Request:
        """Return a request by its number: index within its job * number of jobs + job."""
        index, job = divmod(number, len(self.jobs))
        return self.jobs[job].requests[index]

    def is_over(self, answered: int) -> bool:
        """Whether all jobs are over and all their requests complete."""
        return all(job.is_over and job.under_way == 0 for job in self.jobs)

    def start(self) -> None:
        """Begin the first group."""
        self.jobs = []
        for number, job in enumerate(self.parameters.jobs):
            own = [request for request in self.requests if request.stream == number]
            self.jobs.append(Job(number, job, own))
        self.ranks = count()
        self.awake: list[tuple[Job, int]] = []  # jobs that go on, with their ranks
        self.is_settling = False
        self.begin(0, self.clock.now)

    def begin(self, group: int, now: int) -> None:
        """Begin the jobs of a group."""
        self.group = [job for job in self.jobs if job.parameters.group == group]
        self.begin_each([job for job in self.group if self.may_begin(job)], now)

    def may_begin(self, job: Job) -> bool:
        """Whether the set that a job waits for, if any, has left."""
        return all(each.has_left or each.parameters.set != job.parameters.after
                   for each in self.jobs)  # fmt: skip

    def begin_each(self, jobs: list[Job], now: int) -> None:
        """Begin jobs, each after its delay."""
        for job in jobs:
            job.start = job.idle_since = job.paused = now + job.parameters.delay_ns
            job.depth.window(job.start + job.parameters.ramp_ns)
        self.awake += [(job, next(self.ranks)) for job in jobs]
        self.settle()

    def settle(self) -> None:
        """Let the jobs that are awake go on, in the order in which they woke."""
        if self.is_settling:
            return
        self.is_settling = True
        while self.awake:
            self.go_on(*self.awake.pop(0))
        self.is_settling = False

    def is_ahead(self, job: Job) -> bool:
        """Whether a job has issued more than its share of its flow: of those begun and not left."""
        begun = [each for each in self.jobs if each.start >= 0 and not each.has_left]
        flow = [each for each in begun if each.parameters.flow == job.parameters.flow]
        total = 1 + sum(each.flowed for each in flow)
        weights = sum(each.parameters.weight for each in flow)
        return job.flowed * weights > job.parameters.weight * total

    def release(self, job: Job) -> None:
        """Let the jobs that a flow holds up try again."""
        for each in self.jobs:
            if each.parameters.flow == job.parameters.flow:
                self.retry(each)
        self.settle()

    def retry(self, job: Job) -> None:
        """Let a job go on if its flow holds it up."""
        if job.held_since is not None and not any(each is job for each, _ in self.awake):
            self.awake.append((job, next(self.ranks)))

    def go_on(self, job: Job, rank: int) -> None:
        """Schedule the next request of a job, or end the job."""
        now = self.clock.now
        if job.next == len(job.requests) or job.depth.is_done:
            self.end(job)
            return
        request = job.requests[job.next]
        time = max(now, job.start + request.arrival_ns, job.resumes)
        if request.think_ns > 0:
            if job.under_way > 0:
                return
            time = max(time, job.idle_since + request.think_ns)
        run_ns = job.parameters.run_ns
        begun = max(job.start, job.depth.measured - job.parameters.ramp_ns)
        if run_ns > 0 and time >= begun + run_ns:
            job.leaves = begun + run_ns
            self.end(job)
            return
        if job.parameters.weight:
            if self.is_ahead(job):
                if job.held_since is None:
                    job.held_since = now
                return
            pause = job.parameters.flow_sleep_ns
            if job.held_since is not None and pause:
                tries = -(-(now - job.held_since) // pause)
                time = max(time, job.held_since + tries * pause)
            job.held_since = None
            job.flowed += 1
            self.release(job)
        job.next_scheduled = True
        self.clock.arrive(time, rank, lambda: self.issue_next(job))

    def issue_next(self, job: Job) -> None:
        """Issue a job's next request, then reap and go on."""
        number = job.next * len(self.jobs) + job.number
        job.next += 1
        job.next_scheduled = False
        job.issued += 1
        job.issued_at[number] = self.clock.now
        if job.issued >= job.depth.now:
            job.is_full = True
        is_flush = self.request(number).op == Op.FLUSH
        if is_flush:
            job.flush = number
        ramp_ns = job.parameters.ramp_ns
        may_ramp = job.parameters.pause_ns > 0 and not job.is_ramped
        if ramp_ns and may_ramp and self.clock.now >= job.start + ramp_ns:
            job.is_ramped = True
            job.counted = 0
            job.depth.measured = self.clock.now
        if job.parameters.counts_issues and not is_flush:
            job.counted += 1
        job.checks = job.parameters.pause_ns > 0 and self.request(number).may_pause
        self.issue(number)
        job.reap()
        job.check_pause(self.clock.now)
        self.go_on_unless_waiting(job)

    def completed(self, number: int) -> None:
        """Account for a completion; the job goes on."""
        job = self.jobs[number % len(self.jobs)]
        now = self.clock.now
        job.depth.on_completion(now, self.request(number).op, now - job.issued_at.pop(number))
        if job.flush == number:
            job.flush = None
        if job.counts_completions and self.request(number).op == Op.FLUSH:
            job.counted -= 1  # only data count
        if job.is_full or job.counts_completions:
            job.unreaped += 1
            job.reap()
        else:
            job.issued -= 1
        job.check_pause(now)
        if job.under_way == 0:
            job.idle_since = now
            job.pause_if_idle(now)
            if not job.counts_completions or job.depth.drains:
                job.reap_all()
            job.depth.empty(now)
            if job.is_over:
                self.leave(job)
        self.go_on_unless_waiting(job)

    def go_on_unless_waiting(self, job: Job) -> None:
        """Go on, unless the job is full, drains, waits for a FLUSH, is scheduled, or is over."""
        waits = job.is_full or job.flush is not None or job.next_scheduled or job.depth.drains
        waits = waits or job.held_since is not None or job.is_pausing
        if not (waits or job.is_over):
            self.awake.append((job, next(self.ranks)))
            self.settle()

    def end(self, job: Job) -> None:
        """End a job: it issues no more requests."""
        job.is_over = True
        job.held_since = None
        if job.under_way == 0:
            self.leave(job)

    def leave(self, job: Job) -> None:
        """Remove a job from its group; after the last job the next group begins."""
        now = self.clock.now
        if not job.depth.is_done:
            now = max(now, job.resumes, job.leaves)
        is_nested, self.is_settling = self.is_settling, True  # they go on when all is done here
        self.group.remove(job)
        job.has_left = True
        if any(each.parameters.weight for each in self.jobs):
            self.release(job)
        ends, group = job.parameters.ends, job.parameters.group
        for each in self.jobs:
            is_near = ends == ENDS_GROUP and each.parameters.group == group
            is_kin = ends == ENDS_KIN and each.parameters.kin == job.parameters.kin
            if ends == ENDS_ALL or is_near or is_kin:
                each.depth.is_done = True
                self.retry(each)
        waiting = [each for each in self.group if each.start < 0]
        waiting = [each for each in waiting if each.parameters.after == job.parameters.set]
        self.begin_each([each for each in waiting if self.may_begin(each)], now)
        if not self.group and any(not each.is_over for each in self.jobs):
            self.begin(job.parameters.group + 1, now)
        self.is_settling = is_nested
        self.settle()
