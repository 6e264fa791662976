"""`validate served`: within the guest of the lab, run fio on the disk of a served cache.

The cache is outside, in `hybridsim serve`, and only the lab has its counters.  The disks are the
lab's own, so there is nothing to protect: all others are refused.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from validate.errors import UnsafeError

SERIAL = "lab-"  # of all disks of the lab


def add_arguments(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "served",
        help="Within the lab: run fio on the disk of a served cache.",
        description="Within the lab's guest: run fio on the disk of a served cache.",
        epilog="Example:\n  python3 -m validate served experiment.toml --device /dev/vda -o run",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("experiment", metavar="TOML", help="an experiment of kind page")
    parser.add_argument("--device", required=True, metavar="DEV", help="the cached disk")
    parser.add_argument("--bare-fast", metavar="DEV", help="the SSD alone, for a calibration")
    parser.add_argument("-o", "--out", metavar="DIR", default="run", help="the result folder [run]")
    parser.add_argument("--state", metavar="DIR", default="/run/validate", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Run fio, also on the bare devices if requested."""
    from validate import (
        calibration,
        experiment,
        facts,
        hosts,
        layout,
        measuring,
        result_folder,
    )  # fmt: skip
    from validate.collecting import Subject
    from validate.devices import find
    from validate.environment import Environment
    from validate.progress import to_stderr
    from validate.site import site
    from validate.system import System

    system = System(state=Path(args.state))
    what = experiment.load(args.experiment)
    named = {"cached": args.device, "fast": args.bare_fast}
    devices = {role: find(path, system) for role, path in named.items() if path}
    for device in devices.values():
        if not system.read(device.folder / "serial", "").startswith(SERIAL):
            raise UnsafeError(f"{device.path}: is no disk of the lab: nothing was done")
    folder = result_folder.prepare(args.out, what)
    environment = Environment(what, "served", facts.now(), commands=system.commands)
    with result_folder.recorded(environment, folder), site(system) as here:
        environment.host = hosts.facts(system)
        if what.collect.calibrate:
            bare = {layout.BARE_SLOW: devices["cached"], layout.BARE_FAST: devices["fast"]}
            for name, device in bare.items():
                to_stderr(f"calibrating the bare device ({name}): {device.node}")
                calibration.calibrate(
                    device, device.size_bytes, folder / name, what.collect.calibrate_s, here,
                    read_only=False,
                )  # fmt: skip
        numbers = {role: device.number for role, device in devices.items()}
        subject = Subject(system, what.cache.kind, numbers)
        environment.fio = {"job_file": layout.JOB_FILE, "writes": what.load.job.writes}
        environment.cache = facts.of_cache(what, subject, here)
        cached = devices["cached"]
        environment.devices = {
            "cached": cached.facts(system), "slow": [], "origin": cached.facts(system),
            "fast": None,
        }  # fmt: skip
        environment.origin = {
            "size_bytes": cached.size_bytes, "raid_level": None, "chunk_bytes": None, "members": 1,
            "throttle_us": None,
        }  # fmt: skip
        environment.write(folder)
        to_stderr(f"running fio for {what.load.duration_s} s")
        measuring.measure(
            subject, here, environment, folder, what.load.duration_s,
            read_only=not what.load.job.writes,
        )  # fmt: skip
    return 0
