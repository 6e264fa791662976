"""A table of machines from one call: `what_if`, and the frame of a sweep."""

import math

import pytest

from hybridsim import Scenario, Trace, replay, what_if
from hybridsim.answers.requirements import Seen, parse_all
from hybridsim.foundation.errors import ScenarioError, UsageError
from hybridsim.studies.sweep.answer import COLUMNS, SURE

LOAD = "gen:hot-spot,span=256MiB,hot=10%,share=90%,rate=150,requests=1500"
SIZES = ["16MiB", "32MiB"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module")
def frame(folder):
    return what_if(LOAD, cache_size=SIZES, cache_mode=["write-through", "write-back"],
                   folder=folder, progress=False)  # fmt: skip


def test_a_grid_has_a_row_for_each_machine_and_a_column_for_each_option(frame):
    assert list(frame.columns) == ["cache_size", "cache_mode", "answer", *COLUMNS]
    assert frame[["cache_size", "cache_mode"]].to_numpy().tolist() == [
        ["16MiB", "write-through"], ["16MiB", "write-back"],
        ["32MiB", "write-through"], ["32MiB", "write-back"],
    ]  # fmt: skip
    assert set(frame["answer"]) <= {"yes", "no", "unsure"}


def test_figures_are_those_of_a_replay_of_the_whole_trace(frame):
    site = Scenario.default().with_options(cache_size="32MiB", cache_mode="write-back")
    result = replay(Trace.read(LOAD), site)
    cached, alone = result.cached.whole.figures, result.plain.whole.figures
    row = frame.iloc[3]
    assert row["hit_ratio"] == cached.hit_ratio
    assert row["read_ms"] == pytest.approx(cached.reads.mean_ns / 1e6)
    assert row["write_ms"] == pytest.approx(cached.writes.mean_ns / 1e6)
    assert row["read_ms_alone"] == pytest.approx(alone.reads.mean_ns / 1e6)
    assert row["ssd_gib"] == 32 / 1024
    hit, p99 = result.sure_of(
        [each.check(Seen.cached(result)) for each in parse_all(["hit.whole>1%", "p99.whole>1ms"])]
    )
    for column, found, unit in (("hit_ratio", hit, 1), ("read_p99_ms", p99, 1e6)):
        assert row[f"{column}_low"] == pytest.approx(found.interval.low / unit)
        assert row[f"{column}_high"] == pytest.approx(found.interval.high / unit)


def test_figures_with_the_cache_have_intervals(frame):
    for column in SURE:
        low, value, high = (frame[f"{column}{end}"] for end in ("_low", "", "_high"))
        assert ((low < value) & (value < high)).all(), column


def test_all_rows_are_judged_on_the_same_requests(frame):
    for column in ("read_ms_alone", "read_p99_ms_alone", "write_ms_alone"):
        assert frame[column].nunique() == 1


def test_a_repeated_call_computes_nothing_again(frame, folder, monkeypatch):
    monkeypatch.setattr("hybridsim.studies.sweep.running.Here.__init__", None)  # would be called
    again = what_if(Trace.read(LOAD), cache_size=SIZES,
                    cache_mode=["write-through", "write-back"], folder=folder)  # fmt: skip
    assert again.equals(frame)


def test_any_key_may_vary_and_one_value_is_for_all_machines(folder):
    frame = what_if(LOAD, vary={"backing.members": [4, 5]}, cache_size="16MiB", folder=folder,
                    progress=False)  # fmt: skip
    assert frame["backing.members"].tolist() == [4, 5]
    assert frame["ssd_gib"].tolist() == [16 / 1024] * 2


def test_without_lists_there_is_one_row(folder):
    frame = what_if(LOAD, Scenario.default(), cache_size="16MiB", folder=folder, progress=False)
    assert len(frame) == 1
    assert not math.isnan(frame["read_ms"][0])


def test_a_machine_that_cannot_be_built_is_left_out_with_a_warning(folder):
    with pytest.warns(UserWarning, match=r"left out: .*members"):
        frame = what_if(LOAD, vary={"backing.members": [2, 4]}, cache_size="16MiB",
                        folder=folder, progress=False)  # fmt: skip
    assert frame["backing.members"].tolist() == [4]


def test_wrong_arguments_are_refused(folder):
    with pytest.raises(UsageError, match=r"no option 'cache_sise': .*cache_size"):
        what_if(LOAD, cache_sise=["16MiB"], folder=folder)
    with pytest.raises(UsageError, match=r"cache\.size: specify at least one value"):
        what_if(LOAD, cache_size=[], folder=folder)
    with pytest.raises(UsageError, match="save standard input first"):
        what_if("-", folder=folder)
    with pytest.raises((UsageError, ScenarioError), match="sise"):
        what_if(LOAD, vary={"cache.sise": [1]}, folder=folder)
