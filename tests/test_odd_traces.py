"""Unusual traces: each gets a complete answer, with nothing lost or counted twice."""

import random
import zlib

import pytest

from hybridsim import Trace, replay
from hybridsim.foundation.errors import TraceError
from hybridsim.show.terminal import render
from hybridsim.studies.hits import hits
from hybridsim.studies.mrc import miss_ratio_curve

HEAD = "arrival_ns,op,offset,length,dispatch_ns,complete_ns\n"
PAGE = 4096
DAY_NS = 86400 * 10**9
SIZES = [0, 1, 7, 511, 513, 4095, 4097, 65_537]


def rows(number, step_ns, within, size=lambda draw: PAGE, first=0, backwards=False):
    draw = random.Random(number)
    times = [i * step_ns for i in range(number)]
    return [
        (time, "RRW"[i % 3], first + draw.randrange(within) * PAGE, size(draw))
        for i, time in enumerate(times[:: -1 if backwards else 1])
    ]


TRACES = {
    "one-read": [(0, "R", PAGE, PAGE)],
    "one-write": [(10**9, "W", 0, PAGE)],
    "at-2^40": rows(100, 10**6, 50, first=1 << 40),
    "at-2^61": rows(100, 10**6, 50, first=(1 << 61) - 100 * PAGE),
    "ten-days": rows(200, 10 * DAY_NS // 200, 1000),
    "ten-years": rows(50, 3650 * DAY_NS // 50, 1000),
    "at-once": rows(300, 0, 1000),
    "backwards": rows(300, 10**6, 1000, backwards=True),
    "odd-lengths": rows(200, 10**6, 1000, size=lambda draw: draw.choice(SIZES)),
    "giant": [(i * 10**10, "RW"[i % 2], i << 30, 1 << 30) for i in range(2)],
}


@pytest.fixture(params=TRACES)
def odd(request, tmp_path):
    path = tmp_path / f"{request.param}.csv"
    lines = (
        f"{time},{op},{offset},{length},,\n" for time, op, offset, length in requests_of(request)
    )
    path.write_text(HEAD + "".join(lines))
    return Trace.read(path), requests_of(request)


def requests_of(request):
    return TRACES[request.param]


def test_a_replay_completes_each_request_once(odd):
    trace, requests = odd
    result = replay(trace)
    with_data = [each for each in requests if each[3]]
    for machine in (result.cached, result.plain):
        figures = machine.whole.figures
        assert figures.reads.count == sum(each[1] == "R" for each in with_data)
        assert figures.writes.count == sum(each[1] == "W" for each in with_data)
        assert figures.requests == len(requests)
        counters = machine.whole.counters
        assert all(number >= 0 for number in counters.values())
    assert render(result)
    assert render(result, details=True)


def test_each_access_is_a_hit_or_a_miss(odd):
    trace, requests = odd
    pages = [page for each in requests if each[3] for page in touched(*each[2:])]
    [answer] = hits(trace, PAGE * 4)
    assert answer.page_accesses == len(pages)
    assert 0 <= answer.page_hits <= len(pages) - len(set(pages))
    curve = miss_ratio_curve(trace)
    assert (curve.accesses, curve.distinct) == (len(pages), len(set(pages)))
    assert curve.miss_ratio[-1] * len(pages) == pytest.approx(len(set(pages)))
    assert (curve.miss_ratio[1:] <= curve.miss_ratio[:-1]).all()


def touched(offset, length):
    return range(offset // PAGE, (offset + length - 1) // PAGE + 1)


@pytest.mark.parametrize("ask", [replay, miss_ratio_curve, lambda trace: hits(trace, PAGE)])
@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("0,W,0,1099511627776,,\n", "a WRITE of 1.00 TiB at 0.000000 s is impossible"),
        (f"0,R,{1 << 62},4096,,\n", "contains no request"),
        ("0,F,0,0,,\n", "no reads or writes"),
        ("", "contains no request"),
    ],
)
def test_questions_without_an_answer_are_reported(ask, row, why, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(HEAD + row)
    with pytest.raises(TraceError, match=why):
        ask(Trace.read(path))


def test_what_is_before_early_damage_of_a_compressed_file_is_used(tmp_path):
    packer = zlib.compressobj(wbits=31)  # gzip
    packed = packer.compress((HEAD + "7,R,0,4096,,\n" * 30).encode())
    packed += packer.flush(zlib.Z_SYNC_FLUSH)
    path = tmp_path / "a.csv.gz"
    path.write_bytes(packed + b"\x07" * 99)  # no block of gzip begins so
    trace = Trace.read(path)
    assert sum(chunk.rows for chunk in trace.chunks()) >= 10
    assert "compressed-damaged" in [each.code for each in trace.warnings]
