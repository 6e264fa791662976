"""Why was a page let into the cache, or not?  What the learned policy weighed each time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hybridsim.caches.policies.learned.decisions import Page, Why
from hybridsim.foundation.errors import TraceError, UsageError
from hybridsim.requests.pages import Accesses, Chunked, Ids, accesses
from hybridsim.studies.decision_trace import Witness
from hybridsim.studies.hits import cache_pages, size_bytes

MOMENTS = 12  # at which the threshold is told


def why(
    trace: Chunked,
    offsets: Sequence[str | int] = (),
    cache_size: str | int = "10%",
    page: str | int = "64KiB",
    sequential_cutoff: str | int = "1MiB",
    write_price: float = 0.5,
) -> Why:
    """Return what was weighed at each access to the pages at `offsets`, and the threshold.

    Without offsets it is the page that is accessed most.  There are no devices and no time: a page
    is there as soon as it is let in.  UsageError if no access touches a page asked for.
    """
    page_bytes = size_bytes(page)
    if page_bytes < 1:
        raise UsageError("a page has at least one byte")
    total, busiest = _survey(trace, page_bytes)
    wanted = [size_bytes(each) // page_bytes for each in offsets] or [busiest]
    (pages,) = cache_pages(trace, [cache_size], page_bytes)
    cutoff = size_bytes(sequential_cutoff)
    witness = Witness(pages, page_bytes, cutoff, write_price, list(dict.fromkeys(wanted)))
    step = -(-total // MOMENTS)
    for part in accesses(trace, page_bytes):
        assert isinstance(part, Accesses)
        witness.take(part, step)
    witness.note()
    missing = [each for each in witness.wanted if not witness.decisions[each]]
    if missing:
        raise UsageError(
            f"no read or write touches the page of {page_bytes} bytes at {missing[0] * page_bytes}"
            "; `trace head` shows some that are"
        )
    asked = [Page(each * page_bytes, tuple(witness.decisions[each])) for each in witness.wanted]
    return Why(pages, page_bytes, tuple(witness.moments), tuple(asked))


def _survey(trace: Chunked, page_bytes: int) -> tuple[int, int]:
    """Return how many page accesses there are, and the page of most of them."""
    ids, total, counts = Ids(), 0, np.zeros(0, np.int64)
    for part in accesses(trace, page_bytes):
        result = np.bincount(ids.of(part.numbers), minlength=len(counts))
        result[: len(counts)] += counts
        counts = result
        total += len(part.numbers)
    if not total:
        raise TraceError("no reads or writes in the trace")
    return total, int(ids.numbers[np.argmax(counts)])
