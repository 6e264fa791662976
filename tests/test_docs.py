"""The documents are correct: README's code runs, and every example of every --help."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from captures import TRACES, cpu_files
from click.testing import CliRunner

import hybridsim
from hybridsim.cli import COMMANDS, cli
from validate.cli import COMMANDS as VALIDATE_COMMANDS
from validate.cli import parser_for

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def commands(group, prefix):
    """Yield every command with the words that invoke it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield f"{prefix} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{prefix} {name}")


ALL = dict(commands(cli, "hybridsim")) | {"hybridsim": cli}


def examples():
    """Return the example commands of all help texts."""
    return sorted(
        {
            line.strip()
            for command in ALL.values()
            for line in (command.epilog or "").splitlines()
            if line.strip("\b ") and not line.startswith("Example")
        }
    )


ROOTS = [line for line in examples() if line.startswith("sudo ")]
RUN = [line for line in examples() if line not in ROOTS]


def help_of_validate():
    """Yield the words of the examples in the help texts of `python -m validate`."""
    for name in ("", *VALIDATE_COMMANDS):
        words = [sys.executable, "-m", "validate", name, "--help"]
        text = subprocess.run(filter(None, words), cwd=ROOT, capture_output=True, text=True).stdout
        whole = text.replace("\\\n", " ")
        yield from re.findall(r"^ +(?:sudo )?python3? -m validate (.*?)(?: >.*)?$", whole, re.M)


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A folder in which the examples' files exist."""
    folder = tmp_path_factory.mktemp("desk")
    for name, data in cpu_files("loop_ext4_buffered_meta").items():
        for when in ("sda", "yesterday"):
            (folder / f"{when}.blktrace.{name.split('.')[2]}").write_bytes(data)
    (folder / "traces").symlink_to(TRACES)
    (folder / "site.toml").write_text('[cache]\nsize = "20%"\n', encoding="utf-8")
    grid = "[sweep]\ntraces = ['sda.blktrace.0']\n[vary]\ncache.size = ['5%', '20%']\n"
    (folder / "grid.toml").write_text(grid, encoding="utf-8")
    job = "[a]\nrw=randread\nsize=1G\nruntime=1\nioengine=libaio\niodepth=4\ndirect=1\n"
    (folder / "job.fio").write_text(job, encoding="utf-8")
    latency = {"min": 1, "max": 2, "mean": 1.5, "stddev": 0.1, "percentile": {"99.000000": 2}}
    figures = {"io_bytes": 23347200, "bw_bytes": 23347200, "iops": 5700.0, "runtime": 1000}
    done = {"jobname": "a", "read": {**figures, "total_ios": 5700, "clat_ns": latency}}
    for name in ("real", "simulated"):
        results = {"fio version": "fio-3.33", "jobs": [done]}
        (folder / f"{name}.json").write_text(json.dumps(results), encoding="utf-8")
    row = {"disk_device": "sda", "r/s": 90.0, "w/s": 10.0, "r_await": 8.0, "w_await": 20.0}
    reports = {"sysstat": {"hosts": [{"statistics": [{"disk": [row]}]}]}}
    (folder / "iostat.json").write_text(json.dumps(reports), encoding="utf-8")
    iostat = "Device r/s rkB/s r_await w/s wkB/s w_await %util\nsda 90 800 8 10 80 20 60\n"
    (folder / "iostat.txt").write_text(iostat, encoding="utf-8")
    sar = "09:00:00 DEV tps rkB/s wkB/s await %util\n09:10:00 sdb 100.0 800.0 80.0 9.5 60.0\n"
    (folder / "sar.txt").write_text(sar, encoding="utf-8")
    event = " fio-1 [001] ..... 9.000100: block_bio_queue: 8,16 R 8 + 8 [fio]\n"
    (folder / "events.txt").write_text(event, encoding="utf-8")
    idle = {"io_bytes": 0, "runtime": 0, "total_ios": 0, "clat_ns": {**latency, "mean": 0}}
    whole = {"jobs": [{**done, "write": idle}]}
    (folder / "fio.json").write_text(json.dumps(whole), encoding="utf-8")
    recorded = (folder / "sda.blktrace.0").read_bytes()
    for cut, server in enumerate(("web1/sda", "web2/sda", "db1/sda")):  # of different lengths
        (folder / server).parent.mkdir(exist_ok=True)
        whole = recorded[: len(recorded) - cut * 48 * 100]
        (folder / f"{server}.blktrace.0").write_bytes(whole)
    checked = ROOT / "tests" / "data" / "check"
    shutil.copy(checked / "dm-cache-writeback.json", folder / "promise.json")
    samples = (checked / "dm-cache-writeback.log").read_text(encoding="utf-8").splitlines()
    for number, line in enumerate((samples[0], samples[-1]), 1):
        (folder / f"counters-{number}.txt").write_text(f"{line}\n", encoding="utf-8")
    csv = str(folder / "sda.csv.zst")
    CliRunner().invoke(cli, ["trace", "convert", str(folder / "sda.blktrace.0"), csv])
    # The tools of the examples, by their commands here.
    tools = folder / "tools"
    tools.mkdir()
    script(tools / "hybridsim", f'exec "{sys.executable}" -m hybridsim "$@"')
    script(tools / "blktrace", f'cat "{folder}/sda.blktrace.0"')  # a stream; needs no root
    return folder


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


