"""Everything that holds rows is a pandas frame, and plots take frames."""

import json
import sys

import numpy as np
import pytest

from hybridsim import Scenario, Trace, advise, bench, fit, hits, plot, size, sweep, what_if
from hybridsim.answers.bounds import bounds
from hybridsim.answers.fitting.answer import Estimate, Fit
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.in_notebooks import frame_of
from hybridsim.studies.advise_fleet import advise_fleet
from hybridsim.studies.compare import compare
from hybridsim.studies.fio import fio
from hybridsim.studies.sweep.named_trace import NamedTrace
from hybridsim.traces.averages import Interval

LOAD = "gen:hot-spot,span=64MiB,hot=10%,share=90%,rate=150,requests=600"
PAGE = Scenario.default().with_options(cache="page")


@pytest.fixture(scope="module")
def advice():
    site = PAGE.with_options(cache_size="8MiB")
    return advise(Trace.read(LOAD), site, ["disks", "more-disks"])


def test_advice_has_a_row_for_each_machine_and_each_purchase(advice):
    frame = advice.frame()
    assert len(frame) == len(advice.rows) == 2
    assert frame["cache"].tolist() == ["page", "page"]
    assert frame["size_bytes"].tolist() == [each.size_bytes for each in advice.rows]
    assert frame["answer"].tolist() == [each.answer for each in advice.rows]
    assert frame["hit_ratio"].tolist() == [each.hit for each in advice.rows]
    assert frame["loses"][0] == ""
    assert advice.purchases()["name"].tolist() == [each.name for each in advice.compared]
    assert advice.answer in repr(advice)
    assert "<table>" in advice._repr_html_()
    assert plot.pareto(frame, "cost", "p99_ns").axes


def test_sizing_has_a_row_for_each_machine_that_was_tried():
    found = size(Trace.read(LOAD), PAGE, ["hit.warm>20%", "dwpd<9"])
    frame = found.frame()
    assert frame["size_bytes"].tolist() == [each.size_bytes for each in found.tried]
    assert frame["meets"].tolist() == [each.meets for each in found.tried]
    values = [each.decisive[0].value for each in found.tried]
    assert frame["hit.warm>20%"].tolist() == values
    assert str(len(found.tried)) in repr(found)
    assert "hit.warm" in found._repr_html_()


def test_a_bench_has_a_row_for_each_point():
    found = bench(PAGE.with_options(cache_size="8MiB"), depths=[1, 4], requests=40)
    frame = found.frame()
    assert len(frame) == len(found.points) == 5 * 3 * 2
    warm = frame[frame["state"] == "warm"].set_index(["parameter", "depth"])
    assert warm["gain"]["hot random read", 4] == found.gain("hot random read", 4)
    assert frame[frame["state"] != "warm"]["gain"].isna().all()
    hot = frame[frame["parameter"] == "hot random read"]
    assert len(plot.lines(hot, "depth", "iops", "state").axes[0].get_lines()) == 3


def test_hits_are_a_list_and_a_frame():
    found = hits(Trace.read(LOAD), ["1MiB", "4MiB"], ["lru", "fifo"])
    frame = found.frame()
    assert isinstance(found, list)
    assert frame["page_hits"].tolist() == [each.page_hits for each in found]
    assert frame["page_hit_ratio"].tolist() == [each.page_hit_ratio for each in found]
    assert frame["size_bytes"].tolist() == [each.pages * each.page_bytes for each in found]
    assert "fifo" in found._repr_html_()


def test_a_comparison_has_a_row_for_each_figure(tmp_path):
    line = "read: IOPS={}, BW=4MiB/s (4MB/s)(40MiB/10000msec)"
    for name, iops in (("real", 1000), ("simulated", 1020)):
        (tmp_path / f"{name}.txt").write_text(line.format(iops))
    found = compare(str(tmp_path / "real.txt"), str(tmp_path / "simulated.txt"), ["iops=5%"])
    frame = found.frame().set_index("measure")
    assert len(frame) == len(found.rows)
    assert (frame["real"]["IOPS"], frame["simulated"]["IOPS"]) == (1000, 1020)
    assert frame["error"]["IOPS"] == pytest.approx(0.02)
    assert frame["within"]["IOPS"] is True
    assert found.over_time().empty
    assert [*found.over_time().columns] == [
        "job", "what", "measure", "time_ns", "real", "simulated",
    ]  # fmt: skip


def test_bounds_have_a_row_for_each_mode():
    interval = Interval("sda", "", 100.0, 80.0, 4e5, 1e5, 5e6, 6e6, 4e6, 0.5)
    found = bounds([interval], PAGE.cache.drive)
    frame = found.frame()
    assert frame["mode"].tolist() == ["write-through", "write-back"] * 2
    assert frame["gain_at_most"][0] == found.cases[0].gain_at_most


def test_a_fleet_has_a_row_for_each_member(tmp_path):
    site = PAGE.with_options(cache_size="8MiB")
    loads = [NamedTrace.here((f"{LOAD},seed={seed}",)) for seed in (1, 2)]
    found = advise_fleet(loads, site, folder=tmp_path, workers=1)
    frame = found.frame()
    assert frame["server"].tolist() == [each.server for each in found.members]
    assert frame["gain"].tolist() == [each.pick["gain"] for each in found.members]
    assert [*found.purchase()["name"]] == [each.name for each in found.servers]
    assert "of 2" in repr(found)


def test_a_fit_has_a_row_for_each_value():
    estimates = [Estimate("backing", "members", 4), Estimate("backing.drive", "kind", "hdd")]
    frame = Fit("x", "an array", estimates, 10).frame()
    assert frame["key"].tolist() == ["backing.members", "backing.drive.kind"]
    assert frame["value"].tolist() == [4, "hdd"]


