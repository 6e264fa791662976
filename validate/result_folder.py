"""Prepare the result folder before a run, and complete it afterwards."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from validate import layout
from validate.environment import Environment
from validate.errors import ExperimentError, MissingError, ValidateError
from validate.experiment import Experiment
from validate.sizes import MIB, human

NEED_BYTES = 32 * MIB
TRACE_BYTES_PER_S = MIB  # of all devices, at a few thousand requests a second


def prepare(path: str, experiment: Experiment) -> Path:
    """Create the folder, or accept an empty one, and copy the experiment into it.

    Raises ExperimentError if it is not empty, MissingError if it cannot be written or its disk is
    full.
    """
    folder = Path(path).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise ExperimentError(f"{path}: is not empty: specify a new folder with -o")
        probe = folder / f".{layout.ENVIRONMENT}"
        probe.write_bytes(bytes(4096))
        probe.unlink()
    except OSError as error:
        raise MissingError(
            f"{path}: cannot be written: {error.strerror}; specify another folder with -o"
        ) from None
    has, need = shutil.disk_usage(folder).free, need_bytes(experiment)
    if has < need:
        raise MissingError(
            f"{path}: {human(has)} are free, but the results may need {human(need)}: free "
            "space, or specify another folder with -o"
        )
    (folder / layout.EXPERIMENT).write_text(experiment.text)
    return folder


@contextlib.contextmanager
def recorded(environment: Environment, folder: Path) -> Iterator[None]:
    """Write how a run ended; remove the folder of a run that never began."""
    try:
        yield
        environment.complete = True
        environment.write(folder)
    except (ValidateError, OSError) as error:
        environment.error = str(error)
        with contextlib.suppress(OSError):
            environment.write(folder)
            remove_if_bare(folder)
        raise
    finally:
        give_to_caller(folder)


def remove_if_bare(folder: Path) -> None:
    """Remove a folder without results, so that the same command can be repeated."""
    names = {layout.EXPERIMENT, layout.ENVIRONMENT}
    if {each.name for each in folder.iterdir()} <= names:
        for name in names:
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()


def need_bytes(experiment: Experiment) -> int:
    """Return an upper estimate of the bytes of the results."""
    collect, seconds = experiment.collect, experiment.load.duration_s + experiment.restart_s
    traced = (collect.trace_duration_s or seconds) if collect.trace else 0
    return NEED_BYTES + traced * TRACE_BYTES_PER_S + seconds * 4096


def check_room(folder: Path) -> None:
    """Raise MissingError if the disk of the results is full."""
    if shutil.disk_usage(folder).free < MIB:
        raise MissingError(
            f"{folder}: its disk is full, the results are incomplete: free space and run it again"
        )


def give_to_caller(folder: Path) -> None:
    """Change the owner of the results to the user who called sudo."""
    uid, gid = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
    if uid.isdigit() and gid.isdigit() and os.geteuid() == 0 and folder.is_dir():
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, int(uid), int(gid), follow_symlinks=False)
