"""The report on real runs and their twins: bounds, table, text, JSON and HTML."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hybridsim.answers.comparison import Comparison, Row, Tolerances, compare
from hybridsim.answers.measurements.measurement import (
    CACHE,
    HIT_RATIO,
    IOPS,
    Curve,
    Measurement,
    Name,
    Samples,
)
from hybridsim.answers.measurements.measurement import SECOND as SECOND_NS
from validate.cli import main
from validate.report import chance, columns
from validate.report.as_json import document
from validate.report.bounds import judged
from validate.report.holding import IN_CLOSED_LOOP, Held, at_its_pace, noise, of_twins
from validate.report.text import text
from validate.twin.calibrate import Calibration
from validate.twin.record import Record
from validate.twin.simulate import Twin

SECONDS = 100

KIND = "dm-cache"


def curve(iops):
    edges = np.arange(SECONDS + 1) * SECOND_NS
    return Curve(edges[:-1], edges[1:], np.asarray(iops, float))


def counter(values):
    return Samples(np.arange(len(values)) * SECOND_NS, np.asarray(values, np.int64))


def warming(t90_s, level=1000.0):
    return [level if second >= t90_s else level / 10 for second in range(SECONDS)]


def measured(iops=None, **counters):
    measurement = Measurement(["run/fio.json"], ["hot"])
    measurement.curves[Name("hot", "read", IOPS)] = curve(warming(20) if iops is None else iops)
    measurement.counters |= {name: counter(values) for name, values in counters.items()}
    return measurement


def row(measure, error, tolerance=0.05, real=1.0):
    return Row(Name("", CACHE, measure), real, None, error, tolerance)


def held(found, tmp_path, repeats=1, apart=None):
    record = Record(tmp_path, "t", {"kind": "dm-cache"}, 1, "", None, None)
    twin = Twin(found.simulated, None, "seed = 1\n", Calibration({}), "a load", 1.0, 0.5, ["so"])
    found.rows = [judged(each, None, KIND) for each in found.rows]
    return Held(record, twin, found, apart or {}, repeats)


# Bounds.


@pytest.mark.parametrize("measure", ["promotions", f"{HIT_RATIO} each 10 s", f"{IOPS} t90"])
def test_figures_of_the_warm_up_are_checked(measure):
    assert judged(row(measure, 0.9), None, KIND).is_met is False


@pytest.mark.parametrize("measure", ["clat p99", "read_hits", f"{HIT_RATIO} curve"])
def test_other_figures_are_not_checked(measure):
    assert judged(row(measure, 0.9), None, KIND).is_met is None


def test_rows_without_a_steady_state_are_not_checked():
    assert judged(row(f"{IOPS} t50", None, real=None), None, KIND).is_met is None
    assert judged(row(f"{IOPS} level", 0.5, tolerance=None), None, KIND).is_met is None


def test_larger_noise_of_real_runs_is_the_bound():
    assert judged(row("promotions", 0.08), 0.09, KIND).is_met
    assert judged(row("promotions", 0.08), 0.07, KIND).is_met is False
    assert judged(row("promotions", 0.04), 0.01, KIND).is_met


def test_largest_error_of_the_hit_ratio_in_10_s_is_reported():
    hits = np.cumsum([50] * 100)
    fewer = np.cumsum([50] * 40 + [20] * 10 + [50] * 50)
    one, other = (
        measured(read_hits=each, read_misses=np.cumsum([50] * 100)) for each in (hits, fewer)
    )
    result = compare(one, other, Tolerances())
    (worst,) = [each for each in result.rows if each.name.measure == f"{HIT_RATIO} each 10 s"]
    assert worst.error == pytest.approx(230 / 730 - 0.5)


def test_counters_are_compared_at_the_pace_of_the_run():
    real, slow, fast = (measured(promotions=np.arange(100) * rate) for rate in (10, 10, 20))
    closed, paced = (compare(real, each, Tolerances()) for each in (fast, slow))
    result = at_its_pace(closed, paced)
    errors = {each.name.measure: each.error for each in result.rows}
    assert errors["promotions"] == pytest.approx(0)
    assert errors[f"promotions{IN_CLOSED_LOOP}"] == pytest.approx(1)


def test_noise_is_the_largest_difference_of_repeated_runs(monkeypatch, tmp_path):
    ones = [held(Comparison(measured(), measured()), tmp_path) for _ in range(3)]
    runs = iter([measured(promotions=np.arange(100) * rate) for rate in (10, 11, 10, 12, 11, 12)])
    monkeypatch.setattr("validate.report.holding.measured", lambda record, twin: next(runs))
    assert noise(ones)[Name("", CACHE, "promotions")] == pytest.approx(0.2)


# Chance.


def test_chance_is_the_share_of_pairs_of_twins_that_exceed_the_bound(tmp_path):
    """Of three twins one counts half as many promotions again: four of six pairs differ by more."""
    one = held(Comparison(measured(), measured()), tmp_path)
    twins = [replace(one.twin, measured=measured(promotions=np.arange(100) * rate))
             for rate in (10, 10, 15)]  # fmt: skip
    rows = [row("promotions", 0.5), row("demotions", 0.5, tolerance=None)]
    shares = chance.beyond(rows, twins, of_twins)
    assert shares == {rows[0].name: pytest.approx(4 / 6)}


def test_other_twins_of_a_page_cache_have_a_longer_path(monkeypatch):
    devices = Calibration({"backing": {"path_latency": "1ms", "members": 1}})
    assert chance.with_longer_path(devices, 500).tables == {
        "backing": {"path_latency": "1000500ns", "members": 1}
    }
    made = []
    monkeypatch.setattr(chance, "calibrated", lambda record: devices)
    monkeypatch.setattr(chance, "twin", lambda *given: made.append(given[1:]))
    for kind in ("page", "bcache"):
        record = Record(Path(), "", {"kind": kind}, 0, "", None, None)
        list(chance.others(record, 2))
    longer, later = made[:2], made[2:]
    paths = [each[0].tables["backing"]["path_latency"] for each in longer]
    assert len(set(paths)) == 2
    assert all("1000000ns" < path < "1100000ns" for path in paths)
    assert [each[0] for each in later] == [devices] * 2
    assert 0 < later[1][1] < later[0][1] < chance.SPREAD_NS


def test_a_time_that_a_twin_lacks_is_no_chance_of_the_others(tmp_path):
    """A real run without a warm-up time is not checked, and neither is a twin without one."""
    one = held(Comparison(measured(), measured()), tmp_path)
    name = Name("hot", "read", f"{IOPS} t50")
    checked = [Row(name, 20.0, 20.0, 0.0, 0.15)]
    flat, warm = ([500.0] * SECONDS, warming(20))
    twins = [replace(one.twin, measured=measured(iops)) for iops in (warm, warm, flat)]
    assert chance.beyond(checked, twins, of_twins) == {name: pytest.approx(2 / 4)}


def test_figures_beyond_by_chance_are_marked_and_counted(tmp_path):
    result = compare(measured(promotions=np.arange(100)), measured(promotions=np.arange(100) * 2),
                    Tolerances())  # fmt: skip
    one = replace(held(result, tmp_path), chance={Name("", CACHE, "promotions"): 0.5})
    table = dict(zip(columns.HEADS, columns.cells(one)))
    assert table["promo"] == "+100%~"
    output = " ".join(text([one], True).split())
    assert "dm-cache 1 of 5 (0)" in output
    assert "promotions: 50% of the pairs of twins exceed its bound" in output
    assert "~ beyond its bound, as is the difference" in output
    assert document([one])["runs"][0]["chance"] == {"cache promotions": 0.5}


# Reports.


def cells(found, tmp_path):
    return dict(zip(columns.HEADS, columns.cells(held(found, tmp_path))))


def test_row_of_a_run_in_the_table(tmp_path):
    real, twin = measured(promotions=np.arange(100)), measured(promotions=np.arange(100) * 2)
    result = cells(compare(real, twin, Tolerances()), tmp_path)
    assert (result["promo"], result["demo"]) == ("+100%*", "–")
    assert (result["steady"], result["t50"], result["curve"]) == ("+0.0%", "+0.0%", "0.000")
    assert result["met"] == "4/5"


def test_run_without_a_steady_state_is_marked(tmp_path):
    rising = measured(np.arange(SECONDS) * 10.0 + 10)
    result = cells(compare(rising, measured(), Tolerances()), tmp_path)
    assert (result["steady"], result["t50"]) == ("not yet", "not yet")


def test_run_without_a_warm_up_is_flat(tmp_path):
    flat = measured([500.0] * SECONDS)
    result = cells(compare(flat, flat, Tolerances()), tmp_path)
    assert (result["steady"], result["t90"]) == ("+0.0%", "flat")


def test_text_has_verdict_assumptions_and_noise(tmp_path):
    result = compare(measured(promotions=np.arange(100)), measured(promotions=np.arange(100)),
                    Tolerances())  # fmt: skip
    one = held(result, tmp_path, 2, {Name("", CACHE, "promotions"): 0.125})
    output = text([one], True)
    assert output.startswith("AGREES")
    assert "the cache was 0.50 s old" in " ".join(output.split())
    assert "2 real runs of this experiment differ by: cache promotions 12.5%" in " ".join(
        output.split()
    )
    assert max(map(len, output.splitlines())) <= 80
    assert text([one, one], False).count("\nrun ") == 1


def test_json_has_verdict_scenario_and_table(tmp_path):
    one = held(compare(measured(), measured(), Tolerances()), tmp_path)
    values = json.loads(json.dumps(document([one]), allow_nan=False))
    assert values["pass"]
    assert values["runs"][0]["scenario"] == "seed = 1\n"
    assert values["table"][0]["run"] == tmp_path.name


def test_html_has_curves_of_each_run(tmp_path):
    from validate.report.html import page

    result = compare(measured(promotions=np.arange(100)), measured(promotions=np.arange(100)),
                    Tolerances())  # fmt: skip
    html = page([held(result, tmp_path), held(result, tmp_path)])
    assert html.count("<h2") >= 3
    assert "run-0-promotions" in html
    assert "run-1-promotions" in html


def test_missing_folder_is_one_message(capsys, tmp_path):
    assert main(["report", str(tmp_path / "none")]) == 2
    assert "no such folder" in capsys.readouterr().err


def test_a_wrong_number_of_twins_is_one_message(capsys, tmp_path):
    with pytest.raises(SystemExit, match="2"):
        main(["report", str(tmp_path), "--chance", "-1"])
    assert "argument --chance" in capsys.readouterr().err
