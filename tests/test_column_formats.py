"""Formats of one request per line, described by tables of columns; samples are written by hand."""

from __future__ import annotations

import bz2
import gzip
import os
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pytest
from captures import as_rows, codes, read
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_columns import parse_line

from hybridsim.foundation.codes import Op
from hybridsim.foundation.errors import ColumnsError, TraceError
from hybridsim.requests.rows import Findings, joined, merged, no_requests
from hybridsim.traces.formats import ordering
from hybridsim.traces.formats.columns import BLANKS, SKIPPED, Field, Table, To
from hybridsim.traces.formats.columns import NUMBERS as NUMERIC
from hybridsim.traces.formats.fiu import TABLE as FIU
from hybridsim.traces.formats.line_parser import BEYOND, Of, Tally, nothing_seen, parse, plan_of
from hybridsim.traces.formats.msr import TABLE as MSR
from hybridsim.traces.formats.systor import TABLE as SYSTOR
from hybridsim.traces.trace import Trace

S = 10**9

SAMPLES = {
    "msr": (
        "128166372003061629,hm,0,Read,8192,4096,2833\n128166372003061639,hm,0,Write,0,512,10\n",
        [(0, -1, 283_300, "R", 8192, 4096), (1000, -1, 2000, "W", 0, 512)],
    ),
    "spc": (
        "0,20941264,8192,W,0.551706\n0, 7, 1536, r, 0.554041, extra\n",
        [(0, -1, -1, "W", 20941264 * 512, 8192), (2_335_000, -1, -1, "R", 3584, 1536)],
    ),
    "alibaba": (
        "64,R,126703644672,4096,1577808000000046\n64,W,512,1024,1577808000000146\n",
        [(0, -1, -1, "R", 126703644672, 4096), (100_000, -1, -1, "W", 512, 1024)],
    ),
    "tencent": (
        "1538323200,8,16,0,7\n1538323200,0,8,1,7\n1538323201,0,8,1,7\n",
        [(0, -1, -1, "R", 4096, 8192), (S // 2, -1, -1, "W", 0, 4096), (S, -1, -1, "W", 0, 4096)],
    ),
    "systor": (
        "Timestamp,Response,IOType,LUN,Offset,Size\r\n"
        "1456095145.133076000,0.000806000,R,0,4096,512\r\n"
        "1456095145.126285000,0.008044000,W,0,0,1024\r\n",
        [(0, -1, 8_044_000, "W", 0, 1024), (6_791_000, -1, 7_597_000, "R", 4096, 512)],
    ),
    "fiu": (
        "89966104 4892 syslogd a b 904265560 8 W 6 0 531e779d1c2f5c2b0e8a4c9a0b5d2b11\n"
        "90000000\t4892\tcron 16 8 R 6 0 531e779d1c2f5c2b0e8a4c9a0b5d2b11\n",
        [(0, -1, -1, "W", 904265560 * 512, 4096), (33_896, -1, -1, "R", 8192, 4096)],
    ),
    "disksim": (
        "0.5 0 8 16 1\n2.25 0 0 8 0\n",
        [(0, -1, -1, "R", 4096, 8192), (1_750_000, -1, -1, "W", 0, 4096)],
    ),
    "mqsim": (
        "1000 0 8 16 1\n5001000 0 0 8 0\n",
        [(0, -1, -1, "R", 4096, 8192), (5_000_000, -1, -1, "W", 0, 4096)],
    ),
}


def written(path, text):
    path.write_text(text, newline="")
    return path


class TestFormats:
    @pytest.mark.parametrize("name", SAMPLES)
    def test_a_sample_is_recognised_and_gives_the_expected_requests(self, name, tmp_path):
        text, rows = SAMPLES[name]
        path = written(tmp_path / "x", text)
        assert Trace.read(path).format == name
        assert as_rows(read(path)) == rows
        assert set(codes(path)) <= {"whole-seconds"}

    def test_times_since_1970_set_the_date_of_the_trace(self, tmp_path):
        origins = {
            "msr": 1172163600_306162900,
            "alibaba": 1577808000_000046000,
            "tencent": 1538323200_000000000,
            "systor": 1456095145_126285000,
        }
        for name, (text, _) in SAMPLES.items():
            trace = Trace.read(written(tmp_path / name, text))
            assert trace.summary().requests
            assert trace.origin == origins.get(name)

    def test_devices_keep_the_names_of_the_file(self, tmp_path):
        names = {"msr": "hm_0", "fiu": "6,0", "alibaba": "64"}
        for name, device in names.items():
            trace = Trace.read(written(tmp_path / name, SAMPLES[name][0]))
            assert [each.name for each in trace.devices] == [device]

    def test_process_ids_are_kept(self, tmp_path):
        assert read(written(tmp_path / "x", SAMPLES["fiu"][0])).stream.tolist() == [4892, 4892]

    @pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
    def test_compressed_files_are_read(self, pack, tmp_path):
        (tmp_path / "x").write_bytes(pack(SAMPLES["msr"][0].encode()))
        assert as_rows(read(tmp_path / "x")) == SAMPLES["msr"][1]

    def test_a_file_that_fits_two_formats_needs_the_format_option(self, tmp_path):
        path = written(tmp_path / "x", "10 0 8 16 1\n900 0 0 8 0\n")
        with pytest.raises(TraceError, match="could be disksim or mqsim: specify it with --format"):
            Trace.read(path)
        assert read(path, format="disksim").arrival_ns.tolist() == [0, 890_000_000]
        assert read(path, format="mqsim").arrival_ns.tolist() == [0, 890]

    def test_use_dispatch_is_refused_without_issue_times(self, tmp_path):
        with pytest.raises(TraceError, match="needs a capture with issue events"):
            Trace.read(written(tmp_path / "x", SAMPLES["msr"][0]), use_dispatch=True)


class TestLines:
    def test_malformed_lines_are_counted_and_the_first_three_shown(self, tmp_path):
        good = SAMPLES["alibaba"][0]
        path = written(
            tmp_path / "x", good + "nonsense\n\n64,R,1\n" + good + "64,R,-1,1,1\n" + good
        )
        trace = Trace.read(path, format="alibaba")
        assert trace.summary().requests == 6
        (warning,) = [each for each in trace.warnings if each.code == "malformed"]
        assert warning.count == 3
        for seen in ("line 3: 'nonsense'", "line 5: '64,R,1'", "line 8: '64,R,-1,1,1'"):
            assert seen in warning.place

    def test_a_file_with_mostly_malformed_lines_is_refused(self, tmp_path):
        path = written(tmp_path / "x", SAMPLES["alibaba"][0] + "nonsense\n" * 3)
        with pytest.raises(TraceError, match=r"3 of 5 lines are malformed as alibaba.*line 3"):
            read(path, format="alibaba")

    def test_the_last_line_needs_no_newline(self, tmp_path):
        text, rows = SAMPLES["msr"]
        assert as_rows(read(written(tmp_path / "x", text.rstrip("\n")))) == rows

    def test_a_line_longer_than_a_block_is_malformed(self, tmp_path):
        text = SAMPLES["msr"][0]
        path = written(tmp_path / "x", text * 4 + "1" * 3_000_000 + "\n")
        assert read(path).rows == 8
        assert codes(path)["malformed"] > 0

    def test_lines_across_block_borders_are_parsed(self, tmp_path):
        lines = [f"1,{'RW'[i % 2]},{i * 512},512,{10**15 + i}\n" for i in range(60_000)]
        requests = read(written(tmp_path / "x", "".join(lines)), format="alibaba")
        assert (requests.offset_bytes == np.arange(60_000) * 512).all()
        assert (requests.arrival_ns == np.arange(60_000) * 1000).all()

    def test_requests_without_length_or_direction_are_skipped_and_counted(self, tmp_path):
        lines = "1.0,0.1,R,0,0,512\n1.0,0.1,,0,0,512\n1.0,0.1,W,0,0,0\n1.0,9999.0,W,0,0,1\n"
        counts = codes(written(tmp_path / "x", lines))
        assert counts == {"empty": 1, "no-direction": 1, "absurd-latency": 1}


class TestVolumes:
    LINES = (
        "3,W,5000,512,1000000000000000\n7,R,0,4096,1000000000000001\n3,R,0,512,1000000000000002\n"
    )

    def test_the_volume_with_most_bytes_is_selected(self, tmp_path):
        path = written(tmp_path / "x", self.LINES)
        assert as_rows(read(path)) == [(0, -1, -1, "R", 0, 4096)]
        assert codes(path)["several-devices"] == 2
        assert [(d.name, d.requests, d.bytes, d.chosen) for d in Trace.read(path).devices] == [
            ("3", 2, 1024, False),
            ("7", 1, 4096, True),
        ]

    def test_another_volume_can_be_selected(self, tmp_path):
        path = written(tmp_path / "x", self.LINES)
        assert read(path, device="3").offset_bytes.tolist() == [5000, 0]
        assert codes(path, device="3") == {}

    def test_selecting_all_volumes_concatenates_them(self, tmp_path):
        path = written(tmp_path / "x", self.LINES)
        assert read(path, device="all").offset_bytes.tolist() == [5000, 1 << 20, 0]

    def test_volumes_whose_sum_exceeds_the_address_space_are_refused(self, tmp_path):
        large = "".join(f"{volume},R,{1 << 60},4096,{10**15}\n" for volume in (1, 2, 3))
        with pytest.raises(TraceError, match="too large to be concatenated"):
            Trace.read(written(tmp_path / "x", large), device="all")

    def test_a_volume_that_is_not_in_the_trace_is_refused(self, tmp_path):
        with pytest.raises(TraceError, match="no device '8', only 3, 7; or specify all"):
            Trace.read(written(tmp_path / "x", self.LINES), device="8")


def part(*arrivals):
    out = no_requests(len(arrivals))
    out.arrival_ns[:] = arrivals
    out.offset_bytes[:] = np.arange(len(arrivals))
    out.complete_ns[:] = -1
    return out


class TestSeveralFiles:
    """Public traces often come as one file per volume, hour or day."""

    def test_several_files_are_merged_in_time_order(self, tmp_path):
        first = "1,W,0,512,1000000000000000\n2,W,0,512,1000000000000004\nx\n"
        second = "2,R,512,4096,1000000000000001\n1,R,512,512,1000000000000006\n"
        files = [written(tmp_path / "a", first), written(tmp_path / "b", second)]
        assert read(files, device="1").arrival_ns.tolist() == [0, 6000]
        assert read(files, device="all").offset_bytes.tolist() == [0, 512 + 2**20, 2**20, 512]
        assert [(d.name, d.requests, d.chosen) for d in Trace.read(files).devices] == [
            ("1", 2, False),
            ("2", 2, True),
        ]
        assert codes(files) == {"malformed": 1, "several-devices": 2}

    @given(st.lists(st.lists(st.lists(st.integers(0, 30), min_size=1), max_size=4), max_size=4))
    def test_several_streams_are_merged(self, streams):
        """Of equal times the first stream's come first, wherever its parts end."""
        in_time, expected = [], []
        for number, stream in enumerate(streams):
            flat = sorted(chain(*stream))
            expected += [(time, number, place) for place, time in enumerate(flat)]
            rows = part(*flat)._replace(stream=np.full(len(flat), number))
            ends = np.cumsum([0, *map(len, stream)]).tolist()
            in_time.append(iter([rows.between(*each) for each in pairwise(ends)]))
        got = joined(list(merged(in_time)))
        assert [*zip(got.arrival_ns, got.stream, got.offset_bytes)] == sorted(expected)


class TestOrder:
    @given(st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=9), max_size=9))
    def test_lines_out_of_order_within_the_window_are_sorted_by_time(self, times):
        findings = Findings()
        got = joined(list(ordering.in_order((part(*each) for each in times), findings, 100)))
        assert got.arrival_ns.tolist() == sorted(chain(*times))
        assert not findings.list()

    @given(
        st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=9), max_size=9),
        st.integers(1, 5),
    )
    def test_times_never_decrease_beyond_the_sort_window(self, times, window):
        findings = Findings()
        parts = list(ordering.in_order((part(*each) for each in times), findings, window))
        got = joined(parts)
        assert got.rows == sum(map(len, times))
        assert (np.diff(got.arrival_ns) >= 0).all()
        if any(each.code == "disorder" for each in findings.list()):
            assert got.arrival_ns.tolist() != sorted(chain(*times))

    @given(st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=9), max_size=6))
    def test_the_requests_of_a_second_are_spread_evenly_over_it(self, seconds):
        flat = sorted(chain(*seconds))
        parts, at = [], 0
        for each in seconds:
            parts.append(part(*(second * S for second in flat[at : at + len(each)])))
            at += len(each)
        got = joined(list(ordering.spread_seconds(parts))).arrival_ns.tolist()
        expected = [
            second * S + rank * S // flat.count(second)
            for second in sorted(set(flat))
            for rank in range(flat.count(second))
        ]
        assert got == expected


