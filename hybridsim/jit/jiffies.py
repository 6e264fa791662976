"""Timers of a Linux kernel, which expire on a wheel of jiffies (DESIGN.md 2.1)."""

from hybridsim.jit import kernel

JIFFY_NS = 4_000_000  # CONFIG_HZ=250
# A longer timer than FINE jiffies expires at a multiple of 8, beyond 8 * FINE of 64, ...
FINE, COARSER = 63, 8


@kernel
def expiry_ns(now, delay_ns):
    """Return the end of a wait of `delay_ns` from now; one of 0 ends at once."""
    if delay_ns <= 0:
        return now
    delay = (delay_ns + JIFFY_NS - 1) // JIFFY_NS
    step = 1
    while delay >= FINE * step:
        step *= COARSER
    return ((now // JIFFY_NS + delay) // step + 1) * step * JIFFY_NS
