"""`hybridsim serve` between the disks of the lab and the guest: `python -m validate.lab.fronts`.

The disks are served as for any run; serve takes them as NBD exports and serves the guest's only
disk.  For a calibration each disk is behind a serve of its own that caches nothing, as with a
sequential cutoff of one sector every request bypasses it: so the bare devices have the path that
the cached one has.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event

from validate import layout
from validate.errors import MissingError
from validate.experiment import SERVED_HEAD, Cache, Experiment
from validate.lab.disk import wake_up_in_time
from validate.lab.machine import Disk
from validate.lab.processes import die_with_parent, stop

CACHED = "cached"
PATIENCE_S = 300  # the first serve of a machine compiles
THREADS = 32  # more than requests of QEMU (16) and fills (8) under way
UNCACHED = ("sequential_cutoff=512B",)
PAGES_UNUSED = 16  # of a serve that caches nothing
COLUMNS = ("hits", "misses", "bypasses", "writes", "fills_done", "evictions", "pages_present")


@dataclass(frozen=True)
class Front:
    """A serve: the disk that it offers, and its options; empty files that it needs are made."""

    name: str
    words: tuple[str, ...]
    file_bytes: int = 0  # of NAME.img


def disks(what: Experiment) -> list[Disk]:
    """Return the disks that the guest has."""
    origin = what.origin.size_bytes
    if not what.collect.calibrate:
        return [Disk(CACHED, origin, is_served=True)]
    fast = Disk("bare-fast", what.fast_bytes, is_served=True, is_rotational=False)
    return [Disk(CACHED, origin, is_served=True), fast]


def of(what: Experiment) -> list[Front]:
    """Return what serves the disks of an experiment on a page cache."""
    if not what.collect.calibrate:
        words = ("--fast", _uri("fast"), "--slow", _uri("slow"), *options(what.cache))
        return [Front(CACHED, words)]
    page = what.cache.block_bytes
    through = [f"--set=cache.{each}" for each in UNCACHED]
    return [
        Front(
            name,
            ("--fast", f"{name}.img", "--slow", _uri(disk), "--page", f"{page}B", *through),
            SERVED_HEAD + PAGES_UNUSED * page,
        )
        for name, disk in ((CACHED, "slow"), ("bare-fast", "fast"))
    ]  # fmt: skip


def options(cache: Cache) -> list[str]:
    """Return the options of `hybridsim serve` for a page cache."""
    words = ["--policy", cache.policy, "--mode", cache.mode, "--page", f"{cache.block_bytes}B"]
    return words + [f"--set=cache.{key}={text}" for key, text in cache.settings]


def command(what: Experiment) -> list[str]:
    """Return the command that the guest runs."""
    words = ["python3", "-s", "-m", "validate", "served", "experiment.toml"]
    words += ["--device", f"{{{CACHED}}}", "--out", "{out}/run"]
    return words + (["--bare-fast", "{bare-fast}"] if what.collect.calibrate else [])


def server(words: Sequence[str], names: Sequence[str], fronts: Sequence[Front]) -> list[str]:
    """Return the command that starts the server of the named disks, and what is in front of it."""
    specified = json.dumps(
        {"words": list(words), "names": list(names), "fronts": [asdict(each) for each in fronts]}
    )
    return [sys.executable, "-m", "validate.lab.fronts", specified]


def collect(out: Path, zero_unix_s: float) -> None:
    """Write the counters that serve sampled, on the guest's clock.  Raises MissingError."""
    path = out / "lab" / "disks" / f"{CACHED}.served.json"
    try:
        whole = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise MissingError(f"{path}: the figures of hybridsim serve are missing: {error}") from None
    series, start_s = whole["series"], whole["start_unix_ns"] / 1e9 - zero_unix_s
    bypasses = series["read_bypasses"]  # no misses, as a simulation has them
    misses = [every - passed for every, passed in zip(series["read_misses"], bypasses)]
    columns = [series["read_hits"], misses, bypasses, *(series[name] for name in COLUMNS[3:])]
    with (out / layout.SERVED).open("w") as stream:
        stream.write(" ".join(["uptime", *COLUMNS]) + "\n")
        for at, time_ns in enumerate(series["time_ns"]):
            uptime_s = start_s + time_ns / 1e9
            if uptime_s >= 0:
                values = [str(column[at]) for column in columns]
                stream.write(" ".join([f"{uptime_s:.3f}", *values]) + "\n")


def record_settings(out: Path) -> None:
    """Write the keys of the cache that serve used into `environment.json`: defaults may change."""
    whole = json.loads((out / "lab" / "disks" / f"{CACHED}.served.json").read_text())
    path = out / layout.ENVIRONMENT
    environment = json.loads(path.read_text())
    environment["cache"]["served"] = whole["cache"]
    path.write_text(json.dumps(environment, indent=1) + "\n")


def _uri(disk: str) -> str:
    return f"nbd+unix:///?socket={disk}.sock"


def main(specified: str) -> int:
    """Serve until SIGTERM; serve ends before the disks do."""
    whole = json.loads(specified)
    ended = Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    with contextlib.ExitStack() as children:
        below = _started(whole["words"], children)
        for name in whole["names"]:
            _wait_for(Path(f"{name}.sock"), below, ended)
        running = [below]
        for front in whole["fronts"]:
            if front["file_bytes"]:
                with Path(f"{front['name']}.img").open("wb") as file:
                    file.truncate(front["file_bytes"])
            name = front["name"]
            words = [sys.executable, "-m", "hybridsim", "serve", *front["words"], "--apart",
                     "--socket", f"{name}.sock", "--state", f"{name}.state", "--threads",
                     str(THREADS), "--json", f"{name}.served.json", "--every", "1s"]  # fmt: skip
            running.append(_started(words, children))
            _wait_for(Path(f"{name}.sock"), running[-1], ended)
        while not ended.wait(0.5):
            if any(each.poll() is not None for each in running):
                return 1
    return 0


def _started(words: Sequence[str], children: contextlib.ExitStack) -> subprocess.Popen[bytes]:
    """Start a child with the disks' priority, which is above the guest's."""

    def prepare() -> None:
        die_with_parent(signal.SIGTERM)
        wake_up_in_time()

    child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=sys.stderr, preexec_fn=prepare)
    children.callback(stop, child)
    return child


def _wait_for(path: Path, child: subprocess.Popen[bytes], ended: Event) -> None:
    until = time.monotonic() + PATIENCE_S
    while not path.exists() and not ended.is_set():
        if child.poll() is not None or time.monotonic() > until:
            sys.exit(f"{path}: was not served")
        time.sleep(0.02)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
