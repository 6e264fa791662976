"""Run an experiment in a guest: the same driver as on a real machine, on simulated disks.

The result folder is that of `validate build`, with a folder `lab/` in it:

    machine.toml               the scenario of the disks
    lab.json                   versions, accelerator, load of the host, lateness of the disks
    disks/NAME.requests.npy    each request of a disk: arrival, completion, time of the answer
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
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from validate import calibration, experiment, opencas, result_folder
from validate.errors import ExperimentError, MissingError
from validate.experiment import Cache, Experiment
from validate.lab import fronts, guest
from validate.lab.errors import LabError
from validate.lab.machine import Disk
from validate.lab.setup import set_up
from validate.progress import Progress

MACHINE = Path(__file__).with_name("machine.toml")
PROGRAMS = "open-cas"  # in the guest's working folder: casadm and the modules
SLOW_BYTES = 8 << 30  # default size of the slow device
MEMORY_MB = 2048  # includes the results and traces
SETTLING_S = 120  # to build the cache and pack the results, under software emulation
SLOWNESS = 4  # limit for the host's time over the guest's


@dataclass(frozen=True)
class Served:
    """A disk of the guest, and the part of the machine that it represents."""

    disk: Disk
    part: str

    @property
    def words(self) -> str:
        """The argument of the server for this disk."""
        return f"{self.disk.name}={self.part}:{self.disk.size_bytes}"


def run(
    path: Path,
    out: Path,
    scenario: Path = MACHINE,
    progress: Progress = guest.ignore,
    kernel: str = "",
    open_cas: Path | None = None,
) -> Path:
    """Run an experiment in a guest, with a kernel of a release; return the result folder.

    `open_cas` is the folder of Open CAS's programs and modules, built for that kernel; None: that
    of the experiment.
    Raises ExperimentError if the experiment is invalid, MissingError if the lab is not available,
    LabError if the guest or the run fails; partial results are kept.
    """
    what = experiment.with_programs(experiment.load(path), open_cas)
    programs = open_cas_files(what.cache)
    members = members_of(scenario)
    served = disks(what, members if what.origin.raid_level is not None else 0)
    is_page = what.cache.kind == "page"
    seen = fronts.disks(what) if is_page else [each.disk for each in served]
    _check_memory(what, served)
    result_folder.prepare(str(out), what)
    load_before = os.getloadavg()
    with tempfile.TemporaryDirectory(dir=out, prefix=".guest-") as temporary:
        results = Path(temporary)
        try:
            done = guest.run(
                [fronts.command(what) if is_page else command(served, has_programs=bool(programs))],
                seen,
                results,
                server=_server(scenario, served, fronts.of(what) if is_page else []),
                files=_files(path) | programs,
                memory_mb=MEMORY_MB,
                limit_s=limit_s(what),
                kernel=kernel,
                on_output=lambda line: progress(f"  {line}"),
                progress=progress,
            )
        finally:
            _move(results, out, scenario)
    models = [out / "lab/disks" / f"{each.disk.name}.model.json" for each in served]
    facts = {
        "accelerator": done.accelerator,
        "zero_unix_s": round(done.zero_unix_s, 6),
        "boot_s": round(done.boot_s, 1),
        "wall_s": round(done.wall_s, 1),
        "host_load": {"before": load_before, "after": os.getloadavg(), "cpus": os.cpu_count()},
        "disks": {each.name.split(".")[0]: json.loads(each.read_text()) for each in models},
        "packages": set_up(guest.ignore, kernel).versions,
    }
    (out / "lab" / "lab.json").write_text(json.dumps(facts, indent=1) + "\n")
    if is_page:
        fronts.collect(out, done.zero_unix_s)
        if not done.codes[-1]:
            fronts.record_settings(out)
    if done.codes[-1]:
        raise LabError(f"{path}: the run failed in the guest (see {out}): {_last_line(out)}")
    return out


def machine_for(folder: Path, specified: Path | None) -> Path:
    """Return the scenario of the disks: specified, else in the folder, else the lab's own."""
    if specified is not None:
        return specified
    beside = folder / MACHINE.name
    return beside if beside.exists() else MACHINE


