"""Cache policies for the page cache: who is let in, and who has to leave.

A new policy is one file and one line here.
"""

from hybridsim.policies.learned import Learned
from hybridsim.policies.lru import LRU
from hybridsim.policies.touches import Touches

ADMISSION = {"learned": Learned, "touches": Touches}
REPLACEMENT = {"lru": LRU}

__all__ = ["ADMISSION", "LRU", "REPLACEMENT", "Learned", "Touches"]
