"""`explore` in notebooks: widgets, the page in a frame, exact replays in the background."""

import time

import pytest
from explored import exploration

from hybridsim.foundation.errors import UsageError
from hybridsim.show.interactive import SHOWN, Explorer, over_size_svg

ipywidgets = pytest.importorskip("ipywidgets", reason="widgets need hybridsim[notebooks]")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    return exploration(folder, points=40, check=0, caches=["page"], loads=[1.0, 2.0])


@pytest.fixture
def explorer(found):
    return Explorer(found)


@pytest.fixture
def panel(explorer):
    return explorer.widgets().panel


def test_a_slider_changes_the_figures_and_the_chart(panel, found):
    before, chart = panel.table.value, panel.chart.value
    panel.axes[1].value = 0
    assert panel.table.value != before
    assert panel.chart.value != chart
    assert "verdict" not in panel.table.value  # it is the caption
    assert ("yes" in panel.table.value.lower()) or ("no" in panel.table.value.lower())
    name = dict(Explorer(found).words(panel.place))["reads served by the SSD"]
    assert name in panel.table.value


def test_an_axis_without_a_choice_has_no_slider(tmp_path):
    found = exploration(tmp_path, points=12, check=0, caches=["page"], loads=[1.0])
    panel = Explorer(found).widgets().panel
    assert [each.layout.display for each in panel.axes] == [None, None, None, None, "none"]


def test_the_price_changes_the_cost(panel):
    before = panel.table.value
    panel.price.value = 0.5
    assert panel.table.value != before
    assert "$960" in panel.table.value  # 1.92 TB


def test_figures_between_replays_have_bands_and_those_of_replays_have_none(explorer, found):
    replayed = dict(explorer.words(found.replays[0].place))
    assert replayed["figures"] == "of a replay"
    assert " to " not in replayed["mean time of a read"]
    free = next(
        (*found.own[:1], n, *found.own[2:])
        for n in range(len(found.axes[1].choices))
        if (*found.own[:1], n, *found.own[2:]) not in found.by_place
    )
    between = dict(explorer.words(free))
    assert "interpolated" in between["figures"]
    assert " to " in between["mean time of a read"]


def test_figures_of_any_machine_by_the_names_of_its_choices(explorer, found):
    figures = explorer.at(members="8")
    assert list(figures) == list(SHOWN)
    assert figures["hit.whole"].low <= figures["hit.whole"].value <= figures["hit.whole"].high
    frame = explorer.over_size(members="8")
    assert len(frame) == len(found.axes[1].choices)
    assert (frame["hit.whole_low"] <= frame["hit.whole_high"]).all()
    with pytest.raises(UsageError, match="no choice '9'"):
        explorer.at(members="9")


def test_the_page_is_shown_in_a_frame_and_saved(explorer, tmp_path):
    assert explorer._repr_html_().startswith("<iframe srcdoc=")
    explorer.save(tmp_path / "x.html")
    assert (tmp_path / "x.html").read_text().startswith("<!doctype html>")
    assert repr(explorer).startswith("<Explorer of gen:hot-spot")
    assert "<svg" in over_size_svg(explorer, explorer.exploration.own)


def test_an_exact_replay_in_the_background_replaces_the_estimate(explorer, monkeypatch):
    done = []

    def instantly(trace, scenario, report):
        for part in (0.25, 1.0):
            report(type("P", (), {"requests": part * 100, "of_requests": 100})())
        done.append(scenario)
        return "the result"

    monkeypatch.setattr("hybridsim.show.interactive.replay", instantly)
    monkeypatch.setattr(type(explorer.exploration), "with_replay", lambda self, place, result: self)
    panel = explorer.widgets().panel
    panel.axes[1].value = 3
    panel.exact.click()
    panel._thread.join(20)
    assert panel.status.value == "replayed"
    assert explorer.results == {panel.place: "the result"}
    assert done[0].cache.size == explorer.exploration.scenario(panel.place).cache.size
    assert (panel.exact.disabled, panel.cancel.disabled) == (False, True)


def test_a_replay_can_be_cancelled(explorer, monkeypatch):
    def endless(trace, scenario, report):
        for _ in range(2000):
            report(type("P", (), {"requests": 1, "of_requests": 100})())
            time.sleep(0.01)

    monkeypatch.setattr("hybridsim.show.interactive.replay", endless)
    panel = explorer.widgets().panel
    panel.exact.click()
    assert not panel.cancel.disabled
    panel.cancel.click()
    panel._thread.join(20)
    assert panel.status.value == "cancelled"
    assert not explorer.results


def test_a_real_replay_equals_what_is_then_shown(explorer):
    result = explorer.replay(cache="page write-back lru", members="6")
    place = explorer.exploration.place(cache="page write-back lru", members="6")
    estimate = explorer.exploration.estimate("mean.reads.whole", place)
    assert estimate.is_replayed
    assert estimate.value == result.cached.whole.figures.reads.mean_ns
    assert explorer.exploration.answer(place) == (result.verdict.answer, False)
