"""Arrays: equal devices combined to one range of bytes, in md's layouts (DESIGN.md 2.5)."""

from hybridsim.storage.raid.rebuild import Rebuild
from hybridsim.storage.raid.tier import Tier

__all__ = ["Rebuild", "Tier"]
