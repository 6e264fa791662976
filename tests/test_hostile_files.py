"""Hostile files: each ends within a second in one error that names the file."""

import contextlib
import gc
import io
import json
import time
import zipfile

import numpy as np
import pytest

from hybridsim import fit
from hybridsim.caches.warm_start.saved_cache import SavedCache
from hybridsim.foundation.errors import FitError, ScenarioError, UsageError, WorkloadError
from hybridsim.foundation.reading import whole_text
from hybridsim.foundation.toml.problems import PROBLEMS_MAX, parsed
from hybridsim.scenario import Scenario
from hybridsim.scenario.origin import value_of
from hybridsim.workloads import workload as workload_text
from hybridsim.workloads.workload import generate

LONGEST_S = 1.0  # CPU time
TEXTS = {
    "a quote without its end": "[cache]\nsize =" + " " * 1600 + '"1MiB\n',
    "spaces before a word": "[cache]\nsize =" + " " * 100_000 + "1MiB" + " " * 100_000 + "\n",
    "a key of 20,000 dots": "a" + ".a" * 20_000 + " = 1\n",
    "a header of dots": "[" + "a" + " . a" * 20_000 + "]\n",
    "quoted parts": '"a"' + '."a"' * 20_000 + " = 1\n",
    "an inline key of dots": "a = {b" + ".b" * 20_000 + " = 1}\n",
    "backslashes": 'a = "' + "\\\\" * 100_000 + "\n",
    "a text without its end": 'a = """' + '\\"' * 100_000,
    "brackets": "a = " + "[" * 100_000,
    "digits": "a = " + "9" * 100_000,
    "20,000 unknown keys": "".join(f"k{i} = 1\n" for i in range(20_000)),
    "5,000 unknown tables": "".join(f"[t{i}]\n" for i in range(5_000)),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_hostile_scenario_is_refused_quickly(name):
    gc.disable()  # a collection takes as long as what other tests left is large
    try:
        begun = time.process_time()
        with pytest.raises(ScenarioError) as error:
            Scenario.loads(TEXTS[name], "site.toml")
        assert time.process_time() - begun < LONGEST_S
    finally:
        gc.enable()
    assert "site.toml" in str(error.value)
    assert len(str(error.value)) < 100_000


def test_only_the_first_of_many_problems_are_reported():
    text = "".join(f"k{i} = 1\n" for i in range(3 * PROBLEMS_MAX))
    with pytest.raises(ScenarioError, match=f"^more than {PROBLEMS_MAX} problems in the scenario"):
        Scenario.loads(text, "site.toml")


def test_dots_in_strings_and_comments_do_not_count_as_key_separators():
    text = f"# {'.' * 99}\na = \"{'.' * 99}\" # {'.' * 99}\nb = '''\n{'.' * 99}\n'''\n"
    assert parsed(text, "a", ScenarioError) == {"a": "." * 99, "b": "." * 99 + "\n"}
    assert len(parsed("x = [" + "1.5, " * 99 + "]", "a", ScenarioError)["x"]) == 99


def test_an_option_value_that_nests_too_deeply_is_a_string():
    assert value_of("[" * 50_000) == "[" * 50_000


@pytest.mark.parametrize("content", [b"a" * 101, b"\xff", None])
def test_the_error_for_an_unreadable_file_names_it(tmp_path, content):
    path = tmp_path / "some.toml"
    if content:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=r"some\.toml"):
        whole_text(path, UsageError, largest_bytes=100)


def test_an_endless_file_is_refused():
    with pytest.raises(ScenarioError, match="/dev/zero is larger"):
        Scenario.load("/dev/zero")


# Saved caches.


def saved(path):
    SavedCache("", 4096, 512, 1 << 20, np.array([1, 2]), np.array([1, 1])).write(str(path))
    return path.read_bytes()


def test_any_damaged_byte_of_a_saved_cache_gives_a_usage_error_or_none(tmp_path):
    """Damaged streams and unknown compressions, among others, are caught."""
    path = tmp_path / "state.npz"
    whole = saved(path)
    for at in range(0, len(whole), 2):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        with contextlib.suppress(UsageError):  # some bytes have no effect
            SavedCache.read(str(path))


@pytest.mark.parametrize("method", [1, 9, 12, 14, 99])
def test_an_unsupported_compression_of_a_saved_cache_is_refused(tmp_path, method):
    path = tmp_path / "state.npz"
    whole = bytearray(saved(path))
    whole[whole.index(b"PK\x01\x02") + 10] = method
    path.write_bytes(whole)
    with pytest.raises(UsageError, match="not a cache saved"):
        SavedCache.read(str(path))


