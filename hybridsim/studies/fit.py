"""Fit a model to a measurement, and compare the model with it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hybridsim.answers.fidelity import Fidelity
from hybridsim.answers.fitting import capture, fio, fio_results
from hybridsim.answers.fitting.answer import Fit
from hybridsim.answers.fitting.arrangement import Progress
from hybridsim.answers.fitting.fio_results import looks_like_fio
from hybridsim.answers.fitting.observed import Observed, observe
from hybridsim.engine.machine import Run
from hybridsim.foundation.errors import TraceError
from hybridsim.foundation.histogram import Distribution
from hybridsim.requests.rows import Requests, no_requests
from hybridsim.requests.source import NEVER
from hybridsim.scenario import Scenario, building
from hybridsim.studies.replay import batches
from hybridsim.traces.trace import PathLike, Trace


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
    """
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    names = [os.fspath(each) for each in paths]
    if names and all(looks_like_fio(each) for each in names):
        return fio.fit(", ".join(names), fio_results.read(names))
    trace, by_arrival = _open(path, format, device)
    progress("reading the capture", 0, 1)
    observed, seen = observe(trace.from_first(), by_arrival)
    result = capture.fit(trace.name, observed, seen, progress)
    if not check:
        return result
    progress("simulating the capture", 0, 1)
    return replace(result, fidelity=fidelity(observed, result.scenario()))


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


@dataclass
class ObservedTrace:
    """Observed requests with the interface of a trace."""

    name: str
    rows: Requests

    def chunks(self) -> Iterator[Requests]:
        """Yield the requests as one chunk."""
        yield self.rows

    def from_first(self) -> Iterator[Requests]:
        """Yield the requests as one chunk; they begin at time 0."""
        yield self.rows


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
    latencies = []
    for batch in batches(ObservedTrace("the capture", rows), 1.0, True):
        run.feed(batch)
        while (facts := run.advance(NEVER)[1]) is not None:
            latencies.append(facts.done_ns - facts.issue_ns)
    last = run.facts.drained()
    latencies.append(last.done_ns - last.issue_ns)
    return Fidelity(Distribution.of(some.latency_ns), Distribution.of(np.concatenate(latencies)))


__all__ = ["fidelity", "fit"]
