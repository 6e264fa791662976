"""Jobs are those of fio: fifty that fio 3.33 logged, and random ones where fio is installed."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import fio_differential
import pytest
from fio_differential import (
    _clones,
    as_in_latencies,
    compared,
    drawn,
    has_latencies,
    ours,
    real,
    sections_of,
    shrunk,
    summary,
)

from hybridsim.foundation.errors import HybridsimError
from hybridsim.scenario import Scenario
from hybridsim.studies.fio import fio
from hybridsim.workloads.fio.job import jobs_of
from hybridsim.workloads.fio.jobfile import read

LOGGED = json.loads((Path(__file__).parent / "data" / "fio_jobs.json").read_text())
MIXES = json.loads((Path(__file__).parent / "data" / "fio_mixes.json").read_text())
FIRST_SEED = int(os.environ.get("HYBRIDSIM_FIO_SEED", "1000000"))
JOBS = int(os.environ.get("HYBRIDSIM_FIO_JOBS", "1000"))
SLICES = 20


@pytest.mark.parametrize("logged", LOGGED, ids=[str(each) for each in range(len(LOGGED))])
def test_requests_are_those_that_fio_logged(logged):
    sections = [
        section for _, section in sections_of(logged["job"]) for _ in range(_clones(section))
    ]
    result = []
    for section, requests in zip(sections, ours(logged["job"]), strict=True):
        requests = as_in_latencies(requests) if has_latencies(section) else requests
        result.append(summary(requests))
    assert result == logged["processes"], fio_differential.text(logged["job"])


@pytest.mark.parametrize("mix", MIXES, ids=[str(each) for each in range(len(MIXES))])
def test_mixes_with_rates_are_those_of_fio_in_the_order_of_its_directions(mix):
    logged = [[tuple(request) for request in requests] for requests in mix["logged"]]
    verdict = compared(mix["job"], logged)
    assert verdict.what == "equal", verdict.why
    without_one = [[*part[:5], *part[6:]] for part in logged]
    assert compared(mix["job"], without_one).what == "wrong"


def fio_version():
    program = shutil.which("fio")
    if program is None:
        return ""
    return subprocess.run([program, "--version"], capture_output=True, text=True).stdout.strip()


@pytest.mark.long
@pytest.mark.parametrize("part", range(SLICES))
def test_random_jobs_are_equal_or_refused(part):
    version = fio_version()
    if version != "fio-3.33":
        pytest.skip(f"no fio 3.33 on this machine, only {version or 'none'}: install it to compare")
    for seed in range(FIRST_SEED + part, FIRST_SEED + JOBS, SLICES):
        job = drawn(seed)
        verdict = compared(job, real(job))
        if verdict.what == "wrong":
            smaller = shrunk(job, lambda each: compared(each, real(each)).what == "wrong")
            verdict = compared(smaller, real(smaller))
            pytest.fail(f"seed {seed}: {fio_differential.text(smaller)}{verdict.why}")
        if verdict.what == "refused":
            assert ":" in verdict.why, f"seed {seed}: no place and reason: {verdict.why}"


def test_a_job_that_differs_is_made_smaller():
    job = [{"rw": "randread", "size": "1m", "bs": "8k"}, {"rw": "write", "size": "2m"}]
    smaller = shrunk(job, lambda each: any("bs" in section for section in each))
    assert smaller == [{"bs": "8k"}]


EXAMPLES = Path(os.environ.get("HYBRIDSIM_FIO_EXAMPLES", "/usr/share/doc/fio/examples"))
REFUSED = {
    "e4defrag", "e4defrag2", "gpudirect-rdmaio-client", "gpudirect-rdmaio-server",
    "libzbc-rand-write", "netio", "netio_multicast", "rdmaio-client", "rdmaio-server",
    "xnvme-zoned", "zbd-rand-write",
}  # fmt: skip
VARIABLES = {
    "DIRECTORY": "/x", "FILENAME": "/dev/x", "SIZE": "1g", "FIO_RW": "randread",
    "FIO_IODEPTH": "4", "FIO_BS": "4k", "FIO_DIR": "/x",
}  # fmt: skip


def test_the_example_jobs_of_fio_are_accepted_except_those_listed(monkeypatch):
    files = sorted(EXAMPLES.glob("*.fio"))
    if not files:
        pytest.skip(f"no examples in {EXAMPLES}: HYBRIDSIM_FIO_EXAMPLES names the folder of fio's")
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(EXAMPLES)
    refused = {}
    for file in files:
        try:
            assert jobs_of(read([str(file)]))
        except HybridsimError as error:
            refused[file.stem] = str(error)
    assert refused.keys() == REFUSED & {file.stem for file in files}, refused
    assert all(f"{EXAMPLES / name}.fio:" in text for name, text in refused.items())


@pytest.mark.long
def test_the_accepted_example_jobs_of_fio_run(monkeypatch):
    files = sorted(file for file in EXAMPLES.glob("*.fio") if file.stem not in REFUSED)
    if not files:
        pytest.skip(f"no examples in {EXAMPLES}: HYBRIDSIM_FIO_EXAMPLES names the folder of fio's")
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(EXAMPLES)
    for file in files:
        result = fio(read([str(file)]), Scenario.default(), limit_ns=10**7)
        moved = sum(one.count for each in result.of_jobs for one in each.directions)
        assert moved or all(each.jobs[0].is_idle for each in result.of_jobs), file.stem
