"""`hybridsim catalog` lists the names that a scenario may use, and the source of each value."""

import json

import pytest
from click.testing import CliRunner

from hybridsim.cli import cli
from hybridsim.foundation.errors import UsageError
from hybridsim.storage import catalog


def run(*words):
    return CliRunner().invoke(cli, ["catalog", *words], catch_exceptions=False)


def test_every_entry_is_listed():
    listed = run().output
    for name in catalog.names():
        assert name in listed


def test_the_list_fits_a_narrow_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    lines = run().output.splitlines()
    assert max(map(len, lines)) <= 60
    assert set(catalog.names()) <= set(lines)


@pytest.mark.parametrize("kind", catalog.KINDS)
def test_a_kind_argument_lists_only_entries_of_that_kind(kind):
    document = json.loads(run("--kind", kind, "--json").output)
    assert [entry["name"] for entry in document["drives"]] == catalog.names(kind)


def test_the_error_for_a_mistyped_kind_suggests_the_right_one():
    with pytest.raises(UsageError, match="did you mean 'ssd'"):
        CliRunner().invoke(cli, ["catalog", "--kind", "sdd"], catch_exceptions=False)


@pytest.mark.parametrize("name", catalog.names())
def test_an_entry_is_shown_with_reliability_marks_and_sources(name):
    shown = run("show", name).output
    document = json.loads(run("show", "--json", name).output)
    assert document["values"]
    for key, row in catalog.load(name).rows.items():
        assert f"{row.mark:<8}  {row.source}".rstrip() in shown
        assert document["values"][key] == row._asdict()


def test_long_amounts_are_rounded_in_the_list_and_exact_where_one_is_shown():
    listed = run().output
    assert "9.18GB" in listed
    assert "read 77.9us" in listed
    assert max(map(len, listed.splitlines())) <= 120
    assert "9184760832B" in run("show", "quantum-atlas-10k").output
