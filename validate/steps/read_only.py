"""Set the kernel's read-only flag of a device during a test that only reads."""

from __future__ import annotations

from dataclasses import dataclass

from validate.devices import find, is_read_only, set_read_only
from validate.steps import Scene
from validate.system import System


@dataclass(frozen=True)
class HoldReadOnly:
    """Set the read-only flag of a device; `undo` restores it."""

    path: str
    identity: dict[str, str]  # see Device.identity
    was_read_only: bool

    def describe(self) -> str:
        """Return what the step does."""
        return f"set {self.path} read-only in the kernel during the run"

    def do(self, scene: Scene) -> None:
        """Set the flag."""
        set_read_only(find(self.path, scene.system).node, True)

    def undo(self, system: System) -> None:
        """Restore the flag if it is the same device in the same boot: a reboot clears the flag."""
        if system.number_of(self.path) is None:
            return
        device = find(self.path, system)
        if device.identity(system) == self.identity:
            if is_read_only(device.node) != self.was_read_only:
                set_read_only(device.node, self.was_read_only)
