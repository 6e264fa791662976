"""An md RAID of several slow devices."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from validate.devices import held, of_number, release_claim
from validate.errors import RunError
from validate.sizes import KIB, human
from validate.steps import Scene, ends
from validate.system import System


@dataclass(frozen=True)
class MakeRaid:
    """An md array of the members."""

    name: str
    uuid: str
    level: int
    chunk_bytes: int
    members: tuple[str, ...]  # their roles
    role: str

    def describe(self) -> str:
        """Return what the step does."""
        return (
            f"create the RAID {self.level} {self.name} of {len(self.members)} devices, "
            f"chunks of {human(self.chunk_bytes)} ({self.role})"
        )

    def do(self, scene: Scene) -> None:
        """Create it without a resync (--assume-clean), since its contents do not matter."""
        system = scene.system
        nodes = [of_number(scene.roles[each], system).node for each in self.members]
        path = f"/dev/md/{self.name}"
        words = ["mdadm", "--create", path, "--run", "--metadata=1.2", f"--level={self.level}"]
        words += [f"--uuid={self.uuid}", f"--name={self.name}", "--homehost=any"]
        words += [f"--raid-devices={len(nodes)}"]
        words += [f"--chunk={self.chunk_bytes // KIB}"] if self.level != 1 else []
        words += ["--assume-clean", "--bitmap=none"] if self.level else []

        def create() -> None:
            system.run([*words, *nodes], timeout_s=60)

        ends.hand_over(
            [scene.roles[each] for each in self.members], scene,
            create, kept=False,
        )  # fmt: skip
        arrays = self._arrays(system)
        if not arrays:
            raise RunError(
                f"mdadm created {path}, but the kernel has no array with its UUID: see `dmesg`"
            )
        scene.roles[self.role] = system.read(arrays[0] / "dev")
        held(of_number(scene.roles[self.role], system), system)

    def undo(self, system: System) -> None:
        """Stop it; Occupy removes the superblocks with the ends of the members."""
        for folder in self._arrays(system):
            release_claim(system, system.read(folder / "dev", ""))
            system.run(["mdadm", "--stop", f"/dev/{folder.name}"])
            system.wait(f"{folder.name}: to stop", lambda at=folder: not (at / "md/level").exists())

    def _arrays(self, system: System) -> list[Path]:
        if system.program("mdadm") is None:
            return []
        wanted = self.uuid.replace("-", "")
        arrays = []
        for folder in sorted((system.sys / "class/block").glob("md*")):
            output = system.run(
                ["mdadm", "--detail", "--export", f"/dev/{folder.name}"], check=False, record=False
            )
            lines = dict(line.split("=", 1) for line in output.splitlines() if "=" in line)
            if lines.get("MD_UUID", "").replace(":", "") == wanted:
                arrays.append(folder)
        return arrays
