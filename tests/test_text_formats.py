"""The text formats: blkparse's default output, fio's I/O logs, and our own CSV."""

from __future__ import annotations

import io
import struct

import pytest
from captures import CASES, TRACES, as_rows, capture, codes, read, reference_rows

from hybridsim.codes import Flag, Op
from hybridsim.errors import TraceError
from hybridsim.formats import FORMATS
from hybridsim.formats.blkparse import parse_rwbs
from hybridsim.formats.requests_csv import HEADER, write
from hybridsim.trace import Trace

WITH_TEXT = [case for case in CASES if (capture(case) / "blkparse.txt.zst").exists()]


def written(path, text):
    path.write_text(text, newline="")
    return path


class TestBlkparse:
    @pytest.mark.parametrize("case", WITH_TEXT)
    def test_the_text_gives_the_requests_of_the_capture(self, case):
        text = read(capture(case) / "blkparse.txt.zst")
        assert as_rows(text) == reference_rows(case)
        binary = read(capture(case))
        assert (text.flags == binary.flags).all()
        assert (text.stream == binary.stream).all()

    @pytest.mark.parametrize("case", WITH_TEXT)
    def test_there_is_nothing_to_warn_of(self, case):
        assert codes(capture(case) / "blkparse.txt.zst") == {}

    @pytest.mark.parametrize(
        ("letters", "op", "flags"),
        [
            (b"R", Op.READ, 0),
            (b"RA", Op.READ, Flag.AHEAD),
            (b"WSM", Op.WRITE, Flag.SYNC | Flag.META),
            (b"FWFSM", Op.WRITE, Flag.PREFLUSH | Flag.FUA | Flag.SYNC | Flag.META),
            (b"WFS", Op.WRITE, Flag.FUA | Flag.SYNC),
            (b"DS", Op.DISCARD, Flag.SYNC),
            (b"FN", Op.READ, Flag.PREFLUSH),
        ],
    )
    def test_letters(self, letters, op, flags):
        assert parse_rwbs(letters) == (op, flags)

    def test_command_names_may_hold_anything(self, tmp_path):
        lines = [
            "  8,0    0        1     0.000000000   77  Q   R 8 + 8 [a [b] c 1]",
            "  8,0    0        2     0.000001000   77  D   R 8 + 8 [(null)]",
            "  8,0    1        1     0.000009000    0  C   R 8 + 8 [0]",
        ]
        path = written(tmp_path / "t", "\r\n".join(lines))
        assert as_rows(read(path)) == [(0, 1000, 9000, "R", 4096, 4096)]

    def test_malformed_lines_are_counted_and_the_first_three_shown(self, tmp_path):
        good = "  8,0    0        1     0.000000000   77  Q   R 8 + 8 [dd]\n"
        path = written(tmp_path / "t", good + "nonsense\n" * 5 + good)
        trace = Trace.read(path)
        assert trace.summary().requests == 2
        (warning,) = [each for each in trace.warnings if each.code == "malformed"]
        assert warning.count == 5
        assert warning.place.count("nonsense") == 3
        assert "line 2" in warning.place

    def test_passthrough_commands_are_counted(self, tmp_path):
        text = (
            "  8,0    0        1     0.000000000   77  Q   R 8 + 8 [dd]\n"
            "  8,0    0        2     0.000001000   77  D   R 36 (12 00 00 00 24 00 ..) [sg]\n"
        )
        assert codes(written(tmp_path / "t", text))["passthrough"] == 1

    def test_an_error_is_kept(self, tmp_path):
        text = (
            "  8,0    0        1     0.000000000   77  Q   R 8 + 8 [dd]\n"
            "  8,0    0        2     0.000001000   77  C   R 8 + 8 [65531]\n"
        )
        assert read(written(tmp_path / "t", text)).flags[0] & Flag.ERROR


class TestFioLogs:
    def test_version_3_has_times_in_microseconds(self):
        requests = read(TRACES / "fio" / "v3.log")
        assert as_rows(requests)[:3] == [
            (0, -1, -1, "R", 1011712, 4096),
            (51_000, -1, -1, "W", 12419072, 4096),
            (9_590_000, -1, -1, "R", 14143488, 65536),
        ]
        assert requests.rows == 114

    def test_version_2_waits(self):
        requests = read(TRACES / "fio" / "v2.log")
        assert as_rows(requests) == [
            (0, -1, -1, "R", 0, 4096),
            (500_000_000, -1, -1, "W", 4096, 8192),
            (2_000_000_000, -1, -1, "F", 0, 0),
            (2_000_000_000, -1, -1, "D", 8192, 4096),
        ]
        assert "no-times" in codes(TRACES / "fio" / "v2.log")

    def test_version_1_is_refused_by_name(self, tmp_path):
        with pytest.raises(TraceError, match="version 1"):
            Trace.read(written(tmp_path / "l", "fio version 1 iolog\n/dev/sda read 0 4096\n"))

    def test_of_several_files_the_one_with_most_bytes_is_taken(self, tmp_path):
        log = "fio version 3 iolog\n1 a read 0 4096\n2 b read 0 8192\n3 a read 0 512\n"
        trace = Trace.read(written(tmp_path / "l", log))
        assert [(d.name, d.requests, d.chosen) for d in trace.devices] == [
            ("a", 2, False),
            ("b", 1, True),
        ]
        assert read(tmp_path / "l", device="a").rows == 2


