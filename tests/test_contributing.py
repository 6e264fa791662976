"""CONTRIBUTING is true: what is added as its table says, and nowhere else, can be used.

A copy of the package gets one toy of each kind: the files of tests/toys, and lines in registries.
The policy, the drive and the figure are those that hybridsim/docs/how-to shows, added as their
pages say.
Its commands are run, and those of its tests that follow the registries.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from pages import edits

ROOT = Path(__file__).parents[1]
TOYS = Path(__file__).parent / "toys"
TABLE_ROW = re.compile(r"^\| (an? .+?) \|(.+)\| (\d+) \|$", re.M)

# By row of the table and place: a toy's file, or its text; or for a file that is there, what is put
# behind what.
ADDED = {
    "a replacement or admission policy": edits("how-to/policy.md"),
    "a trace format": {
        "hybridsim/traces/formats/slashes.py": "format.py",
        "hybridsim/traces/formats/__init__.py": {
            "FORMATS = {\n": '    "slashes": "hybridsim.traces.formats.slashes",\n'
        },
        "tests/damaged.py": {
            "ONE_LINE = {\n": '    "slashes": "7/R/4096/512\\n7/W/0/512\\n",\n',
        },
    },
    "a figure of a replay": edits("how-to/figure.md"),
    "a section of the HTML report": {
        "hybridsim/show/html/sections/misses.py": "section.py",
        "hybridsim/show/html/sections/__init__.py": {'"result.verdict", ': '"misses", '},
        "tests/test_html.py": {'"replay": ["Verdict", ': '"Misses over time", '},
    },
    "a command": {
        "hybridsim/cli/count.py": "command.py",
        "hybridsim/studies/count.py": "study.py",
        "hybridsim/cli/__init__.py": {"COMMANDS = {\n": '    "count": "How many requests?",\n'},
    },
    "a kind of drive": edits("how-to/device.md"),
}
NAMES = ("newest", "slashes", "misses", "count", "ram")

SITE = """\
[backing]
kind = "stripe"
members = 2
[backing.drive]
kind = "ram"
capacity = "1GiB"
latency = "6us"
rate = "4096MB/s"
[cache]
size = "64KiB"
page = "4KiB"
admission = "always"
replacement = "newest"
"""
LINES = {
    "help": "--help",
    "count": "count t.txt",
    "info": "trace info t.txt --json",
    "forced": "trace info --format slashes t.txt --json",
    "hits": "hits t.txt --replacement newest,lru --page 4KiB --cache-size 20% --json",
    "replay": "replay t.txt --admission always --replacement newest --json policy.json",
    "site": "replay t.txt --scenario site.toml --details --json site.json --html site.html",
    "show": "scenario show site.toml",
}
WRONG = {"key": ('"6us"', '"6us"\nlatensy = "8us"'), "kind": ('"ram"', '"rom"')}
COMPLETED = [
    "hybridsim co",
    "hybridsim replay t.txt --replacement n",
    "hybridsim hits t.txt --replacement n",
    "hybridsim trace info --format sl",
]
PROGRAM = """
import json, sys
from click.shell_completion import BashComplete
from click.testing import CliRunner
from hybridsim.cli import cli
from hybridsim.foundation.errors import HybridsimError
lines, completed = json.load(sys.stdin)
outputs = {}
for name, line in lines.items():
    done = CliRunner().invoke(cli, line.split())
    if done.exception and not isinstance(done.exception, (HybridsimError, SystemExit)):
        raise done.exception
    outputs[name] = done.output + str(done.exception or "")
for line in completed:
    *words, begun = line.split(" ")
    found = BashComplete(cli, {}, "hybridsim", "_X").get_completions(words[1:], begun)
    outputs[line] = [each.value for each in found]
json.dump(outputs, sys.stdout)
"""


def promised():
    """Return the rows of the table: what is to add, the places named for it, and their number."""
    text = (ROOT / ".github/CONTRIBUTING.md").read_text(encoding="utf-8")
    for what, places, number in TABLE_ROW.findall(text):
        paths = re.findall(r"`([\w./-]+\.(?:py|md|toml|json))`", places)
        known = ("tests/",)
        yield what, [p if p.startswith(known) else f"hybridsim/{p}" for p in paths], int(number)


PROMISED = {what: (paths, number) for what, paths, number in promised()}


@pytest.mark.parametrize("what", ADDED)
def test_no_more_files_are_needed_than_promised(what):
    paths, number = PROMISED[what]
    named = re.compile(rf"(?:{'|'.join(NAMES)})\.py$")
    needed = {named.sub("NAME.py", path) for path in ADDED[what]}
    assert needed == set(paths)
    assert len(needed) == number


def run(folder, words, **how):
    environment = os.environ | {"PYTHONPATH": str(folder), "NUMBA_DISABLE_JIT": "1"}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, **how
    )


def text_of(what):
    """Return a toy's text: that of its file, or itself."""
    return what if "\n" in what else (TOYS / what).read_text(encoding="utf-8")


