"""The small numbers that arrays hold: operations, flags, paths and reasons.

IntEnums for Python; compiled code uses their integer values.
"""

from enum import IntEnum, IntFlag


class Op(IntEnum):
    """What a request does."""

    READ = 0
    WRITE = 1
    DISCARD = 2
    FLUSH = 3
    WRITE_ZEROES = 4


# Below the cache an op may also have the flags of a barrier, in bits above the Op.
OP_MASK = 7
FUA = 8  # a write is complete only when it is on the medium
PREFLUSH = 16  # earlier acknowledged writes must be on the medium first
SYNC = 32  # a caller waits for this write: used by the cache only


class Flag(IntFlag):
    """Flags of a request in a trace."""

    SYNC = 1
    FUA = 2
    PREFLUSH = 4
    META = 8
    AHEAD = 16
    ERROR = 32
    REQUEUED = 64
    PARTIAL = 128


class Path(IntEnum):
    """How the cache served a request; each request has exactly one path."""

    HIT = 0  # every byte came from the cache device
    MISS = 1  # a read that the cache could have served if it had held all its bytes
    BYPASS = 2  # not served by the cache: see the reason


class Reason(IntEnum):
    """Why the cache did not serve a request; for a miss, why its first missing page was absent."""

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
    NOT_WRITTEN = 12  # not in a cache that admits only writes
    CONGESTED = 13


class Mode(IntEnum):
    """What a write does to the cache."""

    READ_ONLY = 0
    WRITE_AROUND = 0  # synonym
    WRITE_THROUGH = 1
    WRITE_BACK = 2


class Fill(IntEnum):
    """Where the data for filling a page comes from."""

    RE_READ = 0  # a separate read
    PIGGYBACK = 1  # the read that missed, extended


class FillWhen(IntEnum):
    """Whether a request waits for the fills that it causes."""

    BACKGROUND = 0
    FOREGROUND = 1


class DmMode(IntEnum):
    """What a write does to a dm-cache, by dm-cache's own names."""

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
    """When Open CAS inserts a missed line."""

    ALWAYS = 0
    NHIT = 1


class Cutoff(IntEnum):
    """When Open CAS lets long sequential streams bypass the cache."""

    NEVER = 0
    FULL = 1
    ALWAYS = 2


class Cleaning(IntEnum):
    """When Open CAS writes dirty lines back on its own."""

    NOP = 0
    ALRU = 1
    ACP = 2


class BcacheMode(IntEnum):
    """What a write does to a bcache, by bcache's own names."""

    WRITETHROUGH = 0
    WRITEBACK = 1
    WRITEAROUND = 2
    NONE = 3


class Kernel(IntEnum):
    """A Linux whose bcache is modelled; from one on, its behaviour is that up to the next."""

    LINUX_6_1 = 601
    LINUX_6_12 = 612


class Reuse(IntEnum):
    """Which bucket a bcache reclaims first."""

    LRU = 0
    FIFO = 1
    RANDOM = 2


class Level(IntEnum):
    """How an array maps its bytes to its members."""

    LINEAR = -1
    STRIPE = 0
    RAID1 = 1
    RAID5 = 5
    RAID6 = 6
    RAID10 = 10


class Spread(IntEnum):
    """Where md stores the copies of a chunk: the layouts of RAID-10."""

    NEAR = 0
    FAR = 1
    OFFSET = 2


class Replay(IntEnum):
    """When a request of a trace is issued."""

    OPEN = 0
    CLOSED = 1
    THINK = 2


class Order(IntEnum):
    """Which of the waiting commands a disk serves first."""

    POSITION = 0  # shortest positioning time first: seek and rotation
    DISTANCE = 1  # shortest seek first, in cylinders
    SWEEP = 2  # the next cylinder inwards, then again from the outer edge: C-LOOK


class Restart(IntEnum):
    """How a cache stops and starts again (DESIGN.md 2.17)."""

    CLEAN = 0  # after an orderly shutdown
    UNCLEAN = 1  # after a crash or a power failure
    CLEANER = 2  # to write back all dirty data, before the cache is removed


class Change(IntEnum):
    """What happens to a machine at a moment of its load (DESIGN.md 2.17)."""

    REBOOT = 0
    CRASH = 1
    DETACH = 2
    SSD_DIES = 3
    DISK_FAILS = 4
    REBUILD = 5
    PASS = 6
