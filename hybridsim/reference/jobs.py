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
    """One loop: what it has issued, and what it waits for."""

    def __init__(self, number: int, parameters: JobParameters, requests: list[Request]) -> None:
        self.number = number
        self.parameters = parameters
        self.requests = requests
        self.next = 0
        self.issued = 0  # and not reaped
        self.unreaped = 0  # complete, but not looked at
        self.is_full = False
        self.flush: int | None = None  # the FLUSH that is waited for
        self.knows_next = False
        self.is_over = False
        self.start = 0
        self.idle_since = 0
        self.depth = Depth(parameters)
        self.issued_at: dict[int, int] = {}  # by number of those under way

    @property
    def under_way(self) -> int:
        """How many requests are issued and not complete."""
        return self.issued - self.unreaped

    def reap(self) -> None:
        """While it is full: look at what is complete, in portions."""
        while self.is_full:
            least = min(self.parameters.reap_least, self.issued)
            if self.unreaped < least:
                break
            portion = min(self.unreaped, self.parameters.reap_most)
            self.unreaped -= portion
            self.issued -= portion
            self.is_full = self.issued > self.parameters.low


class JobsSource(Source):
    """All jobs; those of a group begin when all of the group before are over."""

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
        """The request of a number: that of its job, times the jobs, plus the job."""
        index, job = divmod(number, len(self.jobs))
        return self.jobs[job].requests[index]

    def is_over(self, answered: int) -> bool:
        """Tell whether all jobs are over and all their requests complete."""
        return all(job.is_over and job.under_way == 0 for job in self.jobs)

    def start(self) -> None:
        """Begin with the first group."""
        self.begin(0)

    def begin(self, group: int) -> None:
        """Let the jobs of a group begin now."""
        self.group = [job for job in self.jobs if job.parameters.group == group]
        for job in self.group:
            job.start = job.idle_since = self.clock.now + job.parameters.delay_ns
            job.depth.window(job.start + job.parameters.ramp_ns)
        ranked = [(job, next(self.ranks)) for job in self.group]
        for job, rank in ranked:
            self.go_on(job, rank)

    def go_on(self, job: Job, rank: int) -> None:
        """Find out when a job issues its next request."""
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
        job.knows_next = True
        self.clock.arrive(time, rank, lambda: self.issue_next(job))

    def issue_next(self, job: Job) -> None:
        """Issue a job's next request, and see what it does then."""
        number = job.next * len(self.jobs) + job.number
        job.next += 1
        job.knows_next = False
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
        """Let the job go on that waited for this one."""
        job = self.jobs[number % len(self.jobs)]
        now = self.clock.now
        job.depth.hear(now, self.request(number).op, now - job.issued_at.pop(number))
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
        """Go on, unless the job is full, drains, waits for a FLUSH, knows when, or is over."""
        waits = job.is_full or job.flush is not None or job.knows_next or job.depth.drains
        if not (waits or job.is_over):
            self.go_on(job, next(self.ranks))

    def end(self, job: Job) -> None:
        """Issue nothing more."""
        job.is_over = True
        if job.under_way == 0:
            self.leave(job)

    def leave(self, job: Job) -> None:
        """Leave the group; after the last of it the next group begins."""
        self.group.remove(job)
        if not self.group and any(not each.is_over for each in self.jobs):
            self.begin(job.parameters.group + 1)
