"""The address map and the hash of requests equal naive computations for any chunk sizes."""

import hashlib
from collections import Counter

import numpy as np
from html_documents import requests
from hypothesis import given
from hypothesis import strategies as st

from hybridsim.foundation.codes import Op
from hybridsim.traces.summary import COLUMNS, ROWS, AddressMap, RequestsHash

rows = st.lists(
    st.tuples(
        st.one_of(st.integers(0, 10**9), st.integers(0, 10**14)),
        st.one_of(st.integers(0, 10**7), st.integers(0, 10**14)),
        st.sampled_from(list(Op)),
    ),
    min_size=1,
    max_size=40,
)


def chunks(drawn, cut):
    for part in (drawn[:cut], drawn[cut:]):
        if part:
            yield requests(*zip(*part))


@given(rows, st.integers(0, 40))
def test_each_read_and_write_is_counted_at_its_first_byte(drawn, cut):
    map_ = AddressMap()
    for chunk in chunks(drawn, cut):
        map_.add(chunk)
    document = map_.to_dict()
    width, height = document["width_ns"], document["height_bytes"]
    for name, ops in (("reads", [Op.READ]), ("writes", [Op.WRITE, Op.WRITE_ZEROES])):
        grid = [[int(each) for each in column.split()] for column in document[name]]
        assert len(grid) <= COLUMNS
        assert {len(column) <= ROWS for column in grid} == {True}
        expected = Counter((t // width, b // height) for t, b, op in drawn if op in ops)
        assert {at: n for at, n in np.ndenumerate(np.array(grid)) if n} == dict(expected)


@given(rows, st.integers(0, 40), st.integers(0, 40))
def test_the_hash_of_requests_does_not_depend_on_chunk_sizes(drawn, cut, other):
    def digest(drawn, cut):
        digest = RequestsHash()
        for chunk in chunks(drawn, cut):
            digest.add(chunk)
        return digest.hexdigest()

    assert digest(drawn, cut) == digest(drawn, other)
    t, b, op = drawn[0]
    assert digest(drawn, cut) != digest([(t, b + 1, op), *drawn[1:]], cut)
    assert len(digest(drawn, cut)) == len(hashlib.sha256().hexdigest())
