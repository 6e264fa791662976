"""Depth search (2.2.2): the maximum number of requests under way that meets a latency."""

from __future__ import annotations

from hybridsim.foundation.codes import Op
from hybridsim.foundation.machine_parameters import JobParameters

ALL = 10**6


class Depth:
    """The queue depth of a job, fixed or searched."""

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
