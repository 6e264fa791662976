"""The start of the load on the clock of the samples: a file with the uptime at that moment."""

from __future__ import annotations

from pathlib import Path

from hybridsim.answers.measurements.measurement import Measurement
from hybridsim.foundation.errors import MeasurementError

FILE = "workload-start-uptime.txt"


def detect(name: str, head: str) -> bool:
    """Return whether the file has the name FILE."""
    return Path(name).name == FILE


def read(name: str, text: str) -> Measurement:
    """Return a measurement that has only this time; raise MeasurementError if there is none."""
    try:
        return Measurement([name], begin_s=float(text.split()[0]))
    except (ValueError, IndexError) as error:
        raise MeasurementError(f"{name}: contains no uptime in seconds ({error})") from error
