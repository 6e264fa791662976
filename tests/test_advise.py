"""What advice rests on: the application's own time, its hot spot, what else could be bought."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from hybridsim import Scenario, Trace
from hybridsim.answers.advice.alternatives import NAMES, alternatives, chosen, pricing
from hybridsim.answers.advice.load import HALVES, QUARTERS, Activity, Covered, even_share, judged
from hybridsim.answers.forecast import NO, UNSURE, YES
from hybridsim.answers.setup import NAMES as NAMES_OF_KINDS
from hybridsim.cli import cli
from hybridsim.foundation.errors import UsageError
from hybridsim.requests.rows import UNKNOWN, no_requests
from hybridsim.show import advice as words
from hybridsim.show.advice import text as shown
from hybridsim.studies.advise import advise, picked, sizes_to_try, why_not
from hybridsim.studies.candidates import Candidate, candidates, effort_of, purchase, variants

ROOT = Path(__file__).parent.parent
MS, SECOND, TB = 10**6, 10**9, 10**12
intervals = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), min_size=1, max_size=30)


@given(intervals, st.integers(1, 7))
def test_time_is_busy_while_anything_is_outstanding(pairs, portion):
    pairs.sort()
    covered = Covered()
    for start in range(0, len(pairs), portion):
        begin, length = np.array(pairs[start : start + portion]).T
        covered.add(begin, begin + length)
    instants = {t for begin, length in pairs for t in range(begin, begin + length)}
    assert covered.busy_ns == len(instants)
    idle = max(b + n for b, n in pairs) - pairs[0][0] - len(instants)
    assert covered.gaps.total_ns == idle


def requests(rows):
    """Requests of (arrival ms, complete ms or None, is read, offset, process), 4 KiB each."""
    made = no_requests(len(rows))
    for row, (arrival, complete, is_read, offset, process) in enumerate(rows):
        made.arrival_ns[row] = arrival * MS
        made.complete_ns[row] = UNKNOWN if complete is None else complete * MS
        made.op[row] = 0 if is_read else 1
        made.offset_bytes[row], made.length_bytes[row] = offset * 4096, 4096
        made.stream[row] = process
    return made


def test_amdahls_bound_is_what_the_applications_own_time_leaves():
    activity = Activity(100 * MS)
    activity.add(requests([(0, 30, True, 0, 1), (10, 40, True, 9, 2)]))
    activity.add(requests([(80, 90, True, 1, 1), (95, None, False, 0, 3)]))
    assert activity.busy_share == 0.5
    assert activity.most_gain == 2.0
    assert activity.outstanding == 70 / 50
    assert activity.all_of_them.gaps.max_ns == 40 * MS


def test_what_is_sequential_is_so_within_a_process():
    """Two processes read on by turns: to the disk it looks random, each of them is sequential."""
    rows = [(t, t + 1, True, t // 2 + 1000 * (t % 2), 1 + t % 2) for t in range(100)]
    activity = Activity(SECOND)
    for start in range(0, 100, 7):
        activity.add(requests(rows[start : start + 7]))
    assert activity.whole.sequential_reads == 98
    assert [each.reads for each in activity.processes] == [50, 50]


def test_without_completions_nothing_is_known_of_its_time():
    activity = Activity(SECOND)
    activity.add(requests([(0, None, True, 0, UNKNOWN)]))
    assert activity.busy_share is None
    assert activity.most_gain is None
    assert activity.processes == []


def counted(weights_of):
    """Counts of 1,000 pages over four quarters, drawn with the weights of each."""
    rng = np.random.default_rng(1)
    rows = [
        rng.multinomial(5000, np.array(weights_of(quarter)) / sum(weights_of(quarter)))
        for quarter in range(QUARTERS)
        for _ in range(HALVES)
    ]
    return np.array(rows, np.int32)


def test_even_accesses_have_no_hot_spot():
    hot = judged(counted(lambda quarter: [1] * 1000), 4096)
    assert hot.answer == "no"
    assert hot.taken[0.1] == pytest.approx(hot.even[0.1], rel=0.02)


@pytest.mark.parametrize("mean", [1, 5, 20, 60])
def test_even_shares_are_those_of_drawn_counts(mean):
    drawn = np.random.default_rng(mean).poisson(mean / 10, 200_000)
    drawn = np.sort(drawn[drawn > 0])[::-1]
    most = drawn[: round(0.1 * len(drawn))].sum() / drawn.sum()
    assert even_share(int(drawn.sum()), len(drawn), 0.1) == pytest.approx(most, abs=0.01)


def test_a_hot_spot_that_stays_takes_the_same_share_later():
    hot = judged(counted(lambda quarter: [20] * 100 + [1] * 900), 4096)
    assert (hot.answer, hot.moves) == ("yes", False)
    assert hot.needed[0.5] < 100
    assert hot.kept[3] == pytest.approx(hot.kept[0], rel=0.05)


def test_a_hot_spot_that_moves_leaves_its_place():
    def weights(quarter):
        return np.roll([60] * 50 + [1] * 950, 50 * quarter)

    hot = judged(counted(weights), 4096)
    assert (hot.answer, hot.moves) == ("yes", True)
    assert hot.kept[0] > 0.7
    assert hot.kept[3] < 0.2


def test_of_a_few_pages_nothing_is_said():
    assert judged(np.ones((8, 3), np.int32), 4096).answer == "unsure"
    assert judged(np.zeros((8, 0), np.int32), 4096).answer == "unsure"


def machine(
    low,
    cost=100.0,
    size_bytes=1,
    kind="bcache",
    mode="write-through",
    keeps_up=True,
    setting="",
    answer=YES,
    gain=None,
    expected=None,
):
    """A row of the search: what the choice reads of it."""
    candidate = SimpleNamespace(
        installable=kind != "page", effort=effort_of(kind), keeps_writes=mode == "write-back",
        name=f"{kind} {mode}", setting=setting,
    )  # fmt: skip
    bought = SimpleNamespace(cost=cost, total_cost=cost + 1000)
    return SimpleNamespace(
        candidate=candidate,
        sure=low,
        judgement=SimpleNamespace(forecast=None, gain=gain, expected=expected),
        bought=bought,
        size_bytes=size_bytes,
        keeps_up=keeps_up,
        answer=answer,
    )


def test_the_installable_machine_with_the_surest_gain_is_picked():
    rows = [machine(3.0, kind="page"), machine(2.0), machine(2.5, mode="write-back")]
    assert picked(rows, False) is rows[2]
    assert why_not(rows[0], rows[2], False) == "not available as a product"
    assert picked(rows[:1], False) is rows[0]
    assert picked([machine(9.0, keeps_up=False), rows[1]], False) is rows[1]


def test_what_must_be_built_from_source_has_to_gain_a_tenth_more():
    kernel, little, much = (
        machine(2.0),
        machine(2.15, kind="open-cas"),
        machine(2.3, kind="open-cas"),
    )
    assert picked([kernel, little], False) is kernel
    assert why_not(little, kernel, False) == "built from source, for less than a tenth more"
    assert picked([kernel, much], False) is much
    assert picked([little, much], False) is much


def test_a_machine_that_is_worth_it_goes_before_one_that_may_gain_more():
    unsure, worth_it = machine(3.0, answer=UNSURE), machine(2.0)
    assert picked([unsure, worth_it], False) is worth_it
    assert picked([unsure, machine(1.0, answer=NO)], False) is unsure


def test_of_equal_gains_the_cheaper_then_the_smaller_then_the_safer_is_picked():
    dear, large, back, best = (
        machine(2.02, 300.0), machine(2.0, size_bytes=9), machine(2.0, mode="write-back"),
        machine(2.0),
    )  # fmt: skip
    assert picked([dear, large, back, best], False) is best
    assert why_not(dear, best, False) == "costs more for the same gain"
    assert why_not(large, best, False) == "larger, for the same gain"
    assert why_not(back, best, False) == "SSD has the only copy"


def test_a_row_with_a_larger_gain_that_is_not_chosen_is_less_sure():
    best, larger = machine(2.4, gain=557.0), machine(1.6, gain=1500.0)
    assert picked([best, larger], False) is best
    assert why_not(larger, best, False) == "less sure"


def test_a_row_that_gains_less_later_is_not_rejected_for_what_it_does_now():
    best, soon_full = machine(12.0, gain=22.0, expected=24.0), machine(1.2, gain=18.0, expected=1.5)
    assert why_not(soon_full, best, False) == "less is forecast"


def test_an_unsure_answer_says_how_long_a_capture_is_needed_in_total():
    pick = {
        "kind": "bcache", "mode": "write-back", "name": "bcache write-back", "setting": "",
        "size_bytes": 1 << 30, "too_short": "", "more_ns": 10**12, "gain": 1.3,
    }  # fmt: skip
    headline = "Not yet: record 35m in total. All requests take 2 s."
    document = {"answer": UNSURE, "recommended": pick, "verdict": {"headline": headline}}
    sentence = words.to_do(document)
    assert sentence == (
        "Not yet: record 35m in total. The best so far is bcache write-back with 1.00 GiB of SSD."
    )


@pytest.mark.parametrize(
    ("low", "keep_up", "first"),
    [(1.2, True, "Use "), (0.9, True, "Probably worth it: use "), (0.9, False, "Use ")],
)
def test_a_cache_that_may_gain_nothing_is_probably_worth_it(low, keep_up, first):
    pick = {
        "kind": "bcache", "mode": "write-back", "name": "bcache write-back", "setting": "",
        "size_bytes": 1 << 30, "installable": True, "low": low, "high": 3.0,
    }  # fmt: skip
    sentence = words.to_do({"answer": YES, "recommended": pick, "disks_keep_up": keep_up})
    assert sentence == f"{first}bcache write-back with 1.00 GiB of SSD."


@pytest.mark.parametrize(("high", "first"), [(1.1, "No SSD"), (1.5, "Probably no SSD")])
def test_no_cache_that_may_gain_much_is_probably_none(high, first):
    pick = {
        "kind": "bcache", "mode": "write-back", "name": "bcache write-back", "setting": "",
        "size_bytes": 1 << 30, "installable": True, "low": 0.7, "high": high,
    }  # fmt: skip
    document = {"answer": NO, "recommended": pick, "disks_keep_up": True, "rows": [pick]}
    assert words.to_do(document).startswith(f"{first} cache: ")


def test_other_settings_are_picked_where_they_gain_more_and_not_where_they_gain_the_same():
    default, same, more = (
        machine(2.0), machine(2.01, setting="nhit"), machine(2.5, setting="64K lines"),
    )  # fmt: skip
    assert picked([default, same, more], False) is more
    assert picked([same, default], False) is default
    assert why_not(same, default, False) == "the same with default settings"


@pytest.mark.parametrize(
    ("kind", "mode", "specified", "names"),
    [
        ("bcache", "write-through", {}, ["no cutoff", "never congested"]),
        ("dm-cache", "write-back", {}, ["32K blocks", "256K blocks"]),
        ("dm-cache", "write-back", {"cache.block": "128KiB"}, []),
        ("open-cas", "write-back", {}, ["64K lines", "nhit", "acp"]),
        ("open-cas", "write-through", {}, ["64K lines", "nhit"]),
        ("dm-writecache", None, {}, ["90% full"]),
        ("page", "write-back", {}, []),
    ],
)
def test_settings_that_the_user_specifies_are_not_searched(kind, mode, specified, names):
    site = Scenario.default().with_options(cache=kind, cache_mode=mode).with_values(specified)
    result = variants(Candidate(site))
    assert [each.setting for each in result] == names
    for each in result:
        assert each.label == f"{Candidate(site).name}, {each.setting}"
        assert each.scenario.cache != site.cache
        assert any(option.startswith("--set cache.") for option in each.scenario.options)


def test_a_cache_that_keeps_writes_is_tried_with_room_for_them(tmp_path):
    """A burst of writes to ever new places: none hits, and all of it fits on an SSD."""
    places = np.random.default_rng(4).permutation(2000) * (1 << 20)
    lines = [f"{at * 5 * MS // 2},W,{place},16384,," for at, place in enumerate(places.tolist())]
    path = tmp_path / "burst.csv"
    path.write_text("\n".join(["arrival_ns,op,offset,length,dispatch_ns,complete_ns", *lines, ""]))
    trace = Trace.read(path)
    found = advise(trace, Scenario.default().with_options(cache="bcache"), compare=[])
    sizes = {mode: [each.size_bytes for each in found.rows if each.candidate.mode == mode]
             for mode in ("write-through", "write-back")}  # fmt: skip
    assert min(sizes["write-through"]) < trace.summary().bytes_written
    assert max(sizes["write-back"]) >= 2 * trace.summary().bytes_written
    assert found.pick.candidate.mode == "write-back"
    assert found.answer != NO


def test_with_the_users_prices_the_gain_per_cost_decides():
    rows = [machine(2.0, 100.0), machine(2.4, 900.0)]
    assert picked(rows, False) is rows[1]
    assert picked(rows, True) is rows[0]
    assert why_not(rows[1], rows[0], True) == "less gain per cost"


def test_sizes_worth_a_replay_are_target_knee_and_all():
    from test_size import curve

    result = sizes_to_try(curve())
    # 90 % of the fall of the misses from 399/400 to a tenth; the knee; all pages
    assert [size // 4096 for size in result] == [325, 360, 1000]


@pytest.mark.parametrize(
    ("narrowed", "expected"),
    [
        ({}, 9),
        ({"cache.kind": "dm-cache"}, 2),
        ({"cache.kind": "dm-cache", "cache.mode": "write-back"}, 1),
        ({"cache.kind": "dm-writecache"}, 1),
        ({"cache.page": "128KiB"}, 2),
        ({"cache.mode": "write-back"}, 4),
    ],
)
def test_what_is_specified_narrows_the_search(narrowed, expected):
    every, notes = candidates(Scenario.default().with_values(narrowed))
    assert len(every) == expected
    assert bool(notes) == (set(narrowed) in ({"cache.page"}, {"cache.mode"}))
    assert len({each.name for each in every}) == expected


def test_ssds_are_bought_whole_and_mirrored_where_writes_are_on_them_alone():
    site = Scenario.default().with_options(cache="bcache")
    price = pricing(site)
    through, back = (
        purchase(Candidate(site.with_options(cache_mode=mode)), price)
        for mode in ("write-through", "write-back")
    )
    assert (through.drives, back.drives) == (1, 2)
    assert through.cost == pytest.approx(1920 * price.price.ssd_per_gb)
    assert back.cost == pytest.approx(2 * through.cost)
    assert through.total_cost == pytest.approx(through.cost + through.disks_cost)


def options(said="", names=NAMES, data=None, volume=0):
    site = Scenario.loads(said)
    price = pricing(site).price
    made = alternatives(site, names, data or site.backing.held_bytes, 64 << 30, price, volume)
    return {each.name: each for each in made}


def test_each_alternative_holds_the_same_data():
    """24 TB: four disks of 8 TB or fourteen SSDs of 1.92 TB, each array with a parity."""
    made = options()
    assert list(made) == list(NAMES)
    members = {name: each.scenario.backing.members for name, each in made.items()}
    assert members == {
        "disks": 4, "more-disks": 8, "short-stroke": 8, "all-ssd": 14, "hybrid": 4
    }  # fmt: skip
    assert made["short-stroke"].scenario.backing.stroke == "short"
    assert made["all-ssd"].scenario.backing.drive.kind == "ssd"
    assert [name for name, each in made.items() if each.has_cache] == ["hybrid"]
    assert options(data=48 * TB)["disks"].scenario.backing.members == 7


def test_what_it_costs_is_said_by_the_scenario():
    said = '[price]\ndate = "2026-11"\nhdd_per_gb = 0.02\nssd_per_gb = 0.5\ncurrency = "EUR"\n'
    made = options(said)
    assert made["disks"].cost == pytest.approx(4 * 8000 * 0.02)
    assert made["hybrid"].cost == pytest.approx(4 * 8000 * 0.02 + 1920 * 0.5)
    assert made["all-ssd"].cost == pytest.approx(14 * 1920 * 0.5)
    unsaid = pricing(Scenario.default())
    assert unsaid.price.date
    assert unsaid.source


def test_what_cannot_be_built_is_left_out():
    volume = options('preset = "digitalocean-volume"\n[cache]\nkind = "page"\nsize = "64GiB"\n')
    assert "short-stroke" not in volume
    assert volume["disks"].cost is None
    solid = options('[backing]\ndrive = "samsung-pm9a3-1920gb"')
    assert set(solid) == {"disks", "more-disks", "hybrid"}
    assert set(options(volume=80 * TB)) == set(NAMES) - {"short-stroke"}  # of 8 disks of 8 TB
    single = options('[backing]\nkind = "single"\nmembers = 1')
    assert single["more-disks"].scenario.backing.kind == "stripe"


def test_the_disks_as_they_are_stand_first_and_names_are_checked():
    assert chosen(["hybrid", "more-disks"]) == ["disks", "more-disks", "hybrid"]
    with pytest.raises(UsageError, match="did you mean 'hybrid'"):
        chosen(["hybird"])


LOAD = "gen:zipf,requests=600,span=16MiB"
PROGRAM = """
import json, sys
from hybridsim import Scenario, Trace, advise, replay
from hybridsim.answers.result import plain
from hybridsim.show.advice import text
trace = Trace.read(sys.argv[1])
advice = advise(trace, compare=["hybrid"])
replayed = []
for row in advice.rows[:3]:
    site = row.candidate.sized(row.size_bytes).with_options(mode=advice.mode)
    replayed.append(plain(replay(trace, site).to_dict()))