def add(folder, places):
    for place, what in places.items():
        path = folder / place
        if isinstance(what, str):
            assert not path.exists()
            path.write_text(text_of(what), encoding="utf-8")
            continue
        text = path.read_text(encoding="utf-8")
        for anchor, line in what.items():
            assert text.count(anchor) == 1, f"{place}: {anchor}"
            text = text.replace(anchor, anchor + line)
        path.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def extended(tmp_path_factory):
    """A copy of the repository with all toys."""
    folder = tmp_path_factory.mktemp("extended")
    for name in ("hybridsim", "tests"):
        left = shutil.ignore_patterns("__pycache__", "toys", "test_contributing.py")
        shutil.copytree(ROOT / name, folder / name, ignore=left)
    for name in ("README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    for name in ("traces", "validate", "benchmarks"):
        (folder / name).symlink_to(ROOT / name)
    for places in ADDED.values():
        add(folder, places)
    return folder


@pytest.fixture(scope="module")
def outputs(extended):
    """What the commands of the copy print, by name, and what is completed."""
    rng = Random(1)
    rows = [f"{i * 10**6}/{'RW'[i % 3 == 0]}/{rng.randrange(60) * 4096}/4096" for i in range(400)]
    (extended / "t.txt").write_text("\n".join(rows) + "\n")
    (extended / "site.toml").write_text(SITE)
    lines = dict(LINES)
    for name, change in WRONG.items():
        (extended / f"{name}.toml").write_text(SITE.replace(*change))
        lines[name] = f"scenario check {name}.toml"
    done = run(extended, ["-c", PROGRAM], input=json.dumps([lines, COMPLETED]))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_policy_is_usable(outputs, extended):
    document = json.loads(outputs["hits"])
    assert "newest" in json.dumps(document)
    assert "newest" in (extended / "policy.json").read_text()
    assert 'replacement = "newest"' in outputs["show"]
    assert outputs["hybridsim replay t.txt --replacement n"] == ["newest"]
    assert outputs["hybridsim hits t.txt --replacement n"] == ["newest"]


def test_a_format_is_usable(outputs):
    for name in ("info", "forced"):
        document = json.loads(outputs[name])
        assert document["format"] == "slashes", document
    assert outputs["hybridsim trace info --format sl"] == ["slashes"]


def test_a_device_is_usable(outputs, extended):
    document = json.loads((extended / "site.json").read_text())
    assert document["phases"]["none"]["read"]["max_ns"] == 7000
    assert 'kind = "ram"' in outputs["show"]
    assert "did you mean 'latency'" in outputs["key"]
    assert "did you mean 'ram'" in outputs["kind"]


def test_a_figure_is_in_json_texts_and_the_report(outputs, extended):
    phase = json.loads((extended / "site.json").read_text())["phases"]["none"]
    assert phase["read"]["slow"] == 0.0  # of a drive that takes 7 us
    assert re.search(r"^slow reads +no cache 0%", outputs["site"], re.M)
    assert "Reads that took longer than 10 ms" in (extended / "site.html").read_text()


def test_a_section_is_in_the_report(outputs, extended):
    assert "Misses over time" in (extended / "site.html").read_text()


def test_a_command_is_usable(outputs):
    assert re.search(r"^  count +How many requests\?$", outputs["help"], re.M)
    assert outputs["count"] == "400 requests\n"
    assert "count" in outputs["hybridsim co"]


FOLLOW = """\
test_policies.py::test_every_policy_has_a_model
test_policies.py::test_replacement_equals_its_model[newest]
test_policies.py::test_replacement_equals_its_model_with_many_cancelled_admissions[newest]
test_ram.py::test_engine_and_reference_agree_on_ram
test_fuzz_formats.py::test_every_format_has_a_file_to_damage
test_fuzz_formats.py::test_damaged_files_give_a_trace_or_a_trace_error[slashes]
test_outcome.py::test_slow_reads_are_a_share_of_the_reads
test_explain.py::test_each_label_of_the_report_has_an_entry[slow reads]
test_html.py::test_a_report_has_the_sections_for_its_data[replay]
test_docs.py::test_every_command_has_help_and_an_example[hybridsim count]
test_tidy.py::test_registered_classes_have_a_module_docstring[newest]
test_tidy.py::test_registered_classes_have_a_module_docstring[Ram]
test_tidy.py::test_a_cache_and_a_device_are_tested[Ram]
test_tidy.py::test_formats_have_a_docstring[slashes]
test_tidy.py::test_a_command_module_imports_no_heavy_packages[hybridsim.cli.count]
test_completion.py::test_every_completed_value_list_belongs_to_a_parameter
"""


def test_the_tests_that_follow_the_registries_pass(extended):
    """Each is there for the toy, by its name, and finds nothing that is missing."""
    chosen = [f"tests/{line}" for line in FOLLOW.splitlines()]
    done = run(extended, ["-m", "pytest", "-p", "no:cacheprovider", *chosen])
    assert done.returncode == 0, done.stdout[-3000:]
    assert f"{len(chosen)} passed" in done.stdout
