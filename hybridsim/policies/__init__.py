"""Cache policies for the page cache: who is let in, and who has to leave.

An admission policy has `consider(now, page, write, full)`, which hears of each access and tells
whether the page is wanted if it is not cached, and `evicted(page)`.  A replacement policy has
`admit(page)`, `touch(page)`, `remove(page)` and `evict()`, which gives up a page, or -1.
Both have `grown(ids)`.  A new policy is one file and one line here.
"""

from hybridsim.policies.learned import Learned
from hybridsim.policies.lru import LRU
from hybridsim.policies.touches import Touches

ADMISSION = {"learned": Learned, "touches": Touches}
REPLACEMENT = {"lru": LRU}

ADMISSION_METHODS = ("consider", "evicted")
REPLACEMENT_METHODS = ("admit", "touch", "remove", "evict")

__all__ = [
    "ADMISSION",
    "ADMISSION_METHODS",
    "LRU",
    "REPLACEMENT",
    "REPLACEMENT_METHODS",
    "Learned",
    "Touches",
]
