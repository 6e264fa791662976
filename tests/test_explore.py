"""`hybridsim explore`: replays, the surfaces between them, and what the page computes itself."""

import dataclasses
import itertools
import json
import math
import shlex

import numpy as np
import pytest
from click.testing import CliRunner
from explored import LOAD, exploration, made_up
from jsonschema import Draft202012Validator

from hybridsim import Scenario
from hybridsim.answers.advice.alternatives import cache_cost
from hybridsim.answers.forecast import is_certain
from hybridsim.cli import cli
from hybridsim.cli.explore import words
from hybridsim.foundation.errors import ScenarioError, UsageError
from hybridsim.foundation.wording import in_table
from hybridsim.show import schemas
from hybridsim.show.explore import bands, text
from hybridsim.show.html import of
from hybridsim.studies.explore import planning
from hybridsim.studies.explore.axes import CACHE, SIZE, axes, values_at, with_served
from hybridsim.studies.explore.exploring import (
    FITTING,
    OVER,
    QUANTITIES,
    explore,
    explored,
    surfaces_of,
)
from hybridsim.studies.explore.surface import LINEAR, LOG, Coordinates, Surface
from hybridsim.studies.replay import replay
from hybridsim.studies.runs import SharedAlone
from hybridsim.studies.sweep.figures import BLOCKS, INTERVALS
from hybridsim.studies.sweep.named_trace import NamedTrace
from hybridsim.studies.sweep.point import point, replayed
from hybridsim.studies.sweep.running import Settled
from hybridsim.traces.trace import Trace


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module")
def found(folder):
    return exploration(folder)


def test_all_caches_that_can_be_installed_are_explored_around_the_scenario(found):
    words = {each.words for each in found.axes[0].choices}
    assert {("bcache", "write-back", ""), ("dm-writecache", "write-back", ""),
            ("open-cas", "write-through", ""), ("page", "write-through", "learned"),
            ("page", "write-through", "lru")} <= words  # fmt: skip
    own = found.scenario(found.own)
    assert (own.cache.kind, own.cache.mode) == ("page", "write-through")
    assert own.cache.admission == own.cache.replacement == "learned"
    assert (own.backing.members, own.replay.speed) == (4, 1.0)


def test_sizes_reach_from_a_hundredth_of_what_the_trace_touches_to_all_of_it(found):
    sizes = [np.exp(each.at) for each in found.axes[1].choices]
    touched = found.about["footprint_bytes"]
    assert sizes[0] <= max(touched / 100, 2**20) < sizes[1]
    assert sizes[-2] < touched <= sizes[-1]
    assert all(1.1 < b / a < 1.4 for a, b in itertools.pairwise(sizes))


def test_at_a_replay_the_figures_and_the_answer_are_those_of_the_replay(found):
    for each in found.replays:
        for quantity in QUANTITIES:
            estimate = found.estimate(quantity.name, each.place)
            assert estimate.value == each.figures[quantity.name]
            assert estimate.is_replayed
        assert found.answer(each.place) == (each.figures["answer"], False)


def test_an_answer_is_worded_as_replay_words_it(found):
    worded = set()
    for each in found.replays:
        low, high = each.figures["forecast.low"], each.figures["forecast.high"]
        certain = is_certain(each.figures["answer"], low, high)
        assert found.is_certain(each.place) == certain
        worded.add((each.figures["answer"], certain))
        stuck = dataclasses.replace(each, figures=each.figures | {"saturated": True})
        assert dataclasses.replace(found, replays=[stuck]).is_certain(each.place)
    assert {("yes", True), ("yes", False)} <= worded
    own = found.answer(found.own)[0]
    row = next(line for line in text(found).splitlines() if line.startswith("page"))
    assert in_table(own, found.is_certain(found.own)) in row


def test_estimates_hold_for_machines_that_were_not_replayed(found):
    assert len({each.place for each in found.checked}) == 40
    held = [each.holds for each in found.checked]
    assert np.mean(held) >= 0.95
    hits = [each for each in found.checked if each.name == "hit.whole"]
    assert np.median([each.off for each in hits]) < 0.01


