"""Fit a model of the device or array that a capture was taken on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hybridsim.answers.fitting import array, flash
from hybridsim.answers.fitting.answer import Fit
from hybridsim.answers.fitting.array import Progress
from hybridsim.answers.fitting.observed import Marks, Observed
from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.errors import FitError
from hybridsim.foundation.units import human_size, human_time
from hybridsim.foundation.wording import counted

FEWEST = 200  # minimum requests for any fit
FEWEST_RANDOM = 50  # of one direction
NEIGHBOURS = 32  # preceding requests that a sequential request may continue
SMALL = 64 * 1024  # bytes
FLASH_NS = 2_000_000  # lower medians of random reads are flash: no disk is as fast
SLOW_NS, SLOW_TIMES, SLOW_SHARE = 3_000_000, 10, 0.05  # reads of an arm beside reads of flash
MERGED_SHARE = 0.02  # of the requests
INCOMPLETE_SHARE = 0.1  # of the requests: with more, what the device did besides is unknown
FAST_WRITES = 0.4  # median of random writes over that of reads, below which no arm serves them
STALL_NS, STALLED_SHARE = 500_000_000, 0.002
CLIFF_PARTS = 12  # of the writes of a capture
CLIFF_TIMES = 2.0  # slowest part before a cliff, to the fastest after it
HOW_TO_CAPTURE = "capture with: sudo blktrace -d /dev/DISK -w 600 -o capture"


def fit(name: str, observed: Observed, progress: Progress) -> Fit:
    """Determine the kind of device and fit its parameters; raise FitError if impossible."""
    _check(name, observed)
    scattered = _scattered(observed)
    both = scattered & ~observed.is_write, scattered & observed.is_write
    is_of_reads = both[0].sum() >= FEWEST_RANDOM
    number = int(both[0 if is_of_reads else 1].sum())
    if number < FEWEST_RANDOM:
        raise FitError(
            f"{name}: cannot determine the kind of device: only {number} of its requests are small "
            "and not sequential; sequential requests show neither seeks nor the latency of flash"
        )
    reads, writes = (_calm(observed, each) for each in both)
    sample = reads if is_of_reads else writes
    median_ns = float(np.median(sample))
    notes = [*_notes(observed)]
    if median_ns < FLASH_NS:
        _check_one_kind(name, sample)
        notes += _cliffs(observed)
        kind = "reads" if is_of_reads else "writes"
        words = (
            f"random {kind} have a median latency of {human_time(median_ns)} at the lowest queue "
            "depths"
        )
        return flash.answer(name, observed, flash.fit(observed), [words, *notes])
    _check_writes(name, reads, writes)
    calm = np.concatenate([reads, writes])
    return array.answer(name, observed, progress, [*notes, *_stalls(calm)])


def _scattered(observed: Observed) -> Marks:
    """Select the small requests that continue none of the NEIGHBOURS before them."""
    ends = observed.offset_bytes + observed.length_bytes
    continues = np.zeros(observed.rows, np.bool_)
    for back in range(1, min(NEIGHBOURS, observed.rows - 1)):
        continues[back:] |= observed.offset_bytes[back:] == ends[:-back]
    return ~continues & (observed.length_bytes <= SMALL)


def _calm(observed: Observed, chosen: Marks) -> Ints:
    """Return the latencies in ns of the selected requests that met the fewest others."""
    latency_ns, under_way = observed.latency_ns[chosen], observed.outstanding()[chosen]
    if not len(latency_ns):
        return latency_ns
    return latency_ns[under_way <= max(2, np.percentile(under_way, 10))]


def _check(name: str, observed: Observed) -> None:
    if not observed.rows and observed.incomplete:
        raise FitError(
            f"{name}: has no completions, so there are no times to fit to; {HOW_TO_CAPTURE}"
        )
    if observed.rows < FEWEST:
        raise FitError(
            f"{name}: only {observed.rows} reads and writes have both times; at least {FEWEST} "
            f"are needed; {HOW_TO_CAPTURE}"
        )

    share = observed.incomplete / observed.requests
    if share > INCOMPLETE_SHARE:
        raise FitError(
            f"{name}: {share:.0%} of its requests have no completion, so it is unknown how many "
            "the device had at a time, and which are sequential: add the files of all CPUs "
            f"(see hybridsim trace doctor); {HOW_TO_CAPTURE}"
        )

    share = float(_merged(observed).mean())
    if share > MERGED_SHARE:
        raise FitError(
            f"{name}: {share:.0%} of its requests adjoin the one before and have its times of "
            "dispatch and completion: the device got them merged, as one, so their sizes are not "
            "those that it served. Fit the capture itself rather than a table made of it, or a "
            "table of the requests as dispatched"
        )


def _merged(observed: Observed) -> Marks:
    """Return which requests adjoin another one with the same times, in order of their places."""
    place = np.lexsort((observed.offset_bytes, observed.complete_ns, observed.dispatch_ns))
    dispatch, complete = observed.dispatch_ns[place], observed.complete_ns[place]
    end = (observed.offset_bytes + observed.length_bytes)[place]
    same = (dispatch[1:] == dispatch[:-1]) & (complete[1:] == complete[:-1])
    return np.asarray(same & (observed.offset_bytes[place][1:] == end[:-1]))


def _check_one_kind(name: str, latency_ns: Ints) -> None:
    """Refuse a device that serves some random reads from flash, and others with an arm."""
    slow = latency_ns >= max(SLOW_NS, SLOW_TIMES * float(np.median(latency_ns)))
    if slow.mean() > SLOW_SHARE:
        raise FitError(
            f"{name}: these are two devices: half of its random reads take less than "
            f"{human_time(float(np.median(latency_ns)))}, as flash, and {slow.mean():.0%} of them "
            f"{human_time(float(np.median(latency_ns[slow])))} and the like, as a disk. Capture "
            "the disk below the cache, or reads of places that the cache does not hold"
        )


def _check_writes(name: str, reads: Ints, writes: Ints) -> None:
    """Refuse a disk that takes random writes without moving its arm to their places."""
    if min(len(reads), len(writes)) < FEWEST_RANDOM:
        return
    read_ns, write_ns = float(np.median(reads)), float(np.median(writes))
    if write_ns > FAST_WRITES * read_ns:
        return
    cause = "a write cache or shingled recording (SMR)"
    if max(reads.max(), writes.max()) > STALL_NS:
        cause = "as it then stalls for longer than any seek, it is a shingled (SMR) disk"
    raise FitError(
        f"{name}: its random writes take {human_time(write_ns)}, its random reads "
        f"{human_time(read_ns)}: the writes go elsewhere first: {cause}. Capture when there are "
        "reads alone: without the rows of the writes this capture is as wrong, as the arm moved "
        "for them between the reads. For a write cache, capture with the cache off (hdparm -W0). "
        "Set a shingled disk's media_cache and band by hand"
    )


def _stalls(calm: Ints) -> Iterator[str]:
    """Yield a note about requests at low load that took longer than an arm can."""
    stalled = int((calm > STALL_NS).sum())
    if stalled > STALLED_SHARE * len(calm):
        yield (
            f"{stalled:,} of {len(calm):,} random requests at low load took more than "
            f"{human_time(STALL_NS)}, longer than any seek: the device did other work (cleaning of "
            "shingled zones, retries). The model does not."
        )


def _cliffs(observed: Observed) -> Iterator[str]:
    """Yield a note for writes, and for reads, that become much slower and stay so."""
    cause = "a cache of the SSD (SLC) is full, or garbage collection began"
    yield from _cliff(observed.of(observed.is_write), "writes", cause)
    # reads at low load: those beside many others wait for these
    reads = observed.of(~observed.is_write & (observed.outstanding() == 1))
    yield from _cliff(reads, "reads of the idle device", "it throttles, being too warm, or is busy")


def _cliff(these: Observed, what: str, cause: str) -> Iterator[str]:
    parts = np.array_split(these.latency_ns, CLIFF_PARTS)
    if len(parts[0]) < FEWEST_RANDOM:
        return
    medians = np.array([np.median(part) for part in parts])
    ends = range(2, CLIFF_PARTS - 1)
    jumps = [float(medians[at:].min() / medians[:at].max()) for at in ends]
    at = ends[int(np.argmax(jumps))]
    if max(jumps) < CLIFF_TIMES:
        return
    times = np.median(medians[at:]) / np.median(medians[:at])
    moved = float(these.length_bytes[: at * len(parts[0])].sum())
    yield (
        f"After {human_size(moved)} of the fitted {what}, {what} take {times:.1f} times as long, "
        f"to the end: {cause}. The model has one speed for both: fit the two parts of the "
        "capture separately."
    )


def _notes(observed: Observed) -> Iterator[str]:
    if observed.by_arrival:
        yield (
            "The capture has no dispatch times: latencies are from queueing to completion, and "
            "include the waiting in the host's scheduler."
        )
    if observed.incomplete:
        yield f"Left out: {counted(observed.incomplete, 'request')} without both times."
    if observed.rows < observed.requests * 0.9 - observed.incomplete:
        yield f"Fitted to {observed.rows:,} of {observed.requests:,} requests, evenly spaced."
