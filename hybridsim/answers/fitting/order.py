"""Whether a disk serves first come, first served, or chooses from its queue."""

from __future__ import annotations

import numpy as np

from hybridsim.answers.fitting.pieces import Pieces

CHOOSES = 0.2  # of the services that had a choice; below it is the jitter of completion times


def choice_share(seen: Pieces) -> float | None:
    """Return how often a disk with a choice did not take the oldest; None if it never had one."""
    had = (seen.waiting > 0) & seen.is_whole
    return float(seen.passed[had].mean()) if had.any() else None


def log_likelihood(seen: Pieces) -> float:
    """Return the likelihood of the order of service itself.

    With probability 1 - p the oldest is next, else any of the others alike; p as observed.
    Without it the layout of one disk, which may serve in any order, would explain everything.
    """
    had = (seen.waiting > 0) & seen.is_whole
    waiting, passed = seen.waiting[had], seen.passed[had]
    if not len(waiting):
        return 0.0
    share = float(np.clip(passed.mean(), 1 / (len(passed) + 2), 1 - 1 / (len(passed) + 2)))
    of_passed = np.log(share / waiting[passed])
    return float(of_passed.sum() + (~passed).sum() * np.log(1 - share))
