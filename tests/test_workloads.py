"""Generated workloads: each kind follows its keys, reproducibly."""

import hashlib
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from captures import TRACES, as_rows, read
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from hybridsim.cli.trace import trace
from hybridsim.foundation.codes import Op
from hybridsim.foundation.errors import WorkloadError
from hybridsim.requests.rows import joined
from hybridsim.traces.trace import Trace
from hybridsim.workloads.draws import Draws, PowerLaw, Scattered

KIB, MIB, GIB, SECOND = 1 << 10, 1 << 20, 1 << 30, 10**9
ICF = TRACES / "workloads" / "web.icf"
MAIL = TRACES / "workloads" / "mail.toml"


def requests_of(line, **options):
    return read(f"gen:{line}", **options)


def share_within(rows, low, high):
    return np.mean((rows.offset_bytes >= low) & (rows.offset_bytes < high))


class TestAnyLoad:
    LINES = (
        "hot-spot,theta=0.8,every=10s,size=4k/70:64k/30",
        "random,rate=150+sequential,streams=3,rate=50",
        "sysbench,test-mode=rndrw,threads=5,fsync-freq=7",
        "iometer,depth=1-16,ramp=5s,run=20s",
    )

    @pytest.mark.parametrize("line", LINES)
    def test_chunk_sizes_do_not_change_the_requests(self, line):
        opened = Trace.read(f"gen:{line},requests=150k")
        whole, cut = joined(list(opened.chunks())), joined(list(opened.chunks(777)))
        assert all((a == b).all() for a, b in zip(whole, cut))
        assert (np.diff(whole.arrival_ns) >= 0).all()

    def test_the_seed_determines_the_requests(self):
        first, same, other = (requests_of(f"zipf,requests=100,seed={seed}") for seed in (1, 1, 2))
        assert as_rows(first) == as_rows(same) != as_rows(other)

    def test_the_requests_are_the_same_on_every_machine(self):
        """A change of this hash changes all users' workloads: mention it in the release notes."""
        digest = hashlib.sha256()
        for line in ("hot-spot,theta=1.2,every=1s", "zipf,theta=0.99", "sequential,run=1MiB"):
            for column in requests_of(f"{line},requests=5000,burst_every=20s"):
                digest.update(column.astype("<i8").tobytes())
        assert digest.hexdigest()[:16] == "dc24015172ef5134"

    def test_memory_does_not_grow_with_the_number_of_requests(self):
        opened = Trace.read("gen:random+sequential,requests=1M")
        next(iter(opened.chunks()))
        tracemalloc.start()
        assert sum(chunk.rows for chunk in opened.chunks()) == 1_000_000
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak_bytes < 48 * MIB

    def test_size_and_read_shares_are_as_specified(self):
        rows = requests_of("random,size=4k/70:64k/30,read=60%,requests=50k")
        assert np.mean(rows.length_bytes == 64 * KIB) == pytest.approx(0.3, abs=0.01)
        assert np.mean(rows.op == Op.READ) == pytest.approx(0.6, abs=0.01)
        assert (rows.offset_bytes % (4 * KIB) == 0).all()
        assert (rows.offset_bytes + rows.length_bytes <= 16 * GIB).all()

    @pytest.mark.parametrize("arrivals", ["poisson", "even"])
    def test_rate_and_distribution_of_arrivals_are_as_specified(self, arrivals):
        gaps_s = (
            np.diff(requests_of(f"random,rate=200,arrivals={arrivals},requests=50k").arrival_ns)
            / 1e9
        )
        assert gaps_s.mean() == pytest.approx(1 / 200, rel=0.02)
        assert gaps_s.std() * 200 == pytest.approx(float(arrivals == "poisson"), abs=0.03)

    def test_bursts_have_their_own_rate(self):
        rows = requests_of(
            "random,rate=100,burst_every=10s,burst_lasts=1s,burst_rate=5k,duration=100s"
        )
        in_burst = rows.arrival_ns % (10 * SECOND) >= 9 * SECOND
        assert in_burst.sum() == pytest.approx(10 * 5_000, rel=0.02)
        assert (~in_burst).sum() == pytest.approx(90 * 100, rel=0.05)

    def test_several_loads_run_concurrently_each_in_its_span_and_time(self):
        rows = requests_of(
            "random,span=1GiB,rate=300+random,at=4GiB,span=1GiB,begin=50s,duration=100s"
        )
        second = rows.stream == 1 << 16
        assert share_within(rows, 1 * GIB, 4 * GIB) == 0
        assert rows.arrival_ns[second].min() >= 50 * SECOND
        assert rows.arrival_ns.max() < 100 * SECOND
        assert (~second).sum() / second.sum() == pytest.approx(6, rel=0.06)


