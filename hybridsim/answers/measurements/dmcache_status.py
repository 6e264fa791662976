"""Samples of `dmsetup status` of a dm-cache: lines of uptime in seconds and the status itself.

The fields are those of the kernel's Documentation/admin-guide/device-mapper/cache.rst.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hybridsim.answers.measurements.measurement import SECOND, Measurement, sampled
from hybridsim.foundation.errors import MeasurementError

LINE = re.compile(
    r"(?P<uptime>\d+\.\d+) (?:\S+: )?\d+ \d+ cache (?P<rest>\d+ \d+/\d+ \d+ \d+/\d+ .*)"
)
# Position after the word `cache`, by the counter's name in the simulation.
FIELDS = {
    "used_blocks": 3, "read_hits": 4, "read_misses": 5, "write_hits": 6, "write_misses": 7,
    "demotions": 8, "promotions": 9, "dirty_blocks": 10,
}  # fmt: skip


def detect(name: str, head: str) -> bool:
    """Return whether a file holds such samples."""
    return LINE.match(head) is not None


def read(name: str, text: str) -> Measurement:
    """Return the counters over uptime; raise MeasurementError for an invalid line."""
    rows = [
        [time_ns, *(int(fields[at].split("/")[0]) for at in FIELDS.values())]
        for time_ns, fields in samples(name, text, LINE)
    ]
    return sampled(name, rows, FIELDS)


def samples(name: str, text: str, form: re.Pattern[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the uptime in ns and the fields of each line of `dmsetup status`."""
    for number, line in enumerate(text.splitlines(), 1):
        match = form.match(line)
        if match is None:
            raise MeasurementError(f"{name}:{number}: not a line of uptime and `dmsetup status`")
        yield round(float(match["uptime"]) * SECOND), match["rest"].split()
