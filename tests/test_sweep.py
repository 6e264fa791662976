"""Sweeps: axes, computing each point exactly once, searches, and reports."""

import contextlib
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from captures import cpu_files
from click.testing import CliRunner
from fakes import SCENARIO, TRACE
from fakes import result as fake_result
from hypothesis import given
from hypothesis import strategies as st
from sweep_points import AXES, UNLUCKY, made_up, noted, plan, slowly

from hybridsim import Scenario, Trace, replay
from hybridsim import studies as verbs
from hybridsim.cli import cli, main
from hybridsim.cli.sweep import words as worded
from hybridsim.foundation.errors import ScenarioError, UsageError
from hybridsim.foundation.units import parse_size
from hybridsim.scenario.origin import value_of, values_of, written
from hybridsim.show.sweep import text
from hybridsim.studies.sweep import fork_server as nursery
from hybridsim.studies.sweep import plan as planning
from hybridsim.studies.sweep import store
from hybridsim.studies.sweep.answer import undominated
from hybridsim.studies.sweep.figures import Objective, figures
from hybridsim.studies.sweep.plan import Range, axis_of
from hybridsim.studies.sweep.running import Here, Running, dealt
from hybridsim.studies.sweep.store import RESULTS, Store
from hybridsim.studies.sweep.sweep import UnderWay, search, sweep

HEAD = "arrival_ns,op,offset,length,dispatch_ns,complete_ns\n"
SITE = {**SCENARIO, "cache_bytes": 16384 << 16}
TESTS = Path(__file__).parent
POINTS = 200  # of AXES
GOOD = 180  # of these


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """Return a capture whose contents are not used: its bytes are part of the key of results."""
    path = tmp_path_factory.mktemp("trace") / "any.csv"
    path.write_text(HEAD + "0,R,0,4096,,\n5,W,8192,4096,,\n")
    return str(path)


# Axes


def test_any_key_of_a_scenario_can_be_set():
    site = Scenario.default().with_values({"cache.size": "16GiB", "backing.drive.rpm": 10_000})
    assert (site.cache.size, site.backing.drive.rpm) == ("16GiB", 10_000)
    assert site.options == ["--set cache.size=16GiB", "--set backing.drive.rpm=10000"]


@pytest.mark.parametrize(
    ("name", "both"),
    [
        ("lru", ("always", "lru")),
        ("larc", ("larc", "lru")),
        ("learned", ("learned", "learned")),
        ("larc+arc", ("larc", "arc")),
    ],
)
def test_cache_policy_sets_admission_and_replacement(name, both):
    cache = Scenario.default().with_values({"cache.policy": name}).cache
    assert (cache.admission, cache.replacement) == both


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("cache.sise", 1, "--set cache.sise: unknown key 'sise': did you mean 'size'?"),
        ("cahce.size", 1, "unknown table 'cahce': did you mean 'cache'?"),
        ("size", 1, "expected a key such as cache.size"),
        ("cache.policy", "lur", "unknown policy 'lur': did you mean 'lru'?"),
        ("cache.size", "many", "--set cache.size: 'many' is not a size"),
    ],
)
def test_the_error_of_a_wrong_setting_names_its_key(key, value, message):
    with pytest.raises(ScenarioError) as caught:
        Scenario.default().with_values({key: value})
    assert message in str(caught.value)


@given(st.one_of(st.integers(), st.booleans(), st.text("abc1.,% ", min_size=1).map(str.strip)))
def test_a_written_value_reads_back_equal(value):
    assert value == "" or value_of(written(value)) == value


def test_values_are_separated_by_commas():
    assert values_of("16GiB,2,true") == ["16GiB", 2, True]
    assert values_of('[1, 2],"a,b"') == [[1, 2], "a,b"]


@pytest.mark.parametrize(
    ("notation", "values"),
    [
        ("1GiB..16GiB:5:log", ["1GiB", "2GiB", "4GiB", "8GiB", "16GiB"]),
        ("10%..30%:3", ["10%", "20%", "30%"]),
        ("1ms..3ms:3", ["1ms", "2ms", "3ms"]),
        ("4..8:3", [4, 6, 8]),
        ("1..2:9", [1, 2]),  # integers stay integers, without duplicates
        ("0.5..1.0:2", [0.5, 1.0]),
    ],
)
def test_a_range_has_the_unit_and_type_of_its_ends(notation, values):
    assert axis_of(f"k={notation}").values == values


