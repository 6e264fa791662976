"""Output of fio jobs: the keys and fields of the fio on this machine, and its client tools."""

import csv
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from hybridsim.cli.fio import fio as command
from hybridsim.scenario import Scenario
from hybridsim.show import fio_json, fio_logs, fio_text
from hybridsim.studies.fio import fio
from hybridsim.workloads.fio.jobfile import read

TOOLS = Path("/usr/share/doc/fio")
BASE = ["--name=a", "--size=256k", "--rw=rw", "--bs=4k"]
CASES = [
    [],
    ["--ioengine=libaio", "--iodepth=4"],
    ["--group_reporting", "--numjobs=2"],
    ["--unified_rw_reporting=1"],
    ["--lat_percentiles=1"],
    ["--steadystate=iops:10%", "--ss_dur=2"],
    ["--fsync=4"],
    ["--percentile_list=50:99"],
]
# Values that depend on the machine, or names of its options and disks.
VALUES = ("percentile", "bins", "data")
OURS = ("job options", "disk_util", "hybridsim", "global options")


@pytest.fixture
def site():
    return Scenario.default().with_options(preset="digitalocean-volume")


def real(arguments, folder):
    """Return what the fio of this machine prints."""
    program = shutil.which("fio")
    version = ""
    if program:
        done = subprocess.run([program, "--version"], capture_output=True, text=True)
        version = done.stdout.strip()
    if version != "fio-3.33":
        pytest.skip(f"no fio 3.33 on this machine, only {version or 'none'}: install it to compare")
    done = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def simulated(arguments, site):
    return fio(read(arguments), site, interpreted=True)


def keys(value, path=""):
    """Yield the paths of all keys."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key not in OURS:
                yield f"{path}{key}"
                if key not in VALUES:
                    yield from keys(each, f"{path}{key}.")
    elif isinstance(value, list):
        for each in value:
            yield from keys(each, f"{path}[].")


@pytest.mark.parametrize("form", ["json", "json+"])
@pytest.mark.parametrize("more", CASES, ids=" ".join)
def test_json_has_the_keys_of_fio(more, form, site, tmp_path):
    arguments = [*BASE, *more]
    text = real([f"--output-format={form}", *arguments], tmp_path)
    wanted = set(keys(json.loads(text[text.index("{") :])))
    assert set(keys(fio_json.document(simulated(arguments, site), form == "json+"))) == wanted


@pytest.mark.parametrize("version", fio_json.VERSIONS)
@pytest.mark.parametrize("more", CASES, ids=" ".join)
def test_terse_lines_have_the_fields_of_fio(more, version, site, tmp_path):
    arguments = [*BASE, *more, "--description=words", "--disk_util=0"]
    printed = real(["--output-format=terse", f"--terse-version={version}", *arguments], tmp_path)
    (line,) = printed.splitlines()
    (mine,) = fio_json.terse(simulated(arguments, site), version).splitlines()
    theirs, ours = line.split(";"), mine.split(";")
    assert len(ours) == len(theirs)
    for place, (own, other) in enumerate(zip(ours, theirs)):
        assert form_of(own) == form_of(other), (place, own, other)
    assert ours[:3] == theirs[:3]
    assert ours[5] == theirs[5]  # KiB moved
    assert ours[-1] == theirs[-1] == "words"


def form_of(field):
    """Return the form of a field: its digits after the point, and its signs."""
    name, equals, value = field.rpartition("=")
    whole, point, part = value.rstrip("%").partition(".")
    if not whole.lstrip("-").isdigit():
        return field
    return name, equals, point, len(part), field.endswith("%")


@pytest.mark.parametrize("program", ["fio", "hybridsim"])
def test_percentiles_in_the_text_are_those_of_the_json_rounded_up(program, site, tmp_path):
    arguments = [*BASE, "--ioengine=psync", "--percentile_list=1:20:50:70:90:99.9"]
    if program == "fio":
        printed = real(["--output-format=normal,json", *arguments], tmp_path)
        document, brace, text = printed.partition("\n}")
        results = json.loads(document[document.index("{") :] + brace)
    else:
        result = simulated(arguments, site)
        text, results = fio_text.text(result), fio_json.document(result, with_bins=False)
    sections = re.findall(r"clat percentiles \((\w+)\):\n((?: +\|.*\n)+)", text)
    assert len(sections) == 2
    for name, (unit, lines) in zip(["read", "write"], sections):
        printed_values = [int(value) for value in re.findall(r"\[ *(\d+)\]", lines)]
        exact = results["jobs"][0][name]["clat_ns"]["percentile"].values()
        assert printed_values == [-(-value // fio_text.UNITS[unit]) for value in exact]


@pytest.mark.parametrize(
    "option", ["", "1:50", "99.9", "0.1:1:2:3:5:50:99.99:99.999", "50:99.90:99.99999", "5."]
)
def test_lines_of_percentiles_have_the_form_of_fio(option, site, tmp_path):
    arguments = ["--name=a", "--size=256k", "--rw=read", "--bs=4k", "--ioengine=psync"]
    arguments += [f"--percentile_list={option}"] if option else []
    labels = []
    for text in real(arguments, tmp_path), fio_text.text(simulated(arguments, site)):
        lines = [line for line in text.splitlines() if line.startswith("     |")]
        labels.append(re.findall(r" *[\d.]+th=", " ".join(lines)))
        columns = [line.index("[") for line in lines] + [line.rindex("]") for line in lines]
        assert max(columns) < 80
        widths = {len(value) for value in re.findall(r"\[( *\d+)\]", lines[0])}
        (width,) = widths
        assert width >= 5
        if len(lines) > 1:  # as many as fit in 80 columns
            decimals = len(labels[-1][0].strip(" th=").partition(".")[2])
            assert lines[0].count("th=") == 73 // (decimals + 10 + width)
    assert labels[0] == labels[1]


def test_minimal_prints_the_terse_line_of_each_job():
    arguments = ["--preset=digitalocean-volume", "--name=a", "--size=64k", "--name=b", "--size=32k"]
    printed = [
        CliRunner().invoke(command, [*arguments, option]).stdout
        for option in ("--minimal", "--output-format=terse")
    ]
    assert printed[0] == printed[1]
    rows = [line.split(";") for line in printed[0].splitlines()]
    assert [row[2] for row in rows] == ["a", "b"]
    assert [row[5] for row in rows] == ["64", "32"]


def test_the_results_so_far_are_printed_at_each_status_interval():
    arguments = ["--preset=digitalocean-volume", "--name=a", "--size=1g", "--rate_iops=100"]
    arguments += ["--runtime=5", "--output-format=terse", "--status-interval=2"]
    printed = CliRunner().invoke(command, arguments)
    counts = [int(line.split(";")[5]) for line in printed.stdout.splitlines()]
    assert [round(count / 4) for count in counts] == [200, 400, 500]


@pytest.mark.parametrize("option", ["--status-interval=0", "--status-interval=x"])
def test_a_wrong_status_interval_is_refused(option):
    result = CliRunner().invoke(command, ["--name=a", "--size=1m", option])
    assert result.exit_code != 0
    assert "--status-interval=" in str(result.exception)


def test_an_unknown_terse_version_is_refused():
    result = CliRunner().invoke(command, ["--name=a", "--size=1m", "--terse-version=9"])
    assert "--terse-version=9: 3, 4, 5 are supported" in str(result.exception)


# Client tools.  fiologparser.py of fio 3.33 reads logs of four columns; fio 3.33 writes five.


def tool(name, tmp_path):
    """Return the command of one of fio's tools, unpacked if necessary."""
    if program := shutil.which(name):
        return [program]
    packed = TOOLS / f"{name}.gz"
    if not packed.exists():
        pytest.skip(f"no {name} on this machine: install fio's package to run it")
    unpacked = tmp_path / name
    unpacked.write_bytes(subprocess.run(["gzip", "-dc", packed], capture_output=True).stdout)
    return [sys.executable, str(unpacked)]


