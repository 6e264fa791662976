"""The code follows its own rules."""

import ast
import importlib
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hybridsim.caches import CACHES
from hybridsim.caches.policies import ADMISSION, REPLACEMENT
from hybridsim.cli import COMMANDS
from hybridsim.storage import devices
from hybridsim.storage.devices import DEVICE_METHODS
from hybridsim.traces.formats import FORMATS

ROOT = Path(__file__).parents[1]
SOURCES = sorted(
    path for package in ("hybridsim", "validate") for path in (ROOT / package).rglob("*.py")
)
TESTS = sorted((ROOT / "tests").glob("*.py"))

BANNED = {"util", "utils", "helper", "helpers", "manager", "misc", "common", "base", "core"}


@pytest.mark.parametrize(
    "command",
    [
        "ruff check hybridsim tests validate .github/site",
        "ruff format --check hybridsim tests validate .github/site",
        "mypy",
        "lint-imports",
    ],
)
def test_linters_report_nothing(command):
    program, *arguments = command.split()
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    path = shutil.which(program, path=places)
    if path is None:
        pytest.skip(f"{program} is not installed")
    done = subprocess.run([path, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_names_describe_their_contents():
    """Names such as utils or manager describe nothing."""
    for path in SOURCES + TESTS:
        names = {path.stem}
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.add(node.name)
        for name in names:
            words = re.findall(r"[A-Z]?[a-z]+", name)
            assert not BANNED & {word.lower() for word in words}, f"{path.name}: {name}"


def registered():
    for family in (CACHES, ADMISSION, REPLACEMENT):
        for name, cls in family.items():
            yield pytest.param(cls, id=name)
    yield from DEVICES


def devices_of_all_files():
    for module in pkgutil.walk_packages(devices.__path__, f"{devices.__name__}."):
        for cls in vars(importlib.import_module(module.name)).values():
            if isinstance(cls, type) and all(hasattr(cls, name) for name in DEVICE_METHODS):
                if cls.__module__ == module.name:
                    yield pytest.param(cls, id=cls.__name__)


DEVICES = list(devices_of_all_files())


@pytest.mark.parametrize("cls", list(registered()))
def test_registered_classes_have_a_module_docstring(cls):
    """The module docstring describes the class."""
    assert len(importlib.import_module(cls.__module__).__doc__.split()) >= 6
    assert cls.__doc__


@pytest.mark.parametrize("cls", [*CACHES.values(), *(each.values[0] for each in DEVICES)])
def test_a_cache_and_a_device_are_tested(cls):
    """Some test names the class; policies are all compared with their models."""
    assert any(re.search(rf"\b{cls.__name__}\b", path.read_text()) for path in TESTS)


@pytest.mark.parametrize("name", FORMATS)
def test_formats_have_a_docstring(name):
    assert len(importlib.import_module(FORMATS[name]).__doc__.split()) >= 6


IMPORTS = """
import sys
from hybridsim.cli import main
{run}
heavy = {{"numpy", "scipy", "numba", "simpy", "pydantic", "rich"}} & sys.modules.keys()
assert not heavy, heavy
"""


def test_help_imports_no_heavy_packages():
    run = """
try:
    sys.argv = ["hybridsim", "--help"]
    main()
except SystemExit as end:
    assert not end.code
"""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS.format(run=run)], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert "replay" in done.stdout


@pytest.mark.parametrize("module", [f"hybridsim.cli.{name}" for name in COMMANDS])
def test_a_command_module_imports_no_heavy_packages(module):
    script = IMPORTS.format(run=f"import {module}")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