@given(st.integers(1, 2**40), st.integers(1, 2**40), st.floats(0, 1), st.booleans())
def test_values_of_a_range_are_within_its_ends(low, more, share, log):
    assert low <= Range(low, low + more, log=log).at(share) <= low + more


@pytest.mark.parametrize(
    "notation", ["k", "k=", "k=9..1:3", "k=1..2:x", "k=lru..arc:3", "k=0..4:3:log"]
)
def test_invalid_ranges_are_refused(notation):
    with pytest.raises(UsageError):
        axis_of(notation)


def test_a_plan_file_specifies_the_same_as_options(trace):
    file = planning.loads(
        f'[sweep]\ntraces = ["{trace}"]\nobjectives = ["mean", "dwpd"]\nseeds = 3\n'
        "[vary]\nbacking.members = {from = 4, to = 8, steps = 3}\n"
        '"cache.size" = "1GiB..16GiB:5:log"\ncache.policy = ["lru", "larc+arc"]\n'
        "[set.cache]\npage = '4KiB'\n"
    )
    axes = {axis.key: axis.values for axis in file.axes}
    assert axes["backing.members"] == [4, 6, 8]
    assert len(axes["cache.size"]) == 5
    assert axes["cache.policy"] == ["lru", "larc+arc"]
    assert file.scenario.cache.page_bytes == 4096
    assert ([each.text for each in file.objectives], file.seeds) == (["mean", "dwpd"], 3)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[sweep]\ntraces = ['a']\nkind = 'gird'", "sweep.toml:3:8: kind cannot be 'gird'"),
        ("[sweep]\ntrace = ['a']", "unknown key 'trace': did you mean 'traces'?"),
        (
            "[sweep]\ntraces = ['a']\n[vary]\nsize = [1]",
            "sweep.toml:4:8: size: expected a key such as cache.size; ",
        ),
        ("[sweep]\ntraces = ['a']\n[vary]\ncache.size = 3", "sweep.toml:4:14: cache.size: needs a"),
        ("[sweep\n", "sweep.toml:1"),
    ],
)
def test_the_error_of_a_plan_file_names_its_place(content, message):
    with pytest.raises(ScenarioError) as caught:
        planning.loads(content)
    assert message in str(caught.value)


# Each point is computed once


def lines(folder):
    """Return the keys of complete lines; skip a line that is being written or was cut by a kill."""
    keys = []
    for each in (folder / RESULTS).read_text().splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            keys.append(json.loads(each)["key"])
    return keys


def compared(outcome):
    """Return all results as text, bit by bit."""
    return json.dumps(outcome.records, sort_keys=True)


def test_all_points_are_computed_once_and_failures_do_not_stop_the_sweep(trace, tmp_path):
    progress = []
    outcome = sweep(
        plan(trace), tmp_path, 1, report=lambda _, s: s and progress.append(s), compute=made_up
    )
    assert (len(outcome.settings), len(outcome.failed), len(progress)) == (
        GOOD,
        POINTS - GOOD,
        POINTS,
    )
    assert len(set(lines(tmp_path))) == len(lines(tmp_path)) == GOOD
    assert {each.why for each in outcome.failed} == {"ValueError: unlucky"}
    command = f"hybridsim replay {trace} --set backing.members={UNLUCKY} --set cache.size=1GiB"
    assert any(each.command.startswith(command) for each in outcome.failed)


def test_a_result_is_on_disk_before_it_is_reported(trace, tmp_path):
    def check(progress, settled):
        if settled is not None and settled.row is not None:
            assert settled.point.key in lines(tmp_path)

    sweep(plan(trace, AXES[:2]), tmp_path, 1, report=check, compute=made_up)


def test_known_results_are_reused_unchanged(trace, tmp_path):
    first = sweep(plan(trace, AXES[:2]), tmp_path, 1, compute=made_up)
    again = sweep(plan(trace, AXES[:2]), tmp_path, 1, compute=made_up)
    more = sweep(plan(trace), tmp_path, 1, compute=made_up)
    assert (again.computed, again.known) == (0, first.computed)
    assert more.known == first.computed  # speed 1.0 is the default of the scenario
    assert compared(again) == compared(first)


