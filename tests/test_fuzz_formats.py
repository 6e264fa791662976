"""Damaged files of every format: a trace with warnings, or a TraceError; never anything else."""

from __future__ import annotations

import contextlib
import io
import os
import random
from itertools import islice

import numpy as np
import pytest
from captures import HEADER as RECORD
from damaged import SEEDS, forced, mutated
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hybridsim.foundation.errors import TraceError
from hybridsim.traces.formats import FORMATS
from hybridsim.traces.trace import Trace

ABSURD = 1 << 62
PARTS_MAX = 100  # of a generated load; damage may turn it into one of years
# Seeds of each kind in the long run: HYBRIDSIM_FUZZ=100-400000 gives ten million damaged files;
# an interrupted run continues from its last seed.
FIRST, LAST = map(int, os.environ.get("HYBRIDSIM_FUZZ", "100-10000").split("-"))


def check(path, format=None, use_dispatch=False):
    """Read a whole trace and check that the result is plausible."""
    with contextlib.suppress(TraceError):
        check_sound(Trace.read(path, format=format, use_dispatch=use_dispatch))


def check_sound(trace):
    """Check that times, offsets and warnings are valid."""
    last = 0
    for chunk in islice(trace.chunks(100), PARTS_MAX if trace.is_generated else None):
        assert chunk.rows > 0
        assert chunk.arrival_ns[0] >= last
        assert (np.diff(chunk.arrival_ns) >= 0).all()
        last = chunk.arrival_ns[-1]
        for column in (chunk.offset_bytes, chunk.length_bytes, chunk.arrival_ns):
            assert (column >= 0).all()
            assert (column < ABSURD).all()
        for column in (chunk.dispatch_ns, chunk.complete_ns):
            assert (column >= -1).all()
            assert (column < ABSURD).all()
        assert (chunk.op <= 4).all()
        if trace.format in ("blktrace", "blkparse"):
            finished = chunk.complete_ns >= 0
            assert (chunk.complete_ns >= chunk.arrival_ns)[finished].all()
    for warning in [] if trace.is_generated else trace.warnings:
        assert warning.count > 0
        assert warning.text


def test_every_format_has_a_file_to_damage(tmp_path):
    """Add a line for a new format to damaged.py."""
    covered = set()
    for kind, data in SEEDS.items():
        path = tmp_path / kind
        path.write_bytes(data)
        trace = Trace.read(path, format=forced(kind))
        assert sum(chunk.rows for chunk in trace.recorded()) > 1
        covered.add(trace.format)
    assert covered == FORMATS.keys() - {"parquet"}  # read by pyarrow, an optional package


def fuzz(folder, kind, seeds):
    path = folder / kind
    for seed in seeds:
        rng = random.Random(f"{kind} {seed}")
        path.write_bytes(mutated(SEEDS[kind], rng))
        try:
            check(path, forced(kind), use_dispatch=seed % 4 == 0)
        except BaseException:
            print(f"HYBRIDSIM_FUZZ={seed}-{seed + 1} python -m pytest -m long -k 'long and {kind}'")
            raise


@pytest.mark.parametrize("kind", SEEDS)
def test_damaged_files_give_a_trace_or_a_trace_error(kind, tmp_path):
    fuzz(tmp_path, kind, range(100))


@pytest.mark.long
@pytest.mark.parametrize("kind", SEEDS)
def test_damaged_files_give_a_trace_or_a_trace_error_in_the_long_run(kind, tmp_path):
    fuzz(tmp_path, kind, range(FIRST, LAST))


def parquet_files():
    """Return small files of the format that needs an extra, with pages of several kinds."""
    arrow = pytest.importorskip("pyarrow", reason="the extra hybridsim[parquet] is not installed")
    from pyarrow import parquet

    rows = range(300)
    table = arrow.table(
        {
            "arrival_ns": [i * 1000 for i in rows],
            "op": ["RW"[i % 2] for i in rows],
            "offset": [i * 7919 % 997 * 512 for i in rows],
            "length": [512 * (i % 5 + 1) for i in rows],
            "complete_ns": [i * 1000 + 50 for i in rows],
        }
    )
    files = []
    for how in (
        {},
        {"compression": "none", "use_dictionary": False},
        {"compression": "zstd", "row_group_size": 50},
        {"data_page_version": "2.0"},
    ):
        parquet.write_table(table, file := io.BytesIO(), **how)
        files.append(file.getvalue())
    return files


def fuzz_parquet(path, seeds):
    files = parquet_files()
    for seed in seeds:
        path.write_bytes(mutated(files[seed % 4], random.Random(f"parquet {seed}")))
        try:
            check(path)
        except BaseException:
            print(f"HYBRIDSIM_FUZZ={seed}-{seed + 1} python -m pytest -m long -k long_parquet")
            raise


def test_damaged_parquet_files_give_a_trace_or_a_trace_error(tmp_path):
    fuzz_parquet(tmp_path / "a", range(100))


@pytest.mark.long
def test_damaged_parquet_files_give_a_trace_or_a_trace_error_in_the_long_run(tmp_path):
    fuzz_parquet(tmp_path / "a", range(FIRST, LAST))


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=400), st.sampled_from([None, *FORMATS]))
def test_arbitrary_bytes_give_a_trace_or_a_trace_error(tmp_path_factory, data, format):
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(data)
    check(path, format)


FIELDS = st.tuples(
    st.sampled_from([0x65617407, 0x65617407, 0x65617408]),
    st.integers(0, 9),
    st.one_of(st.integers(0, 1 << 40), st.integers(0, (1 << 64) - 1)),
    st.one_of(st.integers(0, 64), st.integers(0, (1 << 64) - 1)),
    st.one_of(st.integers(0, 1 << 16), st.integers(0, (1 << 32) - 1)),
    st.builds(
        lambda action, category: action | category << 16,
        st.one_of(st.sampled_from([1, 6, 7, 8, 13]), st.integers(0, 255)),
        st.one_of(st.sampled_from([1, 2, 4, 6]), st.integers(0, 0xFFFF)),
    ),
    st.integers(0, (1 << 32) - 1),
    st.sampled_from([8 << 20, 8 << 20, 9 << 20]),
    st.one_of(st.integers(0, 2), st.integers(0, (1 << 32) - 1)),
    st.integers(0, 0xFFFF),
    st.sampled_from([0, 0, 0, 8, 3]),
)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(FIELDS, min_size=1, max_size=60))
def test_arbitrary_records_give_a_trace_or_a_trace_error(tmp_path_factory, fields):
    path = tmp_path_factory.getbasetemp() / "records"
    path.write_bytes(b"".join(RECORD.pack(*each) + b"\x01" * each[-1] for each in fields))
    check(path)
