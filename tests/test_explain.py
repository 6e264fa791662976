"""Every term of a report has an entry, and a mistyped term suggests the right one."""

import re
import subprocess
import sys

import pytest
from click.testing import CliRunner
from fakes import Load, result

from hybridsim.answers.forecast import (
    LOSS,
    LOSS_BY_FORMULA,
    MUCH,
    NOTHING,
    SURE,
    SURE_TRIED,
    WORTH_IT,
)
from hybridsim.answers.outcome import DISK_TIME
from hybridsim.answers.verdict import judge
from hybridsim.answers.warmup import State
from hybridsim.cli import cli
from hybridsim.foundation.codes import Reason
from hybridsim.foundation.explain import ALIASES, REASONS, TERMS, explain, known_words
from hybridsim.scenario.key_help import named, names
from hybridsim.show.terminal import LABELS, MODES, render


@pytest.mark.parametrize("word", [*LABELS.values(), *MODES.values(), *DISK_TIME, "other", "bins"])
def test_each_label_of_the_report_has_an_entry(word):
    assert explain(word) is not None


@pytest.mark.parametrize("reason", Reason)
def test_each_reason_has_an_entry_by_code_and_by_text(reason):
    name, text = explain(reason.name)
    assert explain(reason.name.lower()) == (name, text)
    if reason in REASONS:
        word = REASONS[reason]
        assert explain(word)[0] == word
        assert name == word or f"`{word}`" in text
        assert reason == Reason.NO_CACHE or REASONS[reason] in TERMS["not from SSD"]


@pytest.mark.parametrize(
    "word",
    [
        *("hit", "miss", "bypass", "page", "promotion", "fill", "read-only", "write-through"),
        *("sequential_cutoff", "warm-up", "t50", "t90", "t95", "steady", "p99", "utilisation"),
        *("saturated", "endurance", "DWPD", "open", "closed", "think", "drops"),
        *("page hits", "request hits", "byte hit ratio", "admitted", "belady"),  # terms of `hits`
    ],
)
def test_technical_terms_have_an_entry(word):
    assert explain(word) is not None


def test_each_alias_names_a_term_and_is_none_itself():
    for alias, word in ALIASES.items():
        assert word in TERMS
        assert alias == alias.casefold()
        assert alias not in TERMS


def test_each_cross_reference_names_an_existing_entry():
    for text in TERMS.values():
        for word in re.findall(r"(?:[Ss]ee|see:) `([^`]+)`", text):
            assert word in TERMS
    advice = judge.__globals__["__file__"]
    with open(advice, encoding="utf-8") as source:
        for word in re.findall(r"hybridsim explain '?([a-z -]+)'?\"", source.read()):
            assert explain(word) is not None


def test_warm_up_states_have_an_entry():
    assert {state.value for state in State} >= {"steady", "rising"}
    assert explain(State.STEADY.value) is not None


def test_the_first_words_of_report_rows_have_an_entry():
    text = render(result(Load(seconds=300)), details=True)
    for line in text.splitlines():
        label = re.match(r"([A-Za-z0-9.]+(?:[ -][A-Za-z0-9]+)*?)(?: <|:|  )", line)
        if label and not line.startswith(("100%", " 50%")):
            assert explain(label[1]) is not None, line


def run(*words):
    return CliRunner().invoke(cli, ["explain", *words], standalone_mode=True)


def test_a_term_of_several_words_is_explained():
    output = run("not", "hot", "enough").output
    assert output.startswith("not hot enough\n")
    assert all(len(line) <= 80 for line in output.splitlines())


def test_without_a_term_the_command_lists_all_terms():
    output = " ".join(run().output.split())
    for word in TERMS:
        assert word in output


def test_the_error_for_a_mistyped_term_suggests_the_right_one():
    error = run("promotoin").exception
    assert "did you mean 'promotion'?" in str(error)
    assert error.exit_code == 2
    assert "lists all terms" in str(run("xyzzy").exception)
    assert len(known_words()) == len(TERMS) + len(ALIASES)


class TestKeys:
    def test_each_key_of_a_scenario_is_explained_with_what_it_takes(self):
        for name in names():
            (tables, key), *_ = named(name)
            assert ".".join([*tables[0].path, key.name]) == name
            assert key.value

    def test_a_key_is_found_without_its_table_and_in_each_kind_that_has_it(self):
        lines = run("sequential-cutoff").output + run("cache.sequential_cutoff").output
        assert "sequential cutoff\n" in lines  # the term
        for kind in ('"none" or "page"', '"bcache"', '"open-cas"'):
            assert f"cache.sequential_cutoff ({kind})\n" in lines

    def test_limits_defaults_and_comments_are_those_of_the_class(self):
        assert run("writeback_percent").output.splitlines() == [
            'cache.writeback_percent ("bcache")',
            "  A key: whole number, ≥ 0, ≤ 40; default 10.",
        ]
        text = run("backing.drive.write_hit_overhead").output
        assert text.splitlines()[0].startswith("backing.drive.write_hit_overhead")
        assert "Of writes that the write cache takes; default: as write_overhead." in text
        assert "needed" in run("rpm").output

    @pytest.mark.parametrize("word", TERMS)
    def test_the_default_of_a_key_is_left_to_its_table(self, word):
        """A number in the entry would be a second place for it."""
        assert not re.search(r"\bdefaults? (is |of )?[\d\"`]", TERMS[word])

    def test_a_mistyped_key_suggests_the_right_one(self):
        assert "did you mean 'replay.speed'?" in str(run("replay.spede").exception)


def test_explain_does_not_import_numpy():
    code = (
        "import sys; from click.testing import CliRunner; from hybridsim.cli import cli;"
        "assert CliRunner().invoke(cli, ['explain', 'hit']).exit_code == 0;"
        "assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_rule_of_the_verdict_is_the_one_that_is_applied():
    """Its limits, and the shares of the range that a forecast may err by, are those of the code."""
    rule = explain("verdict")[1]
    for limit in (WORTH_IT, NOTHING, MUCH):
        assert re.search(rf"(?<![\d.]){limit}(?!\d)", rule)
    for share in (SURE_TRIED, LOSS, LOSS_BY_FORMULA):
        assert re.search(rf"\b{share}\b", rule)
    assert SURE == 0.5
    assert "half of its range" in rule
