"""The text formats: blkparse's default output, fio's I/O logs, and our own CSV."""

from __future__ import annotations

import io
import os
import re
import sys
from pathlib import Path

import pytest
from captures import CASES, TRACES, as_rows, capture, codes, read, reference_rows

from hybridsim.foundation.codes import Flag, Op
from hybridsim.foundation.errors import TraceError, UsageError
from hybridsim.traces.formats import FORMATS, writer
from hybridsim.traces.formats.blkparse import parse_rwbs
from hybridsim.traces.formats.requests_csv import HEADER, write
from hybridsim.traces.trace import Trace

S = 10**9
WITH_TEXT = [case for case in CASES if (capture(case) / "blkparse.txt.zst").exists()]


def written(path, text):
    path.write_text(text, newline="")
    return path


class TestBlkparse:
    @pytest.mark.parametrize("case", WITH_TEXT)
    def test_the_text_gives_the_requests_of_the_binary_capture(self, case):
        text = read(capture(case) / "blkparse.txt.zst")
        assert as_rows(text) == reference_rows(case)
        binary = read(capture(case))
        assert (text.flags == binary.flags).all()
        assert (text.stream == binary.stream).all()

    @pytest.mark.parametrize("case", WITH_TEXT)
    def test_a_sound_text_has_no_warnings(self, case):
        assert codes(capture(case) / "blkparse.txt.zst") == {}

    def test_a_comment_is_no_malformed_line(self, tmp_path):
        text = "#Maj,Mn CPU SeqNo Seconds\n8,0 1 1 0.000000001 7 Q R 8 + 8 [fio]\n"
        assert "malformed" not in codes(written(tmp_path / "x.txt", text))

    @pytest.mark.parametrize(
        ("number", "errors"),
        [("0", 0), ("-5", 1), ("00", 0), ("9" * 5000, 1), ("-", 0), ("x", 0)],
    )
    def test_the_number_after_a_completion_is_its_error_code(self, number, errors, tmp_path):
        line = "8,0 1 {} 0.00000000{} 7 {} R 8 + 8 [{}]\n"
        text = line.format(1, 1, "Q", "fio") + line.format(2, 5, "C", number)
        assert Trace.read(written(tmp_path / "x.txt", text)).summary().errors == errors

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
            (b"WBS", Op.WRITE, Flag.PREFLUSH | Flag.SYNC),
        ],
    )
    def test_rwbs_letters_give_op_and_flags(self, letters, op, flags):
        assert parse_rwbs(letters) == (op, flags)

    def test_command_names_may_contain_any_characters(self, tmp_path):
        lines = [
            "  8,0    0        1     0.000000000   77  Q   R 8 + 8 [a [b] c 1]",
            "  8,0    0        2     0.000001000   77  D   R 8 + 8 [(null)]",
            "  8,0    1        1     0.000009000    0  C   R 8 + 8 [0]",
        ]
        path = written(tmp_path / "t", "\r\n".join(lines))
        assert as_rows(read(path)) == [(0, 1000, 9000, "R", 4096, 4096)]

    def test_durations_of_issues_and_completions_are_skipped(self, tmp_path):
        lines = [
            "  7,0    1        1     0.000000000 19608  Q  WS 0 + 8 [dd]",
            "  7,0    1        2     0.000011475 19608  D  WS 0 + 8 (18446744073709537391) [dd]",
            "  7,0    1        3     0.001118146 19210  C  WS 0 + 8 ( 1106671) [0]",
            "  7,0    1        4     0.002000000 19608  Q FWS [dd]",
            "  7,0    1        5     0.003000000 19210  C FWS 0 (   35263) [0]",
        ]
        path = written(tmp_path / "t", "\n".join(lines))
        assert as_rows(read(path)) == [
            (0, 11475, 1_118_146, "W", 0, 4096),
            (2_000_000, -1, 3_000_000, "F", 0, 0),
        ]
        assert codes(path) == {}

    def test_statistics_are_skipped_and_events_after_them_are_read(self, tmp_path):
        event = "  8,0    0        1     {}.000000000   77  Q   R 8 + 8 [dd]\n"
        processes = "dd (77)\n Reads Queued:          48,     1044KiB\n"
        of_all = "CPU0 (sda):\n Reads Queued:          48,     1044KiB\n\nTotal (sda):\n"
        added = "Input file sda.blktrace.0 added\n"
        text = event.format(0) + processes + of_all + added + event.format(1)
        path = written(tmp_path / "t", text)
        assert [row[0] for row in as_rows(read(path))] == [0, S]
        assert codes(path) == {"incomplete": 2}

    def test_malformed_lines_are_counted_and_the_first_three_shown(self, tmp_path):
        good = "  8,0    0        1     0.000000000   77  Q   R 8 + 8 [dd]\n"
        path = written(tmp_path / "t", good + "nonsense\n" * 5 + good)
        trace = Trace.read(path)
        assert trace.summary().requests == 2
        (warning,) = [each for each in trace.warnings if each.code == "malformed"]
        assert warning.count == 5
        assert warning.place.count("nonsense") == 3
        assert "line 2" in warning.place

    def test_a_text_of_completions_alone_is_refused(self, tmp_path):
        path = tmp_path / "completions"
        path.write_text("  8,0    1        1     0.000000000     1  C  WS 8 + 8 [0]\n" * 3)
        with pytest.raises(TraceError, match="has 3 completions, but neither queue nor issue"):
            Trace.read(path)

    def test_passthrough_commands_are_counted(self, tmp_path):
        text = (
            "  8,0    0        1     0.000000000   77  Q   R 8 + 8 [dd]\n"
            "  8,0    0        2     0.000001000   77  D   R 36 (12 00 00 00 24 00 ..) [sg]\n"
        )
        assert codes(written(tmp_path / "t", text))["passthrough"] == 1

    def test_error_flags_are_kept(self, tmp_path):
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

    @pytest.mark.parametrize("action", ["sync", "datasync 0 0", "sync_file_range 0 4096", "syncfs"])
    def test_all_forms_of_a_flush_are_read(self, action, tmp_path):
        text = f"fio version 2 iolog\nf add\nf open\nf write 0 4096\nf {action}\nf close\n"
        path = written(tmp_path / "x", text)
        assert [row[3:] for row in as_rows(read(path))] == [("W", 0, 4096), ("F", 0, 0)]
        assert codes(path) == {"no-times": 1}

    def test_waits_of_version_2_advance_the_time(self):
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

    def test_the_file_with_most_bytes_is_selected(self, tmp_path):
        log = "fio version 3 iolog\n1 a read 0 4096\n2 b read 0 8192\n3 a read 0 512\n"
        trace = Trace.read(written(tmp_path / "l", log))
        assert [(d.name, d.requests, d.chosen) for d in trace.devices] == [
            ("a", 2, False),
            ("b", 1, True),
        ]
        assert read(tmp_path / "l", device="a").rows == 2


