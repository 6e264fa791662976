"""The octave of a number: an LLVM instruction that neither Python nor numba offers."""

from __future__ import annotations

from typing import Any

from numba.extending import overload


def octave(number: int) -> int:
    """Return log2 of a number of at least 1, rounded down; 0 for 0.

    >>> [octave(each) for each in (0, 1, 2, 3, 4)]
    [0, 0, 1, 1, 2]
    """
    return (int(number) | 1).bit_length() - 1


@overload(octave)
def _compiled_octave(number: int) -> Any:
    def find(number: int) -> int:
        """Count: what numba compiles instead of lean/ need not be fast."""
        found = 0
        while number > 1:
            number >>= 1
            found += 1
        return found

    return find
