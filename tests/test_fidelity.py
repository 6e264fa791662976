"""The distance of a model from measured latencies, and its report in a replay."""

from collections import deque

import numpy as np
import pytest

from hybridsim import Scenario, Trace, replay
from hybridsim.answers.fidelity import Fidelity, demerit
from hybridsim.foundation.histogram import Distribution
from hybridsim.show.terminal import render
from hybridsim.storage.raid import Line

MS = 1_000_000


def of(*values_ms):
    return Distribution.of(np.array(values_ms) * MS)


def test_the_demerit_is_the_distance_of_the_distributions_divided_by_the_mean():
    measured = of(*range(1, 101))
    assert demerit(measured, measured) == 0
    later = Distribution.of(np.arange(1, 101) * MS + 5 * MS)
    assert demerit(measured, later) == pytest.approx(5 / 50.5, rel=0.03)


def test_the_demerit_ignores_the_order_of_requests():
    assert demerit(of(1, 2, 3, 4), of(4, 3, 2, 1)) == 0


def test_the_likeness_is_good_fair_or_poor():
    measured = of(10, 20, 30)
    assert Fidelity(measured, measured).likeness == "good"
    assert Fidelity(measured, of(12, 24, 36)).likeness == "fair"
    assert Fidelity(measured, of(20, 40, 60)).likeness == "poor"


def test_flash_latencies_are_another_kind_than_disk_latencies():
    assert Fidelity(of(1, 1, 1), of(9, 9, 9)).is_other_kind
    assert not Fidelity(of(5, 5, 5), of(9, 9, 9)).is_other_kind


def test_without_recorded_latencies_the_demerit_is_unknown():
    unknown = Fidelity(Distribution(), of(1, 2, 3))
    assert not unknown.is_known
    assert unknown.to_dict()["demerit"] is None


def test_the_demerit_is_of_squares_over_the_measured_mean():
    """One of four is 8 ms too late, of a mean of 4 ms: the root of a mean of 16, over 4."""
    measured, modelled = of(4, 4, 4, 4), of(4, 4, 4, 12)
    assert demerit(measured, modelled) == pytest.approx(1.0, rel=0.01)
    assert demerit(modelled, measured) == pytest.approx(4 / 6, rel=0.01)


def test_the_words_begin_where_they_are_defined_to():
    measured = of(10)
    for demerit_of, word in ((0.10, "good"), (0.11, "fair"), (0.25, "fair"), (0.26, "poor")):
        result = Fidelity(measured, measured)
        object.__setattr__(result, "demerit", demerit_of)
        assert result.likeness == word


def test_medians_more_than_five_times_apart_are_of_other_storage():
    assert Fidelity(of(10), of(51)).is_other_kind
    assert not Fidelity(of(10), of(49)).is_other_kind
    assert not Fidelity(of(10), of(1)).is_other_kind
    assert not Fidelity(Distribution(), of(49)).is_other_kind


def test_the_document_of_a_fidelity():
    measured, modelled = of(*range(1, 101)), of(*range(2, 102))
    result = Fidelity(measured, modelled)

    def figures(one):
        percentiles = {f"p{percent}_ns": one.percentile(percent) for percent in (50, 95, 99)}
        return {"n": 100, "mean_ns": one.mean_ns, **percentiles}

    assert result.to_dict() == {
        "why_not": None,
        "demerit": demerit(measured, modelled),
        "measured": figures(measured),
        "modelled": figures(modelled),
    }
    assert figures(measured)["mean_ns"] == 50.5 * MS
    why_not = Fidelity(measured, modelled, "another load")
    assert (why_not.is_known, why_not.demerit) == (False, 0.0)
    assert why_not.to_dict()["why_not"] == "another load"
    assert why_not.to_dict()["demerit"] is None
    assert Fidelity(measured, Distribution()).why_not == "no latencies were recorded"


# In a replay.


def capture(path, latency_ms, gap_ms=50, rows=400):
    random = np.random.default_rng(0)
    lines = ["arrival_ns,op,offset,length,dispatch_ns,complete_ns"]
    for number in range(rows):
        at = number * gap_ms * MS
        done = at + int(latency_ms * random.uniform(0.5, 1.5) * MS)
        lines.append(f"{at},R,{int(random.integers(10**5)) * 4096},4096,{at},{done}")
    path.write_text("\n".join(lines) + "\n")
    return Trace.read(path)


def test_the_report_compares_recorded_and_simulated_latencies(tmp_path):
    answer = replay(capture(tmp_path / "disk.csv", 12.0))
    assert answer.fidelity.is_known
    assert answer.fidelity.measured.count == 400
    assert answer.verdict.confidence["model_demerit"] == answer.fidelity.demerit
    assert "at the median, the recorded latency is" in " ".join(
        render(answer, details=True).split()
    )


def test_a_poor_model_is_reported_and_a_fit_advised(tmp_path):
    answer = replay(capture(tmp_path / "slow.csv", 40.0, gap_ms=100))
    assert answer.fidelity.likeness == "poor"
    assert any("not like yours" in reason for reason in answer.verdict.reasons)
    assert any("hybridsim fit" in (one.command or "") for one in answer.verdict.advice)


def test_a_capture_of_flash_gets_no_advice_to_fit_disks(tmp_path):
    answer = replay(capture(tmp_path / "flash.csv", 0.1))
    assert "is that of flash or of a cache" in " ".join(render(answer, details=True).split())
    assert not any("hybridsim fit" in (one.command or "") for one in answer.verdict.advice)


@pytest.mark.parametrize("options", [{"mode": "closed"}, {"speed": 2.0}])
def test_a_load_that_differs_from_the_recorded_one_is_not_compared(options, tmp_path):
    site = Scenario.default().with_options(**options)
    answer = replay(capture(tmp_path / "disk.csv", 12.0), site)
    assert not answer.fidelity.is_known
    assert "not compared with the recorded latencies" in " ".join(
        render(answer, details=True).split()
    )


# The queue of the path to an array.


def test_a_line_stays_in_order_when_it_grows():
    line = Line.new(1, capacity=4)
    waiting = deque()
    tag = 0
    for _ in range(3):
        line.push(tag, 0, 8 * tag, 8)
        waiting.append(tag)
        tag += 1
    assert line.lets_in()
    assert not line.lets_in()
    assert line.tag[line.left()] == waiting.popleft()
    line.push(tag, 1, 8 * tag, 8)
    waiting.append(tag)
    grown = line.with_room(13)  # 16 entries
    while waiting:
        entry = grown.left()
        assert grown.tag[entry] == waiting.popleft()
        assert grown.offset[entry] == 8 * grown.tag[entry]
    assert grown.left() == -1
    assert grown.lets_in()
