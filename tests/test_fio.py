"""fio's jobs on a simulated machine: parsing, errors, execution and output."""

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from test_fio_offsets import DATA

from hybridsim.cli.fio import fio as command
from hybridsim.foundation.codes import Op
from hybridsim.foundation.errors import ScenarioError, UsageError
from hybridsim.foundation.histogram import Distribution as Latencies
from hybridsim.foundation.histogram import bin_of
from hybridsim.scenario import Scenario
from hybridsim.show import fio_json, fio_logs, fio_text
from hybridsim.studies.fio import fio, seeded
from hybridsim.traces.trace import Trace
from hybridsim.workloads.fio import options
from hybridsim.workloads.fio.job import PERCENTS, jobs_of, opened
from hybridsim.workloads.fio.jobfile import read
from hybridsim.workloads.fio.pattern import READ, WRITE, Distribution
from hybridsim.workloads.fio.places import lay_out
from hybridsim.workloads.fio.requests import Feeds, Poisson
from hybridsim.workloads.fio.results import Measured

# The commands and the job file of the reference documents, verbatim.
DIGITALOCEAN = (
    "--filename= --direct=1 --rw=randread --ioengine=libaio --bs=4K --iodepth=128 --name=rand-r "
    "--runtime=120s"
)
ALIBABA = (
    "-direct=1 -iodepth=128 -rw=randread -ioengine=libaio -bs=64k -size=10G -numjobs=1 "
    "-runtime=1000 -group_reporting -filename =iotest -name=Rand_Read_Testing"
)
ADAPTEC = """
; random read of 4KB of data
[random-read]
rw=randread
size=8192M
direct=1
iodepth=64
ioengine=libaio
randrepeat=1
directory=/testdb/fio
write_bw_log=logresults
bwavgtime=3000
"""
RW = ("read", "write")
QUICK = "--ioengine=libaio --direct=1 --rw=randread --bs=4k --size=64M --iodepth=8 --number_ios=400"
SSD = """
[backing]
kind = "single"
members = 1
[backing.drive]
like = "samsung-pm883-960gb"
[cache]
kind = "none"
"""


def jobs(text):
    return jobs_of(read(text.split()))


def job(text):
    (one,) = jobs(text)
    return one


def from_file(tmp_path, text):
    path = tmp_path / "job.fio"
    path.write_text(text)
    return jobs_of(read([str(path)]))


def wrong(text):
    with pytest.raises(UsageError) as error:
        jobs(text)
    return str(error.value)


# Job files and command lines.


def test_the_commands_of_the_reference_documents_are_parsed():
    first = job(DIGITALOCEAN)
    assert (first.depth, first.run_ns, first.pattern.block_bytes) == (128, 120 * 10**9, 4096)
    assert not first.has_size
    second = job(ALIBABA)
    assert (second.files, second.pattern.file_bytes) == (("=iotest",), 10 << 30)
    assert second.pattern.block_bytes == 64 << 10


def test_the_job_file_of_the_reference_documents_is_parsed(tmp_path):
    (one,) = from_file(tmp_path, ADAPTEC)
    assert one.files == ("/testdb/fio/random-read.0.0",)
    assert (one.depth, one.pattern.file_bytes, one.logs) == (64, 8 << 30, {"bw": "logresults"})


def test_global_options_numjobs_and_stonewall_are_applied(tmp_path):
    text = (
        "[global]\nsize=1m\nbs=8k\n[a]\nnumjobs=2\n[b]\nstonewall\nbs=4k\n[global]\nbs=16k\n[c]\n"
    )
    parsed = from_file(tmp_path, text)
    assert [(each.name, each.thread, each.group) for each in parsed] == [
        ("a", 1, 0), ("a", 2, 0), ("b", 3, 1), ("c", 4, 1),
    ]  # fmt: skip
    assert [each.pattern.block_bytes >> 10 for each in parsed] == [8, 8, 4, 16]
    assert [each.files for each in parsed[:2]] == [("a.0.0",), ("a.1.0",)]


def test_keywords_are_figures_of_this_host(tmp_path):
    text = "[a]\nsize=64*$pagesize\nnumjobs=$ncpus\nbs=$pagesize\noffset=($pagesize-96)/1000\n"
    one = from_file(tmp_path, text)[0]
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    assert one.specified["numjobs"] == str(os.cpu_count())
    assert one.pattern.file_bytes == 64 * page_bytes
    assert one.pattern.offset_bytes == (page_bytes - 96) // 1000
    for value in ("$pagesize*x", "$pagesize/0", "$pagesize*2.5"):
        with pytest.raises(UsageError, match=r"job.fio:2: size: .* is not a calculation"):
            from_file(tmp_path, f"[a]\nsize={value}\n")


def test_each_section_whose_name_begins_with_global_is_global(tmp_path):
    one, two = from_file(tmp_path, "[global]\nsize=1m\n[a]\n[globals]\nbs=8k\n[b]\n")
    assert (one.pattern.block_bytes, two.pattern.block_bytes) == (4096, 8192)
    assert two.pattern.file_bytes == 1 << 20


def test_jobs_that_only_create_files_make_no_requests(site):
    text = "--name=a --size=1m --create_only=1 --name=b --size=1m"
    result = fio(read(text.split()), site, interpreted=True)
    assert [each.directions[READ].count for each in result.of_jobs] == [0, 256]
    assert any("create_only: its jobs" in note for note in result.notes)


def test_options_that_would_matter_are_refused_only_where_they_do():
    load = "--name=a --size=1m --ioengine=libaio --iodepth=8 --rw=randwrite "
    assert job(load + "--serialize_overlap=1")
    assert "serialize_overlap=1 is supp" in wrong(load + "--serialize_overlap=1 --norandommap")
    assert job(load + "--rate_ignore_thinktime=1 --rate=1m")
    assert "rate_ignore_thinktime=1 with" in wrong(
        load + "--rate_ignore_thinktime=1 --rate=1m --thinktime=5"
    )
    assert "ioengine=vsync, which merges" in wrong(
        "--name=a --size=1m --ioengine=vsync --iodepth=2"
    )


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0x1000", 4096),
        ("4k", 4096),
        ("8192M", 8 << 30),
        ("1g", 1 << 30),
        ("4096b", 4096),
        ("4ki", 4096),
        ("4kib", 4000),
        ("512", 512),
    ],
)
def test_size_units_are_those_of_fio(text, number):
    assert options.size(text) == number


@pytest.mark.parametrize("text", ["1.5k", "0.5", "4 k", "4x"])
def test_a_size_that_fio_reads_as_another_number_is_refused(text):
    with pytest.raises(ValueError, match=r"specify|unknown unit|not a size"):
        options.size(text)


@pytest.mark.parametrize("text", ["1.5s", "30sec", "2min"])
def test_a_time_that_fio_reads_as_another_one_is_refused(text):
    with pytest.raises(ValueError, match=r"specify|unknown unit"):
        options.time_ns(text, 1)


def test_options_accept_separate_values_for_reads_and_writes():
    one = job("--name=a --rw=randrw --size=1m --bs=4k,64k --rate=1m, --rwmixread=70")
    assert [each.minimum >> 10 for each in one.pattern.sizes] == [4, 64, 64]
    assert one.bytes_per_s == (1 << 20, 0, 0)
    assert one.pattern.read_percent == 70
    assert one.pattern.directions == (READ, WRITE)


def test_block_size_splits_and_distributions_are_parsed():
    one = job("--name=a --rw=randread --size=1m --bssplit=4k/60:64k/")
    assert one.pattern.sizes[READ].split == ((65536, 40), (4096, 60))
    zipf = job("--name=a --rw=randread --size=1m --random_distribution=zipf:1.2:0.5")
    assert (zipf.pattern.distribution, zipf.pattern.shape) == (Distribution.ZIPF, 1.2)
    assert zipf.pattern.center == 0.5