def test_a_truncated_line_is_skipped(trace, tmp_path):
    first = sweep(plan(trace, AXES[:2]), tmp_path, 1, compute=made_up)
    data = (tmp_path / RESULTS).read_bytes()
    (tmp_path / RESULTS).write_bytes(data[:-100])  # truncate the last line
    again = sweep(plan(trace, AXES[:2]), tmp_path, 1, compute=made_up)
    assert (again.computed, again.known) == (1, first.computed - 1)
    assert compared(again) == compared(first)


def test_the_key_of_a_point_depends_on_trace_and_scenario(trace, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text(Path(trace).read_text() + "9,R,0,4096,,\n")
    sites = [Scenario.default(), Scenario.default().with_options(seed=2)]
    keys = set()
    for path in (trace, str(other)):
        for site in sites:
            planned = plan(path, [])
            store = tmp_path / "store"
            outcome = sweep(planned.__class__(planned.traces, site), store, 1, compute=made_up)
            keys |= {each.key for setting in outcome.settings for each in setting.points}
    assert len(keys) == 4


FORK = multiprocessing.get_context("fork")


def holding(folder, key, begun, end):
    with Store(folder) as store:
        assert store.claim(key)
        begun.set()
        end.wait(20)
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_point_claimed_by_another_client_is_free_after_its_death(tmp_path):
    key = "ab" * 32
    begun, end = FORK.Event(), FORK.Event()
    other = FORK.Process(target=holding, args=(tmp_path, key, begun, end))
    other.start()
    assert begun.wait(20)
    with Store(tmp_path) as store:
        assert not store.claim(key)
        assert store.claim("cd" * 32)
        end.set()
        other.join()
        assert store.claim(key)


class Watched(Here):
    """A crew of three workers that records which points run concurrently."""

    room = 3
    lanes = 1

    def __init__(self, compute):
        super().__init__(compute)
        self.together = []

    def next(self, timeout_s):
        self.together.append([dict(each.values) for each in self._waiting])
        return super().next(timeout_s)


def test_the_first_point_of_each_compiled_machine_runs_before_the_others(trace, tmp_path):
    crew = Watched(made_up)
    with Store(tmp_path) as store:
        axes = ("cache.policy=lru,arc", "cache.size=1GiB..8GiB:4:log")
        planned = plan(trace, axes)
        UnderWay(planned).run(Running(lambda: crew, store))
    first, *others = crew.together
    assert first == [{"cache.policy": name, "cache.size": "1GiB"} for name in ("lru", "arc")]
    assert len(others[1]) == 3


def test_points_that_share_cached_data_go_to_one_worker():
    assert list(dealt("aaabbbc", 1)) == list("aaabbbc")
    assert list(dealt("aaaabbb", 2)) == list("abababa")
    assert sorted(dealt("abc", 7)) == list("abc")


def test_only_random_settings_are_repeated_over_seeds(trace, tmp_path):
    axes = ("cache.admission=always,probabilistic",)
    outcome = sweep(plan(trace, axes, seeds=4), tmp_path, 1, compute=made_up)
    numbers = {each.values["cache.admission"]: each.estimates[0].n for each in outcome.settings}
    assert numbers == {"always": 1, "probabilistic": 4}
    commands = [each.command for each in outcome.settings[1].points]
    assert [each.rpartition("--seed ")[2] for each in commands] == ["1", "2", "3", "4"]


# Clients and workers that die

RUN = [sys.executable, str(TESTS / "sweep_points.py")]


def client(trace, folder):
    """Start a sweep in a separate process."""
    process = FORK.Process(target=serial_client, args=(trace, folder))
    process.start()
    return process


def serial_client(trace, folder):
    os.environ["NOTES"] = str(folder / "notes")
    outcome = sweep(plan(trace), folder, 1, compute=noted)
    with (folder / "ends").open("a") as ends:
        ends.write(f"{len(outcome.settings)} {outcome.computed} {outcome.known}\n")


def ends(folder):
    """Return the final output of clients: settings, points computed, points reused."""
    return [tuple(map(int, each.split())) for each in (folder / "ends").read_text().splitlines()]


def lines_if_any(folder):
    return lines(folder) if (folder / RESULTS).exists() else []


def check_whole(trace, folder, lost):
    """Check that all points exist once, no more work was lost, and results equal a single run."""
    keys = lines(folder)
    assert len(keys) == len(set(keys)) == GOOD
    notes = (folder / "notes").read_text().split()
    assert set(notes) == set(keys)
    assert len(notes) <= GOOD + lost
    serial = sweep(plan(trace), folder / "serial", 1, compute=made_up)
    assert compared(sweep(plan(trace), folder, 1, compute=made_up)) == compared(serial)


def kill(process, folder, draw):
    """Kill a client after a few more points: while it computes, writes or reports."""
    before = lines_if_any(folder)
    more = len(before) + int(draw.integers(0, 9))
    while len(lines_if_any(folder)) < more:
        time.sleep(0.001)
    time.sleep(float(draw.uniform(0, 0.03)))
    process.kill()
    assert set(before) <= set(lines_if_any(folder))


def check_killed(trace, folder, times):
    draw = np.random.default_rng(5)
    for _ in range(times):
        process = client(trace, folder)
        kill(process, folder, draw)
        process.join()
    known = len(lines(folder))
    process = client(trace, folder)
    process.join()
    assert ends(folder) == [(GOOD, GOOD - known, known)]
    check_whole(trace, folder, lost=times)


def test_a_killed_client_loses_nothing_and_repeats_nothing(trace, tmp_path):
    check_killed(trace, tmp_path, 2)


@pytest.mark.long
def test_twenty_killed_clients_lose_nothing_and_repeat_nothing(trace, tmp_path):
    check_killed(trace, tmp_path, 20)


def test_two_clients_share_the_work_of_one_folder(trace, tmp_path):
    clients = [client(trace, tmp_path) for _ in range(2)]
    for each in clients:
        each.join()
    settings, computed, _ = zip(*ends(tmp_path))
    assert settings == (GOOD, GOOD)
    assert sum(computed) == GOOD
    check_whole(trace, tmp_path, lost=0)


def program(trace, folder, crew):
    """Start a sweep as a separate program, with workers or a scheduler."""
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent)])
    notes = {"NOTES": str(folder / "notes"), "PYTHONPATH": paths}
    return subprocess.Popen(
        [*RUN, trace, str(folder), crew], env=os.environ | notes, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.long
def test_twenty_killed_clients_with_workers_lose_nothing_and_repeat_nothing(trace, tmp_path):
    pytest.importorskip("distributed", reason="needs hybridsim[cluster]")
    draw = np.random.default_rng(6)
    for _ in range(20):
        process = program(trace, tmp_path, "2")
        process.stdout.readline()
        kill(process, tmp_path, draw)
        process.wait()
    assert program(trace, tmp_path, "2").communicate()[0].split()[-3:-2] == [str(GOOD)]
    check_whole(trace, tmp_path, lost=20 * 2 * 3)  # two workers, each with points in its queue


def test_a_taken_port_of_the_dashboard_is_no_warning():
    pytest.importorskip("distributed", reason="needs hybridsim[cluster]")
    from hybridsim.studies.sweep import cluster

    with socket.socket() as taken, warnings.catch_warnings(record=True) as seen:
        with contextlib.suppress(OSError):  # somebody else's, then
            taken.bind(("", 8787))
            taken.listen()
        cluster._started(1).close()
    assert not [each for each in seen if "Port" in str(each.message)]


@pytest.mark.parametrize(("swing", "has_note"), [(1.05, False), (2.0, True)])
def test_settings_measured_on_different_requests_get_a_note(trace, tmp_path, swing, has_note):
    def judged(point):
        larger = point.values[1][1] == "16GiB"
        return made_up(point) | {"alone.mean.reads.warm": 3e7 / 7 * (swing if larger else 1)}

    warm = plan(trace, AXES[:2], objectives=tuple(map(Objective.parse, ("mean", "dwpd"))))
    outcome = sweep(warm, tmp_path, 1, compute=judged)
    assert ("alone take 4.29 ms to 8.57 ms per read" in " ".join(text(outcome).split())) == has_note
    assert bool(outcome.to_dict()["notes"]) == has_note


def dies_once(point):
    """Kill the worker at one point on the first attempt."""
    mark = Path(os.environ["MARK"])
    if point.scenario.backing.members == 5 and not mark.exists():
        mark.touch()
        os._exit(9)
    return slowly(point)


def test_results_with_dying_workers_equal_those_of_one_process(trace, tmp_path, monkeypatch):
    pytest.importorskip("distributed", reason="needs hybridsim[cluster]")
    monkeypatch.setenv("MARK", str(tmp_path / "mark"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), str(TESTS.parent)]))
    parallel = sweep(plan(trace, AXES[:2]), tmp_path / "two", 2, compute=dies_once)
    serial = sweep(plan(trace, AXES[:2]), tmp_path / "one", 1, compute=made_up)
    assert (tmp_path / "mark").exists()
    assert compared(parallel) == compared(serial)
    assert len(lines(tmp_path / "two")) == parallel.computed == serial.computed


