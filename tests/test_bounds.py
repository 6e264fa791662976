"""`bounds`: the best and the worst that a cache could do, from averages alone."""

import json

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from hybridsim.answers.bounds import bounds
from hybridsim.answers.measurements import fio_json
from hybridsim.cli import cli
from hybridsim.foundation.errors import TraceError
from hybridsim.storage import catalog
from hybridsim.storage.drives import SolidState
from hybridsim.traces.averages import Interval, read

MS = 10**6

IOSTAT = """\
Linux 6.1.0 (host)  11/23/26  _x86_64_  (2 CPU)

Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s w_await  %util
sda              5.00     50.00     0.00   0.00   99.00    10.00    5.00     50.00   99.00  10.00

avg-cpu:  %user   %nice %system %iowait  %steal   %idle
          95.06    0.00    4.44    0.00    0.49    0.00

Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s w_await  %util
sda             80.00    640.00     0.00   0.00   10.00     8.00   20.00    400.00   20.00  60.00
sdb              0.00      0.00     0.00   0.00    0.00     0.00    0.00      0.00    0.00   0.00

Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s w_await  %util
sda            160.00   1280.00     0.00   0.00   20.00     8.00   40.00    800.00   40.00  99.00
"""
OLD_IOSTAT = """\
Device:  rrqm/s wrqm/s  r/s   w/s  rsec/s  wsec/s avgrq-sz avgqu-sz await svctm  %util
sda        0,00   0,00 90,00 10,00 1800,00  200,00    20,00     1,00 12,50  5,00  50,00
"""
SAR = """\
12:00:01 AM       DEV       tps     rkB/s     wkB/s     dkB/s   areq-sz      await     %util
12:10:01 AM       sda    100.00    800.00    400.00      0.00     12.00     10.00     50.00
12:20:01 AM       sda     50.00    400.00      0.00      0.00      8.00     20.00     40.00
Average:          sda     75.00    600.00    200.00      0.00     10.00     15.00     45.00
"""


def saved(tmp_path, text, name="averages.txt"):
    path = tmp_path / name
    path.write_text(text)
    return str(path)


def drive(**changes):
    rows = {key: row.value for key, row in catalog.load("samsung-pm9a3-1920gb").rows.items()}
    return SolidState.model_validate({"kind": "ssd", **rows, **changes})


def test_the_report_since_boot_is_left_out(tmp_path):
    first, second = read(saved(tmp_path, IOSTAT))
    assert (first.reads_per_s, first.writes_per_s, first.read_wait_ns) == (80, 20, 10 * MS)
    assert (first.read_bytes_per_s, first.write_bytes_per_s) == (640 * 1024, 400 * 1024)
    assert first.wait_ns == pytest.approx(12 * MS)  # 80 of 10 ms, 20 of 20 ms
    assert second.busy == pytest.approx(0.99)


def test_a_single_report_is_used(tmp_path):
    only = "".join(IOSTAT.partition("avg-cpu")[:1])
    assert [one.reads_per_s for one in read(saved(tmp_path, only))] == [5]


def test_old_forms_have_one_wait_sectors_and_decimal_commas(tmp_path):
    (one,) = read(saved(tmp_path, OLD_IOSTAT))
    assert (one.read_wait_ns, one.write_wait_ns) == (12.5 * MS, 12.5 * MS)
    assert (one.read_bytes_per_s, one.write_bytes_per_s) == (1800 * 512, 200 * 512)


def test_sar_separates_reads_only_where_all_requests_are_of_one_direction(tmp_path):
    mixed, reads = read(saved(tmp_path, SAR))
    assert (mixed.at, mixed.reads_per_s, mixed.wait_ns) == ("12:10:01 AM", None, 10 * MS)
    assert (reads.reads_per_s, reads.writes_per_s) == (50, 0)


def test_forms_for_people_have_units_colours_and_the_device_at_the_end(tmp_path):
    shown = (
        "r/s rkB/s r_await w/s wMB/s w_await %util Device\n20.0 1.5M 4.0 5.0 0.5M 2.0 12.5% sda\n"
    )
    (one,) = read(saved(tmp_path, shown))
    assert (one.device, one.reads_per_s, one.busy) == ("sda", 20.0, 0.125)
    assert (one.read_bytes_per_s, one.write_bytes_per_s) == (1.5 * 1024**2, 0.5 * 1024**2)
    assert one.read_wait_ns == 4e6
    sar = "13:20:09 tps rkB/s wkB/s areq-sz await %util DEV\n"
    sar += "13:20:19 10.0 40.0k 0.0k 4.0k 7.0 1% sda\n"
    (one,) = read(saved(tmp_path, sar))
    assert (one.at, one.requests_per_s, one.read_bytes_per_s) == ("13:20:19", 10.0, 40 * 1024)
    plain = "13:20:09 DEV tps rkB/s wkB/s await\n13:20:19 sda 10.0 40.0 0.0 7.0\n"
    coloured = plain.replace("sda", "\x1b[32;22msda\x1b[0m")
    assert read(saved(tmp_path, coloured)) == read(saved(tmp_path, plain))


