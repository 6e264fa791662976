"""A drive of large map units is recognised by its random writes."""

import numpy as np
import pytest
from click.testing import CliRunner

from hybridsim import fit
from hybridsim.answers.fitting.flash import map_unit
from hybridsim.cli import cli

KIB = 1024
QLC, TLC = "solidigm-d5-p5336-61440gb", "samsung-pm9a3-1920gb"


def fio_result(folder, name, rw, size, depth):
    """Return a file with the result of a fio job on a simulated drive."""
    scenario = folder / "drive.toml"
    backing = f'[backing]\nkind = "single"\nmembers = 1\ndrive = "{name}"\n'
    scenario.write_text(f'{backing}[cache]\nkind = "none"\n')
    words = f"fio --scenario {scenario} --output-format=json --name=job --ioengine=libaio"
    words += f" --direct=1 --norandommap --rw={rw} --bs={size} --iodepth={depth}"
    words += " --time_based --runtime=500ms --ramp_time=1s"
    result = CliRunner().invoke(cli, words.split(), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    path = folder / f"{rw}-{size}.json"
    path.write_text(result.stdout)
    return path


def fitted(folder, name, *sizes):
    writes = [fio_result(folder, name, "randwrite", size, 64) for size in sizes]
    return fit([fio_result(folder, name, "randread", "4k", 1), *writes], check=False)


def unit(model):
    return next(each for each in model.estimates if each.key == "map_unit")


def test_fio_results_of_several_sizes_show_the_unit(tmp_path):
    found = unit(fitted(tmp_path, QLC, "4k", "8k", "16k", "32k", "128k"))
    assert found.determined
    assert (found.value, found.low, found.high) == (16 * KIB, 16 * KIB, 16 * KIB)
    model = fitted(tmp_path, QLC, "4k", "16k", "64k")  # 32 KiB would explain these as well
    assert (unit(model).low, unit(model).high) == (16 * KIB, 32 * KIB)
    assert model.scenario().backing.drive.map_bytes == 16 * KIB


def test_a_drive_that_maps_4_kib_is_not_taken_for_one_of_large_units(tmp_path):
    found = unit(fitted(tmp_path, TLC, "4k", "8k", "16k", "32k", "128k"))
    assert (found.value, found.determined) == (4 * KIB, True)


def test_where_it_is_unknown_the_fit_says_what_would_show_it(tmp_path):
    few = unit(fitted(tmp_path, QLC, "4k", "32k"))
    assert few.how.startswith("2 sizes of random writes at depth 8 or more; fio's random writes")
    flat = unit(fitted(tmp_path, QLC, "4k", "8k", "16k"))
    assert "writes of 4 to 16 KiB take equally long" in flat.how
    assert not few.determined
    assert not flat.determined


@pytest.mark.parametrize("seed", range(20))
def test_runs_that_vary_by_2_percent_do_not_make_a_wrong_unit(seed):
    sizes = np.array([4, 8, 16, 32, 64]) * KIB
    vary = 1 + 0.02 * np.random.default_rng(seed).standard_normal(5)
    of_4_kib = 12 + 0.5 * sizes / 4096
    assert map_unit(sizes, of_4_kib * vary).value == 4 * KIB
    of_16_kib = 12 + 0.5 * np.maximum(sizes, 16 * KIB) / 4096
    assert map_unit(sizes, of_16_kib * vary).value in (4 * KIB, 16 * KIB)
    assert map_unit(sizes, of_16_kib).value == 16 * KIB