print(json.dumps({
    "advice": plain(advice.to_dict()), "replayed": replayed, "screen": text(advice),
    "details": text(advice, details=True), "ascii": text(advice, True, True),
}))
"""


@pytest.fixture(scope="module")
def advised():
    """Advice on a short load, and replays; interpreted, as compiling takes longer."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, LOAD], check=False, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_DISABLE_JIT": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_replay_of_each_machine_agrees_with_the_advice(advised):
    for row, result in zip(advised["advice"]["rows"], advised["replayed"], strict=False):
        judgement = result["judgement"]
        for key in ("gain", "low", "high", "dirty_grown"):
            assert row[key] == judgement[key], (row["name"], key)
        assert row["judged"] == judgement["pairs"]["judged"]
        assert row["whole"] == judgement["pairs"]["whole"]
        assert row["answer"] == result["verdict"]["answer"]


def test_all_rows_are_judged_on_the_same_requests(advised):
    rows = advised["advice"]["rows"]
    assert len(rows) >= 9
    for pair in ("judged", "warm", "whole"):
        assert len({(each[pair]["first"], each[pair]["end"]) for each in rows}) == 1
        assert len({json.dumps(each[pair]["none"]) for each in rows}) == 1
    hybrid = next(each for each in advised["advice"]["compared"] if each["name"] == "hybrid")
    assert hybrid["mean_ns"] == rows[0]["judged"]["cached"]["read"]["mean_ns"]
    assert hybrid["cost"] == rows[0]["bought"]["total_cost"]


