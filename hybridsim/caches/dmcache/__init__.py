"""dm-cache, the Linux kernel's cache of fixed blocks, with its policy smq (DESIGN.md 2.14).

One file per part: `target` splits requests into bios, `mapping` decides where a bio goes,
`migrations` copies blocks and commits metadata, `work` is the background work queued or running,
`smq` the policy (with its `hotspot` queue and its `multiqueue`s); `bios`, `discards` and `table`
are data structures.
"""

from hybridsim.caches.dmcache.migrations import METADATA_BYTES
from hybridsim.caches.dmcache.target import DmCache

__all__ = ["METADATA_BYTES", "DmCache"]
