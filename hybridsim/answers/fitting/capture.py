"""Fit a model of the device or array that a capture was taken on."""

from __future__ import annotations

from hybridsim.answers.fitting import array, flash
from hybridsim.answers.fitting.answer import Fit
from hybridsim.answers.fitting.arrangement import Progress
from hybridsim.answers.fitting.observed import Observed, Seen, random_reads
from hybridsim.foundation.errors import FitError

FEWEST = 200  # minimum requests for any fit
FLASH_NS = 2_000_000  # lower medians of random reads are flash: no disk is as fast
HOW_TO_CAPTURE = "capture with: sudo blktrace -d /dev/DISK -w 600 -o capture"


def fit(name: str, observed: Observed, seen: Seen, progress: Progress) -> Fit:
    """Determine the kind of device and fit its parameters; raise FitError if impossible."""
    _check(name, observed, seen)
    sample, words = random_reads(observed)
    if sample is None:
        raise FitError(f"{name}: cannot determine the kind of device: {words}")
    is_flash = sample < FLASH_NS
    notes = _notes(seen)
    if is_flash:
        return flash.answer(name, observed, flash.fit(observed), [words, *notes])
    return array.answer(name, observed, progress, notes)


def _check(name: str, observed: Observed, seen: Seen) -> None:
    if not seen.used and seen.incomplete:
        raise FitError(
            f"{name}: has no completions, so there are no times to fit to; {HOW_TO_CAPTURE}"
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
            "The capture has no dispatch times: latencies are from queueing to completion, and "
            "include the waiting in the host's scheduler."
        )
    if seen.incomplete:
        notes.append(f"{seen.incomplete:,} requests without both times were left out.")
    if seen.used < seen.requests * 0.9 - seen.incomplete:
        notes.append(f"Fitted to {seen.used:,} of {seen.requests:,} requests, evenly spaced.")
    return notes