def test_the_band_is_wide_at_a_cliff_and_narrow_elsewhere(folder):
    wide = exploration(folder, points=40, check=0, caches=["page"], loads=[1.0], members=[4])
    place = list(wide.own)
    halves = {}
    for number, choice in enumerate(wide.axes[1].choices):
        place[1] = number
        estimate = wide.estimate("p99.reads.whole", tuple(place))
        halves[np.exp(choice.at) / 2**20] = (estimate.high - estimate.low) / 2 / estimate.value
    smooth = [wide.estimate("hit.whole", each.place) for each in wide.replays]
    assert all(each.low == each.value for each in smooth)
    assert max(halves.values()) < 1


def test_surfaces_reproduce_a_function_and_state_their_error():
    site = Scenario.default()
    grid, _ = axes(site, 2**30, caches=["page"], policies=["lru"])
    where = Coordinates(grid)
    draw = np.random.default_rng(3)
    places = [tuple(int(draw.integers(len(a.choices))) for a in grid) for _ in range(150)]
    places = list(dict.fromkeys(places))

    def truth(place):
        at = [axis.choices[n].at for axis, n in zip(grid, place)]
        return np.exp(0.3 * np.sin(at[1]) + 0.5 * at[3] + 0.2 * at[4]) * (1 + 0.2 * place[2])

    values = [truth(each) for each in places]
    surface = Surface.of("f", LOG, where, places[:100], values[:100])
    middle, low, high = surface.at(places[100:])
    off = np.abs(middle / values[100:] - 1)
    inside = (low <= values[100:]) & (values[100:] <= high)
    assert np.median(off) < 0.03
    assert (inside | (off < 0.03)).mean() > 0.9
    assert sum(len(each.errors) for each in surface.parts) == 100


def test_noise_makes_the_band_as_wide_as_the_noise():
    grid, _ = axes(Scenario.default(), 2**30, caches=["page"], policies=["lru"], loads=[1.0])
    draw = np.random.default_rng(4)
    places = [tuple(int(draw.integers(len(a.choices))) for a in grid) for _ in range(120)]
    values = np.exp(draw.normal(0, 0.2, len(places)))
    surface = Surface.of("noise", LOG, Coordinates(grid), places[:80], list(values[:80]))
    middle, low, high = surface.at(places[80:])
    inside = (low <= values[80:]) & (values[80:] <= high)
    assert inside.mean() >= 0.9
    assert np.median(np.log(high / middle)) > 0.2


def test_a_figure_that_some_machines_lack_is_unknown_or_in_doubt_near_them(found):
    lacking = [each for each in found.checked if each.name == "warmup"]
    assert any(each.replayed is None for each in found.checked) or lacking
    for each in lacking:
        if each.replayed is None and each.estimate.value is not None:
            assert each.estimate.in_doubt


def test_the_answer_between_replays_is_by_the_rule_of_the_judge(found):
    right, sure = 0, 0
    draw = np.random.default_rng(5)
    for _ in range(150):
        place = tuple(int(draw.integers(len(axis.choices))) for axis in found.axes)
        try:
            made = point(found.trace, "", found.site, values_at(found.axes, place), None)
        except ScenarioError:
            continue
        answer, may_differ = found.answer(place)
        true = made_up(made)["answer"]
        right += answer == true
        sure += not may_differ
        assert answer == true or may_differ
    assert right > 120
    assert sure > 75


def test_a_second_exploration_computes_nothing_and_more_points_add_to_it(found, folder):
    again = exploration(folder)
    assert (again.computed, again.known) == (0, found.computed + found.known)
    assert [each.place for each in again.replays] == [each.place for each in found.replays]
    more = exploration(folder, points=100, check=0)
    assert 0 < more.computed <= 100 - 90


def test_replays_go_where_the_surfaces_are_least_sure(folder):
    few = exploration(folder, points=60, check=0, caches=["page"], policies=["lru"])
    planner = planning.Planner(few.axes, lambda place: True)
    free = planner.drawn({each.place for each in few.replays}, 7)
    surfaces = [few.surfaces["hit.whole"]]
    chosen = planner.doubtful(surfaces, 1, [each.place for each in few.replays], 7)
    halves = surfaces[0].raw(free)[1]
    assert surfaces[0].raw(chosen)[1][0] == pytest.approx(halves.max())