def output_of(program, arguments, folder):
    done = subprocess.run([*program, *arguments], cwd=folder, capture_output=True, text=True)
    if "ModuleNotFoundError" in done.stderr:  # of a package that fio's own package brings
        pytest.skip(f"{program[-1]} does not start: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def test_fio_jsonplus_clat2csv_reads_the_json(site, tmp_path):
    result = simulated([*BASE, "--ioengine=libaio", "--iodepth=4"], site)
    (tmp_path / "a.json").write_text(fio_json.text(result, with_bins=True))
    output_of(tool("fio_jsonplus_clat2csv", tmp_path), ["a.json", "a.csv"], tmp_path)
    (table,) = tmp_path.glob("a_job0.csv")
    rows = list(csv.reader(table.open()))
    total = sum(each.count for each in result.of_jobs[0].directions[:2])
    names = [name.strip() for name in rows[0]]
    counted = 0
    for direction in ("read", "write"):
        place = names.index(f"{direction}_clat_ns_count")
        counted += sum(int(float(row[place])) for row in rows[1:] if row[place].strip())
    assert counted == total


@pytest.fixture
def logged(site, tmp_path, monkeypatch):
    """Run jobs that write all logs into a folder; return their result."""
    monkeypatch.chdir(tmp_path)
    logs = [f"--write_{kind}_log=log" for kind in ("bw", "lat", "iops", "hist")]
    options = ["--log_avg_msec=50", "--log_hist_msec=50", "--runtime=2", "--time_based"]
    result = simulated([*BASE, "--rw=randread", *logs, *options], site)
    fio_logs.write(result)
    return result


def test_fio_histo_log_pctiles_reads_the_histogram_log(logged, tmp_path):
    program = tool("fio-histo-log-pctiles.py", tmp_path)
    arguments = ["--fio-version=3", "--time-quantum=1", "log_clat_hist.1.log"]
    text = output_of(program, arguments, tmp_path)
    assert "time (millisec), percentiles in increasing order" in text
    rows = [line.split(",") for line in text.splitlines() if line.strip()[:1].isdigit()]
    assert [int(row[0]) for row in rows][:2] == [0, 1000]  # then what the end cuts
    lines = (tmp_path / "log_clat_hist.1.log").read_text().splitlines()
    count = sum(int(each) for line in lines for each in line.split(",")[3:])
    assert count > 1000
    # The tool divides the bins among its rows, and cuts each row to a whole number.
    assert count - len(rows) < sum(int(row[1]) for row in rows) <= count


def test_fio2gnuplot_reads_the_bandwidth_log(logged, tmp_path):
    output_of(tool("fio2gnuplot", tmp_path), ["-p", "log_bw.1.log"], tmp_path)
    assert list(tmp_path.glob("*.average")) or list(tmp_path.glob("*.gnuplot"))


@pytest.mark.parametrize("loops", [1, 2])
def test_writes_and_what_verify_reads_back_have_runtimes_of_their_own(loops, site):
    """As in fio: 1,024 writes in 557 ms and their 1,024 reads in 213 ms of a job of 769 ms."""
    words = f"--name=a --rw=randwrite --bs=4k --size=64k --verify=crc32c --loops={loops}"
    result = simulated(words.split(), site)
    (job,) = fio_json.document(result, with_bins=False)["jobs"]
    write, read_back = job["write"], job["read"]
    assert write["total_ios"] == read_back["total_ios"] == 16 * loops
    assert write["runtime"] + read_back["runtime"] == pytest.approx(job["job_runtime"], abs=2)
    (each,) = result.of_jobs
    assert each.written_ns + each.read_back_ns == each.span_ns
    assert each.written_ns == pytest.approx(write["total_ios"] * write["lat_ns"]["mean"], rel=0.01)


ETA = re.compile(
    r"Jobs: \d+ \(f=\d+\)(, \d+-\d+ IOPS)?(: \[[rwmRWMdDP_(),0-9]+\]\[(-\.-|\d+\.\d)%\]"
    r"(\[r=[0-9.]+[KM]iB/s(,w=[0-9.]+[KM]iB/s)?\]\[r=[0-9.k]+(,w=[0-9.k]+)? IOPS\])?"
    r"\[eta \d\dm:\d\ds\])?"
)
QUIET = ["--preset=digitalocean-volume", "--name=a", "--size=64k", "--rw=read", "--runtime=3",
         "--time_based", "--rate_iops=100"]  # fmt: skip
RUNNING = "--name=a --rw=randrw --bs=4k --size=1m --time_based --runtime=5 --thinktime=3000"
RUNNING += " --name=b --rw=read --size=64k --eta=always --eta-newline=2"


def eta_of(text):
    """Return the lines of --eta, with the character that ends each."""
    return re.findall(r"(Jobs: [^\r\n]*)([\r\n])", text)


def test_eta_has_the_form_of_fio(tmp_path):
    for line, _ in eta_of(real(RUNNING.split(), tmp_path)):
        assert ETA.fullmatch(line), line


def test_eta_is_printed_each_simulated_second():
    result = CliRunner().invoke(command, ["--preset=digitalocean-volume", *RUNNING.split()])
    assert result.exit_code == 0, result.output
    printed = eta_of(result.stdout)
    assert all(ETA.fullmatch(line) for line, _ in printed), printed
    assert [line.split("][")[1] for line, _ in printed[:4]] == ["20.0%", "40.0%", "60.0%", "80.0%"]
    assert [end for _, end in printed[:4]] == ["\r", "\n", "\r", "\n"]
    assert "[m(1),_(1)]" in printed[1][0]
    assert "[eta 00m:03s]" in printed[1][0]
    places = [
        result.stdout.index(part) for part in ("Starting 2 processes", "Jobs:", "a: (groupid")
    ]
    assert places == sorted(places)
    assert result.stdout.count("Starting 2 processes") == 1


@pytest.mark.parametrize("more", ["--output-format=json", "--eta=never", "--minimal", "--eta=auto"])
def test_eta_is_left_out(more):
    arguments = [*QUIET, more] if more.startswith("--eta") else [*QUIET, "--eta=always", more]
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    assert not eta_of(result.stdout)


@pytest.mark.parametrize("option", ["--eta=x", "--eta-interval=x", "--eta-newline=0"])
def test_a_wrong_eta_option_is_refused(option):
    result = CliRunner().invoke(command, [*QUIET, option])
    assert option.partition("=")[0] in str(result.exception)
