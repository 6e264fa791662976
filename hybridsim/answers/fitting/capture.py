"""From a capture to a model of the device or array below it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hybridsim.answers.fitting import array, flash, solid
from hybridsim.answers.fitting.answer import Fit
from hybridsim.answers.fitting.arrangement import Progress
from hybridsim.answers.fitting.observed import Observed, Seen, calm_random_reads, random_reads
from hybridsim.foundation.errors import FitError
from hybridsim.foundation.units import human_time

FEWEST = 200  # requests that a fit of anything needs
FLASH_NS = 2_000_000  # no disk moves its arm and waits for the platter in less, at the median
SLOW_NS, SLOW_TIMES, SLOW_SHARE = 3_000_000, 10, 0.05  # reads of an arm beside reads of flash
MERGED_SHARE = 0.02  # of the requests
HOW_TO_CAPTURE = "capture with: sudo blktrace -d /dev/DISK -w 600 -o capture"


def fit(name: str, observed: Observed, seen: Seen, progress: Progress) -> Fit:
    """Find what kind of device it is, and its parameters; FitError where nothing can be told."""
    _check(name, observed, seen)
    sample, words = random_reads(observed)
    if sample is None:
        raise FitError(f"{name}: cannot tell what is below it: {words}")
    is_flash = sample < FLASH_NS
    notes = _notes(seen)
    if is_flash:
        _check_one_kind(name, observed)
        return solid.answer(name, observed, flash.fit(observed), [words, *notes])
    return array.answer(name, observed, progress, notes)


def _check(name: str, observed: Observed, seen: Seen) -> None:
    if not seen.used and seen.incomplete:
        raise FitError(
            f"{name}: tells no completions, so there are no times to fit to; {HOW_TO_CAPTURE}"
        )
    if observed.rows < FEWEST:
        raise FitError(
            f"{name}: only {observed.rows} reads and writes with both times, {FEWEST} are the "
            f"least that tell something; {HOW_TO_CAPTURE}"
        )

    share = float(_merged(observed).mean())
    if share > MERGED_SHARE:
        raise FitError(
            f"{name}: {share:.0%} of its requests adjoin the one before and have its times of "
            "dispatch and completion: the device got them merged, as one, so their sizes are not "
            "those that it served. Fit the capture itself rather than a table made of it, or a "
            "table of the requests as dispatched"
        )


def _merged(observed: Observed) -> npt.NDArray[np.bool_]:
    """Tell which requests adjoin another one with the same times, in order of their places."""
    place = np.lexsort((observed.offset_bytes, observed.complete_ns, observed.dispatch_ns))
    dispatch, complete = observed.dispatch_ns[place], observed.complete_ns[place]
    end = (observed.offset_bytes + observed.length_bytes)[place]
    same = (dispatch[1:] == dispatch[:-1]) & (complete[1:] == complete[:-1])
    return np.asarray(same & (observed.offset_bytes[place][1:] == end[:-1]))


def _check_one_kind(name: str, observed: Observed) -> None:
    """Refuse a device that serves some random reads from flash, and others with an arm."""
    latency_ns = calm_random_reads(observed)
    slow = latency_ns >= max(SLOW_NS, SLOW_TIMES * float(np.median(latency_ns)))
    if slow.mean() > SLOW_SHARE:
        raise FitError(
            f"{name}: these are two devices: half of its random reads take less than "
            f"{human_time(float(np.median(latency_ns)))}, as flash, and {slow.mean():.0%} of them "
            f"{human_time(float(np.median(latency_ns[slow])))} and the like, as a disk. Capture "
            "the disk below the cache, or reads of places that the cache does not hold"
        )


def _notes(seen: Seen) -> list[str]:
    notes = []
    if seen.by_arrival:
        notes.append(
            "The capture tells no dispatch: times are from the queue to completion, and hold the "
            "waiting in the host's scheduler too."
        )
    if seen.incomplete:
        notes.append(f"{seen.incomplete:,} requests without both times were left out.")
    if seen.used < seen.requests * 0.9 - seen.incomplete:
        notes.append(f"Fitted to {seen.used:,} of {seen.requests:,} requests, evenly spaced.")
    return notes
