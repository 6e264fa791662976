"""Run fio on the bare devices, as input of `hybridsim fit`: nothing is fitted to the cached run.

Each job has a job file.  On the fast device writes run first: an SSD answers reads of pages that
were never written without reading flash.
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
        """The stem of its file names."""
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
    """Run the jobs on the first `size_bytes` of a device; with `read_only` only those that read."""
    folder.mkdir(exist_ok=True)
    for job in READS if read_only else WRITES + READS:
        settings = {**fio.settings(device.node, seconds), "size": str(size_bytes)}
        options = {"rw": job.rw, "bs": job.block, "iodepth": str(job.depth), "norandommap": ""}
        text = JobFile((Section(job.name, tuple(options.items())),)).rendered(settings)
        order = fio.Order(
            text, f"{job.name}.fio", f"fio.{job.name}.json", device, folder, seconds,
            read_only=not job.writes, writes_times=False,
        )  # fmt: skip
        fio.run(order, site)
