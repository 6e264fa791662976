"""Jobs (2.2.1): several closed loops at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from hybridsim.foundation.codes import Op
from hybridsim.reference.clock import Clock
from hybridsim.reference.depths import Depth
from hybridsim.reference.parameters import JobParameters, Request, SourceParameters
from hybridsim.reference.source import Source


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
        self.start = 0
        self.idle_since = 0
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
            self.is_full = self.issued > self.parameters.low


class JobsSource(Source):
    """All jobs; a group begins when all jobs of the group before are over."""

    def __init__(
        self,
        clock: Clock,
        parameters: SourceParameters,
        requests: Sequence[Request],
        issue: Callable[[int], None],
    ) -> None:
        super().__init__(clock, parameters, requests, issue)
        self.jobs = []
        for number, job in enumerate(parameters.jobs):
            own = [request for request in requests if request.stream == number]
            self.jobs.append(Job(number, job, own))
        self.ranks = count()

    def request(self, number: int) -> Request:
        """Return a request by its number: index within its job * number of jobs + job."""
        index, job = divmod(number, len(self.jobs))
        return self.jobs[job].requests[index]

    def is_over(self, answered: int) -> bool:
        """Whether all jobs are over and all their requests complete."""
        return all(job.is_over and job.under_way == 0 for job in self.jobs)

    def start(self) -> None:
        """Begin the first group."""
        self.begin(0)

    def begin(self, group: int) -> None:
        """Begin the jobs of a group now."""
        self.group = [job for job in self.jobs if job.parameters.group == group]
        for job in self.group:
            job.start = job.idle_since = self.clock.now + job.parameters.delay_ns
            job.depth.window(job.start + job.parameters.ramp_ns)
        ranked = [(job, next(self.ranks)) for job in self.group]
        for job, rank in ranked:
            self.go_on(job, rank)

    def go_on(self, job: Job, rank: int) -> None:
        """Schedule the next request of a job, or end the job."""
        now = self.clock.now
        if job.next == len(job.requests) or job.depth.is_done:
            self.end(job)
            return
        request = job.requests[job.next]
        time = max(now, job.start + request.arrival_ns)
        if request.think_ns > 0:
            if job.under_way > 0:
                return
            time = max(time, job.idle_since + request.think_ns)
        run_ns = job.parameters.run_ns
        begun = max(job.start, job.depth.measured - job.parameters.ramp_ns)
        if run_ns > 0 and time >= begun + run_ns:
            self.end(job)
            return
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
        if self.request(number).op == Op.FLUSH:
            job.flush = number
        self.issue(number)
        job.reap()
        self.go_on_unless_waiting(job)

    def completed(self, number: int) -> None:
        """Account for a completion; the job goes on."""
        job = self.jobs[number % len(self.jobs)]
        now = self.clock.now
        job.depth.on_completion(now, self.request(number).op, now - job.issued_at.pop(number))
        if job.flush == number:
            job.flush = None
        if job.is_full:
            job.unreaped += 1
            job.reap()
        else:
            job.issued -= 1
        if job.under_way == 0:
            job.issued = job.unreaped = 0
            job.idle_since = now
            job.depth.empty(now)
            if job.is_over:
                self.leave(job)
        self.go_on_unless_waiting(job)

    def go_on_unless_waiting(self, job: Job) -> None:
        """Go on, unless the job is full, drains, waits for a FLUSH, is scheduled, or is over."""
        waits = job.is_full or job.flush is not None or job.next_scheduled or job.depth.drains
        if not (waits or job.is_over):
            self.go_on(job, next(self.ranks))

    def end(self, job: Job) -> None:
        """End a job: it issues no more requests."""
        job.is_over = True
        if job.under_way == 0:
            self.leave(job)

    def leave(self, job: Job) -> None:
        """Remove a job from its group; after the last job the next group begins."""
        self.group.remove(job)
        if not self.group and any(not each.is_over for each in self.jobs):
            self.begin(job.parameters.group + 1)
