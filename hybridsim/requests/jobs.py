"""Several closed loops at once, each with its own requests: the jobs of a load generator.

The queue depth of a job is fixed, or the largest that meets a latency target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Bytes, Ints
from hybridsim.foundation.codes import Op
from hybridsim.foundation.machine_parameters import JobParameters
from hybridsim.jit import method, state_machine
from hybridsim.jit.events import Heap
from hybridsim.jit.instructions import octave
from hybridsim.requests.source import NEVER, WANTS_BATCH

DISCARD, FLUSH = int(Op.DISCARD), int(Op.FLUSH)
# The options of a job, by column: the fields of JobParameters.  0 means no limit or no target.
(
    DEPTH, LOW, REAP_MIN, REAP_MAX, GROUP, DELAY_NS, RUN_NS, RAMP_NS, LIMIT_READ_NS, LIMIT_WRITE_NS,
    LIMIT_TRIM_NS, TARGET_NS, WINDOW_NS, SHARE, KEEPS_ON, SET, AFTER, ENDS, KIN, WEIGHT, FLOW,
    FLOW_SLEEP_NS, PAUSE_NS, PAUSE_AFTER, COUNTS_ISSUES, PAUSE_EVERY_NS,
) = range(26)  # fmt: skip
ENDS_KIN, ENDS_GROUP, ENDS_ALL = 1, 2, 3
# The state of a job, by column.  ISSUED: not reaped.  UNREAPED: complete, but not yet reaped.
# COUNTED: requests that count towards a pause.  PAUSED_AT, PAUSED_NS: their number and the time
# when the last one was decided.  CHECKS: a pause may follow the last request.  RESUMES_NS: no
# request before it.  LEAVES_NS: over not before.
(
    ISSUED, UNREAPED, IS_FULL, AWAITS_FLUSH, IS_AWAKE, IS_OVER, RANK, START_NS, IDLE_SINCE_NS,
    OVER_NS, FLUSH_SLOT, FLOWED, HELD_SINCE_NS, COUNTED, PAUSED_AT, CHECKS, IS_PAUSING, IS_RAMPED,
    RESUMES_NS, LEAVES_NS, PAUSED_NS,
) = range(21)  # fmt: skip
# The state of its depth, by column.
(
    NOW, LOWEST, HIGHEST, STABLE, JUDGED, LATE, SINCE_NS, DRAINS, IS_FOUND, IS_LAST, IS_DONE,
    MEASURED_NS, BROKE_NS, BROKEN_NS, BROKE_OP,
) = range(15)  # fmt: skip
WHOLE = 10**6  # shares count in millionths
STABLE_MAX = 3
LEVELS = 7  # powers of two up to 64 and more
# The state of all jobs together.
OUTSTANDING, NEXT_RANK, ASKING_FIRST, ASKING, THIS_GROUP, LEFT_IN_GROUP, HAS_BEGUN = range(7)
HAS_FLOWS = 7
NOT_YET = -1


@state_machine
class Depths(NamedTuple):
    """The depth of each job (DESIGN.md 2.2.2)."""

    listens: bool  # whether any job has a latency limit or target
    options: Ints  # [job, DEPTH ... PAUSE_EVERY_NS]
    state: Ints  # [job, NOW ... BROKE_OP]

    @classmethod
    def new(cls, options: Ints) -> Depths:
        """Return the depths of jobs that have not started."""
        state = np.zeros((len(options), BROKE_OP + 1), np.int64)
        state[:, NOW] = np.where(options[:, TARGET_NS] > 0, 1, options[:, DEPTH])
        state[:, LOWEST], state[:, HIGHEST] = 1, options[:, DEPTH]
        listens = bool(options[:, [LIMIT_READ_NS, LIMIT_WRITE_NS, LIMIT_TRIM_NS, TARGET_NS]].any())
        return cls(listens, options, state)

    @method
    def begin(self, start_ns, job):
        """Start a job."""
        self.state[job, SINCE_NS] = start_ns + self.options[job, RAMP_NS]

    @method
    def on_completion(self, now, job, op, waited_ns):
        """Record how long a request took; end the job or change its depth if needed."""
        options, state = self.options, self.state
        if state[job, IS_DONE] == 1 or now < state[job, SINCE_NS] or op > DISCARD:
            return
        limit_ns = options[job, LIMIT_READ_NS + op]  # the columns are in the order of codes.Op
        if 0 < limit_ns < waited_ns:
            self.end_by(job, op, waited_ns, limit_ns)
        elif options[job, TARGET_NS] > 0:
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


@state_machine
class JobBatch(NamedTuple):
    """The next requests of each job; those of one job lie side by side."""

    op: Bytes  # codes.Op; a WRITE may have FUA, PREFLUSH and SYNC
    offset: Ints
    length: Ints
    stream: Ints
    due_ns: Ints  # earliest issue time, counted from the job's start
    think_ns: Ints  # if not 0: issued this long after all earlier ones are complete
    may_pause: Bytes  # whether the job's pause may follow
    next: Ints  # by job: row
    end: Ints  # by job: one past its last row
    number: Ints  # by job: how many requests of the job come before its next one
    is_last: Bytes  # by job: whether no more follow

    @method
    def left(self):
        """Return how many rows must be used before another batch: none, it may repeat them."""
        return 0


@state_machine
class Jobs(NamedTuple):
    """Issues the requests of jobs (DESIGN.md 2.2.1)."""

    options: Ints  # [job, DEPTH ... PAUSE_EVERY_NS]
    standing: Ints  # [job, ISSUED ... PAUSED_NS]
    levels: Ints  # [job, level]: requests by the queue depth at their issue, as a power of two
    counts: Ints  # [OUTSTANDING ... HAS_FLOWS]
    asking: Ints  # ring: jobs whose next issue time is not yet computed
    ready: Heap  # jobs whose next issue time is computed, by time and rank
    depths: Depths

    @classmethod
    def new(cls, parameters: Sequence[JobParameters]) -> Jobs:
        """Return jobs that have not started."""
        jobs = len(parameters)
        names = [each.name for each in fields(JobParameters)]
        options = np.array([[getattr(job, name) for name in names] for job in parameters], np.int64)
        standing = np.zeros((jobs, PAUSED_NS + 1), np.int64)
        standing[:, [START_NS, OVER_NS, FLUSH_SLOT, HELD_SINCE_NS]] = NOT_YET
        counts = np.zeros(8, np.int64)
        counts[HAS_FLOWS] = options[:, WEIGHT].any()
        return cls(
            options,
            standing,
            np.zeros((jobs, LEVELS), np.int64),
            counts,
            np.zeros(jobs, np.int64),
            Heap.new(jobs),
            Depths.new(options),
        )

    @property
    def outstanding(self) -> int:
        """Number of requests issued and not complete."""
        return int(self.counts[OUTSTANDING])

    @property
    def slots(self) -> int:
        """Initial number of request slots."""
        return 256

    @method
    def is_idle(self):
        """Return whether every request issued is complete."""
        return self.counts[OUTSTANDING] == 0

    @method
    def begins_other(self, arrival_ns):
        """Return False: there is no pass beside jobs."""
        return False

    @method
    def next_ns(self, now, batch, requests):
        """Return when the next request is issued, NEVER, or WANTS_BATCH if that is unknown."""
        if self.counts[HAS_BEGUN] == 0:
            self.counts[HAS_BEGUN] = 1
            self.begin_group(now, 0)
        while self.counts[ASKING] > 0:
            job = self.asking[self.counts[ASKING_FIRST]]
            if batch.next[job] == batch.end[job] and batch.is_last[job] == 0:
                return WANTS_BATCH
            self.counts[ASKING_FIRST] = (self.counts[ASKING_FIRST] + 1) % len(self.asking)
            self.counts[ASKING] -= 1
            self.settle(now, job, batch)
        return NEVER if self.ready.is_empty() else self.ready.time_ns[0]

    @method
    def begin_group(self, now, group):
        """Start the jobs of a group, each after its delay."""
        self.counts[THIS_GROUP] = group
        self.counts[LEFT_IN_GROUP] = 0
        for job in range(len(self.options)):
            if self.options[job, GROUP] == group:
                self.counts[LEFT_IN_GROUP] += 1
                if self.has_left(self.options[job, AFTER]):
                    self.begin(now, job)

    @method
    def begin(self, now, job):
        """Start a job after its delay."""
        self.standing[job, START_NS] = now + self.options[job, DELAY_NS]
        self.standing[job, IDLE_SINCE_NS] = self.standing[job, START_NS]
        self.standing[job, PAUSED_NS] = self.standing[job, START_NS]
        self.depths.begin(self.standing[job, START_NS], job)
        self.wake(job)

    @method
    def has_left(self, jobs):
        """Return whether all jobs of a set have left."""
        for job in range(len(self.options)):
            if self.options[job, SET] == jobs and self.standing[job, OVER_NS] == NOT_YET:
                return False
        return True

    @method
    def wake(self, job):
        """Queue a job for the computation of its next issue time, after the jobs queued before."""
        self.standing[job, IS_AWAKE] = 1
        self.standing[job, RANK] = self.counts[NEXT_RANK]
        self.counts[NEXT_RANK] += 1
        last = (self.counts[ASKING_FIRST] + self.counts[ASKING]) % len(self.asking)
        self.asking[last] = job
        self.counts[ASKING] += 1

    @method
    def settle(self, now, job, batch):
        """Compute when a job issues its next request; it may have to wait, or be over."""
        standing = self.standing
        under_way = standing[job, ISSUED] - standing[job, UNREAPED]
        start_ns = standing[job, START_NS]
        time_ns = max(now, start_ns, standing[job, RESUMES_NS])
        row = batch.next[job]
        of_depth = self.depths.state
        is_over = row == batch.end[job] or of_depth[job, IS_DONE] == 1
        if not is_over:
            time_ns = max(time_ns, start_ns + batch.due_ns[row])
            if batch.think_ns[row] > 0:
                if under_way > 0:
                    standing[job, IS_AWAKE] = 0
                    return
                time_ns = max(time_ns, standing[job, IDLE_SINCE_NS] + batch.think_ns[row])
            run_ns = self.options[job, RUN_NS]
            begun_ns = max(start_ns, of_depth[job, MEASURED_NS] - self.options[job, RAMP_NS])
            is_over = run_ns > 0 and time_ns >= begun_ns + run_ns
            if is_over:
                standing[job, LEAVES_NS] = begun_ns + run_ns  # it waited for its next request
        if not is_over and self.counts[HAS_FLOWS] == 1 and self.options[job, WEIGHT] > 0:
            if self.is_ahead(job):
                if standing[job, HELD_SINCE_NS] == NOT_YET:
                    standing[job, HELD_SINCE_NS] = now
                standing[job, IS_AWAKE] = 0
                return
            time_ns = max(time_ns, self.released_ns(now, job))
            standing[job, FLOWED] += 1
            self.release(job)
        if not is_over:
            self.ready.push(time_ns, standing[job, RANK], job)
            return
        standing[job, IS_AWAKE] = 0
        standing[job, IS_OVER] = 1
        standing[job, HELD_SINCE_NS] = NOT_YET
        if under_way == 0:
            self.leave(now, job)

    @method
    def leave(self, now, job):
        """Record that a job is over; after the last job of a group the next group starts.

        A job that ends in a pause, or before a request that is not due within its run, has passed
        that time.
        """
        options, standing = self.options, self.standing
        if self.depths.state[job, IS_DONE] == 0:
            now = max(now, standing[job, RESUMES_NS], standing[job, LEAVES_NS])
        self.standing[job, OVER_NS] = now
        self.counts[LEFT_IN_GROUP] -= 1
        if self.counts[HAS_FLOWS] == 1:
            self.release(job)
        group = options[job, GROUP]
        if options[job, ENDS] > 0:
            for other in range(len(options)):
                ends = options[job, ENDS]
                is_near = ends == ENDS_GROUP and options[other, GROUP] == group
                is_kin = ends == ENDS_KIN and options[other, KIN] == options[job, KIN]
                if ends == ENDS_ALL or is_near or is_kin:
                    self.depths.state[other, IS_DONE] = 1
                    self.retry(other)
        for other in range(len(options)):
            is_waiting = self.standing[other, START_NS] == NOT_YET
            is_waiting = is_waiting and options[other, GROUP] == group
            if is_waiting and options[other, AFTER] == options[job, SET]:
                if self.has_left(options[job, SET]):
                    self.begin(now, other)
        if self.counts[LEFT_IN_GROUP] == 0:
            self.begin_group(now, self.counts[THIS_GROUP] + 1)

    @method
    def is_ahead(self, job):
        """Return whether a job has issued more than its share of its flow, as in fio 3.33."""
        options, standing = self.options, self.standing
        weights, total = 0, 1
        for other in range(len(options)):
            is_there = standing[other, START_NS] != NOT_YET and standing[other, OVER_NS] == NOT_YET
            if is_there and options[other, FLOW] == options[job, FLOW]:
                weights += options[other, WEIGHT]
                total += standing[other, FLOWED]
        return standing[job, FLOWED] * weights > options[job, WEIGHT] * total

    @method
    def released_ns(self, now, job):
        """Return when a job that its flow held up tries again, or now if it was not held up."""
        since_ns = self.standing[job, HELD_SINCE_NS]
        pause_ns = self.options[job, FLOW_SLEEP_NS]
        self.standing[job, HELD_SINCE_NS] = NOT_YET
        if since_ns == NOT_YET or pause_ns == 0:
            return now
        return since_ns + -(-(now - since_ns) // pause_ns) * pause_ns

    @method
    def release(self, job):
        """Wake the jobs that the flow of a job holds up, to try again."""
        for other in range(len(self.options)):
            if self.options[other, FLOW] == self.options[job, FLOW]:
                self.retry(other)

    @method
    def retry(self, job):
        """Wake a job if its flow holds it up."""
        if self.standing[job, HELD_SINCE_NS] != NOT_YET and self.standing[job, IS_AWAKE] == 0:
            self.wake(job)

    @method
    def issue(self, now, batch, requests):
        """Issue the request that `next_ns` returned the time of; return its slot."""
        job = self.ready.what[0]
        self.ready.pop()
        row = batch.next[job]
        batch.next[job] = row + 1
        number = batch.number[job]
        batch.number[job] = number + 1
        slot = requests.take_row(batch, row, number * len(self.options) + job)
        requests.issue_ns[slot] = now
        standing = self.standing
        self.counts[OUTSTANDING] += 1
        standing[job, ISSUED] += 1
        self.levels[job, min(octave(standing[job, ISSUED]), LEVELS - 1)] += 1
        standing[job, IS_AWAKE] = 0
        if requests.op[slot] == FLUSH:
            standing[job, AWAITS_FLUSH] = 1
            standing[job, FLUSH_SLOT] = slot
        if self.options[job, PAUSE_NS] > 0:
            if self.options[job, RAMP_NS] > 0 and standing[job, IS_RAMPED] == 0:
                if now >= standing[job, START_NS] + self.options[job, RAMP_NS]:
                    standing[job, IS_RAMPED] = 1
                    standing[job, COUNTED] = 0  # but not PAUSED_AT, as in fio
                    self.depths.state[job, MEASURED_NS] = now
            if self.options[job, COUNTS_ISSUES] == 1 and requests.op[slot] != FLUSH:
                standing[job, COUNTED] += 1
            standing[job, CHECKS] = batch.may_pause[row]
        if standing[job, ISSUED] >= self.depths.state[job, NOW]:
            standing[job, IS_FULL] = 1
            self.reap(job)
        self.check_pause(now, job)
        self.go_on(job)
        return slot

    @method
    def check_pause(self, now, job):
        """Begin a pause, once a job is no longer full, if it is time for it."""
        standing, options = self.standing, self.options
        if standing[job, CHECKS] == 1 and standing[job, IS_FULL] == 0:
            standing[job, CHECKS] = 0
            counted, after = standing[job, COUNTED], options[job, PAUSE_AFTER]
            every_ns = options[job, PAUSE_EVERY_NS]
            are_enough = after > 0 and counted >= standing[job, PAUSED_AT] + after
            if are_enough or (every_ns > 0 and now >= standing[job, PAUSED_NS] + every_ns):
                standing[job, PAUSED_AT] = counted
                standing[job, PAUSED_NS] = now
                standing[job, IS_PAUSING] = 1
                if standing[job, ISSUED] == standing[job, UNREAPED]:
                    self.pause(now, job)

    @method
    def pause(self, now, job):
        """Pause a job, all of whose requests are complete."""
        standing = self.standing
        if self.options[job, COUNTS_ISSUES] == 0:
            standing[job, COUNTED] += standing[job, UNREAPED]
        standing[job, ISSUED] = standing[job, UNREAPED] = 0
        standing[job, IS_PAUSING] = 0
        standing[job, RESUMES_NS] = now + self.options[job, PAUSE_NS]

    @method
    def reap(self, job):
        """Reap completed requests of a full job until it may issue again."""
        standing, options = self.standing, self.options
        while standing[job, IS_FULL] == 1:
            minimum = min(options[job, REAP_MIN], standing[job, ISSUED])
            if standing[job, UNREAPED] < minimum:
                return
            reaped = min(standing[job, UNREAPED], options[job, REAP_MAX])
            standing[job, UNREAPED] -= reaped
            standing[job, ISSUED] -= reaped
            if options[job, COUNTS_ISSUES] == 0:
                standing[job, COUNTED] += reaped
            if standing[job, ISSUED] <= options[job, LOW]:
                standing[job, IS_FULL] = 0

    @method
    def go_on(self, job):
        """Wake a job unless it waits for something."""
        standing = self.standing
        waits = standing[job, IS_FULL] + standing[job, AWAITS_FLUSH] + standing[job, IS_AWAKE]
        waits += standing[job, IS_PAUSING]
        waits += self.depths.state[job, DRAINS] + (standing[job, HELD_SINCE_NS] != NOT_YET)
        if waits == 0 and standing[job, IS_OVER] == 0:
            self.wake(job)

    @method
    def completed(self, now, slot, requests):
        """Record the completion of a request; its job may continue."""
        job = requests.number[slot] % len(self.options)
        standing = self.standing
        self.counts[OUTSTANDING] -= 1
        if self.depths.listens:
            self.depths.on_completion(now, job, requests.op[slot], now - requests.issue_ns[slot])
        if standing[job, FLUSH_SLOT] == slot:
            standing[job, FLUSH_SLOT] = NOT_YET
            standing[job, AWAITS_FLUSH] = 0
        counts = self.options[job, PAUSE_NS] > 0 and self.options[job, COUNTS_ISSUES] == 0
        if counts and requests.op[slot] == FLUSH:
            standing[job, COUNTED] -= 1  # made up for when it is reaped: only data count
        if standing[job, IS_FULL] == 1 or counts:
            standing[job, UNREAPED] += 1
            self.reap(job)
        else:
            standing[job, ISSUED] -= 1
        self.check_pause(now, job)
        if standing[job, ISSUED] == standing[job, UNREAPED]:
            standing[job, IDLE_SINCE_NS] = now
            if standing[job, IS_PAUSING] == 1:
                self.pause(now, job)
            elif not counts or self.depths.state[job, DRAINS] == 1:
                if counts:
                    standing[job, COUNTED] += standing[job, UNREAPED]
                standing[job, ISSUED] = standing[job, UNREAPED] = 0
            if self.depths.state[job, DRAINS] == 1 and self.depths.drained(now, job):
                self.levels[job, :] = 0
            if standing[job, IS_OVER] == 1:
                self.leave(now, job)
        self.go_on(job)
