"""An experiment in a guest: the same driver as on a real machine, on disks that are models.

The result folder is that of `validate build`, and `lab/` beside it:

    machine.toml               the scenario whose devices the disks were
    lab.json                   versions, accelerator, how busy the host was, how late the disks were
    disks/NAME.requests.npy    each request of a disk: arrival, completion, when it was sent
    dmesg.txt, console.txt
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from validate import calibration, experiment, result_folder
from validate.errors import ExperimentError, MissingError
from validate.experiment import Experiment
from validate.lab import guest
from validate.lab.errors import LabError
from validate.lab.machine import Disk
from validate.lab.setup import set_up

Say = Callable[[str], None]
MACHINE = Path(__file__).with_name("machine.toml")
SLOW_BYTES = 8 << 30  # where the experiment does not say
MEMORY_MB = 2048  # results wait in it, traces too
SETTLING_S = 120  # to build, to settle, to pack: for a guest under software emulation
SLOWNESS = 4  # a guest's clock may run behind the host's


@dataclass(frozen=True)
class Served:
    """A disk of the guest, and which part of the machine it is."""

    disk: Disk
    part: str

    @property
    def words(self) -> str:
        """What the server is told."""
        return f"{self.disk.name}={self.part}:{self.disk.size_bytes}"


def run(path: Path, out: Path, scenario: Path = MACHINE, say: Say = guest.unheard) -> Path:
    """Run an experiment in a guest; return the folder of its results.

    Raises ExperimentError for an experiment that makes no sense, MissingError where the lab cannot
    be had, LabError for a guest or a run that failed; what there is of results is kept.
    """
    what = experiment.load(path)
    members = members_of(scenario)
    served = disks(what, members if what.origin.raid_level is not None else 0)
    _check_memory(what, served)
    result_folder.prepare(str(out), what)
    load_before = os.getloadavg()
    with tempfile.TemporaryDirectory(dir=out, prefix=".guest-") as temporary:
        came = Path(temporary)
        try:
            done = guest.run(
                [command(served)],
                [each.disk for each in served],
                came,
                server=_server(scenario, served),
                files=_files(path),
                memory_mb=MEMORY_MB,
                limit_s=limit_s(what),
                hear=lambda line: say(f"  {line}"),
                say=say,
            )
        finally:
            _bring(came, out, scenario)
    books = [out / "lab/disks" / f"{each.disk.name}.model.json" for each in served]
    told = {
        "accelerator": done.accelerator,
        "boot_s": round(done.boot_s, 1),
        "wall_s": round(done.wall_s, 1),
        "host_load": {"before": load_before, "after": os.getloadavg(), "cpus": os.cpu_count()},
        "disks": {each.name.split(".")[0]: json.loads(each.read_text()) for each in books},
        "packages": set_up(guest.unheard).versions,
    }
    (out / "lab" / "lab.json").write_text(json.dumps(told, indent=1) + "\n")
    if done.codes[-1]:
        raise LabError(f"{path}: the run failed in the guest (see {out}): {_last_line(out)}")
    return out


def machine_for(folder: Path, said: Path | None) -> Path:
    """Return the scenario of the disks: what was said, else the one beside the experiments."""
    if said is not None:
        return said
    beside = folder / MACHINE.name
    return beside if beside.exists() else MACHINE


def _check_memory(what: Experiment, served: Sequence[Served]) -> None:
    """Raise MissingError where the guest and what is written to its disks cannot be kept."""
    writes = what.load.job.writes or what.collect.calibrate
    written = sum(each.disk.size_bytes for each in served if writes or each.part == "ssd")
    need_mb = MEMORY_MB + written // 1_000_000
    found = re.search(r"^MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    has_mb = int(found[1]) // 1000 if found else need_mb
    if has_mb < need_mb:
        raise MissingError(
            f"the guest and what may be written to its disks take {need_mb:,} MB of memory, and "
            f"{has_mb:,} MB are free: make the [origin] smaller, or run it elsewhere"
        )


def disks(what: Experiment, members: int) -> list[Served]:
    """Return the disks of an experiment: an array and an SSD, or the members of an md array.

    Each is as large as it has to be, so that nothing lies between bcache and its SSD: a dm-linear
    there turns the flush before a journal entry into two.
    """
    fast = Disk("fast", what.fast_bytes, is_served=True, is_rotational=False)
    size = what.origin.size_bytes or SLOW_BYTES
    if not members:
        return [Served(Disk("slow", size, is_served=True), "array"), Served(fast, "ssd")]
    slow = [Disk(f"slow{i}", size, is_served=True) for i in range(members)]
    return [*(Served(each, "member") for each in slow), Served(fast, "ssd")]


def command(served: list[Served]) -> list[str]:
    """Return what the guest runs."""
    names = [each.disk.name for each in served]
    sides = [
        word
        for name in names
        for word in (
            "--fast" if name == "fast" else "--slow",
            f"{{{name}}}",
            "--erase",
            f"{{{name}}}",
        )
    ]
    build = ["python3", "-s", "-m", "validate", "build", "experiment.toml", *sides]
    return [*build, "--yes", "--state", "/run/validate", "--out", "{out}/run"]


def limit_s(what: Experiment) -> float:
    """Return after how long a run is given up."""
    jobs = 2 * len(calibration.READS + calibration.WRITES) if what.collect.calibrate else 0
    seconds = what.load.duration_s + what.restart_s + jobs * (what.collect.calibrate_s + 5)
    return SLOWNESS * seconds + SETTLING_S + guest.BOOT_S


def members_of(scenario: Path) -> int:
    """Return how many drives a machine's array has.

    Raises ExperimentError for a scenario that makes no sense, MissingError without hybridsim.
    """
    for name in ("hybridsim", "numpy", "numba", "pydantic"):
        if importlib.util.find_spec(name) is None:
            raise MissingError(
                f"the disks of `validate lab run` are hybridsim's models, and {name} is not "
                f"installed for {sys.executable}: pip install -e . in hybridsim's folder"
            )
    from hybridsim.foundation.errors import ScenarioError
    from hybridsim.scenario import Scenario

    try:
        return Scenario.load(scenario).backing.members
    except ScenarioError as error:
        raise ExperimentError(str(error)) from None


def _server(scenario: Path, served: list[Served]) -> list[str]:
    words = [sys.executable, "-m", "validate.lab.serve", str(scenario.resolve())]
    return [*words, *(each.words for each in served)]


def _files(path: Path) -> dict[str, bytes]:
    """Return the experiment, and the file with its jobs where it names one."""
    files = {"experiment.toml": path.read_bytes()}
    name = tomllib.loads(path.read_text()).get("load", {}).get("file")
    return files | ({name: (path.parent / name).read_bytes()} if name else {})


def _bring(came: Path, out: Path, scenario: Path) -> None:
    """Move what a guest handed out to where it belongs."""
    shutil.copytree(came / "run", out, dirs_exist_ok=True) if (came / "run").exists() else None
    lab = out / "lab"
    lab.mkdir(exist_ok=True)
    for name in ("disks", "dmesg.txt", "console.txt", "00.out"):
        if (came / name).exists():
            shutil.move(came / name, lab / name)
    with contextlib.suppress(OSError):
        shutil.copy(scenario, lab / "machine.toml")


def _last_line(out: Path) -> str:
    with contextlib.suppress(OSError, IndexError):
        return (out / "lab" / "00.out").read_text().strip().splitlines()[-1]
    return "it said nothing"