def dask(what, *arguments):
    command = [sys.executable, "-m", f"distributed.cli.dask_{what}", *arguments, "--no-dashboard"]
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent)])
    return subprocess.Popen(
        command, env=os.environ | {"PYTHONPATH": paths}, stderr=subprocess.DEVNULL
    )


@pytest.mark.long
def test_results_with_a_restarted_scheduler_equal_those_of_one_process(trace, tmp_path):
    pytest.importorskip("distributed", reason="needs hybridsim[cluster]")
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    os.environ["NOTES"] = str(tmp_path / "notes")

    def started():
        scheduler = dask("scheduler", "--host", "127.0.0.1", "--port", str(port))
        time.sleep(2)
        how = ("--nthreads", "1", "--local-directory", str(tmp_path))
        return [scheduler, *(dask("worker", address, *how) for _ in range(2))]

    processes = started()
    sweeping = program(trace, tmp_path, address)
    while not (tmp_path / RESULTS).exists() or len(lines(tmp_path)) < 30:
        time.sleep(0.05)
    for each in processes:
        each.kill()
        each.wait()
    processes = started()
    out = sweeping.communicate(timeout=120)[0].split()[-3:]
    for each in processes:
        each.kill()
        each.wait()
    assert out[:2] == [str(GOOD)] * 2
    check_whole(trace, tmp_path, lost=8)


