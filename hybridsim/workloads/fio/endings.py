"""Messages for jobs that a latency limit ended: max_latency, latency_target."""

from __future__ import annotations

from collections.abc import Iterator

from hybridsim.foundation.codes import Op
from hybridsim.foundation.units import format_time, human_time
from hybridsim.requests.depths import (
    BROKE_NS,
    BROKE_OP,
    BROKEN_NS,
    HIGHEST,
    IS_DONE,
    JUDGED,
    LATE,
    NOW,
    WHOLE,
)
from hybridsim.workloads.fio.results import JobResult

WORDS = {Op.READ: "read", Op.WRITE: "write", Op.DISCARD: "trim"}


def endings(result: JobResult) -> Iterator[str]:
    """Yield at most one message about one process of a job: none if no limit ended it."""
    (job,), (state,) = result.jobs, result.depths
    if result.checked and result.checked[0].broken:
        yield f"job {job.name} ended: {result.checked[0].broken}"
    goal, depth = job.goal, int(state[NOW])
    if state[BROKE_NS]:
        took, limit = human_time(int(state[BROKE_NS])), format_time(int(state[BROKEN_NS]))
        which = "latency_target" if state[BROKEN_NS] == goal.target_ns else "max_latency"
        where = ", at depth 1: no depth meets the target" if which == "latency_target" else ""
        kind = WORDS[Op(int(state[BROKE_OP]))]
        yield f"job {job.name} ended: a {kind} took {took}, more than {which}={limit}{where}"
    elif goal.target_ns and not goal.keeps_on:
        met = f"{goal.percent:g}% within latency_target={format_time(goal.target_ns)}"
        if state[IS_DONE]:
            limit = f"not at {state[HIGHEST]}" if depth < state[HIGHEST] else "the job's iodepth"
            yield f"job {job.name}: {met} up to depth {depth}, {limit}"
        elif depth == 1 and state[LATE] * WHOLE > state[JUDGED] * (WHOLE - goal.share):
            yield f"job {job.name}: {met} is not met even at depth 1"
        else:
            yield (
                f"job {job.name} ended at depth {depth} before the search for the largest "
                f"depth with {met} was complete: use time_based with a longer runtime, or a "
                "shorter latency_window"
            )
