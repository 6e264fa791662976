"""What a drive derives from addresses as if by chance: the level of a page, the lane of a write."""

from __future__ import annotations

from hybridsim.jit import kernel

SCATTER = 1_327_217_885  # 2^31 over the golden ratio


@kernel
def scattered(address):
    """Return a number below 32,768 that differs between neighbouring addresses."""
    return address % 2_147_483_648 * SCATTER % 2_147_483_648 // 65_536


@kernel
def level(address):
    """Return the extra read steps of a page over the fastest page: 0, 1 or 3, a third each."""
    kind = scattered(address) % 3
    return kind + kind // 2
