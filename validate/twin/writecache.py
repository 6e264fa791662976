"""The table of a scenario for a dm-writecache, by the kernel's own table and first status."""

from __future__ import annotations

from typing import Any

# What a pass of write-back takes in the lab's guest, under software emulation: the median time from
# one pass to the next in a blktrace (validate/results/README.md).
EMULATED = {"pass_time": "1300us"}
# An optional argument of the kernel's table: (key in a scenario, format of the value there).
ARGUMENTS = {
    "high_watermark": ("high_watermark", "{}%"),
    "low_watermark": ("low_watermark", "{}%"),
    "autocommit_blocks": ("autocommit_blocks", "{}"),
    "autocommit_time": ("autocommit_time", "{}ms"),
    "pause_writeback": ("pause_writeback", "{}ms"),
}


def table(shown: str, status: str) -> dict[str, Any]:
    """Return the scenario's table of the cache that `dmsetup table` and `dmsetup status` show."""
    words = shown.split()
    block_bytes, options = int(words[6]), words[8:]
    cache: dict[str, Any] = {
        "kind": "dm-writecache",
        "size": f"{int(status.split()[4]) * block_bytes}B",
        "block": f"{block_bytes}B",
    }
    for name, value in zip(options[::2], options[1::2]):
        if name in ARGUMENTS:
            key, form = ARGUMENTS[name]
            text = form.format(value)
            cache[key] = int(text) if text.isdigit() else text
    return cache
