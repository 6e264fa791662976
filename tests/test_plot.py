"""The figures of hybridsim.show.plot: their data, units and names; not their pixels."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from html_documents import compare_document, replayed, requests
from hypothesis import given
from hypothesis import strategies as st

from hybridsim.foundation.codes import Op
from hybridsim.foundation.errors import UsageError
from hybridsim.show import plot
from hybridsim.show.charts import Axis, Chart, Line, Mark
from hybridsim.show.charts.layout import logarithmic, rows_of
from hybridsim.show.charts.reuse import reuse_times
from hybridsim.show.charts.tables import front, geometric_mean, relative
from hybridsim.show.plot.drawing import drawn

ROOT = Path(__file__).parents[1]
SECOND = 10**9


@pytest.fixture(autouse=True)
def _matplotlib():
    pytest.importorskip("matplotlib", reason="figures need matplotlib, hybridsim[notebooks]")


def lines(figure, axes=0):
    return {line.get_gid(): line for line in figure.axes[axes].lines if line.get_gid()}


def labels(figure, axes=0):
    return figure.axes[axes].get_xlabel(), figure.axes[axes].get_ylabel()


def test_a_warm_up_shows_the_hit_ratio_in_per_cent_over_time():
    replay = replayed()
    figure = plot.warm_up(replay)
    assert labels(figure) == ("time (s)", "hit ratio (%)")
    curve = lines(figure)["smooth"]
    assert curve.get_ydata() == pytest.approx(100 * replay.warm_up.smooth)
    assert curve.get_xdata() == pytest.approx(
        (replay.warm_up.times_ns + replay.warm_up.bin_ns / 2) / SECOND
    )


def test_several_warm_ups_share_one_axis_with_a_legend():
    figure = plot.warm_up({"mine": replayed(), "theirs": replayed().to_dict()})
    shown = lines(figure)
    assert list(shown) == ["warm-up-mine", "warm-up-theirs"]
    assert [each.get_text() for each in figure.axes[0].get_legend().get_texts()] == [
        "mine", "theirs",
    ]  # fmt: skip
    assert len({line.get_color() for line in shown.values()}) == 2


def test_panels_share_the_time_axis():
    figure = plot.panels(replayed())
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "hit ratio (%)", "read latency (ms)", "data on the SSD (MiB)",
    ]  # fmt: skip
    assert len({axes.get_xlim() for axes in figure.axes}) == 1
    p99 = lines(figure, 1)["p99"].get_ydata()
    expected = replayed().to_dict()["series"]["p99_ns"]
    assert p99 == pytest.approx([each / 1e6 for each in expected])


def test_distributions_end_at_100_per_cent():
    figure = plot.latency_cdf(replayed())
    assert labels(figure) == ("latency (ms)", "share of the reads (%)")
    for phase in ("none", "cold", "warm"):
        y = lines(figure)[f"cdf-read-{phase}"].get_ydata()
        assert (np.diff(y) >= 0).all()
        assert (y[0], y[-1]) == (0, 100)


def test_the_mean_is_the_sum_of_its_paths():
    replay = replayed()
    figure = plot.ways(replay)
    widths = [bar.get_width() for bar in figure.axes[0].patches]
    means = [replay.phases[name].figures.reads.mean_ns / 1e6 for name in ("none", "cold", "warm")]
    assert sum(widths) == pytest.approx(sum(means))


def test_bars_of_disk_time_add_up_to_the_utilisation():
    replay = replayed()
    figure = plot.disk_time(replay)
    ends = max(bar.get_x() + bar.get_width() for bar in figure.axes[0].patches)
    assert ends == pytest.approx(100 * replay.phases["none"].utilisation)


def test_stacked_reasons_add_up_to_the_share_of_missed_reads():
    replay = replayed()
    highest = list(lines(plot.reasons(replay)).values())[-1].get_ydata()
    missed = 1 - replay.cached.whole.figures.hit_ratio
    assert highest.mean() == pytest.approx(100 * missed, rel=0.1)


def test_an_address_map_counts_all_requests():
    figure = plot.address_map(replayed(), "writes")
    (image,) = figure.axes[0].images
    expected = replayed().trace["address_map"]["writes"]
    assert np.nansum(image.get_array()) == sum(
        int(n) for column in expected for n in column.split()
    )
    assert labels(figure) == ("time in the trace (s)", "address (GiB)")


CURVE = {
    "policy": "lru", "admission": "always", "page_bytes": 1 << 20, "knee_pages": 200,
    "curve": [{"pages": pages, "miss_ratio": max(1 - pages / 400, 0.5), "error": 0.0}
              for pages in range(100, 1001, 100)],
}  # fmt: skip


def test_a_miss_ratio_curve_marks_its_knee_and_the_chosen_size():
    figure = plot.miss_ratio_curve(CURVE, chosen_bytes=300 << 20)
    assert labels(figure) == ("cache size (MiB)", "miss ratio (%)")
    shown = lines(figure)
    assert shown["miss-ratio"].get_xydata()[0].tolist() == [100, 75]
    assert shown["mark-knee"].get_xydata().tolist() == [[200, 50]]
    assert shown["mark-chosen"].get_xdata()[0] == 300


def test_the_error_of_a_sampled_curve_is_shaded_within_0_and_100_per_cent():
    points = [each | {"error": 0.6} for each in CURVE["curve"]]
    figure = plot.miss_ratio_curve(CURVE | {"curve": points})
    (shaded,) = figure.axes[0].collections
    ends = shaded.get_paths()[0].vertices[:, 1]
    assert (ends.min(), ends.max()) == (0, 100)
    assert not plot.miss_ratio_curve(CURVE).axes[0].collections


def test_the_interval_of_a_mark_is_shaded():
    lines = [Line("one", "one", [0.0, 10.0], [1.0, 2.0])]
    marks = [Mark("warm", 4.0, low=2.0, high=7.0)]
    figure = drawn([Chart("gid", "title", Axis("x", ""), Axis("y", ""), lines, marks=marks)])
    (span,) = figure.axes[0].patches
    assert (span.get_x(), span.get_width()) == (2.0, 5.0)


def test_labels_of_several_curves_do_not_overlap():
    worse = {**CURVE, "curve": [{**one, "miss_ratio": 0.9} for one in CURVE["curve"]]}
    better = {**CURVE, "knee_pages": 300}
    figure = plot.miss_ratio_curve({"LRU": CURVE, "ARC": better})
    texts = figure.axes[0].texts
    assert [each.get_text() for each in texts] == ["knee, LRU", "knee, ARC"]
    figure.draw_without_rendering()
    one, other = (each.get_window_extent() for each in texts)
    assert not one.overlaps(other)
    assert list(lines(plot.miss_ratio_curve({"LRU": CURVE, "FIFO": worse})))[:2] == [
        "miss-ratio-LRU", "miss-ratio-FIFO",
    ]  # fmt: skip


# Reuse times.

accessed = st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 5)), min_size=1, max_size=50)


@given(accessed, st.integers(1, 50))
def test_reuse_times_equal_a_naive_computation(accesses, rows):
    accesses.sort()
    parts = [accesses[at : at + rows] for at in range(0, len(accesses), rows)]
    trace = SimpleNamespace(
        chunks=lambda: iter(
            requests(
                [t for t, _ in part], [65536 * page for _, page in part], [Op.READ] * len(part)
            )
            for part in parts
        )
    )
    computed = reuse_times(trace)
    last, lags = {}, []
    for time_ns, page in accesses:
        if page in last:
            lags.append(time_ns - last[page])
        last[page] = time_ns
    assert computed.first_uses == len(last)
    assert sum(computed.counts) == len(lags)
    for edge, share in zip(computed.edges_ns, computed.within):
        below = sum(lag < edge * (1 - 1e-9) for lag in lags) / len(accesses)
        upto = sum(lag <= edge * (1 + 1e-9) for lag in lags) / len(accesses)
        assert below - 1e-12 <= share <= upto + 1e-12


def test_reuse_times_are_drawn_as_shares_of_all_accesses():
    trace = SimpleNamespace(chunks=lambda: iter([requests([0, SECOND], [0, 0], [0, 0])]))
    figure = plot.reuse_times({"a": trace})
    assert labels(figure) == ("time since the last access (s)", "share of the accesses (%)")
    assert lines(figure)["reuse-a"].get_ydata()[-1] == 50


# Sweeps, advice, policies, real and simulated runs.

points = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30)


@given(points)
def test_the_front_is_the_set_of_points_that_none_dominates(rows):
    x, y = zip(*rows)
    kept = front(x, y)
    on_front = {rows[at] for at in kept}
    assert len(on_front) == len(kept)
    for a, b in rows:
        beaten = any((c <= a and d <= b) and (c, d) != (a, b) for c, d in rows)
        assert ((a, b) in on_front) is not beaten


def test_a_pareto_front_labels_its_points_and_takes_units_from_key_names():
    rows = [
        {"name": "slow", "cost": 1, "mean_ns": 9e6},
        {"name": "fast", "cost": 9, "mean_ns": 1e6},
        {"name": "bad", "cost": 9, "mean_ns": 9.5e6},
        {"name": "failed", "cost": 5, "mean_ns": None},
    ]
    figure = plot.pareto(rows, "cost", "mean_ns", "name")
    assert labels(figure) == ("cost", "mean (ms)")
    assert lines(figure)["front"].get_xydata().tolist() == [[1, 9], [9, 1]]
    assert len(lines(figure)["points"].get_xdata()) == 3
    assert {each.get_text() for each in figure.axes[0].texts} == {"slow", "fast"}
    more = plot.pareto(rows, "cost", "mean_ns", more_is_better=["cost"])
    assert lines(more)["front"].get_xydata().tolist() == [[9, 1]]


def test_the_cost_figure_marks_alternatives_on_the_front():
    compared = [
        {"name": "more-disks", "cost": 900, "mean_ns": 5e6},
        {"name": "hybrid", "cost": 400, "mean_ns": 2e6},
        {"name": "all-ssd", "cost": 2000, "mean_ns": 1e5},
        {"name": "unpriced", "cost": None, "mean_ns": 1e5},
    ]
    sizes = [
        {"what": "knee", "cost": 40, "mean_ns": 3e6},
        {"what": "all", "cost": 90, "mean_ns": 1e6},
    ]
    advice = {"schema": "hybridsim.advice/1", "compared": compared, "sizes": sizes,
              "price": {"currency": "USD"}}  # fmt: skip
    figure = plot.cost(advice)
    assert labels(figure)[0] == "cost (USD)"
    assert lines(figure)["front"].get_xdata().tolist() == [400, 2000]
    assert lines(plot.cost_by_size(advice))["sizes"].get_ydata().tolist() == [3, 1]


ROWS = [
    {"trace": trace, "page_bytes": 4096, "share": 0.1, "policy": policy, "disk_ns": ns}
    for trace, by_policy in {
        "a": {"learned": 50, "lru": 100, "larc": 60},
        "b": {"learned": 90, "lru": 80, "larc": 80},
    }.items()
    for policy, ns in by_policy.items()
]


def test_policies_are_compared_with_the_best_baseline_in_each_cell():
    against = relative(ROWS, "disk_ns", "policy", ["trace"], ["lru", "larc"])
    assert against["learned"] == [50 / 60, 90 / 80]
    figure = plot.policies(ROWS)
    shown = lines(figure)
    assert shown["dots-lru"].get_xdata().tolist() == [2, 1]
    for name in ("learned", "lru", "larc"):
        mean = geometric_mean(shown[f"dots-{name}"].get_xdata().tolist())
        assert shown[f"mean-{name}"].get_xdata()[0] == pytest.approx(mean)
    order = [each.get_text() for each in figure.axes[0].get_yticklabels()]
    assert order == sorted(order, key=lambda name: shown[f"mean-{name}"].get_xdata()[0])


def test_the_judged_policy_is_bold_and_a_narrow_axis_has_enough_ticks():
    figure = plot.policies(ROWS, baselines=["lru", "larc"])
    place = figure.axes[0]
    bold = [each.get_text() for each in place.get_yticklabels() if each.get_weight() == "bold"]
    assert bold == ["learned"]
    assert place.get_xlabel() == "disk time / that of the best baseline"
    narrow = logarithmic(0.96, 1.7)
    assert narrow == [1, 1.2, 1.4, 1.6]
    assert logarithmic(0.9, 2) == [1, 1.5, 2]


def test_the_curves_of_a_real_and_a_simulated_run_share_one_axis(tmp_path):
    document = compare_document(tmp_path)
    figure = plot.overlay(document, document["curves"][0]["name"].lower())
    shown = lines(figure)
    assert sorted(shown) == ["real-0", "simulated-0"]
    for side in ("real", "simulated"):
        assert shown[f"{side}-0"].get_ydata().tolist() == document["curves"][0][side]["x"]


def test_the_error_for_an_unknown_curve_lists_the_known_ones(tmp_path):
    document = compare_document(tmp_path)
    with pytest.raises(UsageError, match=f"hits, but {document['curves'][0]['name']}"):
        plot.overlay(document, "hits")


@pytest.mark.parametrize("name", ["hit_ratio", "requests_no_slower_share"])
def test_shares_are_shown_in_per_cent(name):
    figure = plot.lines([{"x": 1, name: 0.25}, {"x": 2, name: 0.5}], "x", name)
    assert labels(figure) == ("x", f"{name.removesuffix('_share').replace('_', ' ')} (%)")
    assert lines(figure)["line-"].get_ydata().tolist() == [25, 50]


def test_data_frames_are_accepted_as_rows():
    frame = SimpleNamespace(to_dict=lambda how: ROWS)
    assert plot.records(frame) == ROWS


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plot.panels(replayed(pages=0)),
        lambda: plot.latency_cdf(replayed(), "trim"),
        lambda: plot.policies([{"policy": "lru"}]),
        lambda: plot.overlay({"curves": []}),
        lambda: plot.warm_up({"a": replayed(), "b": replayed(mode="closed")}),
    ],
)
def test_data_that_cannot_be_drawn_give_one_error(draw):
    with pytest.raises(UsageError):
        draw()


def test_figures_have_column_width_readable_text_and_a_notebook_display():
    figure = plot.latency_cdf(replayed())
    assert figure.get_figwidth() == 3.4
    sizes = [text.get_fontsize() for text in figure.axes[0].get_xticklabels()]
    assert min(sizes) >= 6
    assert figure._repr_png_().startswith(b"\x89PNG")


WITHOUT = """
import sys
sys.modules["matplotlib"] = None
from hybridsim import plot
from hybridsim.foundation.errors import UsageError
from hybridsim.show.plot.drawing import drawn
assert "matplotlib.figure" not in sys.modules
try:
    plot.pareto([{"a": 1, "b": 2}], "a", "b")
