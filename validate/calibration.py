"""fio on the bare devices: what `hybridsim fit` takes, so that nothing is fitted to the cached run.

Each job is a file of its own.  On the fast device writes come first: flash that was never written
answers reads without looking.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from validate import fio
from validate.devices import Device
from validate.jobfile import JobFile, Section
from validate.site import Site


@dataclass(frozen=True)
class Job:
    """One job, of random or sequential requests."""

    rw: str
    block: str
    depth: int

    @property
    def name(self) -> str:
        """What its files are called by."""
        return f"{self.rw}-{self.block}-qd{self.depth}"

    @property
    def writes(self) -> bool:
        """Whether it writes."""
        return "write" in self.rw


READS = (
    Job("randread", "4k", 1), Job("randread", "4k", 4), Job("randread", "4k", 16),
    Job("randread", "4k", 32), Job("read", "64k", 4),
)  # fmt: skip
WRITES = (
    Job("write", "64k", 4), Job("randwrite", "4k", 1), Job("randwrite", "4k", 4),
    Job("randwrite", "4k", 32),
)  # fmt: skip


def calibrate(
    device: Device, size_bytes: int, folder: Path, seconds: int, site: Site, *, read_only: bool
) -> None:
    """Run all jobs on the first bytes of a device; those that write only where it may be."""
    folder.mkdir(exist_ok=True)
    for job in READS if read_only else WRITES + READS:
        settings = {**fio.settings(device.node, seconds), "size": str(size_bytes)}
        options = {"rw": job.rw, "bs": job.block, "iodepth": str(job.depth), "norandommap": ""}
        text = JobFile((Section(job.name, tuple(options.items())),)).rendered(settings)
        order = fio.Order(
            text, f"{job.name}.fio", f"fio.{job.name}.json", device, folder, seconds,
            read_only=not job.writes, tells_begin=False,
        )  # fmt: skip
        fio.run(order, site)
