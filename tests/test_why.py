"""`why`: the reasons for which the learned policy admitted a page or not."""

import json

import numpy as np
import pytest
from captures import TRACES
from click.testing import CliRunner

from hybridsim.cli import cli
from hybridsim.foundation.cache_parameters import WRITE_PRICE
from hybridsim.foundation.codes import Op
from hybridsim.foundation.errors import UsageError
from hybridsim.show.why import text
from hybridsim.studies.hits import hits
from hybridsim.studies.why import EARLY, FILLED, HIT, RIVAL, SCAN, UNKNOWN, why
from hybridsim.traces.trace import Trace

DEMO = TRACES / "demo" / "rocksdb_mixgraph.blktrace.0.zst"
PAGE = 65536
SAID = {"cache_size": "1%", "page": PAGE}


@pytest.fixture(scope="module")
def trace():
    return Trace.read(DEMO)


@pytest.fixture(scope="module")
def answer(trace):
    return why(trace, [6338368 << 10], **SAID)


@pytest.mark.parametrize("load", [DEMO, TRACES / "blktrace" / "loop_ext4_mqdl_randrw"])
def test_accesses_and_hits_equal_those_of_hits(load):
    """Watching a page does not change its decisions."""
    trace = Trace.read(load)
    (counted,) = hits(trace, "1%", "learned", "learned", PAGE, "1MiB")
    answer = why(trace, **SAID)
    accesses = np.array([each.accesses for each in answer.moments])
    ratio = np.array([each.hit_ratio for each in answer.moments])
    assert accesses[-1] == counted.page_accesses
    assert round(float(np.diff(accesses, prepend=0) @ ratio)) == counted.page_hits


def test_a_page_is_resident_from_its_admission_on(answer):
    (page,) = answer.asked
    assert [each.number for each in page.decisions] == list(range(1, len(page.decisions) + 1))
    was_in = False
    for each in page.decisions:
        assert was_in or each.because != HIT
        was_in = each.because in (HIT, FILLED, EARLY)
    assert {HIT, FILLED, SCAN} <= {each.because for each in page.decisions}


def test_admitted_pages_exceed_the_price_and_their_rival(answer):
    for each in answer.asked[0].decisions:
        if each.because == FILLED:
            assert each.sure_reads >= each.price_reads
            assert each.rival is None or each.density >= each.rival_density
            assert each.rival is None or each.rival % PAGE == 0
        if each.because == RIVAL:
            assert each.sure_reads >= each.price_reads
            assert each.density < each.rival_density
        if each.because == UNKNOWN:
            assert each.sure_reads < each.price_reads


def test_the_default_page_is_the_most_read_one(trace):
    (page,) = why(trace, **SAID).asked
    reads = [chunk.offset_bytes[chunk.op == Op.READ] for chunk in trace.chunks()]
    busiest = np.bincount(np.concatenate(reads) // PAGE).argmax()
    assert len(page.decisions) >= (np.concatenate(reads) // PAGE == busiest).sum()


def test_the_first_page_is_admitted_to_a_free_slot(trace):
    first = int(next(trace.chunks()).offset_bytes[0])
    (page,) = why(trace, [first], **SAID).asked
    assert page.offset == first // PAGE * PAGE
    assert page.decisions[0].because == EARLY


def test_the_report_fits_a_terminal(answer):
    lines = text(answer).splitlines()
    assert max(map(len, lines)) <= 80
    assert any("rejected: part of a long sequential run" in line for line in lines)
    assert text(answer, ascii_only=True).isascii()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--at", "70TiB"], "no read or write touches"),
        (["--at", "7x"], "unknown size unit"),
        (["--cache-size", "1KiB"], "holds no page"),
        (["--page", "0"], "must be a multiple of 512 bytes"),
    ],
)
def test_wrong_questions_are_refused(options, message):
    done = CliRunner().invoke(cli, ["why", str(DEMO), *options])
    assert isinstance(done.exception, UsageError)
    assert message in str(done.exception)


def test_the_json_has_decisions_and_moments():
    done = CliRunner().invoke(cli, ["why", str(DEMO), "--cache-size", "1%", "--json"])
    document = json.loads(done.output)
    assert document["asked"][0]["decisions"][0]["number"] == 1
    assert document["moments"][-1]["price_reads"] == WRITE_PRICE
