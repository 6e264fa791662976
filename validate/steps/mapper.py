"""Device-mapper targets: parts of devices (linear), dm-cache and dm-writecache.

Tables name devices by MAJOR:MINOR, so a path that is changed meanwhile has no effect.
"""

from __future__ import annotations

from dataclasses import dataclass

from validate.devices import held, of_number, release_claim
from validate.errors import RunError
from validate.sizes import SECTOR, human
from validate.steps import Scene, ends
from validate.system import System


@dataclass(frozen=True)
class MapLinear:
    """A mapped device over a part of a device."""

    name: str
    uuid: str
    of: str  # role of the device below
    start_bytes: int
    size_bytes: int
    role: str

    def describe(self) -> str:
        """Return what the step does."""
        where = f" from {human(self.start_bytes)}" if self.start_bytes else ""
        return f"map {human(self.size_bytes)} of {self.of}{where} as {self.name} ({self.role})"

    def do(self, scene: Scene) -> None:
        """Create it; zero its ends if an earlier load of ours wrote to the device."""
        sectors = self.size_bytes // SECTOR
        below = scene.roles[self.of]
        table = f"0 {sectors} linear {below} {self.start_bytes // SECTOR}\n"

        def map_it() -> None:
            number = scene.roles[self.role] = create(self.name, self.uuid, table, scene.system)
            held(of_number(number, scene.system), scene.system)

        ends.hand_over([below], scene, map_it, kept=True)
        if below in scene.taken and scene.taken[below].content:
            # The content of an earlier load could be taken for the metadata of a cache.
            part = of_number(scene.roles[self.role], scene.system)
            scene.taken[below].zero_ends_of(part, self.start_bytes, scene.system)

    def undo(self, system: System) -> None:
        """Remove it if it has our name and UUID."""
        remove(self.name, self.uuid, system)


@dataclass(frozen=True)
class MapCache:
    """A dm-cache of the devices with the roles metadata, data and origin."""

    name: str
    uuid: str
    mode: str
    policy: str
    block_bytes: int
    migration_threshold_sectors: int | None
    role: str

    def describe(self) -> str:
        """Return what the step does."""
        return (
            f"create the dm-cache {self.name}: {self.mode}, {self.policy}, blocks of "
            f"{human(self.block_bytes)} ({self.role})"
        )

    def do(self, scene: Scene) -> None:
        """Create it, and record the uptime: smq counts its periods of 60 s from there."""
        system, roles = scene.system, scene.roles
        for module in (
            "dm-cache",
            f"dm-cache-{'smq' if self.policy == 'cleaner' else self.policy}",
        ):
            system.module(module)
        arguments = "0"
        if self.migration_threshold_sectors is not None:
            arguments = f"2 migration_threshold {self.migration_threshold_sectors}"
        size_bytes = of_number(roles["origin"], system).size_bytes
        table = (
            f"0 {size_bytes // SECTOR} cache {roles['metadata']} {roles['data']} "
            f"{roles['origin']} {self.block_bytes // SECTOR} 1 {self.mode} {self.policy} "
            f"{arguments}\n"
        )
        parts = [roles[each] for each in ("metadata", "data", "origin")]
        start(self, table, parts, scene, writes=False)

    def undo(self, system: System) -> None:
        """Remove it; its dirty blocks are lost, since its metadata are erased."""
        remove(self.name, self.uuid, system)


@dataclass(frozen=True)
class MapWritecache:
    """A dm-writecache on an SSD: of the devices with the roles data and origin."""

    name: str
    uuid: str
    block_bytes: int
    options: tuple[str, ...]  # names and values in turn
    role: str

    def describe(self) -> str:
        """Return what the step does."""
        words = " ".join(self.options)
        return (
            f"create the dm-writecache {self.name}: blocks of {human(self.block_bytes)}"
            f"{', ' if words else ''}{words} ({self.role})"
        )

    def do(self, scene: Scene) -> None:
        """Create it, and record the uptime."""
        scene.system.module("dm-writecache")
        roles = scene.roles
        size_bytes = of_number(roles["origin"], scene.system).size_bytes
        words = " ".join([str(len(self.options)), *self.options])
        table = (
            f"0 {size_bytes // SECTOR} writecache s {roles['origin']} {roles['data']} "
            f"{self.block_bytes} {words}\n"
        )
        start(self, table, [roles["data"], roles["origin"]], scene, writes=True)

    def undo(self, system: System) -> None:
        """Remove it; what was not written back is lost, since its superblock is erased."""
        remove(self.name, self.uuid, system)


def start(
    step: MapCache | MapWritecache, table: str, parts: list[str], scene: Scene, *, writes: bool
) -> None:
    """Create a cache of the parts; `writes`: the kernel formats its device when it loads the table.

    Otherwise it does so when the cache is resumed.
    """
    system = scene.system
    system.module("dm-mod")
    words = ["dmsetup", "create", step.name, "--uuid", step.uuid, "--notable"]
    system.run(words, timeout_s=60)

    def load() -> None:  # the kernel claims the devices here
        ends.verify_all(scene)
        system.run(["dmsetup", "load", step.name], stdin=table, timeout_s=60)

    ends.hand_over(parts, scene, load, kept=not writes)
    ends.begin_load(scene, verified=True)  # the cache itself writes from here on
    system.resume_mapped(step.name)
    scene.facts["made_uptime_s"] = system.uptime_s()
    system.run(["dmsetup", "mknodes", step.name], timeout_s=60)
    scene.roles[step.role] = number_of(step.name, system)
    held(of_number(scene.roles[step.role], system), system)


def create(name: str, uuid: str, table: str, system: System) -> str:
    """Create a mapped device; return its MAJOR:MINOR."""
    system.module("dm-mod")
    system.run(["dmsetup", "create", name, "--uuid", uuid], stdin=table, timeout_s=60)
    return number_of(name, system)


def number_of(name: str, system: System) -> str:
    """Return MAJOR:MINOR of a mapped device that dmsetup created."""
    number = info(name, "major,minor", system)
    if not number:
        raise RunError(
            f"{name}: dmsetup reported success, but the device does not exist: see `dmesg`"
        )
    return number


def info(name: str, fields: str, system: System) -> str:
    """Return fields of `dmsetup info`, separated by colons; "" if there is no such device."""
    words = ["dmsetup", "info", "-c", "--noheadings", "--separator", ":", "-o", fields, name]
    return system.run(words, check=False, record=False).strip()


def remove(name: str, uuid: str, system: System) -> None:
    """Remove a mapped device that has this name and this UUID."""
    if system.program("dmsetup") is None or not (system.sys / "module/dm_mod").is_dir():
        return
    if info(name, "uuid", system) == uuid:
        release_claim(system, info(name, "major,minor", system))
        system.run(["dmsetup", "remove", "--retry", name], timeout_s=60)
