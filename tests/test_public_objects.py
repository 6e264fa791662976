"""What the public objects show of themselves: short reprs, tables in notebooks, frames, options."""

import doctest
import importlib
import inspect

import numpy as np
import pytest

import hybridsim
from hybridsim import Scenario, Trace, hits, miss_ratio_curve, plot, replay
from hybridsim.scenario.options import OPTIONS, Choices, Options

LOAD = "gen:hot-spot,span=16MiB,hot=10%,share=90%,rate=150,requests=400"
EXAMPLES = sorted({*hybridsim.__all__} - {"HybridsimError", "Result", "__version__", "plot"})


@pytest.fixture(scope="module")
def result():
    return replay(Trace.read(LOAD), Scenario.default().with_options(cache_size="2MiB"))


def test_reprs_are_short_and_say_what_it_is(result):
    curve = miss_ratio_curve(Trace.read(LOAD))
    site = Scenario.default().with_options(cache="bcache", cache_size="64MiB")
    one, two = hits(Trace.read(LOAD)), hits(Trace.read(LOAD), ["1MiB", "2MiB"])
    summary, warm = Trace.read(LOAD).summary(), result.phases["warm"]
    parts = [result.verdict, warm, warm.figures, warm.figures.reads]
    for each in [result, curve, site, Trace.read(LOAD), one, two, summary, *parts]:
        text = repr(each)
        assert text.startswith(f"<{type(each).__name__}")
        assert len(text) < (200 if each is not result.verdict else 1000)
        assert "\n" not in text
    assert result.verdict.answer in repr(result)
    assert f"{summary.requests:,} requests" in repr(summary)
    assert f"{warm.figures.reads.count:,} reads" in repr(warm)
    assert "4 x HGST" in repr(site)
    assert "bcache" in repr(site)
    assert "always, lru" in repr(one)
    assert "2 caches" in repr(two)


def test_a_notebook_completes_the_options():
    for function, keys in (
        (hybridsim.what_if, Choices),
        (Scenario.default().with_options, Options),
    ):
        signature = inspect.signature(function)  # of this IPython takes the names
        assert set(keys.__annotations__) <= set(signature.parameters)
        assert "**" not in str(signature)
        assert "ForwardRef" not in str(signature)


def test_tables_in_notebooks_are_escaped(result):
    trace = Trace.read(LOAD)
    for each in (result, trace, trace.summary(), Scenario.default(), miss_ratio_curve(trace)):
        html = each._repr_html_()
        assert html.startswith("<table>")
    from hybridsim.foundation.in_notebooks import table_html

    assert "<b>" not in table_html("<b>", [("<b>", "<b>")])


def test_the_frame_of_a_result_has_both_machines(result):
    frame = result.frame()
    series = result.cached.series()
    assert len(frame) >= len(series.start_ns)
    assert frame["hit_ratio"].dropna().tolist() == [h for h in series.hit if h is not None]
    alone = [each for each in result.plain.series().mean_ns if each is not None]
    assert frame["mean_ns_alone"].dropna().tolist() == alone
    assert plot.lines(frame, "time_ns", "hit_ratio").axes[0].get_ylabel() == "hit ratio (%)"


def test_the_frame_of_a_curve_is_the_curve():
    curve = miss_ratio_curve(Trace.read(LOAD))
    frame = curve.frame()
    assert list(frame.columns) == ["pages", "size_bytes", "miss_ratio", "error"]
    assert np.array_equal(frame["miss_ratio"], curve.miss_ratio)


def test_the_frame_of_a_trace_has_its_requests():
    trace = Trace.read(LOAD)
    assert len(trace.frame()) == 400
    head = trace.frame(7)
    assert len(head) == 7
    assert head.equals(trace.frame().head(7))


def test_options_have_types_for_every_option():
    assert set(Options.__annotations__) == set(Choices.__annotations__) == set(OPTIONS)


def test_plots_know_the_units_of_frames():
    rows = [{"ssd_gib": 1.0, "read_ms": 2.0}, {"ssd_gib": 2.0, "read_ms": 1.0}]
    axes = plot.lines(rows, "ssd_gib", "read_ms").axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("ssd (GiB)", "read (ms)")


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_in_docstrings_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    thing = getattr(hybridsim, name)
    module = importlib.import_module(thing.__module__)
    tests = doctest.DocTestFinder(recurse=True).find(thing, name, module=module)
    examples = [each for each in tests if each.examples]
    assert examples, f"{name} has no example"
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(optionflags=flags)
    for each in examples:
        assert runner.run(each).failed == 0, each.name
