"""A device that the kernel lets nobody write to, while its users only read."""

from __future__ import annotations

from dataclasses import dataclass

from validate.devices import find, is_read_only, set_read_only
from validate.steps import Scene
from validate.system import System


@dataclass(frozen=True)
class HoldReadOnly:
    """Writes are refused for the time of the test."""

    path: str
    identity: dict[str, str]  # see Device.identity
    was_read_only: bool

    def describe(self) -> str:
        """Say what it does."""
        return f"have the kernel refuse writes to {self.path} meanwhile"

    def do(self, scene: Scene) -> None:
        """Set it."""
        set_read_only(find(self.path, scene.system).node, True)

    def undo(self, system: System) -> None:
        """Set it back, if it is the same device in the same boot: a reboot clears it anyway."""
        if system.number_of(self.path) is None:
            return
        device = find(self.path, system)
        if device.identity(system) == self.identity:
            if is_read_only(device.node) != self.was_read_only:
                set_read_only(device.node, self.was_read_only)
