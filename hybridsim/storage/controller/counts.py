"""The small arrays of a controller: what its entries are."""

# of `state`
DESTAGES, DRAINING, LAST_NS, TIMER, FIRST_QUEUED, LAST_QUEUED = range(6)

# An array request's tag is number << 2 | one of these; number is a job or a window.
JOB, WINDOW, DESTAGE = range(3)

# What a queued job does next.
DRAIN_FIRST, PLACE, DRAIN_LAST = range(3)

# of `counts`
(
    DRAM_READ,
    WINDOW_WAITED,
    AHEAD_READ,
    WRITTEN,
    OVERWRITTEN,
    DISCARDED,
    DESTAGED,
    DESTAGES_DONE,
    FULL_STRIPES,
) = range(9)
NAMES = (
    "dram_read_bytes",  # of what was read: found in DRAM
    "waited_bytes",  # on its way there
    "ahead_bytes",  # read ahead of the array
    "write_back_bytes",  # put into DRAM; overwritten, discarded or destaged from there
    "overwritten_bytes",
    "discarded_bytes",
    "destaged_bytes",
    "destages",
    "full_stripes",  # destages of a whole row of the array
)
