"""Hashes of the content that a load left between the ends of a device.

The load fills the middle of a device, which is not zeroed afterwards: that may be terabytes.  When
a run ends in order, the hashes of the sampled pieces are saved under the device's identity.  A
later check accepts data between the ends only where its hash is among those.  After a kill nothing
is saved, since the last writer is unknown.
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
LASTING = ("hardware", "size", "start")  # the parts of an identity that a reboot does not change


def save(device: Device, content: Sequence[Piece], system: System) -> None:
    """Save the content of a device; errors are ignored, and the device is then refused later."""
    path = _path(device, system)
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
        if content:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.write_text(json.dumps([list(piece) for piece in content]))


def load(device: Device, system: System) -> Collection[Piece]:
    """Return the pieces that an earlier run saved; an empty set if there are none."""
    try:
        return {
            (int(at), str(digest)) for at, digest in json.loads(_path(device, system).read_text())
        }
    except (OSError, ValueError, TypeError):
        return set()


def _path(device: Device, system: System) -> Path:
    identity = device.identity(system)
    keys = LASTING if identity["hardware"] else tuple(sorted(identity))
    text = json.dumps([identity[key] for key in keys])
    return system.state / FOLDER / f"{hashlib.sha256(text.encode()).hexdigest()}.json"