ANY = Table(
    "any",
    ";",
    (Field(To.DEVICE), Field(To.RESPONSE, 10**6), Field(To.LOW_BIT), SKIPPED,
     Field(To.TIME, 100, 7), Field(To.OFFSET, 4096), Field(To.PROCESS), Field(To.LENGTH)),
    exact=False,
)  # fmt: skip
COMMA, SPACED = (
    Table(
        "plain",
        separator,
        (Field(To.OP), Field(To.OFFSET, 512), Field(To.LENGTH), Field(To.TIME, S)),
        exact=exact,
        ops={"r": Op.READ, "write": Op.WRITE, "f": Op.FLUSH, "": None},
    )
    for separator, exact in ((",", True), (BLANKS, False))
)
NUMBERS = ["0", "8", "300", "4096", "0.5", "128166372003061629"] * 7 + [
    "1456095145.133076000", "7.", "1.12345678912", ".5", "1e3", "-1", "",
    "nan", "-", "5e-05", "1.25E+2", "7.e1", "1e", "1e+x", "1e100", "3e99", "9" * 18, "9" * 19,
    "9" * 20, "0" * 20, "12345678", "123456789", "1234567812345678", "12345678.12345678",
    "3.123456789", "3.1234567891", "3.12345678912345678", "1" * 24, str(2**61),
    str(2**40), str(2**40 + 1), "116444735999999999",
]  # fmt: skip
WORDS = ["R", "w", "r", "Write", "READ", "F", "", "RW", "rewrites", "1", "f0", "x1", "a b",
    "volume7", "volume78", "volume-2345678", "volume-23456789", "é", "W!"]  # fmt: skip