def _check_memory(what: Experiment, served: Sequence[Served]) -> None:
    """Raise MissingError if memory is too small for the guest and the data on its disks."""
    writes = what.load.job.writes or what.collect.calibrate
    written = sum(each.disk.size_bytes for each in served if writes or each.part == "ssd")
    need_mb = MEMORY_MB + written // 1_000_000
    match = re.search(r"^MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    has_mb = int(match[1]) // 1000 if match else need_mb
    if has_mb < need_mb:
        raise MissingError(
            f"the guest and the data on its disks may need {need_mb:,} MB of memory, but only "
            f"{has_mb:,} MB are free: make the [origin] smaller, or run it elsewhere"
        )


def disks(what: Experiment, members: int) -> list[Served]:
    """Return the disks of an experiment: an array and an SSD, or the members of an md array.

    Each has exactly the needed size, so that no dm-linear is needed between bcache and its SSD: it
    would turn the flush before a journal entry into two.
    """
    fast = Disk("fast", what.fast_bytes, is_served=True, is_rotational=False)
    size = what.origin.size_bytes or SLOW_BYTES
    if not members:
        return [Served(Disk("slow", size, is_served=True), "array"), Served(fast, "ssd")]
    slow = [Disk(f"slow{i}", size, is_served=True) for i in range(members)]
    return [*(Served(each, "member") for each in slow), Served(fast, "ssd")]


def open_cas_files(cache: Cache) -> dict[str, bytes]:
    """Return Open CAS's programs and modules for the guest, by path in its working folder.

    Raises MissingError if there are none: the guest has no Open CAS of its own.
    """
    if cache.kind != "open-cas":
        return {}
    if not cache.programs:
        raise MissingError(
            "the guest has no Open CAS: build it for the guest's kernel, and name the folder: "
            "--open-cas DIR"
        )
    places = [Path(opencas.program(cache.programs)), *opencas.modules(cache.programs)]
    return {f"{PROGRAMS}/{place.name}": place.read_bytes() for place in places}


def command(served: list[Served], *, has_programs: bool = False) -> list[str]:
    """Return the command that the guest runs."""
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
    build += ["--open-cas", PROGRAMS] if has_programs else []
    return [*build, "--yes", "--state", "/run/validate", "--out", "{out}/run"]


def limit_s(what: Experiment) -> float:
    """Return the time limit of a run, in seconds of the host."""
    jobs = 2 * len(calibration.READS + calibration.WRITES) if what.collect.calibrate else 0
    seconds = what.load.duration_s + what.restart_s + jobs * (what.collect.calibrate_s + 5)
    return SLOWNESS * seconds + SETTLING_S + guest.BOOT_S


def members_of(scenario: Path) -> int:
    """Return the number of drives in the array of a scenario.

    Raises ExperimentError if the scenario is invalid, MissingError if hybridsim is not installed.
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


def _server(scenario: Path, served: list[Served], behind: Sequence[fronts.Front] = ()) -> list[str]:
    """Return the command that serves the disks, and what is in front of them."""
    words = [sys.executable, "-m", "validate.lab.serve", str(scenario.resolve())]
    words += [each.words for each in served]
    names = [each.disk.name for each in served]
    return fronts.server(words, names, behind) if behind else words


def _files(path: Path) -> dict[str, bytes]:
    """Return the experiment, and its job file if it names one."""
    files = {"experiment.toml": path.read_bytes()}
    name = tomllib.loads(path.read_text()).get("load", {}).get("file")
    return files | ({name: (path.parent / name).read_bytes()} if name else {})


def _move(results: Path, out: Path, scenario: Path) -> None:
    """Move the results of a guest into the result folder."""
    if (results / "run").exists():
        shutil.copytree(results / "run", out, dirs_exist_ok=True)
    lab = out / "lab"
    lab.mkdir(exist_ok=True)
    for name in ("disks", "dmesg.txt", "console.txt", "00.out"):
        if (results / name).exists():
            shutil.move(results / name, lab / name)
    with contextlib.suppress(OSError):
        shutil.copy(scenario, lab / "machine.toml")


def _last_line(out: Path) -> str:
    with contextlib.suppress(OSError, IndexError):
        return (out / "lab" / "00.out").read_text().strip().splitlines()[-1]
    return "it printed nothing"