class TestCsv:
    @pytest.mark.parametrize("case", CASES)
    def test_a_trace_converted_to_csv_reads_back_equal(self, case, tmp_path):
        out = io.StringIO()
        write(Trace.read(capture(case)).chunks(), out.write)
        path = written(tmp_path / "t.csv", out.getvalue())
        assert Trace.read(path).format == "csv"
        assert as_rows(read(path)) == reference_rows(case)

    def test_a_csv_line_gives_its_request(self, tmp_path):
        path = written(tmp_path / "t", f"{HEADER}\n5,Z,4096,512,,\n6,F,0,0,7,8\n")
        assert as_rows(read(path)) == [(5, -1, -1, "Z", 4096, 512), (6, 7, 8, "F", 0, 0)]

    def test_blanks_and_small_letters_are_accepted_and_no_request_ends_before_it_arrives(
        self, tmp_path
    ):
        path = written(tmp_path / "t", f"{HEADER}\n5, r, 0, 512, 3, 4\n")
        assert as_rows(read(path)) == [(5, 5, 5, "R", 0, 512)]

    def test_unsorted_lines_are_sorted_and_counted(self, tmp_path):
        path = written(tmp_path / "t", f"{HEADER}\n5,R,0,512,,\n3,R,0,512,,\n")
        assert [row[0] for row in as_rows(read(path))] == [5, 5]
        assert codes(path) == {"disorder": 1}


IOLOG = "fio version 2 iolog\nf add\nf open\nf read 0 4096\nf close\n"


