"""`hybridsim catalog` lists the names that a scenario may use, and the source of each value."""

import json
import shutil

import pytest
from click.testing import CliRunner

from hybridsim.cli import cli
from hybridsim.foundation.errors import ScenarioError, UsageError
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


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ('"assumed"', '"guessed"', "'guessed' is none of the marks read, measured, fitted"),
        (
            '"1920GB", "read", "ssd_datasheets.csv"',
            '"1920GB", "read", ""',
            "capacity: 'read' needs a source",
        ),
        ("\nflush ", "\nflushh ", "flushh"),
    ],
)
def test_an_entry_that_no_scenario_could_use_is_not_shown(
    tmp_path, monkeypatch, before, after, problem
):
    (source,) = catalog.FOLDER.glob("ssd/samsung-pm9a3-1920gb.toml")
    text = source.read_text(encoding="utf-8")
    assert before in text
    shutil.copytree(catalog.FOLDER, tmp_path / "catalog")
    place = tmp_path / "catalog" / "ssd" / "mine.toml"
    place.write_text(text.replace(before, after), encoding="utf-8")
    monkeypatch.setattr(catalog, "FOLDER", tmp_path / "catalog")
    with pytest.raises(ScenarioError, match=problem):
        run("show", "mine")
