"""Thinned captures: the same file whatever the chunks, within its size, read despite damage."""

import contextlib
import json
import random
import struct

import numpy as np
import pytest
from click.testing import CliRunner

from hybridsim.cli import cli
from hybridsim.foundation.codes import Op
from hybridsim.foundation.errors import TraceError, UsageError
from hybridsim.foundation.histogram import bin_of
from hybridsim.requests.pages import SPAN, hashed_regions
from hybridsim.requests.rows import UNKNOWN, Requests, no_requests
from hybridsim.studies.hits import hits
from hybridsim.studies.mrc import miss_ratio_curve
from hybridsim.studies.record_thinned import thin
from hybridsim.traces.formats import thinned as thinned_reader
from hybridsim.traces.thinned.layout import (
    HEADER_BYTES,
    SIGNATURE,
    Counter,
    Counts,
    Kind,
    block,
    packed,
    rows_as_bytes,
    rows_of_bytes,
    unpacked,
)
from hybridsim.traces.thinned.thinner import (
    HOUR_NS,
    MINUTE_NS,
    Settings,
    Store,
    Thinner,
    thinned_rows,
)
from hybridsim.traces.trace import Trace

SECOND = 10**9
MIB = 1 << 20


def load(seconds, rate=50, seed=1, span=1 << 30, begin_ns=0):
    """Return requests of a skewed load: reads and writes of 4 to 64 KiB with latencies."""
    rng = np.random.default_rng(seed)
    count = int(seconds * rate)
    rows = no_requests(count)
    rows.arrival_ns[:] = begin_ns + np.sort(rng.integers(0, int(seconds * SECOND), count))
    hot = rng.random(count) < 0.7
    page = rng.integers(0, np.where(hot, span // 40960, span // 4096))
    rows.offset_bytes[:] = page * 4096
    rows.length_bytes[:] = 4096 << rng.integers(0, 5, count)
    rows.op[:] = rng.choice([Op.READ, Op.READ, Op.READ, Op.WRITE], count)
    rows.complete_ns[:] = rows.arrival_ns + rng.integers(10**5, 10**7, count)
    rows.complete_ns[rng.random(count) < 0.01] = UNKNOWN
    rows.stream[:] = 100 + rng.integers(0, 3, count)
    rows.dispatch_ns[:] = rows.arrival_ns + 1000
    return rows


def written(path, rows, chunk=10**9, **settings):
    """Write the thinned capture of requests, `chunk` of them at a time; return its bytes."""
    store = Store(path)
    thinner = Thinner(store, Settings(**settings))
    for start in range(0, rows.rows, chunk):
        thinner.take(rows.between(start, start + chunk))
    thinner.finish()
    store.close()
    return path.read_bytes()


def capture(path, rows, **settings):
    written(path, rows, **settings)
    return Trace.read(path)


def same(one, other):
    return all((a == b).all() for a, b in zip(one, other))


def doubling(values, bins):
    """Return a histogram whose bins double."""
    return np.bincount([int(each).bit_length() for each in values], minlength=bins).tolist()


class TestLayout:
    def test_numbers_are_restored(self):
        values = np.array([0, 1, 127, 128, 300, 2**40, 2**62, 2**63 - 1])
        assert (unpacked(packed(values), len(values)) == values).all()

    def test_requests_are_restored(self):
        rows = load(5)
        assert same(rows_of_bytes(rows_as_bytes(rows, 0, 1), 0), rows)

    def test_odd_bytes_are_restored(self):
        rows = load(5)
        rows.offset_bytes[3] += 1
        assert same(rows_of_bytes(rows_as_bytes(rows, 0, 1), 0), rows)

    def test_the_documented_layout_of_a_block(self):
        """Bytes as docs/reference/thinned.md describes them, read without the package's code."""
        import zlib

        from hybridsim.traces.formats.files import zstd

        data = block(Kind.COUNTS, 7, 60, 10, b"abc")
        magic, kind, version, spare, stored, raw, begin, span, number, check = struct.unpack(
            "<4sBBHIIqqII", data[:HEADER_BYTES]
        )
        assert (magic, kind, version, spare, raw) == (b"\xa7HTb", 2, 0, 0, 3)
        assert (begin, span, number) == (60, 10, 7)
        assert stored == len(data) - HEADER_BYTES
        assert check == zlib.crc32(data[:36] + data[40:])
        assert zstd.decompress(data[40:]) == b"abc"


class TestCounts:
    def test_counts_are_those_of_plain_loops(self):
        rows = load(20, rate=200)
        counts = Counts.none(0, 1)
        Counter().add(rows, counts)
        outstanding, depths = [], 0
        for arrival, complete in zip(rows.arrival_ns.tolist(), rows.complete_ns.tolist()):
            depths += sum(done > arrival for done in outstanding)
            if complete != UNKNOWN:
                outstanding.append(complete)
        assert counts.of("depth_sum")[0] == depths
        assert counts.of("requests")[Op.READ] == (rows.op == Op.READ).sum()
        assert counts.of("bytes").sum() == rows.length_bytes.sum()
        pages = (rows.offset_bytes + rows.length_bytes - 1) // 65536 - rows.offset_bytes // 65536
        assert counts.page_accesses(65536) == (pages + 1).sum()
        assert counts.page_accesses(65537) is None
        known = rows.complete_ns != UNKNOWN
        latency = np.sort((rows.complete_ns - rows.arrival_ns)[known])
        assert counts.mean_latency_ns == pytest.approx(latency.mean())
        assert counts.percentile(99) == pytest.approx(latency[int(len(latency) * 0.99)], rel=0.05)
        end = {Op.READ: -1, Op.WRITE: -1}
        sequential = [0, 0]
        for op, offset, length in zip(rows.op, rows.offset_bytes, rows.length_bytes):
            sequential[op] += offset == end[op]
            end[op] = offset + length
        assert counts.of("sequential").tolist() == sequential
        gaps, sizes = np.diff(rows.arrival_ns), rows.length_bytes[rows.op == Op.WRITE]
        assert counts.of("gaps").tolist() == doubling(gaps, 48)
        assert counts.of("sizes").tolist()[32:] == doubling(sizes, 32)
        took = (rows.complete_ns - rows.arrival_ns)[known & (rows.op == Op.READ)]
        bins = np.bincount(bin_of(took) >> 2, minlength=29 * 16).tolist()
        assert counts.of("latencies").tolist()[: len(bins)] == bins

    def test_counts_do_not_depend_on_chunks(self):
        rows = load(20, rate=200)
        whole, parts, counter = Counts.none(0, 1), Counts.none(0, 1), Counter()
        Counter().add(rows, whole)
        for start in range(0, rows.rows, 7):
            counter.add(rows.between(start, start + 7), parts)
        assert (whole.vector == parts.vector).all()

    def test_counts_are_restored(self):
        counts = Counts.none(0, 10)
        Counter().add(load(20), counts)
        assert (Counts.of_bytes(counts.to_bytes(), 0, 10).vector == counts.vector).all()


class TestSample:
    def test_of_a_request_the_sampled_regions_are_kept(self):
        rows = load(30, span=1 << 28)
        rows.length_bytes[:] = 3 * MIB
        threshold = SPAN // 2
        kept = thinned_rows(rows, threshold, Settings(region_bytes=MIB))
        want = set()
        for at, offset in enumerate(rows.offset_bytes.tolist()):
            for byte in range(offset, offset + 3 * MIB, 4096):
                if hashed_regions(np.array([byte // MIB]), 0)[0] < threshold:
                    want.add((int(rows.arrival_ns[at]), byte))
        got = {
            (int(arrival), byte)
            for arrival, offset, length in zip(
                kept.arrival_ns, kept.offset_bytes.tolist(), kept.length_bytes.tolist()
            )
            for byte in range(offset, offset + length, 4096)
        }
        assert got == want

    def test_thinning_twice_is_thinning_once(self):
        rows = load(30)
        rows.length_bytes[:] *= 20
        low, high = SPAN // 10, SPAN // 3
        settings = Settings(region_bytes=MIB, seed=3)
        once = thinned_rows(rows, low, settings)
        assert same(thinned_rows(thinned_rows(rows, high, settings), low, settings), once)

    def test_flushes_and_discards_are_only_counted(self):
        rows = load(1)
        rows.op[:] = Op.DISCARD
        assert thinned_rows(rows, SPAN, Settings(region_bytes=MIB)).rows == 0


class TestFile:
    @pytest.mark.parametrize("chunk", [1, 17, 1000])
    def test_the_file_does_not_depend_on_chunks(self, tmp_path, chunk):
        rows = load(200, rate=20)
        options = {"rate": 0.3, "region_bytes": 65536}
        whole = written(tmp_path / "whole", rows, **options)
        assert written(tmp_path / "parts", rows, chunk, **options) == whole

    def test_nor_does_a_file_that_was_written_again(self, tmp_path):
        rows = load(4 * 3600, rate=8)
        options = {"region_bytes": 65536, "max_bytes": 1 << 19}
        whole = written(tmp_path / "whole", rows, **options)
        assert written(tmp_path / "parts", rows, 4097, **options) == whole
        assert Trace.read(tmp_path / "whole").sample.rate < 1

    def test_a_file_stays_within_its_maximum_at_all_times(self, tmp_path):
        rows, most = load(6 * 3600, rate=8), 1 << 19
        store = Store(tmp_path / "a")
        thinner = Thinner(store, Settings(max_bytes=most, region_bytes=65536))
        for start in range(0, rows.rows, 500):
            thinner.take(rows.between(start, start + 500))
            assert sum(each.stat().st_size for each in tmp_path.iterdir()) <= most
        thinner.finish()
        assert thinner.written_again > 1

    @pytest.mark.parametrize("most", [1 << 18, 300_000, 400_000, 1 << 19, 1 << 20, 3 << 20])
    def test_nor_does_the_last_minute_make_it_larger(self, tmp_path, most):
        """One minute with many requests: what it takes in full may be more than the maximum."""
        rows = load(70, rate=1000)
        store = Store(tmp_path / "a")
        thinner = Thinner(store, Settings(max_bytes=most, region_bytes=65536))
        thinner.take(rows)
        thinner.finish()
        store.close()
        assert (tmp_path / "a").stat().st_size <= most
        assert Trace.read(tmp_path / "a").sample.total.requests == rows.rows

    def test_a_rate_that_fell_leaves_what_it_would_have_kept(self, tmp_path):
        rows = load(4 * 3600, rate=8)
        fell = capture(tmp_path / "fell", rows, region_bytes=65536, max_bytes=1 << 19)
        always = capture(
            tmp_path / "always", rows, region_bytes=65536, rate=fell.sample.threshold / SPAN
        )
        one = list(fell.recorded())
        other = list(always.recorded())
        assert same(*(Requests._make(map(np.concatenate, zip(*each))) for each in (one, other)))

    def test_counters_are_of_all_requests(self, tmp_path):
        rows = load(4 * 3600, rate=8)
        opened = capture(tmp_path / "a", rows, region_bytes=65536, max_bytes=1 << 19)
        assert opened.sample.total.requests == rows.rows
        minutes = list(opened.counts())
        assert [each.begin_ns for each in minutes] == [n * MINUTE_NS for n in range(240)]
        assert sum(each.requests for each in minutes) == rows.rows

    def test_the_worst_minute_of_each_hour_is_kept_in_full(self, tmp_path):
        rows = load(2 * 3600, rate=8)
        slow = rows.arrival_ns // MINUTE_NS == 77
        rows.complete_ns[slow] = rows.arrival_ns[slow] + SECOND
        capture(tmp_path / "a", rows, rate=0.01)
        worst = Trace.read(tmp_path / "a", device="worst")
        assert same(next(worst.chunks(10**6)), Requests._make(each[slow] for each in rows))
        assert len(worst.capture.stretches) == 4

    def test_a_minute_of_many_requests_is_cut(self, tmp_path):
        rows = load(60, rate=2000)
        capture(tmp_path / "a", rows, rate=0.01)
        assert same(next(Trace.read(tmp_path / "a", device="worst").chunks(10**6)),
                    rows.between(0, 1 << 16))  # fmt: skip

    def test_a_maximum_that_counters_alone_fill_is_refused(self, tmp_path):
        rows = load(9 * 3600, rate=8)
        with pytest.raises(UsageError, match="its counters alone take"):
            written(tmp_path / "a", rows, region_bytes=65536, max_bytes=1 << 18)

    def test_too_small_a_maximum_is_refused(self, tmp_path):
        with pytest.raises(UsageError, match="at least 256 KiB"):
            Settings(max_bytes=1000).check()

    def test_a_capture_is_resumed_after_an_interruption(self, tmp_path):
        path = tmp_path / "a"
        first, second = load(100), load(100, seed=2, begin_ns=2 * HOUR_NS)
        written(path, first, rate=0.5)
        with path.open("ab") as file:
            file.write(block(Kind.COUNTS, 9, 0, 10, b"")[:30])  # a power cut
        thinner, end_ns = Thinner.resumed(path)
        assert 90 * SECOND <= end_ns <= 100 * SECOND
        thinner.begin(2 * HOUR_NS)
        thinner.take(second)
        thinner.finish()
        thinner.store.close()
        opened = Trace.read(path)
        assert opened.sample.total.requests == first.rows + second.rows
        assert opened.sample.interruptions == (2 * HOUR_NS,)
        assert opened.warnings == []

    def test_a_clock_that_was_set_back_keeps_the_order(self, tmp_path):
        store = Store(tmp_path / "a")
        thinner = Thinner(store, Settings())
        thinner.take(load(10))
        back = load(10, seed=2)
        thinner.take(back)
        thinner.finish()
        store.close()
        rows = Requests._make(map(np.concatenate, zip(*Trace.read(tmp_path / "a").recorded())))
        assert rows.rows == 2 * back.rows
        assert (np.diff(rows.arrival_ns) >= 0).all()
        assert ((rows.complete_ns >= rows.arrival_ns) | (rows.complete_ns == UNKNOWN)).all()


class TestDamage:
    @pytest.fixture(scope="class")
    @staticmethod
    def whole(tmp_path_factory):
        return written(tmp_path_factory.mktemp("whole") / "a", load(120), rate=0.5)

    def read(self, path, data):
        path.write_bytes(data)
        opened = Trace.read(path)
        return opened, sum(each.rows for each in opened.recorded())

    def test_a_cut_tail_is_one_warning_and_the_rest_is_used(self, tmp_path, whole):
        _, rows = self.read(tmp_path / "a", whole)
        opened, less = self.read(tmp_path / "a", whole[: len(whole) // 2])
        assert [each.code for each in opened.warnings] == ["truncated"]
        assert 0 < less < rows

    def test_damage_in_the_middle_costs_its_block(self, tmp_path, whole):
        _, rows = self.read(tmp_path / "a", whole)
        at = whole.index(b"\xa7HTb\x03")  # a sample
        damaged = whole[: at + 60] + bytes([whole[at + 60] ^ 1]) + whole[at + 61 :]
        opened, less = self.read(tmp_path / "a", damaged)
        assert [each.code for each in opened.warnings] == ["damaged"]
        assert 0 < less < rows

    def test_another_version_is_refused(self, tmp_path, whole):
        with pytest.raises(TraceError, match="version 9"):
            self.read(tmp_path / "a", SIGNATURE[:-1] + b"\x09" + whole[16:])

    def test_an_impossible_date_is_refused(self, tmp_path):
        with pytest.raises(TraceError, match="no block of settings is whole"):
            capture(tmp_path / "a", load(1), origin_unix_ns=10**30)

    def test_any_damage_gives_requests_or_one_error(self, tmp_path, whole):
        rng = random.Random(26)
        for _ in range(300):
            data = bytearray(whole)
            for _ in range(rng.randint(1, 8)):
                at = rng.randrange(len(data))
                match rng.randrange(4):
                    case 0:
                        data[at] ^= 1 << rng.randrange(8)
                    case 1:
                        del data[at : at + rng.randrange(1, 200)]
                    case 2:
                        data[at:at] = rng.randbytes(rng.randrange(1, 200))
                    case 3:
                        del data[max(at, 16) :]
            with contextlib.suppress(TraceError):
                self.read(tmp_path / "a", bytes(data))

    def test_blocks_with_a_right_checksum_and_wrong_content_are_skipped(self, tmp_path, whole):
        rng = random.Random(27)
        for number in range(300):
            payload = rng.randbytes(rng.randrange(80))
            kind = rng.choice([Kind.START, Kind.COUNTS, Kind.SAMPLE, Kind.STRETCH])
            odd = block(kind, number, rng.randrange(10**12), rng.randrange(10**12), payload)
            try:
                opened, _ = self.read(tmp_path / "a", whole + odd)
            except TraceError:
                continue
            assert {each.code for each in opened.warnings} <= {"damaged", "dropped"}


class TestAnswers:
    @pytest.fixture(scope="class")
    @staticmethod
    def both(tmp_path_factory):
        folder = tmp_path_factory.mktemp("answers")
        trace = Trace.read("gen:zipf,theta=0.9,requests=60000,span=1GiB,rate=200,size=4k")
        thin(trace, folder / "a", Settings(rate=0.1, region_bytes=65536))
        return trace, Trace.read(folder / "a")

    def test_the_sample_is_read_once(self, both, monkeypatch):
        again = Trace.read(both[1].name)
        columns = ("arrival_ns", "offset_bytes", "length_bytes", "op")

        def read(parts):
            rows = list(parts)
            return [np.concatenate([getattr(each, name) for each in rows]) for name in columns]

        known, first = read(again.recorded()), read(again.sampled())
        monkeypatch.setattr(thinned_reader.Reader, "_blocks", None)
        for one, other, third in zip(known, first, read(again.sampled())):
            assert (one == other).all()
            assert (one == third).all()

    @pytest.mark.parametrize("policy", ["lru", "arc"])
    def test_hit_ratios_are_those_of_the_trace_within_the_error(self, both, policy):
        trace, sample = both
        size = ["32MiB", "128MiB"]
        for one, other in zip(hits(trace, size, policy), hits(sample, size, policy)):
            assert other.page_accesses == one.page_accesses
            assert other.read_page_accesses == one.read_page_accesses
            assert other.requests == one.requests
            assert other.pages == one.pages
            assert other.rate == pytest.approx(0.1)
            assert 0 < other.page_hit_error < 0.15
            assert abs(other.page_hit_ratio - one.page_hit_ratio) <= other.page_hit_error

    def test_hits_and_mrc_agree(self, both):
        _, sample = both
        curve = miss_ratio_curve(sample, "arc", [8192])
        (one,) = hits(sample, "8192 pages", "arc")
        assert one.page_hit_ratio == pytest.approx(1 - curve.miss_ratio[0], abs=1e-4)
        assert one.page_hit_error == pytest.approx(curve.error[0])

    def test_what_a_sample_cannot_answer_is_refused_with_what_can(self, both):
        _, sample = both
        for refused in (
            lambda: hits(sample, "64MiB", "lfu"),
            lambda: hits(sample, "64MiB", "lru", "learned"),
            lambda: hits(sample, "64MiB", skip="20%"),
            lambda: hits(sample, "64MiB", sequential_cutoff="4MiB"),
            lambda: miss_ratio_curve(sample, "lfu"),
        ):
            with pytest.raises(UsageError, match="--device worst"):
                refused()
        with pytest.raises(UsageError, match="divide"):
            hits(sample, "64MiB", page="1MiB")
        with pytest.raises(UsageError, match="sizes from"):
            hits(sample, "64KiB")
        with pytest.raises(UsageError, match="leave out the sample"):
            miss_ratio_curve(sample, sample="1%")

    @pytest.mark.parametrize(("enough", "rate"), [(1, 0.05), (1 << 40, 0.1)])
    def test_a_large_sample_is_read_as_if_thinned_further(
        self, tmp_path, monkeypatch, enough, rate
    ):
        """As far as few regions remain, and with the same result as if it had been thinned so."""
        rows = load(600, rate=100)
        written(tmp_path / "a", rows, rate=0.1, region_bytes=65536)
        accesses = Trace.read(tmp_path / "a").sample.total.page_accesses(4096)
        monkeypatch.setattr(thinned_reader, "ACCESSES_MAX", accesses // 20)
        monkeypatch.setattr(thinned_reader, "REGIONS_ENOUGH", enough)
        opened = Trace.read(tmp_path / "a")
        assert opened.sample.rate == pytest.approx(rate, rel=1e-3)
        (found,) = hits(opened, "64MiB")
        settings = {"rate": opened.sample.rate, "region_bytes": 65536}
        (alike,) = hits(capture(tmp_path / "b", rows, **settings), "64MiB")
        assert found == alike

    def test_too_few_regions_are_refused(self, tmp_path):
        opened = capture(tmp_path / "a", load(100), rate=0.01)
        with pytest.raises(UsageError, match="an error needs 64"):
            miss_ratio_curve(opened)

    @pytest.mark.parametrize("command", ["replay", "size --require hit>1%", "advise", "why",
                                         "fit -o x.toml", "explore -o x.html"])  # fmt: skip
    def test_commands_that_need_all_requests_refuse_a_sample(self, both, command, monkeypatch):
        _, sample = both
        name, *options = command.split()
        done = CliRunner().invoke(cli, [name, sample.name, *options])
        assert isinstance(done.exception, TraceError), done.output
        assert "--device worst" in str(done.exception)

    def test_an_unknown_stretch_is_refused(self, both):
        _, sample = both
        with pytest.raises(TraceError, match=r"contains no stretch 'wurst'.*worst"):
            Trace.read(sample.name, device="wurst")


class TestCommand:
    def test_the_example(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        gen = "gen:zipf,requests=2000,span=64MiB,rate=100"
        line = ["trace", "thin", gen, "-o", "a.thin", "--rate", "50%", "--region", "64KiB"]
        done = CliRunner().invoke(cli, line, catch_exceptions=False)
        assert "thinned   2,000 requests" in done.output
        done = CliRunner().invoke(cli, [*line, "--json"], catch_exceptions=False)
        assert json.loads(done.output)["requests"] == 2000

    @pytest.mark.parametrize(("options", "error"), [
        ("", "specify --max"), ("--max 1", "at least"), ("--rate 0%", "above 0%"),
        ("--rate 5", "not a percentage"), ("--rate 1% --region 100k", "power of two"),
    ])  # fmt: skip
    def test_options_that_cannot_be_met_are_refused(self, tmp_path, options, error):
        line = ["trace", "thin", "gen:zipf,requests=20,span=64MiB", "-o", str(tmp_path / "a")]
        done = CliRunner().invoke(cli, [*line, *options.split()])
        assert done.exit_code
        assert error in done.output + str(done.exception)
        assert list(tmp_path.iterdir()) == []
