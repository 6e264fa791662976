"""The kinds of tier completions and of events: the low bits of their numbers."""

BITS = 4
MASK = (1 << BITS) - 1

# Requests to the tiers.
PART, HIT, PIECE, JOURNAL, PRIORITIES, NODE, BACK_READ, BACK_WRITE = range(8)
# Events.
GC, GC_END, JOURNAL_TIMER, WAKE, RESUME, WRITE_BACK, RATE, STATISTICS, GO_ON = range(9)
