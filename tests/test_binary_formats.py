"""Formats of fixed records: vscsi and oracleGeneral."""

import struct

import numpy as np
import pytest
from captures import as_rows, codes, read
from hypothesis import given
from hypothesis import strategies as st

from hybridsim.foundation.errors import TraceError
from hybridsim.traces.formats.oracle_general import detect as detect_oracle
from hybridsim.traces.formats.oracle_general import next_accesses
from hybridsim.traces.trace import Trace


class TestVscsi:
    def record(self, command=0x28, time_us=10, version=0x100, block=8, length=4096):
        return struct.pack("<IIIHHQQ", 1, length, 1, command, version, block, time_us)

    def test_reads_and_writes_have_times_in_microseconds(self, tmp_path):
        path = tmp_path / "x"
        path.write_bytes(self.record() + self.record(0x8A, 25) + self.record(0x28, 15, block=0))
        assert Trace.read(path).format == "vscsi"
        assert as_rows(read(path)) == [
            (0, -1, -1, "R", 4096, 4096),
            (15_000, -1, -1, "W", 4096, 4096),
            (15_000, -1, -1, "R", 0, 4096),
        ]
        assert codes(path) == {"disorder": 1}

    def test_other_commands_and_a_truncated_record_are_skipped(self, tmp_path):
        path = tmp_path / "x"
        path.write_bytes(self.record() + self.record(0x12) + self.record()[:9])
        assert read(path).rows == 1
        assert codes(path) == {"other-commands": 1, "truncated": 1}

    def test_a_trace_that_begins_with_another_command_is_recognised(self, tmp_path):
        path = tmp_path / "x"
        path.write_bytes(self.record(0x35, length=0) + self.record(0x2E, 20))
        assert Trace.read(path).format == "vscsi"
        assert as_rows(read(path)) == [(0, -1, -1, "W", 4096, 4096)]

    def test_the_version_is_read_from_the_high_byte(self, tmp_path):
        """As libCacheSim's reader takes it (traceReader/include/vscsi.h: ver >> 8)."""
        path = tmp_path / "x"
        path.write_bytes(self.record(version=0x103) * 2)
        assert Trace.read(path).format == "vscsi"
        assert read(path).rows == 2

    def test_a_trace_without_reads_and_writes_is_refused(self, tmp_path):
        path = tmp_path / "x"
        path.write_bytes(self.record(version=0x200))
        with pytest.raises(TraceError, match="contains no request"):
            read(path, format="vscsi")

    def test_version_2_has_response_times(self, tmp_path):
        path = tmp_path / "x"
        path.write_bytes(
            struct.pack("<HHIIIQQQ", 0x2A, 0x200, 1, 4096, 1, 8, 10, 250)
            + struct.pack("<HHIIIQQQ", 0x88, 0x200, 2, 512, 1, 0, 35, 1 << 60)
        )
        assert Trace.read(path).format == "vscsi"
        assert as_rows(read(path)) == [
            (0, -1, 250_000, "W", 4096, 4096),
            (25_000, -1, -1, "R", 0, 512),
        ]


class TestOracleGeneral:
    ACCESSES = ((5, 7, 4), (5, 9, 5), (5, 8, -1), (6, 7, -1), (6, 9, 6), (6, 9, -1))

    def records(self, base=0):
        return b"".join(
            struct.pack("<IQIq", second, thing, 4096, following - base * (following > 0))
            for second, thing, following in self.ACCESSES
        )

    @pytest.mark.parametrize("base", [0, 1])
    def test_objects_become_pages_and_requests_spread_over_their_second(self, base, tmp_path):
        path = tmp_path / "x"
        path.write_bytes(self.records(base))
        assert Trace.read(path).format == "oracle-general"
        requests = read(path)
        assert (requests.offset_bytes // 4096).tolist() == [7, 9, 8, 7, 9, 9]
        assert requests.arrival_ns.tolist()[:4] == [0, 333_333_333, 666_666_666, 10**9]
        assert codes(path) == {"whole-seconds": 1, "all-reads": 1}

    def test_records_with_a_wrong_next_access_are_not_recognised(self):
        head = bytearray(self.records())
        assert detect_oracle(bytes(head))
        head[4] += 1
        assert not detect_oracle(bytes(head))

    def test_accesses_of_zero_bytes_are_skipped_as_in_libcachesim(self, tmp_path):
        """reader.h: ignore_size_zero_req, on by default."""
        path = tmp_path / "x"
        path.write_bytes(self.records() + struct.pack("<IQIq", 7, 3, 0, -1))
        assert Trace.read(path).format == "oracle-general"
        assert read(path).rows == len(self.ACCESSES)
        assert codes(path)["empty"] == 1

    def test_another_file_is_refused(self, tmp_path):
        path = tmp_path / "x"
        path.write_text("64,R,126703644672,4096,1577808000000046\n" * 9)
        with pytest.raises(TraceError, match="15 of 15 records are malformed as oracle-general"):
            read(path, format="oracle-general")

    @given(st.lists(st.integers(0, 5), max_size=20))
    def test_written_records_hold_the_next_access(self, objects):
        following = next_accesses(np.array(objects, np.int64)).tolist()
        for number, each in enumerate(objects):
            later = [i + 1 for i in range(number + 1, len(objects)) if objects[i] == each]
            assert following[number] == (later[0] if later else -1)