def test_a_damaged_stream_of_a_saved_cache_is_refused(tmp_path):
    path = tmp_path / "state.npz"
    whole = bytearray(saved(path))
    begin = whole.index(b"format.npy") + len("format.npy") + 20  # behind its zip64 field
    whole[begin : begin + 40] = b"\xff" * 40
    path.write_bytes(whole)
    with pytest.raises(UsageError, match=r"state\.npz: not a cache saved"):
        SavedCache.read(str(path))


def with_array(path, name, content):
    """Write a saved cache with one member replaced."""
    whole = saved(path)
    with zipfile.ZipFile(io.BytesIO(whole)) as old, zipfile.ZipFile(path, "w") as new:
        for each in old.namelist():
            new.writestr(each, content if each == f"{name}.npy" else old.read(each))


def test_an_array_shorter_than_its_header_is_refused_without_allocation(tmp_path):
    path = tmp_path / "state.npz"
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": "<i8", "fortran_order": False, "shape": (1 << 50,)}
    )
    with_array(path, "pages", file.getvalue())
    with pytest.raises(UsageError, match="fewer bytes than its heading"):
        SavedCache.read(str(path))


# Iometer's files.

ICF = """Version 1.1.0
'ACCESS SPECIFICATIONS
'Access specification name,default assignment
	one,NONE
'size,% of size,% reads,% random,delay,burst,align,reply
	{row}
'END access specifications
"""
ROW = "4096,100,67,100,0,1,0,0"


def requests(text):
    part = next(generate(workload_text.read(text, "web.icf")))
    for column in part:
        assert (column >= -1).all()
    return part


def test_access_specifications_without_a_worker_generate_requests():
    assert requests(ICF.format(row=ROW)).rows > 0


@pytest.mark.parametrize("column", range(8))
@pytest.mark.parametrize("word", ["9" * 18, "9" * 40, "9" * 5000, "²", "-1", ""])
def test_an_absurd_number_is_refused_with_its_line(column, word):
    fields = ROW.split(",")
    fields[column] = word
    with pytest.raises(WorkloadError, match=r"web\.icf:[56]:"):
        requests(ICF.format(row=",".join(fields)))


@pytest.mark.parametrize(
    "entry",
    [
        f"'Number of outstanding IOs\n\t{'9' * 15}",
        f"'Start  end  step  step type\n\t1 {'9' * 15} 1 LINEAR",
        f"'hours minutes seconds\n\t0 0 {'9' * 5000}",
        f"'hours minutes seconds\n\t{'9' * 15} 0 0",
    ],
)
def test_an_absurd_setting_is_refused(entry):
    text = ICF.format(row=ROW) + "'Worker\n\tone\n" + entry + "\n"
    begun = time.process_time()
    with pytest.raises(WorkloadError, match=r"web\.icf:"):
        requests(text)
    assert time.process_time() - begun < LONGEST_S


# Results of fio.

PERCENTS = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99)


def fio_results(path, latency_ns):
    latency = {
        "mean": float(np.mean(latency_ns)),
        "percentile": {f"{p:f}": int(np.percentile(latency_ns, p)) for p in PERCENTS},
    }
    job = {
        "jobname": "one",
        "job options": {"rw": "randread", "bs": "4k", "direct": "1", "iodepth": "1"},
        "read": {"total_ios": len(latency_ns), "iops": 100.0, "bw_bytes": 1, "clat_ns": latency},
    }
    path.write_text(json.dumps({"fio version": "fio-3.33", "jobs": [job]}))
    return path


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3, 0.45])
def test_a_disk_with_some_reads_from_flash_is_not_fitted(tmp_path, share):
    rng = np.random.default_rng(1)
    latency = 1e6 * (0.5 + 8 * (1 - np.sqrt(1 - rng.random(9999))) ** 0.5 + 8.3 * rng.random(9999))
    latency[rng.random(9999) < share] = 90_000
    with pytest.raises(FitError, match="A cache served them"):
        fit(fio_results(tmp_path / "mixed.json", latency))


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("latency", [[2e6] * 99, [2e6, 9e9] * 99, [1e12] * 99])
def test_latencies_unlike_those_of_disks_are_refused(tmp_path, latency):
    with pytest.raises(FitError, match=r"mixed\.json: cannot be fitted"):
        fit(fio_results(tmp_path / "mixed.json", np.array(latency)))
