"""fio-plot draws what `hybridsim fio` writes: run with fio-plot installed and `-m long`."""

import shutil
import subprocess

import pytest
from test_fio import SSD

from hybridsim.scenario import Scenario
from hybridsim.show import fio_json, fio_logs
from hybridsim.studies.fio import fio
from hybridsim.workloads.fio.jobfile import read

FIO_PLOT = shutil.which("fio-plot")
GRAPHS = {
    "latency over time": "-g -t lat",
    "bandwidth over time": "-g -t bw",
    "latency and IOPS of depths": "-l",
    "histogram": "-H",
}
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(FIO_PLOT is None, reason="fio-plot is not installed: pip install fio-plot"),
]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return results at two depths, with bench-fio's file names."""
    folder = tmp_path_factory.mktemp("results")
    for depth in (1, 8):
        prefix = folder / f"randread-iodepth-{depth}-numjobs-1"
        logs = " ".join(f"--write_{kind}_log={prefix}" for kind in ("bw", "iops", "lat"))
        job = "--name=a --rw=randread --bs=4k --size=64M --number_ios=2000 --direct=1"
        words = f"{job} --ioengine=libaio --iodepth={depth} --log_avg_msec=5 {logs}"
        result = fio(read(words.split()), Scenario.loads(SSD), interpreted=True)
        fio_logs.write(result)
        prefix.with_suffix(".json").write_text(fio_json.text(result, with_bins=False))
    return folder


@pytest.mark.parametrize("graph", GRAPHS)
def test_fio_plot_draws_the_results(graph, results, tmp_path):
    picture = tmp_path / "picture.png"
    depths = "1 8" if GRAPHS[graph] == "-l" else "8"
    words = f"-i {results} -T title -r randread -d {depths} -n 1 -o {picture} {GRAPHS[graph]}"
    done = subprocess.run([FIO_PLOT, *words.split()], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert picture.read_bytes().startswith(b"\x89PNG"), done.stdout