class TestRecognition:
    """The format is detected from the content, never from the name."""

    @pytest.mark.parametrize("text", [f"{HEADER}\n5,R,0,512,,\n", IOLOG, "7 2 0 1\n7 2 0 2\n"])
    def test_a_byte_order_mark_is_skipped(self, text, tmp_path):
        plain, marked = written(tmp_path / "x", text), written(tmp_path / "y", "\ufeff" + text)
        assert as_rows(read(marked)) == as_rows(read(plain))
        assert codes(marked) == codes(plain)

    @pytest.mark.parametrize("content", [b"hello\n", b"\x00" * 99, bytes(range(256)) * 9, b"1,2\n"])
    def test_an_unknown_content_is_refused_with_its_first_bytes(self, content, tmp_path):
        (tmp_path / "x").write_bytes(content)
        with pytest.raises(TraceError, match="format not recognised; it begins with") as error:
            Trace.read(tmp_path / "x")
        assert "blktrace, fio-iolog, blkparse, csv, lis, vscsi" in str(error.value)

    def test_an_empty_file_is_refused(self, tmp_path):
        with pytest.raises(TraceError, match="empty"):
            Trace.read(written(tmp_path / "x", ""))

    def test_a_format_can_be_specified(self, tmp_path):
        path = written(tmp_path / "x", "5,R,0,512,,\n")
        assert read(path, format="csv").rows == 1

    def test_an_unknown_format_is_refused(self, tmp_path):
        with pytest.raises(UsageError, match="--format xml: unknown"):
            Trace.read(written(tmp_path / "x", "y"), format="xml")

    @pytest.mark.parametrize("format", FORMATS)
    def test_a_wrongly_specified_format_is_refused(self, format, tmp_path):
        with pytest.raises(TraceError):
            read(written(tmp_path / "x", "hello world\n"), format=format)


TABLES = {
    "time,op,offset,length\n0,R,0,4096\n1,W,0,4096\n": (
        "--columns time=time:UNIT,op=op,offset=offset,length=length; replace UNIT by ns, us, ms or"
    ),
    "Timestamp_us;Type;LBA;Size (KB);Latency [ms]\n5;0;0;4;1\n1;1;0;8;1\n9;1;0;8;1\n": (
        "--columns time=Timestamp_us:us,op=Type:0/1,offset=LBA:sectors,length=4:KiB,latency=5:ms"
    ),
    "TIME(s) COMM PID DEV T SECTOR BYTES LAT(ms)\n0.04 x 1950 xvda1 W 13092560 4096 0.74\n": (
        "--columns 'time=TIME(s):s,op=T,offset=SECTOR:sectors,length=BYTES,device=DEV,"
        "latency=LAT(ms):ms,pid=PID'"
    ),
    "version,time,op,size,lbn\n1,5633898,2a,512,42932745\n1,5633899,28,512,8\n1,9,28,512,8\n": (
        "--columns time=time:UNIT,op=op:28/2a,offset=lbn:sectors,length=size; replace UNIT"
    ),
    "timestamp,rwbs,sector,nsectors\n1628000000.1,WS,8,8\n1628000001.1,RA,8,8\n1,D,0,8\n": (
        "--columns time=timestamp:s,op=rwbs:READ/WRITE,offset=sector:sectors,"
        "length=nsectors:sectors; replace READ and WRITE by the words"
    ),
}


class TestSuggestion:
    """A table that is not recognised is refused with the option that reads it."""

    @pytest.mark.parametrize("text", TABLES)
    def test_the_columns_are_suggested_from_their_names(self, text, tmp_path):
        with pytest.raises(TraceError, match=re.escape(TABLES[text])):
            Trace.read(written(tmp_path / "x", text))

    def test_the_suggestion_reads_the_table(self, tmp_path):
        text = "ts_ms,Type,Offset,Size\n0,read,0,4096\n5,trim,0,4096\n6,write,0,4096\n0,a,b,c"
        path = written(tmp_path / "x", text)
        with pytest.raises(TraceError) as error:
            Trace.read(path)
        (_, option) = str(error.value).split("--columns ")
        rows = as_rows(read(path, format=f"columns:{option}"))
        assert [(row[0], row[3]) for row in rows] == [(0, "R"), (5_000_000, "D"), (6_000_000, "W")]

    def test_a_table_of_other_things_gets_no_suggestion(self, tmp_path):
        with pytest.raises(TraceError, match="format not recognised"):
            Trace.read(written(tmp_path / "x", "name,size\nx,1\ny,2\n"))


