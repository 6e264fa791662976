"""Open CAS: a cache that casadm starts on a part of the fast device, with the origin as its core.

casadm takes devices by links in /dev/disk/by-id.  The links of a run have its name, and the kernel
keeps the path of the cache's device: so a cache is ours if it was started by our link.  Its ID is
the first that is free; caches of others are neither listed as ours nor stopped.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from validate import opencas, signatures
from validate.devices import Claim, held, of_number, release_claim
from validate.errors import RunError
from validate.sizes import human
from validate.steps import Scene, ends
from validate.steps.mapper import info
from validate.system import System

MADE = "open_cas_made"  # fact: the device holds a cache of this run
PARTS = ("data", "origin")
LINKS = "disk/by-id"  # in /dev


@dataclass(frozen=True)
class ZeroPart:
    """Zero the ends of our mapped part once the cache on it was stopped: it writes as it stops.

    So the seal of its device (validate/steps/ends.py), which is taken before, does not fit.  The
    part keeps the device from others, and what it held until the cache had stopped was erased by
    the cache: what is read then is zeroed if it is still the same.
    """

    name: str
    uuid: str

    def describe(self) -> str:
        """Return what the step does."""
        return f"keep {self.name} for the cache; its ends are zeroed afterwards"

    def do(self, scene: Scene) -> None:
        """Do nothing: the cache formats it."""

    def undo(self, system: System) -> None:
        """Zero its ends if the load of this process went to it; after a kill that is unknown."""
        if not system.loaded or info(self.name, "uuid", system) != self.uuid:
            return
        number = info(self.name, "major,minor", system)
        claim = held(of_number(number, system), system)
        for start, data in self.content(claim).items():
            for at in range(0, len(data), ends.ZEROED_BYTES):
                expected = data[at : at + ends.ZEROED_BYTES]
                is_same = claim.read(start + at, len(expected)) == expected
                if is_same and signatures.not_zero(expected):
                    claim.write(start + at, bytes(len(expected)))

    def content(self, claim: Claim) -> dict[int, bytes]:
        """Return what its ends hold, by offset."""
        return ends.of_device(claim.read, claim.device.size_bytes)


@dataclass(frozen=True)
class LinkDevices:
    """Links to the devices of the cache, by which casadm takes them."""

    prefix: str  # of their names

    def describe(self) -> str:
        """Return what the step does."""
        return f"link the devices of the cache as /dev/{LINKS}/{self.prefix}-*"

    def do(self, scene: Scene) -> None:
        """Create them; raise RunError if they exist."""
        for part in PARTS:
            link = link_to(part, self.prefix, scene.system)
            try:
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(of_number(scene.roles[part], scene.system).node)
            except OSError as error:
                raise RunError(f"{link}: cannot be created: {error.strerror}") from None

    def undo(self, system: System) -> None:
        """Remove them: the names have the ID of the run."""
        for part in PARTS:
            link = link_to(part, self.prefix, system)
            if link.is_symlink():
                with contextlib.suppress(FileNotFoundError):
                    link.unlink()


@dataclass(frozen=True)
class StartOpenCas:
    """An Open CAS of the devices with the roles data and origin."""

    prefix: str  # of the names of their links
    programs: str  # folder of casadm and the modules; "": those of the machine
    mode: str
    line_bytes: int
    parameters: tuple[str, ...]  # words of casadm after the IDs, one text for each name
    role: str

    def describe(self) -> str:
        """Return what the step does."""
        more = "".join(f", {text}" for text in self.parameters)
        return (
            f"start Open CAS on data: {self.mode}, lines of {human(self.line_bytes)}{more}; "
            f"add origin as its core ({self.role})"
        )

    def do(self, scene: Scene) -> None:
        """Start it, and record the uptime; load it if this run stopped it before."""
        system, roles = scene.system, scene.roles
        opencas.load(self.programs, system)
        casadm = opencas.program(self.programs)
        if scene.facts.get(MADE):
            ends.hand_over([roles[part] for part in PARTS], scene,
                           lambda: self._load(casadm, system), kept=False)  # fmt: skip
        else:
            ends.hand_over([roles["data"]], scene, lambda: self._start(casadm, scene), kept=False)
            scene.facts[MADE] = True
        scene.facts["made_uptime_s"] = system.uptime_s()
        core = self._of_ours(casadm, system)
        for text in self.parameters:
            name, *words = text.split()
            ids = ["--cache-id", str(core.cache_id)]
            ids += ["--core-id", str(core.core_id)] if name in opencas.OF_CORE else []
            system.run([casadm, "--set-param", "--name", name, *ids, *words])
        number = system.number_of(core.exported)
        if number is None:
            raise RunError(f"{core.exported}: casadm lists it, but it does not exist: see `dmesg`")
        roles[self.role] = number
        held(of_number(number, system), system)

    def _start(self, casadm: str, scene: Scene) -> None:
        """Start the cache; then hand over the origin, which stayed claimed, as its core."""
        system, origin = scene.system, scene.roles["origin"]
        line = str(self.line_bytes >> 10)
        words = ["--cache-mode", self.mode, "--cache-line-size", line]
        system.run([casadm, "--start-cache", "--cache-device", self._link("data", system), *words],
                   timeout_s=opencas.WAIT_S)  # fmt: skip
        below = scene.roles.get("fast", scene.roles["data"])
        for number, each in scene.taken.items():
            each.unmark(system)
            each.is_loaded = number == below
        release_claim(system, origin)
        ends.begin_load(scene)  # verifies the others
        number = str(opencas.cache_id(casadm, self._link("data", system), system))
        system.run([casadm, "--add-core", "--cache-id", number, "--core-device",
                    self._link("origin", system)], timeout_s=opencas.WAIT_S)  # fmt: skip

    def _load(self, casadm: str, system: System) -> None:
        words = ["--start-cache", "--cache-device", self._link("data", system), "--load"]
        system.run([casadm, *words], timeout_s=opencas.WAIT_S)

    def _of_ours(self, casadm: str, system: System) -> opencas.CachedOrigin:
        data = self._link("data", system)
        mine = [core for core in opencas.cores(casadm, system) if core.cache == data]
        if len(mine) != 1:
            raise RunError(f"casadm lists {len(mine)} cores of the cache on {data}: see `dmesg`")
        return mine[0]

    def undo(self, system: System) -> None:
        """Stop the cache that was started by our link, and no other; what is dirty is lost."""
        if not (system.sys / "module" / opencas.CACHE_MODULE).is_dir():
            return
        casadm = opencas.program(self.programs)
        data = self._link("data", system)
        number = opencas.cache_id(casadm, data, system)
        if number is None:
            return
        for core in opencas.cores(casadm, system):
            if core.cache == data:
                release_claim(system, system.number_of(core.exported) or "")
        system.run([casadm, "--stop-cache", "--cache-id", str(number), "--no-data-flush"],
                   timeout_s=opencas.WAIT_S)  # fmt: skip

    def _link(self, part: str, system: System) -> str:
        return str(link_to(part, self.prefix, system))


def link_to(part: str, prefix: str, system: System) -> Path:
    """Return the link to the device with a role."""
    return system.dev / LINKS / f"{prefix}-{part}"
