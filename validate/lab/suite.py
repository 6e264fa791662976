"""All experiments of a folder, one after the other; what is done already is not done again."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from validate import experiment, layout
from validate.errors import ExperimentError, InterruptedRunError, ValidateError
from validate.lab import running
from validate.lab.guest import unheard
from validate.lab.processes import StoppedError

Say = Callable[[str], None]
DONE, TO_DO, HALF, OTHER = "done", "to do", "half done", "of another experiment"
OVERHEAD_S = 40  # boot, cache, packing: until one run has told how long it takes


@dataclass(frozen=True)
class Item:
    """An experiment of a suite, and where its results go."""

    path: Path
    out: Path
    seconds: float  # that fio runs

    @property
    def state(self) -> str:
        """How far it is."""
        try:
            if (self.out / layout.EXPERIMENT).read_bytes() != self.path.read_bytes():
                return OTHER
            told = json.loads((self.out / layout.ENVIRONMENT).read_text())
        except FileNotFoundError:
            return HALF if (self.out / layout.EXPERIMENT).exists() else TO_DO
        except ValueError:
            return HALF
        return DONE if told.get("complete") else HALF


def items(folder: Path, results: Path) -> list[Item]:
    """Return the experiments of a folder: all but its machine.toml.

    Raises ExperimentError where one makes no sense.
    """
    paths = [path for path in sorted(folder.glob("*.toml")) if path.name != running.MACHINE.name]
    if not paths:
        raise ExperimentError(f"{folder}: no experiments (*.toml) in it")
    found = []
    for path in paths:
        what = experiment.load(path)
        found.append(Item(path, results / path.stem, what.load.duration_s + what.restart_s))
    return found


def run(todo: Sequence[Item], scenario: Path, say: Say, progress: Say = unheard) -> int:
    """Run what is to be done; tell a line of each; return how many failed.

    An experiment that fails does not keep the others from being run; a signal ends it all.
    """
    failed = 0
    overheads: list[float] = []
    for number, item in enumerate(todo, 1):
        name = f"{number}/{len(todo)} {item.path.stem}"
        if item.state == DONE:
            say(f"{name}: done before")
            continue
        if item.state == OTHER:
            say(f"{name}: {item.out} is {OTHER}: remove it, or name another folder with -o")
            failed += 1
            continue
        left = [each for each in todo[number - 1 :] if each.state in (TO_DO, HALF)]
        overhead = sum(overheads) / len(overheads) if overheads else OVERHEAD_S
        minutes = sum(each.seconds + overhead for each in left) / 60
        say(f"{name}: running ({minutes:.0f} min to go in all)")
        if item.state == HALF:
            shutil.rmtree(item.out)
        started = time.monotonic()
        try:
            running.run(item.path, item.out, scenario, progress)
        except (StoppedError, InterruptedRunError):
            raise
        except ValidateError as error:
            failed += 1
            say(f"{name}: failed: {error}")
            continue
        took = time.monotonic() - started
        overheads.append(took - item.seconds)
        say(f"{name}: done in {took:.0f} s")
    return failed