# Searches


def test_a_random_search_draws_distinct_settings_reproducibly(trace):
    planned = plan(trace, AXES, kind="random", trials=50)
    first, again = (next(search(planned)) for _ in range(2))
    assert first == again
    assert len({repr(each) for each in first}) == 50


def test_an_interrupted_pareto_search_continues(trace, tmp_path):
    pytest.importorskip("optuna", reason="needs hybridsim[opt]")
    how = {"kind": "pareto", "trials": 60}
    axes = ("backing.members=4..12", "cache.size=1GiB..1024GiB:log", "replay.speed=1.0..9.0")
    first = sweep(plan(trace, axes, **how), tmp_path / "a", 1, compute=made_up)
    stopped = plan(trace, axes, **{**how, "trials": 30})
    sweep(stopped, tmp_path / "b", 1, compute=made_up)
    resumed = sweep(plan(trace, axes, **how), tmp_path / "b", 1, compute=made_up)
    assert resumed.known >= 20
    assert compared(resumed) == compared(first)


def test_a_pareto_search_moves_towards_better_settings(trace):
    """A larger cache has no cost here, so later generations have larger ones."""
    pytest.importorskip("optuna", reason="needs hybridsim[opt]")
    planned = plan(trace, ("cache.size=1GiB..1024GiB:log", "backing.members=4..12"), kind="pareto")
    asking = search(planned)
    batch, sizes = next(asking), []
    for _ in range(planned.trials // 20 - 1):
        shares = [np.log2(parse_size(each["cache.size"])) for each in batch]
        sizes.append(np.mean(shares))
        batch = asking.send([(1 / s, s, e["backing.members"]) for s, e in zip(shares, batch)])
    assert sizes[-1] > sizes[0] + 1


# Summaries


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=20))
def test_the_front_is_the_set_of_undominated_settings(rows):
    def beats(one, other):
        return one != other and all(a <= b for a, b in zip(one, other))

    naive = [i for i, row in enumerate(rows) if not any(beats(other, row) for other in rows)]
    assert undominated(np.array(rows, float)) == naive


def test_the_key_that_changes_an_objective_has_the_largest_effect(trace, tmp_path):
    outcome = sweep(plan(trace, ("backing.members=4..12:9", "replay.speed=1.0,2.0")), tmp_path, 1,
                  compute=made_up)  # fmt: skip
    shares = {(each.key, each.objective.text): each.share for each in outcome.effects}
    assert shares["backing.members", "dwpd"] == pytest.approx(
        1, abs=0.1
    )  # values grouped into quarters
    assert shares["replay.speed", "dwpd"] == 0
    (effect,) = [
        each for each in outcome.effects if each.share > 0.5 and each.objective.text == "dwpd"
    ]
    assert [each.words for each in effect.ends] == ["11 to 12", "4 to 6"]


