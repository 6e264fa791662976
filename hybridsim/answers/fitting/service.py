"""The likelihood of observed service times of a disk.

    service = seek(distance) + rotation + length / rate(place)        (+ settling, of a write)

The rotation is uniform from 0 to a revolution.  The error of the completion times (interrupts,
wake-ups) is logistic; a share of stray requests follows no model.  A request that finds its disk
idle first takes the overhead of the electronics.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from hybridsim.answers.fitting.observed import Floats
from hybridsim.answers.fitting.pieces import Pieces

TINY = 1e-30
MS = 1e6


class Service(NamedTuple):
    """The parameters of one disk and of the observation; times in milliseconds."""

    overhead_ms: float  # of a request that finds the disk idle
    track_ms: float  # the shortest seek
    full_ms: float  # over the whole stroke
    linear: float  # a seek over the share x of the stroke grows as (1 - linear) sqrt(x) + linear x
    bend: float  # + bend x (1 - x), for arms that accelerate in stages
    rotation_ms: float  # of a revolution
    per_mib_ms: float  # transfer of 1 MiB, mean over the stroke
    inner: float  # increase of that from the first to the last place, as a share of the mean
    settle_ms: float  # added to a write
    noise_ms: float  # scale of the logistic error
    stray: float  # share of requests that follow no model

    def seek_ms(self, share: Floats) -> Floats:
        """Return the time of a seek over a share of the stroke."""
        shape = (1 - self.linear) * np.sqrt(share) + self.linear * share
        shape += self.bend * share * (1 - share)
        return self.track_ms + (self.full_ms - self.track_ms) * shape


def log_likelihood(service: Service, seen: Pieces) -> Floats:
    """Return the log density of each request's completion, in 1 / ms."""
    density, below = _of_pieces(service, seen)
    # A request completes with its last piece: the density of the maximum of independent times.
    whole = np.add.reduceat(np.log(below), seen.first)
    return np.asarray(whole + np.log(np.add.reduceat(density / below, seen.first)))


def _of_pieces(service: Service, seen: Pieces) -> tuple[Floats, Floats]:
    """Return density and cumulative distribution at the completion of each piece."""
    begun = np.maximum(seen.entered_ns + service.overhead_ms * MS, seen.before_ns)
    rest = (seen.complete_ns - begun) / MS
    transfer_ms = service.per_mib_ms * (1 + service.inner * (seen.place - 0.5))
    rest -= seen.length_bytes / 2**20 * transfer_ms + seen.is_write * service.settle_ms
    moved = rest - service.seek_ms(seen.share)
    revolution, noise = service.rotation_ms, service.noise_ms
    density = (expit(moved / noise) - expit((moved - revolution) / noise)) / revolution
    below = _softplus(moved / noise) - _softplus((moved - revolution) / noise)
    below *= noise / revolution
    if seen.is_next.any():  # the head may continue without seek and rotation
        on = expit(rest / noise)
        density = np.where(seen.is_next, (density + on * (1 - on) / noise) / 2, density)
        below = np.where(seen.is_next, (below + on) / 2, below)
    far = np.exp(-np.abs(moved - revolution / 2) / revolution)
    beside = np.where(moved < revolution / 2, far / 2, 1 - far / 2)
    stray = service.stray
    return (
        np.maximum((1 - stray) * density + stray * far / (2 * revolution), TINY),
        np.clip((1 - stray) * below + stray * beside, TINY, 1.0),
    )


def _softplus(value: Floats) -> Floats:
    return np.logaddexp(0.0, value)
