"""Public trace formats as documented by their owners or by other readers; each names its source.

The lines are invented, in the format of the source.
"""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile

import pytest
from captures import as_rows, codes, read

from hybridsim.foundation.errors import TraceError
from hybridsim.traces.trace import Trace

SECTOR = 512
MD5 = "0123456789abcdef0123456789abcdef"


def written(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


class TestForms:
    """# format: source, lines, expected requests."""

    FORMS = {
        # LBAs increase by size / 512, opcodes are lower case: UMass' Financial1, as quoted in
        # many tutorials ("0,303567,3584,w,0.000000" and "0,303574,3584,w,0.026214").
        "spc": (
            "0,1000,3584,w,0.000000\n0,1007,3584,w,0.026214\n0,1014,512,r,0.078643\n",
            [(0, "W", 1000, 3584), (26_214_000, "W", 1007, 3584), (78_643_000, "R", 1014, 512)],
        ),
        # The README of alibaba/block-traces: R or W, bytes, microseconds; the CSV has no header.
        "alibaba": (
            "0,R,126703644672,4096,1577808000000626\n0,W,512,1024,1577808000000726\n",
            [(0, "R", 126703644672 // SECTOR, 4096), (100_000, "W", 1, 1024)],
        ),
        # The README of SNIA IOTTA 27917: seconds, sectors of 512, Read(0), Write(1).
        "tencent": (
            "1538323200,8,16,0,1063\n1538323202,24,8,1,1063\n",
            [(0, "R", 8, 8192), (2 * 10**9, "W", 24, 4096)],
        ),
        # The README of SNIA IOTTA 391 and 411; processes of a kernel have slashes in their names.
        "fiu": (
            f"89968195792462 20782 gzip 283193184 8 R 6 0 {MD5}\n"
            f"89968195892462 318 kjournald/0 194192 8 W 6 0 {MD5}\n",
            [(0, "R", 283193184, 4096), (100_000, "W", 194192, 4096)],
        ),
        # DiskSim 4.0, disksim_iotrace.c: "%lf %d %d %d %x" by any blanks, READ is bit 0; its
        # ascii.trace has columns in line.
        "disksim": (
            "13.191135    30    0    5    1\n17.829285    30    576560    6    0\n",
            [(0, "R", 0, 2560), (4_638_150, "W", 576560, 3072)],
        ),
        # MQSim, ASCII_Trace_Definition.h: 1 is a read, blanks; traces/README.md: nanoseconds.
        "mqsim": (
            "4851300 1 524288 16 0\n4864300 1 524304 16 1\n",
            [(0, "W", 524288, 8192), (13_000, "R", 524304, 8192)],
        ),
    }

    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    def test_documented_lines_give_the_documented_requests(self, form, end, tmp_path):
        text, expected = self.FORMS[form]
        path = written(tmp_path / "x", text.replace("\n", end).removesuffix(end))
        assert Trace.read(path).format == form
        assert [
            (arrival, op, offset // SECTOR, length)
            for arrival, _, _, op, offset, length in as_rows(read(path))
        ] == expected


class TestFiles:
    TEXT = "0,R,4096,4096,1577808000000626\n0,W,512,1024,1577808000000726\n"
    HEADER = "device_id,opcode,offset,length,timestamp\n"

    @pytest.mark.parametrize("header", ["", HEADER])
    def test_a_byte_order_mark_is_not_part_of_a_column_name(self, header, tmp_path):
        path = written(tmp_path / "x", "\ufeff" + header + self.TEXT)
        assert [each.name for each in Trace.read(path).devices] == ["0"]
        assert codes(path) == {}

    def test_a_header_alone_is_a_trace_without_requests(self, tmp_path):
        with pytest.raises(TraceError, match="contains no request in the format alibaba"):
            Trace.read(written(tmp_path / "x", self.HEADER))

    @pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
    def test_a_tar_archive_is_refused_in_any_compression(self, compress, tmp_path):
        """Tencent's, FIU's and Alibaba's files come as .tgz or .tar.gz."""
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            tar.addfile(tarfile.TarInfo("io.csv"))
        path = written(tmp_path / "x", compress(archive.getvalue()))
        with pytest.raises(TraceError, match="x: a tar archive, which is not supported: unpack it"):
            Trace.read(path)

    def test_files_that_are_not_traces_are_refused_by_kind(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
            archive.writestr("io.csv", self.TEXT)
        written(tmp_path / "utf-16", self.TEXT.encode("utf-16"))
        # libCacheSim, traceReader/customizedReader/lcs.h: LCS_TRACE_START_MAGIC
        written(tmp_path / "lcs", bytes.fromhex("f0debc9a78563412") + bytes(1016))
        for name, message in (
            ("zip", "a zip archive"),
            ("utf-16", "convert it to UTF-8"),
            ("lcs", "libCacheSim's lcs, which is not supported: convert it to oracleGeneral"),
        ):
            with pytest.raises(TraceError, match=message):
                Trace.read(tmp_path / name, format="alibaba")
