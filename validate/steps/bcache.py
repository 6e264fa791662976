"""bcache: its superblocks, and the device that the kernel makes of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from validate.devices import held, let_go, of_number
from validate.errors import RunError
from validate.sizes import human
from validate.steps import Scene, ends
from validate.system import System

SECONDS = 30


@dataclass(frozen=True)
class FormatBcache:
    """The superblocks of a cache (role data) and a backing device (role origin)."""

    set_uuid: str
    bucket_bytes: int
    replacement: str

    def describe(self) -> str:
        """Say what it does."""
        return f"write bcache's superblocks to data and origin, buckets {human(self.bucket_bytes)}"

    def do(self, scene: Scene) -> None:
        """Write them; the tool itself looks for what is there, too."""
        system = scene.system
        nodes = {role: of_number(scene.roles[role], system).node for role in ("data", "origin")}
        words = ["make-bcache", "--bucket", str(self.bucket_bytes), "--cset-uuid", self.set_uuid]
        # random is not known to the tool: it is set where the set is started.
        if self.replacement in ("lru", "fifo"):
            words += [f"--cache_replacement_policy={self.replacement}"]

        def make() -> None:
            system.run([*words, "-C", nodes["data"], "-B", nodes["origin"]], timeout_s=60)

        ends.hand_over([scene.roles[role] for role in nodes], scene, make, kept=False)
        ends.begin_load(scene)

    def undo(self, system: System) -> None:
        """Nothing: they go with the ends of the devices."""


@dataclass(frozen=True)
class StartBcache:
    """The cached device of the set with that UUID; its settings by their place in sysfs."""

    set_uuid: str
    settings: dict[str, str]  # of the cached device
    set_settings: dict[str, str]  # of the set
    role: str

    def describe(self) -> str:
        """Say what it does."""
        told = {**self.settings, **self.set_settings}
        words = ", ".join(f"{name} {value}" for name, value in told.items())
        return f"start bcache {self.set_uuid[-12:]} ({self.role}){': ' if words else ''}{words}"

    def do(self, scene: Scene) -> None:
        """Register both devices, see that the cache is attached and active, and set it up."""
        system = scene.system
        system.module("bcache")
        register(scene.roles["data"], system)
        register(scene.roles["origin"], system)
        origin = system.block(scene.roles["origin"])
        system.wait("bcache: a device of the origin", (origin / "bcache/dev").exists, SECONDS)
        self._attach(origin / "bcache", system)
        device = Path((origin / "bcache/dev").resolve())
        for name, value in self.settings.items():
            system.write(origin / "bcache" / name, value)
        for name, value in self.set_settings.items():
            system.write(self._set(system) / name, value)
        scene.roles[self.role] = system.read(device / "dev")
        held(of_number(scene.roles[self.role], system), system)
        scene.facts["made_uptime_s"] = system.uptime_s()

    def _attach(self, backing: Path, system: System) -> None:
        if not (backing / "cache").exists():
            with contextlib.suppress(RunError):  # it may be on its way by itself
                system.write(backing / "attach", self.set_uuid)
        try:
            system.wait("the cache", (backing / "cache").exists, SECONDS)
        except RunError:
            raise RunError(
                "bcache runs without its cache: it found no use for the fast device (fewer than "
                "513 buckets?); `dmesg | grep bcache` says more"
            ) from None
        state, attached = system.read(backing / "state"), (backing / "cache").resolve().name
        if state not in ("clean", "dirty") or attached != self.set_uuid:
            raise RunError(f"bcache is {state}, with the cache {attached}: not as it should be")

    def undo(self, system: System) -> None:
        """Stop the devices and the set that bear our UUID, and no others."""
        for backing in self._backing(system):
            let_go(system, system.read(backing / "dev/dev", ""))
            with contextlib.suppress(RunError):
                system.write(backing / "stop", "1")
            system.wait(f"{backing.parent.name}: bcache to stop", _is_gone(backing), SECONDS)
        there = self._set(system)
        caches = [link.resolve() for link in there.glob("cache[0-9]*")]
        if there.exists():
            with contextlib.suppress(RunError):  # it may be on its way already
                system.write(there / "stop", "1")
            system.wait("the cache set to stop", _is_gone(there), SECONDS)
        for cache in caches:  # a moment behind its set; till then it cannot be registered again
            system.wait("the cache to stop", _is_gone(cache), SECONDS)

    def _set(self, system: System) -> Path:
        return system.sys / "fs/bcache" / self.set_uuid

    def _backing(self, system: System) -> list[Path]:
        """Return the folders of backing devices of our set, by its links or by the superblock."""
        found = [link.resolve() for link in self._set(system).glob("bdev*")]
        for folder in sorted((system.sys / "class/block").glob("*/bcache")):
            here = folder.resolve()
            if not (here / "stop").exists():
                continue  # it is of a cache, not of a backing device
            number = system.read(here.parent / "dev", "")
            if here not in found and self._bears_our_uuid(number, system):
                found.append(here)
        return found

    def _bears_our_uuid(self, number: str, system: System) -> bool:
        try:
            with Path(of_number(number, system).node).open("rb") as stream:
                stream.seek(4096 + 56)
                return stream.read(16) == bytes.fromhex(self.set_uuid.replace("-", ""))
        except OSError:
            return False


def register(number: str, system: System) -> None:
    """Have the kernel look at a device; udev may have been faster."""
    if (system.block(number) / "bcache").exists():
        return
    node = of_number(number, system).node
    try:
        system.write(system.sys / "fs/bcache/register", node)
    except RunError as error:
        if not (system.block(number) / "bcache").exists():
            raise RunError(f"bcache does not take {node}: `dmesg` says why ({error})") from None


def _is_gone(path: Path) -> Callable[[], bool]:
    return lambda: not path.exists()
