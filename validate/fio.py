"""Run fio: its job file, and the times of its first request and its end."""

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

GRACE_S = 60  # beyond the duration: to start, and to write the logs
POLL_S = 0.02
OUTPUT = "fio.txt"
WRITE_MODES = {1, 2}  # O_WRONLY, O_RDWR


Tick = Callable[[float], None]  # called several times a second with the elapsed seconds


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
    writes_times: bool = True  # whether to write the uptime at its begin and end

    @property
    def words(self) -> tuple[str, ...]:
        """The command line."""
        guard = ("--readonly",) if self.read_only else ()
        return ("fio", *guard, "--output-format=json", f"--output={self.json_file}", self.job_file)


def order(
    experiment: Experiment, device: Device, folder: Path, seconds: int, read_only: bool
) -> Order:
    """Return the run of an experiment's load on a device."""
    logs = {f"write_{kind}_log": layout.FIO_LOGS for kind in ("bw", "iops", "lat")}
    options = {
        **settings(device.node, seconds),
        "randrepeat": "1",
        "randseed": str(experiment.seed),
        "group_reporting": "1",
        "log_avg_msec": "1000",
        "log_unix_epoch": "0",
        **logs,
    }
    text = experiment.load.job.rendered(options)
    return Order(text, layout.JOB_FILE, layout.FIO_JSON, device, folder, seconds, read_only)


def settings(node: str, seconds: int) -> dict[str, str]:
    """Return the options of all jobs."""
    return {
        "filename": node.replace(":", "\\:"),
        "direct": "1",
        "ioengine": "libaio",
        "time_based": "1",
        "runtime": str(seconds),
    }


def run(order: Order, site: Site, tick: Tick = lambda passed: None) -> None:
    """Run fio to its end; write the uptime at its first request and at its end.

    Raises RunError if fio fails or hangs, UnsafeError if it opens a device for writing that it may
    only read, InterruptedRunError on a signal.
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
        _write_time(order, layout.END, system.uptime_s())
        system.note(order.words, begun, process.returncode)
        site.undo(step)
    if process.returncode:
        raise RunError(f"fio failed: {_reason(order)}")


def _watch(process: subprocess.Popen[bytes], order: Order, site: Site, tick: Tick) -> None:
    """Wait for the end; detect the first request, and check that a read-only run only reads."""
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
                _write_time(order, layout.BEGIN, uptime_s)
            uptime_s = system.uptime_s()
        elif order.read_only and not checked:
            checked = True
            _only_reads(order, system)
        passed = time.monotonic() - begun
        if has_begun:
            tick(passed)
        if passed > order.seconds + GRACE_S:
            raise RunError(
                f"fio did not end within {GRACE_S} s after its duration, and was killed: the "
                "device may not respond; see `dmesg`"
            )
        time.sleep(10 * POLL_S if has_begun else POLL_S)
    if not has_begun:
        _write_time(order, layout.BEGIN, uptime_s)


def _write_time(order: Order, name: str, uptime_s: float) -> None:
    if order.writes_times:
        (order.folder / name).write_text(f"{uptime_s:.2f}\n")


def requests(stat: str) -> tuple[int, ...]:
    """Return completed reads, completed writes and requests in flight of a `stat` file."""
    fields = [int(word) for word in stat.split()]
    return fields[0], fields[4], fields[8]


def _only_reads(order: Order, system: System) -> None:
    """Raise UnsafeError if fio has the device open for writing."""
    for process in system.proc.iterdir():
        if not process.name.isdigit() or system.read(process / "comm", "") != "fio":
            continue
        try:
            files = list((process / "fd").iterdir())
        except OSError:
            continue
        for file in files:
            is_device = system.number_of(file) == order.device.number
            if is_device and _mode(process, file.name, system):
                raise UnsafeError(f"fio opened {order.device.path} for writing: it was killed")


def _mode(process: Path, fd: str, system: System) -> bool:
    match = re.search(r"^flags:\s*([0-7]+)", system.read(process / "fdinfo" / fd, ""), re.MULTILINE)
    return bool(match) and (int(match[1], 8) & 3) in WRITE_MODES if match else False


def _reason(order: Order) -> str:
    """Return the error messages in fio's output."""
    messages = []
    for name in (OUTPUT, order.json_file):
        path = order.folder / name
        lines = path.read_text(errors="replace").splitlines() if path.exists() else []
        messages += [line.strip() for line in lines if line.startswith(("fio:", "bad", "Bad"))]
    return " ".join(messages[:3]) or f"it printed no error; see {order.folder / OUTPUT}"
