"""Constants of Open CAS jobs: their ways, their steps, events, and the counters."""

# Ways.
INSERT, UPDATE, INVALIDATE, OVERLAY, PASS, FLUSHING, DISCARDING, MAKE_ROOM, CLEAN = range(9)

# Steps: what happens after all parts in progress are complete.
(ENDS, ROUTES, BACKFILLS, IS_DISCARDED,
 IS_BACKFILLED, IS_WRITTEN_BACK, IS_OVERWRITTEN, IS_NOTED, OVERLAYS,
 CLEAN_READ, CLEAN_WRITTEN, CLEAN_FLUSHED, CLEAN_NOTED, CLEAN_STABLE) = range(14)  # fmt: skip
BY_THREAD = IS_BACKFILLED  # from this step on the thread of the job's queue carries it out

COUNTERS = (
    "read_hits", "read_deferred", "read_partial_misses", "read_full_misses", "read_total",
    "write_hits", "write_deferred", "write_partial_misses", "write_full_misses", "write_total",
    "pass_through_reads", "pass_through_writes",
    "metadata_writes",
)  # fmt: skip
# Of a READ; those of a WRITE are at an offset of OF_WRITES.
HITS, DEFERRED, PARTIAL_MISSES, FULL_MISSES, TOTAL = range(5)
OF_WRITES = 5
PASS_THROUGH = 10  # of a READ; the next one is of a WRITE
METADATA_WRITES = 12

BYTES = (
    "reads_from_core", "writes_to_core", "reads_from_cache", "writes_to_cache",
    "reads_from_exported_object", "writes_to_exported_object",
    "cleaned_blocks",
)  # fmt: skip
# Of READs; the next one is of WRITEs.
OF_ORIGIN, OF_CACHE, OF_EXPORTED = 0, 2, 4
CLEANED = 6

RESUME, CLEANER, LET_IN, THREAD = range(4)  # events of the cache; of thread n THREAD + n
# What a thread is to do with a job.
STARTS, BEGINS, PROCEEDS, GOES_ON, STORES = range(5)
