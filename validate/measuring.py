"""One measurement: fio on the cached device, samples each second, and a trace if requested."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from validate import fio, result_folder, sampling
from validate.collecting import Subject
from validate.devices import Device, of_number
from validate.environment import Environment
from validate.site import Site
from validate.tracing import Trace


def measure(
    subject: Subject,
    site: Site,
    environment: Environment,
    folder: Path,
    seconds: int,
    *,
    read_only: bool,
    traced: Sequence[Device] = (),
) -> None:
    """Run the load on a cache and collect all data; raise RunError if a part fails."""
    folder.mkdir(exist_ok=True)
    experiment = environment.experiment
    cached = of_number(subject.numbers["cached"], subject.system)
    collect = experiment.collect
    order = fio.order(experiment, cached, folder, seconds, read_only)
    trace = Trace(
        traced, folder, collect.trace_start_s, collect.trace_duration_s or 10**6, site,
        ended=not traced,
    )  # fmt: skip
    try:
        if traced and not collect.trace_start_s:
            trace.begin()  # before fio, to include its first request
        with sampling.sampled(subject, folder):
            fio.run(order, site, trace.tick)
    finally:
        result_folder.check_room(folder)
        remark = trace.end()
        environment.notes += [remark] if remark else []
