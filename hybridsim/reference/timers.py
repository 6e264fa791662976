"""Timers of a Linux kernel (2.1)."""

JIFFY = 4_000_000  # ns
LEVELS = [(63, 1), (504, 8), (4032, 64), (32_256, 512)]  # shorter than; granularity; in jiffies
COARSEST = 4096


def expiry(now: int, delay: int) -> int:
    """Return the end of a wait that begins at `now`; one of 0 ends at once.  All in ns."""
    if delay <= 0:
        return now
    jiffies = -(-delay // JIFFY)
    granularity = next((grain for limit, grain in LEVELS if jiffies < limit), COARSEST)
    target = now // JIFFY + jiffies
    return (target - target % granularity + granularity) * JIFFY
