"""Modes and fills of the page cache on one capture: latencies, disk and SSD traffic of each.

    HYBRIDSIM_DATA=shared/data python benchmarks/page_cache.py [--json] [TRACE ...]

The default TRACE is pg_zipf of app-traces: PostgreSQL with 43 % reads, 38 % writes, and flushes.
All rows replay it with its think times on the default machine, with only the named setting changed.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from hybridsim.scenario import Scenario
from hybridsim.studies.replay import replay
from hybridsim.traces.trace import Trace

BACK = 'mode = "write-back"\n'
ROWS = {
    "write-through, re-read (default)": "",
    "read-only": 'mode = "read-only"\n',
    "piggyback": 'fill = "piggyback"\n',
    "piggyback, foreground": 'fill = "piggyback"\nfill_when = "foreground"\n',
    "sub-page": "sub_page = true\n",
    "sub-page, piggyback": 'sub_page = true\nfill = "piggyback"\n',
    "fills at most 1 MB/s": 'fill_rate = "1MB/s"\n',
    "write-back": BACK,
    "write-back, oldest first": BACK + 'clean_order = "oldest"\n',
    "write-back, no merging": BACK + 'clean_merge = "64KiB"\n',
    "write-back, cleans only when idle": BACK + 'clean_above = "45%"\n',
    "write-back, sub-page": BACK + "sub_page = true\n",
}
REPLAY = '[replay]\nmode = "think"\n[cache]\n'


def measured(paths: list[str], settings: str) -> dict[str, float]:
    """Replay a trace with these lines under [cache]; return the figures of the row."""
    result = replay(Trace.read(paths), Scenario.loads(REPLAY + settings))
    whole = result.phases["whole"]
    counted = whole.counters
    return {
        "read_ms": (whole.figures.reads.mean_ns or 0) / 1e6,
        "write_ms": (whole.figures.writes.mean_ns or 0) / 1e6,
        "hit": whole.figures.hit_ratio or 0,
        "disk_read_mib": counted["slow_bytes_read"] / 2**20,
        "disk_written_mib": counted["slow_bytes_written"] / 2**20,
        "ssd_written_mib": counted["fast_bytes_written"] / 2**20,
        "write_backs": counted.get("write_backs", 0),
        "stalls": counted["stalls"],
    }


def main() -> None:
    """Print the table."""
    traces = [one for one in sys.argv[1:] if one != "--json"]
    folder = Path(os.environ.get("HYBRIDSIM_DATA", "../shared/data")) / "app-traces" / "pg_zipf"
    paths = traces or sorted(map(str, folder.glob("*.blktrace.*")))
    if not paths:
        sys.exit(f"no {folder}: set HYBRIDSIM_DATA to the folder of the reference data")
    rows = {name: measured(paths, settings) for name, settings in ROWS.items()}
    if "--json" in sys.argv:
        print(json.dumps(rows, indent=1))
        return
    print(f"{'':34}{'mean ms':>14}{'hit':>6}{'disk MiB':>16}{'SSD MiB':>9}{'write-':>8}{'':>7}")
    print(f"{'':34}{'read':>7}{'write':>7}{'':>6}", end="")
    print(f"{'read':>8}{'written':>8}{'written':>9}{'backs':>8}{'stalls':>7}")
    for name, row in rows.items():
        print(
            f"{name:34}{row['read_ms']:7.1f}{row['write_ms']:7.1f}{row['hit']:6.0%}"
            f"{row['disk_read_mib']:8.0f}{row['disk_written_mib']:8.0f}"
            f"{row['ssd_written_mib']:9.0f}{row['write_backs']:8.0f}{row['stalls']:7.0f}"
        )


if __name__ == "__main__":
    main()
