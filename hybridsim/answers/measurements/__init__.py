"""File formats of measured results of real and simulated runs.

To add one: a module with `detect` and `read`, or a class with these methods, and a line in FORMATS.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Protocol

from hybridsim.answers.measurements.measurement import Measurement

FORMATS = {
    "fio's JSON": "fio_json",
    "hybridsim replay --json": "own_json:Replayed",
    "hybridsim serve --json": "own_json:Served",
    "fio's logs": "fio_log",
    "samples of dmsetup status": "samples:DmCache",
    "samples of a writecache's status": "samples:Writecache",
    "samples of casadm --stats": "samples:OpenCas",
    "samples of bcache's stats_total": "samples:Bcache",
    "samples of hybridsim serve": "samples:OfServe",
    "the start time of a load": "samples:Uptime",
    "fio's text": "fio_text",
}


class Format(Protocol):
    """The functions of a module, or the methods of a class, in FORMATS."""

    def detect(self, name: str, head: str) -> bool:
        """Return whether a file with this name and these first characters has this format."""

    def read(self, name: str, text: str) -> Measurement:
        """Parse the text of a file; raise MeasurementError, with the place, if it is invalid."""


def formats() -> Mapping[str, Format]:
    """Return all formats, in the order in which they are tried."""
    result = {}
    for name, place in FORMATS.items():
        file, _, cls = place.partition(":")
        module = importlib.import_module(f"{__name__}.{file}")
        result[name] = getattr(module, cls)() if cls else module
    return result
