"""What a warm start gained, in words."""

from __future__ import annotations

from collections.abc import Iterator

from hybridsim.answers.result import Result
from hybridsim.answers.warm_start import Beginning
from hybridsim.answers.warmup import State, WarmUp
from hybridsim.foundation.units import human_count, human_size
from hybridsim.foundation.wording import percent, span
from hybridsim.show.labels import LABELS, joined, rows


def warm_start(result: Result) -> Iterator[tuple[str, str]]:
    """Return (label, text) of what the cache began with, where it did not begin empty."""
    found = result.beginning
    if found is None or not rows(result):
        return
    yield LABELS["warm_start"], joined(_done(found))
    yield "", joined(_worth(found))
    yield "", joined(_cost(found))


def _done(found: Beginning) -> Iterator[str]:
    """Which pages were there or loaded, and whether they were wanted."""
    counters = found.counters
    if found.is_kept:
        yield f"{human_count(found.there)} pages kept on the SSD"
    else:
        yield f"{human_count(found.there)} of {human_count(found.chosen)} pages loaded"
        read = human_size(counters["preload_bytes"])
        yield f"{read} in {human_count(counters['preload_reads'])} reads"
        if found.loaded_ns is not None:
            yield f"by {span(found.loaded_ns)}"
    yield f"{percent(found.used_share)} of them used"
    yield f"from {found.source}"
    if found.remembers:
        yield "including what the policy had learned"


def _worth(found: Beginning) -> Iterator[str]:
    """How much sooner reads come from the SSD."""
    hit, cold = percent(found.first_hit_ratio), percent(found.cold_first_hit_ratio)
    yield f"first {span(found.first_ns)}: {hit} from the SSD, from an empty one {cold}"
    yield f"90% warm {_when(found.warm_up)}, else {_when(found.cold_warm_up)}"


def _when(warm_up: WarmUp) -> str:
    if warm_up.state == State.FLAT:
        return "at once"
    if warm_up.state != State.STEADY:
        return "at an unknown time"
    time_ns = warm_up.reached_ns[90]
    return f"after {span(time_ns)}" if time_ns else "at once"


def _cost(found: Beginning) -> Iterator[str]:
    """What it takes of the disks and the SSD, over the whole run."""
    if found.disk_ns is not None and found.cold_disk_ns is not None:
        yield f"disks busy {span(found.disk_ns)} in all, else {span(found.cold_disk_ns)}"
    if found.ssd_bytes is not None and found.cold_ssd_bytes is not None:
        written, cold = human_size(found.ssd_bytes), human_size(found.cold_ssd_bytes)
        yield f"{written} written to the SSD, else {cold}"
