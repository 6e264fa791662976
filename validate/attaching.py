"""`attach`: measure an existing cache; it only reads unless the load writes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from validate import calibration, facts, guards, hosts, layout, measuring, result_folder, tracing
from validate.attached import Attached, look
from validate.devices import held, is_read_only, of_number
from validate.environment import Environment
from validate.errors import ExperimentError, MissingError, UnsafeError
from validate.experiment import Experiment
from validate.progress import Progress
from validate.site import Site, site
from validate.sizes import human
from validate.steps.read_only import HoldReadOnly
from validate.system import System

# The guards of a run that only reads: what the device holds does not matter then.
READING = (guards.not_mounted, guards.not_swap, guards.no_holders, guards.not_open)


@dataclass
class AttachRequest:
    """The options of `attach`."""

    experiment: Experiment
    device: str
    erase: Sequence[str]  # the device again, as consent to writes
    in_use: bool  # read it although others use it
    out: str | None
    system: System


def check(request: AttachRequest) -> tuple[Attached, bool, list[str]]:
    """Check the cache without changing anything.

    Return the cache, whether others use it, and notes for the user.  Raises UnsafeError if the run
    is not safe, ExperimentError if the experiment does not fit the cache.
    """
    system, experiment = request.system, request.experiment
    if system.uid != 0:
        raise MissingError("needs root to read the settings of the cache: run it with sudo")
    attached = look(request.device, system, experiment.cache.programs)
    _check_fit(experiment, attached)
    notes = []
    writes = experiment.load.job.writes
    used = [why for guard in READING if (why := guard(attached.cached, system))]
    if writes:
        _check_writable(request, attached)
    elif used and not request.in_use:
        raise UnsafeError(
            f"{request.device}: {'; '.join(used)}.  Reading it is safe, but slows its users "
            "and fills the cache with the blocks that the test reads: add --in-use to accept that"
        )
    if used:
        notes.append("in use: the counters include the requests of its other users")
    return attached, bool(used), notes


def _check_fit(experiment: Experiment, attached: Attached) -> None:
    specified, actual = experiment.cache, attached.cache
    if specified.kind != actual.kind:
        raise ExperimentError(
            f"{attached.cached.path} is a {actual.kind}, but the experiment specifies "
            f'{specified.kind}: write kind = "{actual.kind}" in [cache]'
        )
    if experiment.restart_s:
        raise ExperimentError("attach never stops a cache: remove [restart]")


def _check_writable(request: AttachRequest, attached: Attached) -> None:
    """Raise UnsafeError unless the device is empty and was named twice.

    It stays claimed exclusively from here on, through the question and the load; fio opens it
    without a claim.
    """
    system, device = request.system, attached.cached
    guards.named_twice([device], request.erase, system)
    guards.check(device, system)
    why = guards.empty(device, held(device, system), system)
    if why:
        raise UnsafeError(f"{device.path}: {why}")


def ready(request: AttachRequest) -> None:
    """Raise MissingError if a program that the run needs is missing."""
    request.system.need("fio")
    if request.experiment.collect.trace:
        request.system.need("blktrace")
        tracing.check(request.system)


def shown(request: AttachRequest, attached: Attached, is_used: bool, notes: Sequence[str]) -> str:
    """Return the plan in words."""
    cache, experiment = attached.cache, request.experiment
    of = human(cache.block_bytes or cache.bucket_bytes)
    part = "blocks" if cache.block_bytes else "buckets"
    actions = []
    if not experiment.load.job.writes and not is_used:
        actions.append(f"set {request.device} read-only in the kernel during the run")
    if experiment.collect.calibrate:
        actions.append(f"read from {attached.origin.node} and {attached.fast.node} with fio")
    verb = "reads and WRITES" if experiment.load.job.writes else "reads"
    actions.append(
        f"run fio for {experiment.load.duration_s} s (it {verb}), and sample each second"
    )
    actions.append("undo all changes")
    lines = [
        f"{experiment.name}: {request.device} is a {cache.kind}, {cache.mode}, "
        f"{human(cache.size_bytes)} in {part} of {of}"
        + (f", {cache.policy}" if cache.policy else ""),
        f"  slow: {attached.origin.node} {human(attached.origin.size_bytes)}",
        f"  fast: {attached.fast.node} {human(attached.fast.size_bytes)}",
    ]
    lines += [f"  {number}. {each}" for number, each in enumerate(actions, 1)]
    return "\n".join(lines + [f"  note: {each}" for each in notes])


def attach(request: AttachRequest, attached: Attached, is_used: bool, progress: Progress) -> Path:
    """Measure the cache; return the result folder."""
    system = request.system
    # Record the cache that exists, not the one of the experiment.
    experiment = dataclasses.replace(request.experiment, cache=attached.cache)
    folder = result_folder.prepare(request.out or f"results/{experiment.name}", experiment)
    environment = Environment(experiment, "attach", facts.now(), commands=system.commands)
    with result_folder.recorded(environment, folder), site(system) as here:
        environment.host = hosts.facts(system)
        environment.fio = {"job_file": layout.JOB_FILE, "writes": experiment.load.job.writes}
        environment.cache = facts.of_cache(experiment, attached.subject, here)
        environment.devices, environment.origin = _devices(attached, system)
        environment.write(folder)
        _run(here, attached, environment, folder, is_used, progress)
    return folder


def _run(
    here: Site,
    attached: Attached,
    environment: Environment,
    folder: Path,
    is_used: bool,
    progress: Progress,
) -> None:
    experiment, device = environment.experiment, attached.cached
    writes, collect = experiment.load.job.writes, experiment.collect
    system = here.scene.system
    if not writes and not is_used:
        step = HoldReadOnly(device.path, device.identity(system), is_read_only(device.node))
        progress(step.describe())
        here.do(step)
    if collect.calibrate:
        for name, bare in ((layout.BARE_SLOW, attached.origin), (layout.BARE_FAST, attached.fast)):
            progress(f"reading from the bare device ({name}): {bare.node}")
            calibration.calibrate(
                bare, bare.size_bytes, folder / name, collect.calibrate_s, here, read_only=True
            )
    traced = (device, attached.origin, attached.fast) if collect.trace else ()
    progress(f"running fio for {experiment.load.duration_s} s")
    measuring.measure(
        attached.subject, here, environment, folder, experiment.load.duration_s,
        read_only=not writes, traced=traced,
    )  # fmt: skip


def _devices(attached: Attached, system: System) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the facts of all devices, and those of the origin."""
    origin = of_number(attached.subject.numbers["origin"], system)
    disk = attached.origin.disk
    level = system.read(disk / "md/level", "")
    chunk = system.read(disk / "md/chunk_size", "")
    members = _members(attached, system) or [attached.origin.facts(system)]
    devices = {
        "cached": attached.cached.facts(system),
        "slow": members,
        "origin": origin.facts(system),
        "fast": attached.fast.facts(system),
    }
    return devices, {
        "size_bytes": origin.size_bytes,
        "raid_level": int(level.removeprefix("raid")) if level.startswith("raid") else None,
        "chunk_bytes": int(chunk) if chunk else None,
        "members": len(members),
    }


def _members(attached: Attached, system: System) -> list[dict[str, Any]]:
    """Return the facts of the members if the origin is an md array."""
    slaves = attached.origin.folder / "slaves"
    numbers = [system.read(each / "dev", "") for each in sorted(slaves.glob("*"))]
    return [of_number(number, system).facts(system) for number in numbers if number]
