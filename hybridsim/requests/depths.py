"""The queue depth of a job: fixed, or the largest that meets a latency target."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import Op
from hybridsim.jit import method, state_machine

READ, WRITE, DISCARD = int(Op.READ), int(Op.WRITE), int(Op.DISCARD)
# The options of a job, by column.  0 means no limit or no target.
(
    DEPTH, RAMP_NS, LIMIT_READ_NS, LIMIT_WRITE_NS, LIMIT_TRIM_NS, TARGET_NS, WINDOW_NS, SHARE,
    KEEPS_ON,
) = range(9)  # fmt: skip
# The state of a job, by column.
(
    NOW, LOWEST, HIGHEST, STABLE, JUDGED, LATE, SINCE_NS, DRAINS, IS_FOUND, IS_LAST, IS_DONE,
    MEASURED_NS, BROKE_NS, BROKEN_NS, BROKE_OP,
) = range(15)  # fmt: skip
COLUMNS = 15
WHOLE = 10**6  # shares count in millionths
STABLE_MAX = 3


@state_machine
class Depths(NamedTuple):
    """The depth of each job (DESIGN.md 2.2.2)."""

    listens: bool  # whether any job has a latency limit or target
    options: Ints  # [job, DEPTH ... KEEPS_ON]
    state: Ints  # [job, NOW ... BROKE_OP]

    @classmethod
    def new(cls, options: Ints) -> Depths:
        """Return the depths of jobs that have not started."""
        state = np.zeros((len(options), COLUMNS), np.int64)
        state[:, NOW] = np.where(options[:, TARGET_NS] > 0, 1, options[:, DEPTH])
        state[:, LOWEST], state[:, HIGHEST] = 1, options[:, DEPTH]
        listens = bool(options[:, [LIMIT_READ_NS, LIMIT_WRITE_NS, LIMIT_TRIM_NS, TARGET_NS]].any())
        return cls(listens, np.ascontiguousarray(options, np.int64), state)

    @method
    def begin(self, start_ns, job):
        """Start a job."""
        self.state[job, SINCE_NS] = start_ns + self.options[job, RAMP_NS]

    @method
    def on_completion(self, now, job, op, waited_ns):
        """Record how long a request took; end the job or change its depth if needed."""
        options, state = self.options, self.state
        if state[job, IS_DONE] == 1 or now < state[job, SINCE_NS]:
            return
        limit_ns = 0
        if op == READ:
            limit_ns = options[job, LIMIT_READ_NS]
        elif op == WRITE:
            limit_ns = options[job, LIMIT_WRITE_NS]
        elif op == DISCARD:
            limit_ns = options[job, LIMIT_TRIM_NS]
        else:
            return
        target_ns = options[job, TARGET_NS]
        if limit_ns > 0 and waited_ns > limit_ns:
            self.end_by(job, op, waited_ns, limit_ns)
        elif target_ns > 0:
            self.judge(now, job, op, waited_ns)

    @method
    def end_by(self, job, op, waited_ns, limit_ns):
        """End a job because a request exceeded its latency limit."""
        state = self.state
        state[job, IS_DONE] = 1
        state[job, BROKE_NS], state[job, BROKEN_NS] = waited_ns, limit_ns
        state[job, BROKE_OP] = op

    @method
    def judge(self, now, job, op, waited_ns):
        """Count a request; at the end of a window try another depth."""
        options, state = self.options, self.state
        is_late = waited_ns > options[job, TARGET_NS]
        if is_late and options[job, SHARE] == WHOLE:
            if state[job, NOW] == 1:
                self.end_by(job, op, waited_ns, options[job, TARGET_NS])
            else:
                self.lower(job)
            return
        if state[job, DRAINS] == 1:
            return
        state[job, JUDGED] += 1
        state[job, LATE] += is_late
        if now - state[job, SINCE_NS] < options[job, WINDOW_NS]:
            return
        in_time = state[job, JUDGED] - state[job, LATE]
        if in_time * WHOLE >= state[job, JUDGED] * options[job, SHARE]:
            self.met(now, job)
        elif state[job, NOW] > 1:
            self.lower(job)

    @method
    def lower(self, job):
        """Go half way down to a depth that met the target; first wait until all is complete."""
        state = self.state
        state[job, HIGHEST] = state[job, NOW]
        if state[job, NOW] == state[job, LOWEST]:
            state[job, LOWEST] -= 1
        state[job, NOW] = (state[job, NOW] + state[job, LOWEST]) // 2
        state[job, STABLE] = 0
        state[job, DRAINS] = 1

    @method
    def met(self, now, job):
        """Raise the depth: double it until the first failure, then go half way to that."""
        options, state = self.options, self.state
        before = state[job, LOWEST] = state[job, NOW]
        if before + 1 == state[job, HIGHEST]:
            state[job, STABLE] += 1
            if state[job, STABLE] >= STABLE_MAX:
                state[job, HIGHEST] += 1
                state[job, STABLE] = 0
        if state[job, HIGHEST] == options[job, DEPTH]:
            state[job, NOW] = 2 * before
        else:
            state[job, NOW] = (before + state[job, HIGHEST]) // 2
        state[job, NOW] = min(state[job, NOW], options[job, DEPTH])
        if options[job, KEEPS_ON] == 0 and state[job, NOW] == before:
            state[job, IS_FOUND] = 1  # one more window runs at it and is reported
            state[job, IS_DONE] = state[job, IS_LAST]
            state[job, DRAINS] = 1 - state[job, IS_LAST]
        self.begin_window(now, job)

    @method
    def begin_window(self, now, job):
        """Start a new window."""
        self.state[job, SINCE_NS] = now
        self.state[job, JUDGED] = self.state[job, LATE] = 0

    @method
    def drained(self, now, job):
        """Start a window after all requests have completed; return whether to reset the results."""
        state = self.state
        state[job, DRAINS] = 0
        self.begin_window(now, job)
        if state[job, IS_FOUND] == state[job, IS_LAST]:
            return False
        state[job, IS_LAST] = 1
        state[job, MEASURED_NS] = now
        return True