class TestLis:
    @pytest.mark.parametrize("text", ["0 4096 512 1\n1 8192 512 0\n", "0 8 512 0\n9 8 512 0\n"])
    def test_another_table_of_four_numbers_is_not_recognised(self, text, tmp_path):
        with pytest.raises(TraceError, match="format not recognised"):
            Trace.read(written(tmp_path / "x", text))

    def test_a_line_is_a_read_of_blocks_without_a_time(self, tmp_path):
        path = written(tmp_path / "x.lis", "7 2 0 1\r\n100 1 0 2\n")
        trace = Trace.read(path)
        assert trace.format == "lis"
        assert as_rows(read(path)) == [
            (0, -1, -1, "R", 3584, 1024),
            (0, -1, -1, "R", 51_200, 512),
        ]
        assert codes(path) == {"no-times": 1}

    def test_malformed_lines_are_counted(self, tmp_path):
        path = written(tmp_path / "x.lis", "7 2 0 1\n7 0 0 2\n1 2 3\nx 1 0 4\n8 1 0 5\n")
        assert codes(path, format="lis")["malformed"] == 3
        assert read(path, format="lis").rows == 2


FTRACE = """\
# tracer: nop
#
             fio-4573    [001] .....  1988.920267: block_bio_queue: 7,0 RA 8336 + 16 [fio x]
             fio-4573    [001] .....  1988.920274: block_rq_issue: 7,0 RA 8192 () 8336 + 16 \
be,0,4 [fio]
     ksoftirqd/0-14      [000] ..s..  1988.920444: block_rq_complete: 7,0 RA () 8336 + 16 be,0,4 [0]
      blkdiscard-4576    [000] .....  1988.920587: block_bio_queue: 7,0 NS 2048 + 8 [blkdiscard]
              dd-4574    [001] .....  1988.920894: block_bio_queue: 7,0 FWS 0 + 0 [dd]
    kworker/1:1H-44      [001] .....  1988.920901: block_rq_issue: 7,0 FF 0 () 0 + 0 none,0,0 [k]
     ksoftirqd/1-22      [001] ..s..  1988.920988: block_rq_complete: 7,0 FF () \
18446744073709551615 + 0 none,0,0 [0]
     ksoftirqd/1-22      [001] d.s1.  1988.920989: block_rq_complete: 7,0 WS () 0 + 0 be,0,4 [0]
"""
PERF = """\
fio x 4573/4573 [001]  1988.920267000: block:block_bio_queue: 7,0 R 8336 + 16 [fio]
swapper     0 [000]  1988.920444123: block:block_rq_complete: 7,0 R () 8336 + 16 [-5]
"""


BIOSNOOP = """\
TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  LAT(ms)
0.000000    jbd2/sdb1-8    380    sdb     W 2048       4096      3.21
0.000524    CPU 0/KVM      5689   sdb     R 4096       8192      4.00
0.004578    ?              0              R 0          0         4.00
0.005000    qemu           5690   sda     R 8          512       1.00
0.006000    kworker/23:1   9126           R 18446744073709551615 0         0.61
"""


class TestBiosnoop:
    def test_requests_arrive_before_their_lines_by_the_latency(self, tmp_path):
        path = written(tmp_path / "x", BIOSNOOP)
        assert Trace.read(path).format == "biosnoop"
        assert as_rows(read(path)) == [
            (0, 0, 4_000_000, "R", 4096 * 512, 8192),
            (266_000, 266_000, 3_476_000, "W", 2048 * 512, 4096),
        ]
        assert read(path).stream.tolist() == [5689, 380]  # a command may contain blanks
        assert codes(path).keys() == {"several-devices", "issued-only"}  # flushes are no mistakes

    def test_with_the_time_in_the_queue_requests_arrive_there(self, tmp_path):
        text = BIOSNOOP.replace("LAT(ms)", "QUE(ms) LAT(ms)").replace("    3.21", " 0.50 3.21")
        (row,) = as_rows(read(written(tmp_path / "x", "\n".join(text.splitlines()[:2]) + "\n")))
        assert row == (0, 500_000, 3_710_000, "W", 2048 * 512, 4096)

    def test_damaged_lines_are_reported(self, tmp_path):
        path = written(tmp_path / "x", BIOSNOOP + "0.007000 a 1 sdb W 8\nLost 5 samples\n")
        assert codes(path)["malformed"] == 2


