"""The documents are correct: README's code runs, and every example of every --help."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from desk import run

import hybridsim
from hybridsim.cli import cli
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


SHORT = ("hybridsim fio ", "hybridsim bench ", "hybridsim compare real.json job.fio ")


@pytest.mark.parametrize("line", RUN)
def test_every_example_of_help_runs(line, desk, monkeypatch):
    if line.startswith(SHORT):  # interpreting so short a load takes less time than compiling
        done = run(line, desk, NUMBA_DISABLE_JIT="1")
    elif line.startswith("hybridsim ") and not set("|>") & set(re.sub("'[^']*'", "", line)):
        monkeypatch.chdir(desk)
        outcome = CliRunner().invoke(cli, shlex.split(line)[1:], catch_exceptions=False)
        expected = 4 if line.startswith("hybridsim check ") else 0  # a real run, not as promised
        assert outcome.exit_code == expected, outcome.output
        return
    else:
        done = run(line, desk)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("line", ROOTS)
def test_examples_that_need_root_are_parsed(line, monkeypatch):
    parsed(line, monkeypatch)


def parsed(line, monkeypatch):
    """Parse a command that changes a machine, but do not run it."""
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


def test_readme_is_read_in_two_minutes():
    assert len(README.split()) <= 700


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_ci_runs_exactly_the_test_command_of_the_readme():
    (command,) = [line for line in README.splitlines() if "requirements-test.txt" in line]
    assert "requirements-test.txt' README.md" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert command.endswith("-m pytest -n auto")


@pytest.mark.parametrize(
    "document",
    [
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


DOCS = ROOT / "hybridsim" / "docs"
PAGES = sorted(page for part in ("design", "model") for page in (DOCS / part).glob("*.md"))
SECTIONS = [
    (number, page)
    for page in PAGES
    if page.parent.name in ("design", "model")
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


def test_contributing_contains_the_test_command_of_the_readme():
    (command,) = [line for line in README.splitlines() if "requirements-test.txt" in line]
    assert command in (ROOT / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_the_changelog_has_an_entry_for_this_version():
    text = (ROOT / "hybridsim" / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## {hybridsim.__version__}" in text
