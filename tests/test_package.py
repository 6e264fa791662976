"""The wheel contains everything but the tests: hybridsim works with only the wheel installed."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from hybridsim.cli import cli
from hybridsim.foundation.errors import UsageError

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def elsewhere(wheel, tmp_path_factory):
    """Return a function that runs Python in another folder, with the wheel instead of the clone."""
    site = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(wheel).extractall(site)
    desk = tmp_path_factory.mktemp("desk")

    def python(*words, **settings):
        environment = os.environ | {"PYTHONPATH": str(site), **settings}
        return subprocess.run(
            [sys.executable, *words], cwd=desk, env=environment, capture_output=True, text=True
        )

    path = python("-c", "import hybridsim; print(hybridsim.__file__)")
    assert path.stdout.startswith(str(site)), path.stderr
    return python


def test_the_wheel_has_every_file_of_the_package_and_the_demo(wheel):
    inside = set(zipfile.ZipFile(wheel).namelist())
    sources = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "hybridsim").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    demo = {f"hybridsim/traces/demo/{path.name}" for path in (ROOT / "traces/demo").iterdir()}
    files = {name for name in inside if ".dist-info/" not in name}
    assert files == sources | demo


def test_the_wheel_lists_the_licences_of_its_contents(wheel):
    licences = [name for name in zipfile.ZipFile(wheel).namelist() if "/licenses/" in name]
    assert {Path(name).name for name in licences} == {"LICENSE", "LICENSE.uPlot"}


def test_the_demo_and_the_catalog_are_installed(elsewhere):
    files = (
        "from pathlib import Path; from hybridsim.storage import catalog;"
        "from hybridsim.traces.example import *;"
        "print(Path(demo_file(CAPTURE)).stat().st_size, Path(demo_file(SITE)).name);"
        "print(catalog.load('hgst-ultrastar-7k8').kind)"
    )
    done = elsewhere("-c", files)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1:] == ["site.toml", "hdd"]


def test_a_replay_writes_its_report_with_figures(elsewhere):
    load = "gen:zipf,requests=300,span=16MiB"
    words = ["-m", "hybridsim", "replay", load, "--html", "report.html", "--json", "-"]
    done = elsewhere(*words, NUMBA_DISABLE_JIT="1")
    assert done.returncode == 0, done.stderr
    assert '"schema": "hybridsim.result/1"' in done.stdout


def test_without_a_clone_the_error_of_validate_links_to_it(monkeypatch):
    monkeypatch.setattr("hybridsim.cli.validate.PACKAGE", "not_there.experiment")
    asked = CliRunner().invoke(cli, ["validate", "--help"])
    assert asked.exit_code == 0
    assert "only of a clone" in asked.output
    called = CliRunner().invoke(cli, ["validate", "report", "x"])
    assert isinstance(called.exception, UsageError)
    assert "only of a clone" in str(called.exception)
