"""Report the effect of a warm start."""

from __future__ import annotations

from collections.abc import Iterator

from hybridsim.answers.life import Beginning
from hybridsim.answers.result import Result
from hybridsim.answers.warmup import State, WarmUp
from hybridsim.foundation.units import human_count, human_size
from hybridsim.foundation.wording import percent, span
from hybridsim.show.labels import LABELS, joined, rows


def warm_start(result: Result) -> Iterator[tuple[str, str]]:
    """Yield (label, text) of the effect of a warm start, if there was one."""
    results = result.beginning
    if results is None or not rows(result):
        return
    yield LABELS["warm_start"], joined(_done(results))
    yield "", joined(_worth(results))
    yield "", joined(_cost(results))


def _done(beginning: Beginning) -> Iterator[str]:
    """Yield the number of pages kept or loaded, and how many of them were used."""
    counters = beginning.counters
    if beginning.is_kept:
        yield f"{human_count(beginning.there)} pages kept on the SSD"
    else:
        yield f"{human_count(beginning.there)} of {human_count(beginning.chosen)} pages loaded"
        read = human_size(counters["preload_bytes"])
        yield f"{read} in {human_count(counters['preload_reads'])} reads"
        if beginning.loaded_ns is not None:
            yield f"loaded within {span(beginning.loaded_ns)}"
    yield f"{percent(beginning.used_share)} of them used"
    yield f"from {beginning.source}"
    if beginning.remembers:
        yield "including the state of the learned policy"


def _worth(beginning: Beginning) -> Iterator[str]:
    """Yield the hit ratio and warm-up time, compared with a cache that begins empty."""
    hit, cold = percent(beginning.first_hit_ratio), percent(beginning.cold_first_hit_ratio)
    yield f"first {span(beginning.first_ns)}: {hit} of the reads from the SSD, {cold} without it"
    yield f"90% warm {_when(beginning.warm_up)}, without it {_when(beginning.cold_warm_up)}"


def _when(warm_up: WarmUp) -> str:
    if warm_up.state == State.FLAT:
        return "at once"
    if warm_up.state != State.STEADY:
        return "at an unknown time"
    time_ns = warm_up.reached_ns[90]
    return f"after {span(time_ns)}" if time_ns else "at once"


def _cost(beginning: Beginning) -> Iterator[str]:
    """Yield the busy time of the disks and the SSD writes of the whole run, with and without it."""
    if beginning.disk_ns is not None and beginning.cold_disk_ns is not None:
        yield f"disks busy {span(beginning.disk_ns)}, without it {span(beginning.cold_disk_ns)}"
    if beginning.ssd_bytes is not None and beginning.cold_ssd_bytes is not None:
        written, cold = human_size(beginning.ssd_bytes), human_size(beginning.cold_ssd_bytes)
        yield f"{written} written to the SSD, without it {cold}"
