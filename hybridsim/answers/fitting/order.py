"""The order of service: whether a disk serves its queue in order, or chooses from it."""

from __future__ import annotations

import numpy as np

from hybridsim.answers.fitting.pieces import Pieces

CHOOSES = 0.2  # share of the services with a choice; lower shares are jitter of completion times


def choice_share(seen: Pieces) -> float | None:
    """Return the share of choices that passed over the oldest request; None without choices."""
    had = (seen.waiting > 0) & seen.is_whole
    return float(seen.passed[had].mean()) if had.any() else None


def log_likelihood(seen: Pieces) -> float:
    """Return the log-likelihood of the order of service.

    With probability 1 - p the oldest request is next, else each other with equal probability; p is
    estimated from the capture.  Without this term the layout of one disk, which may serve in any
    order, would explain every capture.
    """
    had = (seen.waiting > 0) & seen.is_whole
    waiting, passed = seen.waiting[had], seen.passed[had]
    if not len(waiting):
        return 0.0
    share = float(np.clip(passed.mean(), 1 / (len(passed) + 2), 1 - 1 / (len(passed) + 2)))
    of_passed = np.log(share / waiting[passed])
    return float(of_passed.sum() + (~passed).sum() * np.log(1 - share))
