"""What a completion of a tier, or an event, is of: the low bits of its number."""

BITS = 3
MASK = (1 << BITS) - 1

# Requests to the tiers.
PART, HIT, PIECE, JOURNAL, PRIORITIES, NODE, BACK_READ, BACK_WRITE = range(8)
# Events.
GC, GC_END, JOURNAL_TIMER, TOLD, RESUME, WRITE_BACK, RATE, STATISTICS = range(8)
