"""LVM's volumes for dm-cache and dm-writecache: names, layouts, and their making and removal."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from hybridsim.answers.setup.plan import KIB, MIB, Drives, Site, Step, empty, needed, value
from hybridsim.foundation.errors import UsageError

EXTENT_BYTES = 4 * MIB  # LVM's usual size; sizes are rounded up to it
STRIPE_MIN = 4 * KIB


@dataclass(frozen=True)
class Volumes:
    """Names of the volume group and its volumes."""

    group: str
    data: str
    fast: str = "cache"
    metadata: str = "cache_md"

    @classmethod
    def of(cls, site: Site) -> Volumes:
        """Return those of an existing volume, or new ones."""
        if site.is_volume:
            group, _, data = site.slow.partition("/")
            return cls(group, data, f"{data}_ssd", f"{data}_ssd_md")
        return cls("cached", "data")

    @property
    def main(self) -> str:
        """The volume that is cached."""
        return f"{self.group}/{self.data}"

    @property
    def mapped(self) -> str:
        """Its name in device-mapper."""
        return "-".join(each.replace("-", "--") for each in (self.group, self.data))

    @property
    def node(self) -> str:
        """A shell word for the kernel's name of it: the path below /dev/mapper may be a node."""
        return f'"$(dmsetup info -c --noheadings -o blkdevname {self.mapped})"'


def rounded(size_bytes: int, stripes: int) -> int:
    """Return a size as LVM rounds it: up to whole extents on each stripe."""
    step = EXTENT_BYTES * stripes
    return -(-size_bytes // step) * step


def made(site: Site, names: Volumes, array: Sequence[Step] = (), fast: str = "") -> list[Step]:
    """Return the steps up to a volume group with the volume that is to be cached.

    `array` makes one device `fast` of the SSDs, where LVM does not combine them itself.
    """
    steps = [empty(site.devices), *array]
    slow = () if site.is_volume else (site.slow,)
    devices = shlex.join((*slow, fast) if fast else site.devices)
    if site.is_volume:
        return [
            *steps,
            Step(f"vgextend {names.group} {devices}", "Add the SSD to the volume group."),
        ]
    return [
        *steps,
        Step(
            f"vgcreate --physicalextentsize {EXTENT_BYTES // MIB}m {names.group} {devices}",
            "One volume group of all devices. This destroys what they hold.",
        ),
        Step(
            f"lvcreate -n {names.data} -l 100%PVS {names.group} {site.slow}",
            f"The volume for the data, on all of the slow device: /dev/{names.main}.",
        ),
    ]


def unmade(site: Site, names: Volumes, fast: str = "") -> list[Step]:
    """Return the steps that give the SSDs back."""
    devices = fast or shlex.join(site.fast)
    return [Step(f"vgreduce {names.group} {devices}\npvremove {devices}", "Give the SSD back.")]


def layout(drives: Drives) -> str:
    """Return the options of lvcreate for these SSDs; raise UsageError for an invalid stripe."""
    stripe = drives.stripe_bytes
    if drives.members > 1 and (stripe < STRIPE_MIN or stripe & (stripe - 1)):
        raise UsageError(
            f"cache.chunk of {stripe} bytes: LVM's stripes are powers of two from 4 KiB"
        )
    striped = f" -i {drives.members} -I {stripe // KIB}k" if drives.members > 1 else ""
    if drives.is_mirrored:
        return f" --type raid{10 if drives.members > 1 else 1} -m 1{striped}"
    return f" --type striped{striped}" if striped else ""


def layout_in(words: Sequence[str]) -> Drives:
    """Return the SSDs of an lvcreate."""
    kind = value(words, "--type") or "linear"
    members = int(value(words, "-i") or 1)
    stripe = int(needed(words, "-I").removesuffix("k")) * KIB if members > 1 else 0
    return Drives(members, stripe, kind in ("raid1", "raid10"))
