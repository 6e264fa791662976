"""The table of a scenario for an Open CAS, by what casadm shows of it."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

from validate import layout
from validate.twin.record import RecordError

BLOCK = 4096
# A parameter of casadm: (key in a scenario, format of the value there).
PARAMETERS = {
    "Sequential cutoff threshold [KiB]": ("sequential_cutoff", "{}KiB"),
    "Sequential cutoff policy": ("sequential_cutoff_policy", "{}"),
    "Promotion policy type": ("promotion", "{}"),
    "Insertion threshold": ("insertion_threshold", "{}"),
    "Policy trigger [%]": ("trigger_threshold", "{}%"),
    "Cleaning policy type": ("cleaning", "{}"),
    "Wake up time [s]": ("wake_up", "{}s"),
    "Stale buffer time [s]": ("staleness_time", "{}s"),
    "Activity threshold [ms]": ("activity_threshold", "{}ms"),
    "Wake up time [ms]": ("wake_up", "{}ms"),
    "Flush max buffers": ("flush_max_buffers", "{}"),
}
POLICIES = {"Wake up time [s]": "alru", "Wake up time [ms]": "acp"}  # first row of each policy
OF_POLICIES = {
    *POLICIES, "Stale buffer time [s]", "Activity threshold [ms]", "Flush max buffers",
}  # fmt: skip


def table(shown: str, path: Path) -> dict[str, Any]:
    """Return the scenario's table of the cache that casadm shows; `path` is that of the text."""
    blocks = int(_needed(r"^Cache Size\s+(\d+) \[4KiB Blocks\]", shown, path))
    table: dict[str, Any] = {
        "kind": "open-cas",
        "size": f"{blocks * BLOCK}B",
        "mode": _needed(r"^Write Policy\s+(\w+)", shown, path),
        "line": _needed(r"^Cache line size\s+(\d+)", shown, path) + "KiB",
    }
    cells = re.findall(r"^\|([^|\n]+)\|([^|\n]+)\|$", shown, re.MULTILINE)
    rows = [(name.strip(), text.strip()) for name, text in cells]
    cleaning = dict(rows).get("Cleaning policy type", "alru")
    of_policy = ""  # whose parameters the rows are
    for name, shown_value in rows:
        of_policy = POLICIES.get(name, of_policy)
        if name not in PARAMETERS or (name in OF_POLICIES and of_policy != cleaning):
            continue
        key, form = PARAMETERS[name]
        text = form.format(shown_value)
        table[key] = int(text) if text.isdigit() else text
    return table


def queries(folder: Path, created_s: float) -> dict[str, Any]:
    """Return when casadm read the counters: Open CAS's cleaner stops for that."""
    path = folder / layout.OPEN_CAS
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    times_ms = [round(1000 * (float(line.split(",")[0]) - created_s)) for line in lines]
    if len(times_ms) < 2:
        return {}
    gaps = sorted(after - before for before, after in pairwise(times_ms))
    interval_ms = gaps[len(gaps) // 2]
    return {
        "stats_interval": f"{interval_ms}ms",
        "stats_start": f"{times_ms[-1] % interval_ms}ms",
    }


def _needed(pattern: str, text: str, path: Path) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise RecordError(f"{path}: no line like {pattern}")
    return match[1]