class TestFtrace:
    def test_block_events_give_requests(self, tmp_path):
        path = written(tmp_path / "x", FTRACE)
        assert Trace.read(path).format == "ftrace"
        assert as_rows(read(path)) == [
            (0, 7_000, 177_000, "R", 8336 * 512, 8192),
            (320_000, -1, -1, "Z", 1 << 20, 4096),
            (627_000, -1, 722_000, "F", 0, 0),
        ]
        requests = read(path)
        assert requests.stream.tolist() == [4573, 4576, 4574]
        assert requests.flags[0] & Flag.AHEAD

    def test_lines_of_perf_script_are_parsed(self, tmp_path):
        path = written(tmp_path / "x", PERF)
        assert as_rows(read(path)) == [(0, -1, 177_123, "R", 8336 * 512, 8192)]
        assert read(path).stream.tolist() == [4573]
        assert read(path).flags[0] & Flag.ERROR

    @pytest.mark.parametrize(
        ("line", "lost"),
        [
            ("CPU:1 [LOST 137 EVENTS]", 137),
            ("CPU:1 [LOST EVENTS]", 1),
            ("CPU:7 [204600 EVENTS DROPPED]", 204600),
            ("CPU:7 [EVENTS DROPPED]", 1),
            ("# entries-in-buffer/entries-written: 1000/1500   #P:4", 500),
            ("# entries-in-buffer/entries-written: 1000/1000   #P:4", 0),
        ],
    )
    def test_lost_events_are_reported(self, line, lost, tmp_path):
        path = written(tmp_path / "x", FTRACE.replace("#\n", f"#\n{line}\n", 1))
        assert codes(path).get("dropped", 0) == lost
        assert len(as_rows(read(path))) == 3

    def test_times_in_ticks_are_refused_with_the_clocks_to_use(self, tmp_path):
        text = " fio-4573  [001] ..... 93112457: block_bio_queue: 7,0 RA 8336 + 16 [fio x]\n"
        with pytest.raises(TraceError, match=r"not in seconds .* trace_clock local"):
            Trace.read(written(tmp_path / "x", text))

    def test_a_capture_by_ftrace_equals_the_reference(self):
        folder = os.environ.get("HYBRIDSIM_DATA")
        if not folder:
            pytest.skip("HYBRIDSIM_DATA is not set: it names the folder of the captures")
        summary = Trace.read(Path(folder) / "ftrace_text" / "trace.txt.zst").summary()
        assert (summary.requests, summary.incomplete) == (901, 0)


