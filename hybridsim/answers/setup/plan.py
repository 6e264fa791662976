"""What all kinds of cache share: the devices, the distributions, and the parts of a plan.

A plan is text: nothing here runs a command or looks at a device.

LVM's volumes for dm-cache and dm-writecache stand at the end.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.suggest import hint
from hybridsim.foundation.units import human_size

KIB, MIB = 1024, 2**20
DEVICE = re.compile(r"/[A-Za-z0-9/_.:+@=-]+")
VOLUME = re.compile(r"[A-Za-z0-9_.+][A-Za-z0-9_.+-]*/[A-Za-z0-9_.+][A-Za-z0-9_.+-]*")
SLOW, FAST = "/dev/SLOW", "/dev/FAST"  # printed where no device is specified
ARRAY = "/dev/md/cache"  # of several SSDs, where LVM does not combine them
MD_BYTES = 128 * MIB  # that md keeps before the data of a drive, at most
SECTIONS = ("check", "build", "install", "verify", "monitor", "remove")
_DEBIAN = {
    "dm-cache": "lvm2 thin-provisioning-tools",
    "dm-writecache": "lvm2",
    "bcache": "bcache-tools fdisk",
    "open-cas": "git gcc make python3 fdisk",
}
_RHEL = {
    "dm-cache": "lvm2 device-mapper-persistent-data",
    "dm-writecache": "lvm2",
    "bcache": "",
    "open-cas": "git gcc make python3 elfutils-libelf-devel kernel-devel",
}
_NO_BCACHE = {"bcache": "its kernel is built without bcache, and it has no bcache-tools"}
USUAL = "debian12"
EXTENT_BYTES = 4 * MIB  # LVM's usual size; sizes are rounded up to it
STRIPE_MIN = 4 * KIB


@dataclass(frozen=True)
class Distribution:
    """A Linux distribution: how packages are installed, and what it lacks."""

    title: str
    install: str
    packages: dict[str, str]  # by kind of cache
    versions: str  # of kernel and tools, as its archive has them
    lacks: dict[str, str] = field(default_factory=dict)  # kind of cache: why
    lvm: tuple[int, int, int] = (2, 3, 16)  # of the newest release known


DISTRIBUTIONS = {
    "debian12": Distribution(
        "Debian 12", "apt install", _DEBIAN,
        "Linux 6.1, LVM 2.03.16, bcache-tools 1.0.8-4",
    ),
    "debian13": Distribution(
        "Debian 13", "apt install", _DEBIAN,
        "Linux 6.12, LVM 2.03.31, bcache-tools 1.0.8-5", lvm=(2, 3, 31),
    ),
    "ubuntu24.04": Distribution(
        "Ubuntu 24.04", "apt install", _DEBIAN,
        "Linux 6.8, LVM 2.03.16, bcache-tools 1.0.8-5",
    ),
    "rhel9": Distribution(
        "RHEL 9", "dnf install", _RHEL, "Linux 5.14", _NO_BCACHE, lvm=(2, 3, 28)
    ),
    "rhel10": Distribution(
        "RHEL 10", "dnf install", _RHEL, "Linux 6.12", _NO_BCACHE, lvm=(2, 3, 28)
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Site:
    """The devices to build a cache of, and the system that it is built on."""

    slow: str = SLOW  # a device, or for LVM an existing volume as VG/LV
    fast: tuple[str, ...] = ()
    distribution: str = USUAL
    from_source: bool = False  # Open CAS is built first

    def __post_init__(self) -> None:
        """Raise UsageError for names that no command could take."""
        if self.distribution not in DISTRIBUTIONS:
            raise UsageError(
                f"no distribution {self.distribution!r}: {hint(self.distribution, DISTRIBUTIONS)}"
            )
        for option, name in (("--slow", self.slow), *(("--fast", each) for each in self.fast)):
            is_volume = option == "--slow" and VOLUME.fullmatch(name)
            if not DEVICE.fullmatch(name) and not is_volume:
                raise UsageError(
                    f"{option} {name!r}: not the path of a device, such as /dev/sdb or "
                    "/dev/disk/by-id/..." + (", nor an LVM volume VG/LV" * (option == "--slow"))
                )
        twice = {each for each in self.fast if (*self.fast, self.slow).count(each) > 1}
        if twice:
            raise UsageError(f"{twice.pop()} is specified twice: each device has one use")

    @property
    def system(self) -> Distribution:
        """The distribution."""
        return DISTRIBUTIONS[self.distribution]

    @property
    def is_volume(self) -> bool:
        """Whether the slow side is an existing LVM volume, whose data stay."""
        return not self.slow.startswith("/")

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices whose content is destroyed."""
        return self.fast if self.is_volume else (self.slow, *self.fast)

    def drives(self, table: Any) -> Drives:
        """Return the SSDs of a scenario's cache; raise UsageError if --fast has another number."""
        members, number = int(table.members), len(self.fast)
        if number not in (members, 2 * members):
            raise UsageError(
                f"--fast names {number} device{'s' * (number != 1)}, but the cache that was "
                f"simulated has {members}: specify {members}, or {2 * members} for a mirror"
            )
        return Drives(members, int(table.chunk_bytes) if members > 1 else 0, number > members)

    def check(self, ssd: Need, ram: Need, versions: str, *more: Step) -> Section:
        """Return the section of what to look at before anything is changed."""
        columns = "NAME,SIZE,TYPE,FSTYPE,MOUNTPOINTS,LOG-SEC,DISC-GRAN,MODEL,SERIAL"
        lost = "nothing: any line is data that would be lost"
        large = f"{ssd.size_bytes} or more ({human_size(ssd.size_bytes)})"
        cached = Step(f"lvs {self.slow}", "The volume that will be cached; its data stay.")
        return Section("check", "Before anything is changed", (
            Step(
                f"lsblk -o {columns} {shlex.join(self.devices)}",
                "Are these the devices, unmounted and without partitions?",
                "no mount point, no file system; DISC-GRAN 0B: no discard",
            ),
            *(Step(f"wipefs -n {each}", "Is it empty?", lost) for each in self.devices),
            *[cached] * self.is_volume,
            *(
                Step(f"blockdev --getsize64 {each}", "Is the SSD large enough?", large)
                for each in self.fast
            ),
            Step(
                "grep MemAvailable /proc/meminfo",
                f"Is there enough RAM for the metadata, {human_size(ram.size_bytes)}?",
                f"{-(-ram.size_bytes // KIB)} kB or more",
            ),
            Step(versions, f"Versions; {self.system.title} has {self.system.versions}."),
            *more,
        ))  # fmt: skip

    def array(self, drives: Drives) -> tuple[list[Step], str]:
        """Return the steps that make one device of the SSDs, and its name."""
        if drives.number == 1:
            return [], self.fast[0]
        chunk = f" --chunk={drives.stripe_bytes // KIB}K" if drives.members > 1 else ""
        bitmap = " --bitmap=internal" if drives.is_mirrored else ""
        make = Step(
            f"mdadm --create {ARRAY} --run --level={drives.level} "
            f"--raid-devices={drives.number}{chunk}{bitmap} {shlex.join(self.fast)}",
            f"The SSDs as one device: {drives.words}.",
        )
        return [make], ARRAY

    def cut(self, drives: Drives, size_bytes: int) -> tuple[list[Step], str]:
        """Return the steps that make a partition of exactly this size, and its name."""
        steps, device = self.array(drives)
        make = Step(
            f"printf 'label: gpt\\nsize={size_bytes // KIB}KiB\\n' | sfdisk -q {device}\n"
            "udevadm settle",
            "A partition of the size that was simulated.",
        )
        return [*steps, make], partition(device)

    def array_removed(self, drives: Drives) -> list[Step]:
        """Return the steps that remove the array of the SSDs, if there is one."""
        stop = f"mdadm --stop {ARRAY}\nmdadm --zero-superblock {shlex.join(self.fast)}"
        return [Step(stop)] * (drives.number > 1)

    def partition_removed(self, drives: Drives) -> list[Step]:
        """Return the steps that remove partition and array."""
        device = ARRAY if drives.number > 1 else self.fast[0]
        wipe = Step(f"wipefs -a {device}", "The partition table of the SSD.")
        return [wipe, *self.array_removed(drives)]

    def monitor(self, state: str, cached: str, watch: str, why: str) -> Section:
        """Return the section that saves the counters of a running cache, for `hybridsim check`.

        `state` are the commands that print its settings and counters, `cached` a shell word for the
        device that is used; `watch` prints what to look at from day to day.
        """
        fast = " ".join(shlex.quote(each) for each in self.fast)
        stat = 'cat "/sys/class/block/$(basename "$(readlink -f {})")/stat"'
        return Section("monitor", "Is it as good as promised?", (
            Step(
                f'{{\necho "uptime $(cat /proc/uptime)"\n{state}\n'
                f'echo "cached $({stat.format(cached)})"\n'
                f"for device in {fast}; do\n"
                f'  echo "ssd $({stat.format(chr(34) + "$device" + chr(34))})"\ndone\n'
                '} > "counters-$(date +%Y%m%d-%H%M%S).txt"',
                "Save the counters: once now and once later, after an hour or a day of work. Then: "
                "hybridsim check PROMISE.json counters-FIRST.txt counters-LAST.txt",
            ),
            Step(watch, why),
        ))  # fmt: skip


