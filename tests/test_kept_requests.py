"""A trace gives the same requests whether they are kept on disk or its lines are parsed again."""

import os
import tempfile

import numpy as np
import pytest

from hybridsim.requests.rows import Requests, joined
from hybridsim.traces.formats import column_reader, ordering
from hybridsim.traces.formats.column_reader import Kept
from hybridsim.traces.trace import Trace

FORMAT = "columns:time=1:us,device=2,offset=3,length=4,latency=5:us,process=6,separator=comma"
ROWS = 60_000


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Return a trace of three volumes: 1 % of the lines are far out of order, some are damaged."""
    draw = np.random.default_rng(7)
    times = np.arange(ROWS)
    late = draw.random(ROWS) < 0.01
    times[late] = draw.integers(0, ROWS, late.sum())
    lines = [
        f"{time},{'abc'[volume]},{offset * 512},{size * 512},{latency},{process}\n"
        for time, volume, offset, size, latency, process in zip(
            times.tolist(),
            draw.choice(3, ROWS, p=[0.5, 0.3, 0.2]).tolist(),
            draw.integers(0, 10**6, ROWS).tolist(),
            draw.integers(0, 9, ROWS).tolist(),  # some are empty
            (draw.integers(0, 100, ROWS) * 10**8).tolist(),  # some are absurd
            draw.integers(0, 9, ROWS).tolist(),
        )
    ]
    lines[ROWS // 2] = "damaged\n"
    path = tmp_path_factory.mktemp("kept") / "trace"
    path.write_text("".join(lines))
    return path


def report_of(path, device):
    """Return everything that a trace reports, in two passes."""
    trace = Trace.read(path, format=FORMAT, device=device)
    passes = [joined(list(trace.chunks())) for _ in range(2)]
    columns = [column.tobytes() for each in passes for column in each]
    return [passes[0].rows, hash(tuple(columns)), trace.devices, trace.warnings]


@pytest.mark.parametrize("device", [None, "b", "all"])
@pytest.mark.parametrize("many", [False, True])
def test_kept_and_parsed_requests_are_equal(file, device, many, monkeypatch):
    for module in (ordering, column_reader):
        monkeypatch.setattr(module, "WINDOW", 2000)
    monkeypatch.setattr(column_reader, "WINDOW_MIN", 500)
    monkeypatch.setattr(column_reader, "BLOCK_BYTES", 1 << 18)
    path = [file, file.with_name("other")] if many else file
    file.with_name("other").write_bytes(file.read_bytes()[: 1 << 19])
    kept = report_of(path, device)
    assert {"disorder", "empty", "absurd-latency", "malformed"} <= {w.code for w in kept[-1]}
    monkeypatch.setattr(column_reader, "CACHE_BYTES_MAX", 1 << 20)
    assert report_of(path, device) == kept


def test_without_a_temporary_folder_lines_are_parsed_again(file, monkeypatch):
    kept = report_of(file, "all")
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    assert report_of(file, "all") == kept


def test_a_full_disk_does_not_change_the_requests(file, monkeypatch):
    as_before = report_of(file, "all")
    monkeypatch.setattr(os, "pwritev", lambda *_: 0)
    assert report_of(file, "all") == as_before


def part(rows, first=0):
    return Requests._make(np.arange(first, first + rows).astype(kind) for kind in KINDS)


KINDS = (np.int64, np.int64, np.int64, np.uint8, np.uint8, np.uint16, np.int32, np.int64, np.int64)


class TestKept:
    def test_parts_are_returned_as_added(self):
        kept = Kept({"flags", "complete_ns"}, 1 << 20)
        for each in (part(3), part(0), part(4, first=2)):
            kept.add(each)
        got = list(kept.parts(-1))
        assert [each.rows for each in got] == [3, 0, 4]
        assert got[2].offset_bytes.tolist() == [2, 3, 4, 5]
        assert got[2].flags.tolist() == [0] * 4
        assert got[2].complete_ns.tolist() == [-1] * 4
        assert [each.offset_bytes.tolist() for each in kept.parts(2)] == [[2], [], [2]]

    def test_nothing_is_kept_beyond_the_size_limit(self):
        kept = Kept((), part(10).rows * 60)
        kept.add(part(10))
        assert kept.is_whole
        kept.add(part(10))
        assert not kept.is_whole
        kept.add(part(1))
        assert not list(kept.parts(-1))
