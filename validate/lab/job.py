"""The job disk and the result disk of a guest, each a tar archive."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from validate.lab.errors import LabError
from validate.lab.machine import Disk

INSIDE = Path(__file__).parent / "inside"
PACKAGE = Path(__file__).parent.parent
SECTOR = 512


def pack(
    target: Path,
    commands: Sequence[Sequence[str]],
    disks: Sequence[Disk],
    files: Mapping[str, bytes],
    limit_s: float,
) -> None:
    """Write the job disk.

    It holds the agent, the package `validate`, the commands, and `files` by name, which are in the
    working folder of the commands.
    """
    content = {
        "commands": [list(each) for each in commands],
        "disks": [disk.name for disk in disks],
        "flat": [disk.name for disk in disks if not disk.is_rotational],
        "limit_s": limit_s,
    }
    with tarfile.open(target, "w") as tar:
        for path in sorted(INSIDE.iterdir()):
            tar.add(path, path.name, recursive=False)
        for path in sorted(PACKAGE.rglob("*")):
            if path.suffix in (".py", ".toml", ".fio", ".sh") and "results" not in path.parts:
                tar.add(path, str(Path("validate") / path.relative_to(PACKAGE)), recursive=False)
        for name, data in {**files, "job.json": json.dumps(content).encode()}.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), 0o755
            tar.addfile(member, io.BytesIO(data))


def unpack(disk: Path, into: Path) -> None:
    """Unpack the result disk; raise LabError if it is not a complete archive."""
    into.mkdir(parents=True, exist_ok=True)
    command = [
        "tar",
        "-C",
        str(into),
        "-x",
        "--no-same-owner",
        "--no-same-permissions",
        "-f",
        str(disk),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["tar failed"])[0]
        raise LabError(f"the guest's results cannot be read: {reason}. Was its disk full?")