def test_a_synchronous_engine_has_a_depth_of_one():
    assert job("--name=a --size=1m --iodepth=64").depth == 1
    assert job("--name=a --size=1m --iodepth=64 --ioengine=io_uring").depth == 64


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "--name=a --bsplt=4k",
            "--bsplt: unknown fio job option 'bsplt': did you mean",
        ),
        ("--name=a --rw=radread", "rw=radread is not supported"),
        ("--name=a --bs=4x", "unknown unit 'x'"),
        ("--name=a --size=1m --offset=10%", "offset in percent is a share of a file without size="),
        (
            "--name=a --rw=randread --random_distribution=zoned:50/5:/15:20/",
            "random_distribution",
        ),
        ("--name=a --size=120%", "size: 120%: a share must be 0% to 100%"),
        ("--name=a --latency_window=1s", "latency_window has no effect without latency_target"),
        ("--name=a --latency_target=1ms --latency_percentile=101", "must be 0 to 100"),
        (
            "--name=a --rw=write --size=1m --verify=md5 --experimental_verify=1",
            "experimental_verify is not supported",
        ),
        ("--name=a --filename=sda:sdb", "filename: 2 files need a size="),
        (
            "--name=a --size=1m --nrfiles=2 --file_service_type=rand",
            "file_service_type: rand: unknown service type; use roundrobin, sequential",
        ),
        (
            "--name=a --size=1m --nrfiles=2 --openfiles=1 --ioengine=libaio --iodepth=2",
            "openfiles is supported only with iodepth=1",
        ),
        ("--name=a --steadystate=x", "steadystate: x: expected iops:, bw:"),
        (
            "--name=a --rw=write --size=1m --rate_iops=100 --rate_process=poisson --fdatasync=4",
            "fdatasync with rate_process=poisson and a rate: fio 3.33 itself divides by zero",
        ),
        (
            "--name=a --rw=read --size=1m --ioengine=vsync --time_based --runtime=1",
            "time_based with ioengine=vsync, which merges neighbouring requests",
        ),
        ("--name=a --rate_process=burst", "rate_process: burst: must be linear or poisson"),
        ("--name=a --log_hist_coarseness=7", "log_hist_coarseness: '7': must be 0 to 6"),
        ("--name=a --read_iolog=x --replay_skip=reads", "replay_skip: 'reads': must be a list"),
        ("--name=a --direct=yes", "direct: 'yes': must be 1 (on) or 0 (off)"),
        ("--name=a --ioengine=netsplice", "ioengine=netsplice moves data over a network"),
        (
            "--name=a --io_submit_mode=offload --iodepth=4",
            "io_submit_mode=offload with ioengine=psync and an iodepth is not supported",
        ),
        ("--name=a --random_distribution=zipf:1", "zipf:1 is not defined"),
        ("--name=a --random_distribution=zoned:50/10", "must add up to 100"),
        ("--name=a --random_distribution=pareto:1.5", "pareto:1.5: must be more than 0"),
        ("--name=a --random_distribution=normal:100", "the deviation must be 0 to 99 percent"),
        ("--name=a --random_distribution=zipf:1.2:3", "the center must be 0 to 1"),
        ("--name=a --rwmixread=101", "rwmixread: 101: a percentage must be 0 to 100"),
        ("--name=a --percentage_random=-1", "percentage_random: -1: a percentage must be"),
        (
            "--name=a --rw=randread --size=16k --random_distribution=normal:50",
            "random_distribution=normal with a deviation over only 4 blocks",
        ),
        (
            "--name=a --rw=randread --size=8m --bsrange=4k-8k --zonemode=strided --zonesize=1m",
            "zonesize with random requests of several sizes, which may end beyond the last of 256",
        ),
        (
            "--name=a --rw=randread --size=256k --bs=64k --random_generator=lfsr --numjobs=3 "
            "--offset_increment=4k",
            "random_generator=lfsr does not start with the seed of process 3 for 4 blocks",
        ),
        ("--name=a --filesize=1k", "size is less than a block of 4.00 KiB"),
        (
            "--name=a --size=1m --bssplit=4k/60:64k/40 --bsrange=1k-3k",
            "bsrange after bssplit: no size of bssplit is the minimum, 1024 bytes",
        ),
        ("--rw=read", "no job"),
    ],
)
def test_the_error_names_the_wrong_option_and_the_correction(text, message):
    assert message in wrong(text)


def test_nrfiles_after_the_filename_uses_the_first_files():
    assert job("--name=a --size=1m --filename=a:b:c --nrfiles=2").files == ("a", "b")
    assert job("--name=a --size=1m --nrfiles=2 --filename=a:b:c").files == ("a", "b", "c")


def test_an_empty_part_of_a_size_keeps_that_of_the_global_section(tmp_path):
    path = tmp_path / "job.fio"
    path.write_text("[global]\nbs=8k,4k\nsize=1m\n[a]\nbs=,16k\n")
    (one,) = jobs_of(read([str(path)]))
    assert [each.minimum >> 10 for each in one.pattern.sizes] == [8, 16, 16]


def test_filenames_of_global_and_section_add_up(tmp_path, site):
    path = tmp_path / "job.fio"
    path.write_text("[global]\nfilename=one\nsize=64k\n[a]\nfilename=two\n[b]\n")
    assert [each.files for each in jobs_of(read([str(path)]))] == [("one", "two"), ("one",)]
    notes = fio(read([str(path)]), site, interpreted=True).notes
    assert "filename=two: used in addition to the files of [global], as in fio" in notes


def test_all_mistakes_of_a_job_file_are_reported_with_their_lines(tmp_path):
    path = tmp_path / "job.fio"
    path.write_text("rw=read\n[a]\nbs=4q\niodepth\nnosuch=1\n")
    with pytest.raises(UsageError) as error:
        jobs_of(read([str(path)]))
    lines = str(error.value).splitlines()
    assert [line.split(": ")[0] for line in lines] == [f"{path}:{n}" for n in (1, 4, 5, 3)]


# fio 3.33 for percentages of a file of 256 blocks: first block, last block, number of blocks.
SHARES = {
    "--size=50%": [(0, 127, 128)],
    "--offset=25% --size=50%": [(64, 191, 128)],
    "--offset=30% --size=37%": [(77, 170, 94)],
    "--offset=30% --size=90%": [(77, 255, 179)],
    "--size=20% --io_size=50%": [(0, 50, 26)],
    "--numjobs=2 --offset=10% --offset_increment=25% --size=20%": [(26, 76, 51), (90, 140, 51)],
}