def test_replays_go_between_the_sizes_where_a_figure_jumps_most(found):
    sizes = [2, 8, 14, 20]
    names = [axis.name for axis in found.axes]

    def place(kind, size):
        numbers = list(found.own)
        numbers[names.index(CACHE)], numbers[names.index(SIZE)] = kind, size
        return tuple(numbers)

    known = {place(kind, size): 0.1 * kind for kind in (0, 1) for size in sizes}
    known |= {place(1, 14): 0.5, place(1, 20): 0.6}
    planner = planning.Planner(found.axes, lambda place: True)
    chosen = planner.jumps([known], 2, list(known), 1)
    at = [(each[names.index(CACHE)], each[names.index(SIZE)]) for each in chosen]
    assert at == [(1, 11), (1, 17)]
    full = {place(0, size): float(size) for size in range(4)}  # no size between
    assert planner.jumps([full], 2, [], 1) == []


def test_a_jump_by_size_is_found_beside_what_load_and_disks_do(found):
    names = [axis.name for axis in found.axes]
    cache, size = names.index(CACHE), names.index(SIZE)
    cliff = next(
        n for n, each in enumerate(found.axes[cache].choices) if each.words[1] == "write-back"
    )
    draw = np.random.default_rng(7)
    hits, waits = {}, {}
    for kind, at in itertools.product(range(len(found.axes[cache].choices)), range(0, 24, 4)):
        place = [int(draw.integers(len(axis.choices))) for axis in found.axes]
        place[cache], place[size] = kind, at
        hits[tuple(place)] = 0.02 * at  # nothing to see there
        load = place[names.index("load")] - place[names.index("members")]
        waits[tuple(place)] = 3.0 * load + (8.0 if (kind, at > 10) == (cliff, False) else 0.0)
    planner = planning.Planner(found.axes, lambda place: True)
    chosen = planner.jumps([hits, waits], 1, list(hits), 1)
    assert [(each[cache], each[size]) for each in chosen] == [(cliff, 10)]


def test_a_yes_that_the_capture_itself_may_not_show_is_near_a_border(found):
    place = next(
        place
        for place in itertools.product(*(range(len(axis.choices)) for axis in found.axes))
        if place not in found.by_place and found.answer(place) == ("yes", False)
    )
    little = [
        dataclasses.replace(each, figures={**each.figures, "gain": 1.1}) for each in found.replays
    ]
    assert dataclasses.replace(found, replays=little).answer(place) == ("yes", True)


def test_too_few_replays_for_a_surface_still_answer_where_they_were(tmp_path):
    few = exploration(tmp_path, points=4, check=2, caches=["page"])
    assert few.surfaces == {}
    assert few.checked == []
    assert few.answer(few.own) == (few.by_place[few.own].figures["answer"], False)
    other = few.place(members="8", load="2")
    assert few.estimate("hit.whole", other).value is None
    assert few.answer(other)[0] in ("yes", "no", "unsure")
    assert "page write-back lru" in text(few)


def test_the_first_replay_is_made_however_short_the_time(folder):
    found = exploration(folder, points=90, check=3, seconds=1e-6, loads=[1.5])
    assert [each.place for each in found.replays] == [found.own]
    assert found.ended == OVER


