"""How long a flash page takes to read: that depends on which of a cell's bits it is."""

from __future__ import annotations

from hybridsim.jit import kernel

SCATTER = 1_327_217_885  # 2^31 over the golden ratio


@kernel
def level(address):
    """Return how many levels more than the fastest page a page needs: 0, 1 or 3, a third each."""
    kind = address % 2_147_483_648 * SCATTER % 2_147_483_648 // 65_536 % 3
    return kind + kind // 2