class TestHotSpot:
    def test_the_hot_part_gets_its_share_of_the_load(self):
        rows = requests_of("hot-spot,span=1GiB,hot=10%,share=80%,requests=100k")
        counts = np.bincount(rows.offset_bytes // MIB, minlength=1024)
        hottest = np.sort(counts)[::-1][:102].sum() / counts.sum()
        assert hottest == pytest.approx(0.8 + 0.2 * 0.1, abs=0.02)

    @pytest.mark.parametrize(("where", "low"), [("start", 0), ("middle", 460), ("end", 921)])
    def test_a_hot_spot_may_be_contiguous(self, where, low):
        rows = requests_of(f"hot-spot,span=1GiB,hot=103MiB,share=100%,where={where},requests=10k")
        assert share_within(rows, low * MIB, (low + 103) * MIB) == 1

    def test_a_contiguous_hot_spot_moves_by_its_share(self):
        rows = requests_of(
            "hot-spot,span=1GiB,hot=100MiB,share=100%,where=start,every=10s,moved=10%,duration=100s"
        )
        for move in range(10):
            then = rows.arrival_ns // (10 * SECOND) == move
            low, high = rows.offset_bytes[then].min(), rows.offset_bytes[then].max()
            assert (low, high) == pytest.approx((move * 10 * MIB, (100 + move * 10) * MIB), abs=MIB)

    def test_a_scattered_hot_spot_replaces_its_share(self):
        rows = requests_of(
            "hot-spot,span=1GiB,hot=10%,share=100%,every=100s,moved=25%,duration=200s,rate=1k"
        )
        first, second = (
            set(rows.offset_bytes[rows.arrival_ns // (100 * SECOND) == step] // MIB)
            for step in (0, 1)
        )
        assert len(first) == len(second) == 102
        assert len(first - second) == 26

    def test_theta_skews_accesses_within_a_hot_spot(self):
        rows = requests_of("hot-spot,span=1GiB,hot=10%,share=100%,theta=1,requests=100k")
        counts = np.sort(np.bincount(rows.offset_bytes // MIB))[::-1]
        assert counts[0] / counts[9] == pytest.approx(10, rel=0.15)


class TestOtherKinds:
    def test_zipf_has_the_specified_exponent(self):
        rows = requests_of("zipf,span=1GiB,theta=1.2,unit=64k,requests=200k")
        counts = np.sort(np.bincount(rows.offset_bytes // (64 * KIB)))[::-1]
        assert counts[0] / counts[31] == pytest.approx(32**1.2, rel=0.1)

    def test_zones_get_their_shares(self):
        rows = requests_of("zoned,span=1GiB,zones=50/10:20/30:30/60,requests=50k")
        ends = [0, GIB / 10, GIB * 0.4, GIB]
        shares = [share_within(rows, low, high) for low, high in pairwise(ends)]
        assert shares == pytest.approx([0.5, 0.2, 0.3], abs=0.01)

    def test_streams_alternate_and_continue_at_their_end(self):
        rows = requests_of("sequential,span=1GiB,size=64k,streams=4,requests=1000")
        for stream in range(4):
            mine = rows.offset_bytes[stream::4]
            assert mine[0] == stream * GIB // 4
            assert (np.diff(mine) == 64 * KIB).all()

    def test_a_run_ends_and_the_next_one_begins_elsewhere(self):
        rows = requests_of("sequential,size=64k,run=1MiB,requests=1600")
        jumps = np.flatnonzero(np.diff(rows.offset_bytes) != 64 * KIB) + 1
        assert jumps.tolist() == list(range(16, 1600, 16))

    def test_a_stream_wraps_at_the_end_of_its_span(self):
        rows = requests_of("sequential,span=1MiB,size=64k,requests=40")
        assert rows.offset_bytes.tolist() == [n % 16 * 64 * KIB for n in range(40)]


class TestIometer:
    def test_lines_of_an_access_specification_have_their_shares(self):
        rows = requests_of("iometer,access=4096/75/100/100:65536/25/0/0,requests=50k")
        large = rows.length_bytes == 64 * KIB
        assert large.mean() == pytest.approx(0.25, abs=0.01)
        assert (rows.op == np.where(large, Op.WRITE, Op.READ)).all()
        ends = rows.offset_bytes + rows.length_bytes
        assert (rows.offset_bytes[1:] == ends[:-1])[large[1:]].all()

    def test_the_number_of_workers_doubles_with_each_step(self):
        rows = requests_of("iometer,depth=1-8,ramp=10s,run=20s")
        step = rows.arrival_ns // (30 * SECOND)
        assert [len(set(rows.stream[step == each])) for each in range(4)] == [1, 2, 4, 8]
        assert rows.arrival_ns.max() < 120 * SECOND
        for worker in range(8):
            mine = np.flatnonzero(rows.stream == worker)
            again = (step[mine][1:] == step[mine][:-1]).nonzero()[0]
            assert (rows.complete_ns[mine][again] == rows.arrival_ns[mine][again + 1]).all()


class TestSysbench:
    def test_rndrw_has_its_read_write_ratio_and_fsyncs(self):
        rows = requests_of("sysbench,test-mode=rndrw,threads=16,requests=20k")
        reads, writes = (rows.op == Op.READ).sum(), (rows.op == Op.WRITE).sum()
        assert reads / writes == pytest.approx(1.5, rel=0.05)
        flushes = np.flatnonzero(rows.op == Op.FLUSH)
        assert flushes.tolist() == list(range(100, 20_000, 101))
        assert set(rows.length_bytes[rows.op != Op.FLUSH]) == {16 * KIB}

    @pytest.mark.parametrize("mode", ["seqrd", "seqwr", "rndrd", "rndwr"])
    def test_each_mode_has_its_op_and_order(self, mode):
        rows = requests_of(f"sysbench,test-mode={mode},requests=500")
        data = rows.op != Op.FLUSH
        assert (rows.op[data] == (Op.READ if mode.endswith("rd") else Op.WRITE)).all()
        is_next = np.diff(rows.offset_bytes[data]) == 16 * KIB
        assert is_next.all() == mode.startswith("seq")
        assert data.all() == mode.endswith("rd")


def test_a_workload_is_a_trace_for_every_command():
    assert Trace.read(MAIL).format == "workload"
    summary = Trace.read(MAIL).summary()
    assert summary.span_ns < 600 * SECOND
    assert summary.max_end_bytes <= 4 * GIB + 128 * MIB


@pytest.mark.parametrize(("option", "suffix"), [("csv", ".csv.zst"), ("fio-iolog", ".iolog")])
def test_the_output_of_gen_reads_back_equal(option, suffix, tmp_path):
    line, path = "sysbench,test-mode=rndwr,threads=4,requests=500", tmp_path / f"x{suffix}"
    result = CliRunner().invoke(trace, ["gen", "--as", option, line, str(path)])
    assert result.output == f"{path}: 500 requests\n"
    expected, written = requests_of(line), read(path)
    assert Trace.read(path).format == option
    for name in ("op", "offset_bytes", "length_bytes"):
        assert (getattr(written, name) == getattr(expected, name)).all()
    late = written.arrival_ns - expected.arrival_ns
    assert np.ptp(late) < (1 if option == "csv" else 1000)


@pytest.mark.parametrize(
    ("line", "place", "message"),
    [
        ("zipf,thta=1", "1:10", "unknown key 'thta': did you mean 'theta'?"),
        ("zipf,hop=1k", "1:10", "unknown key 'hop': choose from"),  # not hot, of hot-spot
        ("zipf+hotspot", "1:10", "unknown kind of load 'hotspot': did you mean 'hot-spot'?"),
        ("random,rate", "1:12", "'rate' is not of the form key=value"),
        ("random,rate=0", "1:12", "rate must be above 0, not '0'"),
        ("random,read=70", "1:12", "'70' is not a percentage"),
        ("random,size=5MB,span=1MiB", "1:12", "a request of 5MB does not fit into the span"),
        ("hot-spot,hot=1k", "1:14", "the hot spot must be from one unit (1MiB) up to the span"),
        ("zoned,zones=50/90:50/90", "1:11", "the zones exceed 100 % of the span"),
        ("iometer,access=4096/100", "1:13", "'4096/100' is not a line of an access specification"),
        ("sysbench,size=4k", "1:14", "'size' is a key of another kind of load"),
        ("random,begin=5s,duration=1s", "1:21", "the workload ends before a load begins"),
        ("random,requests=many", "1:12", "'many' is not a count, as 500, 100k or 10M"),
        ("random,requests=" + "9" * 400, "1:12", "'" + "9" * 30 + "...' is not a count, as"),
        ("random,rate=" + "9" * 400, "1:12", "'" + "9" * 30 + "...' is not a number, as"),
        ("sequential,depth=0", "1:16", "'0' is not a depth, as 32 or '1-512'"),
        (
            "random,burst_every=1s,burst_lasts=1s",
            "1:27",
            "a burst of 1s must be shorter than burst_every",
        ),
    ],
)
def test_the_error_of_a_line_names_its_place(line, place, message):
    with pytest.raises(WorkloadError) as caught:
        Trace.read(f"gen:{line}")
    assert str(caught.value).startswith(f"workload:{place}: {message}")


def test_the_error_of_a_file_has_line_and_caret(tmp_path):
    path = tmp_path / "my.toml"
    path.write_text('[[load]]\nkind = "zipf"\n[[load]]\nkind = "random"\nsize = 4k\n')
    with pytest.raises(WorkloadError, match=r"my.toml:5:9: not TOML: .*size = \"4k\""):
        Trace.read(path)
    path.write_text('[[load]]\nkind = "zipf"\nread = "120%"\n')
    with pytest.raises(WorkloadError, match=r"my.toml:3:8: 120% must be at most 100%(.|\n)*\^"):
        Trace.read(path)


class TestIometerFiles:
    """Two tests of 5 s ramp and 20 s run, by one worker with 8 requests on 4 GiB."""

    def written(self, tmp_path, *changes):
        text = ICF.read_text()
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "its.icf"
        path.write_text(text.replace("\n", "\r\n"))
        return path

    def test_tests_of_the_file_run_in_sequence(self):
        rows = read(ICF)
        turn, end = np.searchsorted(rows.arrival_ns, [25 * SECOND, 50 * SECOND])
        first, second = rows.between(0, turn), rows.between(turn, end)
        assert rows.rows == first.rows + second.rows
        assert set(first.length_bytes) == {4 * KIB}
        assert np.mean(first.op == Op.READ) == pytest.approx(0.75, abs=0.03)
        following = first.offset_bytes[1:] == first.offset_bytes[:-1] + 4 * KIB
        assert following.all()
        assert np.mean(second.length_bytes == 64 * KIB) == pytest.approx(0.3, abs=0.03)
        assert set(second.offset_bytes[second.length_bytes == 64 * KIB] % (64 * KIB)) == {0}
        assert second.offset_bytes.max() < 4 * GIB
        assert len(set(rows.stream)) == 2 * 8

    def test_one_access_specification_can_be_selected_by_name(self):
        rows = requests_of(f"iometer,icf={ICF},spec=file SERVER,rate=400,requests=9k")
        assert set(rows.length_bytes) == {512, 4 * KIB, 64 * KIB}
        assert rows.arrival_ns[-1] == pytest.approx(9000 / 400 * SECOND, rel=0.05)

    def test_depth_cycles_and_several_targets_are_supported(self, tmp_path):
        two = "sda\n'Target type\n\tDISK\n'End target\n'Target\n\tsdb"
        path = self.written(tmp_path, ("\tNORMAL", "\tCYCLE_OUTSTANDING_IOS"), ("sda", two))
        rows = read(path)
        assert rows.arrival_ns[-1] == pytest.approx(2 * 6 * 25 * SECOND, rel=0.01)
        assert np.mean(rows.offset_bytes < 4 * GIB) == pytest.approx(0.5, abs=0.02)

    def test_a_worker_pauses_after_a_burst(self, tmp_path):
        path = self.written(tmp_path, ("4096,100,75,0,0,1,", "4096,100,75,0,500,20,"))
        rows = read(path)
        worker = rows.stream == rows.stream[0]
        arrival, complete = rows.arrival_ns[worker], rows.complete_ns[worker]
        pauses = arrival[1:60] - complete[:59]
        assert np.flatnonzero(pauses).tolist() == [19, 39]
        assert set(pauses[pauses > 0]) == {SECOND // 2}

    @pytest.mark.parametrize(
        ("change", "line", "message"),
        [
            (("60,80,100,0,1,4096,0", "60,80,100,0,1,4096,512"), 43, "replies are for networks"),
            (
                ("\tDISK\n'End target", "\tNETWORK,TCP\n'End target"),
                69,
                "network workers are not supported",
            ),
            (("\tNORMAL", "\tCYCLE_TARGETS"), 26, "tests that cycle over workers or targets"),
            (("512,10,80", "512,11,80"), 40, "the % of size of all lines must add up to 100"),
            (("\tFile server\n'End", "\tFile servers\n'End"), 63, "did you mean 'File server'?"),
            (
                ("65536,30,80,100,0,1,65536,0", "65536,30"),
                44,
                "not a line of an access specification",
            ),
            (("8388608,0,0", "8,0,0"), 63, "a request does not fit into 8 sectors"),
            (
                ("512,10,80,100,0,1", "512,10,80,100,9,1"),
                40,
                "delays are only supported if all lines",
            ),
        ],
    )
    def test_unsupported_settings_are_refused_with_their_line(
        self, change, line, message, tmp_path
    ):
        path = self.written(tmp_path, change)
        with pytest.raises(WorkloadError) as caught:
            read(path)
        assert f"its.icf:{line}:2: " in str(caught.value)
        assert message in str(caught.value)

    def test_an_unknown_name_or_file_is_refused(self, tmp_path):
        with pytest.raises(
            WorkloadError, match=r"workload:1:\d+: unknown access specification 'web'"
        ):
            requests_of(f"iometer,icf={ICF},spec=web")
        with pytest.raises(WorkloadError, match=r"workload:1:13: cannot read .*nowhere\.icf"):
            requests_of(f"iometer,icf={tmp_path}/nowhere.icf")


class TestDraws:
    def test_exponential_draws_have_their_quantiles(self):
        values = Draws(1).exponential(400_000)
        assert values.mean() == pytest.approx(1, abs=0.01)
        for share in (0.01, 0.5, 0.99, 0.9999):
            assert np.quantile(values, share) == pytest.approx(-np.log(1 - share), rel=0.05)

    @settings(max_examples=60, deadline=None)
    @given(st.integers(1, 5000), st.integers(0, 10))
    def test_scattered_is_a_permutation(self, count, seed):
        order = Scattered(count, seed)[np.arange(count)]
        assert sorted(order.tolist()) == list(range(count))

    def test_a_power_law_is_accurate_beyond_the_exact_ranks(self):
        ranks = PowerLaw(1_000_000, 0.8).choose(Draws(1), 400_000)
        weights = np.arange(1, 1_000_001) ** -0.8
        for low, high in ((0, 100), (5_000, 50_000), (500_000, 1_000_000)):
            expected = weights[low:high].sum() / weights.sum()
            assert np.mean((ranks >= low) & (ranks < high)) == pytest.approx(expected, abs=0.004)
