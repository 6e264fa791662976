"""Set the writeback throttling (blk-wbt) of a device's queue during a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from validate.devices import Device, find
from validate.errors import MissingError
from validate.steps import Scene
from validate.system import System


@dataclass(frozen=True)
class SetThrottle:
    """Set the latency that the throttle aims at; `undo` restores it."""

    path: str
    identity: dict[str, str]  # see Device.identity
    before_us: str
    target_us: int  # 0: no throttling

    @classmethod
    def of(cls, device: Device, target_us: int, system: System) -> SetThrottle:
        """Return the step for a device; raise MissingError if its queue has no throttle."""
        before_us = system.read(place(device), "")
        if not before_us:
            raise MissingError(
                f"{device.node}: its queue has no writeback throttling: remove writeback_throttle "
                "from [origin]"
            )
        return cls(device.node, device.identity(system), before_us, target_us)

    def describe(self) -> str:
        """Return what the step does."""
        return f"{words(self.target_us)} of {self.path}"

    def do(self, scene: Scene) -> None:
        """Set it."""
        scene.system.write(place(find(self.path, scene.system)), str(self.target_us))

    def undo(self, system: System) -> None:
        """Restore it if it is the same device in the same boot."""
        if system.number_of(self.path) is None:
            return
        device = find(self.path, system)
        if device.identity(system) == self.identity:
            if system.read(place(device), self.before_us) != self.before_us:
                system.write(place(device), self.before_us)


def words(target_us: int) -> str:
    """Return what is set, in words."""
    if not target_us:
        return "switch off the writeback throttling"
    return f"set the writeback throttling to {target_us} us"


def place(device: Device) -> Path:
    """Return the file of the setting."""
    return device.disk / "queue/wbt_lat_usec"
