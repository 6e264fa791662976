"""`build`: create a cache on two devices or files, measure it, and remove it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from validate import calibration, facts, hosts, layout, measuring, opencas, result_folder
from validate.collecting import Subject
from validate.devices import Device, of_number
from validate.environment import Environment
from validate.experiment import Experiment
from validate.planning import Plan, plan
from validate.progress import Progress
from validate.request import BuildRequest, sides
from validate.site import Site, site
from validate.steps.ends import begin_load, zero_device
from validate.steps.queues import SetThrottle


def build(request: BuildRequest, progress: Progress) -> Path:
    """Build, measure and remove the cache; return the result folder."""
    experiment, system = request.experiment, request.system
    folder = result_folder.prepare(request.out or f"results/{experiment.name}", experiment)
    environment = Environment(experiment, "build", facts.now(), commands=system.commands)
    with result_folder.recorded(environment, folder), site(system) as here:
        environment.host = hosts.facts(system)
        _run(request, here, environment, folder, progress)
    return folder


def _run(
    request: BuildRequest, here: Site, environment: Environment, folder: Path, progress: Progress
) -> None:
    """Build and measure, and measure the warm cache if requested; the site undoes the steps."""
    experiment = request.experiment
    steps = plan(experiment, *sides(request), here.scene.facts["id"])
    _do(here, steps.below, progress)
    if experiment.collect.calibrate:
        _calibrate(here, steps, experiment, folder, progress)
    if experiment.origin.throttle_us is not None:
        _do(here, _throttles(here, steps, experiment.origin.throttle_us), progress)
    _do(here, steps.cache, progress)
    begin_load(here.scene)
    subject = _subject(here, steps, experiment)
    environment.fio = {"job_file": layout.JOB_FILE, "writes": experiment.load.job.writes}
    environment.cache = facts.of_cache(experiment, subject, here)
    environment.devices, environment.origin = _devices(here, steps, experiment)
    environment.write(folder)
    traced = _traced(here, steps) if experiment.collect.trace else ()
    progress(f"running fio for {experiment.load.duration_s} s")
    measuring.measure(
        subject, here, environment, folder, experiment.load.duration_s,
        read_only=not experiment.load.job.writes, traced=traced,
    )  # fmt: skip
    if experiment.restart_s and steps.cache:
        progress(f"restarting the cache warm; running fio for {experiment.restart_s} s")
        here.undo(steps.cache[-1])
        here.do(steps.cache[-1])
        environment.cache["restarted_uptime_s"] = here.scene.facts["made_uptime_s"]
        measuring.measure(
            _subject(here, steps, experiment), here, environment, folder / layout.RESTART,
            experiment.restart_s, read_only=not experiment.load.job.writes,
        )  # fmt: skip
    progress("removing everything")


def _do(here: Site, steps: Sequence[Any], progress: Progress) -> None:
    for step in steps:
        progress(step.describe())
        here.do(step)


def _throttles(here: Site, steps: Plan, target_us: int) -> list[SetThrottle]:
    """Return the steps that set the writeback throttling of the slow devices."""
    system, roles = here.scene.system, here.scene.roles
    slow = [of_number(roles[role], system) for role in steps.slow_roles]
    return [SetThrottle.of(device, target_us, system) for device in slow]


def _calibrate(
    here: Site, steps: Plan, experiment: Experiment, folder: Path, progress: Progress
) -> None:
    """Run fio on the bare devices, and zero their ends afterwards."""
    system, seconds = here.scene.system, experiment.collect.calibrate_s
    bare = {layout.BARE_SLOW: ("origin", experiment.origin.size_bytes)}
    if steps.fast_role:
        bare[layout.BARE_FAST] = (steps.fast_role, experiment.fast_bytes)
    begin_load(here.scene)
    for name, (role, size) in bare.items():
        device = of_number(here.scene.roles[role], system)
        progress(f"calibrating the bare device ({name}): {device.node}")
        calibration.calibrate(
            device, size or device.size_bytes, folder / name, seconds, here, read_only=False
        )
    for role in {"origin", "data", "metadata"} & here.scene.roles.keys():
        zero_device(of_number(here.scene.roles[role], system), system)


def _subject(here: Site, steps: Plan, experiment: Experiment) -> Subject:
    """Return the cache to sample."""
    system, roles, kind = here.scene.system, here.scene.roles, experiment.cache.kind
    numbers = {"cached": roles.get("cached", roles["origin"])}
    numbers |= {role: roles[role] for role in (*steps.slow_roles, "origin", steps.fast_role, "data")
                if role in roles}  # fmt: skip
    if kind == "bcache":
        backing = (system.block(roles["origin"]) / "bcache").resolve()
        return Subject(system, kind, numbers, backing=backing)
    if kind == "open-cas":
        casadm = opencas.program(experiment.cache.programs)
        exported = of_number(roles["cached"], system).node
        core = next(each for each in opencas.cores(casadm, system) if each.exported == exported)
        return Subject(system, kind, numbers, statistics=opencas.statistics(casadm, core))
    mapped = getattr(steps.cache[-1], "name", "") if steps.cache else ""
    return Subject(system, kind, numbers, mapped=mapped)


def _devices(
    here: Site, steps: Plan, experiment: Experiment
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the facts of all devices, and those of the origin."""
    system, roles = here.scene.system, here.scene.roles

    def device_facts(role: str) -> dict[str, Any]:
        return of_number(roles[role], system).facts(system)

    devices: dict[str, Any] = {
        "cached": device_facts("cached" if "cached" in roles else "origin"),
        "slow": [device_facts(role) for role in steps.slow_roles],
        "origin": device_facts("origin"),
        "fast": device_facts(steps.fast_role) if steps.fast_role else None,
    }
    level = experiment.origin.raid_level
    return devices, {
        "size_bytes": devices["origin"]["size_bytes"],
        "raid_level": level,
        "chunk_bytes": experiment.origin.chunk_bytes if level is not None else None,
        "members": len(steps.slow_roles),
        "throttle_us": experiment.origin.throttle_us,
    }


def _traced(here: Site, steps: Plan) -> list[Device]:
    """Return the cached, the slow and the fast device."""
    roles = here.scene.roles
    chosen = ["cached" if "cached" in roles else "origin", *steps.slow_roles]
    chosen += ["whole"] if "whole" in roles and "whole" not in chosen else []
    chosen += [steps.fast_role] if steps.fast_role else []
    numbers = dict.fromkeys(roles[role] for role in chosen)
    return [of_number(number, here.scene.system) for number in numbers]
