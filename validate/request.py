"""Check the options of `build`, and describe its plan."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from validate import guards, opencas, tracing
from validate.devices import Device, find, held, model
from validate.errors import ExperimentError, MissingError, UnsafeError
from validate.experiment import Experiment
from validate.planning import Place, plan, slow_bytes
from validate.sizes import human
from validate.steps.queues import words
from validate.system import System

FILES_NOTE = (
    "new files are sparse, and reads of parts that were never written do not reach the disk: the "
    "counters of the cache are realistic, the times are not"
)
MODULES = {  # of the kernel, by kind of cache
    "dm-cache": ("dm-cache", "dm-cache-smq"),
    "dm-writecache": ("dm-writecache",),
    "bcache": ("bcache",),
}
SAMPLE_IDENTITY = "0" * 12  # of a plan that is only shown


@dataclass
class BuildRequest:
    """The options of `build`."""

    experiment: Experiment
    slow: Sequence[str]
    fast: str | None
    erase: Sequence[str]
    out: str | None
    system: System
    devices: list[Device] = field(default_factory=list)  # without files
    places: list[Place] = field(default_factory=list)  # slow ones, then the fast one


def check(request: BuildRequest) -> list[str]:
    """Check devices, files and experiment without changing anything; return notes for the user.

    As root, each device stays claimed exclusively, so that no other process claims it between this
    check and the first change; `devices.release_claim` releases the claims.

    Raises UnsafeError if a device must not be used, ExperimentError or MissingError for files.
    """
    experiment, system = request.experiment, request.system
    files = [path for path in _paths(request) if guards.is_file(path)]
    request.devices = [find(path, system) for path in _paths(request) if path not in files]
    by_path = {device.path: device for device in request.devices}
    request.places = [_place(path, by_path.get(path), system) for path in _paths(request)]
    plan(experiment, *sides(request), SAMPLE_IDENTITY)
    guards.all_different(request.devices)
    _sizes(request)
    _new_files(files, experiment)
    notes = [FILES_NOTE] if files else []
    problems = [_problem(device, system) for device in request.devices]
    problems = [each for each in problems if each]
    if problems:
        raise UnsafeError("\n".join(problems))
    if system.uid != 0 and request.devices:
        notes.append("not root: it was not checked whether the devices are open or hold data")
    if len({device.disk for device in request.devices}) < len(request.devices):
        notes.append(
            "slow and fast device are parts of one disk: their requests slow each other down"
        )
    return notes


def ready(request: BuildRequest) -> None:
    """Raise MissingError if a requirement of the run is missing, UnsafeError without --erase."""
    system, experiment = request.system, request.experiment
    if system.uid != 0:
        raise MissingError(
            "needs root: run it with sudo; or use `validate lab`, which does not need root"
        )
    kind = experiment.cache.kind
    programs = ["fio", "dmsetup"] if kind != "none" or experiment.origin.size_bytes else ["fio"]
    programs += ["make-bcache"] if kind == "bcache" else []
    programs += ["mdadm"] if experiment.origin.raid_level is not None else []
    programs += ["blktrace"] if experiment.collect.trace else []
    system.need(*programs)
    for module in MODULES.get(kind, ()):
        system.module(module)
    if kind == "open-cas":
        system.need(opencas.program(experiment.cache.programs))
        opencas.load(experiment.cache.programs, system)
    if experiment.collect.trace:
        tracing.check(system)
    guards.named_twice(request.devices, request.erase, system)


def _paths(request: BuildRequest) -> list[str]:
    return [*request.slow, *([request.fast] if request.fast is not None else [])]


def sides(request: BuildRequest) -> tuple[list[Place], Place | None]:
    """Return the slow places and the fast place."""
    number = len(request.slow)
    return request.places[:number], next(iter(request.places[number:]), None)


def _place(path: str, device: Device | None, system: System) -> Place:
    if device is None:
        return Place(str(Path(path).absolute()))
    return Place(path, device.size_bytes, device.identity(system))


def _sizes(request: BuildRequest) -> None:
    """Raise UnsafeError if a device is too small."""
    by_path = {device.path: device for device in request.devices}
    need = slow_bytes(request.experiment, len(request.slow)) or 1 << 20
    wanted = [(path, need, "the origin") for path in request.slow]
    if request.fast is not None:
        wanted.append((request.fast, request.experiment.fast_bytes, "the cache"))
    reasons = [
        f"{path}: {why}"
        for path, size, what in wanted
        if path in by_path and (why := guards.large_enough(by_path[path], size, what))
    ]
    if reasons:
        raise UnsafeError("\n".join(reasons))


def _new_files(paths: Sequence[str], experiment: Experiment) -> None:
    """Raise an error if a file exists, is named twice, or does not fit on its disk."""
    for path in paths:
        if not experiment.origin.size_bytes:
            raise ExperimentError(f"{path}: a new file needs a size: write size in [origin]")
        if os.path.lexists(path):
            raise UnsafeError(f"{path}: is there already: name a new file, which will be created")
        if not Path(path).absolute().parent.is_dir():
            raise MissingError(f"{path}: its folder does not exist: create it first")
    if len({os.path.abspath(path) for path in paths}) < len(paths):
        raise UnsafeError(f"{paths[0]}: is named twice: name two files")
    writes = experiment.load.job.writes or experiment.collect.calibrate
    need = experiment.fast_bytes + (experiment.origin.size_bytes if writes else 0)
    for folder in {Path(path).absolute().parent for path in paths}:
        free = shutil.disk_usage(folder).free
        if free < need:
            raise MissingError(
                f"{folder}: {human(free)} are free, but the files may grow to {human(need)}: "
                "free space, or write smaller sizes in the experiment"
            )


def _problem(device: Device, system: System) -> str:
    """Return why a device must not be used, or ""; as root, claim it and keep the claim."""
    try:
        guards.check(device, system)
        if system.uid == 0:
            why = guards.empty(device, held(device, system), system)
            return f"{device.path}: {why}" if why else ""
    except UnsafeError as error:
        return str(error)
    return ""


def shown(request: BuildRequest, notes: Sequence[str]) -> str:
    """Return the plan in words."""
    experiment = request.experiment
    lines = [f"{experiment.name}: {experiment.cache.kind}, {experiment.load.duration_s} s of fio"]
    for device in request.devices:
        shown = " ".join(each for each in (human(device.size_bytes), model(device, request.system),
                                           f"({device.name})") if each)  # fmt: skip
        lines.append(f"  {device.path}: {shown}: everything on it will be lost")
    steps = plan(experiment, *sides(request), SAMPLE_IDENTITY)
    actions = [step.describe() for step in steps.below]
    if experiment.collect.calibrate:
        actions.append("run fio on the bare devices, then zero their ends")
    if experiment.origin.throttle_us is not None:
        actions.append(f"{words(experiment.origin.throttle_us)} of the slow devices")
    actions += [step.describe() for step in steps.cache]
    actions.append(f"run fio for {experiment.load.duration_s} s, and sample each second")
    if experiment.restart_s:
        actions.append(f"restart the cache warm, and run fio for {experiment.restart_s} s")
    actions.append("undo all steps, in reverse order")
    lines += [f"  {number}. {each}" for number, each in enumerate(actions, 1)]
    lines += [f"  note: {each}" for each in notes]
    return "\n".join(lines).replace(SAMPLE_IDENTITY, "RUN")
