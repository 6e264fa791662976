"""What advice rests on: the application's own time, its hot spot, what else could be bought."""

import json

import numpy as np
import pytest
from fakes import SCENARIO, TRACE
from hypothesis import given
from hypothesis import strategies as st

from hybridsim import Scenario
from hybridsim.answers.advice.activity import Activity, Covered
from hybridsim.answers.advice.alternatives import NAMES, alternatives, chosen, pricing
from hybridsim.answers.advice.hot_spot import HALVES, QUARTERS, even_share, judged
from hybridsim.answers.result import plain
from hybridsim.foundation.errors import UsageError
from hybridsim.requests.rows import UNKNOWN, no_requests
from hybridsim.show.advise import text
from hybridsim.studies.advise import Advice, Compared, SizeOfSsd, picked, sizes_to_try

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
    activity = Activity()
    activity.add(requests([(0, 30, True, 0, 1), (10, 40, True, 9, 2)]))
    activity.add(requests([(80, 90, True, 1, 1), (95, None, False, 0, 3)]))
    assert activity.busy_share(100 * MS) == 0.5
    assert activity.most_gain(100 * MS) == 2.0
    assert activity.outstanding == 70 / 50
    assert activity.all_of_them.gaps.max_ns == 40 * MS


def test_what_is_sequential_is_so_within_a_process():
    """Two processes read on by turns: to the disk it looks random, each of them is sequential."""
    rows = [(t, t + 1, True, t // 2 + 1000 * (t % 2), 1 + t % 2) for t in range(100)]
    activity = Activity()
    for start in range(0, 100, 7):
        activity.add(requests(rows[start : start + 7]))
    assert activity.whole.sequential_reads == 98
    assert [each.reads for each in activity.processes] == [50, 50]


def test_without_completions_nothing_is_known_of_its_time():
    activity = Activity()
    activity.add(requests([(0, None, True, 0, UNKNOWN)]))
    assert activity.busy_share(SECOND) is None
    assert activity.most_gain(SECOND) is None
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
    assert hot.word == "no"
    assert hot.taken[0.1] == pytest.approx(hot.even[0.1], rel=0.02)


@pytest.mark.parametrize("mean", [1, 5, 20, 60])
def test_even_shares_are_those_of_drawn_counts(mean):
    drawn = np.random.default_rng(mean).poisson(mean / 10, 200_000)
    drawn = np.sort(drawn[drawn > 0])[::-1]
    most = drawn[: round(0.1 * len(drawn))].sum() / drawn.sum()
    assert even_share(int(drawn.sum()), len(drawn), 0.1) == pytest.approx(most, abs=0.01)


def test_a_hot_spot_that_stays_takes_the_same_share_later():
    hot = judged(counted(lambda quarter: [20] * 100 + [1] * 900), 4096)
    assert (hot.word, hot.moves) == ("yes", False)
    assert hot.needed[0.5] < 100
    assert hot.kept[3] == pytest.approx(hot.kept[0], rel=0.05)


def test_a_hot_spot_that_moves_leaves_its_place():
    def weights(quarter):
        return np.roll([60] * 50 + [1] * 950, 50 * quarter)

    hot = judged(counted(weights), 4096)
    assert (hot.word, hot.moves) == ("yes", True)
    assert hot.kept[0] > 0.7
    assert hot.kept[3] < 0.2


def test_of_a_few_pages_nothing_is_said():
    assert judged(np.ones((8, 3), np.int32), 4096).word == "unsure"
    assert judged(np.zeros((8, 0), np.int32), 4096).word == "unsure"


def size_of(size_bytes, mean_ns, before_ns=10 * MS):
    return SizeOfSsd("", size_bytes, 0.5, before_ns, mean_ns, 2.0, True, "")


def test_the_smallest_size_that_saves_most_is_picked():
    sizes = [size_of(1, 7 * MS), size_of(2, 2 * MS), size_of(4, int(1.5 * MS))]
    assert picked(sizes).size_bytes == 2
    assert picked(sizes).per_saved_ms == 2.0 / 8
    assert picked([size_of(1, 11 * MS), size_of(2, 12 * MS)]).saved_ns < 0
    assert size_of(1, 11 * MS).per_saved_ms is None


def test_sizes_worth_a_replay_are_on_the_grid():
    from test_size import curve

    found = sizes_to_try(curve(), [4096 * pages for pages in (100, 250, 390, 500, 1000)])
    assert {size // 4096: what for size, what in found.items()} == {
        390: "knee", 1000: "all"
    }  # fmt: skip


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
    assert made["hybrid"].cost == pytest.approx(4 * 8000 * 0.02 + (64 << 30) / 1e9 * 0.5)
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


ABOUT = {**TRACE, "requests": 30_000, "reads": 21_000, "writes": 9_000}


def advice(about=ABOUT, pick=None, mode="think", said=""):
    from test_size import curve

    activity = Activity()
    activity.add(
        requests([(t, t + 8, t % 30 == 0, 7 * t, 1234) for t in range(0, 3_600_000, 1200)])
    )
    site = Scenario.loads(said)
    prices = pricing(site)
    pick = pick or size_of(1 << 30, 2 * MS)
    compared = [
        Compared(each.name, each.words, each.cost, 3.2 * MS, 40 * MS, 3600 * SECOND // (n + 1),
                 1700 * SECOND // (n + 1), 0.9 / (n + 1), 0.97, 1234.5 * (n + 1))
        for n, each in enumerate(options(said).values())
    ]  # fmt: skip
    hot = judged(counted(lambda quarter: [20] * 100 + [1] * 900), 65536)
    return Advice(
        about, {**SCENARIO, "summary": "8 x disks; cache: SSD"}, "open", mode, activity, hot,
        curve(), [pick, size_of(2 << 30, int(1.9 * MS))], pick, compared, 24 * TB, prices, 32,
        ["a thing to know " * 8],
    )  # fmt: skip


def test_advice_is_one_screen_with_the_answer_first():
    report = text(advice())
    assert max(map(len, report.splitlines())) <= 80
    assert len(report.splitlines()) <= 50
    assert report.index("ADVICE") < report.index("1 I/O-bound?") < report.index("5 how much?")
    words = " ".join(report.split())
    assert "1.00 GiB of SSD: a read takes 2.00 ms on average instead of 10.0 ms" in words
    assert text(advice(), ascii_only=True).isascii()


def test_all_of_the_advice_is_in_the_json():
    told = json.loads(json.dumps(plain(advice().to_dict()), allow_nan=False))
    assert told["pick"]["saved_ns"] == 8 * MS
    assert [each["name"] for each in told["compared"]] == list(NAMES)
    assert told["price"]["source"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"about": {**ABOUT, "requests": 20}}, "too few"),
        ({"pick": size_of(1, 9 * MS + MS // 2)}, "No SSD cache"),
        ({"pick": size_of(1, None)}, "--mode think"),
        ({"about": {**ABOUT, "has_completions": False}, "pick": size_of(1, None)}, "--mode closed"),
        ({"about": {**ABOUT, "reads": 0}, "pick": size_of(1, 10 * MS)}, 'mode = "write-back"'),
    ],
)
def test_where_no_ssd_is_advised_it_says_why(changed, said):
    assert said in text(advice(**changed))
