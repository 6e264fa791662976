"""Run all experiments of a folder, one after another; those that are done are skipped."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from validate import experiment, layout
from validate.errors import ExperimentError, InterruptedRunError, ValidateError
from validate.lab import running
from validate.lab.guest import ignore
from validate.lab.processes import StoppedError
from validate.progress import Progress

DONE, TO_DO, HALF, OTHER = "done", "to do", "half done", "of another experiment"
OVERHEAD_S = 40  # of a run beside fio, until one is measured


@dataclass(frozen=True)
class Item:
    """An experiment of a suite, and where its results go."""

    path: Path
    out: Path
    seconds: float  # of fio
    needs_open_cas: bool = False  # whose programs it does not name

    @property
    def state(self) -> str:
        """DONE, TO_DO, HALF or OTHER, by the files in its result folder."""
        try:
            if (self.out / layout.EXPERIMENT).read_bytes() != self.path.read_bytes():
                return OTHER
            environment = json.loads((self.out / layout.ENVIRONMENT).read_text())
        except FileNotFoundError:
            return HALF if (self.out / layout.EXPERIMENT).exists() else TO_DO
        except ValueError:
            return HALF
        return DONE if environment.get("complete") else HALF


def items(folder: Path, results: Path) -> list[Item]:
    """Return the experiments of a folder: all TOML files except machine.toml.

    Raises ExperimentError if one is invalid, or if there are none.
    """
    paths = [path for path in sorted(folder.glob("*.toml")) if path.name != running.MACHINE.name]
    if not paths:
        raise ExperimentError(f"{folder}: no experiments (*.toml) in it")
    suite = []
    for path in paths:
        what = experiment.load(path)
        seconds, cache = what.load.duration_s + what.restart_s, what.cache
        needs = cache.kind == "open-cas" and not cache.programs
        suite.append(Item(path, results / path.stem, seconds, needs))
    return suite


def run(
    todo: Sequence[Item],
    scenario: Path,
    report: Progress,
    progress: Progress = ignore,
    kernel: str = "",
    open_cas: Path | None = None,
) -> int:
    """Run the experiments that are not done; report each; return the number of failures.

    Those on Open CAS are left out unless its programs are named.
    After a failure the other experiments still run; a signal ends the suite.
    """
    failed = 0
    left_out = [item for item in todo if item.needs_open_cas and open_cas is None]
    overheads: list[float] = []
    for number, item in enumerate(todo, 1):
        name = f"{number}/{len(todo)} {item.path.stem}"
        if item.state == DONE:
            report(f"{name}: done before")
            continue
        if item in left_out:
            report(
                f"{name}: left out: needs Open CAS: name the folder of its build: --open-cas DIR"
            )
            continue
        if item.state == OTHER:
            report(f"{name}: {item.out} is {OTHER}: remove it, or specify another folder with -o")
            failed += 1
            continue
        remaining = [
            each
            for each in todo[number - 1 :]
            if each not in left_out and each.state in (TO_DO, HALF)
        ]
        overhead = sum(overheads) / len(overheads) if overheads else OVERHEAD_S
        minutes = sum(each.seconds + overhead for each in remaining) / 60
        report(f"{name}: running (about {minutes:.0f} min left for the suite)")
        if item.state == HALF:
            shutil.rmtree(item.out)
        started = time.monotonic()
        try:
            running.run(item.path, item.out, scenario, progress, kernel, open_cas)
        except (StoppedError, InterruptedRunError):
            raise
        except ValidateError as error:
            failed += 1
            report(f"{name}: failed: {error}")
            continue
        took = time.monotonic() - started
        overheads.append(took - item.seconds)
        report(f"{name}: done in {took:.0f} s")
    return failed
