"""The facts on the machine in `environment.json`."""

from __future__ import annotations

import os
import platform
from typing import Any

from validate.system import System

VERSIONS = {
    "fio": ("fio", "--version"),
    "dmsetup": ("dmsetup", "version"),
    "blktrace": ("blktrace", "-V"),
}


def facts(system: System) -> dict[str, Any]:
    """Return kernel, processors, memory and program versions."""
    memory = system.read(system.proc / "meminfo", "MemTotal: 0 kB").split()
    name = os.uname()
    return {
        "kernel": name.release,
        "kernel_build": name.version,
        "machine": name.machine,
        "cpus": os.cpu_count(),
        "memory_bytes": int(memory[1]) * 1024,
        "python": platform.python_version(),
        "loadavg": system.read(system.proc / "loadavg", ""),
        "versions": {name: version(name, system) for name in VERSIONS if system.program(name)},
    }


def version(name: str, system: System) -> str:
    """Return the first line that a program prints as its version."""
    output = system.run(VERSIONS[name], check=False, record=False, timeout_s=20).strip()
    return output.splitlines()[0].strip() if output else ""
