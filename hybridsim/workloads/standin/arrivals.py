"""Arrival times of requests: the sequence of gaps, and the duration of each part."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybridsim.foundation.codes import Op
from hybridsim.requests.rows import Requests
from hybridsim.workloads.draws import Draws, Ints

PARTS = 64  # equal numbers of requests, each with its duration
OCTAVES = 48  # of gaps in nanoseconds
CHAINS = 256  # drawn in parallel


def measured(requests: Requests, is_data: NDArray[np.bool_]) -> dict[str, Any]:
    """Return the distribution of gaps, the durations of the parts and the ratio of flushes."""
    arrival = requests.arrival_ns[is_data | (requests.op == Op.FLUSH)]
    octave = octaves(np.diff(arrival))
    pairs, number = np.unique(octave[:-1] * OCTAVES + octave[1:], return_counts=True)
    at = np.linspace(0, max(len(arrival) - 1, 0), PARTS + 1).astype(np.int64)
    flushes = requests.op == Op.FLUSH
    writes = int((requests.op[is_data] != Op.READ).sum())
    return {
        "bursts": [
            [pair // OCTAVES, pair % OCTAVES, n] for pair, n in zip(pairs.tolist(), number.tolist())
        ],
        "parts": [float(f"{each / 1e9:.4g}") for each in np.diff(arrival[at])],
        "flushes": float(f"{int(flushes.sum()) / max(writes, 1):.4g}"),
    }


def octaves(gaps_ns: Ints) -> Ints:
    """Return the octave of each gap; 0 is no gap."""
    _, exponent = np.frexp(gaps_ns.astype(np.float64))
    octave: Ints = np.minimum(exponent, OCTAVES - 1).astype(np.int64)
    return octave


def generated(count: int, bursts: list[list[int]], parts: list[float], draws: Draws) -> Ints:
    """Return `count` arrival times in ns."""
    gap = np.zeros(count)
    if bursts and count > 1:
        steps = -(-(count - 1) // CHAINS)
        octave = _chains(bursts, steps, draws).T.ravel()[: count - 1]
        low = np.where(octave > 0, 2.0 ** (octave - 1), 0.0)
        gap[1:] = low * (1 + draws.uniform(count - 1))
    at = np.linspace(0, count - 1, len(parts) + 1).astype(np.int64)
    time = np.cumsum(gap)
    arrival = np.zeros(count)
    begin = 0.0
    for low, high, seconds in zip(at, at[1:], parts):
        taken = time[low : high + 1] - time[low]
        scale = seconds * 1e9 / taken[-1] if taken[-1] else 0.0
        arrival[low : high + 1] = begin + taken * scale
        begin = arrival[high]
    return np.rint(arrival).astype(np.int64)


def _chains(bursts: list[list[int]], steps: int, draws: Draws) -> Ints:
    """Return octaves of gaps, one Markov chain per column."""
    table = np.zeros((OCTAVES, OCTAVES))
    for before, after, number in bursts:
        table[before, after] += number
    all_of_them = table.sum(axis=0)
    table[table.sum(axis=1) == 0] = all_of_them
    sums = np.cumsum(table, axis=1)
    sums /= sums[:, -1:]
    whole = np.cumsum(all_of_them) / all_of_them.sum()
    octave = np.zeros((steps, CHAINS), np.int64)
    octave[0] = np.searchsorted(whole, draws.uniform(CHAINS), "right")
    for step in range(1, steps):
        chance = draws.uniform(CHAINS)
        octave[step] = (sums[octave[step - 1]] <= chance[:, None]).sum(axis=1)
    return np.minimum(octave, OCTAVES - 1)
