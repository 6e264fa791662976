"""The read time of a flash page, which depends on the bit of the cells that it uses."""

from __future__ import annotations

from hybridsim.jit import kernel

SCATTER = 1_327_217_885  # 2^31 over the golden ratio


@kernel
def level(address):
    """Return the extra read steps of a page over the fastest page: 0, 1 or 3, a third each."""
    kind = address % 2_147_483_648 * SCATTER % 2_147_483_648 // 65_536 % 3
    return kind + kind // 2
