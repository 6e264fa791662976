"""The facts on a cache in `environment.json`: as specified, and as the kernel reports them."""

from __future__ import annotations

import datetime
from dataclasses import asdict
from typing import Any

from validate import opencas
from validate.collecting import Subject
from validate.devices import of_number
from validate.experiment import Experiment
from validate.site import Site


def now() -> str:
    """Return local time in ISO 8601."""
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")


def of_cache(experiment: Experiment, subject: Subject, here: Site) -> dict[str, Any]:
    """Return the cache as specified, and as the kernel reports it."""
    specified = asdict(experiment.cache)
    return specified | shown_by_kernel(subject) | {
        "made_uptime_s": here.scene.facts.get("made_uptime_s")
    }  # fmt: skip


def shown_by_kernel(subject: Subject) -> dict[str, Any]:
    """Return table and status of a mapped cache, or settings of a bcache or Open CAS."""
    system = subject.system
    if subject.mapped:
        return {
            word: system.run(["dmsetup", word, subject.mapped]).strip() for word in
            ("table", "status")
        }  # fmt: skip
    if subject.kind == "bcache":
        there = (subject.backing / "cache").resolve()
        return {
            "options": {name: system.read(subject.backing / name, "") for name in BCACHE_OPTIONS}
            | {name: system.read(there / name, "") for name in BCACHE_SET_OPTIONS},
            "set_uuid": there.name,
        }
    if subject.kind == "open-cas":
        casadm = subject.statistics[0]
        exported = of_number(subject.numbers["cached"], system).node
        core = next(each for each in opencas.cores(casadm, system) if each.exported == exported)
        return {"shown": opencas.shown(casadm, core, system)}
    return {}


BCACHE_OPTIONS = (
    "cache_mode", "state", "sequential_cutoff", "writeback_percent", "writeback_delay",
    "writeback_rate", "writeback_running", "readahead_cache_policy", "partial_stripes_expensive",
)  # fmt: skip
BCACHE_SET_OPTIONS = (
    "congested_read_threshold_us", "congested_write_threshold_us", "bucket_size", "block_size",
    "cache_available_percent", "journal_delay_ms", "cache0/nbuckets", "cache0/discard",
    "cache0/cache_replacement_policy",
)  # fmt: skip
