"""Damaged files of every format: a trace with warnings, or a TraceError; never anything else."""

from __future__ import annotations

import contextlib
import gzip
import random
import struct

import numpy as np
import pytest
from captures import (
    HEADER as RECORD,
)
from captures import (
    TRACES,
    as_version_8,
    capture,
    cpu_files,
    records,
    swapped,
    unpacked,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hybridsim.errors import TraceError
from hybridsim.formats import FORMATS
from hybridsim.formats.files import zstd
from hybridsim.formats.requests_csv import HEADER
from hybridsim.trace import Trace

ABSURD = 1 << 62
SMALL = b"".join(records(cpu_files("loop_raw_split_discard_flush")["loop0.blktrace.1"])[:700])
MESSAGES = b"".join(records(cpu_files("loop_part_remap_bfq")["loop0.blktrace.1"])[:500])
TEXT = unpacked(capture("loop_errors") / "blkparse.txt.zst")
CSV = f"{HEADER}\n0,R,4096,512,3,9\n5,W,0,65536,,\n9,F,0,0,,12\n".encode() * 9
SEEDS = {
    "blktrace": SMALL,
    "messages": MESSAGES,
    "swapped": swapped(SMALL),
    "version-8": as_version_8(SMALL),
    "blkparse": TEXT,
    "fio-3": (TRACES / "fio" / "v3.log").read_bytes(),
    "fio-2": (TRACES / "fio" / "v2.log").read_bytes(),
    "csv": CSV,
    "lis": b"".join(b"%d %d 0 %d\n" % (i * 7919 % 997, i % 5 + 1, i) for i in range(99)),
    "vscsi": b"".join(
        struct.pack("<IIIHHQQ", i, 4096, 1, 0x28 + i % 2 * 2, 0x100, i * 8, i * 100)
        for i in range(99)
    ),
    "systor": b"Timestamp,Response,IOType,LUN,Offset,Size\n"
    + b"".join(
        b"1456095145.%09d,0.0008,%s,%d,%d,512\n" % (i * 7919, b"RW"[i % 2 :][:1], i % 3, i * 99)
        for i in range(99)
    ),
    "fiu": b"".join(b"%d %d a b %d 8 W 6 0 %032x\n" % (i * 999, i, i * 8, i) for i in range(99)),
    "ftrace": b"".join(
        b" fio-4573 [001] ..... 1988.%06d: block_%s 7,0 R %s%d + 16 [fio]\n"
        % (i, *((b"bio_queue:", b"") if i % 2 else (b"rq_complete:", b"() ")), i // 2 * 16)
        for i in range(99)
    ),
    "gzip": gzip.compress(SMALL),
    "zstd": zstd.compress(TEXT),
}
NASTY = [b"", b"\x00", b"\xff" * 4, b"\x07tae", b"eat\x07", b"\n", b",", b"-1", b"9" * 25, b"\x80"]


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Damage bytes in up to six places: changed, cut out, doubled, moved, replaced."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(out) + 1)
        size = rng.choice([1, 2, 4, 8, 47, 48, 200])
        match rng.randrange(6):
            case 0:
                out[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                del out[at : at + size]
            case 2:
                out[at:at] = out[at : at + size]
            case 3:
                out[at : at + len(nasty)] = (nasty := rng.choice(NASTY))
            case 4:
                out[at:at] = rng.randbytes(size)
            case 5:
                whole = at - at % RECORD.size
                field = rng.choice([0, 4, 8, 16, 24, 28, 32, 36, 40, 44, 46])
                out[whole + field : whole + field + 4] = rng.randbytes(4)
    return bytes(out[: rng.randrange(len(out) + 1)] if rng.random() < 0.15 else out)


def check(path, format=None, use_dispatch=False):
    """Read all; what comes out makes sense."""
    with contextlib.suppress(TraceError):
        check_sound(Trace.read(path, format=format, use_dispatch=use_dispatch))


def check_sound(trace):
    """Times, places and warnings are all possible ones."""
    last = 0
    for chunk in trace.chunks(100):
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
    for warning in trace.warnings:
        assert warning.count > 0
        assert warning.text


def fuzz(folder, kind, seeds):
    for seed in seeds:
        rng = random.Random(f"{kind} {seed}")
        path = folder / f"{kind}-{seed}"
        path.write_bytes(mutated(SEEDS[kind], rng))
        try:
            check(path, use_dispatch=seed % 4 == 0)
        except BaseException:
            print(f"seed {seed} of {kind}")
            raise
        path.unlink()


@pytest.mark.parametrize("kind", SEEDS)
def test_damaged_files(kind, tmp_path):
    fuzz(tmp_path, kind, range(100))


@pytest.mark.long
@pytest.mark.parametrize("kind", SEEDS)
def test_damaged_files_for_long(kind, tmp_path):
    fuzz(tmp_path, kind, range(100, 10_000))


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=400), st.sampled_from([None, *FORMATS]))
def test_any_bytes(tmp_path_factory, data, format):
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
def test_any_records(tmp_path_factory, fields):
    path = tmp_path_factory.getbasetemp() / "records"
    path.write_bytes(b"".join(RECORD.pack(*each) + b"\x01" * each[-1] for each in fields))
    check(path)