def test_the_report_fits_a_terminal_and_names_the_next_command(trace, tmp_path):
    outcome = sweep(plan(trace), tmp_path, 1, compute=made_up)
    lines = text(outcome).splitlines()
    assert all(len(line) <= 80 or line.startswith("  hybridsim") for line in lines)
    report = "\n".join(lines)
    for words in ("best", "Pareto front of", "what matters", "failed", "hybridsim replay"):
        assert words in report
    assert text(outcome, ascii_only=True).isascii()


def test_records_are_written_as_files_and_as_a_data_frame(trace, tmp_path):
    outcome = sweep(plan(trace, AXES[:2]), tmp_path / "kept", 1, compute=made_up)
    store.write_output(outcome.records, str(tmp_path / "a.jsonl"))
    store.write_output(outcome.records, str(tmp_path / "a.csv"))
    rows = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert rows == outcome.records
    assert len((tmp_path / "a.csv").read_text().splitlines()) == len(rows) + 1
    json.dumps(outcome.to_dict(), allow_nan=False)
    pandas = pytest.importorskip("pandas", reason="needs hybridsim[notebooks]")
    frame = outcome.to_pandas()
    assert list(frame["cache.size"]) == [each["cache.size"] for each in rows]
    assert pandas.read_csv(tmp_path / "a.csv").shape == frame.shape
    pytest.importorskip("pyarrow", reason="needs hybridsim[parquet]")
    store.write_output(outcome.records, str(tmp_path / "a.parquet"))
    assert pandas.read_parquet(tmp_path / "a.parquet").shape == frame.shape


# The command


@pytest.fixture
def quick(monkeypatch):
    """Replace replays by synthetic results."""
    answer = fake_result(trace={**TRACE, "requests": 360_000}, scenario=SITE)
    monkeypatch.setattr("hybridsim.studies.replay.replay", lambda *_, **__: answer)


def run(*words):
    return CliRunner().invoke(cli, ["sweep", *map(str, words)], catch_exceptions=True)


def test_the_command_prints_and_writes_its_results(trace, tmp_path, quick):
    keep = ("--folder", tmp_path / "kept", "--workers", "1")
    csv, html = tmp_path / "found.csv", ("--html", tmp_path / "found.html")
    done = run(trace, "--vary", "cache.size=5%,20%", "-o", csv, *html, *keep)
    assert done.exit_code == 0, done.output
    assert "all 2 settings" in done.output
    assert len(csv.read_text().splitlines()) == 3
    page = (tmp_path / "found.html").read_text()
    assert all(f">{title}<" in page for title in ("Best settings", "All settings"))
    alone = run(trace, "--objective", "mean,cost", "--vary", "cache.size=5%", *keep)
    assert "1 setting, by mean" in alone.output
    assert "in USD, of disks and SSDs (prices of " in alone.output
    again = run(trace, "--vary", "cache.size=5%,20%", "--json", "-", *keep)
    assert json.loads(again.stdout)["replays"]["known"] == 2


def test_no_workers_start_if_all_results_are_known(trace, tmp_path, quick, monkeypatch):
    pytest.importorskip("distributed", reason="needs hybridsim[cluster]")
    words = (trace, "--vary", "cache.size=5%,20%", "--folder", tmp_path, "--json", "-")
    run(*words, "--workers", 1)
    begun = []
    monkeypatch.setattr(nursery, "begin", lambda: begun.append(1))
    assert json.loads(run(*words, "--workers", 2).stdout)["replays"]["known"] == 2
    assert not begun


def test_failed_points_give_exit_code_1(trace, tmp_path, quick):
    keep = ("--folder", tmp_path, "--workers", "1")
    done = run(trace, "--vary", "cache.size=5%,9999TiB", *keep)
    assert done.exit_code == 1
    assert "failed" in done.output


SIZES = "cache.size=1GiB..64GiB:64"


def interrupted(trace, folder):
    """Run the command in a separate process with slow replays."""
    answer = fake_result(trace={**TRACE, "requests": 360_000}, scenario=SITE)
    verbs.replay.replay = lambda *_, **__: time.sleep(0.02) or answer
    command = f"hybridsim sweep {trace} --vary {SIZES} --workers 1 --folder {folder}"
    sys.argv = command.split()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with (folder / "output").open("w") as sys.stdout:
        main()


