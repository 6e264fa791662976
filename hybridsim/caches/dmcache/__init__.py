"""dm-cache, the Linux kernel's cache of fixed blocks, with its policy smq (DESIGN.md 2.14).

`target` splits requests into bios and decides where each goes, `migrations` copies blocks and
commits metadata, `smq` is the policy, with the background work queued or running.
"""

from hybridsim.caches.dmcache.migrations import METADATA_BYTES
from hybridsim.caches.dmcache.target import DmCache

__all__ = ["METADATA_BYTES", "DmCache"]
