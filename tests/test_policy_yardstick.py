"""The yardstick of policies, benchmarks/policies.py, on a trace of seconds."""

import ast
import importlib
import json
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
PAGE = 64 * 1024
SHARES = ("0.05", "0.2")
NAMES = ("lru", "s3-fifo", "LARC", "learned", "belady")


@pytest.fixture(scope="module")
def yardstick():
    """Its modules, importable as from a script in that folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        names = ("bound", "changed", "curves", "kept", "refit", "scans", "soon", "table", "traces")
        names += ("unseen",)
        names = ("ablations", "policies", *(f"policy_{name}" for name in names))
        yield {name: importlib.import_module(name) for name in names}


@pytest.fixture(scope="module")
def traces(yardstick):
    """A small hot spot, marked as not used for tuning."""
    maker = yardstick["policy_traces"]
    return [maker.Traced("bursts", False, (PAGE,), lambda: maker.hot_spot("bursts", 2, 4000))]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return tmp_path_factory.mktemp("yardstick") / "results.jsonl"


def printed(yardstick, traces, results, capsys, *more):
    """Return the output of a run of the script."""
    chosen = [word for name in NAMES for word in ("--policy", name)]
    chosen += [word for share in SHARES for word in ("--share", share)]
    yardstick["policies"].main([*chosen, "--results", str(results), *more], traces)
    return capsys.readouterr().out


@pytest.fixture
def rows(yardstick, traces, results, capsys):
    lines = printed(yardstick, traces, results, capsys, "--json").splitlines()
    return [json.loads(line) for line in lines]


def test_hits_and_misses_add_up_and_all_policies_get_the_same_accesses(rows):
    runs = [row for row in rows if row["level"] == "hits"]
    assert {row["policy"] for row in runs} == set(NAMES)
    assert len(runs) == len(NAMES) * len(SHARES)
    assert len({(row["page_accesses"], row["requests"]) for row in runs}) == 1
    for row in runs:
        misses = row["page_accesses"] - row["page_hits"]
        assert 0 < row["page_hits"] < row["page_accesses"]
        assert 0 < row["fills"] <= misses
        if row["policy"] in ("lru", "s3-fifo", "belady"):  # policies that admit every miss
            assert row["fills"] == misses


def test_a_policy_of_the_library_is_counted_as_ours_is(
    yardstick, traces, rows, results, capsys, monkeypatch
):
    """With the hits of a plain LRU in place of the library's."""

    def plain_lru(kind, pages, ids):
        held, hits = OrderedDict(), []
        for page in ids.tolist():
            hits.append(page in held)
            held[page] = None
            held.move_to_end(page)
            if len(held) > pages:
                held.popitem(last=False)
        return np.array(hits, np.uint8)

    runs = importlib.import_module("policy_runs")
    monkeypatch.setattr(runs, "library_hits", plain_lru)
    monkeypatch.setattr(runs, "library_version", lambda: "none")
    named = ("--anchors", "--policy", "libCacheSim LRB", "--policy", "lru", "--json")
    shares = [word for share in SHARES for word in ("--share", share)]
    yardstick["policies"].main([*named, *shares, "--results", str(results)], traces)
    printed_rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    by_policy = {(row["policy"], row["share"]): row for row in printed_rows if "fills" in row}
    for share in map(float, SHARES):
        ours, its = by_policy["lru", share], by_policy["libCacheSim LRB", share]
        differ = {name for name in ours if ours[name] != its[name]}
        assert differ <= {"key", "policy", "cpu_s"}


def test_the_newest_of_the_library_are_baselines(yardstick):
    assert {"libCacheSim 3L-Cache", "libCacheSim w-tinylfu"} <= yardstick["policy_table"].BASELINES


