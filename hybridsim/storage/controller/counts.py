"""Indices of the small arrays of a controller."""

# indices of `state`
DESTAGES, DRAINING, LAST_NS, TIMER, FIRST_QUEUED, LAST_QUEUED = range(6)

# The tag of an array request is number << 2 | one of these; number is a job or a window.
JOB, WINDOW, DESTAGE = range(3)

# The next step of a queued job.
DRAIN_FIRST, PLACE, DRAIN_LAST = range(3)

# indices of `counts`
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
    "dram_read_bytes",  # read from DRAM
    "waited_bytes",  # read from a window that was still being read from the array
    "ahead_bytes",  # read ahead from the array
    "write_back_bytes",  # written to DRAM; then overwritten, discarded or destaged
    "overwritten_bytes",
    "discarded_bytes",
    "destaged_bytes",
    "destages",
    "full_stripes",  # destages of a whole row of the array
)
