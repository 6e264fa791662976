"""Remove mapped devices and bcache sets that have our name prefix but are in no journal."""

from __future__ import annotations

from validate.steps import PREFIX, UUID_PREFIX, mapper
from validate.steps.bcache import StartBcache
from validate.system import System

ROUNDS = 4  # one for each layer: a cache is mapped onto parts, which are mapped too


def _mapped(system: System) -> list[str]:
    """Remove mapped devices, the upper ones first."""
    undone: list[str] = []
    if system.program("dmsetup") is None or not (system.sys / "module/dm_mod").is_dir():
        return undone
    for _ in range(ROUNDS):
        output = system.run(["dmsetup", "info", "-c", "--noheadings", "--separator", " ", "-o",
                           "name,open"], check=False)  # fmt: skip
        free = [line.split() for line in output.splitlines() if line.startswith(f"{PREFIX}-")]
        for name, opened in free:
            uuid = mapper.info(name, "uuid", system)
            if opened == "0" and uuid.startswith(f"{PREFIX.upper()}-"):
                mapper.remove(name, uuid, system)
                undone.append(f"undone: the mapped device {name}")
    return undone


def remove(system: System) -> list[str]:
    """Remove them; return a message on each."""
    undone = []
    for folder in sorted((system.sys / "fs/bcache").glob(f"{UUID_PREFIX}*")):
        StartBcache(folder.name, {}, {}, "cached").undo(system)
        undone.append(f"undone: the bcache set {folder.name}")
    undone += _mapped(system)
    return undone