def test_an_interrupted_sweep_keeps_its_results_and_prints_how_to_continue(trace, tmp_path, quick):
    process = FORK.Process(target=interrupted, args=(trace, tmp_path))
    process.start()
    while len(lines_if_any(tmp_path)) < 3:
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGINT)
    process.join(10)
    assert process.exitcode == 130
    done = len(lines(tmp_path))
    assert 3 <= done < 64
    printed = " ".join((tmp_path / "output").read_text().split())
    assert (
        f"interrupted: {64 - done} are missing; run the same command again to continue" in printed
    )
    assert f"all {done} settings" in printed or "Pareto front of" in printed
    again = run(trace, "--vary", SIZES, "--workers", 1, "--folder", tmp_path, "--json", "-")
    assert json.loads(again.stdout)["replays"] | {"missing": 0} == {
        "computed": 64 - done, "known": done, "failed": 0, "missing": 0,
    }  # fmt: skip


def test_an_interrupt_before_any_result_keeps_the_old_output_file(
    trace, tmp_path, quick, monkeypatch
):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(UnderWay, "run", interrupt)
    (tmp_path / "a.csv").write_text("old")
    done = run(trace, "--vary", SIZES, "--folder", tmp_path, "-o", tmp_path / "a.csv")
    assert done.exit_code == 130
    assert (tmp_path / "a.csv").read_text() == "old"


@pytest.mark.long
def test_an_interrupted_client_of_two_workers_keeps_its_results(trace, tmp_path):
    pytest.importorskip("distributed", reason="needs hybridsim[cluster]")
    process = program(trace, tmp_path, "2")
    process.stdout.readline()
    while len(lines_if_any(tmp_path)) < 20:
        time.sleep(0.01)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    settings, computed, _ = map(int, process.communicate(timeout=60)[0].split()[-3:])
    assert time.monotonic() - begun < 20
    assert settings == computed == len(lines(tmp_path)) < GOOD
    assert program(trace, tmp_path, "2").communicate()[0].split()[-3:-2] == [str(GOOD)]


def test_long_planning_shows_its_progress(trace, tmp_path, monkeypatch):
    monkeypatch.setattr("hybridsim.studies.sweep.running.QUIET_S", 0.0)
    progress = []
    sweep(plan(trace, AXES[:2]), tmp_path, 1, report=lambda p, _: progress.append(worded(p)),
          compute=made_up)  # fmt: skip
    planned = [each for each in progress if "planned" in each]
    assert planned[-1] == "49 of 50 settings planned"
    assert progress.index(planned[-1]) < progress.index(
        "50 of 50 replays · 5 failed · this process alone"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["--vary", "cache.sise=1,2"],
        ["--vary", "cache.size"],
        ["--vary", "cache.size=1GiB", "--vary", "cache.size=2GiB"],
        ["--vary", "cache.size=1GiB..2GiB"],
        ["--kind", "pareto"],
        ["--objective", "p97"],
        ["--objective", "warmth"],
        ["-o", "found.xls"],
        ["--scheduler", "nowhere"],
    ],
)
def test_wrong_options_are_refused(trace, tmp_path, quick, arguments):
    done = run(trace, *arguments, "--folder", tmp_path)
    error = done.exception
    assert isinstance(error, UsageError | ScenarioError), done.output
    assert error.exit_code == 2


# Names of dask that are not public


def test_the_name_that_spares_workers_the_import_of_pandas_still_exists():
    """studies/sweep/cluster.py sets it; without it in a release, setting it does nothing."""
    import distributed.utils

    assert distributed.utils._forkserver_preload_set in (True, False)


# Real replays


def test_a_point_equals_the_replay_of_its_scenario(tmp_path):
    """Also if the run without the cache is reused."""
    for name, data in cpu_files("loop_ext4_buffered_meta").items():
        (tmp_path / f"sda.blktrace.{name.split('.')[2]}").write_bytes(data)
    path = tmp_path / "sda.blktrace.0"
    outcome = sweep(plan(str(path), ["cache.size=5%,20%"]), tmp_path / "kept", 1)
    for setting in outcome.settings:
        (point,), (kept,) = setting.points, setting.figures
        alone = figures(replay(Trace.read(path), point.scenario))
        assert json.dumps(alone) == json.dumps(kept)
