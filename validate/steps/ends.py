"""The two ends of a device, where everything that can be recognised is kept."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from validate import guards, signatures
from validate.devices import Claim, Device, find, of_number
from validate.errors import NotOursError, UnsafeError
from validate.sizes import MIB
from validate.steps import UUID_PREFIX, Scene
from validate.system import System

PATIENCE_S = 10
OURS = ("a bcache superblock", "a member of an md RAID")  # where they bear our UUID
SAME_BOOT = ("a dm-cache's metadata", "data at its beginning", "data at its end")
UUIDS_AT = {"a bcache superblock": 4096 + 56, "a member of an md RAID": 4096 + 16}


@dataclass(frozen=True)
class Occupy:
    """A device of the user's, empty when it is taken and when it is given back."""

    path: str
    role: str
    identity: dict[str, str]  # see Device.identity

    def describe(self) -> str:
        """Say what it does."""
        return f"take {self.path} ({self.role}); its first and last MiB are zeros when it is back"

    def do(self, scene: Scene) -> None:
        """See that it is still the one that was checked."""
        device = find(self.path, scene.system)
        claim = Claim(device, scene.system, write=True)
        try:
            if device.identity(scene.system) != self.identity:
                raise UnsafeError(f"{self.path}: is another device than a moment ago")
            why = guards.empty(device, claim, scene.system)
            if why:
                raise UnsafeError(f"{self.path}: {why}")
        finally:
            claim.release()
        scene.roles[self.role] = device.number

    def undo(self, system: System) -> None:
        """Zero its ends, if it is the same device and holds nothing but what we put there."""
        device = self._again(system)
        if device is None:
            return
        claim = _claim_soon(device, system)
        try:
            read = signatures.of_file(claim.fd)
            strange = [name for name in signatures.found(read, device.size_bytes)
                       if not self._is_ours(name, read, system)]  # fmt: skip
            if strange:
                raise NotOursError(
                    f"{self.path}: holds {', '.join(strange)}, which is not ours: left as it is"
                )
            zero(claim.fd, device.size_bytes)
        finally:
            claim.release()

    def _again(self, system: System) -> Device | None:
        """Return the device, also after a reboot; None where it is gone.

        Raises NotOursError where it cannot be told from another.
        """
        same_boot = system.boot() == self.identity["boot"]
        if not same_boot and not self.identity["hardware"]:
            raise NotOursError(
                f"{self.path}: after a reboot nothing tells it from another: left as it is; if it "
                "still bears a superblock of ours, wipefs -a removes that"
            )
        wanted = {key: value for key, value in self.identity.items()
                  if same_boot or key in ("size", "hardware")}  # fmt: skip
        for folder in sorted((system.sys / "class/block").iterdir()):
            number = system.read(folder / "dev", "")
            found = of_number(number, system).identity(system) if number else {}
            if number and wanted.items() <= found.items():
                return of_number(number, system, f"/dev/{folder.name.replace('!', '/')}")
        return None

    def _is_ours(self, name: str, read: signatures.Reader, system: System) -> bool:
        if name in OURS:
            return read(UUIDS_AT[name], 10) == bytes.fromhex(UUID_PREFIX.replace("-", ""))
        return name in SAME_BOOT and system.boot() == self.identity["boot"]


def _claim_soon(device: Device, system: System) -> Claim:
    """Take a device that the kernel may only be about to let go of."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            return Claim(device, system, write=True)
        except UnsafeError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def zero(fd: int, size_bytes: int) -> None:
    """Write zeros to the first and the last MiB."""
    length = min(MIB, size_bytes)
    for at in (0, size_bytes - length):
        done = 0
        while done < length:
            done += os.pwrite(fd, bytes(length - done), at + done)
    os.fsync(fd)


def zero_device(device: Device, system: System) -> None:
    """Write zeros to the ends of a device that is ours."""
    claim = Claim(device, system, write=True)
    try:
        zero(claim.fd, device.size_bytes)
    finally:
        claim.release()