class TestCsv:
    @pytest.mark.parametrize("case", CASES)
    def test_a_converted_trace_is_the_same_trace(self, case, tmp_path):
        out = io.StringIO()
        write(Trace.read(capture(case)).chunks(), out.write)
        path = written(tmp_path / "t.csv", out.getvalue())
        assert Trace.read(path).format == "csv"
        assert as_rows(read(path)) == reference_rows(case)

    def test_a_line_says_what_it_says(self, tmp_path):
        path = written(tmp_path / "t", f"{HEADER}\n5,Z,4096,512,,\n6,F,0,0,7,8\n")
        assert as_rows(read(path)) == [(5, -1, -1, "Z", 4096, 512), (6, 7, 8, "F", 0, 0)]

    def test_unsorted_lines_are_moved_and_counted(self, tmp_path):
        path = written(tmp_path / "t", f"{HEADER}\n5,R,0,512,,\n3,R,0,512,,\n")
        assert [row[0] for row in as_rows(read(path))] == [5, 5]
        assert codes(path) == {"disorder": 1}


class TestRecognition:
    """The format is told by the content, never by the name."""

    @pytest.mark.parametrize("content", [b"hello\n", b"\x00" * 99, bytes(range(256)) * 9, b"1,2\n"])
    def test_anything_else_is_refused_with_what_was_seen(self, content, tmp_path):
        (tmp_path / "x").write_bytes(content)
        with pytest.raises(TraceError, match="format not recognised; it begins with") as error:
            Trace.read(tmp_path / "x")
        assert "blktrace, fio-iolog, blkparse, csv, lis, vscsi" in str(error.value)

    def test_an_empty_file_is_refused(self, tmp_path):
        with pytest.raises(TraceError, match="empty"):
            Trace.read(written(tmp_path / "x", ""))

    def test_a_format_can_be_forced(self, tmp_path):
        path = written(tmp_path / "x", "5,R,0,512,,\n")
        assert read(path, format="csv").rows == 1

    def test_an_unknown_format_is_refused(self, tmp_path):
        with pytest.raises(TraceError, match="--format xml: not known"):
            Trace.read(written(tmp_path / "x", "y"), format="xml")

    @pytest.mark.parametrize("format", FORMATS)
    def test_a_wrong_format_is_refused(self, format, tmp_path):
        with pytest.raises(TraceError):
            read(written(tmp_path / "x", "hello world\n"), format=format)


class TestLis:
    def test_a_line_is_a_read_of_blocks_at_no_time(self, tmp_path):
        path = written(tmp_path / "x.lis", "7 2 0 1\r\n100 1 0 2\n")
        trace = Trace.read(path)
        assert trace.format == "lis"
        assert as_rows(read(path)) == [
            (0, -1, -1, "R", 3584, 1024),
            (0, -1, -1, "R", 51_200, 512),
        ]
        assert codes(path) == {"no-times": 1}

    def test_lines_that_make_no_sense_are_counted(self, tmp_path):
        path = written(tmp_path / "x.lis", "7 2 0 1\n7 0 0 2\n1 2 3\nx 1 0 4\n8 1 0 5\n")
        assert codes(path, format="lis")["malformed"] == 3
        assert read(path, format="lis").rows == 2


class TestVscsi:
    def record(self, command=0x28, time_us=10, version=0x100, block=8, length=4096):
        return struct.pack("<IIIHHQQ", 1, length, 1, command, version, block, time_us)

    def test_reads_and_writes_in_microseconds(self, tmp_path):
        path = tmp_path / "x"
        path.write_bytes(self.record() + self.record(0x8A, 25) + self.record(0x28, 15, block=0))
        assert Trace.read(path).format == "vscsi"
        assert as_rows(read(path)) == [
            (0, -1, -1, "R", 4096, 4096),
            (15_000, -1, -1, "W", 4096, 4096),
            (15_000, -1, -1, "R", 0, 4096),
        ]
        assert codes(path) == {"disorder": 1}

    def test_other_commands_and_half_a_record_are_left_out(self, tmp_path):
        path = tmp_path / "x"
        path.write_bytes(self.record() + self.record(0x12) + self.record()[:9])
        assert read(path).rows == 1
        assert codes(path) == {"other-commands": 1, "truncated": 1}

    def test_none_is_refused(self, tmp_path):
        path = tmp_path / "x"
        path.write_bytes(self.record(version=0x200))
        with pytest.raises(TraceError, match="no request found"):
            read(path, format="vscsi")
