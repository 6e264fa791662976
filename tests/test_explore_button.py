"""Every HTML report has a button that leads to the command of `hybridsim explore` for its trace."""

import shlex

import pytest
from click.testing import CliRunner
from html_documents import all_documents

from hybridsim import Scenario
from hybridsim.cli.explore import explore
from hybridsim.cli.replay import replay
from hybridsim.scenario.origin import assignments
from hybridsim.show.html import of
from hybridsim.show.html.sections.shared import explore as section_of_explore

LOAD = "gen:zipf,requests=300,span=16MiB,rate=100"


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    return all_documents(tmp_path_factory.mktemp("documents"))


def commands(document):
    return [each.text for each in section_of_explore(document).blocks]


def parsed(command):
    """Return the parameters of a command of hybridsim explore, as the program reads it."""
    words = shlex.split(command)
    assert words[:2] == ["hybridsim", "explore"]
    return explore.make_context("explore", words[2:]).params


def test_every_report_has_the_button_and_a_command_that_is_understood(documents):
    for name, document in documents.items():
        html = of(document, "hybridsim it")
        assert 'href="#explore"' in html, name
        for command in commands(document):
            assert parsed(command)["html_file"] == "what-if.html"


def about(arguments=("sda.csv",), **scenario):
    machine = {"file": None, "options": [], **scenario}
    return {"schema": "x", "inputs": {"trace": {"arguments": list(arguments)}, "scenario": machine}}


def test_the_command_has_the_trace_and_the_disks_but_leaves_the_cache_to_the_sliders():
    site = Scenario.default().with_options(
        cache="bcache", cache_size="1GiB", cache_mode="write-back", speed=2, mode="think",
        members=6,
    )  # fmt: skip
    site = site.with_values({"cache.drive.like": "samsung-pm883-960gb", "backing.chunk": "128KiB"})
    trace = ("my trace.csv", "--device", "7")
    (command,) = commands(about(trace, options=site.options))
    found = parsed(command)
    assert found["paths"] == ("my trace.csv",)
    assert (found["device"], found["mode"], found["caches"]) == ("7", "think", ())
    made = Scenario.default().with_values(assignments(found["settings"]))
    assert made.cache == Scenario.default().with_values(
        {"cache.drive.like": "samsung-pm883-960gb"}
    ).cache  # fmt: skip
    assert made.backing == site.backing
    assert made.replay.speed == 2


def test_a_scenario_file_and_a_preset_are_kept():
    (command,) = commands(about(file="my site.toml", options=["--preset digitalocean-volume"]))
    found = parsed(command)
    assert (found["scenario_file"], found["preset"]) == ("my site.toml", "digitalocean-volume")


def test_a_fleet_has_a_command_for_each_server_and_a_report_without_a_trace_a_placeholder():
    members = [{"advice": about((name,))} for name in ("a.csv", "b.csv")] + [{"advice": None}]
    fleet = {"schema": "x", "inputs": {"scenario": {}}, "members": members}
    found = [parsed(each) for each in commands(fleet)]
    assert [each["paths"] for each in found] == [("a.csv",), ("b.csv",)]
    assert len({each["html_file"] for each in found}) == 2
    assert parsed(commands({"schema": "x"})[0])["paths"] == ("TRACE",)


def test_the_command_of_a_real_report_runs_as_it_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    replayed = CliRunner().invoke(
        replay, [LOAD, "--cache-size", "2MiB", "--speed", "2", "--html", "r.html"]
    )
    assert replayed.exit_code == 0, replayed.output
    html = (tmp_path / "r.html").read_text()
    command = html.split('<div class="command">')[1].split("</pre>")[0].split("<pre")[1]
    words = shlex.split(command.partition(">")[2])
    few = ["--points", "9", "--check", "0", "--cache", "page", "--policy", "lru", "--workers", "1"]
    done = CliRunner().invoke(explore, [*words[2:], *few, "--members", "4", "--load", "1"])
    assert done.exit_code == 0, done.output
    assert "What if?" in (tmp_path / "what-if.html").read_text()