class TestWriters:
    """Traces written in another program's format read back, as far as the format allows."""

    def moves(self, requests):
        return [row for row in as_rows(requests) if row[3] in "RW"]

    @pytest.mark.parametrize("format", ["msr", "spc"])
    def test_reads_and_writes_come_back(self, format, tmp_path):
        parts = []
        writer(format)(Trace.read(capture("loop_errors")).chunks(), parts.append)
        back = self.moves(read(written(tmp_path / "x", "".join(parts)), format=format))
        rows = self.moves(read(capture("loop_errors")))
        assert [row[3:] for row in back] == [row[3:] for row in rows]
        step = 100 if format == "msr" else 1
        for got, row in zip(back, rows):
            assert got[0] == row[0] // step * step
            assert got[2] == -1 or abs(got[2] - row[2]) < 2 * step

    def test_an_offset_within_a_block_is_not_rounded(self, tmp_path):
        path = written(tmp_path / "x", f"{HEADER}\n0,R,512,512,,\n0,R,1300,100,,\n")
        with pytest.raises(TraceError, match=r"the offset 1,300 is not a multiple of 512 bytes"):
            writer("spc")(Trace.read(path).chunks(), len)

    def test_pages_are_written_as_objects(self, tmp_path):
        parts = []
        write = writer("oracle-general")
        rows = write(Trace.read(capture("loop_errors")).chunks(), parts.append)
        (tmp_path / "x").write_bytes(b"".join(parts))
        requests = read(capture("loop_errors"))
        assert rows == requests.rows
        back = read(tmp_path / "x", format="oracle-general")
        assert back.rows == requests.length_bytes.sum() // 4096
        assert set(back.offset_bytes) == {
            page * 4096
            for offset, length in zip(requests.offset_bytes, requests.length_bytes)
            for page in range(offset // 4096, (offset + length) // 4096)
        }


class TestParquet:
    def test_without_pyarrow_the_error_names_the_package_to_install(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
        (tmp_path / "x").write_bytes(b"PAR1" + bytes(20) + b"PAR1")
        with pytest.raises(TraceError, match=r"install it, or hybridsim\[parquet\]"):
            Trace.read(tmp_path / "x")

    def test_a_trace_converted_to_parquet_reads_back_equal(self, tmp_path):
        pytest.importorskip("pyarrow", reason="the extra hybridsim[parquet] is not installed")
        with (tmp_path / "x").open("wb") as file:
            writer("parquet")(Trace.read(capture("loop_errors")).chunks(), file.write)
        back, rows = as_rows(read(tmp_path / "x")), as_rows(read(capture("loop_errors")))
        assert [(at, -1, *rest) for at, _, *rest in rows] == back

    def table(self, path, **columns):
        arrow = pytest.importorskip(
            "pyarrow", reason="the extra hybridsim[parquet] is not installed"
        )
        from pyarrow import parquet

        parquet.write_table(arrow.table(columns), path)
        return path

    def test_absent_columns_and_empty_requests_are_reported(self, tmp_path):
        path = self.table(tmp_path / "x", lba=[0, 8, 16], n=[8, 0, 0])
        assert codes(path, format="columns:offset=lba:sectors,length=n:sectors") == {
            "no-times": 1,
            "all-reads": 1,
            "empty": 2,
        }

    def test_whole_seconds_are_spread(self, tmp_path):
        seconds = [1_628_000_000 + row // 4 for row in range(20)]
        path = self.table(tmp_path / "x", ts=seconds, lba=[0] * 20, n=[8] * 20)
        format = "columns:time=ts:s,offset=lba:sectors,length=n:sectors"
        assert read(path, format=format).arrival_ns.tolist() == [S // 4 * row for row in range(20)]
        assert "whole-seconds" in codes(path, format=format)

    def test_a_table_of_mostly_malformed_rows_is_refused_with_an_example(self, tmp_path):
        path = self.table(tmp_path / "x", lba=[0, 8], n=[8, 8], rw=["x", "y"])
        with pytest.raises(TraceError, match=r"2 of 2 rows are malformed: .*lba 0, n 8, rw x"):
            read(path, format="columns:offset=lba,length=n,op=rw")

    def test_a_missing_value_leaves_the_others_exact(self, tmp_path):
        times = [1_628_000_000_000_000_001, None, 1_628_000_000_000_000_101]
        path = self.table(tmp_path / "x", ts=times, lba=[0, 8, 16], n=[8, 8, 8], rw=[0, None, 1])
        rows = as_rows(read(path, format="columns:time=ts:ns,offset=lba,length=n,op=rw:0/1"))
        assert [(row[0], row[3]) for row in rows] == [(0, "R"), (100, "W")]

    def test_foreign_columns_must_be_specified(self, tmp_path):
        arrow = pytest.importorskip(
            "pyarrow", reason="the extra hybridsim[parquet] is not installed"
        )
        from pyarrow import parquet

        table = arrow.table(
            {
                "ts": [5.5, 4.0, None],
                "lba": [8, 16, 0],
                "n": [1, 2, 3],
                "rw": ["w", "R", "W"],
                "vol": ["a", "b", "a"],
            }
        )
        parquet.write_table(table, tmp_path / "x")
        with pytest.raises(TraceError, match="no column 'arrival_ns'; it has ts, lba"):
            Trace.read(tmp_path / "x")
        mapping = "columns:time=ts:s,offset=lba:sectors,length=n:sectors,op=rw,device=vol"
        assert as_rows(read(tmp_path / "x", format=mapping, device="all")) == [
            (0, -1, -1, "R", 8192 + (1 << 20), 1024),
            (1_500_000_000, -1, -1, "W", 4096, 512),
        ]
        assert codes(tmp_path / "x", format=mapping)["malformed"] == 1