@pytest.mark.parametrize("options", SHARES)
def test_percentages_of_a_file_give_the_blocks_of_fio(options):
    laid = lay_out(jobs(f"--name=a --filename=/dev/sdb {options}"), 1 << 20)
    blocks = []
    for one in laid.jobs:
        begin, size = one.pattern.offset_bytes, one.pattern.file_bytes
        moved = -(-one.pattern.pass_bytes // 4096)
        blocks.append((begin // 4096, (begin + size) // 4096 - 1, moved))
    assert blocks == SHARES[options]


def test_trimwrite_writes_each_block_after_its_trim():
    batch = batch_of("--name=a --rw=randtrimwrite --size=40k")
    # As logged by fio 3.33.
    blocks = [0, 7, 8, 4, 5, 9, 3, 6, 1, 2]
    assert (batch.offset // 4096).tolist() == [block for block in blocks for _ in range(2)]
    assert batch.op.tolist() == [int(Op.DISCARD), int(Op.WRITE)] * 10


# File layout, and due times of requests.


def test_an_escaped_colon_is_part_of_the_file_name():
    (file,) = job(r"--name=a --filename=/dev/disk/by-path/pci\:0").files
    assert file == "/dev/disk/by-path/pci:0"


# Log of fio 3.33 for jobs with several files: file and block of each request.
SEVERAL = {
    "--rw=read --size=48k --nrfiles=3": "00 10 20 01 11 21 02 12 22 03 13 23",
    "--rw=read --size=50k --nrfiles=3": "00 10 20 01 11 21 02 12 22 03 13 23",
    "--rw=randread --size=48k --nrfiles=3 --loops=2": (
        "00 12 23 01 11 20 02 13 21 03 10 22 00 12 23 01 11 20 02 13 21 03 10 22"
    ),
    "--rw=randread --size=1m --filename=x:y --number_ios=12": (
        "07 194 0107 160 051 1107 048 145 0116 18 0109 183"
    ),
    "--rw=randrw --size=1m --nrfiles=2 --number_ios=16": (
        "07 194 0107 160 051 1107 048 145 0116 18 0109 183 0118 131 050 171"
    ),
    "--rw=randread --size=64k --nrfiles=2 --norandommap --number_ios=10": (
        "00 15 06 13 03 16 03 12 07 10"
    ),
    "--rw=randread --size=64k --nrfiles=3 --file_service_type=roundrobin:3": (
        "00 03 04 12 13 14 21 22 24 01 02 10 11 23 20"
    ),
    "--rw=read --size=48k --nrfiles=3 --file_service_type=sequential": (
        "00 01 02 03 10 11 12 13 20 21 22 23"
    ),
    "--rw=randread --size=64k --nrfiles=4 --file_service_type=random:2 --loops=2": (
        "30 32 33 31 01 03 02 00 23 20 22 21 12 11 13 10 30 32 33 31 01 03 02 00 23 20 "
        "22 21 12 11 13 10"
    ),
    "--rw=randread --size=1m --nrfiles=3 --file_service_type=zipf:1.2 --number_ios=16": (
        "05 062 071 039 034 072 132 030 177 06 073 055 078 020 033 047"
    ),
    "--rw=randread --size=48k --nrfiles=3 --file_service_type=pareto:0.2 --io_size=100k": (
        "00 02 03 01 03 01 21 00 20 02 03 00 01 22 02 01 02 00 03 02 03 00 01 01 13"
    ),
    "--rw=randread --size=1m --nrfiles=3 --file_service_type=normal:20 --number_ios=12": (
        "15 162 171 139 134 172 132 130 177 16 173 155"
    ),
    "--rw=randread --size=1m --nrfiles=3 --random_distribution=zipf:0.9 --number_ios=12": (
        "065 18 210 065 164 231 050 183 270 050 151 210"
    ),
    "--rw=randread --size=1m --nrfiles=3 --random_distribution=normal:10:0.2 --number_ios=12": (
        "08 151 266 051 138 281 023 181 251 081 18 223"
    ),
    "--rw=randread --size=1m --nrfiles=2 --random_distribution=zoned:60/10:40/90 --number_ios=12": (
        "00 18 010 166 058 110 055 14 0116 119 0110 17"
    ),
    "--rw=randread --size=1m --nrfiles=3 --random_generator=lfsr --number_ios=12": (
        "027 127 227 077 177 277 019 119 219 073 173 273"
    ),
    "--rw=read:8k --size=48k --loops=2": (
        "00 03 06 09 00 03 06 09 00 03 06 09 00 03 06 09 00 03 06 09 00 03 06 09"
    ),
}


@pytest.mark.parametrize("options", SEVERAL)
def test_several_files_take_turns_as_in_fio(options):
    (one,) = jobs(f"--name=b --bs=4k {options}")
    laid = lay_out([one], 1 << 30)
    begins = [laid.begin_bytes[file] for file in one.files]
    batch = Feeds(laid).batch()
    placed = []
    for offset in batch.offset.tolist():
        file = max(at for at, begin in enumerate(begins) if begin <= offset)
        placed.append(f"{file}{(offset - begins[file]) // 4096}")
    assert " ".join(placed) == SEVERAL[options]


def test_files_are_laid_out_one_after_the_other():
    both = jobs("--name=a --size=3m --name=b --size=5m --name=c --filename=a.0.0 --size=1m")
    laid = lay_out(both, 1 << 40)
    assert laid.begin_bytes == {"a.0.0": 0, "b.0.0": 3 << 20}
    assert (laid.volume_bytes, laid.files_bytes) == (8 << 20, 8 << 20)


def test_a_file_without_a_size_takes_the_remaining_capacity():
    laid = lay_out(jobs("--name=a --size=1m --name=b"), 1 << 30)
    assert laid.jobs[1].pattern.file_bytes == (1 << 30) - (1 << 20)


# fio 3.33 on two loop devices of 8 MiB: the number of requests, and the digest of all.
TWO_DEVICES = {
    "--rw=randread --bs=4k": (4096, "b9e70c1e865f3718"),
    "--rw=randread --bs=20k": (818, "ab1808b628e68bd1"),
    "--rw=randwrite --bs=4k --size=50%": (2048, "73d0289e395721c9"),
    "--rw=randread --bs=16k --io_size=3m --file_service_type=random": (192, "21641a6e2e47cbaf"),
}


@pytest.mark.parametrize("options", TWO_DEVICES)
def test_devices_without_a_size_share_the_volume(options):
    (job,) = jobs(f"--name=j --filename=/dev/loop0:/dev/loop1 {options}")
    laid = lay_out([job], 16 << 20)
    assert laid.begin_bytes == {"/dev/loop0": 0, "/dev/loop1": 8 << 20}
    feeds = Feeds(laid)
    requests = []
    while (batch := feeds.batch()).offset.size:
        batch.next[:] = batch.end
        for offset, length in zip(batch.offset.tolist(), batch.length.tolist()):
            kind = "write" if "write" in options else "read"
            at, within = divmod(offset, 8 << 20)
            requests.append((job.files[at], kind, within, length))
    digest = hashlib.sha256(json.dumps(requests).encode()).hexdigest()
    assert (len(requests), digest[:16]) == TWO_DEVICES[options]


def test_a_device_without_a_size_takes_what_others_leave():
    laid = lay_out(jobs("--name=a --filename=/dev/a --name=b --size=1m"), 1 << 30)
    assert laid.jobs[0].pattern.file_bytes == (1 << 30) - (1 << 20)


def batch_of(text):
    return Feeds(lay_out(jobs(text), 1 << 30)).batch()


def test_rates_set_the_due_times_of_requests():
    due = batch_of("--name=a --rw=read --bs=4k --size=1m --rate_iops=100").due_ns
    assert due[:4].tolist() == [0, 10**7, 2 * 10**7, 3 * 10**7]
    due = batch_of("--name=a --rw=read --bs=4k --size=1m --rate=400k").due_ns
    assert due[:3].tolist() == [0, 10**7, 2 * 10**7]


# The first arrivals that fio 3.33 logged (its null engine, write_iolog), in us from the first one;
# it sleeps until they are due, and wakes up at most 25 us late.
POISSON = {"--rate_iops=300": [0, 7809, 9394, 10424, 13962], "--rate=1m": [0, 9172, 11041, 12239]}


@pytest.mark.parametrize("rate", POISSON)
def test_poisson_arrivals_are_those_of_fio(rate):
    due = batch_of(f"--name=b --rw=randread --size=1G {rate} --rate_process=poisson").due_ns
    assert np.allclose(due[: len(POISSON[rate])], np.array(POISSON[rate]) * 1000, atol=30_000)


def test_poisson_arrivals_do_not_depend_on_batch_sizes():
    whole, parts = Poisson(7, 1000), Poisson(7, 1000)
    due = np.concatenate([parts.due_ns(3), parts.due_ns(0), parts.due_ns(5)])
    assert due.tolist() == whole.due_ns(8).tolist()


IOLOG = """fio version 3 iolog
0 f add
10 f read 0 4096
200010 f read 8192 4096
200020 f write 12288 8192
500010 f read 4096 4096
600000 f close
"""
# Replay of it by fio 3.33: (offset, ms) of each request.
REPLAYED = {
    "": [(0, 0), (8192, 200), (12288, 200), (4096, 500)],
    "--replay_time_scale=200": [(0, 0), (8192, 100), (12288, 100), (4096, 250)],
    "--replay_no_stall --replay_scale=2 --replay_align=4k": [(0, 0), (4096, 0), (4096, 0), (0, 0)],
    "--replay_skip=write": [(0, 0), (8192, 200), (4096, 500)],
}  # fmt: skip


@pytest.mark.parametrize("options", REPLAYED)
def test_a_log_is_replayed_as_by_fio(options, tmp_path):
    path = tmp_path / "io.log"
    path.write_text(IOLOG)
    (one,) = jobs(f"--name=r --read_iolog={path} --replay_redirect=zz {options}")
    laid = lay_out([opened(one, Trace.read)], 1 << 30)
    assert laid.begin_bytes == {"zz": 0}
    batch = Feeds(laid).batch()
    replayed = zip(batch.offset.tolist(), (batch.due_ns // 10**6).tolist())
    assert list(replayed) == REPLAYED[options]


def test_a_log_of_several_files_is_refused(tmp_path):
    path = tmp_path / "io.log"
    path.write_text(IOLOG + "700000 g read 0 4096\n")
    with pytest.raises(UsageError, match="to 2 files"):
        opened(job(f"--name=r --read_iolog={path}"), Trace.read)


def test_seeds_of_newer_fio_releases_can_be_selected():
    (one,) = jobs("--name=a --rw=randread --size=1m")
    assert seeded([one], "3.33") == [one]
    (newer,) = seeded([one], "newer")
    assert newer.pattern.seeds() != one.pattern.seeds()
    with pytest.raises(UsageError, match=r"specify 3\.33 or newer"):
        seeded([one], "2.0")


# Results and output.


@pytest.fixture(scope="module")
def site():
    return Scenario.loads(SSD)


def test_results_of_an_ssd_at_depth_8_are_consistent(site):
    result = fio(read(["--name=a", *QUICK.split()]), site, interpreted=True)
    document = fio_json.document(result, True)
    (one,) = document["jobs"]
    reads = one["read"]
    assert reads["total_ios"] == 400
    assert reads["io_bytes"] == 400 * 4096
    assert sum(reads["clat_ns"]["bins"].values()) == 400
    assert reads["clat_ns"]["min"] <= reads["clat_ns"]["mean"] <= reads["clat_ns"]["max"]
    outstanding = reads["clat_ns"]["mean"] * reads["iops"] / 1e9  # Little's law
    assert outstanding == pytest.approx(8, rel=0.03)
    assert 95 < one["iodepth_level"]["8"] <= 100 * 393 / 400  # all but the first seven
    assert one["job options"]["iodepth"] == "8"
    assert sum(one["latency_us"].values()) + sum(one["latency_ms"].values()) == pytest.approx(100)
    assert set(one["read"]) == set(one["write"])


def test_runtime_rate_and_ramp_time_set_the_measured_span(site):
    load = "--name=a --rw=randread --size=64M --direct=1 --rate_iops=1000 --time_based"
    (one,) = fio(
        read([*load.split(), "--runtime=2", "--ramp_time=1"]), site, interpreted=True
    ).of_jobs
    assert one.directions[READ].count == pytest.approx(2000, abs=2)
    assert one.span_ns == pytest.approx(2 * 10**9, rel=0.01)


# Reads and writes per second of fio 3.33 on a device that keeps the rates.
RATED_MIXES = {
    "--rate_iops=500 --rwmixread=70": (500, 500),
    "--rate_iops=500 --rwmixread=10 --iodepth=8": (500, 500),
    "--rate_iops=100,300": (100, 300),
    "--rate=1m,2m --bs=4k,8k --rw=rw": (256, 256),
    "--rate_iops=500 --rwmixread=100": (500, 0),
}


@pytest.mark.parametrize("load", RATED_MIXES)
def test_each_direction_of_a_mix_has_its_rate(site, load):
    text = f"--name=a --rw=randrw --size=64M --ioengine=libaio --time_based --runtime=1 {load}"
    (one,) = fio(read(text.split()), site, interpreted=True).of_jobs
    counts = tuple(one.directions[kind].count for kind in (READ, WRITE))
    assert counts == pytest.approx(RATED_MIXES[load], abs=2)


def test_a_direction_without_a_rate_does_not_wait_for_the_other(site):
    text = "--name=a --rw=randrw --size=1g --rate_iops=50, --time_based --runtime=100ms"
    (one,) = fio(read(text.split()), site, interpreted=True).of_jobs
    assert one.directions[READ].count <= 6
    assert one.directions[WRITE].count > 500


def test_a_rate_in_requests_counts_the_smallest_size():
    """In fio 3.33 rate_iops=100 of 4k and 64k gives 13 requests/s, as 34 KiB are 8.5 of 4 KiB."""
    batch = batch_of("--name=a --rw=write --bssplit=4k/50:64k/50 --size=1m --rate_iops=100")
    before = np.cumsum(batch.length) - batch.length
    assert batch.due_ns.tolist() == (before * 10**9 // (100 * 4096)).tolist()


@pytest.mark.parametrize(
    ("options", "requests", "pauses"),
    [
        ("--number_ios=3 --thinktime_blocks=1", 3, 3),
        ("--io_size=40k", 10, 2),
        ("--io_size=44k", 11, 2),
        ("--runtime=1300ms --time_based", 15, 3),
        ("--runtime=1200ms --time_based --ramp_time=300ms --thinktime_blocks=1", 4, 3),
        *[(f"--io_size={4 * each}k --ioengine=libaio --iodepth=8", each, pauses)
          for each, pauses in [(8, 0), (10, 0), (12, 1), (16, 2), (20, 2), (40, 6)]],
        ("--io_size=160k --ioengine=libaio --iodepth=2", 40, 7),
        ("--io_size=160k --ioengine=libaio --iodepth=8 --thinktime_blocks_type=issue", 40, 8),
    ],
)  # fmt: skip
def test_a_job_thinks_as_often_as_in_fio(options, requests, pauses, site):
    """Measured with fio 3.33: completions count once they are reaped; the last pause counts too."""
    load = "--name=a --rw=randread --size=1m --direct=1 --thinktime=500ms --thinktime_blocks=5"
    (one,) = fio(read([*load.split(), *options.split()]), site, interpreted=True).of_jobs
    assert one.directions[0].count == requests
    assert one.span_ns // (500 * 10**6) == pauses
    assert one.span_ns % (500 * 10**6) < 310 * 10**6


def test_a_job_thinks_after_a_time_of_requests(site):
    """Fio 3.33: 1,104 ms; the first pause begins 600 ms after the job, the next would at 1.2 s."""
    load = "--name=a --rw=randread --size=1m --rate_iops=10 --number_ios=9 --thinktime=500ms "
    (one,) = fio(read([*load.split(), "--thinktime_iotime=100ms"]), site, interpreted=True).of_jobs
    assert 1100 <= one.span_ms < 1130


def test_a_job_held_up_by_its_rate_ends_with_its_runtime(site):
    """Fio 3.33: three requests, 2,504 ms."""
    load = "--name=a --rw=randread --size=1m --rate_iops=1 --runtime=2500ms --time_based"
    (one,) = fio(read(load.split()), site, interpreted=True).of_jobs
    assert (one.directions[0].count, one.span_ms) == (3, 2500)


def test_rates_and_think_times_do_not_delay_what_verify_reads(site):
    """fio 3.33 reads 64 blocks back in 7 ms after it wrote them for 631 ms."""
    load = "--name=a --rw=write --verify=md5 --bs=64k --size=4m"
    for slow in ("--rate_iops=100", "--thinktime=10ms"):
        (one,) = fio(read([*load.split(), slow]), site, interpreted=True).of_jobs
        assert one.span_of("write") > 620 * 10**6
        assert one.span_of("read") < 100 * 10**6


def test_logs_hold_the_longest_latency_of_a_window_or_those_of_all_jobs(site, tmp_path):
    logs = {}
    for more in ("", "--log_max_value=1", "--per_job_logs=0"):
        folder = tmp_path / f"logs{len(logs)}"
        folder.mkdir()
        load = f"--name=a --size=16m --bssplit=4k/50:64k/50 --numjobs=2 --log_avg_msec=5 {more}"
        text = f"{load} --write_lat_log={folder}/x --write_iops_log={folder}/x"
        fio_logs.write(fio(read(text.split()), site, interpreted=True))
        logs[more] = {path.name: path.read_text().splitlines() for path in folder.iterdir()}
    plain, longest, shared = logs.values()
    assert plain.keys() == longest.keys()
    assert plain["x_iops.1.log"] == longest["x_iops.1.log"]
    for mean, most in zip(plain["x_clat.1.log"], longest["x_clat.1.log"], strict=True):
        assert int(mean.split(",")[1]) < int(most.split(",")[1])
    assert shared.keys() == {"x_lat.log", "x_clat.log", "x_slat.log", "x_iops.log"}
    assert shared["x_clat.log"] == plain["x_clat.1.log"] + plain["x_clat.2.log"]


def test_jobs_of_one_nbd_export_share_the_volume():
    load = "--ioengine=nbd --uri=nbd://host --name=a --name=b --offset=64m --name=c --size=1m"
    shared = lay_out(jobs(load.rsplit(" ", 2)[0]), 1 << 30)
    assert set(shared.begin_bytes.values()) == {0}
    assert [each.pattern.file_bytes >> 20 for each in shared.jobs] == [1024, 960]
    assert shared.volume_bytes == shared.files_bytes == 1 << 30
    with pytest.raises(UsageError, match="specify size="):
        lay_out(jobs(load), 1 << 30)


def test_a_limit_ends_jobs_that_are_written_for_hours(site):
    load = "--name=a --rw=randread --size=1g --runtime=2h --time_based --name=b --size=1m"
    long, short = fio(read(load.split()), site, interpreted=True, limit_ns=10**7).of_jobs
    assert 9 * 10**6 < long.span_ns < 2 * 10**7
    whole = fio(read(load.split()[-2:]), site, interpreted=True, limit_ns=10**12).of_jobs[0]
    assert short.directions[READ].count <= whole.directions[READ].count == 256
    text = ["--name=a", "--size=1m", "--max-runtime=soon"]
    refused = CliRunner().invoke(command, text)
    assert "--max-runtime='soon' is not a time" in str(refused.exception)


def test_jobs_behind_a_stonewall_begin_after_the_jobs_before(site):
    load = "--name=a --size=1M --rw=read --name=b --size=1M --rw=read --stonewall"
    first, second = fio(read(load.split()), site, interpreted=True).of_jobs
    assert second.begin_ns == first.end_ns


def test_group_reporting_merges_the_jobs_of_a_group(site):
    load = "--name=a --size=1M --rw=read --numjobs=3 --group_reporting"
    result = fio(read(load.split()), site, interpreted=True)
    (one,) = result.reported
    assert (len(result.of_jobs), len(one.jobs), one.directions[READ].count) == (3, 3, 768)


def test_later_runs_start_with_the_warm_cache_of_earlier_ones():
    warm = Scenario.default().with_options(
        cache_size="64MiB", cache_page="64KiB", admission="always"
    )
    load = "--name=a --rw=randread --bs=64k --size=16M --direct=1"
    cold, again = fio(read(load.split()), warm, runs=2, interpreted=True).of_jobs
    assert cold.span_ns > 5 * again.span_ns
    assert again.directions[READ].latency.max_ns < 2 * 10**6


def test_the_requested_log_files_are_written(site, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    load = f"--name=a {QUICK} --write_lat_log=q --write_iops_log=q --write_bw_log=q"
    names = fio_logs.write(fio(read(load.split()), site, interpreted=True))
    assert names == ["q_bw.1.log", "q_lat.1.log", "q_clat.1.log", "q_slat.1.log", "q_iops.1.log"]
    rows = [line.split(", ") for line in Path("q_lat.1.log").read_text().splitlines()]
    assert len(rows) == 400
    assert {tuple(row[2:]) for row in rows} == {("0", "4096", "0")}
    averaged = f"{load} --log_avg_msec=2"
    fio_logs.write(fio(read(averaged.split()), site, interpreted=True))
    rows = [line.split(", ") for line in Path("q_iops.1.log").read_text().splitlines()]
    assert [int(row[0]) for row in rows] == [2 * n for n in range(1, len(rows) + 1)]


def test_a_written_iolog_can_be_replayed(site, tmp_path, monkeypatch):
    """The replay of a job's own log gives the same requests at the same times."""
    monkeypatch.chdir(tmp_path)
    load = "--name=a --rw=randrw --bs=4k --size=1M --number_ios=50 --fsync=8 --direct=1"
    written = fio(read([*load.split(), "--write_iolog=io.log"]), site, interpreted=True)
    assert fio_logs.write(written) == ["io.log"]
    lines = Path("io.log").read_text().splitlines()
    assert lines[:3] == ["fio version 3 iolog", "0 a.0.0 add", "0 a.0.0 open"]
    assert {line.split()[1] for line in lines[1:]} == {"a.0.0"}
    assert any(line.split()[2] == "sync" for line in lines[3:])
    again = fio(read(["--name=a", "--read_iolog=io.log"]), site, interpreted=True)
    counts = [[each.count for each in one.of_jobs[0].directions] for one in (written, again)]
    assert counts[0] == counts[1]
    assert again.end_ns == pytest.approx(written.end_ns, rel=0.01)


def test_logs_contain_offsets_and_histograms(site, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    load = f"--name=a {QUICK} --write_lat_log=q --log_offset=1 --write_hist_log=q"
    result = fio(read([*load.split(), "--log_hist_msec=2"]), site, interpreted=True)
    fio_logs.write(result)
    rows = [line.split(", ") for line in Path("q_lat.1.log").read_text().splitlines()]
    assert {len(row) for row in rows} == {6}
    assert len({int(row[4]) for row in rows}) == 400  # each block once
    lines = Path("q_clat_hist.1.log").read_text().splitlines()
    bins = [[int(n) for n in line.split(",")] for line in lines]
    assert [row[:3] for row in bins] == [[2 * n, 0, 4096] for n in range(1, len(bins) + 1)]
    assert {len(row) - 3 for row in bins} == {1856}
    latencies = np.array([int(row[1]) for row in rows if int(row[0]) < bins[-1][0]])
    assert np.sum([row[3:] for row in bins], axis=0).tolist() == (
        np.bincount(bin_of(latencies), minlength=1856).tolist()
    )
    fio_logs.write(fio(read([*load.split(), "--log_hist_msec=2", "--log_hist_coarseness=6"]), site,
                       interpreted=True))  # fmt: skip
    assert len(Path("q_clat_hist.1.log").read_text().splitlines()[0].split(",")) == 3 + 29


def test_ignored_options_are_listed_in_one_note(site):
    load = f"--name=a {QUICK} --thread --invalidate=1 --group_reporting"
    (note,) = fio(read(load.split()), site, interpreted=True).notes
    assert note == "ignored, as they have no effect in a simulation: invalidate, thread"


def test_storage_behind_another_engine_is_the_simulated_volume(site):
    """How an engine reaches its storage has no effect; the requests and the depth are its own."""
    same = "--name=a --rw=randread --bs=4k --size=1m --iodepth=8 --direct=1"
    engines = ["rbd --pool=images --rbdname=disk --clientname=admin", "libaio"]
    ceph, local = (
        fio(read(f"{same} --ioengine={each}".split()), site, interpreted=True) for each in engines
    )
    assert (
        fio_json.document(ceph, True)["jobs"][0]["read"]
        == (fio_json.document(local, True)["jobs"][0]["read"])
    )
    assert "ioengine=rbd: its storage is the simulated volume here" in ceph.notes
    assert (
        "ignored, as they have no effect in a simulation: clientname, pool, rbdname" in ceph.notes
    )


@pytest.mark.parametrize("engine", ["spdk_bdev", "external:/opt/spdk_nvme", "/opt/spdk_nvme.so"])
def test_a_plugin_reaches_the_simulated_volume_too(engine, site):
    job = f"--name=a --rw=randread --size=1m --iodepth=8 --spdk_json_conf=x --ioengine={engine}"
    result = fio(read(job.split()), site, interpreted=True)
    (each,) = result.of_jobs
    assert each.jobs[0].depth == 8
    assert any(note.endswith("its storage is the simulated volume here") for note in result.notes)


def test_options_of_later_releases_are_known():
    job = "--name=a --rw=write --size=1m --ioengine=splice"
    assert jobs_of(read(f"{job} --verify_write_sequence=0 --log_window_value=1".split()))
    with pytest.raises(UsageError, match="ramp_size is not supported, and ignoring it would"):
        jobs_of(read([*job.split(), "--ramp_size=1g"]))


def test_options_of_the_program_that_only_concern_the_host_are_accepted():
    job = ["--idle-prof=percent-all", "--append-terse", "--name=a", "--rw=write", "--size=1m"]
    assert jobs_of(read(job))


def test_an_error_names_the_environment_variable_that_is_not_set(tmp_path, monkeypatch):
    monkeypatch.delenv("LOAD_RUNTIME", raising=False)
    file = tmp_path / "job.fio"
    file.write_text("[a]\nrw=read\nsize=1m\nruntime=${LOAD_RUNTIME}\n")
    with pytest.raises(
        UsageError, match=r"job.fio:4 \(not set in the environment: LOAD_RUNTIME\): runtime: ''"
    ):
        jobs_of(read([str(file)]))


@pytest.mark.parametrize(
    ("option", "mend"),
    [("rwmixread=x", "'x' is not a whole number"), ("size=x%", "'x' is not a whole number"),
     ("percentile_list=x", "'x' is not a number"),
     ("random_distribution=zipf:x", "'x' is not a number")],
)  # fmt: skip
def test_an_invalid_number_is_refused_in_words(option, mend):
    with pytest.raises(UsageError, match=mend):
        jobs_of(read(["--name=a", "--rw=randrw", f"--{option}"]))


def test_a_file_that_is_no_job_file_has_few_errors(tmp_path):
    file = tmp_path / "output.txt"
    file.write_text("[a]\n" + "".join(f"line {number}\n" for number in range(1000)))
    with pytest.raises(UsageError) as error:
        jobs_of(read([str(file)]))
    lines = str(error.value).splitlines()
    assert len(lines) == 21
    assert lines[-1] == "... and 980 more errors; is this a job file of fio?"


def test_the_text_output_has_the_layout_of_fio(site):
    text = fio_text.text(fio(read(["--name=a", *QUICK.split()]), site, interpreted=True))
    lines = text.splitlines()
    assert lines[0] == (
        "a: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, "
        "ioengine=libaio, iodepth=8"
    )
    assert "     issued rwts: total=400,0,0,0 short=0,0,0,0 dropped=0,0,0,0" in lines
    assert any(line.startswith("   READ: bw=") for line in lines)


@pytest.mark.parametrize(
    ("number", "base", "text"),
    [(8704, 1000, "8704"), (23_400, 1000, "23.4k"), (91.6 * 2**20, 1024, "91.6Mi"),
     (1118 * 2**20, 1024, "1118Mi"), (4096, 1024, "4096"), (20480, 1024, "20.0Ki")],
)  # fmt: skip
def test_numbers_are_abbreviated_as_in_fio(number, base, text):
    assert fio_text.short(number, base) == text


def test_percentiles_of_fios_bins_equal_those_of_fio():
    sample = DATA / "fio" / "fio_3.33_sample.json"
    if not sample.exists():
        pytest.skip(f"no {sample}: HYBRIDSIM_DATA names the folder of the reference data")
    one = job("--name=a --size=1m")
    for direction in ("read", "write"):
        latency = json.loads(sample.read_text())["jobs"][0][direction]["clat_ns"]
        values = np.array([int(value) for value in latency["bins"]])
        counts = np.array(list(latency["bins"].values()))
        bins = np.zeros(29 * 64, np.int64)
        bins[bin_of(values)] = counts
        measured = Measured(Latencies(int(counts.sum()), 0, latency["max"], bins))
        computed = fio_json.percentiles(measured, one)
        assert {f"{p:.6f}": value for p, value in computed.items()} == latency["percentile"]
        assert tuple(computed) == PERCENTS


def test_the_command_writes_json_to_a_file(tmp_path):
    output = tmp_path / "out.json"
    arguments = [*QUICK.split(), "--name=a", "--preset", "digitalocean-volume"]
    arguments += ["--output-format=json+", f"--output={output}"]
    done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    document = json.loads(output.read_text())
    assert document["fio version"] == "fio-3.33"
    assert document["jobs"][0]["read"]["total_ios"] == 400


def test_latency_target_finds_and_reports_the_largest_depth(site):
    asked = "--latency_target=200us --latency_window=5ms --latency_percentile=90"
    load = "--ioengine=libaio --direct=1 --rw=randread --size=1G --iodepth=64"
    result = fio(read(f"--name=a {load} {asked}".split()), site, interpreted=True)
    (target,) = result.of_jobs
    depths = [fio(read(f"--name=a {load} --iodepth={depth} --number_ios=400".split()), site,
                  interpreted=True) for depth in (target.depth, 2 * target.depth)]  # fmt: skip
    late = [each.of_jobs[0].directions[READ].latency.percentile(90) for each in depths]
    assert late[0] <= 200_000 < late[1]
    text = fio_text.text(result)
    assert f"target=200000, window=5000, percentile=90.00%, depth={target.depth}" in text
    assert f"note: job a: 90% within latency_target=200us up to depth {target.depth}, not" in text
    (one,) = fio_json.document(result, False)["jobs"]
    assert one["latency_depth"] == target.depth
    assert one["read"]["clat_ns"]["N"] == sum(each.count for each in target.directions)
    assert target.span_ns < 12 * 10**6, "results are those of the last window"


def test_unified_rw_reporting_merges_reads_and_writes(site):
    load = "--ioengine=libaio --direct=1 --rw=randrw --size=1G --iodepth=8 --number_ios=200"
    both, one = (
        fio(read(f"--name=a {load} {more}".split()), site, interpreted=True)
        for more in ("", "--unified_rw_reporting=mixed")
    )
    (apart,), (together,) = (fio_json.document(each, False)["jobs"] for each in (both, one))
    assert "read" not in together
    assert together["mixed"]["total_ios"] == sum(apart[each]["total_ios"] for each in RW) == 200
    text = fio_text.text(one)
    assert "  mixed: IOPS=" in text
    assert "  MIXED: bw=" in text
    assert "READ:" not in text


def test_unified_rw_reporting_both_reports_them_apart_and_merged(site):
    load = "--name=a --rw=randrw --size=1m --unified_rw_reporting=both"
    result = fio(read(load.split()), site, interpreted=True)
    (job,) = fio_json.document(result, False)["jobs"]
    assert list(job)[6:11] == ["read", "write", "trim", "sync", "mixed"]  # the order of fio 3.33
    assert job["mixed"]["total_ios"] == sum(job[each]["total_ios"] for each in RW) == 256
    text = fio_text.text(result)
    assert all(f"  {each}: IOPS=" in text for each in (*RW, "mixed"))
    (line,) = fio_json.terse(result).splitlines()
    assert line.split(";")[5 + 2 * 41] == "1024"  # KiB: reads and writes, then their sum


@pytest.mark.parametrize(
    ("options", "total", "timed"),  # of fio 3.33, 256 writes
    [
        ("--fsync=4", 63, 63),
        ("--fdatasync=4", 0, 63),
        ("--fdatasync=4 --fsync=8", 31, 63),
        ("--end_fsync=1", 0, 0),
        ("--fsync_on_close=1", 0, 0),
        ("--fsync=4 --end_fsync=1", 63, 63),
        ("--fdatasync=4 --end_fsync=1", 0, 63),
    ],
)
def test_fio_counts_no_fdatasync_and_reports_no_sync_at_the_end(
    site, options, total, timed, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    load = f"--name=a --rw=randwrite --size=1m {options} --write_iolog=io.log"
    result = fio(read(load.split()), site, interpreted=True)
    job = fio_json.document(result, False)["jobs"][0]
    assert (job["write"]["total_ios"], job["sync"]["total_ios"]) == (256, total)
    assert job["sync"]["lat_ns"]["N"] == timed
    fio_logs.write(result)
    log = [line.split()[2] for line in Path("io.log").read_text().splitlines()[1:]]
    assert log.count("datasync") == timed - total


@pytest.mark.parametrize(
    ("options", "files", "begin", "end"),  # of fio 3.33
    [
        ("--size=50%", 1, 0, 128),
        ("--size=50% --nrfiles=4", 4, 0, 128),
        ("--size=75% --offset=512k", 1, 128, 256),
        ("--size=50% --offset=256k", 1, 64, 192),
        ("--size=30%", 1, 0, 76),
        ("--size=1%", 1, 0, 2),
        ("--size=100%", 1, 0, 256),
    ],
)
def test_a_size_in_percent_is_a_share_of_filesize(options, files, begin, end):
    text = f"--name=a --rw=write --filesize=1m --file_service_type=sequential {options}"
    offset = batch_of(text).offset
    one_file = np.arange(begin, end) * 4096
    assert len(offset) == files * len(one_file)
    np.testing.assert_array_equal(offset[: len(one_file)], one_file)


def test_a_request_beyond_max_latency_ends_the_job_with_an_error(site):
    load = "--name=a --ioengine=libaio --direct=1 --rw=randread --size=1G --iodepth=64"
    result = fio(read(f"{load} --max_latency=200us".split()), site, interpreted=True)
    assert "err=110 (func=max latency exceeded" in fio_text.text(result)
    assert fio_json.document(result, False)["jobs"][0]["error"] == 110
    assert "more than max_latency=200us" in result.notes[-1]
    assert result.of_jobs[0].directions[READ].count < 200


def test_a_job_larger_than_the_array_is_refused(site):
    with pytest.raises(
        ScenarioError, match=r"4\.00 TiB, but the array holds 894 GiB: specify smaller files"
    ):
        fio(read(["--name=a", "--size=4T", "--rw=read", "--number_ios=1"]), site, interpreted=True)


# Job files, as fio reads them.


def test_comments_and_included_files(tmp_path):
    (tmp_path / "sizes.fio").write_text("size=1m ; one\nbs=8k # eight\n")
    text = "[global]\ninclude sizes.fio\n[a] ; the first\nrw=randread\t; at random\n"
    (one,) = from_file(tmp_path, text)
    assert (one.pattern.file_bytes, one.pattern.block_bytes) == (1 << 20, 8 << 10)
    assert (one.name, one.pattern.is_random) == ("a", True)


def test_a_file_that_includes_itself_is_refused(tmp_path):
    with pytest.raises(UsageError, match="includes itself"):
        from_file(tmp_path, "[a]\ninclude job.fio\n")


def test_only_some_sections(tmp_path):
    path = tmp_path / "job.fio"
    path.write_text("[a]\nsize=1m\n[b]\nsize=2m\n")
    (one,) = jobs_of(read([str(path), "--section=b"]))
    assert one.name == "b"
    with pytest.raises(UsageError, match="--section: no job has the name c"):
        jobs_of(read([str(path), "--section=c"]))


def test_options_before_and_after_a_file_apply_to_its_jobs(tmp_path):
    path = tmp_path / "job.fio"
    path.write_text("[a]\nsize=1m\n")
    (one,) = jobs_of(read([str(path), "--bs=16k"]))
    assert one.pattern.block_bytes == 16 << 10


def test_a_sync_whose_place_depends_on_completions_is_refused():
    text = "--name=a --rw=randrw --size=1m --iodepth=8 --fsync=4 --ioengine="
    assert "where fio syncs depends on the time of completions" in wrong(text + "io_uring")
    assert "rate_iops=9 with fsync=4" in wrong(text + "libaio --rate_iops=9")
    assert "iodepth_batch=2 with fsync=4" in wrong(text + "libaio --iodepth_batch=2")
    assert job(text + "libaio").pattern.writes_between_syncs == 4
    seldom = "--name=a --rw=write --size=1m --iodepth=8 --fsync=8 --rate_iops=9 --ioengine="
    assert job(seldom + "libaio").pattern.writes_between_syncs == 8


def test_zones_by_direction_are_refused_as_in_fio():
    text = "--name=a --rw=randrw --size=1m --random_distribution=zoned:50/20:50/80,20/50:80/50"
    assert "fio 3.33 itself refuses them" in wrong(text)


def test_zones_with_write_pointers():
    zbd = "--name=a --bs=4k --zonemode=zbd "
    assert job(zbd + "--rw=write --size=1m --zonesize=256k").pattern.written_zones == 4
    assert job(zbd + "--rw=write --size=1g --filename=/dev/a").pattern.written_zones == 4
    assert job(zbd + "--rw=read --size=1g --filename=/dev/a").pattern.written_zones == 0
    assert "nobody has written" in wrong(zbd + "--rw=read --size=1m --zonesize=256k")
    assert "needs a zonesize" in wrong(zbd + "--rw=write --size=1m")
    assert "must be multiples of a zone" in wrong(zbd + "--rw=write --size=1m --zonesize=192k")
    shared = zbd + "--rw=write --size=1m --zonesize=256k --filename=b --numjobs=2"
    assert "several processes write b" in wrong(shared)
    random = zbd + "--rw=randwrite --size=1m --zonesize=256k "
    assert "max_open_zones with fewer than all 4 zones" in wrong(random + "--max_open_zones=2")
    assert "when a zone is full" in wrong(random + "--verify=md5 --norandommap=1")
    assert "before it resets a zone" in wrong(random + "--fsync=8 --ioengine=libaio --iodepth=4")
    assert "must be none, strided or zbd" in wrong("--name=a --size=1m --zonemode=x")


def test_a_missing_size_is_reported_before_the_run(monkeypatch):
    def run(*arguments, **options):
        raise UsageError("the run")

    monkeypatch.setattr("hybridsim.studies.fio.fio", run)
    result = CliRunner().invoke(command, ["--name=a", "--filename=/dev/vda", "--rw=read"])
    assert "note: no size= for /dev/vda: all of the volume is used" in result.output
    sized = CliRunner().invoke(command, ["--name=a", "--filename=/dev/vda", "--size=1m"])
    assert "no size=" not in sized.output


def test_several_forms_of_output():
    arguments = [*QUICK.split(), "--name=a", "--output-format=normal,json"]
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    text = result.output
    # As in fio: the heading, JSON, the results.
    places = [text.index(part) for part in ("a: (g=0)", '"jobs"', "Run status group 0")]
    assert places == sorted(places)


def test_partly_random_requests_whose_marks_depend_on_completions_are_refused():
    text = "--name=a --rw=randread --size=1m --percentage_random=50 --iodepth=8 --ioengine="
    assert "which requests fio does not mark" in wrong(f"{text}posixaio")
    assert "rate_iops=9 with percentage_random" in wrong(f"{text}libaio --rate_iops=9")
    assert job(f"{text}posixaio --norandommap=1").depth == 8
    assert job(f"{text}libaio --nrfiles=3").pattern.files == 3


def run(text, site):
    return fio(read(text.split()), site, interpreted=True)


def test_a_start_delay_is_no_part_of_the_runtime(site):
    options = "--size=64k --rw=read --name=a --name=b --startdelay=10"
    for grouped in ("", " --group_reporting"):
        result = run(f"--bs=4k{grouped} {options}", site)
        assert all(each.span_ns < 10**9 for each in result.reported)
        (line,) = (line for line in fio_text.text(result).splitlines() if "READ:" in line)
        slow = max(each.span_ns for each in result.of_jobs)
        total = 2 * 64 * 1024 * 10**9 / slow
        assert f"bw={fio_text.short(total, 1024)}B/s" in line


def test_groups_are_numbered_as_in_fio(site):
    arguments = ["--size=64k", "--name=a", "--name=b", "--new_group", "--name=c", "--stonewall"]
    result = fio(read(arguments), site, interpreted=True)
    assert [job["groupid"] for job in fio_json.document(result, False)["jobs"]] == [0, 1, 2]
    text = fio_text.text(result)
    assert all(f"Run status group {group} (all jobs):" in text for group in range(3))


def test_a_job_waits_for_the_job_that_it_names(site):
    result = run("--size=64k --name=a --rw=write --name=b --rw=read --wait_for=a", site)
    first, second = result.of_jobs
    assert second.begin_ns == first.end_ns


def test_a_job_that_waits_for_an_unknown_one_is_refused():
    with pytest.raises(UsageError, match="wait_for=b: no earlier job has this name"):
        jobs("--name=a --wait_for=b --name=b")


def test_exitall_ends_the_other_jobs_of_a_reporting_group(site):
    options = "--size=1m --name=a --io_size=64k --name=b --name=c --new_group"
    counts = [each.directions[0].count for each in run(f"--exitall {options}", site).of_jobs]
    assert counts[0] == 16
    assert counts[1] < 20
    assert counts[2] == 256
    counts = [each.directions[0].count
              for each in run(f"--exitall --exit_what=all {options}", site).of_jobs]  # fmt: skip
    assert max(counts[1:]) < 20


def test_flow_shares_the_requests_of_jobs_by_weight(site):
    options = "--size=1m --exitall --name=a --flow=1 --name=b --flow=3"
    light, heavy = (each.directions[0].count for each in run(options, site).of_jobs)
    assert heavy == 256
    assert abs(heavy - 3 * light) <= 6


def test_a_job_below_its_minimum_rate_ends_with_an_error(site):
    result = run("--name=a --size=1g --rate_iops=10 --rate_iops_min=9 --runtime=6", site)
    assert not result.of_jobs[0].error
    slow = "--name=a --size=1g --rw=randread --rate_min=10g --runtime=9"
    result = run(slow, site)
    assert result.of_jobs[0].error == 5
    assert any("rate_min=10737418240B/s not met" in note for note in result.notes)
    assert 3 * 10**9 <= result.of_jobs[0].end_ns < 4 * 10**9


def test_a_steady_state_ends_a_job(site):
    options = "--name=a --size=1g --rate_iops=20 --runtime=60 --time_based"
    result = run(f"{options} --steadystate=iops:5% --ss_dur=5 --ss_ramp=2", site)
    (progress,) = result.of_jobs[0].checked
    assert progress.is_attained
    assert progress.criterion < 5
    assert 6 * 10**9 < result.end_ns < 9 * 10**9


def test_engines_without_requests_to_storage_issue_none(site):
    result = run("--name=a --ioengine=cpuio --cpuload=50 --name=b --size=64k", site)
    assert [each.directions[0].count for each in result.of_jobs] == [0, 16]
    assert any("cpuio: its jobs make no requests" in note for note in result.notes)
    with pytest.raises(UsageError, match="ioengine=net moves data over a network"):
        jobs("--name=a --ioengine=net --size=1m")


def test_time_based_without_a_runtime_has_no_effect(site):
    result = run("--name=a --size=64k --time_based", site)
    assert result.of_jobs[0].directions[0].count == 16
    assert any("time_based without runtime" in note for note in result.notes)


def test_a_skewed_order_of_files_with_a_queue_depth_is_refused_if_files_end():
    text = "--name=a --size=1m --nrfiles=3 --file_service_type=zipf --iodepth=4"
    with pytest.raises(UsageError, match="file_service_type=zipf with iodepth=4"):
        jobs(f"{text} --ioengine=posixaio --rw=write")
    jobs(f"{text} --ioengine=posixaio --rw=randwrite")
    with pytest.raises(UsageError, match="file_service_type=zipf with iodepth=4"):
        jobs(f"{text} --ioengine=libaio --rw=randwrite --random_distribution=zipf")  # partial block
    whole = text.replace("1m", "3m")
    jobs(f"{whole} --ioengine=libaio --rw=randwrite --random_distribution=zipf")
    jobs(f"{text} --ioengine=psync --rw=write")


def test_keys_of_the_machine_are_set_beside_the_options_of_jobs():
    job = "--name=a --rw=randread --size=64m --number_ios=20 --direct=1 --output-format=json"
    keys = "--set cache.kind=none --set backing.kind=single --set backing.drive.rpm="

    def mean_ns(rpm):
        result = CliRunner().invoke(command, f"{keys}{rpm} {job}".split(), catch_exceptions=False)
        return json.loads(result.stdout)["jobs"][0]["read"]["lat_ns"]["mean"]

    assert mean_ns(15000) < mean_ns(5400)
    wrong_key = CliRunner().invoke(command, ["--set", "backing.drive.rmp=1", *job.split()])
    assert "did you mean 'rpm'" in str(wrong_key.exception)


def test_of_the_options_that_contain_an_unknown_one_the_shortest_is_suggested():
    assert "did you mean 'buffered'" in wrong("--name=a --size=1m --buffer=0")


def test_a_size_below_a_block_is_refused_also_with_a_filesize():
    with pytest.raises(UsageError, match="size is less than a block of 128 KiB"):
        jobs("--name=a --size=64k --filesize=1m --bs=128k")
