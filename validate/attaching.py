"""`attach`: a cache that exists is measured, by reads alone unless more is asked for."""

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
from validate.progress import Say
from validate.site import Site, site
from validate.sizes import human
from validate.steps.read_only import HoldReadOnly
from validate.system import System

# Of the cached device itself: what it holds is none of our business while we only read.
READING = (guards.not_mounted, guards.not_swap, guards.no_holders, guards.not_open)


@dataclass
class AttachRequest:
    """What the user asked for."""

    experiment: Experiment
    device: str
    erase: Sequence[str]  # named again, it may be written to
    in_use: bool  # read it though somebody uses it
    out: str | None
    system: System


def check(request: AttachRequest) -> tuple[Attached, bool, list[str]]:
    """Look at the cache and what speaks against a test, and touch nothing.

    Return it, whether others use it, and what to know.  Raises UnsafeError where it must not be
    done, ExperimentError where the experiment does not fit.
    """
    system, experiment = request.system, request.experiment
    if system.uid != 0:
        raise MissingError("needs root, as the cache's own settings do: run it with sudo")
    found = look(request.device, system)
    _fits(experiment, found)
    notes = []
    writes = experiment.load.job.writes
    used = [why for guard in READING if (why := guard(found.cached, system))]
    if writes:
        _may_write(request, found)
    elif used and not request.in_use:
        raise UnsafeError(
            f"{request.device}: {'; '.join(used)}.  To read it does no harm, but it slows its "
            "users and warms the cache with what the test reads: add --in-use if that may be"
        )
    if used:
        notes.append("in use: the counters tell of its other users, too")
    return found, bool(used), notes


def _fits(experiment: Experiment, found: Attached) -> None:
    asked, there = experiment.cache, found.cache
    if asked.kind != there.kind:
        raise ExperimentError(
            f"{found.cached.path} is a {there.kind}, and the experiment says {asked.kind}: write "
            f'kind = "{there.kind}" in [cache]'
        )
    if experiment.restart_s:
        raise ExperimentError("a cache that others own is not stopped: leave out [restart]")


def _may_write(request: AttachRequest, found: Attached) -> None:
    """Raise UnsafeError unless the device holds nothing, and was named twice.

    It is claimed exclusively from here on, question and load included: fio opens it beside that.
    """
    system, device = request.system, found.cached
    guards.named_twice([device], request.erase, system)
    guards.check(device, system)
    why = guards.empty(device, held(device, system), system)
    if why:
        raise UnsafeError(f"{device.path}: {why}")


def ready(request: AttachRequest) -> None:
    """Raise MissingError where something is missing that the run needs."""
    request.system.need("fio")
    if request.experiment.collect.trace:
        request.system.need("blktrace")
        tracing.check(request.system)


def shown(request: AttachRequest, found: Attached, is_used: bool, notes: Sequence[str]) -> str:
    """Return the plan in words."""
    cache, experiment = found.cache, request.experiment
    of = human(cache.block_bytes or cache.bucket_bytes)
    part = "blocks" if cache.block_bytes else "buckets"
    told = []
    if not experiment.load.job.writes and not is_used:
        told.append(f"have the kernel refuse writes to {request.device} meanwhile")
    if experiment.collect.calibrate:
        told.append(f"read from {found.origin.node} and {found.fast.node} with fio")
    verb = "reads and WRITES" if experiment.load.job.writes else "reads"
    told.append(f"run fio for {experiment.load.duration_s} s (it {verb}), and collect each second")
    told.append("put back what was changed")
    lines = [
        f"{experiment.name}: {request.device} is a {cache.kind}, {cache.mode}, "
        f"{human(cache.size_bytes)} in {part} of {of}, {cache.policy}",
        f"  slow: {found.origin.node} {human(found.origin.size_bytes)}",
        f"  fast: {found.fast.node} {human(found.fast.size_bytes)}",
    ]
    lines += [f"  {number}. {each}" for number, each in enumerate(told, 1)]
    return "\n".join(lines + [f"  note: {each}" for each in notes])


def attach(request: AttachRequest, found: Attached, is_used: bool, say: Say) -> Path:
    """Do it; return the folder of the results."""
    system = request.system
    # What is simulated is the cache that is there, not the one that the file may speak of.
    experiment = dataclasses.replace(request.experiment, cache=found.cache)
    folder = result_folder.prepare(request.out or f"results/{experiment.name}", experiment)
    environment = Environment(experiment, "attach", facts.now(), commands=system.commands)
    with result_folder.told(environment, folder), site(system) as here:
        environment.host = hosts.facts(system)
        environment.fio = {"job_file": layout.JOB_FILE, "writes": experiment.load.job.writes}
        environment.cache = facts.of_cache(experiment, found.subject, here)
        environment.devices, environment.origin = _devices(found, system)
        environment.write(folder)
        _run(here, found, environment, folder, is_used, say)
    return folder


def _run(
    here: Site, found: Attached, environment: Environment, folder: Path, is_used: bool, say: Say
) -> None:
    experiment, device = environment.experiment, found.cached
    writes, collect = experiment.load.job.writes, experiment.collect
    system = here.scene.system
    if not writes and not is_used:
        step = HoldReadOnly(device.path, device.identity(system), is_read_only(device.node))
        say(step.describe())
        here.do(step)
    if collect.calibrate:
        for name, bare in ((layout.BARE_SLOW, found.origin), (layout.BARE_FAST, found.fast)):
            say(f"reading from the bare device ({name}): {bare.node}")
            calibration.calibrate(
                bare, bare.size_bytes, folder / name, collect.calibrate_s, here, read_only=True
            )
    traced = (device, found.origin, found.fast) if collect.trace else ()
    say(f"running fio for {experiment.load.duration_s} s")
    measuring.measure(
        found.subject, here, environment, folder, experiment.load.duration_s,
        read_only=not writes, traced=traced,
    )  # fmt: skip


def _devices(found: Attached, system: System) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return facts of the devices, and of the origin."""
    origin = of_number(found.subject.numbers["origin"], system)
    disk = found.origin.disk
    level = system.read(disk / "md/level", "")
    chunk = system.read(disk / "md/chunk_size", "")
    members = _members(found, system) or [found.origin.facts(system)]
    devices = {
        "cached": found.cached.facts(system),
        "slow": members,
        "origin": origin.facts(system),
        "fast": found.fast.facts(system),
    }
    return devices, {
        "size_bytes": origin.size_bytes,
        "raid_level": int(level.removeprefix("raid")) if level.startswith("raid") else None,
        "chunk_bytes": int(chunk) if chunk else None,
        "members": len(members),
    }


def _members(found: Attached, system: System) -> list[dict[str, Any]]:
    """Return facts of the members of an md array that is the origin."""
    slaves = found.origin.folder / "slaves"
    numbers = [system.read(each / "dev", "") for each in sorted(slaves.glob("*"))]
    return [of_number(number, system).facts(system) for number in numbers if number]
