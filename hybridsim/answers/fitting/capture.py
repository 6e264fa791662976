"""From a capture to a model of the device or array below it."""

from __future__ import annotations

from hybridsim.answers.fitting import array, flash, solid
from hybridsim.answers.fitting.answer import Fit
from hybridsim.answers.fitting.arrangement import Progress
from hybridsim.answers.fitting.observed import Observed, Seen, random_reads
from hybridsim.foundation.errors import FitError

FEWEST = 200  # requests that a fit of anything needs
FLASH_NS = 2_000_000  # no disk moves its arm and waits for the platter in less, at the median
HOW_TO_CAPTURE = "capture with: sudo blktrace -d /dev/DISK -w 600 -o capture"


def fit(name: str, observed: Observed, seen: Seen, progress: Progress) -> Fit:
    """Find what kind of device it is, and its parameters; FitError where nothing can be told."""
    _check(name, observed, seen)
    sample, words = random_reads(observed)
    if sample is None:
        raise FitError(f"{name}: the kind of the device is not determined: {words}")
    is_flash = sample < FLASH_NS
    notes = _notes(seen)
    if is_flash:
        return solid.answer(name, observed, flash.fit(observed), [words, *notes])
    return array.answer(name, observed, progress, notes)


def _check(name: str, observed: Observed, seen: Seen) -> None:
    if not seen.used and seen.incomplete:
        raise FitError(
            f"{name}: has no completions, so there are no latencies to fit; {HOW_TO_CAPTURE}"
        )
    if observed.rows < FEWEST:
        raise FitError(
            f"{name}: only {observed.rows} reads and writes have both times; at least {FEWEST} "
            f"are needed; {HOW_TO_CAPTURE}"
        )


def _notes(seen: Seen) -> list[str]:
    notes = []
    if seen.by_arrival:
        notes.append(
            "The capture has no dispatches: times are from queue to completion, and include the "
            "time in the host's scheduler."
        )
    if seen.incomplete:
        notes.append(f"{seen.incomplete:,} requests without both times were left out.")
    if seen.used < seen.requests * 0.9 - seen.incomplete:
        notes.append(f"Fitted to {seen.used:,} of {seen.requests:,} requests, evenly spaced.")
    return notes
