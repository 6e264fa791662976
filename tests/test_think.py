"""Parents and gaps against DESIGN.md 2.2 read literally: quadratic, over all requests before."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hybridsim.engine import think
from hybridsim.engine.think import NOTHING, Waits


def naive(requests, lookback):
    """Return parents and gaps; requests are (arrival, completion or -1, stream) by arrival."""
    waits = []
    for i, (arrival, _, stream) in enumerate(requests):
        done = [
            (max(complete, began), k, other)
            for k, (began, complete, other) in enumerate(requests[:i])
            if complete >= 0 and max(complete, began) <= arrival
        ]
        waits.append((NOTHING, 0))
        for candidates in ([each for each in done if each[2] == stream], done):
            if candidates and i - max(candidates)[1] <= lookback:
                complete, parent, _ = max(candidates)
                waits[-1] = (parent, arrival - complete)
                break
    return waits


def in_chunks(requests, cuts):
    waits = Waits()
    pairs = []
    edges = sorted({0, len(requests), *(cut % (len(requests) + 1) for cut in cuts)})
    for start, stop in pairwise(edges):
        columns = np.array(requests[start:stop], np.int64).reshape(-1, 3).T
        parent, gap_ns = waits.parents(columns[0], columns[1], columns[2].astype(np.int32))
        pairs += zip(parent.tolist(), gap_ns.tolist())
    return pairs


@st.composite
def traces(draw):
    """Few streams and round times, so that completions tie and streams wait for each other."""
    arrival, requests = 0, []
    rows = st.tuples(st.sampled_from([0, 0, 1, 5, 50]), st.sampled_from([-1, 0, 1, 4, 30, 200]))
    for gap, latency in draw(st.lists(rows, max_size=80)):
        arrival += gap
        complete = NOTHING if latency < 0 else arrival + latency
        requests.append((arrival, complete, draw(st.integers(-1, 3))))
    return requests


@settings(max_examples=60)
@given(traces(), st.lists(st.integers(0, 80), max_size=5))
def test_parents_equal_those_of_the_naive_search(requests, cuts):
    assert in_chunks(requests, cuts) == naive(requests, think.LOOKBACK)


def test_the_distance_to_a_parent_is_limited():
    """65,536 requests that never complete lie between a request and its parent."""
    silent = [(10, NOTHING, 5)] * (think.LOOKBACK - 1)
    requests = [(0, 4, 1), *silent, (20, NOTHING, 1), (20, NOTHING, 1)]
    pairs = in_chunks(requests, [1000, 40_000])
    assert pairs[1] == (0, 6)
    assert pairs[-2:] == [(0, 16), (NOTHING, 0)]


def test_a_parent_of_the_same_stream_is_preferred_within_the_limit():
    requests = [(0, 1, 7), (0, 5, 8), (10, 11, 7)]
    assert in_chunks(requests, []) == [(NOTHING, 0), (NOTHING, 0), (0, 9)]
    requests[2] = (10, 11, 9)  # a stream without earlier requests: the last completion of any
    assert in_chunks(requests, [])[-1] == (1, 5)


def test_the_table_of_streams_grows():
    requests = [(i, i, 1000 - i) for i in range(100)] + [(100, 100, 1000 - i) for i in range(100)]
    assert in_chunks(requests, [3, 50, 101]) == naive(requests, think.LOOKBACK)
