"""Stand-ins: generated from distributions alone, they behave like the original capture."""

import re
import tomllib

import numpy as np
import pytest
from captures import TRACES, read
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from hybridsim import miss_ratio_curve
from hybridsim.cli.trace import trace
from hybridsim.foundation.codes import Op
from hybridsim.foundation.errors import TraceError, WorkloadError
from hybridsim.requests.rows import joined, no_requests, requests_with
from hybridsim.studies.trace_fit import fit
from hybridsim.traces.trace import Trace
from hybridsim.workloads.stand_in import measured, runs, taken_apart
from hybridsim.workloads.workload import Workload, generate

PAGE = 1 << 16


def rows(*requests):
    """Return requests (offset, length, writes) as rows."""
    offset, length, op = np.array(requests, np.int64).T  # as codes.Op
    return requests_with(len(requests), offset_bytes=offset, length_bytes=length, op=op)


class TestRuns:
    def test_a_run_continues_with_the_same_op_at_its_end(self):
        numbers = runs(rows((0, 8, 0), (100, 8, 0), (8, 8, 0), (108, 4, 0), (16, 8, 0)))
        assert numbers.tolist() == [0, 1, 0, 1, 0]

    def test_a_read_does_not_continue_a_write(self):
        assert runs(rows((0, 8, 1), (8, 8, 0), (8, 8, 1))).tolist() == [0, 1, 0]

    def test_the_first_of_two_candidates_continues_a_run(self):
        assert runs(rows((0, 8, 0), (8, 8, 0), (8, 8, 0))).tolist() == [0, 0, 2]

    def test_a_run_ends_after_many_other_requests(self):
        others = [(10**9 + 10**6 * n, 8, 0) for n in range(256)]
        assert runs(rows((0, 8, 0), *others, (8, 8, 0)))[-1] == 257
        assert runs(rows((0, 8, 0), *others[1:], (8, 8, 0)))[-1] == 0


class TestObjects:
    def test_pages_read_in_sequence_form_one_object(self):
        whole = [(PAGE * n, PAGE, 0) for n in range(3)]
        objects, visits = taken_apart(rows(*whole, (10 * PAGE, 4096, 0), *whole))
        assert list(zip(*objects)) == [(0, 3), (10, 1)]
        assert visits.object.tolist() == [0, 1, 0]
        assert visits.requests.tolist() == [3, 1, 3]
        assert visits.bytes.tolist() == [3 * PAGE, 4096, 3 * PAGE]

    def test_pages_used_singly_are_separate_objects(self):
        alone = [(PAGE * n + 4096, 4096, 1) for n in (2, 0, 1, 2, 1)]
        objects, visits = taken_apart(rows(*alone))
        assert objects.page.tolist() == [0, 1, 2]
        assert visits.start.tolist() == [4096] * 5


LINES = {
    "zipf": "zipf,span=1GiB,theta=1,unit=64k,size=16k,align=16k,read=60%",
    "moving": "hot-spot,span=512MiB,hot=5%,share=80%,every=60s,moved=50%,size=8k,align=8k",
    "streams": "random,span=256MiB,rate=150+sequential,at=1GiB,span=128MiB,size=64k,rate=50",
}


@pytest.mark.parametrize("name", LINES)
def test_a_stand_in_has_the_miss_ratios_of_its_capture(name):
    likeness = fit(Trace.read(f"gen:{LINES[name]},requests=60k")).likeness
    assert likeness.stand_in.requests == pytest.approx(likeness.capture.requests, rel=0.1)
    assert likeness.stand_in.span_ns == pytest.approx(likeness.capture.span_ns, rel=0.02)
    assert likeness.stand_in.footprint.bytes == pytest.approx(
        likeness.capture.footprint.bytes, rel=0.1
    )
    for op in (Op.READ, Op.WRITE):
        assert likeness.stand_in.bytes[op] == pytest.approx(likeness.capture.bytes[op], rel=0.1)
    of_64k = next(each for each in likeness.curves if each.page == "64KiB")
    assert of_64k.mean < 0.05
    assert (
        likeness.hits_apart < 0.12
    )  # a hot spot moves at once, the parts of its stand-in one by one


def test_a_stand_in_shares_no_sequence_with_its_capture(tmp_path):
    """No sequence of ten requests is in both: neither offsets nor their order are copied."""
    path = tmp_path / "x.toml"
    capture = read(f"gen:{LINES['zipf']},requests=20k")
    path.write_text(fit(Trace.read(f"gen:{LINES['zipf']},requests=20k"), check=False).to_toml())
    stand_in = read(path)
    steps = [np.diff(each.offset_bytes) for each in (capture, stand_in)]
    sequences = [{tuple(each[i : i + 9]) for i in range(len(each) - 9)} for each in steps]
    assert not sequences[0] & sequences[1]


def test_the_written_file_is_a_workload_for_every_command(tmp_path):
    path = tmp_path / "stand-in.toml"
    capture = str(TRACES / "demo" / "rocksdb_mixgraph.blktrace.0.zst")
    result = CliRunner().invoke(trace, ["fit", capture, "-o", str(path)])
    assert result.exit_code == 0, result.output
    assert re.search(r"requests +68.7 k +\d\d.\d k", result.output)
    assert "difference in points" in result.output
    assert Trace.read(path).format == "workload"
    known, copied = (miss_ratio_curve(Trace.read(each), page="64KiB") for each in (capture, path))
    size = known.distinct // 10
    assert copied.at(size) == pytest.approx(known.at(size), abs=0.06)
    assert path.read_text().startswith("# A stand-in for a captured trace")


REQUEST = st.tuples(
    st.integers(0, 3000), st.integers(1, 600), st.sampled_from([0, 0, 1, 3]), st.integers(0, 10**7)
)


@settings(max_examples=60, deadline=None)
@given(st.lists(REQUEST, min_size=1, max_size=60))
def test_any_capture_has_a_stand_in(requests):
    rows = no_requests(len(requests))
    columns = np.array(requests, np.int64).T
    rows.offset_bytes[:], rows.length_bytes[:] = columns[0] * 512, columns[1] * 512
    rows.op[:], rows.arrival_ns[:] = columns[2], np.cumsum(columns[3])
    table = measured(rows)
    if not table["accesses"]:
        return
    workload = Workload.model_validate({"load": [{"kind": "stand-in", **table}]})
    generated = joined(list(generate(workload)))
    data = generated.op != Op.FLUSH
    assert data.any()
    assert (generated.length_bytes[data] > 0).all()
    assert (generated.offset_bytes >= 0).all()
    assert (np.diff(generated.arrival_ns) >= 0).all()


def test_a_capture_without_reads_and_writes_is_refused():
    with pytest.raises(TraceError, match="has no reads or writes"):
        fit(Trace.read("gen:sysbench,test-mode=rndwr,requests=1,begin=5s,duration=5001ms"))


def test_an_edit_that_removes_a_distribution_is_refused_with_its_place(tmp_path):
    text = fit(Trace.read("gen:zipf,span=64MiB,requests=2000"), check=False).to_toml()
    assert tomllib.loads(text)["load"][0]["kind"] == "stand-in"
    path = tmp_path / "x.toml"
    path.write_text(re.sub(r"(?m)^sizes = .*$", "sizes = []", text))
    with pytest.raises(WorkloadError, match=r"x.toml:\d+:\d+: sizes has no entry for a class"):
        Trace.read(path)
