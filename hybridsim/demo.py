"""The capture that ships with hybridsim, and the machine that the demo replays it on."""

from __future__ import annotations

from pathlib import Path

from hybridsim.errors import UsageError

NAME = "rocksdb_mixgraph.blktrace.0.zst"
SCENARIO = """\
# The default machine, with a cache of a fifth of what the trace touches.
[cache]
size = "20%"
[replay]
mode = "think"
"""


def trace_path() -> Path:
    """Return the demo's capture: beside the package in a clone, inside it in a wheel."""
    package = Path(__file__).parent
    for folder in (package / "traces", package.parent / "traces"):
        if (folder / "demo" / NAME).is_file():
            return folder / "demo" / NAME
    raise UsageError("the demo's capture is missing: install hybridsim again")
