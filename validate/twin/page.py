"""The twin of a run on `hybridsim serve` in the lab: its cache, and the requests that reach it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hybridsim.scenario.origin import policies

SHARED = "served-calibration"  # runs on the bare devices with serve's path
# QEMU has so many requests of an NBD disk under way, and here this is the cached disk.
CLIENT_DEPTH = 16
DEPTH = re.compile(r"^(\s*iodepth\s*=\s*)(\d+)", re.MULTILINE)


def table(cache: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario's table of a served cache, of `environment.json`."""
    admission, replacement = policies(cache["policy"])
    given = dict(cache.get("served", {}).get("settings", {}))
    given |= {key: _value(text) for key, text in cache["settings"]}
    return {
        "kind": "page",
        "mode": cache["mode"],
        "size": f"{cache['size_bytes']}B",
        "page": f"{cache['block_bytes']}B",
        "admission": admission,
        "replacement": replacement,
    } | given


def reaching(job: str) -> str:
    """Return a job file with the depths at which its requests reach the cache.

    The others of fio's wait in the guest: those of its deepest jobs.
    """
    depths = [int(found[2]) for found in DEPTH.finditer(job)]
    most = CLIENT_DEPTH
    while most > 1 and sum(min(depth, most) for depth in depths) > CLIENT_DEPTH:
        most -= 1
    return DEPTH.sub(lambda found: f"{found[1]}{min(int(found[2]), most)}", job)


def _value(text: str) -> Any:
    """Return the value of a setting, as TOML has it."""
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return text
