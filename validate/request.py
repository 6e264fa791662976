"""What `build` is asked for, what could be in the way, and the plan in words."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from validate import guards, tracing
from validate.devices import Device, find, held, model
from validate.errors import ExperimentError, MissingError, UnsafeError
from validate.experiment import Experiment
from validate.planning import Place, plan, slow_bytes
from validate.sizes import human
from validate.system import System

FILES_NOTE = (
    "new files are sparse, and what was never written is read without the disk: counters of the "
    "cache are those of real disks, times are not"
)
SAMPLE_IDENTITY = "0" * 12  # in a plan that is only shown


@dataclass
class BuildRequest:
    """What the user asked for."""

    experiment: Experiment
    slow: Sequence[str]
    fast: str | None
    erase: Sequence[str]
    out: str | None
    system: System
    devices: list[Device] = field(default_factory=list)  # those that are no files
    places: list[Place] = field(default_factory=list)  # slow ones, then the fast one


def check(request: BuildRequest) -> list[str]:
    """Look at all that could be in the way, and touch nothing; return what to know.

    As root, each device is claimed exclusively from here on, so that nobody comes between this and
    the first change; `devices.let_go` ends that.

    Raises UnsafeError for a device that must not be taken, MissingError for what is not there.
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
        notes.append("not root: whether a device is open or holds data is not known yet")
    if len({device.disk for device in request.devices}) < len(request.devices):
        notes.append("slow and fast device are parts of one disk: they will disturb each other")
    return notes


def ready(request: BuildRequest) -> None:
    """Raise where something is missing that the run itself needs, or was not named twice."""
    system, experiment = request.system, request.experiment
    if system.uid != 0:
        raise MissingError("needs root: run it with sudo; or use `validate lab`, which needs none")
    kind = experiment.cache.kind
    programs = ["fio", "dmsetup"] if kind != "none" or experiment.origin.size_bytes else ["fio"]
    programs += ["make-bcache"] if kind == "bcache" else []
    programs += ["mdadm"] if experiment.origin.raid_level is not None else []
    programs += ["blktrace"] if experiment.collect.trace else []
    system.need(*programs)
    for module in {"dm-cache": ("dm-cache", "dm-cache-smq"), "bcache": ("bcache",)}.get(kind, ()):
        system.module(module)
    if experiment.collect.trace:
        tracing.check(system)
    guards.named_twice(request.devices, request.erase, system)


def _paths(request: BuildRequest) -> list[str]:
    return [*request.slow, *([request.fast] if request.fast is not None else [])]


def sides(request: BuildRequest) -> tuple[list[Place], Place | None]:
    """Return the slow places and the fast one."""
    number = len(request.slow)
    return request.places[:number], next(iter(request.places[number:]), None)


def _place(path: str, device: Device | None, system: System) -> Place:
    if device is None:
        return Place(str(Path(path).absolute()))
    return Place(path, device.size_bytes, device.identity(system))


def _sizes(request: BuildRequest) -> None:
    """Raise UnsafeError where a device is too small."""
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
    """Raise where a file is there, is named twice, or has no room to grow."""
    for path in paths:
        if not experiment.origin.size_bytes:
            raise ExperimentError(f"{path}: a new file needs a size: write size in [origin]")
        if os.path.lexists(path):
            raise UnsafeError(f"{path}: is there already: name a file that is not, it will be made")
        if not Path(path).absolute().parent.is_dir():
            raise MissingError(f"{path}: its folder does not exist: make it first")
    if len({os.path.abspath(path) for path in paths}) < len(paths):
        raise UnsafeError(f"{paths[0]}: the same file twice: name two")
    writes = experiment.load.job.writes or experiment.collect.calibrate
    need = experiment.fast_bytes + (experiment.origin.size_bytes if writes else 0)
    for folder in {Path(path).absolute().parent for path in paths}:
        free = shutil.disk_usage(folder).free
        if free < need:
            raise MissingError(
                f"{folder}: {human(free)} are free there, and the files may grow to {human(need)}: "
                "make room, or write smaller sizes in the experiment"
            )


def _problem(device: Device, system: System) -> str:
    """Return what speaks against a device, or ""; as root, claim it first and keep the claim."""
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
        words = " ".join(each for each in (human(device.size_bytes), model(device, request.system),
                                           f"({device.name})") if each)  # fmt: skip
        lines.append(f"  {device.path}: {words}: everything on it will be lost")
    steps = plan(experiment, *sides(request), SAMPLE_IDENTITY)
    told = [step.describe() for step in steps.below]
    if experiment.collect.calibrate:
        told.append("run fio on the bare devices, and zero their ends again")
    told += [step.describe() for step in steps.cache]
    told.append(f"run fio for {experiment.load.duration_s} s, and collect each second")
    if experiment.restart_s:
        told.append(f"stop the cache, start it warm, run fio for {experiment.restart_s} s more")
    told.append("undo all of it, in reverse")
    lines += [f"  {number}. {each}" for number, each in enumerate(told, 1)]
    lines += [f"  note: {each}" for each in notes]
    return "\n".join(lines).replace(SAMPLE_IDENTITY, "RUN")
