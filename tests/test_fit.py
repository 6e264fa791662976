"""A model is recovered from measurements of a device, or the fit is refused with the reason."""

from dataclasses import replace

import numpy as np
import pytest
from captures import HEADER_V8, TRACES, as_version_8, cpu_files, write_files

from benchmarks.generated_disks import estimates, known, known_stripe
from hybridsim import Scenario, fit
from hybridsim.answers.fitting import array, disks, flash
from hybridsim.answers.fitting.array import arrangement
from hybridsim.answers.fitting.disks import Number, likeliest, with_intervals
from hybridsim.answers.fitting.observed import STRETCH, STRETCHES_MAX, Observed, observe
from hybridsim.answers.fitting.service import Layout, choice_share, pieces
from hybridsim.foundation.errors import FitError
from hybridsim.requests.rows import no_requests
from hybridsim.studies.fit import fidelity
from hybridsim.traces.trace import Trace

# 4 disks in chunks of 64 KiB; 7,200 rpm, seeks of 0.5 to 8 ms; NBD carries 16 requests at a time
ARRAY = TRACES / "array" / "bcache.csv.zst"
KIB, MIB, MS = 1024, 2**20, 1e6


def observed(dispatch, complete, offset, length=4096, is_write=False):
    rows = len(dispatch)
    offset = np.asarray(offset, np.int64)
    length = np.broadcast_to(np.int64(length), rows)
    return Observed(
        np.asarray(dispatch, np.int64),
        np.asarray(complete, np.int64),
        offset,
        length,
        np.broadcast_to(is_write, rows),
        np.zeros(rows, np.int64),
        int((offset + length).max()),
    )


def csv(path, rows):
    head = "arrival_ns,op,offset,length,dispatch_ns,complete_ns\n"
    path.write_text(head + "".join(",".join(map(str, row)) + "\n" for row in rows))
    return path


# An array with known parameters.


@pytest.fixture(scope="module")
def halves():
    requests = observe(Trace.read(ARRAY).chunks())
    middle = requests.rows // 2
    first = requests.of(np.arange(requests.rows) < middle)
    second = requests.of(np.arange(requests.rows) >= middle)
    return first, second


@pytest.fixture(scope="module")
def fitted(halves):
    return array.answer("the first half", halves[0], lambda what, done, of: None, [])


def estimate(model, key):
    return next(one for one in model.estimates if one.key == key)


def test_the_known_array_is_recovered_from_half_a_capture(fitted):
    assert estimate(fitted, "members").value == 4
    assert estimate(fitted, "chunk").value == 64 * KIB
    assert estimate(fitted, "queue_depth").value == 16
    assert estimate(fitted, "scheduler").value == "fcfs"
    for key, truth in (("rpm", 7200), ("seek_full", 8 * MS)):
        one = estimate(fitted, key)
        assert one.determined
        assert one.value == pytest.approx(truth, rel=0.15)
        assert one.low <= truth <= one.high


def test_parameters_that_the_capture_does_not_determine_are_marked(fitted):
    assert not estimate(fitted, "rate_outer").determined
    assert "4 KiB" in estimate(fitted, "rate_outer").how
    assert not estimate(fitted, "write_settle").determined


def test_a_model_of_one_half_predicts_the_latencies_of_the_other_half(fitted, halves):
    scenario = fitted.scenario()
    held = fidelity(halves[1], scenario)
    assert held.measured.count == halves[1].rows
    assert held.demerit < 0.10
    without_limit = scenario.with_options(queue_depth=0)
    assert fidelity(halves[1], without_limit).demerit > 2 * held.demerit


def test_the_written_scenario_has_the_fitted_values(fitted):
    scenario = Scenario.loads(fitted.to_toml())
    assert scenario.backing.members == 4
    assert scenario.backing.queue_depth == 16
    assert scenario.backing.drive.rpm == estimate(fitted, "rpm").value
    assert scenario.backing.window == 1


# Recovery of synthetic devices.