def test_a_constant_is_chosen_without_the_family_that_is_left_out(yardstick, monkeypatch):
    refit = yardstick["policy_refit"]
    constants = {"a": ("", "", {"1": "", "2": ""}), "b": ("", "", {"1": ""})}
    monkeypatch.setattr(refit, "CONSTANTS", constants)
    gains = {
        "a: 1": {"x": -0.3, "y": 0.01, "z": 0.01},
        "a: 2": {"x": 0.0, "y": -0.01, "z": 0.0},
        "b: 1": {"x": 0.0, "y": -0.0005, "z": -0.0005},
    }
    assert refit.chosen(gains, "") == ("a: 1",)
    assert refit.chosen(gains, "x") == ("a: 2",)


def test_every_candidate_of_the_refit_changes_a_line_that_exists(yardstick):
    refit, changed = yardstick["policy_refit"], yardstick["policy_changed"].changed
    assert not changed(refit.SHIPPED)
    parts = refit.parts()
    assert all(map(changed, parts.values()))
    _, patches = refit.joined(tuple(parts)[:1] + tuple(parts)[-1:])
    assert len(changed(patches)) == 2


def test_windows_after_a_scan_have_the_load_alone(yardstick):
    """A load of one page in a cache of one: the first access after each scan misses."""
    scans, traces = yardstick["policy_scans"], yardstick["policy_traces"]
    count = 300_000
    at, one = np.arange(count), np.zeros(count, np.int64)
    load = traces._requests(at, one > 0, one, one + 4096)
    trace = scans.scanned(load, (4096,), 128 << 10)
    assert trace.pages == {4096: 1}
    assert trace.rows.rows == count + len(scans.SCANS_AT)
    is_scan = trace.rows.offset_bytes > 0
    for begin, end in zip(trace.begins, trace.ends):
        assert is_scan[begin]
        assert is_scan[begin:end].sum() == 1
        assert not is_scan[end : end + 20_000].any()
    lru = next(each for each in scans.POLICIES if each.name == "lru")
    assert scans.curve(trace, 4096, 1.0, lru) == [1, 1 - 1 / scans.WINDOW, *[1] * 9]


def test_belady_has_the_most_hits_of_policies_that_admit_every_miss(rows):
    for share in map(float, SHARES):
        hits = {r["policy"]: r["page_hits"] for r in rows if r["share"] == share and "fills" in r}
        assert hits["belady"] >= max(hits["lru"], hits["s3-fifo"])


def test_no_policy_is_above_the_bound_at_any_price(rows):
    """Value is hits - price x fills; the bound holds for any admission, Belady's included."""
    for bound in (row for row in rows if row["level"] == "bound"):
        for row in rows:
            if row["level"] == "hits" and row["share"] == bound["share"]:
                for price, bound_value in bound["bounds"]:
                    assert row["page_hits"] - price * row["fills"] <= bound_value


def best_by_trial(ids, pages, price):
    """Return the maximum value over all choices of resident pages after each access."""
    values = {frozenset(): 0.0}
    for page in ids:
        following = {}
        for held, value in values.items():
            value += page in held
            kept = [held, held - {page}]
            reached = [(one, value) for one in kept]
            if page not in held:
                reached += [(held - {out} | {page}, value - price) for out in held]
                if len(held) < pages:
                    reached.append((held | {page}, value - price))
            for one, worth in reached:
                following[one] = max(worth, following.get(one, -np.inf))
        values = following
    return max(values.values())


@pytest.mark.parametrize("price", [0.0, 0.3, 1.0, 2.5])
def test_the_bound_is_tight_above_the_exhaustive_maximum(yardstick, price):
    module = yardstick["policy_bound"]
    ids = np.random.default_rng(7).zipf(1.5, 60).clip(max=6).astype(np.int32) - 1
    for pages in (1, 2, 3):
        best = best_by_trial(ids.tolist(), pages, price)
        bound = module.bound(module.gaps(ids), pages, price)
        assert best - 1e-6 <= bound <= 1.2 * best + 2


def test_a_second_run_computes_nothing_and_prints_the_same(
    yardstick, traces, results, rows, capsys, monkeypatch
):
    first = printed(yardstick, traces, results, capsys)
    size = results.stat().st_size
    monkeypatch.delattr("policy_runs.Stream.run")
    assert printed(yardstick, traces, results, capsys) == first
    assert results.stat().st_size == size
    for policy in NAMES:
        assert policy in first
    assert "disk time at most the best baseline's + 2 %" in first