def test_jobs_of_fio_are_frames_over_jobs_and_over_time():
    job = "--rw=randread --bs=4k --size=4m --iodepth=4"
    found = fio(f"--name=one {job} --name=two {job}", Scenario.default().with_options(cache="none"))
    frame = found.frame()
    assert frame["job"].tolist() == ["one", "two"]
    assert frame["requests"].tolist() == [1024, 1024]
    curve = found.over_time()
    assert curve.groupby("job")["iops"].mean()["one"] == pytest.approx(frame["iops"][0])


def test_a_sweep_takes_dictionaries_and_names_the_key_that_is_wrong(tmp_path):
    plan = {"sweep": {"traces": [LOAD]}, "vary": {"cache": {"size": ["1MiB", "2MiB"]}},
            "set": {"backing.members": 5}}  # fmt: skip
    found = sweep(plan, tmp_path, workers=1)
    assert found.frame()["cache.size"].tolist() == ["1MiB", "2MiB"]
    assert found.plan.scenario.backing.members == 5
    with pytest.raises(UsageError, match=r"sweep\.kinds: unknown key 'kinds': did you mean 'kind'"):
        sweep({"sweep": {"traces": [LOAD], "kinds": "grid"}})
    with pytest.raises(UsageError, match="missing: traces"):
        sweep({"sweep": {}})


def test_a_grid_of_twelve_machines_with_a_plot_is_three_lines(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = f"""
vary = {{"replacement": ["lru", "fifo"], "cache_mode": ["write-through", "write-back"]}}
grid = what_if({LOAD!r}, **vary, admission="always", cache_size=["1MiB", "2MiB", "4MiB"])
figure = plot.lines(grid, "ssd_gib", "read_ms", [*vary], title="More SSD, faster reads")
"""
    assert len(lines.strip().splitlines()) == 3
    names = {"what_if": what_if, "plot": plot}
    exec(lines, names)
    grid, axes = names["grid"], names["figure"].axes[0]
    assert len(grid) == 12
    drawn = axes.get_lines()
    assert len(drawn) == 4
    assert [*drawn[0].get_ydata()] == grid["read_ms"][:3].tolist()
    assert {each.get_text() for each in axes.texts} == {
        f"{policy} {mode}" for policy in ("lru", "fifo")
        for mode in ("write-through", "write-back")
    }  # fmt: skip
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("ssd (GiB)", "read (ms)")
    assert names["figure"].get_suptitle() == "More SSD, faster reads"
    again = what_if(LOAD, **{**names["vary"]}, admission="always",
                    cache_size=["1MiB", "2MiB", "4MiB"], progress=False)  # fmt: skip
    assert again.equals(grid)


def test_names_at_the_ends_of_lines_do_not_overlap():
    rows = [{"x": x, "y": 1 + 0.001 * n, "by": f"line {n}"} for n in range(6) for x in (1, 2)]
    figure = plot.lines(rows, "x", "y", "by")
    figure.draw_without_rendering()
    boxes = [each.get_window_extent() for each in figure.axes[0].texts]
    assert len(boxes) == 6
    assert not any(a.overlaps(b) for n, a in enumerate(boxes) for b in boxes[:n])
    inside = figure.bbox
    assert all(inside.contains(each.x1, each.y1) for each in boxes)


def test_rows_stand_beside_each_other_with_their_unit():
    rows = [{"name": "a", "real_iops": 10.0, "simulated_iops": 11.0},
            {"name": "b", "real_iops": 20.0, "simulated_iops": None}]  # fmt: skip
    axes = plot.beside(rows, "name", ["real_iops", "simulated_iops"]).axes[0]
    assert axes.get_xlabel() == "IOPS"
    assert [each.get_text() for each in axes.get_legend().get_texts()] == ["real", "simulated"]
    bars = plot.beside(rows, "name", "real_iops", bold=["b"]).axes[0]
    assert [each.get_text() for each in bars.texts] == ["10", "20"]
    with pytest.raises(UsageError, match="nothing to draw"):
        plot.beside(rows, "name", "other_iops")


def test_unknown_numbers_are_nan_and_a_frame_without_rows_has_its_columns():
    frame = frame_of([{"a": 1, "b": "x", "c": None}, {"a": None, "b": None, "c": None}])
    assert frame["a"].dtype == float
    assert frame["b"].isna().tolist() == [False, True]
    assert [*frame_of([], ["a", "b"]).columns] == ["a", "b"]


def test_without_pandas_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match=r"hybridsim\[notebooks\]"):
        hits(np.array([1, 2, 1]), "1 page").frame()


def test_the_fit_of_fio_is_a_frame(tmp_path):
    latency = {"min": 9e4, "max": 2e5, "mean": 1e5, "stddev": 1e3, "N": 5000,
               "percentile": {"1.000000": 9e4, "50.000000": 1e5, "99.000000": 1.2e5}}  # fmt: skip
    read = {"io_bytes": 5000 * 4096, "bw_bytes": 4096 * 10_000, "iops": 10_000.0, "runtime": 500,
            "total_ios": 5000, "clat_ns": latency, "lat_ns": latency}  # fmt: skip
    options = {"rw": "randread", "bs": "4k", "iodepth": "1", "direct": "1", "size": "100G",
               "ioengine": "libaio", "filename": "/dev/sdx"}  # fmt: skip
    job = {"jobname": "j", "job options": options, "read": read}
    path = tmp_path / "fio.json"
    path.write_text(json.dumps({"fio version": "fio-3.33", "jobs": [job]}))
    frame = fit(path, check=False).frame().set_index("key")
    assert frame["value"]["backing.drive.kind"] == "ssd"
