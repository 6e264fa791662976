"""Fit a model to a measurement, and compare the model with it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hybridsim.answers.fidelity import Fidelity
from hybridsim.answers.fitting import capture, fio, fio_results
from hybridsim.answers.fitting.answer import Fit
from hybridsim.answers.fitting.array import Progress
from hybridsim.answers.fitting.fio_results import looks_like_fio
from hybridsim.answers.fitting.observed import Observed, observe
from hybridsim.engine.machine import Run
from hybridsim.foundation.errors import FitError, TraceError
from hybridsim.foundation.histogram import Distribution
from hybridsim.requests.rows import no_requests
from hybridsim.scenario import Scenario, building
from hybridsim.studies import fio_drive
from hybridsim.studies.batches import Sent, batches
from hybridsim.traces.trace import PathLike, Trace

POOR = (
    "The model is not like the measurement: the device is of another kind than a disk or an SSD as "
    "modelled (shingled writes, two actuators, a cache above it), was changed meanwhile, or its "
    "latencies contain waiting elsewhere (a loop device, a file system, the host's scheduler). Do "
    "not rely on its figures."
)


def fit(
    path: PathLike | Sequence[PathLike],
    format: str | None = None,
    device: str | None = None,
    progress: Progress = lambda what, done, of: None,
    check: bool = True,
) -> Fit:
    """Fit a model of the device that a capture was taken on, or that fio measured.

    With `check` the model is simulated under the capture's own requests, and the result states how
    far its latencies are from the recorded ones.  Raises FitError if nothing can be fitted.

    >>> from hybridsim.traces.example import CAPTURE, demo_file
    >>> found = fit(demo_file(CAPTURE), check=False)
    >>> found.frame().set_index("key")["value"]["backing.drive.kind"]
    'ssd'
    """
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    names = [os.fspath(each) for each in paths]
    if names and all(looks_like_fio(each) for each in names):
        points = fio_results.read(names)
        progress("simulating depths and writes", 0, 1)
        found = fio_drive.fitted_disk(fio.fit(", ".join(names), points), points)
        found = fio_drive.fitted_flash(found, points)
        point = fio.checked(points) if check else None
        if point is None:
            return found
        progress("simulating the measurement", 0, 1)
        return judged(found, fio_fidelity(point, found.scenario()))
    trace, by_arrival = _open(path, format, device)
    progress("reading the capture", 0, 1)
    observed, seen = observe(trace.from_first(), by_arrival)
    _check_zones(trace)
    result = capture.fit(trace.name, observed, seen, progress)
    if not check:
        return result
    progress("simulating the capture", 0, 1)
    return judged(result, fidelity(observed, result.scenario()))


def _check_zones(trace: Trace) -> None:
    """Refuse a device whose host opens and resets zones: host-managed SMR, or a zoned SSD."""
    if any(each.code == "zone-management" for each in trace.warnings):
        raise FitError(
            f"{trace.name}: cannot be fitted: it has zone management commands, so this is a device "
            "with zones of the host (host-managed or host-aware SMR, ZNS), which refuses or delays "
            "writes that do not continue a zone. No model here has zones: capture what lies above "
            "it (dm-zoned, a file system that writes in zones), or another device"
        )


def judged(found: Fit, likeness: Fidelity) -> Fit:
    """Return a fit with its likeness, and a note where the model is not one of this device."""
    notes = found.notes
    if likeness.is_known and likeness.likeness == "poor":
        notes = [*notes, POOR]
    return replace(found, fidelity=likeness, notes=notes)


def fio_fidelity(point: fio_results.Point, scenario: Scenario) -> Fidelity:
    """Simulate random requests one at a time over the whole device, as fio sent them."""
    # fio's completion latency begins when the host has submitted the request
    alone = scenario.with_options(mode="closed", depth=1, host_overhead=0)
    capacity = alone.backing.drive.capacity_bytes
    run = Run(building.machine(alone, "closed", capacity, 0))
    simulated = fio_drive.latencies(run, batches(fio_drive.random_requests(point, capacity)))
    percents = sorted(point.percentiles_ns)
    shares = 100 * (np.arange(len(simulated)) + 0.5) / len(simulated)
    measured = np.interp(shares, percents, [point.percentiles_ns[each] for each in percents])
    return Fidelity(Distribution.of(measured.astype(np.int64)), Distribution.of(simulated))


def _open(
    path: PathLike | Sequence[PathLike], format: str | None, device: str | None
) -> tuple[Trace, bool]:
    """Open a capture by its dispatch times, or by its arrivals if it has no dispatches.

    The second value is True if the times are arrivals.
    """
    try:
        trace = Trace.read(path, format, device, use_dispatch=True)
    except TraceError:
        trace = Trace.read(path, format, device)
    first = next(trace.chunks(), None)
    return trace, first is None or not (first.dispatch_ns >= 0).any()


def fidelity(observed: Observed, scenario: Scenario) -> Fidelity:
    """Simulate the first stretch of requests in mode think; compare latencies with the capture."""
    some = observed.of(observed.stretch == observed.stretch[0])
    begun = int(some.dispatch_ns[0])
    rows = no_requests(some.rows)._replace(
        arrival_ns=some.dispatch_ns - begun,
        offset_bytes=some.offset_bytes,
        length_bytes=some.length_bytes,
        op=some.is_write.astype(np.uint8),
        complete_ns=some.complete_ns - begun,
    )
    run = Run(building.machine(scenario, "think", observed.end_bytes, 0))
    requests = batches(Sent("the capture", rows), 1.0, True)
    simulated = fio_drive.latencies(run, requests)
    return Fidelity(Distribution.of(some.latency_ns), Distribution.of(simulated))
