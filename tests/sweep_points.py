"""Sweep points that take no time to compute: a synthetic machine, and a program to kill."""

import os
import sys
import time

from hybridsim import Scenario
from hybridsim.answers.requirements import OF_RUNS
from hybridsim.studies.sweep.figures import ALONE, measures, name_of
from hybridsim.studies.sweep.named_trace import NamedTrace
from hybridsim.studies.sweep.plan import Plan, axis_of
from hybridsim.studies.sweep.sweep import sweep

UNLUCKY = 13  # members of an array that no point survives
AXES = ("backing.members=4..13:10", "cache.size=1GiB..16GiB:5:log", "replay.speed=1.0..2.0:4")


def plan(trace, axes=AXES, **more):
    traces = (NamedTrace.here((str(trace),)),)
    return Plan(traces, Scenario.default(), tuple(map(axis_of, axes)), **more)


def made_up(point):
    """Return figures that depend on the scenario alone; none is a round number."""
    site = point.scenario
    if site.backing.members == UNLUCKY:
        raise ValueError("unlucky")
    size = site.cache.pages(0) * site.cache.page_bytes
    mean = 1e7 / site.backing.members + 1e15 / size + site.seed / 3
    figures = {name_of(each): mean for each in measures()}
    lasting = [each for each in measures() if each.measure not in OF_RUNS]
    figures |= {ALONE + name_of(each): 3e7 / 7 for each in lasting}
    figures |= {"gain": 2e7 / mean, "gain.whole": 1e7 / mean, "forecast": 3e7 / mean}
    figures |= {"work.requests": 50, "work.ns": 50 * mean, "alone.work.ns": 50 * 3e7 / 7}
    about = {"answer": "yes", "headline": "Yes.", "mode": "open", "ssd_bytes": size}
    return figures | about | {"dwpd": site.backing.members / 3}


def slowly(point):
    """Return the same after a delay; log each start beside the results."""
    time.sleep(0.01)
    return made_up(point)


def noted(point):
    """Return the same; append a line to the file NOTES for each finished computation."""
    figures = slowly(point)
    with open(os.environ["NOTES"], "a", encoding="utf-8") as notes:
        notes.write(point.key + "\n")
    return figures


if __name__ == "__main__":
    trace, folder, crew = sys.argv[1:4]
    workers, scheduler = (int(crew), None) if crew.isdigit() else (None, crew)
    print("begun", flush=True)
    result = sweep(plan(trace), folder, workers, scheduler, compute=noted)
    print("done", len(result.settings), result.computed, result.known, flush=True)
