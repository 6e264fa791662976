"""What of a result is left to chance, and so differs between seeds.

Hard disks, SSDs and most policies draw nothing: there one run tells all.
"""

from __future__ import annotations

import inspect
from typing import Any

from hybridsim.caches.policies import ADMISSION, REPLACEMENT
from hybridsim.scenario import Scenario

NONE = "Nothing here is left to chance: every seed gives the same."
DRAWS = ("bcache",)  # kinds of cache: for congestion, and random replacement


def drawn(scenario: Scenario, is_made: bool = False) -> list[str]:
    """Return what is drawn, in words; nothing if all seeds give the same result.

    `is_made` says that the requests come from a workload, not from a capture.
    """
    cache = scenario.cache
    found = ["the requests of the made load"] if is_made else []
    if scenario.backing.drive.kind == "volume":
        found.append("the latencies of the cloud volumes")
    if cache.kind == "none":
        return found
    if cache.drive.kind == "volume":
        found.append("the latencies of the cache's cloud volumes")
    if cache.kind in DRAWS:
        found.append(f"what {cache.kind} draws")
    if cache.kind == "page":
        chosen: dict[str, Any] = {
            cache.admission: ADMISSION[cache.admission],
            cache.replacement: REPLACEMENT[cache.replacement],
        }
        found += [f"the policy {name}" for name, policy in chosen.items() if _draws(policy)]
    return found


def _draws(policy: Any) -> bool:
    return "seed" in inspect.signature(policy.new).parameters