@dataclass(frozen=True)
class Drives:
    """The SSDs of a cache: striped, and mirrored if there are twice as many."""

    members: int = 1
    stripe_bytes: int = 0  # 0: one drive
    is_mirrored: bool = False

    @property
    def number(self) -> int:
        """How many SSDs there are."""
        return self.members * (1 + self.is_mirrored)

    def on_each(self, size_bytes: int) -> int:
        """Return what a device of this size takes of each SSD, with what md keeps."""
        return -(-size_bytes // self.members) + MD_BYTES * (self.number > 1)

    @property
    def level(self) -> int | None:
        """RAID level of these drives in md; None for one drive."""
        if self.is_mirrored:
            return 10 if self.members > 1 else 1
        return 0 if self.members > 1 else None

    @property
    def words(self) -> str:
        """The layout in words."""
        if self.number == 1:
            return "one SSD"
        layout = {0: "striped", 1: "mirrored", 10: "striped and mirrored"}[self.level or 0]
        return f"{self.number} SSDs, {layout}"


def placeholders(number: int) -> tuple[str, ...]:
    """Return names for SSDs that were not specified."""
    return (FAST,) if number == 1 else tuple(f"{FAST}_{each}" for each in range(1, number + 1))


@dataclass(frozen=True)
class Step:
    """One command, or a few lines that belong together."""

    command: str
    why: str = ""
    expect: str = ""  # what it should print


@dataclass(frozen=True)
class Section:
    """Commands for one purpose."""

    name: str  # one of SECTIONS
    title: str
    steps: tuple[Step, ...]

    def script(self) -> str:
        """Return the commands as a shell script that stops at the first error."""
        lines = ["set -eu"]
        for step in self.steps:
            for text in (step.why, step.expect and f"Expected: {step.expect}"):
                if text:
                    lines += ["", f"# {text}"] if text is step.why else [f"# {text}"]
            lines.append(step.command)
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Need:
    """What a cache takes: bytes, and where the figure is from."""

    size_bytes: int
    source: str


@dataclass(frozen=True)
class Plan:
    """How a simulated cache is built, read back and removed."""

    kind: str
    mode: str  # write policy, in the terms common to all kinds
    words: str  # in one line
    settings: Any  # of the kind: a dataclass of plain values
    site: Site
    sections: tuple[Section, ...]
    ssd: Need  # of each SSD
    ram: Need
    destroyed: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def packages(self) -> list[str]:
        """The command that installs what the other commands need, in words."""
        system = self.site.system
        needs_md = self.settings.drives.number > 1 and self.kind != "dm-cache"
        return [system.install, system.packages[self.kind], *["mdadm"] * needs_md]

    def section(self, name: str) -> Section:
        """Return a section; raise UsageError if the plan has none of this name."""
        result = next((each for each in self.sections if each.name == name), None)
        if result is None:
            there = [each.name for each in self.sections]
            raise UsageError(f"no section {name!r} for {self.kind}: {hint(name, there)}")
        return result


# Steps that several kinds have.


def empty(devices: Sequence[str]) -> Step:
    """Return a step that fails if one of the devices holds anything known."""
    return Step(
        f"for device in {shlex.join(devices)}; do\n"
        '  test -z "$(wipefs -n "$device")" || { echo "$device is not empty" >&2; exit 1; }\n'
        "done",
        "Stop here if a device holds a known format.",
    )


def partition(device: str) -> str:
    """Return the name of a device's first partition."""
    if device.startswith("/dev/disk/by-"):
        return f"{device}-part1"
    return f"{device}p1" if device[-1].isdigit() else f"{device}1"


def unit(name: str, about: str, command: str) -> Step:
    """Return a step that has a command run at each start of the system, and now."""
    return Step(
        f"cat > /etc/systemd/system/{name}.service <<'END'\n"
        f"[Unit]\nDescription={about}\nAfter=local-fs.target\n\n"
        f"[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart={command}\n\n"
        "[Install]\nWantedBy=multi-user.target\nEND\n"
        f"systemctl daemon-reload\nsystemctl enable --now {name}.service",
        "The kernel forgets these settings: set them now and at each start.",
    )


def unit_removed(name: str, *files: str) -> Step:
    """Return the step that removes a unit and its files."""
    paths = shlex.join([f"/etc/systemd/system/{name}.service", *files])
    return Step(f"systemctl disable {name}.service\nrm -f {paths}\nsystemctl daemon-reload")


def whole(value: int, unit: int, what: str, unit_name: str) -> int:
    """Return a value in a coarser unit; raise UsageError if it is not a whole number of it."""
    if value % unit:
        raise UsageError(f"{what} can only be set in {unit_name}: change it, and simulate that")
    return value // unit


def differing(rows: Iterable[tuple[str, object, object]]) -> list[str]:
    """Return a message for each name whose expected value is not the one that was found."""
    return [
        f"{name} is {found}, not {expected}"
        for name, expected, found in rows if str(expected) != str(found)
    ]  # fmt: skip


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

    def made(self, site: Site, array: Sequence[Step] = (), fast: str = "") -> list[Step]:
        """Return the steps up to a volume group with the volume that is to be cached.

        `array` makes one device `fast` of the SSDs, where LVM does not combine them itself.
        """
        slow = () if site.is_volume else (site.slow,)
        devices = shlex.join((*slow, fast) if fast else site.devices)
        steps = [empty(site.devices), *array]
        if site.is_volume:
            extend = f"vgextend {self.group} {devices}"
            return [*steps, Step(extend, "Add the SSD to the volume group.")]
        return [
            *steps,
            Step(
                f"vgcreate --physicalextentsize {EXTENT_BYTES // MIB}m {self.group} {devices}",
                "One volume group of all devices. This destroys what they hold.",
            ),
            Step(
                f"lvcreate -n {self.data} -l 100%PVS {self.group} {site.slow}",
                f"The volume for the data, on all of the slow device: /dev/{self.main}.",
            ),
        ]

    def unmade(self, site: Site, fast: str = "") -> list[Step]:
        """Return the steps that give the SSDs back."""
        devices = fast or shlex.join(site.fast)
        return [Step(f"vgreduce {self.group} {devices}\npvremove {devices}", "Give the SSD back.")]


def rounded(size_bytes: int, stripes: int) -> int:
    """Return a size as LVM rounds it: up to whole extents on each stripe."""
    step = EXTENT_BYTES * stripes
    return -(-size_bytes // step) * step


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
