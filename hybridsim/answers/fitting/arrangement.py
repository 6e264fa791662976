"""Estimate the layout of a volume: the number of disks, the chunk size, and the depth of the path.

The members of a striped array serve requests independently.  Under the true layout each service
time is plausible for a disk, and so is the order of completions.  Under any other layout services
overlap, or contain pauses that the model cannot explain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hybridsim.answers.fitting import disks, order
from hybridsim.answers.fitting.observed import Observed
from hybridsim.answers.fitting.pieces import Layout, pieces

KIB = 1024
MEMBERS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24)
CHUNKS = tuple(KIB << power for power in range(2, 12))  # 4 KiB to 2 MiB
DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128, 254)
SINGLE = Layout(1, CHUNKS[-1])
SEARCHED = 3000  # requests that all layouts are compared on
SEMIFINALISTS, FINALISTS = 16, 4
QUICK, THOROUGH = 4, 25  # iterations of the search for parameters
CLEARLY = 10.0  # minimum logarithm of a ratio of likelihoods that is clear

Progress = Callable[[str, int, int], None]  # called with (step, done, total)


@dataclass(frozen=True)
class Arrangement:
    """The most likely layout, and its margin over the second."""

    layout: Layout
    depth: int  # 0: no limit detected
    margin: float  # difference of the log-likelihoods of the best layout and the second
    second: Layout
    deepest: int  # maximum number of outstanding requests

    @property
    def is_clear(self) -> bool:
        """Whether all other layouts are clearly less likely."""
        return self.margin >= CLEARLY

    @property
    def is_halved(self) -> bool:
        """Whether each half of the addresses clearly has an arm of its own."""
        return self.is_clear and self.layout.chunk_bytes > CHUNKS[-1]


def arrangement(observed: Observed, progress: Progress) -> Arrangement:
    """Return the most likely layout and depth."""
    some = observed.of(slice(0, SEARCHED))
    deepest = int(observed.outstanding().max())
    if deepest <= 1:  # one disk is never left idle by another: nothing tells several from one
        return Arrangement(SINGLE, 0, 0.0, SINGLE, deepest)
    best = list(_layouts(observed.end_bytes))
    for turns, kept in ((0, SEMIFINALISTS), (QUICK, FINALISTS)):
        scores = {}
        for number, layout in enumerate(best):
            progress("comparing layouts", number, len(best))
            scores[layout] = _score(some, layout, 0, turns)
        best = sorted(best, key=lambda layout: -scores[layout])[:kept]
    depth = _depth(some, best[0], deepest, progress)
    final = {}
    for number, layout in enumerate(best):
        progress("comparing the most likely layouts", number, len(best))
        final[layout] = _score(observed, layout, depth, THOROUGH)
    first, *others = sorted(best, key=lambda layout: -final[layout])
    margin = final[first] - final[others[0]]
    return Arrangement(first, depth, margin, others[0], deepest)


def _layouts(end_bytes: int) -> Iterator[Layout]:
    """Yield one disk, halves with an arm each if these are larger than chunks, and stripes."""
    yield SINGLE
    half = -(-end_bytes // (2 * KIB)) * KIB
    if half > CHUNKS[-1]:
        yield Layout(2, half)
    for members in MEMBERS[1:]:
        for chunk in CHUNKS:
            yield Layout(members, chunk)


def _score(observed: Observed, layout: Layout, depth: int, turns: int) -> float:
    seen = pieces(observed, observed.entered_ns(depth), layout)
    if not turns:
        return disks.guessed(seen) + order.log_likelihood(seen)
    return disks.quick_fit(seen, turns).log_likelihood + order.log_likelihood(seen)


def _depth(observed: Observed, layout: Layout, deepest: int, progress: Progress) -> int:
    """Return the depth that explains the waiting times best, 0 if none clearly does."""
    scores = {0: _score(observed, layout, 0, THOROUGH)}
    coarse = [depth for depth in DEPTHS if depth < deepest]
    for number, depth in enumerate(coarse):
        progress("searching for a limit of the queue", number, len(coarse))
        scores[depth] = _score(observed, layout, depth, THOROUGH)
    best = max(scores, key=lambda depth: scores[depth])
    step = best // 4
    while best and step:
        for depth in (best - step, best + step):
            if 0 < depth < deepest and depth not in scores:
                scores[depth] = _score(observed, layout, depth, THOROUGH)
        best = max(scores, key=lambda depth: scores[depth])
        step //= 2
    return best if scores[best] > scores[0] + CLEARLY else 0