def one_disk(
    count, seed, overhead_ms=0.3, track_ms=0.8, full_ms=12.0, rotation_ms=8.333, idle_ms=2.0
):
    """Return sequentially issued requests to a disk of the fitted model, with a little noise."""
    random = np.random.default_rng(seed)
    stroke = 1000 * MIB
    place = random.integers(stroke // 4096, size=count) * 4096
    length = random.choice([4 * KIB, 256 * KIB], size=count)
    place = np.minimum(place, stroke - length)
    distance = np.abs(np.diff(place, prepend=0) - np.concatenate([[0], length[:-1]]))
    seek_ms = track_ms + (full_ms - track_ms) * np.sqrt(distance / stroke)
    rotation = random.uniform(0, rotation_ms, count)
    service = (
        overhead_ms + seek_ms + rotation + length / MIB * 8.0 + random.logistic(0, 0.05, count)
    )
    idle = random.exponential(idle_ms, count)
    done = np.cumsum((service + idle) * MS)
    return observed(done - service * MS, done, place, length)


def test_intervals_cover_the_true_value_at_their_nominal_rate():
    truth = {"track_ms": 0.8, "reach_ms": 11.2, "rotation_ms": 8.333, "per_mib_ms": 8.0}
    held = []
    undetermined = ("settle_ms", "overhead_ms")
    numbers = {name: one for name, one in disks.NUMBERS.items() if name not in undetermined}
    for seed in range(10):
        capture = one_disk(800, seed)
        seen = pieces(capture, capture.dispatch_ns, Layout(1, MIB))
        density = disks._density(seen, {"overhead_ms": 0.3}, seen.is_timed)
        estimates = disks.with_intervals(disks.likeliest(numbers, density), numbers, density)
        held += [
            estimates.low[name] <= value <= estimates.high[name] for name, value in truth.items()
        ]
        assert estimates.values["per_mib_ms"] == pytest.approx(8.0, rel=0.1)
    assert np.mean(held) >= 0.85


def test_flash_is_recognised_by_short_latencies_and_fitted_as_an_ssd(tmp_path):
    random = np.random.default_rng(1)
    rows, at, start = [], 0, 0
    for number in range(3000):
        at += int(random.exponential(400_000)) * (number % 5 == 0)  # in bursts of five
        length = int(random.choice([4096, 131_072]))
        start = max(at, start + 20_000)
        done = start + 90_000 + (length - 4096) * 2
        rows.append((at, "R", int(random.integers(10**5)) * 4096, length, at, done))
    model = fit(csv(tmp_path / "flash.csv", rows), check=False)
    assert estimate(model, "random_read_iops").value == pytest.approx(50_000, rel=0.15)
    assert model.scenario().backing.drive.kind == "ssd"


def test_latency_and_rate_of_flash_are_fitted_from_single_requests():
    random = np.random.default_rng(2)
    length = random.choice([4096, 65_536, 131_072], size=2000)
    start = np.arange(2000) * 1_000_000
    done = start + 80_000 + (length - 4096) * 2 + random.integers(-3000, 3000, 2000)
    model = flash.fit(observed(start, done, random.integers(10**6, size=2000) * 4096, length))
    latency, rate = model.latency_ns["read"], model.bytes_per_s
    assert latency.low - 500 <= 80_000 <= latency.high + 500
    assert rate.value == pytest.approx(500e6, rel=0.05)
    assert "idle" in model.undetermined["write_latency"]
    assert "outstanding" in model.undetermined["interval"]


def test_the_rate_of_flash_has_an_interval_between_the_rates_that_are_tried():
    """Requests start 20 us apart, and take 90 us that vary by 15: the rate is not exact."""
    random = np.random.default_rng(4)
    at = np.cumsum(random.exponential(200_000, 1000)).astype(np.int64)
    at = at.repeat(np.arange(1000) % 5 + 1)
    started = np.maximum.accumulate(at - np.arange(3000) * 20_000) + np.arange(3000) * 20_000
    done = started + 90_000 + random.normal(0, 15_000, 3000).astype(np.int64)
    found = flash.fit(observed(at, done, random.integers(10**6, size=3000) * 4096)).interval_ns
    assert found.low < found.value < found.high
    assert found.high < 1.2 * found.low
    assert found.low <= 20_000 <= found.high


# Layout of an array.


def test_pieces_of_requests_lie_on_the_members_of_the_stripe():
    capture = observed([0, 1], [10, 20], [60 * KIB, 0], np.array([200 * KIB, 4 * KIB]))
    seen = pieces(capture, capture.dispatch_ns, Layout(2, 64 * KIB))
    # 60..260 KiB: 60..64 and 128..192 on member 0, 64..128 and 192..256 on 1, 256..260 on 0
    assert sorted((seen.length_bytes / KIB).tolist()) == [4, 72, 128]
    assert seen.first.tolist() == [0, 2]


def test_the_order_of_completions_shows_whether_a_disk_reorders():
    capture = observed([0, 0, 0, 0], [10, 20, 30, 40], [0, 4 * MIB, 2 * MIB, MIB])
    one = pieces(capture, capture.dispatch_ns, Layout(1, MIB))
    assert choice_share(one) == 0
    turned = replace(capture, complete_ns=capture.complete_ns[::-1].copy())
    assert choice_share(pieces(turned, turned.dispatch_ns, Layout(1, MIB))) == 1


def test_requests_beyond_the_queue_depth_enter_at_a_completion():
    capture = observed([0, 1, 2], [30, 20, 50], [0, 0, 0])
    assert capture.entered_ns(0).tolist() == [0, 1, 2]
    assert capture.entered_ns(2).tolist() == [0, 1, 20]
    assert capture.entered_ns(1).tolist() == [0, 30, 30]


def test_a_long_capture_is_sampled_in_stretches():
    def chunks():
        for number in range(100):
            rows = no_requests(STRETCH)
            yield rows._replace(
                arrival_ns=rows.arrival_ns + number,
                length_bytes=rows.length_bytes + 512,
                dispatch_ns=rows.dispatch_ns + number,
                complete_ns=rows.complete_ns + number + 1,
            )

    kept = observe(chunks())
    assert kept.requests == 100 * STRETCH
    assert STRETCHES_MAX * STRETCH // 2 <= kept.rows <= STRETCHES_MAX * STRETCH
    assert len(list(kept.stretches())) == kept.rows // STRETCH


# Refused captures.


def test_a_capture_that_lacks_many_completions_is_refused(tmp_path):
    rows = [(i, "R", i * 4096, 4096, i, i + 1 if i % 5 else "") for i in range(1000)]
    with pytest.raises(FitError, match=r"20% of its requests have no completion.*all CPUs"):
        fit(csv(tmp_path / "cpu.csv", rows))


def test_a_capture_without_completions_is_refused(tmp_path):
    path = csv(tmp_path / "open.csv", [(i, "R", i * 4096, 4096, i, "") for i in range(300)])
    with pytest.raises(FitError, match="no completions"):
        fit(path)


def test_too_few_requests_are_refused(tmp_path):
    path = csv(tmp_path / "few.csv", [(i, "R", 0, 4096, i, i + 9) for i in range(20)])
    with pytest.raises(FitError, match="only 20 reads and writes"):
        fit(path)


def test_a_sequential_capture_is_refused(tmp_path):
    rows = [(i * 10**6, "R", i * 4096, 4096, i * 10**6, i * 10**6 + 10**5) for i in range(500)]
    with pytest.raises(FitError, match="not sequential"):
        fit(csv(tmp_path / "stream.csv", rows))


def test_latencies_unlike_those_of_disks_are_refused(tmp_path):
    random = np.random.default_rng(3)
    rows = []
    for number in range(600):
        at, took = number * 10**9, int(random.choice([2.5, 90, 300]) * MS)
        rows.append((at, "R", int(random.integers(10**6)) * 4096, 4096, at, at + took))
    with pytest.raises(FitError, match="not those of disks"):
        fit(csv(tmp_path / "odd.csv", rows))


def random_rows(count, took, length=4096, seed=6):
    """Return rows of a CSV capture: one request at a time, at random places."""
    random = np.random.default_rng(seed)
    rows, at = [], 0
    for each in took:
        rows.append((at, "R", int(random.integers(10**6)) * 65_536, length, at, at + int(each)))
        at += int(each) + 1_000_000
    assert len(rows) == count
    return rows


def test_merged_requests_are_refused(tmp_path):
    """A table of a capture: the device got four requests as one, and completed them as one."""
    rows = []
    for at, op, place, length, _, done in random_rows(300, np.full(300, 9e6)):
        rows += [(at, op, place + part * length, length, at, done) for part in range(4)]
    with pytest.raises(FitError, match="the device got them merged"):
        fit(csv(tmp_path / "merged.csv", rows))


def test_a_disk_behind_a_cache_is_refused(tmp_path):
    random = np.random.default_rng(8)
    took = np.where(random.random(600) < 0.7, 90e3, random.uniform(4e6, 16e6, 600))
    with pytest.raises(FitError, match="two devices"):
        fit(csv(tmp_path / "cached.csv", random_rows(600, took)))


def test_a_disk_whose_writes_go_elsewhere_first_is_refused(tmp_path):
    """SMR: writes take 1 ms until the drive cleans its zones, which takes seconds."""
    random = np.random.default_rng(9)
    took = random.uniform(4e6, 16e6, 800)
    rows = random_rows(800, took)
    slow = random_rows(
        800, np.where(np.arange(800) % 400 == 9, 3e9, np.where(took > 9e6, 1e6, took))
    )
    writes = [(at, "W" if each > 9e6 else "R", *rest) for (at, _, *rest), each in zip(slow, took)]
    with pytest.raises(
        FitError, match=r"random writes take 1(\.0+)? ms.*is a shingled \(SMR\) disk"
    ):
        fit(csv(tmp_path / "smr.csv", writes))
    cached = [(at, op, *rest) for at, op, *rest in writes if rest[-1] - at < 1e9]
    with pytest.raises(FitError, match="a write cache or shingled recording"):
        fit(csv(tmp_path / "cached.csv", cached))
    fit(csv(tmp_path / "reads.csv", rows), check=False)  # the same disk, reads alone


def test_a_device_whose_host_manages_zones_is_refused(tmp_path):
    """Host-managed SMR: one command that opens a zone, in a capture of version 8."""
    queued, open_zone = 1, 1 << 18 << 16
    files = {}
    for name, data in cpu_files("loop_raw_split_discard_flush").items():
        changed = bytearray(as_version_8(data))
        at = 0
        while at + HEADER_V8.size <= len(changed):
            fields = list(HEADER_V8.unpack_from(changed, at))
            action = fields[6]
            if action & 0xFF == queued and not action >> 16 & 1 << 10:
                fields[6] = action | open_zone
                HEADER_V8.pack_into(changed, at, *fields)
                break
            at += HEADER_V8.size + fields[-1]
        files[name] = bytes(changed)
    with pytest.raises(FitError, match="zones of the host"):
        fit(write_files(tmp_path, files))


def test_stalls_are_noted(tmp_path):
    took = np.random.default_rng(9).uniform(4e6, 16e6, 800)
    took[::100] = 2e9
    model = fit(csv(tmp_path / "stalls.csv", random_rows(800, took)), check=False)
    assert "8 of 800 random requests at low load took more than 500 ms" in model.notes[-1]


def two_arms(count, seed, halves=True):
    """Return requests to two arms, four outstanding: each half of the addresses, or any of two."""
    random = np.random.default_rng(seed)
    stroke = 2000 * MIB
    place = random.integers(stroke // 4096, size=count) * 4096
    dispatch, done = np.zeros(count, np.int64), np.zeros(count, np.int64)
    free, head, outstanding = [0.0, 0.0], [0, 0], [0.0] * 4
    for row in range(count):
        at = outstanding.pop(0)
        arm = int(place[row] >= stroke // 2) if halves else 0
        seek_ms = 0.8 + 11 * np.sqrt(abs(place[row] - head[arm]) / (stroke // 2))
        free[arm] = max(free[arm], at) + (seek_ms + random.uniform(0, 8.333)) * MS
        dispatch[row], done[row], head[arm] = at, free[arm], place[row] + 4096
        outstanding = sorted([*outstanding, free[arm]])
    rank = np.argsort(dispatch, kind="stable")
    return observed(dispatch[rank], done[rank], place[rank])


def test_a_disk_with_two_actuators_is_refused():
    quiet = lambda what, done, of: None  # noqa: E731
    with pytest.raises(FitError, match="two actuators"):
        array.answer("halves", two_arms(1500, 1), quiet, [])
    assert not arrangement(two_arms(1000, 1, halves=False), quiet).is_halved


def test_a_fall_of_the_write_speed_is_noted(tmp_path):
    """SLC: 3,000 writes of 50 us, then of 300 us; without a fall there is no note."""
    random = np.random.default_rng(10)
    for fall in (1, 6):
        rows = []
        for number in range(4000):
            took = int(random.uniform(45_000, 55_000)) * (fall if number >= 3000 else 1)
            at = number * 10**6
            rows.append((at, "W", int(random.integers(10**5)) * 65_536, 65_536, at, at + took))
        notes = fit(csv(tmp_path / "slc.csv", rows), check=False).notes
        assert any("(SLC) is full" in note for note in notes) == (fall > 1)


def test_reads_that_become_slower_for_good_are_noted_as_throttling(tmp_path):
    """A drive that is too warm reads slower while nothing else is under way."""
    random = np.random.default_rng(11)
    for slower in (1, 3):
        took = random.uniform(85_000, 95_000, 4000) * np.where(np.arange(4000) >= 3000, slower, 1)
        notes = fit(csv(tmp_path / "warm.csv", random_rows(4000, took)), check=False).notes
        assert any("it throttles, being too warm" in note for note in notes) == (slower > 1)


def test_one_request_at_a_time_is_taken_as_one_disk():
    """Several disks are never busy at once then: nothing tells them from one."""
    found = arrangement(one_disk(700, 5), lambda what, done, of: None)
    assert (found.layout.members, found.deepest) == (1, 1)
    assert not found.is_clear


def test_an_assumed_overhead_makes_the_seeks_as_unsure_as_itself():
    """The disk is never idle: its 0.6 ms of overhead cannot be separated from the arm's times."""
    found = estimates(one_disk(800, 1, overhead_ms=0.6, idle_ms=0.0))
    assert not found["overhead"].determined
    for key, truth in (("seek_average", 6.77 * MS), ("seek_full", 12 * MS)):
        assert found[key].low <= truth <= found[key].high
        assert found[key].value > truth  # the difference of the overheads is in it


def test_an_overhead_that_no_request_is_without_is_assumed():
    """Each request finds the disk idle: only the sum of overhead and seek is in the times."""
    found = estimates(one_disk(800, 2, overhead_ms=0.6, idle_ms=2.0))
    assert not found["overhead"].determined
    assert "waited for another" in found["overhead"].how
    for key, truth in (("seek_track_to_track", 0.8 * MS), ("seek_full", 12 * MS)):
        assert found[key].low <= truth <= found[key].high


def test_a_direction_in_which_the_likelihood_is_flat_has_no_interval():
    """Only the sum of a and b is in the observations; c is by itself."""
    random = np.random.default_rng(3)
    sums, alone = random.normal(5.0, 1.0, 400), random.normal(1.0, 0.1, 400)
    numbers = {name: Number(1.0, 0.0, 50.0, is_log=False) for name in "abc"}

    def density(values):
        off, of_c = sums - values["a"] - values["b"], alone - values["c"]
        return -(off**2) / 2 - of_c**2 / 0.02, {"a": off, "b": off, "c": of_c / 0.01}

    found = with_intervals(likeliest(numbers, density), numbers, density)
    for name in "ab":
        assert (found.low[name], found.high[name]) == (0.0, 50.0)
    assert found.high["c"] - found.low["c"] == pytest.approx(2 * 1.96 * 0.1 / 20, rel=0.2)


def test_a_disk_without_settling_has_an_interval_that_begins_at_0():
    case = known("seagate-barracuda-st2000dm006", 5068)
    settle = estimates(case.observed)["write_settle"]
    assert settle.determined
    assert settle.low == case.truth["write_settle"] == 0.0
    assert settle.high > 0.01 * MS


def test_the_rate_includes_the_skew_once():
    """Random requests cross borders of tracks: what they take a byte is the sustained rate."""
    case = known("maxtor-atlas-10k5", 3, 1000)
    rate = estimates(case.observed)["rate_mean"]
    assert rate.low <= case.truth["rate_mean"] <= rate.high
    assert rate.value == pytest.approx(case.truth["rate_mean"], rel=0.12)


def test_a_revolution_at_the_end_of_what_is_searched_is_no_disk():
    values = {"stray": 0.01, "noise_ms": 0.3, "rotation_ms": disks.NUMBERS["rotation_ms"].high}
    model = disks.DiskFit(disks.Likeliest(values, {}, {}, 0.0), {}, None, 1000, (17.0, 17.0, 17.0))
    assert "no rotation of 3 to " in model.why_not
    values["rotation_ms"] = 8.3
    assert not model.why_not


def test_a_capture_without_dispatch_times_is_fitted_with_a_note(tmp_path):
    random = np.random.default_rng(4)
    rows = [
        (i * 10**6, "R", int(random.integers(10**5)) * 4096, 4096, "", i * 10**6 + 90_000)
        for i in range(500)
    ]
    model = fit(csv(tmp_path / "queued.csv", rows), check=False)
    assert any("no dispatch" in note for note in model.notes)


@pytest.mark.parametrize(("long", "span_ms"), [(20, 8.0 / 20), (2000, 8.0 / 2000)])
def test_the_rate_is_as_unsure_as_the_ends_of_few_long_requests(long, span_ms):
    """The last of n requests is an n-th part of a turn before its end, which hides their length."""
    values = {"per_mib_ms": 8.0, "rotation_ms": 8.0, "track_ms": 1.0, "reach_ms": 9.0,
              "linear": 0.1, "noise_ms": 0.1, "stray": 0.01}  # fmt: skip
    likely = disks.Likeliest(values, values, values, 0.0)  # certain by the likelihood
    compared = {"per_mib_ms": long}
    model = disks.DiskFit(likely, {}, None, 4000, (8.0, 8.0, 8.0), 1.0, compared, (0, 2**19))
    rate = array._rates(model)[0]
    most_ms = 2**20 * 1e3 / rate.low
    own_ms = np.hypot(array.RATE_OFF_MS, array.END * span_ms)
    assert most_ms - 8.0 == pytest.approx(np.hypot(own_ms / 0.5, array.RATE_OFF * 8.0))


def test_the_overhead_is_the_mean_of_reads_and_writes():
    """A disk whose writes have 0.2 ms, its reads 1.5; 30 % are writes."""
    case = known_stripe("seagate-barracuda-st2000dm006", 60043)
    assert case.observed.is_write.any()
    overhead = estimates(case.observed, case.layout)["overhead"]
    assert overhead.low <= case.truth["overhead"] <= overhead.high
    assert overhead.high < 1.5 * MS


@pytest.mark.parametrize(
    ("rpm", "half", "taken"),
    [(7150, 0.002, 7200), (7070, 0.002, None), (7070, 0.02, 7200), (10_250, 0.05, None)],
)
def test_a_usual_speed_is_taken_where_it_is_the_only_one_in_the_interval(rpm, half, taken):
    """The interval allows for the arm's curve; nothing beyond it is added to reach a speed."""
    rotation_ms = 60e3 / rpm
    raw = (rotation_ms, rotation_ms * (1 - half), rotation_ms * (1 + half))
    found = disks._usual(raw)
    assert found == ({} if taken is None else {"rotation_ms": 60e3 / taken})
    low, high = disks.speeds(raw)
    assert low < rpm < high
    assert taken is None or low <= taken <= high


def test_an_interval_is_95_in_100_of_a_range():
    """Values evenly spread from 0.54 below to 0.3 above: 2.5 in 100 are beyond either end."""
    below, above = array.within(0.54, 0.3)
    assert below + above == pytest.approx(0.95 * 0.84)
    assert 0.54 - below == pytest.approx(0.3 - above)
    assert array.within(0.0, 0.0) == (0.0, 0.0)
