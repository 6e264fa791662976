"""bcache: its superblocks, and the cached device that the kernel creates from them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from validate.devices import held, of_number, release_claim
from validate.errors import RunError
from validate.sizes import human
from validate.steps import Scene, ends
from validate.system import System

SECONDS = 30  # to wait for the kernel


@dataclass(frozen=True)
class FormatBcache:
    """The superblocks of a cache (role data) and a backing device (role origin)."""

    set_uuid: str
    bucket_bytes: int
    replacement: str

    def describe(self) -> str:
        """Return what the step does."""
        return f"write bcache's superblocks to data and origin, buckets {human(self.bucket_bytes)}"

    def do(self, scene: Scene) -> None:
        """Write them; make-bcache itself also refuses devices that hold a known format."""
        system = scene.system
        nodes = {role: of_number(scene.roles[role], system).node for role in ("data", "origin")}
        words = ["make-bcache", "--bucket", str(self.bucket_bytes), "--cset-uuid", self.set_uuid]
        # make-bcache does not support `random`: StartBcache sets it.
        if self.replacement in ("lru", "fifo"):
            words += [f"--cache_replacement_policy={self.replacement}"]

        def make() -> None:
            system.run([*words, "-C", nodes["data"], "-B", nodes["origin"]], timeout_s=60)

        ends.hand_over([scene.roles[role] for role in nodes], scene, make, kept=False)
        ends.begin_load(scene)

    def undo(self, system: System) -> None:
        """Do nothing: Occupy removes the superblocks with the ends of the devices."""


@dataclass(frozen=True)
class StartBcache:
    """The cached device of a set; its settings by their path in sysfs."""

    set_uuid: str
    settings: dict[str, str]  # of the cached device
    set_settings: dict[str, str]  # of the set
    role: str

    def describe(self) -> str:
        """Return what the step does."""
        settings = {**self.settings, **self.set_settings}
        words = ", ".join(f"{name} {value}" for name, value in settings.items())
        return f"start bcache {self.set_uuid[-12:]} ({self.role}){': ' if words else ''}{words}"

    def do(self, scene: Scene) -> None:
        """Register both devices, check that the cache is attached, and write the settings."""
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
            with contextlib.suppress(RunError):  # the kernel may be attaching it already
                system.write(backing / "attach", self.set_uuid)
        try:
            system.wait("the cache", (backing / "cache").exists, SECONDS)
        except RunError:
            raise RunError(
                "bcache did not attach its cache: the fast device may have fewer than 513 buckets; "
                "see `dmesg | grep bcache`"
            ) from None
        state, attached = system.read(backing / "state"), (backing / "cache").resolve().name
        if state not in ("clean", "dirty") or attached != self.set_uuid:
            raise RunError(
                f"bcache is {state}, attached to the set {attached}: expected clean or dirty, "
                f"attached to {self.set_uuid}; see `dmesg | grep bcache`"
            )

    def undo(self, system: System) -> None:
        """Stop the devices and the set that have our UUID, and no others."""
        for backing in self._backing(system):
            release_claim(system, system.read(backing / "dev/dev", ""))
            with contextlib.suppress(RunError):
                system.write(backing / "stop", "1")
            system.wait(f"{backing.parent.name}: bcache to stop", _is_gone(backing), SECONDS)
        there = self._set(system)
        caches = [link.resolve() for link in there.glob("cache[0-9]*")]
        if there.exists():
            with contextlib.suppress(RunError):  # it may be stopping already
                system.write(there / "stop", "1")
            system.wait("the cache set to stop", _is_gone(there), SECONDS)
        for cache in caches:  # later than its set; until then it cannot be registered
            system.wait("the cache to stop", _is_gone(cache), SECONDS)

    def _set(self, system: System) -> Path:
        return system.sys / "fs/bcache" / self.set_uuid

    def _backing(self, system: System) -> list[Path]:
        """Return the folders of backing devices of our set, by its links or by the superblock."""
        folders = [link.resolve() for link in self._set(system).glob("bdev*")]
        for folder in sorted((system.sys / "class/block").glob("*/bcache")):
            here = folder.resolve()
            if not (here / "stop").exists():
                continue  # a cache, not a backing device
            number = system.read(here.parent / "dev", "")
            if here not in folders and self._bears_our_uuid(number, system):
                folders.append(here)
        return folders

    def _bears_our_uuid(self, number: str, system: System) -> bool:
        try:
            with Path(of_number(number, system).node).open("rb") as stream:
                stream.seek(4096 + 56)
                return stream.read(16) == bytes.fromhex(self.set_uuid.replace("-", ""))
        except OSError:
            return False


def register(number: str, system: System) -> None:
    """Register a device with bcache, unless udev already did."""
    if (system.block(number) / "bcache").exists():
        return
    node = of_number(number, system).node
    try:
        system.write(system.sys / "fs/bcache/register", node)
    except RunError as error:
        if not (system.block(number) / "bcache").exists():
            raise RunError(f"bcache refused {node}: see `dmesg` ({error})") from None


def _is_gone(path: Path) -> Callable[[], bool]:
    return lambda: not path.exists()
