"""Shell completion: the candidates that click returns to the shell."""

import os
import subprocess
import sys

import click
import pytest
from click.exceptions import BadParameter
from click.shell_completion import BashComplete
from click.testing import CliRunner

from hybridsim.cli import COMMANDS, cli
from hybridsim.cli.arguments import CACHE_MODES, CacheMode
from hybridsim.cli.completion import SHELLS, VALUES, VARIABLE
from hybridsim.storage import catalog
from hybridsim.traces.formats import FORMATS


def offered(line):
    """Return the candidates for the last word of a line."""
    *words, incomplete = line.split(" ")
    completions = BashComplete(cli, {}, "hybridsim", VARIABLE).get_completions(
        words[1:], incomplete
    )
    return [(each.type, each.value) for each in completions]


def values(line):
    return [value for kind, value in offered(line) if kind == "plain"]


def test_commands_are_completed():
    assert values("hybridsim ") == list(COMMANDS)
    assert values("hybridsim re") == ["replay"]
    assert "convert" in values("hybridsim trace ")


def test_options_are_completed():
    assert values("hybridsim replay --cache-m") == ["--cache-members", "--cache-mode"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("hybridsim replay a.csv --cache o", ["open-cas"]),
        ("hybridsim replay a.csv --replacement s", ["slru", "s3-fifo", "sieve"]),
        ("hybridsim hits a.csv --replacement lru,s3", ["lru,s3-fifo"]),
        ("hybridsim trace info --format ms", ["msr"]),
        ("hybridsim trace gen zi", ["zipf"]),
        ("hybridsim catalog show hgst", ["hgst-ultrastar-7k8"]),
        ("hybridsim catalog --kind ", list(catalog.KINDS)),
        ("hybridsim explain addr", ["address map"]),
        ("hybridsim schema re", ["recording", "result"]),
        ("hybridsim sweep a.csv --preset ", catalog.systems()),
        ("hybridsim sweep a.csv --kind p", ["pareto"]),
    ],
)
def test_values_are_completed(line, expected):
    assert values(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        "replay sd",
        "replay a.csv --scenario ",
        "trace info ",
        "compare real.json ",
        "size a --json ",
    ],
)
def test_file_names_are_completed_by_the_shell(line):
    ((kind, _),) = offered(f"hybridsim {line}")
    assert kind == "file"


def parameters(command):
    yield from ((command, each) for each in command.params)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from parameters(command.get_command(context, name))


def test_every_completed_value_list_belongs_to_a_parameter():
    """The value list of a renamed parameter would never be used."""
    known = {
        name
        for command, each in parameters(cli)
        for name in (each.name, f"{command.name} {each.name}")
    }
    assert known >= VALUES.keys()
    assert list(VALUES["format"]) == list(FORMATS)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_completion_script_is_printed(shell):
    done = CliRunner().invoke(cli, ["completion", shell])
    assert done.exit_code == 0
    assert VARIABLE in done.output


def test_completion_imports_no_heavy_packages():
    program = (
        "import atexit, sys; sys.argv = ['hybridsim']\n"
        "heavy = {'numpy', 'pydantic', 'numba'}\n"
        "atexit.register(lambda: print(sorted(heavy & set(sys.modules))))\n"
        "from hybridsim.cli import main; main()"
    )
    asked = {"COMP_WORDS": "hybridsim replay --format o", "COMP_CWORD": "3"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | asked | {VARIABLE: "bash_complete"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["plain,oracle-general", "[]"], done.stderr


@pytest.mark.parametrize(
    ("spelling", "mode"),
    [
        ("write-back", "write-back"),
        ("writeback", "write-back"),
        ("writethrough", "write-through"),
        ("writearound", "write-around"),
        ("read-only", "read-only"),
    ],
)
def test_modes_of_caches_are_also_taken_as_the_kernel_spells_them(spelling, mode):
    assert CacheMode(CACHE_MODES).convert(spelling, None, None) == mode


def test_an_unknown_mode_of_a_cache_is_refused_with_the_list():
    with pytest.raises(BadParameter, match="'writeboth' is not one of 'read-only'"):
        CacheMode(CACHE_MODES).convert("writeboth", None, None)