PADDING = ["", "", "", "", " ", "\t", "\r"]


def field_texts(field):
    fitting = NUMBERS if field.to in (*NUMERIC, To.LOW_BIT) else WORDS
    others = WORDS if fitting is NUMBERS else NUMBERS
    quotes = [""] if field.to == To.NOTHING else ["", "", "", '"']
    return st.builds(
        lambda quote, before, text, after: before + quote + text + quote + after,
        st.sampled_from(quotes),
        st.sampled_from(PADDING),
        st.sampled_from(fitting * 5 + others),
        st.sampled_from(PADDING),
    )


def lines(table):
    whole = st.tuples(*map(field_texts, table.fields)).map(list)
    return st.builds(
        lambda begin, fields, keep, more: (
            begin + table.separator.join(fields[: len(fields) - keep] + more)
        ),
        st.sampled_from(["", "", "", "", "#", " "]),
        whole,
        st.sampled_from([0, 0, 0, 0, 1, 2]),
        st.sampled_from([[], [], [], ["7"], ["x", ""]]),
    )


@pytest.mark.parametrize(
    "table", [MSR, SYSTOR, FIU, ANY, COMMA, SPACED], ids=lambda table: table.name
)
@settings(max_examples=20)
@given(st.data())
def test_the_compiled_parser_equals_the_naive_one(table, data):
    agree(table, data.draw(st.lists(lines(table), min_size=1, max_size=12)))