def run(line, folder, **settings):
    environment = os.environ | {
        "PATH": f"{folder}/tools:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        **settings,
    }
    return subprocess.run(
        ["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True
    )


SHORT = ("hybridsim fio ", "hybridsim bench ", "hybridsim compare real.json job.fio ")


@pytest.mark.parametrize("line", RUN)
def test_every_example_of_help_runs(line, desk, monkeypatch):
    if line.startswith(SHORT):  # interpreting so short a load takes less time than compiling
        done = run(line, desk, NUMBA_DISABLE_JIT="1")
    elif line.startswith("hybridsim ") and not set("|>") & set(re.sub("'[^']*'", "", line)):
        monkeypatch.chdir(desk)
        outcome = CliRunner().invoke(cli, shlex.split(line)[1:], catch_exceptions=False)
        assert outcome.exit_code == 0, outcome.output
        return
    else:
        done = run(line, desk)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("line", ROOTS)
def test_examples_that_need_root_are_parsed(line, monkeypatch):
    """Commands that change a machine are parsed but not run."""
    words = shlex.split(line.removeprefix("sudo hybridsim "))
    if words[0] == "validate":
        assert parser_for(words[1:]).parse_args(words[1:])
        return
    called = []
    group = isinstance(ALL[f"hybridsim {words[0]}"], click.Group)
    command = ALL[f"hybridsim {' '.join(words[: 2 if group else 1])}"]
    monkeypatch.setattr(command, "callback", lambda **options: called.append(options))
    CliRunner().invoke(cli, words, catch_exceptions=False)
    assert called


def test_examples_of_validate_are_parsed():
    lines = [shlex.split(line) for line in help_of_validate()]
    for words in lines:
        assert parser_for(words).parse_args(words)
    assert {words[0] for words in lines} == set(VALIDATE_COMMANDS)


@pytest.mark.parametrize("name", sorted(ALL))
def test_every_command_has_help_and_an_example(name):
    assert ALL[name].help
    assert "xample" in (ALL[name].epilog or "")


def test_readme_mentions_every_command():
    for name in COMMANDS:
        assert f"hybridsim {name}" in README


def test_the_python_example_of_readme_runs(desk):
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    done = run(f"'{sys.executable}' - <<'END'\n{code}END", desk)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("yes ")


def test_the_policy_example_of_readme_runs(desk):
    (code,) = re.findall(r"```py\n(.*?)```", README, re.DOTALL)
    done = run(f"'{sys.executable}' - <<'END'\n{code}END", desk)
    assert done.returncode == 0, done.stderr
    own, lru, bound = (float(line.split()[1]) for line in done.stdout.splitlines())
    assert own < lru < bound


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_ci_runs_exactly_the_test_command_of_the_readme():
    (command,) = [line for line in README.splitlines() if "requirements-test.txt" in line]
    assert "requirements-test.txt' README.md" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert command.endswith("-m pytest -n auto")


@pytest.mark.parametrize(
    "document",
    [
        "README.md",
        ".github/CONTRIBUTING.md",
        "hybridsim/docs/design/decisions.md",
        "validate/README.md",
    ],
)
def test_files_named_in_documents_exist(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    paths = re.findall(r"`([\w.-]*/[\w./-]*(?:\.(?:py|md|toml|csv)|/))`", text)
    assert len(paths) > 1
    folders = (ROOT, ROOT / "hybridsim", ROOT / document / "..")
    for path in {path for path in paths if path != "restart/"}:  # which is in a result folder
        place = re.split(r"[^/]*(?:NAME|KIND)", path)[0]
        assert any((folder / place).resolve().exists() for folder in folders), path


PAGES = sorted((ROOT / "hybridsim" / "docs").rglob("*.md"))
SECTIONS = [
    (number, page)
    for page in PAGES
    for number in re.findall(r"^#+ (\d+(?:\.\d+)*)\.? ", page.read_text(encoding="utf-8"), re.M)
]


def test_design_lists_each_section_once_with_its_page():
    design = ROOT / "hybridsim" / "DESIGN.md"
    rows = re.findall(r"^\| ([\d., ]*)\|.*\]\((.*)\) \|$", design.read_text(encoding="utf-8"), re.M)
    listed = [
        (number, design.parent / page)
        for numbers, page in rows
        for number in re.findall(r"[\d.]+", numbers)
    ]
    assert sorted(listed) == sorted(each for each in SECTIONS if each[0].count(".") < 2)


def test_references_to_the_design_name_sections_that_exist():
    sections = {number for number, _ in SECTIONS}
    assert len(sections) == len(SECTIONS), "a number is given twice"
    cited = {}
    for folder in ("hybridsim", "tests", "validate", "benchmarks"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".md", ".toml"):
                text = path.read_text(encoding="utf-8")
                for numbers in re.findall(r"DESIGN(?:\.md)?`?,? ([\d., ]*\d)", text):
                    for number in numbers.split(", "):
                        cited[number] = path
    assert len(cited) > 20
    assert not {number: path for number, path in cited.items() if number not in sections}


@pytest.mark.parametrize("folder", ["design", "model"])
def test_pages_are_wrapped(folder):
    wide = [
        f"{page.name}:{number}"
        for page in (ROOT / "hybridsim" / "docs" / folder).glob("*.md")
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > 120 and not line.lstrip().startswith("|")
    ]
    assert not wide


def test_contributing_contains_the_test_command_of_the_readme():
    (command,) = [line for line in README.splitlines() if "requirements-test.txt" in line]
    assert command in (ROOT / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_the_changelog_has_an_entry_for_this_version():
    text = (ROOT / "hybridsim" / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## {hybridsim.__version__}" in text