except UsageError as error:
    print(error)
"""


def test_without_matplotlib_the_error_names_the_package_to_install():
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, cwd=ROOT)
    assert "hybridsim[notebooks]" in done.stdout, done.stderr


def test_figures_accept_documents_from_a_file():
    document = json.loads(replayed().to_json())
    assert list(lines(plot.latency_cdf(document))) == [
        "cdf-read-none", "cdf-read-cold", "cdf-read-warm",
    ]  # fmt: skip


def boxes(texts):
    return [each.get_window_extent() for each in texts]


def is_clear(texts):
    extents = boxes(texts)
    return not any(one.overlaps(other) for at, one in enumerate(extents) for other in extents[:at])


def test_names_on_a_front_do_not_cover_each_other():
    rows = [
        {"cost": 100 + 3 * n, "mean_ns": 1e6 * (3 + 5 / (1 + n)), "name": name}
        for n, name in enumerate(["write-through", "write-back", "read-only", "around", "s3-fifo"])
    ]
    figure = plot.pareto(rows, "cost", "mean_ns", "name")
    named = [each for each in figure.axes[0].texts if each.get_text()]
    assert [each.get_text() for each in named] == [row["name"] for row in rows]
    assert is_clear(named)


def test_labels_of_close_marks_are_stacked():
    x = Axis("time", "s", low=0, high=100)
    marks = [Mark("50%", 3), Mark("90%", 6), Mark("95%", 60)]
    assert rows_of(marks, x, 0, 100) == [0, 1, 0]
    assert rows_of(marks[:2], Axis("size", log=True), 1, 8) == [0, 0]  # 3 and 6 are far apart there
    line = Line("l", "", [0, 100], [0, 1])
    figure = drawn([Chart("c", "C", x, Axis("y"), [line], marks=marks)])
    figure.draw_without_rendering()
    assert is_clear(figure.axes[0].texts)
