"""Figures of a whole thinned capture from its minutes in full: weights, contents, errors."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from hybridsim import Scenario, Trace, replay
from hybridsim.answers.intervals import Interval
from hybridsim.answers.metrics import BASE_NS
from hybridsim.answers.requirements import Checked, parse
from hybridsim.cli import cli
from hybridsim.foundation.errors import TraceError, UsageError
from hybridsim.requests.pages import accesses
from hybridsim.requests.rows import no_requests
from hybridsim.show import schemas
from hybridsim.show import thinned as shown
from hybridsim.studies.estimate import estimate as module
from hybridsim.studies.estimate import minutes as minutes_module
from hybridsim.studies.estimate.contents import Contents, Touched, accesses_of
from hybridsim.studies.estimate.estimate import asked, replay_sample, smallest, suited, worth
from hybridsim.studies.estimate.minutes import (
    LED_BY,
    Figure,
    Minute,
    Minutes,
    apart,
    calibrated,
    latest,
)
from hybridsim.studies.hits import Cache
from hybridsim.studies.record_thinned import thin
from hybridsim.traces.thinned.layout import Role
from hybridsim.traces.thinned.thinner import MINUTE_NS, Settings

LOAD = "gen:zipf,duration=20h,rate=0.2,span=256MiB,burst_every=6h,burst_lasts=1h,burst_rate=1"
PAGE = 1 << 16
SITE = Scenario.default().with_options(
    cache_size="32MiB", admission="always", replacement="lru", sequential_cutoff="0B", mode="open"
)


def pages_of(rows):
    return Touched.of(accesses_of(rows, PAGE), PAGE, PAGE)


@pytest.fixture(scope="module")
def capture(tmp_path_factory):
    path = tmp_path_factory.mktemp("thinned") / "a.thin"
    thin(Trace.read(LOAD), path, Settings(rate=0.5, region_bytes=PAGE))
    return Trace.read(path)


@pytest.fixture(scope="module")
def answer(capture):
    return replay_sample(capture, SITE, [parse("p99<1s"), parse("dwpd<1"), parse("hit>99%")])


class TestMinutes:
    def test_calibrated_weights_have_the_known_totals(self):
        random = np.random.default_rng(1)
        columns = np.column_stack([np.ones(40), random.random((40, 2))])
        wanted = np.array([400.0, 210.0, 190.0])
        weights = calibrated(np.full(40, 10.0), columns, wanted)
        assert weights @ columns == pytest.approx(wanted)
        assert (weights > 0).all()

    def test_weighted_minutes_stand_for_all_minutes_and_requests(self, capture):
        minutes = Minutes.of(capture)
        totals = minutes.totals(np.zeros(len(minutes.numbers)))
        weights = minutes.weights(totals)
        assert weights.sum() == pytest.approx(len(minutes.numbers))
        assert weights @ minutes.requests[minutes.at] == pytest.approx(minutes.requests.sum())
        assert (weights[minutes.is_worst] == 1).all()

    def test_a_kind_of_load_that_is_missing_is_noticed(self, capture):
        minutes = Minutes.of(capture)
        rare = np.where(np.isin(np.arange(len(minutes.numbers)), minutes.at), 0, 1 << 40)
        totals = replace(minutes, bytes=rare).totals(np.zeros(len(rare)))
        assert minutes.imbalance(totals, minutes.weights(totals)) == pytest.approx(1)

    def test_a_capture_that_is_too_short_is_refused(self, tmp_path):
        thin(Trace.read("gen:zipf,duration=2h,rate=1"), tmp_path / "a", Settings())
        with pytest.raises(TraceError, match=r"typical minutes? in full.*--device worst"):
            Minutes.of(Trace.read(tmp_path / "a"))


class TestContents:
    def test_a_sample_of_all_knows_what_is_cached(self, tmp_path):
        path = tmp_path / "a"
        thin(Trace.read(LOAD), path, Settings(region_bytes=PAGE))
        trace = Trace.read(path)
        stretch, rows = list(trace.in_full())[-1]
        minute = stretch.begin_ns // MINUTE_NS
        contents = Contents(trace, PAGE, {minute}, [Cache("always", "lru", 300, PAGE)])
        pages, warm = contents.filled(0, 300, rows, minute, 1 << 28, 1)
        used = []
        for part in accesses(Trace.read(LOAD), PAGE):
            before = int(np.searchsorted(part.arrival_ns, stretch.begin_ns))
            used += part.numbers[: part.ends[before - 1] if before else 0].tolist()
        cached = set(list(dict.fromkeys(reversed(used)))[:300])  # LRU holds the last ones used
        touched = set(pages_of(rows).numbers.tolist())
        assert len(warm.kept) == len(set(warm.kept.tolist())) == pages <= 300
        assert set(warm.kept.tolist()) & touched == cached & touched

    def test_pages_that_are_not_sampled_are_drawn_with_the_shares_of_those_that_are(self, capture):
        stretches = list(capture.in_full())
        wanted = {one.begin_ns // MINUTE_NS for one, _ in stretches}
        contents = Contents(capture, PAGE, wanted, [Cache("always", "lru", 256, PAGE)])
        sampled, others = [], []
        for one, rows in stretches:
            minute = one.begin_ns // MINUTE_NS
            _, warm = contents.filled(0, 512, rows, minute, 1 << 28, 1)
            touched = pages_of(rows)
            kept = np.isin(touched.numbers, warm.kept)
            known = np.isin(touched.numbers, contents._kept[minute].numbers)
            sampled += kept[known].tolist()
            others += kept[~known].tolist()
        assert len(others) > 400
        assert np.mean(others) == pytest.approx(np.mean(sampled), abs=0.08)

    def test_requests_of_several_regions_hit_as_often_as_in_full(self, tmp_path):
        """Their pages are cached together, and the sample has only parts of them."""
        load = LOAD.replace("zipf,", "zipf,size=256KiB,").replace("256MiB", "2GiB")
        thin(Trace.read(load), tmp_path / "a", Settings(rate=0.3, region_bytes=PAGE))
        site = SITE.with_options(cache_size="512MiB")
        result, (one,) = (
            replay(Trace.read(load), site),
            module.estimate(Trace.read(tmp_path / "a"), [site]),
        )
        known = result.phases["whole"].figures
        assert 0.2 < known.hit_ratio < 0.8
        assert one.cached["hit_ratio"].low <= known.hit_ratio <= one.cached["hit_ratio"].high
        assert one.cached["hit_ratio"].error < 0.15

    def test_the_part_of_a_cache_that_is_simulated_serves_as_all_of_it(self, capture, monkeypatch):
        _, rows = max(capture.in_full(), key=lambda one: one[1].rows)
        contents = Contents(capture, PAGE, set(), [Cache("always", "lru", 64, PAGE)])
        numbers = accesses_of(rows, PAGE).numbers.tolist()

        def hits(minute, spare):
            """Return the hits of an LRU cache before one minute in a minute like another."""
            monkeypatch.setattr(contents, "_spare", [spare])
            pages, warm = contents.filled(0, 128, rows, minute, 1 << 28, 1)
            order, found = dict.fromkeys(warm.kept.tolist()), 0
            for each in numbers:
                found += each in order
                order.pop(each, None)
                order[each] = None
                if len(order) > pages:
                    del order[next(iter(order))]
            return found, pages

        minutes = range(200)
        part, whole = (np.array([hits(minute, spare) for minute in minutes]).mean(axis=0)
                       for spare in (1, 1 << 40))  # fmt: skip
        assert part[1] < whole[1] == 128
        assert part[0] == pytest.approx(whole[0], abs=0.01 * len(numbers))


class TestMinute:
    def test_requests_before_it_end_where_its_figures_begin(self, capture):
        first, second = (rows for _, rows in list(capture.in_full())[:2])
        before = latest(latest(no_requests(), first), first)
        assert before.rows == min(2 * first.rows, LED_BY)
        minute = Minute(second, before, 1.0, "a minute")
        arrival = minute.rows.arrival_ns
        assert (np.diff(arrival) >= 0).all()
        assert arrival[0] == 0
        assert arrival[minute.led_by - 1] < minute.begin_ns == arrival[minute.led_by]
        assert (minute.begin_ns // BASE_NS).bit_count() == 1  # it stays the border of two bins
        assert minute.rows.rows == before.rows + second.rows

    def test_before_a_cache_they_access_other_pages(self, capture):
        first, second = (rows for _, rows in list(capture.in_full())[:2])
        numbers = pages_of(second).numbers
        found = apart(latest(no_requests(), first), numbers, PAGE)
        assert 0 < found.rows < first.rows
        assert not set(pages_of(found).numbers.tolist()) & set(numbers.tolist())

    def test_disks_have_data_in_their_buffers(self, tmp_path):
        """Their buffers hold a tenth of the data; without requests before it a minute is slow."""
        load = "gen:zipf,duration=20h,rate=0.5,span=1GiB,theta=0.7"
        thin(Trace.read(load), tmp_path / "a", Settings(rate=0.5, region_bytes=PAGE))
        site = SITE.with_options(cache_size="64MiB")
        result, (one,) = (
            replay(Trace.read(load), site),
            module.estimate(Trace.read(tmp_path / "a"), [site]),
        )
        known = result.phases["none_whole"].figures.reads.mean_ns
        assert one.alone["read_mean_ns"].value == pytest.approx(known, rel=0.05)


class TestAnswer:
    def test_the_figures_of_the_full_replay_are_within_the_errors(self, tmp_path):
        # Far more data than the disks' own buffers hold, which are empty at the begin of a minute.
        trace = Trace.read("gen:zipf,duration=20h,rate=0.3,span=16GiB,theta=1.1")
        thin(trace, tmp_path / "a", Settings(rate=0.5, region_bytes=PAGE))
        site = SITE.with_options(cache_size="256MiB")
        result, (one,) = replay(trace, site), module.estimate(Trace.read(tmp_path / "a"), [site])
        for found, name in ((one.alone, "none_whole"), (one.cached, "whole")):
            figures = result.phases[name].figures
            for key, value in (
                ("read_mean_ns", figures.reads.mean_ns), ("write_mean_ns", figures.writes.mean_ns),
                ("read_p99_ns", figures.reads.percentile(99)), ("hit_ratio", figures.hit_ratio),
            ):  # fmt: skip
                assert found[key].low <= value <= found[key].high, (name, key)
                assert found[key].error < 0.5 * max(found[key].value, 1e-9) or value == 0

    def test_it_matches_its_schema_and_fits_the_screen(self, answer):
        schema = Draft202012Validator(schemas.load("estimate"))
        assert not [*schema.iter_errors(json.loads(json.dumps(answer.to_dict())))]
        text = shown.estimate_text(answer)
        assert max(map(len, text.splitlines())) <= 80
        assert "worst hour" in text
        assert "✓ p99<1s" in text
        assert "✗ hit>99%" in text

    def test_a_gain_is_judged_by_its_interval(self):
        found = [worth(Figure(*each)) for each in ((2, 0.1), (1.0, 0.1), (1.2, 0.2))]
        assert found == ["yes", "no", "unsure"]

    def test_sure_comes_before_met(self):
        def row(value, high):
            interval = Interval(value, 0.0, high, ("minutes",))
            return [Checked(parse("mean<5ms"), value, value < 5e6, "", interval)]

        fails, meets, surely = row(6e6, 7e6), row(4e6, 6e6), row(3e6, 4e6)
        assert smallest([fails, meets, surely]) == 2
        assert smallest([fails, meets]) == 1
        assert smallest([fails]) is None

    @pytest.mark.parametrize(("options", "error"), [
        ({"cache": "bcache"}, "bcache"), ({"cache_mode": "write-back"}, "cache.mode"),
        ({"admission": "learned"}, "policy learned"),
        ({"sequential_cutoff": "1MiB"}, "sequential_cutoff"),
    ])  # fmt: skip
    def test_caches_that_a_sample_does_not_know_are_refused(self, capture, options, error):
        with pytest.raises(UsageError, match=error):
            suited(Scenario.default().with_options(**options), capture)

    def test_unspecified_policies_are_those_that_can_be_sampled(self, capture):
        cache = suited(Scenario.default(), capture).cache
        assert (cache.admission, cache.replacement) == ("always", "lru")

    @pytest.mark.parametrize("text", ["warmup<1h", "p99.cold<1s", "iops>5"])
    def test_figures_that_minutes_do_not_have_are_refused(self, capture, text):
        with pytest.raises(UsageError, match="of all of it"):
            asked(capture, [parse(text)])

    def test_options_for_all_requests_are_refused(self, capture):
        done = CliRunner().invoke(cli, ["replay", capture.name, "--save-cache", "x.npz"])
        assert done.exit_code
        assert "--save-cache is not answered" in str(done.exception) + done.output

    @pytest.mark.parametrize(("late", "mode"), [(0.9, "think"), (0.1, "open")])
    def test_think_times_if_the_disks_alone_do_not_keep_up(self, capture, monkeypatch, late, mode):
        modes = []

        def run(job, at, minute, ran, scenario, pages, warm):
            ran.count[at] = 1
            ran.is_late[at] = at < late * len(ran.is_late)
            modes.append((job.mode, ran))

        monkeypatch.setattr(module, "UNKNOWN", -2)  # all times of completion are known
        monkeypatch.setattr(module.Job, "_run", run)
        found = module.estimate(capture, [SITE.with_options(mode="auto")])
        assert [each.mode for each in found] == [mode]
        used = [one for one, _ in modes]
        number = len(Minutes.of(capture).stretches)
        assert used[: number + 1] == ["open"] * number + [mode]
        assert set(used[number:]) == {mode}  # no cache is replayed in the other mode

    def test_the_number_of_replayed_requests_is_limited(self, capture, monkeypatch):
        every = Minutes.of(capture)
        some = int(every.requests[every.at].sum()) // 4
        monkeypatch.setattr(minutes_module, "TYPICAL_MIN", 3)
        monkeypatch.setattr(minutes_module, "TYPICAL_REQUESTS", some)
        monkeypatch.setattr(minutes_module, "WORST_REQUESTS", some)
        less = Minutes.of(capture)
        requests = less.requests[less.at]
        largest = int(every.requests[every.at].max())
        for mine in (less.is_worst, ~less.is_worst):
            assert some - largest < requests[mine].sum() <= some
        assert {one.begin_ns for one in less.stretches} < {one.begin_ns for one in every.stretches}
        worst, ranks = less.is_worst, [one.rank for one in less.stretches]
        others = [one for one in every.stretches if one not in less.stretches]
        assert max(np.array(ranks)[~worst]) < min(
            one.rank for one in others if one.roles & Role.TYPICAL
        )