def test_quoted_fields_may_be_separated_by_blanks():
    agree(FIU, ['0 0 a b 0 8 R 6 0 ""', '0 0 a 0 8 R 6 "" 0 7', '0 "a" 0 0 8 R 6 0 7'])


@pytest.mark.parametrize("time", ["1e3", "1.25E+2", "1e0", "1.e1", "700000e-5", "0.0007e4"])
def test_an_exponent_counts_before_the_origin_of_times_is_taken_off(time):
    agree(ANY, [f"R;0;0;R;{time};0;0;8"])


def agree(table, texts):
    """Check that the parser, compiled and as plain Python, agrees with the naive one."""
    agreed(table, texts, parse)
    with np.errstate(over="ignore"):
        agreed(table, texts, getattr(parse, "py_func", parse))


def agreed(table, texts, parse):
    text = ("\n".join(texts) + "\n").encode()
    block = np.frombuffer(text + bytes(BEYOND), np.uint8)
    seen, out = nothing_seen(), no_requests(len(texts))
    at, rows = parse(block, 0, len(text), plan_of(table), seen, -1, out)
    assert at == len(text)
    expected = [parse_line(table, text) for text in texts]
    requests = [each for each in expected if not isinstance(each, str)]
    devices = list(dict.fromkeys(each[4] for each in requests))
    got = out.between(0, rows)
    assert list(
        zip(got.arrival_ns, got.offset_bytes, got.length_bytes, got.op, got.device, got.stream)
    ) == [(t, offset, length, op, devices.index(name), process)
          for t, offset, length, op, name, _, process in requests]  # fmt: skip
    assert got.complete_ns.tolist() == [
        t + response if response >= 0 else -1 for t, _, _, _, _, response, _ in requests
    ]
    for what, word in (
        (Tally.MALFORMED, "malformed"),
        (Tally.EMPTY, "empty"),
        (Tally.NO_DIRECTION, "no direction"),
        (Tally.BLANK_LINES, "blank"),
    ):
        assert seen.tally[what] == expected.count(word)
    for index, name in enumerate(devices):
        mine = [each for each in requests if each[4] == name]
        assert seen.devices[index, Of.REQUESTS] == len(mine)
        assert seen.devices[index, Of.BYTES] == sum(each[2] for each in mine)
        assert seen.devices[index, Of.END] == max(each[1] + each[2] for each in mine)


