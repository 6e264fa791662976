"""Show why the learned policy admitted a page or not, at each access to it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hybridsim.caches.policies.learned.decisions import Page, Why
from hybridsim.foundation.errors import TraceError, UsageError
from hybridsim.requests.pages import Accesses, Chunked, Ids, accesses
from hybridsim.studies.decision_trace import Witness
from hybridsim.studies.hits import cache_pages, size_bytes

MOMENTS = 12  # number of times at which the threshold is reported


def why(
    trace: Chunked,
    offsets: Sequence[str | int] = (),
    cache_size: str | int = "10%",
    page: str | int = "64KiB",
    sequential_cutoff: str | int = "1MiB",
    write_price: float = 0.5,
) -> Why:
    """Return the decisions at each access to the pages at `offsets`, and the threshold over time.

    Without offsets, the page with the most accesses is used.  No devices are simulated: a page is
    cached as soon as it is admitted.  Raises UsageError if the trace does not touch a page.
    """
    page_bytes = size_bytes(page)
    if page_bytes < 1:
        raise UsageError("the size of a page must be at least one byte")
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
            "; `hybridsim trace head` shows addresses that are touched"
        )
    shown = [Page(each * page_bytes, tuple(witness.decisions[each])) for each in witness.wanted]
    return Why(pages, page_bytes, tuple(witness.moments), tuple(shown))


def _survey(trace: Chunked, page_bytes: int) -> tuple[int, int]:
    """Return the number of page accesses, and the number of the page with the most accesses."""
    ids, total, counts = Ids(), 0, np.zeros(0, np.int64)
    for part in accesses(trace, page_bytes):
        grown = np.bincount(ids.of(part.numbers), minlength=len(counts))
        grown[: len(counts)] += counts
        counts = grown
        total += len(part.numbers)
    if not total:
        raise TraceError("no reads or writes in the trace")
    return total, int(ids.numbers[np.argmax(counts)])
