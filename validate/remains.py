"""What our runs left between the ends of a device: noted, so that the next run takes it again.

The load fills the middle of a device, and nobody zeroes terabytes.  When a run ends in order, the
hashes of the sampled pieces are noted by the device's identity.  A later check accepts a piece
there only while its content is exactly that; after a kill nothing is noted, as nobody can tell who
wrote last.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Collection, Sequence
from pathlib import Path

from validate.devices import Device
from validate.signatures import Piece
from validate.system import System

FOLDER = "remains"
LASTING = ("hardware", "size", "start")  # what a reboot does not change


def note(device: Device, content: Sequence[Piece], system: System) -> None:
    """Remember what is there; a note that cannot be written is none."""
    path = _path(device, system)
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
        if content:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.write_text(json.dumps([list(piece) for piece in content]))


def known(device: Device, system: System) -> Collection[Piece]:
    """Return what an earlier run left on it."""
    try:
        return {(int(at), str(told)) for at, told in json.loads(_path(device, system).read_text())}
    except (OSError, ValueError, TypeError):
        return set()


def _path(device: Device, system: System) -> Path:
    identity = device.identity(system)
    keys = LASTING if identity["hardware"] else tuple(sorted(identity))
    text = json.dumps([identity[key] for key in keys])
    return system.state / FOLDER / f"{hashlib.sha256(text.encode()).hexdigest()}.json"
