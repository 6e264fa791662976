"""When the load began, on the clock of samples: a file with the uptime, written as it began."""

from __future__ import annotations

from pathlib import Path

from hybridsim.answers.measurements.measurement import Measurement
from hybridsim.foundation.errors import MeasurementError

FILE = "workload-start-uptime.txt"


def detect(name: str, head: str) -> bool:
    """Tell by the name."""
    return Path(name).name == FILE


def read(name: str, text: str) -> Measurement:
    """Return nothing but that time."""
    try:
        return Measurement([name], begin_s=float(text.split()[0]))
    except (ValueError, IndexError) as error:
        raise MeasurementError(f"{name}: holds no uptime in seconds ({error})") from error
