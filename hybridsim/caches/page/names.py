"""Constants of the page cache: states, tags, counters."""

from __future__ import annotations

PRELOADED = -2  # in place of the slot of a request that waits for a fill
ABSENT, FILLING, PRESENT = range(3)  # FILLING: the page has a slot without valid data

# The tag of a tier request is number << TAG_BITS | one of these; number is a request's slot, a page
# or a clean.
PART, FILL_READ, FILL_WRITE, CLEAN_READ, CLEAN_WRITE, DROPPED, PRELOAD_READ = range(7)
TAG_BITS = 3
TAG_MASK = (1 << TAG_BITS) - 1

COUNTERS = (
    "fills_started", "fills_done", "fills_doomed", "fills_over_rate", "evictions", "stalls",
    "pages_present", "fills", "slots_used", "slots_free", "is_wrong", "wrong_victim",
    "wrong_for", "wrong_at",
)  # fmt: skip
(FILLS_STARTED, FILLS_DONE, FILLS_DOOMED, FILLS_OVER_RATE, EVICTIONS, STALLS,
 PAGES_PRESENT, FILLS, SLOTS_USED, SLOTS_FREE, IS_WRONG, WRONG_VICTIM,
 WRONG_FOR, WRONG_AT) = range(len(COUNTERS))  # fmt: skip