def test_full_timing_replays_every_request(yardstick, traces, results, capsys):
    arguments = ("--timed", "--policy", "learned", "--json", "--results", str(results))
    yardstick["policies"].main([*arguments, "--share", "0.1"], traces)
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (timed,) = [row for row in rows if row["level"] == "timed"]
    (counted,) = [row for row in rows if row["level"] == "hits"]
    assert timed["requests"] == counted["requests"]
    assert timed["disk_ns"] > 0
    assert 0 < timed["mean_ns"] < timed["p99_ns"]
    assert 0 < timed["hit_ratio"] < 1


def held_row(policy, fills, misses):
    """Return a run limited to fills of 5 % of 100,000 page accesses, in a cache of 400 pages."""
    return {
        "trace": "t", "is_tuned": False, "page_bytes": PAGE, "share": 0.1, "level": "fills <= 5%",
        "policy": policy, "pages": 400, "page_accesses": 100_000, "page_hits": 100_000 - misses,
        "requests": 100_000, "request_hits": 100_000 - misses, "fills": fills, "re_reads": fills,
        "mean_bytes": 4096.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fills", "verdicts"),
    [
        (5500, ["met", "met", "met"]),  # 5,000, plus the initial 400 fills and 100 saved tokens
        (5501, ["missed", "met", "met"]),
        (1000, ["met", "met", "met"]),
    ],
)
def test_the_budget_row_checks_fills_and_savings(yardstick, fills, verdicts):
    table = yardstick["policy_table"]
    rows = [held_row("LARC", 2000, 50_000), held_row("learned", fills, 40_000)]
    lines = list(table.within(table.cells(rows, "fills <= 5%"), "5%"))
    assert [line.split()[0] for line in lines] == verdicts


def test_a_policy_with_more_misses_misses_the_lowest_criterion(yardstick):
    table = yardstick["policy_table"]
    rows = [held_row("LARC", 2000, 50_000), held_row("learned", 2000, 50_200)]
    lines = list(table.within(table.cells(rows, "fills <= 5%"), "5%"))
    assert [line.split()[0] for line in lines] == ["met", "missed", "met"]


def test_moved_regions_are_requested_from_their_move_on(yardstick):
    maker = yardstick["policy_traces"]
    requests = 40_000
    regions = maker.hot_spot("moving", 2, requests).offset_bytes // maker.REGION
    moves = maker.hot_spot_moves(2, requests)
    assert 150 < len(moves.requests) <= maker.MOVES
    before = after = 0
    for at, region in zip(moves.requests, moves.regions):
        before += (regions[:at][-2000:] == region).mean()
        after += (regions[at:][:2000] == region).mean()
    assert after > 10 * before > 0


class Holding:
    """A cache that holds the even pages."""

    def holds(self, ids):
        return ids % 2 == 0


def test_hits_of_hot_regions_are_counted_by_age_of_the_region(yardstick):
    """Regions of two pages, windows of one request: region 1 is hot from request 1 on, 5 from 2."""
    curves = yardstick["policy_curves"]
    from hybridsim.requests.pages import Accesses

    def window(*pages):
        numbers = np.array(pages)
        return numbers, Accesses(numbers, np.array([len(pages)]), *[np.zeros(1, np.int64)] * 4)

    windows = [window(2), window(2, 0, 0), window(3, 10, 8), window(2, 11), window(2, 2)]
    moves = curves.Moves(np.array([1, 2]), np.array([1, 5]), 2 * PAGE, 2)
    followed = curves.Followed(moves, windows, PAGE)
    counts = followed.empty()
    for number, (ids, _) in enumerate(windows):
        followed.add(counts, number, ids, Holding())
    # At age 0 pages 2 and 10, both resident; at age 1 pages 3 and 11, neither; no later ages.
    assert counts.tolist() == [[2, 2], [2, 0]]
    assert followed.curve(counts) == [1, 0]