def test_a_time_holds_the_checks_and_the_replays_follow_from_their_number(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    def slow(point):
        now[0] += 1.0
        return made_up(point)

    found = exploration(tmp_path / "a", points=240, check=12, seconds=60.0, compute=slow)
    checks = {each.place for each in found.checked}
    planned = [each.place for each in found.replays if each.place not in checks]
    assert now[0] <= 60
    assert len(checks) == 12
    assert 46 <= len(planned) <= 48
    again = exploration(tmp_path / "b", points=len(planned), check=12)
    assert again.to_dict()["replays"] == found.to_dict()["replays"]
    assert again.ended == ""
    assert "the time of 60 s was over" in " ".join(text(found).split())
    assert "the time of 60 s was over" in of(found.to_dict())


def test_the_replay_that_decides_the_mode_is_not_made_twice(tmp_path):
    load = "gen:hot-spot,span=16MiB,hot=10%,share=90%,rate=150,read=70%,requests=600"
    trace = NamedTrace.here((load,))
    one = explore(trace, points=1, folder=tmp_path, workers=1, caches=["page"], loads=[1])
    assert (one.computed, len(one.replays), one.site.replay.mode) == (1, 1, "open")
    again = point(trace, trace.digest(), one.site, values_at(one.axes, one.own), None)
    assert explored(again) == one.replays[0].figures
    assert one.replays[0].command == again.command


def test_an_interrupt_of_the_replay_that_decides_the_mode_ends_the_exploration(tmp_path):
    def interrupted(point):
        raise KeyboardInterrupt

    with pytest.raises(UsageError, match="interrupted"):
        explore(NamedTrace.here((LOAD,)), folder=tmp_path, workers=1, compute=interrupted)


class Stuck:
    """Two workers, of which one never ends its second point; each other point takes a second."""

    room, lanes, words, link = 4, 2, "two workers", ""

    def __init__(self, now):
        self.now, self.submitted, self.taken, self.dropped = now, [], 0, 0

    def has_code(self, kind):
        return True

    def submit(self, point):
        self.taken += 1
        if self.taken != 2:
            self.submitted.append(point)

    def next(self, timeout_s):
        self.now[0] += 1.0
        if not self.submitted:
            return None
        point = self.submitted.pop(0)
        run = {"seconds": 2.0, "host": "here", "process": 1, "version": "1"}
        return Settled(point, {"figures": made_up(point), "run": run})

    def drop(self):
        self.dropped += 1
        self.submitted.clear()

    def close(self):
        self.submitted.clear()


def test_a_replay_that_does_not_end_is_dropped_when_the_time_is_up(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    workers = Stuck(now)
    monkeypatch.setattr("hybridsim.studies.explore.exploring.crew", lambda *_: workers)
    seen = []
    found = exploration(tmp_path, points=240, check=0, seconds=40.0,
                        report=lambda now, _: seen.append(now))  # fmt: skip
    assert now[0] <= 41
    assert workers.dropped == 1
    assert found.ended == OVER
    assert len(found.replays) == 24  # the first one, and a step but for the one that did not end
    lines = [words(each) for each in seen]
    assert any(", some 3" in each and " in the time" in each for each in lines), lines
    assert lines[-1] == FITTING
    monkeypatch.undo()
    again = exploration(tmp_path, points=25, check=0)
    assert (again.known, again.computed) == (24, 1)


def test_surfaces_and_page_are_part_of_the_time(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    def slow(point):
        now[0] += 1.0
        return made_up(point)

    def slow_surfaces(where, replays, only=()):
        now[0] += (1.0 if only else 3.0) * (len(replays) / 48) ** 2
        return surfaces_of(where, replays, only)

    monkeypatch.setattr("hybridsim.studies.explore.exploring.surfaces_of", slow_surfaces)
    found = exploration(tmp_path, points=240, check=12, seconds=100.0, compute=slow)
    assert 80 <= now[0] <= 101  # within what one replay takes
    assert found.seconds == now[0]
    assert len({each.place for each in found.checked}) >= 5
    assert len(found.replays) >= 60


def test_an_interrupt_gives_the_page_of_what_is_done_and_the_same_command_goes_on(tmp_path):
    left = [30]

    def interrupted(point):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return made_up(point)

    found = exploration(tmp_path, compute=interrupted)
    fewer = exploration(tmp_path / "fewer", points=30, check=0)
    assert found.interrupted
    assert [each.place for each in found.replays] == [each.place for each in fewer.replays]
    assert found.checked == []
    assert "they were interrupted" in " ".join(text(found).split())
    assert "they were interrupted" in of(found.to_dict())
    on = exploration(tmp_path)
    assert on.known == 30
    assert [each.place for each in on.replays[:30]] == [each.place for each in found.replays]


def test_few_replays_know_all_axes(folder):
    few = exploration(folder, points=16, check=0)
    for number, axis in enumerate(few.axes):
        assert len({each.place[number] for each in few.replays}) > min(len(axis.choices), 4) / 2


def test_caches_of_all_kinds_share_what_the_disks_do_alone(tmp_path):
    load = "gen:hot-spot,span=16MiB,hot=10%,share=90%,rate=150,read=70%,requests=600"
    trace, site = NamedTrace.here((load,)), Scenario.default().with_options(mode="open")
    shared = str(tmp_path)
    for kind in ("page", "dm-cache"):
        one = point(trace, trace.digest(), site, {"cache.kind": kind, "cache.size": "4MiB"}, None)
        assert explored(one, shared) == explored(one)
    assert len(list(tmp_path.iterdir())) == 1
    one = point(trace, trace.digest(), site, {"backing.members": 6}, None)
    assert explored(one, shared) == explored(one)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_process_takes_what_another_one_kept(tmp_path):
    here, there = SharedAlone(str(tmp_path)), SharedAlone(str(tmp_path))
    site = Scenario.default()
    load = Trace.read("gen:zipf,requests=300,span=16MiB,rate=100")
    first = replay(load, site, alone=here)
    [file] = tmp_path.iterdir()
    which = here.which(site, first.scenario["mode"], first.trace["volume_bytes"])
    ran = there.get(which)
    assert there.get(which + " ") is None
    assert ran.collector.last_done_ns == first.plain.last_done_ns
    before = file.read_bytes()
    again = replay(load, site, alone=there)
    assert again.to_dict() == first.to_dict()
    assert file.read_bytes() == before


def test_places_are_named_and_wrong_names_refused(found):
    place = found.place(cache="bcache write-back", members="8")
    assert found.axes[0].choices[place[0]].name == "bcache write-back"
    assert place[1] == found.own[1]
    with pytest.raises(UsageError, match=r"no axis 'disks': cache, size"):
        found.place(disks="8")
    with pytest.raises(UsageError, match=r"members: no choice '5': 4, 6, 8"):
        found.place(members="5")


def test_wrong_choices_are_refused(folder):
    with pytest.raises(UsageError, match="the smaller size comes first"):
        exploration(folder, sizes="2GiB..1GiB")
    with pytest.raises(UsageError, match="--size 1parsec"):
        exploration(folder, sizes="1parsec")
    with pytest.raises(UsageError, match="factors above 0"):
        exploration(folder, loads=[-1.0])
    with pytest.raises(ScenarioError, match="members"):
        exploration(folder, members=[1])
    with pytest.raises(ScenarioError, match="no-such"):
        exploration(folder, ssds=["no-such"])
    with pytest.raises(UsageError, match="save standard input first"):
        explore(NamedTrace.here(("-",)))


def test_the_frame_has_a_row_per_replay(found):
    frame = found.frame()
    assert len(frame) == len(found.replays)
    assert list(frame.columns[:6]) == ["cache", "size", "ssd", "members", "load", "answer"]
    assert frame["hit.whole"].between(0, 1).all()


def test_the_document_is_valid_and_complete(found):
    document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    Draft202012Validator(schemas.load("explore")).validate(document)
    assert len(document["replays"]) == len(found.replays)
    assert {each["name"] for each in document["checked"]} >= {"hit.whole", "p99.reads.whole"}


def test_the_parts_of_a_command_make_the_command_of_each_replay(found):
    document = found.to_dict()
    for each in found.replays:
        parts = [axis["choices"][n]["options"] for axis, n in zip(document["axes"], each.place)]
        words = shlex.split(" ".join([document["command"]["base"], *parts]))
        other = shlex.split(each.command)
        assert sorted(words) == sorted(other)
        assert words[: len(words) - len(shlex.split(" ".join(parts)))] == [
            *other[:3], "--mode", "open"]  # fmt: skip


def test_options_of_the_user_stay_in_the_command(folder):
    site = Scenario.default().with_values({"cache.page": "128KiB", "backing.chunk": "128KiB"})
    found = exploration(folder, points=9, check=0, site=site, caches=["page"], loads=[1.0])
    base = found.to_dict()["command"]["base"]
    assert "--set cache.page=128KiB" in base
    assert "--set backing.chunk=128KiB" in base
    assert "cache.size" not in base


def test_costs_follow_from_the_document(found):
    document = found.to_dict()
    price = found.prices.price
    for cache, ssd in itertools.product(range(len(found.axes[0].choices)), range(2)):
        place = (cache, found.own[1], ssd, *found.own[3:])
        site = found.scenario(place)
        one, drive = (document["axes"][a]["choices"][place[a]] for a in (0, 2))
        assert one["copies"] * drive["gb"] * price.ssd_per_gb == pytest.approx(
            cache_cost(site, price)
        )


def test_the_page_is_one_small_file_that_loads_nothing(found):
    page = of(found.to_dict())
    assert len(page.encode()) < 1.5e6
    assert "default-src &#39;none&#39;" in page
    assert "src=" not in page.replace("img-src", "").replace("script-src", "")
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page.split("</style>")[1]


def test_the_summary_has_a_row_for_each_cache_and_fits_a_terminal(found):
    lines = text(found, ascii_only=True).splitlines()
    assert max(map(len, lines)) <= 80
    for choice in found.axes[0].choices:
        assert any(line.startswith(choice.name) for line in lines)
    assert any("had" in line or "band" in line for line in lines)


def test_bands_that_are_too_wide_for_an_answer_say_so_and_what_to_do(found):
    assert "too wide" not in bands({"gain": 0.3, "hit.whole": 0.9})
    assert "too wide for answers between replays" in bands({"gain": 0.6})
    wide = dataclasses.replace(found)
    wide.__dict__["bands"] = {"gain": 52.5}
    assert "more --points" in " ".join(text(wide).split())
    assert "more --points" in of(wide.to_dict())


def test_the_command_writes_page_and_json(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hybridsim.studies.explore.exploring.explored", made_up, raising=True)
    line = ["explore", LOAD, "--points", "20", "--check", "3", "--cache", "page", "--mode", "open",
            "--workers", "1", "-o", "w.html", "--json", "w.json"]  # fmt: skip
    done = CliRunner().invoke(cli, line, catch_exceptions=False)
    assert done.exit_code == 0
    document = json.loads((tmp_path / "w.json").read_text())
    assert document["schema"] == "hybridsim.explore/1"
    assert (tmp_path / "w.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["--time", "0s"], "--time 0s"),
        (["--time", "soon"], "--time soon"),
        (["--members", "few"], "--members few: must be numbers"),
        (["--size", "9GiB..1GiB"], "--size 9GiB..1GiB"),
        (["-o", "no/such/folder.html"], "no such folder"),
    ],
)
def test_wrong_options_are_one_clear_error(more, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Exception, match=why):
        CliRunner().invoke(
            cli, ["explore", LOAD, *more], catch_exceptions=False, standalone_mode=False
        )


def test_lines_come_first_the_scenario_and_each_cache_at_its_ends(found):
    places = planning.Planner(found.axes, lambda place: True).lines()
    assert places[0] == found.own
    cache, size = ([a.name for a in found.axes].index(name) for name in (CACHE, SIZE))
    for number in range(len(found.axes[cache].choices)):
        of_one = {each[size] for each in places if each[cache] == number}
        assert {0, len(found.axes[size].choices) - 1} <= of_one


def places_of_lru(number, seed):
    """Return the axes of a page cache with LRU, some of its places, and the draws that follow."""
    grid, _ = axes(Scenario.default(), 2**30, caches=["page"], policies=["lru"])
    draw = np.random.default_rng(seed)
    drawn = (tuple(int(draw.integers(len(a.choices))) for a in grid) for _ in range(number))
    return grid, list(dict.fromkeys(drawn)), draw


def test_a_mode_with_cliffs_does_not_widen_the_bands_of_another():
    grid, places, draw = places_of_lru(160, seed=5)
    where = Coordinates(grid)
    modes = [each.words[1] for each in grid[0].choices]
    smooth = [0.3 + 0.01 * place[1] for place in places]
    rough = [
        value + draw.normal(0, 0.1) * (modes[place[0]] == "write-back")
        for value, place in zip(smooth, places)
    ]
    surface = Surface.of("f", LOG, where, places, rough)
    of = surface.to_dict()
    back, through = (of["factors"][modes.index(m)] for m in ("write-back", "write-through"))
    assert of["factor"] == max(back, through)
    assert through < back
    few = Surface.of("f", LOG, where, places[:8], rough[:8]).to_dict()  # too few of each mode
    assert set(few["factors"]) == {few["factor"]}


def test_each_mode_has_a_process_of_its_own_where_they_follow_other_rules():
    grid, places, _ = places_of_lru(180, seed=6)
    where = Coordinates(grid)
    modes = [each.words[1] for each in grid[0].choices]

    def waits(place):  # writes wait for the disks
        return 0.1 * place[3] + 0.2 * place[4]

    def cliffs(place):  # or do not, until the cache is full
        return 3.0 * (place[1] % 7 < 3)

    both = [cliffs(p) if modes[p[0]] == "write-back" else waits(p) for p in places]
    apart = Surface.of("f", LOG, where, places[:140], [math.exp(each) for each in both[:140]])
    assert len(apart.parts) == 2
    assert apart.to_dict()["part_of"] == [modes.index(each) for each in modes]
    through = [n for n in range(140, len(places)) if modes[places[n][0]] == "write-through"]
    middle = np.log(apart.at([places[n] for n in through])[0])
    assert np.abs(middle - [both[n] for n in through]).max() < 0.05
    alike = Surface.of("g", LOG, where, places, [math.exp(waits(each)) for each in places])
    assert len(alike.parts) == 1
    assert set(alike.to_dict()["part_of"]) == {0}
    taken = Surface.of("h", LOG, where, places, [2.0 + waits(each) for each in places], apart)
    assert [each.parameters.tolist() for each in taken.parts] == [
        each.parameters.tolist() for each in apart.parts
    ]


def test_sizes_are_apart_by_what_lru_serves_at_them():
    grid, places, _ = places_of_lru(120, seed=7)
    load = "gen:hot-spot,span=256MiB,hot=10%,share=90%,requests=3000"
    sizes = with_served(grid[1], Trace.read(load), 2**16, 3000)
    assert len(sizes.served) == len(sizes.choices)
    assert list(sizes.served) == sorted(sizes.served)
    cliff = dataclasses.replace(
        sizes, served=tuple(float(n >= 12) for n in range(len(sizes.choices)))
    )

    def missed(axis):
        where = Coordinates([grid[0], axis, *grid[2:]])
        values = [0.1 + 0.8 * (place[1] >= 12) + 0.01 * place[4] for place in places]
        surface = Surface.of("f", LINEAR, where, places[:60], values[:60])
        return np.abs(surface.at(places[60:])[0] - values[60:]).max()

    assert missed(cliff) < 0.02 < missed(grid[1])


def test_many_replays_have_the_disks_and_the_load_of_the_scenario(folder):
    found = exploration(folder, points=240, check=0)
    own = [each.place[2:] == found.own[2:] for each in found.replays[96:]]
    assert 0.25 < np.mean(own) < 0.6


def test_a_replay_of_an_exploration_has_no_intervals_of_its_figures(tmp_path):
    load = "gen:hot-spot,span=16MiB,hot=10%,share=90%,rate=150,read=70%,requests=600"
    trace, site = NamedTrace.here((load,)), Scenario.default().with_options(mode="open")
    one = point(trace, trace.digest(), site, {"cache.size": "4MiB"}, None)
    without, with_them = explored(one), replayed(one)
    assert INTERVALS not in without
    assert with_them[INTERVALS]
    shared = set(with_them) - {INTERVALS, BLOCKS}
    assert {name: without[name] for name in shared} == {name: with_them[name] for name in shared}