class TestMapper:
    TEXT = "when;lba;kb;what;note\n1,5;8;4;get;a\n"

    def text(self, *rows, head="when;lba;kb;what;note"):
        return "\n".join([head, *rows]) + "\n"

    def test_columns_by_name_and_by_number(self, tmp_path):
        path = written(tmp_path / "x", self.text('5;8;4;GET;"a;b"', "7;0;2;put;"))
        rows = [(0, -1, -1, "R", 4096, 4096), (2_000_000, -1, -1, "W", 0, 2048)]
        for mapping in (
            "time=when:ms,offset=lba:sectors,size=kb:KiB,op=what:get/put",
            "time=1:ms,offset=2:512,length=3:1k,op=4:get/put,separator=semicolon",
        ):
            assert as_rows(read(path, format=f"columns:{mapping}")) == rows

    def test_a_toml_file_specifies_the_same_columns_as_options(self, tmp_path):
        path = written(tmp_path / "x", self.text("5;8;4;r;"))
        mapping = written(
            tmp_path / "map.toml", 'time = "when:us"\noffset = "lba:4KiB"\nlength = "kb:KiB"\n'
        )
        assert as_rows(read(path, format=f"columns:{mapping}")) == [(0, -1, -1, "R", 32768, 4096)]

    def test_a_word_that_is_no_operation_leads_to_the_words_of_columns(self, tmp_path):
        path = written(tmp_path / "x", self.text("5;8;4;R;", "6;8;4;TRIM;", "7;8;4;W;"))
        trace = Trace.read(path, format="columns:time=when:us,offset=lba,length=kb,op=what")
        trace.summary()
        (warning,) = [each for each in trace.warnings if each.code == "malformed"]
        assert "line 3: '6;8;4;TRIM;'" in warning.place
        assert "op=COLUMN:R/W/D/F" in warning.fix
        assert "--format" not in warning.fix

    def test_a_column_number_is_an_index_even_if_the_header_contains_it(self, tmp_path):
        path = written(tmp_path / "x", "5,4096,1\n6,0,2\n")
        mapping = "columns:time=1:s,offset=2,length=3:sectors"
        assert as_rows(read(path, format=mapping)) == [
            (0, -1, -1, "R", 4096, 512),
            (S, -1, -1, "R", 0, 1024),
        ]

    def test_names_in_quotes_may_contain_the_separator(self, tmp_path):
        path = written(tmp_path / "x", '"Time, s",lba,n,size\n0.5,1,8,9\n')
        assert as_rows(read(path, format="columns:time=1:s,offset=lba,length=n")) == [
            (0, -1, -1, "R", 1, 8)
        ]

    @pytest.mark.parametrize("row", ['1,"1,024",8,a', '1,8,8,"a,1",4'])
    def test_a_separator_within_quotes_shifts_no_column(self, row, tmp_path):
        path = written(tmp_path / "x", f"t,lba,n,vol,x\n{row}\n" + '1,"8","8","a",5\n' * 2)
        format = "columns:time=t:s,offset=lba,length=n,device=vol"
        assert {row[4:] for row in as_rows(read(path, format=format))} == {(8, 8)}
        assert codes(path, format=format) == {"malformed": 1, "all-reads": 1}

    @pytest.mark.parametrize("time", ["2024-05-01 12:00:00", "0x10", "1.024.000"])
    def test_what_is_no_decimal_number_is_refused_with_the_remedy(self, time, tmp_path):
        path = written(tmp_path / "x", f"t,lba,n\n{time},8,8\n")
        with pytest.raises(TraceError, match=r"line 2: .*; correct --columns: .* dates, hex"):
            read(path, format="columns:time=t:s,offset=lba,length=n")

    def test_a_header_after_comments_and_blank_lines_is_no_malformed_line(self, tmp_path):
        path = written(tmp_path / "x", "# by x\n\nwhen,lba,n,op\n0,8,8,R\n")
        assert codes(path, format="columns:time=when:s,offset=lba,length=n,op=op") == {}

    def test_whole_seconds_are_spread_with_their_completions(self, tmp_path):
        rows = "".join(f"{7000 + row // 4 * 1000},8,8,R,5\n" for row in range(20))
        path = written(tmp_path / "x", rows)
        format = "columns:time=1:ms,offset=2,length=3,op=4,latency=5:ms"
        requests = read(path, format=format)
        assert requests.arrival_ns.tolist() == [S // 4 * row for row in range(20)]
        assert set(requests.complete_ns - requests.arrival_ns) == {5_000_000}
        assert codes(path, format=format) == {"whole-seconds": 1}

    def test_times_that_start_again_are_reported(self, tmp_path):
        path = written(tmp_path / "x", "".join(f"{t},8,8,R\n" for t in (0, 90, 89, 0, 90)))
        format = "columns:time=1:s,offset=2,length=3,op=4"
        assert read(path, format=format).arrival_ns.tolist() == [0, 0, 89 * S, 90 * S, 90 * S]
        assert codes(path, format=format) == {"times-back": 1}

    def test_small_numbers_may_have_an_exponent(self, tmp_path):
        times = ["0", "5e-05", "9.999999999999999e-05", "1.2E-04", "1.628e+01"]
        path = written(tmp_path / "x", "".join(f"{each},1e+16,8,R\n" for each in times))
        rows = as_rows(read(path, format="columns:time=1:s,offset=2,length=3,op=4"))
        assert [row[0] for row in rows] == [0, 50_000, 100_000, 120_000, 16_280_000_000]
        assert {row[4] for row in rows} == {10**16}

    def test_a_request_without_a_latency_is_read(self, tmp_path):
        path = written(tmp_path / "x", "t,a,n,ms\n0,8,8,\n1,8,8,-1\n2,8,8,NaN\n3,8,8,5\n")
        format = "columns:time=t:s,offset=a,length=n,latency=ms:ms"
        assert [row[2] for row in as_rows(read(path, format=format))] == [-1, -1, -1, 3_005_000_000]

    def test_without_time_and_op_columns_all_requests_are_reads_without_times(self, tmp_path):
        path = written(tmp_path / "x", "8 4096\n9 4096\n")
        assert codes(path, format="columns:offset=1:4KiB,length=2") == {
            "no-times": 1,
            "all-reads": 1,
        }

    @pytest.mark.parametrize(
        ("mapping", "message"),
        [
            ("time=when:us,offset=lba", "length is missing"),
            ("tme=when:us", "unknown role 'tme': did you mean 'time'"),
            ("time=when,offset=lba,length=kb", "time: specify the unit of the time"),
            (
                "time=when:h,offset=lba,length=kb",
                "specify the unit of the time: ns, us, ms, s or filetime",
            ),
            ("offset=lba:yards,length=kb", "unknown unit 'yards'"),
            ("offset=start,length=kb", "no column 'start'; its first line is when, lba, kb"),
            ("offset=9,length=kb", "no column '9'; its first line is when, lba, kb"),
            ("offset=lba,length=kb,op=what:get", "'get' is not of the form READ/WRITE"),
            ("offset=lba,length=kb,separator=words", "separator must be one of comma"),
            ("time=lba:us,offset=lba,length=kb", "column 'lba' has two roles"),
            ("offset=lba,offset=when,length=kb", "offset is specified twice"),
            ("offset=lba,length=kb,size=kb", "the role length is specified twice"),
            ("offset", "'offset' is not of the form ROLE=COLUMN"),
            ("missing.toml", "No such file"),
        ],
    )
    def test_a_wrong_mapping_is_refused_with_the_correction(self, mapping, message, tmp_path):
        path = written(tmp_path / "x", self.text("5;8;4;r;"))
        with pytest.raises(ColumnsError, match=message):
            Trace.read(path, format=f"columns:{mapping}")


@pytest.mark.parametrize(
    ("file", "format", "requests", "reads"),
    [
        ("msr-cambridge1-sample.csv", "msr", 1000, 508),
        ("systor17-additional-sample.csv.gz", "systor", 999, 700),
        ("systor17-traces-sample.csv.gz", "systor", 999, 826),
        ("cloud_storage-sample.bz2", "tencent", 50_000, 24_521),
        ("wsrch-small.trace", "mqsim", 24_783, 24_779),
        ("tpcc-small.trace", "mqsim", 6_999, 4_381),
    ],
)
def test_samples_of_public_traces_give_the_expected_requests(file, format, requests, reads):
    folder = os.environ.get("HYBRIDSIM_DATA")
    if not folder:
        pytest.skip("HYBRIDSIM_DATA is not set: it names the folder of the public traces")
    trace = Trace.read(Path(folder) / "traces" / file, device="all")
    summary = trace.summary()
    assert (trace.format, summary.requests, summary.reads) == (format, requests, reads)
    assert {each.code for each in summary.warnings} <= {"whole-seconds"}
