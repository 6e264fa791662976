"""The small numbers that arrays hold: operations, flags, paths and reasons.

IntEnums for Python; compiled code uses them as the integers they are.
"""

from enum import IntEnum, IntFlag


class Op(IntEnum):
    """What a request does."""

    READ = 0
    WRITE = 1
    DISCARD = 2
    FLUSH = 3
    WRITE_ZEROES = 4


# Below the cache an op may carry what a barrier asks of a device, as bits beside the Op.
OP_MASK = 7
FUA = 8  # a write is complete only when it is on the medium
PREFLUSH = 16  # what was acknowledged before it must be on the medium first
SYNC = 32  # somebody waits for this write: for the cache alone


class Flag(IntFlag):
    """What else a trace says of a request."""

    SYNC = 1
    FUA = 2
    PREFLUSH = 4
    META = 8
    AHEAD = 16
    ERROR = 32
    REQUEUED = 64
    PARTIAL = 128


class Path(IntEnum):
    """Which way a request went through the cache; each goes exactly one."""

    HIT = 0  # every byte came from the cache device
    MISS = 1  # a read that the cache could have served, had it held all of it
    BYPASS = 2  # not the cache's business: see the reason


class Reason(IntEnum):
    """Why the cache did not serve a request; of a miss, why its first missing page was absent."""

    NONE = 0  # a hit
    COLD = 1
    NOT_HOT = 2
    BUSY = 3
    FILLING = 4
    EVICTED = 5
    OVERWRITTEN = 6
    SEQUENTIAL = 7
    WRITE = 8
    FLUSH = 9
    DISCARD = 10
    NO_CACHE = 11
    NOT_WRITTEN = 12  # of a cache that only writes enter
    CONGESTED = 13


class Mode(IntEnum):
    """What a write does to the cache."""

    READ_ONLY = 0
    WRITE_THROUGH = 1
    WRITE_BACK = 2


class Fill(IntEnum):
    """Where the data come from that fill a page."""

    RE_READ = 0  # a read of its own
    PIGGYBACK = 1  # the read that missed, made longer


class FillWhen(IntEnum):
    """Whether a request waits for the fills that it gives cause to."""

    BACKGROUND = 0
    FOREGROUND = 1


class DmMode(IntEnum):
    """What a write does to a dm-cache, in dm-cache's own words."""

    WRITETHROUGH = 0
    WRITEBACK = 1
    PASSTHROUGH = 2


class CasMode(IntEnum):
    """What Open CAS does with reads and writes: write-through, -back, -around, and so on."""

    WT = 0
    WB = 1
    WA = 2
    PT = 3  # pass-through
    WI = 4  # write-invalidate
    WO = 5  # write-only


class Promotion(IntEnum):
    """What Open CAS inserts."""

    ALWAYS = 0
    NHIT = 1


class Cutoff(IntEnum):
    """When Open CAS lets long sequential streams pass."""

    NEVER = 0
    FULL = 1
    ALWAYS = 2


class Cleaning(IntEnum):
    """When Open CAS writes dirty lines back by itself."""

    NOP = 0
    ALRU = 1
    ACP = 2


class BcacheMode(IntEnum):
    """What a write does to a bcache, in bcache's own words."""

    WRITETHROUGH = 0
    WRITEBACK = 1
    WRITEAROUND = 2
    NONE = 3


class Reuse(IntEnum):
    """Which bucket a bcache empties first."""

    LRU = 0
    FIFO = 1
    RANDOM = 2


class Level(IntEnum):
    """How an array lays its bytes on its members."""

    LINEAR = -1
    STRIPE = 0
    RAID1 = 1
    RAID5 = 5
    RAID6 = 6
    RAID10 = 10


class Spread(IntEnum):
    """Where the copies of a chunk lie: md's layouts of RAID-10."""

    NEAR = 0
    FAR = 1
    OFFSET = 2


class Replay(IntEnum):
    """When a request of a trace is issued."""

    OPEN = 0
    CLOSED = 1
    THINK = 2


class Order(IntEnum):
    """What a disk picks first of the commands that wait."""

    POSITION = 0  # least time until the head is there: shortest positioning time first
    DISTANCE = 1  # fewest cylinders away: shortest seek first
    SWEEP = 2  # the next on the way outward in, then from the start again: C-LOOK
