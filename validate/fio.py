"""fio, as we run it: its job file, and when its first request came."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from validate import layout
from validate.devices import Device
from validate.errors import RunError, UnsafeError
from validate.experiment import Experiment
from validate.site import Site
from validate.steps.programs import RunProgram, finish
from validate.system import System

GRACE_S = 60  # beyond the duration: to start, and to write its logs
LOOK_S = 0.02
OUTPUT = "fio.txt"
WRITE_MODES = {1, 2}  # O_WRONLY, O_RDWR


Tick = Callable[[float], None]  # told the seconds that have passed, many times a second


@dataclass(frozen=True)
class Order:
    """One run of fio."""

    job_text: str
    job_file: str
    json_file: str
    device: Device
    folder: Path
    seconds: int
    read_only: bool
    tells_begin: bool = True  # whether the times of its begin and end are noted

    @property
    def words(self) -> tuple[str, ...]:
        """The command."""
        guard = ("--readonly",) if self.read_only else ()
        return ("fio", *guard, "--output-format=json", f"--output={self.json_file}", self.job_file)


def order(
    experiment: Experiment, device: Device, folder: Path, seconds: int, read_only: bool
) -> Order:
    """Return the run of an experiment's load."""
    logs = {f"write_{kind}_log": layout.FIO_LOGS for kind in ("bw", "iops", "lat")}
    ours = {
        **settings(device.node, seconds),
        "randrepeat": "1",
        "randseed": str(experiment.seed),
        "group_reporting": "1",
        "log_avg_msec": "1000",
        "log_unix_epoch": "0",
        **logs,
    }
    text = experiment.load.job.rendered(ours)
    return Order(text, layout.JOB_FILE, layout.FIO_JSON, device, folder, seconds, read_only)


def settings(node: str, seconds: int) -> dict[str, str]:
    """Return what every job has."""
    return {
        "filename": node.replace(":", "\\:"),
        "direct": "1",
        "ioengine": "libaio",
        "time_based": "1",
        "runtime": str(seconds),
    }


def run(order: Order, site: Site, tick: Tick = lambda passed: None) -> None:
    """Run it to its end; note when its first request came, and when it ended.

    Raises RunError where fio fails or hangs, InterruptedRunError where a signal comes.
    """
    (order.folder / order.job_file).write_text(order.job_text)
    step = RunProgram(order.words, str(order.folder), OUTPUT)
    begun, system = time.monotonic(), site.scene.system
    site.do(step)
    process: subprocess.Popen[bytes] = site.scene.facts["fio"]
    try:
        _watch(process, order, site, tick)
    finally:
        finish(process)
        _tell(order, layout.END, system.uptime_s())
        system.note(order.words, begun, process.returncode)
        site.undo(step)
    if process.returncode:
        raise RunError(f"fio failed: {_why(order)}")


def _watch(process: subprocess.Popen[bytes], order: Order, site: Site, tick: Tick) -> None:
    """Wait for the end; see that it begins, and that it only reads where it must."""
    system = site.scene.system
    counters = order.device.folder / "stat"
    idle, has_begun, checked = requests(system.read(counters)), False, False
    begun, uptime_s = time.monotonic(), system.uptime_s()
    while process.poll() is None:
        site.stop.check()
        if not has_begun:
            has_begun = requests(system.read(counters)) != idle
            if has_begun:
                begun = time.monotonic()
                _tell(order, layout.BEGIN, uptime_s)
            uptime_s = system.uptime_s()
        elif order.read_only and not checked:
            checked = True
            _only_reads(order, system)
        passed = time.monotonic() - begun
        if has_begun:
            tick(passed)
        if passed > order.seconds + GRACE_S:
            raise RunError(
                f"fio did not end within {GRACE_S} s after its time, and was ended: does the "
                "device still answer? `dmesg` may tell"
            )
        time.sleep(10 * LOOK_S if has_begun else LOOK_S)
    if not has_begun:
        _tell(order, layout.BEGIN, uptime_s)


def _tell(order: Order, name: str, uptime_s: float) -> None:
    if order.tells_begin:
        (order.folder / name).write_text(f"{uptime_s:.2f}\n")


def requests(stat: str) -> tuple[int, ...]:
    """Return reads and writes completed, and those under way, of a device's `stat` file."""
    fields = [int(word) for word in stat.split()]
    return fields[0], fields[4], fields[8]


def _only_reads(order: Order, system: System) -> None:
    """Raise UnsafeError where fio has the device open for writing."""
    for process in system.proc.iterdir():
        if not process.name.isdigit() or system.read(process / "comm", "") != "fio":
            continue
        try:
            files = list((process / "fd").iterdir())
        except OSError:
            continue
        for file in files:
            is_it = system.number_of(file) == order.device.number
            if is_it and _mode(process, file.name, system):
                raise UnsafeError(f"fio opened {order.device.path} for writing: it was ended")


def _mode(process: Path, fd: str, system: System) -> bool:
    match = re.search(r"^flags:\s*([0-7]+)", system.read(process / "fdinfo" / fd, ""), re.MULTILINE)
    return bool(match) and (int(match[1], 8) & 3) in WRITE_MODES if match else False


def _why(order: Order) -> str:
    """Return what fio says of its failure."""
    told = []
    for name in (OUTPUT, order.json_file):
        path = order.folder / name
        lines = path.read_text(errors="replace").splitlines() if path.exists() else []
        told += [line.strip() for line in lines if line.startswith(("fio:", "bad", "Bad"))]
    return " ".join(told[:3]) or f"it says nothing; see {order.folder / OUTPUT}"
