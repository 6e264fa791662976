"""A grid of counts as a PNG with a palette: 0 is transparent, the largest count is strongest.

PNG: W3C Recommendation "Portable Network Graphics", 2nd ed., sections 5 (chunks) and 11.2.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Sequence

LEVELS = 64
# From pale to strong, visible on light and dark pages; the hue changes from step to step.
RAMP = ((86, 180, 233), (0, 114, 178), (120, 60, 150), (213, 94, 0))
FAINTEST = 70  # of 255: opacity of a single request


def png(counts: Sequence[Sequence[int]]) -> bytes:
    """Return columns of counts, row 0 at the bottom, as a picture with one pixel per cell.

    Shades are logarithmic, so that a few hot cells do not hide all others.
    """
    most = max((max(column, default=0) for column in counts), default=0)
    height = len(counts[0]) if counts else 0
    lines = []
    for row in reversed(range(height)):
        shades = bytes(_level(column[row], most) for column in counts)
        lines.append(b"\0" + shades)  # filter: none
    header = struct.pack(">IIBBBBB", len(counts), height, 8, 3, 0, 0, 0)
    palette = b"".join(bytes(_colour(level)) for level in range(LEVELS + 1))
    alphas = bytes([0] + [_alpha(level) for level in range(1, LEVELS + 1)])
    parts = (
        (b"IHDR", header),
        (b"PLTE", palette),
        (b"tRNS", alphas),
        (b"IDAT", zlib.compress(b"".join(lines), 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*each) for each in parts)


def _level(count: int, most: int) -> int:
    if count <= 0:
        return 0
    share = math.log1p(count) / math.log1p(most)
    return max(1, round(share * LEVELS))


def _colour(level: int) -> list[int]:
    place = level / LEVELS * (len(RAMP) - 1)
    index = min(int(place), len(RAMP) - 2)
    share = place - index
    return [round(a + share * (b - a)) for a, b in zip(RAMP[index], RAMP[index + 1])]


def _alpha(level: int) -> int:
    return min(FAINTEST + round((255 - FAINTEST) * min(2 * level / LEVELS, 1)), 255)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
