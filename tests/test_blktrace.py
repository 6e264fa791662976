"""The reader of blktrace captures on valid and on damaged files."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct

import pytest
from captures import (
    CASES,
    HEADER,
    as_rows,
    as_version_8,
    capture,
    codes,
    cpu_files,
    read,
    records,
    reference_rows,
    swapped,
    write_files,
)

from hybridsim.foundation.codes import Flag
from hybridsim.foundation.errors import TraceError
from hybridsim.traces.formats.files import zstd
from hybridsim.traces.trace import Trace

SPLITS = "loop_raw_split_discard_flush"


def merged(case):
    """Return the output of `blkparse -d`: here notes first, then all events by time."""
    every = [each for data in cpu_files(case).values() for each in records(data)]
    notes = [each for each in every if HEADER.unpack_from(each)[5] >> 16 & 1 << 10]
    events = [each for each in every if not HEADER.unpack_from(each)[5] >> 16 & 1 << 10]
    return b"".join(notes + sorted(events, key=lambda each: HEADER.unpack_from(each)[2]))


@pytest.mark.parametrize("case", CASES)
class TestCaptures:
    def test_requests_equal_those_of_an_independent_parser(self, case):
        assert as_rows(read(capture(case))) == reference_rows(case)

    def test_a_merged_dump_gives_the_same_requests(self, case, tmp_path):
        (tmp_path / "merged").write_bytes(merged(case))
        assert as_rows(read(tmp_path / "merged")) == reference_rows(case)

    def test_the_other_byte_order_gives_the_same_requests(self, case, tmp_path):
        files = {name: swapped(data) for name, data in cpu_files(case).items()}
        assert as_rows(read(write_files(tmp_path, files))) == reference_rows(case)
        assert Trace.read(tmp_path).origin == Trace.read(capture(case)).origin

    def test_version_8_gives_the_same_requests(self, case, tmp_path):
        files = {name: as_version_8(data) for name, data in cpu_files(case).items()}
        assert as_rows(read(write_files(tmp_path, files))) == reference_rows(case)

    def test_a_sound_capture_has_no_warnings(self, case):
        assert codes(capture(case)) == {}


class TestNames:
    """One capture has many files; any of its names opens all of them."""

    def test_the_path_of_one_file_opens_the_whole_capture(self):
        one = next(capture(SPLITS).glob("*.blktrace.0*"))
        assert as_rows(read(one)) == reference_rows(SPLITS)

    @pytest.mark.parametrize("prefix", ["loop0", "loop0.blktrace"])
    def test_the_prefix_opens_the_whole_capture(self, prefix):
        assert as_rows(read(capture(SPLITS) / prefix)) == reference_rows(SPLITS)

    def test_a_list_of_files_is_one_capture(self):
        files = sorted(capture("zram_bio_based").glob("*.blktrace.*"))
        assert as_rows(read(files)) == reference_rows("zram_bio_based")

    def test_a_directory_without_captures_is_refused(self, tmp_path):
        with pytest.raises(TraceError, match="contains no per-CPU files of blktrace"):
            Trace.read(tmp_path)

    def test_a_missing_file_is_named(self, tmp_path):
        with pytest.raises(TraceError, match="absent: no such file"):
            Trace.read(tmp_path / "absent")


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [
        ("gz", gzip.compress),
        ("zst", zstd.compress),
        ("xz", lzma.compress),
        ("bz2", bz2.compress),
        ("gz.xz", lambda data: lzma.compress(gzip.compress(data))),
    ],
)
def test_compressed_files_are_decompressed_while_reading(suffix, pack, tmp_path):
    files = {f"{name}.{suffix}": pack(data) for name, data in cpu_files(SPLITS).items()}
    assert as_rows(read(write_files(tmp_path, files))) == reference_rows(SPLITS)


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress, lzma.compress, bz2.compress])
def test_a_truncated_compressed_file_is_read_up_to_the_cut(pack, tmp_path):
    packed = pack(merged("loop_ext4_mqdl_randrw"))
    (tmp_path / "cut").write_bytes(packed[: len(packed) * 3 // 4])
    requests = as_rows(read(tmp_path / "cut"))
    assert 1000 < len(requests) < 9265
    assert "compressed-truncated" in codes(tmp_path / "cut")


class TestStandardInput:
    def test_a_stream_with_chunks_of_all_cpus_is_sorted(self, monkeypatch):
        parts = []
        for data in cpu_files("loop_ext4_mqdl_randrw").values():
            each = records(data)
            parts.append([b"".join(each[i : i + 900]) for i in range(0, len(each), 900)])
        longest = max(map(len, parts))
        stream = b"".join(p[i] for i in range(longest) for p in parts if i < len(p))
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stream)))
        trace = Trace.read("-")
        first, second = (sum(c.rows for c in trace.chunks()) for _ in "12")
        assert first == second == 9265
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stream)))
        assert as_rows(read("-")) == reference_rows("loop_ext4_mqdl_randrw")

    def test_two_readers_of_one_trace_can_be_interleaved(self, monkeypatch):
        stream = merged("loop_ext4_mqdl_randrw")
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stream)))
        trace = Trace.read("-")
        for one, other in zip(trace.chunks(1000), trace.chunks(1000)):
            assert as_rows(one) == as_rows(other)


class TestDamage:
    """Every loss gives a warning, and only damaged records are lost."""

    @pytest.fixture
    def files(self):
        return cpu_files(SPLITS)

    def test_a_truncated_header_gives_a_warning(self, files, tmp_path):
        files["loop0.blktrace.1"] = files["loop0.blktrace.1"][:-23]
        assert len(read(write_files(tmp_path, files)).op) == 301
        assert codes(tmp_path) == {"truncated": 1, "incomplete": 1}

    def test_a_truncated_payload_gives_a_warning(self, files, tmp_path):
        data = files["loop0.blktrace.1"]
        last = max(i for i, each in enumerate(records(data)) if len(each) > HEADER.size)
        files["loop0.blktrace.1"] = b"".join(records(data)[: last + 1])[:-3]
        trace = Trace.read(write_files(tmp_path, files))
        (warning,) = [each for each in trace.warnings if each.code == "truncated"]
        assert f"byte {sum(map(len, records(data)[:last])):,}" in warning.place

    def test_dropped_events_are_detected_by_a_gap_in_the_sequence(self, files, tmp_path):
        kept = records(files["loop0.blktrace.1"])
        files["loop0.blktrace.1"] = b"".join(kept[:700] + kept[757:])
        trace = Trace.read(write_files(tmp_path, files))
        (gap,) = [each for each in trace.warnings if each.code == "dropped"]
        assert gap.count == 57
        assert gap.place.startswith("CPU 1 from 0.0")

    def test_missing_completions_leave_requests_without_latency(self, files, tmp_path):
        kept = [
            each
            for i, each in enumerate(records(files["loop0.blktrace.1"]))
            if not (HEADER.unpack_from(each)[5] & 0xFF == 8 and i % 3)
        ]
        files["loop0.blktrace.1"] = b"".join(kept)
        summary = Trace.read(write_files(tmp_path, files)).summary()
        assert summary.requests == 301
        assert 0 < summary.incomplete < 301

    @pytest.mark.parametrize("garbage", [b"\xde\xad\xbe\xef" * 5, b"\x00", b"\x07tae" * 9])
    def test_garbage_between_records_is_skipped(self, files, garbage, tmp_path):
        kept = records(files["loop0.blktrace.1"])
        files["loop0.blktrace.1"] = b"".join(kept[:40]) + garbage + b"".join(kept[40:])
        assert as_rows(read(write_files(tmp_path, files))) == reference_rows(SPLITS)
        assert codes(tmp_path) == {"corrupt": len(garbage)}

    def test_garbage_within_a_record_loses_only_that_record(self, files, tmp_path):
        kept = records(files["loop0.blktrace.1"])
        at = sum(map(len, kept[:40])) + 40
        data = files["loop0.blktrace.1"]
        files["loop0.blktrace.1"] = data[:at] + b"\xde\xad\xbe\xef" * 5 + data[at:]
        assert codes(write_files(tmp_path, files))["corrupt"] == 20 + len(kept[40])

    def test_a_wrong_payload_length_loses_no_other_record(self, files, tmp_path):
        kept = records(files["loop0.blktrace.1"])
        marked = next(i for i, r in enumerate(kept) if HEADER.unpack_from(r)[5] & 0xFF == 9)
        kept[marked] = kept[marked][:46] + b"\xff\x7f" + kept[marked][48:]
        files["loop0.blktrace.1"] = b"".join(kept)
        assert as_rows(read(write_files(tmp_path, files))) == reference_rows(SPLITS)

    def test_a_wrong_time_loses_no_other_record(self, files, tmp_path):
        kept = records(files["loop0.blktrace.1"])
        marked = next(i for i, r in enumerate(kept) if HEADER.unpack_from(r)[5] & 0xFF == 9)
        kept[marked] = kept[marked][:14] + b"\x7f" + kept[marked][15:]
        files["loop0.blktrace.1"] = b"".join(kept)
        assert as_rows(read(write_files(tmp_path, files))) == reference_rows(SPLITS)
        assert codes(tmp_path) == {"corrupt-time": 1}

    def test_an_empty_cpu_file_gives_no_warning(self, files, tmp_path):
        files["loop0.blktrace.0"] = b""
        assert set(codes(write_files(tmp_path, files))) <= {"incomplete", "unmatched"}

    def test_a_missing_cpu_file_gives_a_warning(self, files, tmp_path):
        files["loop0.blktrace.2"] = b""
        del files["loop0.blktrace.0"]
        trace = Trace.read(write_files(tmp_path, files))
        (missing,) = [each for each in trace.warnings if each.code == "cpu-file-missing"]
        assert missing.place == "CPU 0"

    def test_opening_a_single_cpu_file_of_several_gives_a_warning(self, files, tmp_path):
        (tmp_path / "loop0.blktrace.1").write_bytes(files["loop0.blktrace.1"])
        trace = Trace.read(tmp_path / "loop0.blktrace.1")
        (missing,) = [each for each in trace.warnings if each.code == "cpu-file-missing"]
        assert missing.place == "CPU 0"

    def test_captures_of_different_times_in_one_folder_give_a_warning(self, tmp_path):
        later = cpu_files("zram_bio_based")  # a capture of another device, 90 seconds later
        folder = write_files(tmp_path, cpu_files("loop_ext4_buffered_meta") | later)
        assert "late-start" not in codes(folder)
        trace = Trace.read(folder, device="253,0")
        trace.summary()
        (late,) = [each for each in trace.warnings if each.code == "late-start"]
        assert late.text.startswith("the first request comes 91.6 s after the first event")

    def test_a_capture_of_empty_files_only_is_refused(self, tmp_path):
        with pytest.raises(TraceError, match="empty"):
            Trace.read(write_files(tmp_path, {"a.blktrace.0": b"", "a.blktrace.1": b""}))

    def test_a_damaged_beginning_is_skipped(self, files, tmp_path):
        (tmp_path / "x").write_bytes(b"\xff" * 77 + files["loop0.blktrace.1"])
        assert Trace.read(tmp_path / "x").summary().requests == 301
        assert codes(tmp_path / "x")["corrupt"] == 77


class TestVersions:
    def test_an_unknown_version_is_refused_by_name(self, tmp_path):
        (tmp_path / "new").write_bytes(struct.pack("<I", 0x65617409) + bytes(200))
        with pytest.raises(TraceError, match="version 9"):
            Trace.read(tmp_path / "new")

    def test_truncated_records_of_newer_ftrace_are_refused_by_name(self, tmp_path):
        head = struct.pack("<IIQ", 0x65617407, 0, 10**9)
        rest = struct.pack("<QIIQII", 4096, 4096, 4711, 1 << 16 | 1 << 20 | 1, 8 << 20, 1)
        (tmp_path / "cut").write_bytes((head + rest) * 20)
        with pytest.raises(TraceError, match="malformed records of the ftrace"):
            Trace.read(tmp_path / "cut")


class TestRecordedFields:
    def test_cgroup_ids_in_records_are_skipped(self, tmp_path):
        """With CONFIG_BLK_CGROUP every action may have bit 8, and an id before its payload."""
        files = {}
        for name, data in cpu_files(SPLITS).items():
            marked = []
            for each in records(data):
                fields = list(HEADER.unpack_from(each))
                fields[5] |= 0x100
                fields[10] += 8
                marked.append(HEADER.pack(*fields) + b"\x01" + bytes(7) + each[HEADER.size :])
            files[name] = b"".join(marked)
        assert as_rows(read(write_files(tmp_path, files))) == reference_rows(SPLITS)

    def test_requests_with_errors_are_marked_and_complete(self):
        requests = read(capture("loop_errors"))
        failed = requests.flags & Flag.ERROR != 0
        assert failed.sum() == 2
        assert (requests.complete_ns[failed] > 0).all()

    def test_write_flags_are_kept(self):
        requests = read(capture("loop_ext4_mqdl_randrw"))
        commits = Flag.FUA | Flag.PREFLUSH | Flag.SYNC | Flag.META
        assert (requests.flags & commits == commits).sum() == 76

    def test_arrivals_are_issue_times_in_a_capture_without_queue_events(self, tmp_path):
        files = {}
        for name, data in cpu_files("loop_errors").items():
            actions = (HEADER.unpack_from(each)[5] & 0xFF for each in records(data))
            files[name] = b"".join(r for r, a in zip(records(data), actions) if a in (7, 8))
        requests = read(write_files(tmp_path, files))
        assert requests.rows == 22
        assert (requests.arrival_ns == requests.dispatch_ns).all()
        assert (requests.complete_ns > requests.dispatch_ns).all()
        assert "issued-only" in codes(tmp_path)

    def test_use_dispatch_returns_the_requests_that_the_device_received(self):
        asked = read(capture("loop_ext4_buffered_meta"))
        issued = read(capture("loop_ext4_buffered_meta"), use_dispatch=True)
        assert (issued.arrival_ns == issued.dispatch_ns).all()
        reads = [r.length_bytes[r.op == 0].sum() for r in (asked, issued)]
        assert reads[0] == reads[1]

    def test_a_capture_of_completions_only_is_refused(self, tmp_path):
        data = cpu_files("loop_errors")["loop1.blktrace.1"]
        only = b"".join(r for r in records(data) if HEADER.unpack_from(r)[5] & 0xFF == 8)
        (tmp_path / "c").write_bytes(only)
        with pytest.raises(TraceError, match="no queue or issue events"):
            Trace.read(tmp_path / "c")


class TestDevices:
    @pytest.fixture
    def two(self, tmp_path):
        return write_files(tmp_path, cpu_files("loop_errors") | cpu_files(SPLITS))

    def test_the_device_with_most_bytes_is_selected_and_the_others_are_listed(self, two):
        trace = Trace.read(two)
        assert {d.name: d.chosen for d in trace.devices} == {"7,0": True, "7,1": False}
        assert trace.summary().requests == 301
        assert "several-devices" in codes(two)

    def test_another_device_can_be_selected(self, two):
        requests = read(two, device="7,1")
        assert requests.rows == 22
        assert codes(two, device="7,1") == {"late-start": 1}  # the other capture began earlier

    def test_a_device_that_is_not_in_the_capture_is_refused(self, two):
        with pytest.raises(TraceError, match=r"contains no device '8,0', only"):
            Trace.read(two, device="8,0")
