"""File formats of measured results of real and simulated runs, one module a format.

To add one: a module with `detect` and `read`, and a line in FORMATS.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Protocol

from hybridsim.answers.measurements.measurement import Measurement

FORMATS = {
    "fio's JSON": "hybridsim.answers.measurements.fio_json",
    "hybridsim replay --json": "hybridsim.answers.measurements.replay_json",
    "hybridsim serve --json": "hybridsim.answers.measurements.served",
    "fio's logs": "hybridsim.answers.measurements.fio_log",
    "samples of dmsetup status": "hybridsim.answers.measurements.dmcache_status",
    "samples of a writecache's status": "hybridsim.answers.measurements.writecache_status",
    "samples of casadm --stats": "hybridsim.answers.measurements.opencas_stats",
    "samples of bcache's stats_total": "hybridsim.answers.measurements.bcache_stats",
    "samples of hybridsim serve": "hybridsim.answers.measurements.served_samples",
    "the start time of a load": "hybridsim.answers.measurements.uptime",
    "fio's text": "hybridsim.answers.measurements.fio_text",
}


class Format(Protocol):
    """The functions of a module in FORMATS."""

    def detect(self, name: str, head: str) -> bool:
        """Return whether a file with this name and these first characters has this format."""

    def read(self, name: str, text: str) -> Measurement:
        """Parse the text of a file; raise MeasurementError, with the place, if it is invalid."""


def formats() -> Mapping[str, Format]:
    """Return all formats, in the order in which they are tried."""
    return {name: importlib.import_module(module) for name, module in FORMATS.items()}