def test_json_of_iostat(tmp_path):
    row = {"disk_device": "sda", "r/s": 80.0, "w/s": 20.0, "rkB/s": 640.0, "wkB/s": 400.0,
           "r_await": 10.0, "w_await": 20.0, "util": 60.0}  # fmt: skip
    boot = row | {"r/s": 1.0}
    reports = [{"timestamp": at, "disk": [one]} for at, one in (("1", boot), ("2", row))]
    text = json.dumps({"sysstat": {"hosts": [{"statistics": reports}]}})
    (one,) = read(saved(tmp_path, text))
    assert (one.at, one.reads_per_s, one.busy) == ("2", 80, 0.6)


def test_json_of_fio(tmp_path):
    job = {
        "read": {"total_ios": 900, "runtime": 10_000, "io_bytes": 900 * 4096,
                 "lat_ns": {"mean": 8e6}},
        "write": {"total_ios": 100, "runtime": 9_000, "io_bytes": 409_600, "lat_ns": {"mean": 2e6}},
    }  # fmt: skip
    (one,) = read(saved(tmp_path, json.dumps({"jobs": [job]})))
    assert (one.reads_per_s, one.writes_per_s) == (90, pytest.approx(10))
    assert (one.read_wait_ns, one.wait_ns) == (8e6, pytest.approx(7.4e6))


def test_json_of_fio_among_its_other_output(tmp_path):
    """--output-format=json,normal on a terminal; --status-interval prints several: the last."""

    def job(reads):
        part = {"total_ios": reads, "runtime": 1000, "io_bytes": 4096, "lat_ns": {"mean": 1e6}}
        jobs = [{"read": part, "write": {**part, "total_ios": 0}}]
        return json.dumps({"fio version": "fio-3.42", "jobs": jobs}, indent=2)

    text = f"sda: (g=0): rw=randread\nfio-3.42\n{job(50)}\n{job(80)}\n\nsda: read: IOPS=80 {{}}\n"
    (one,) = read(saved(tmp_path, text))
    assert one.reads_per_s == 80
    assert fio_json.load("x", text)["jobs"][0]["read"]["total_ios"] == 80


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("nothing of use\n", "has no averages of a device"),
        ("{", "begins like JSON"),
        ('{"jobs": [{"read": {}}]}', "keys are missing"),
        ('{"sysstat": 3}', "keys are missing"),
        ("Device tps kB_read/s\nsda 1.0 2.0\n", "no waiting times"),
        ("Device r/s rkB/s r_await w_await\nsda x 1 2 3\n", ":2: a table of 5 columns"),
        ("Device r/s rkB/s r_await w_await\nsda nan 1 2 3\n", "negative or not finite"),
    ],
)
def test_other_files_are_refused_with_the_reason(tmp_path, text, error):
    with pytest.raises(TraceError, match=error):
        read(saved(tmp_path, text))


def test_a_device_must_be_chosen_where_several_have_requests(tmp_path):
    both = IOSTAT.replace("sdb              0.00", "sdb              7.00")
    with pytest.raises(TraceError, match="2 devices, sda, sdb: choose one with --device"):
        read(saved(tmp_path, both))
    assert [one.reads_per_s for one in read(saved(tmp_path, both), "sdb")] == [7]
    with pytest.raises(TraceError, match="no device 'sdc'"):
        read(saved(tmp_path, both), "sdc")


def test_the_cases_by_hand():
    """80 reads of 10 ms and 20 writes of 20 ms a second; the SSD takes 80 us and 14 us."""
    one = Interval("sda", "", 100, 80, 8000, 2000, 12 * MS, 10 * MS, 20 * MS, 0.5)
    found = bounds([one], drive())
    through, back = found.cases
    assert through.now_ns == back.now_ns == 12 * MS
    assert through.best_ns == pytest.approx((80 * 80_000 + 20 * 20 * MS) / 100)
    assert back.best_ns == pytest.approx((80 * 80_000 + 20 * 14_000) / 100)
    assert through.worst_ns == back.worst_ns == 12 * MS
    assert found.ssd_bytes_per_day_at_most == 10_000 * 86_400
    assert found.answer == "unsure"


def test_a_fast_device_is_a_certain_no():
    fast = Interval("nvme0n1", "", 1000, 900, 1e6, 1e5, 82_000, 85_000, 20_000, 0.1)
    assert bounds([fast], drive()).answer == "no"


def test_no_request_has_no_bounds():
    assert bounds([Interval("sda", "", 0, 0, 0, 0, 0, 0, 0, 0.0)], drive()) is None


waits = st.floats(1e3, 1e10)
rates = st.floats(0.01, 1e6)


@given(st.lists(st.tuples(rates, rates, waits, waits), min_size=1, max_size=5))
def test_best_and_worst_enclose_today_and_write_back_is_the_better_best(rows):
    intervals = []
    for reads, writes, read_ns, write_ns in rows:
        count = reads + writes
        wait = (reads * read_ns + writes * write_ns) / count
        intervals.append(
            Interval("sda", "", count, reads, 4096.0, 4096.0, wait, read_ns, write_ns, None)
        )
    through, back = bounds(intervals, drive()).cases
    for case in (through, back):
        assert case.best_ns <= case.worst_ns * (1 + 1e-9)
    assert back.best_ns <= through.best_ns * (1 + 1e-9)
    assert back.worst_ns == pytest.approx(back.now_ns)


def test_the_command_prints_answer_first_and_what_to_record(tmp_path, monkeypatch):
    saved(tmp_path, SAR, "sar.txt")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["bounds", "sar.txt"], catch_exceptions=False)
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0].startswith("answer       can't say: between nothing and")
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert "hybridsim trace record /dev/sda" in " ".join(done.stdout.split())
