"""Open CAS: commands, and the same settings read back from casadm."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hybridsim.answers.setup.plan import (
    KIB,
    MIB,
    Drives,
    Need,
    Section,
    Site,
    Step,
    differing,
    empty,
    whole,
)
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.units import parse_percent

KIND = "open-cas"
MS, SECOND = 1_000_000, 10**9
MODES = ("wt", "wb", "wa", "wo", "pt")  # of casadm
# Metadata of a cache: measured with Open CAS 26.06 on lines of 4 and 64 KiB.
METADATA_BYTES, METADATA_LINE = 37_015_000, 40
RAM_BYTES, RAM_LINE = 18 * MIB, 43
ALRU, ACP = "alru", "acp"
RELEASE = "26.03.4"
ARCHIVE = f"open-cas-linux-{RELEASE}.1040.release"
CONFIG = "/etc/opencas/opencas.conf"


@dataclass(frozen=True)
class Settings:
    """What is set of an Open CAS cache; parameters of policies that are not used are None."""

    size_bytes: int  # of the partition, metadata included
    line_bytes: int
    mode: str
    cutoff_policy: str
    cutoff_bytes: int
    promotion: str
    insertion_threshold: int | None
    trigger_percent: int | None
    cleaning: str
    wake_up: int | None  # alru: seconds; acp: milliseconds
    flush_max_buffers: int | None
    staleness_s: int | None
    activity_ms: int | None
    drives: Drives = field(default_factory=Drives)

    @property
    def lines(self) -> int:
        """About how many lines fit into the partition."""
        return (self.size_bytes - METADATA_BYTES) // (self.line_bytes + METADATA_LINE)


def settings(table: Any, pages: int, site: Site) -> Settings:
    """Return what is set for a scenario's cache; raise UsageError for what cannot be set."""
    if table.mode not in MODES:
        raise UsageError(f"mode {table.mode!r}: casadm starts {', '.join(MODES)} only")
    line = table.line_bytes
    size = METADATA_BYTES + pages * (line + METADATA_LINE)
    cutoff = table.sequential_cutoff_bytes
    whole(cutoff, KIB, "Open CAS's sequential_cutoff", "whole KiB")
    nhit, cleaning = table.promotion == "nhit", table.cleaning
    trigger = parse_percent(table.trigger_threshold) * 100
    if nhit and trigger.denominator != 1:
        raise UsageError(f"trigger_threshold {table.trigger_threshold}: whole percent only")
    wake = staleness = activity = None
    if cleaning == ALRU:
        wake = whole(table.wake_up_ns, SECOND, "alru's wake_up", "whole seconds")
        staleness = whole(table.staleness_time_ns, SECOND, "staleness_time", "whole seconds")
        activity = whole(table.activity_threshold_ns, MS, "activity_threshold", "milliseconds")
        if not (wake <= 3600 and 1 <= staleness <= 3600 and activity <= 1_000_000):
            raise UsageError(
                "casadm sets wake_up of 0 to 3600 s, staleness_time of 1 to 3600 s, and "
                "activity_threshold of 0 to 1000 s: change what is outside, and simulate that"
            )
    elif cleaning == ACP:
        wake = whole(table.wake_up_ns, MS, "acp's wake_up", "milliseconds")
        if wake > 10_000:
            raise UsageError("casadm sets acp's wake_up of 0 to 10 s: change it, and simulate that")
    return Settings(
        -(-size // MIB) * MIB, line, table.mode, table.sequential_cutoff_policy, cutoff,
        table.promotion, table.insertion_threshold if nhit else None,
        int(trigger) if nhit else None, cleaning, wake,
        None if cleaning == "nop" else table.flush_max_buffers, staleness, activity,
        site.drives(table),
    )  # fmt: skip


def ssd(one: Settings) -> Need:
    """Return the bytes that each SSD must have."""
    total = one.drives.on_each(one.size_bytes) + 2 * MIB
    return Need(total, "lines, metadata (35.3 MiB and 40 B a line), 2 MiB for the partition table")


def ram(one: Settings) -> Need:
    """Return the RAM of the metadata."""
    return Need(
        RAM_BYTES + RAM_LINE * one.lines,
        "18 MiB and 43 B a line: the metadata footprint that casadm shows, measured with 26.06 "
        "(54 B a line in 2020: https://github.com/Open-CAS/open-cas-linux/issues/410)",
    )


def sections(one: Settings, site: Site) -> list[Section]:
    """Return the commands."""
    cutting, fast = site.cut(one.drives, one.size_bytes)
    steps = [
        empty(site.fast),
        *cutting,
        Step(
            f"casadm -S -i 1 -d {fast} -c {one.mode} -x {one.line_bytes // KIB}",
            "Start a cache; this destroys what the SSD holds.",
        ),
        Step(
            f"casadm -A -i 1 -j 1 -d {site.slow}",
            "Put it in front of the slow device, whose data stay; it must not be mounted. From "
            "now on use /dev/cas1-1.",
        ),
        Step(
            f"casadm -X -n seq-cutoff -i 1 -j 1 -t {one.cutoff_bytes // KIB} "
            f"-p {one.cutoff_policy}",
            "Sequential cutoff, promotion and cleaning; the cache keeps them over a restart.",
        ),
        Step(f"casadm -X -n promotion -i 1 -p {one.promotion}"),
        *[Step(
            f"casadm -X -n promotion-nhit -i 1 -t {one.insertion_threshold} "
            f"-o {one.trigger_percent}"
        )] * (one.insertion_threshold is not None),
        Step(f"casadm -X -n cleaning -i 1 -p {one.cleaning}"),
        *[Step(
            f"casadm -X -n cleaning-alru -i 1 -w {one.wake_up} -s {one.staleness_s} "
            f"-b {one.flush_max_buffers} -t {one.activity_ms}"
        )] * (one.cleaning == ALRU),
        *[Step(
            f"casadm -X -n cleaning-acp -i 1 -w {one.wake_up} -b {one.flush_max_buffers}"
        )] * (one.cleaning == ACP),
        Step(
            f"cat > {CONFIG} <<'END'\nversion=19.3.0\n[caches]\n1 {fast} {one.mode.upper()}\n"
            f"[cores]\n1 1 {site.slow}\nEND\nsystemctl enable open-cas.service",
            "Start it with the system. The names must be links of /dev/disk/by-id. One IO class "
            "for all, as simulated: load no ioclass file.",
        ),
    ]  # fmt: skip
    mounts = f"lsblk -o NAME,FSTYPE,MOUNTPOINTS {site.slow}"
    build = Section("build", "Build Open CAS: again after each update of the kernel", (
        Step(
            f"{site.system.install} {site.system.packages[KIND]}"
            + (" linux-headers-$(uname -r)" if site.system.install.startswith("apt") else ""),
        ),
        Step(
            "curl -LO https://github.com/Open-CAS/open-cas-linux/releases/download/"
            f"v{RELEASE}/{ARCHIVE}.tar.gz\ntar xf {ARCHIVE}.tar.gz\ncd {ARCHIVE}\n"
            "python3 -m pip install -r requirements.txt\n./configure\nmake\nmake install",
        ),
    ))  # fmt: skip
    return [
        site.check(
            ssd(one), ram(one), "uname -r", Step(mounts, "Its data stay.", "no mount point")
        ),
        *([build] if site.from_source else []),
        Section("install", "Build the cache", tuple(steps)),
        Section("verify", "Read the state back", (
            Step(
                "casadm -P -i 1",
                expect=f"write policy {one.mode}, lines of {one.line_bytes // KIB} KiB, cleaning "
                f"{one.cleaning}, promotion {one.promotion}, about "
                f"{one.lines * one.line_bytes // 4096} blocks of 4 KiB",
            ),
            Step("casadm -G -n seq-cutoff -i 1 -j 1\ncasadm -G -n cleaning -i 1\n"
                 "casadm -G -n promotion -i 1"),
            Step("casadm -C -L -i 1", expect="one class, unclassified, allocation 1.00"),
        )),
        site.monitor(
            "casadm -P -i 1 -j 1 -o csv\ncasadm -P -i 1\ncasadm -P -i 1 -j 1", "/dev/cas1-1",
            "casadm -P -i 1 -j 1 -f usage,req",
            "Watch it, or let a collector of metrics run this with -o csv: a falling share "
            "of read hits means that the load has outgrown the cache; many pass-through "
            "requests, that they count as sequential or that all lines are dirty.",
        ),
        Section("remove", "Go back: the data stay on the slow device", (
            Step(
                "casadm -F -i 1",
                "Write dirty data back while the device is in use.",
            ),
            Step(
                "umount /dev/cas1-1 || true\ncasadm -T -i 1",
                "Stop the cache: it flushes the rest. The device must not be in use.",
            ),
            Step(f"sed -i '/^1 /d' {CONFIG}\nwipefs -a {fast}"),
            *site.partition_removed(one.drives),
        )),
    ]  # fmt: skip


def differences(one: Settings, shown: str) -> list[str]:
    """Return where the text of `casadm -P`, of cache and core, differs from settings."""
    found: dict[str, str] = {}
    for line in shown.splitlines():
        name, gap, text = line.strip().partition("  ")
        if gap:
            found.setdefault(name, text.strip().removesuffix("[KiB]").strip())
    expected = {
        "Write Policy": one.mode,
        "Cache line size": one.line_bytes // KIB,
        "Cleaning Policy": one.cleaning,
        "Promotion Policy": one.promotion,
        "Seq cutoff policy": one.cutoff_policy,
        "Seq cutoff threshold": one.cutoff_bytes // KIB,
    }
    return differing(
        (name, value, found[name]) for name, value in expected.items() if name in found
    )