def test_the_first_screen_answers_in_order(advised):
    lines = advised["screen"].splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    order = ("ADVICE", "brings", "costs", "risks", "assumed", "--details")
    places = [advised["screen"].index(each) for each in order]
    assert places == sorted(places)
    rows = advised["advice"]["rows"]
    assert f"{rows[0]['gain']:.2f} times" in " ".join(advised["screen"].split())
    assert all(each["loses"] for each in rows[1:])
    assert "5 how much?" in advised["details"]
    if rows[0]["setting"]:
        assert f"rejected, with defaults{'':1}" in advised["screen"]
        assert f"\n{rows[0]['name']} " in advised["screen"]
    assert advised["ascii"].isascii()


def test_the_last_line_prints_how_the_machine_is_built(advised):
    line = " ".join(advised["screen"].split()).partition(" next ")[2]
    assert line.startswith("hybridsim setup --cache ")
    done = CliRunner().invoke(cli, shlex.split(line)[1:], catch_exceptions=False)
    assert done.exit_code == 0
    pick = advised["advice"]["recommended"]
    assert f"{NAMES_OF_KINDS[pick['kind']]}, {pick['mode']}" in " ".join(done.output.split())


def test_the_last_line_of_an_unsure_answer_captures_for_longer(advised):
    document = json.loads(json.dumps(advised["advice"]))
    document["answer"] = UNSURE
    command = "sudo blktrace -d /dev/DISK -w 600 -o longer"
    document["verdict"]["advice"] = [{"text": "This captures 10m:", "command": command}]
    report = " ".join(shown(SimpleNamespace(to_dict=lambda: document)).split())
    assert report.endswith(f"next {command}")
    assert "hybridsim setup" not in report


def test_of_one_request_no_cache_is_recommended_and_none_is_rejected(advised):
    document = json.loads(json.dumps(advised["advice"]))
    document["answer"] = UNSURE
    document["recommended"].update(gain=None, too_short="0 reads and writes in its second half")
    document["rows"][0] = document["recommended"]
    report = shown(SimpleNamespace(to_dict=lambda: document))
    assert "record longer, the capture is too short: 0 reads and writes" in " ".join(report.split())
    for word in ("The best so far", "rejected", "hybridsim setup", "hybridsim replay", "– times"):
        assert word not in report


def test_what_decides_is_named(advised):
    document = json.loads(json.dumps(advised["advice"]))
    assert "chosen by the forecast" in words.assumed(document)
    document["recommended"]["is_forecast"] = False
    assert "chosen by the lower end of the gain" in words.assumed(document)