def test_only_complete_moves_of_a_warm_cache_count(yardstick):
    at = np.array([5, 20, 60, 95])
    moves = yardstick["policy_curves"].Moves(at, at, PAGE, 10).seen_in(100)
    assert moves.requests.tolist() == moves.regions.tolist() == [20, 60]


def soon_row(policy, curve, followed=None):
    row = {"policy": policy, "curve": curve, "t90": None}
    return row | ({"followed": followed, "window": 400} if followed else {})


def rising(parts, level, length=100):
    """Return a curve that reaches its level after this number of parts."""
    return [0.0] * parts + [level] * (length - parts)


def test_warm_up_times_are_measured_at_the_best_baselines_hits(yardstick):
    """The policy reaches 0.5 like the best baseline after 10 parts, and 0.8 after 60."""
    soon = yardstick["policy_soon"]
    ours = soon_row("learned", [*rising(10, 0.5)[:60], *[0.8] * 40])
    theirs = [soon_row("lru", rising(2, 0.3)), soon_row("LARC", rising(10, 0.5))]
    assert [soon.warms(row, theirs) for row in (ours, *theirs)] == [0.11, None, 0.11]
    cell = {row["policy"]: row for row in (ours, *theirs)}
    met, ratios, first = soon.fastest([cell], "learned", lambda rows: theirs, soon.warms, 1.1)
    assert (met, ratios, dict(first)) == ([True], [1], {"LARC": 1, "learned": 1})


def test_a_policy_with_only_a_short_peak_never_warms_up(yardstick):
    soon = yardstick["policy_soon"]
    peak = [*rising(10, 0.8, 12), *[0.1] * 88]
    theirs = [soon_row("LARC", rising(10, 0.5))]
    cell = {"learned": soon_row("learned", peak), "LARC": theirs[0]}
    met, ratios, first = soon.fastest([cell], "learned", lambda rows: theirs, soon.warms, 1.1)
    assert (met, ratios, dict(first)) == ([False], [], {"LARC": 1})


def test_following_is_measured_at_own_and_at_the_best_baselines_level(yardstick):
    soon = yardstick["policy_soon"]
    low = soon_row("lru", rising(0, 1), rising(1, 0.5))
    high = soon_row("LARC", rising(0, 1), rising(20, 0.8))
    assert [soon.follows_alone(row, [low, high]) for row in (low, high)] == [800, 8400]
    assert [soon.follows(row, [low, high]) for row in (low, high)] == [None, 8400]
    assert soon.follows(soon_row("lru", rising(0, 1)), [low, high]) is None


def test_the_table_shows_how_soon_a_moving_hot_spot_is_followed(yardstick, results, capsys):
    maker = yardstick["policy_traces"]
    requests = 20_000
    moving = maker.Traced(
        "moving", False, (PAGE,), lambda: maker.hot_spot("moving", 2, requests),
        moves=lambda: maker.hot_spot_moves(2, requests),
    )  # fmt: skip
    text = printed(yardstick, [moving], results, capsys)
    assert "a moving hot spot followed, to 90 % of its own hits, as soon as the first: in " in text
    rows = [
        json.loads(line)
        for line in printed(yardstick, [moving], results, capsys, "--json").splitlines()
    ]
    lru, belady = (next(row for row in rows if row["policy"] == name and row["share"] == 0.2)
                   for name in ("lru", "belady"))  # fmt: skip
    assert len(lru["followed"]) == 200
    at_first, at_last = np.mean(lru["followed"][:5]), np.mean(lru["followed"][100:])
    assert at_first < at_last - 0.1
    assert np.mean(belady["followed"][:5]) < np.mean(belady["followed"][100:]) - 0.1


def test_each_part_of_the_learned_policy_can_be_switched_off(yardstick):
    """A missing source line is an error; its replacement changes the code."""
    module, package = yardstick["ablations"], yardstick["policy_kept"].PACKAGE
    for part, patches in module.PARTS.items():
        texts = yardstick["policy_changed"].changed(patches)
        assert bool(texts) == (part != module.WHOLE)
        for file, text in texts.items():
            code = ast.dump(ast.parse(text))
            assert code != ast.dump(ast.parse((package / file).read_text()))
