"""A fleet: the volumes of one trace, split, replayed one by one, and summed."""

import json

import numpy as np
import pytest
from sweep_points import made_up, plan

from hybridsim import Trace
from hybridsim.foundation.errors import TraceError, UsageError
from hybridsim.show.html import of
from hybridsim.show.sweep import text
from hybridsim.studies.sweep.figures import ALONE, FORECAST, GAIN, INTERVALS, WORK, WORK_NS
from hybridsim.studies.sweep.named_trace import volumes_of
from hybridsim.studies.sweep.sweep import sweep

BEGAN_US = 1_577_808_000_000_000


@pytest.fixture
def trace(tmp_path):
    """Three volumes in Alibaba's format: 7 has the most bytes, then 3, then 12."""
    draw = np.random.default_rng(1)
    volumes = draw.choice([7, 3, 12], 3000, p=[0.6, 0.3, 0.1])
    lines = [
        f"{volume},{'RW'[int(draw.integers(2))]},{int(draw.integers(1000)) * 4096},4096,"
        f"{BEGAN_US + 50 * number}"
        for number, volume in enumerate(volumes.tolist())
    ]
    path = tmp_path / "fleet.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def columns(trace):
    return [np.concatenate(parts) for parts in zip(*(chunk[:5] for chunk in trace.chunks()))]


def test_a_split_volume_equals_the_selection_by_device(trace, tmp_path):
    (source,) = plan(trace).traces
    volumes = volumes_of(source, 0, tmp_path / "kept")
    assert [each.device for each in volumes] == ["7", "3", "12"]
    for each in volumes:
        alone = Trace.read(str(trace), device=each.device)
        for ours, theirs in zip(columns(each.open()), columns(alone)):
            assert (ours == theirs).all()
    assert len({each.digest() for each in volumes}) == 3
    assert "--device" in each.arguments


def test_the_volumes_with_the_most_bytes_are_split_once(trace, tmp_path):
    (source,) = plan(trace).traces
    first = volumes_of(source, 2, tmp_path)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.rows")}
    assert volumes_of(source, 2, tmp_path) == first
    assert [each.device for each in first] == ["7", "3"]
    assert files == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.rows")}


def volume(point):
    """Return a result whose gain is the number of the volume."""
    number = int(point.trace.device)
    row = made_up(point) | {"requests": 100 * number, WORK: 10 * number, GAIN: number}
    row |= {ALONE + WORK_NS: 10 * number * 8e6, WORK_NS: 10 * 8e6}
    ends = {FORECAST: [1.0, 9.0] if number == 12 else [0.8 * number, 1.2 * number]}
    return row | {"answer": "yes" if number > 5 else "no", INTERVALS: ends}


def test_the_summary_adds_up_all_volumes(trace, tmp_path):
    planned = plan(trace, ["cache.size=1GiB,2GiB"], fleet=0)
    row = sweep(planned, tmp_path / "kept", 1, compute=volume)
    first, second = row.fleet
    assert first.answers == {"yes": 2, "no": 1, "unsure": 0}
    assert first.requests == 2200
    assert first.gains == pytest.approx([3, 7, 12])
    assert first.quantiles[50] == pytest.approx(7)
    requests = 10 * (7 + 3 + 12)
    assert first.mean_ns == pytest.approx(3 * 10 * 8e6 / requests)  # per volume: its gain
    assert first.alone_ns == 8e6
    assert {first.ssd_bytes, second.ssd_bytes} == {3 << 30, 6 << 30}
    assert json.loads(json.dumps(row.to_dict()["fleet"], allow_nan=False))[0]["volumes"] == 3
    page = of(row.to_dict())
    assert ">The fleet<" in page
    assert "means of the second half of their requests" in page  # as the judge has them
    head = page[page.index("<header>") : page.index("</header>")]
    assert f"{trace}: 3 volumes" in head  # not the path of each volume
    assert "<summary>3 volumes, each with 2 settings</summary>" in page
    assert '<th scope="row">fleet.csv 12</th>' in page
    assert ">Best settings<" not in page
    lines = text(row).splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert any("size=1GiB" in line and "7.00" in line for line in lines)
    of_volume = {line.split()[0]: line for line in lines if line.strip()}
    assert "probably yes" in of_volume["12"]  # its interval begins below a gain
    assert "yes" in of_volume["7"]
    assert "probably" not in of_volume["7"]


def test_a_trace_without_several_volumes_is_refused(trace, tmp_path):
    single = tmp_path / "one.csv"
    single.write_text(f"7,R,0,4096,{BEGAN_US}\n7,W,0,4096,{BEGAN_US + 5}\n")
    with pytest.raises(UsageError, match="this trace has one"):
        volumes_of(plan(single).traces[0], 0, tmp_path / "kept")
    ours = tmp_path / "ours.csv"
    ours.write_text("arrival_ns,op,offset,length,dispatch_ns,complete_ns\n0,R,0,4096,,\n")
    with pytest.raises((UsageError, TraceError)):
        volumes_of(plan(ours).traces[0], 0, tmp_path / "kept")
