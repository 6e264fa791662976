"""A verdict of no stands beside what other caches would gain on the same requests."""

import dataclasses
import shlex

import pytest
from click.testing import CliRunner

from hybridsim import Scenario, Trace, replay
from hybridsim.answers.verdict import Step, beside
from hybridsim.cli import cli
from hybridsim.studies.others import with_others
from hybridsim.studies.runs import Alone

WRITES = "gen:random,span=1GiB,read=10%,rate=60,requests=3000"
SITE = Scenario.default().with_options(cache_size="32MiB")


def tried(load, site=SITE):
    """The result of a replay, and of others after a no."""
    trace, alone = Trace.read(load), Alone()
    result = replay(trace, site, alone=alone)
    return trace, result, with_others(result, trace, site, alone)


@pytest.fixture(scope="module")
def refused():
    trace, result, with_them = tried(WRITES)
    assert result.verdict.answer == "no"
    return trace, result, with_them


def test_after_a_no_write_back_and_the_size_of_the_knee_are_tried(refused):
    _, result, with_them = refused
    assert not result.others
    assert {each.mode for each in with_them.others} == {"write-through", "write-back"}
    sizes = {(each.mode, each.size_bytes) for each in with_them.others}
    assert ("write-back", 32 << 20) in sizes
    assert [mode for mode, size in sizes if size != 32 << 20].count("write-through") == 1
    assert len(sizes) == 3


def test_in_write_back_one_has_room_for_all_written_data(refused):
    trace, _, with_them = refused
    summary = trace.summary()
    least = min(summary.writes << 16, summary.footprint_bytes)  # each write takes a page of 64 KiB
    largest = max(with_them.others, key=lambda each: each.size_bytes)
    assert largest.mode == "write-back"
    assert largest.size_bytes >= least > 32 << 20


def test_their_figures_are_those_of_their_own_replay(refused):
    trace, _, with_them = refused
    for each in with_them.others:
        options = dict(word.split() for word in each.options)
        site = SITE.with_options(
            mode=options["--mode"], cache_size=options["--cache-size"],
            cache_mode=options.get("--cache-mode"),
        )  # fmt: skip
        own = replay(trace, site)
        assert own.verdict.answer == each.answer
        judged = own.judgement
        assert (judged.expected, judged.low, judged.high) == (each.gain, each.low, each.high)


def test_the_verdict_names_them(refused):
    _, result, with_them = refused
    verdict = with_them.verdict
    assert verdict.answer == "no"
    assert verdict.action.startswith(result.verdict.action)
    assert "Tried beside it: write-back: gain " in verdict.action
    assert verdict.reasons[0] in verdict.action


def test_the_first_step_is_towards_the_best_of_them(refused):
    _, result, with_them = refused
    low, high, unsure = (
        dataclasses.replace(one, answer=answer, low=low, installable=True)
        for one, answer, low in zip(with_them.others, ("yes", "yes", "unsure"), (1.2, 1.4, 1.9))
    )
    verdict = beside(result.verdict, [low, high, unsure], result.scenario, result.trace, "time")
    assert verdict.advice[0].command.endswith(" ".join(high.options))
    assert verdict.advice[1:] == result.verdict.advice
    verdict = beside(result.verdict, [high], result.scenario, result.trace, "p99")
    assert verdict.advice[0].command.endswith(" --goal p99")


def test_if_no_product_has_the_best_of_them_the_first_step_is_a_search_of_those_that_one_has(
    refused,
):
    _, result, with_them = refused
    assert not any(each.installable for each in with_them.others)  # a page cache
    good = [dataclasses.replace(each, answer="yes") for each in with_them.others]
    verdict = beside(result.verdict, good, result.scenario, result.trace, "p99")
    assert "can be installed" in verdict.advice[0].text
    assert verdict.advice[0].command == f"hybridsim advise {WRITES} --goal p99"


def test_where_none_is_worth_it_the_verdict_says_so(refused):
    _, result, with_them = refused
    none = [dataclasses.replace(each, answer="no") for each in with_them.others]
    verdict = beside(result.verdict, none, result.scenario, result.trace, "time")
    assert "None of them is worth it for sure." in verdict.action


def test_no_step_is_towards_a_machine_that_was_tried_in_vain():
    load = "gen:sequential,span=8GiB,size=256KiB,read=50%,rate=20,requests=1500"
    _, result, with_them = tried(load)
    towards = "Try write-back"
    assert any(each.text.startswith(towards) for each in result.verdict.advice)
    verdict = with_them.verdict
    search, *others = verdict.advice
    assert search.command == f"hybridsim advise {shlex.quote(load)}"
    assert others == [each for each in result.verdict.advice if not each.text.startswith(towards)]


def test_after_a_yes_nothing_is_tried():
    load = "gen:hot-spot,span=1GiB,hot=1%,share=95%,read=100%,rate=60,requests=4000"
    site = Scenario.default().with_options(cache_size="64MiB", cache_mode="write-back")
    _, result, with_them = tried(load, site)
    assert result.verdict.answer == "yes"
    assert with_them is result


def test_the_command_prints_them():
    words = shlex.split(f"replay {WRITES} --cache-size 32MiB")
    done = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert "Tried beside it" in " ".join(done.output.split())
    text = [line for line in done.output.splitlines() if not line.startswith("  hybridsim ")]
    assert max(map(len, text)) <= 80


def test_where_a_write_through_cache_is_unsure_only_write_back_is_tried():
    trace, result, _ = tried(WRITES)
    unsure = dataclasses.replace(
        result, verdict=dataclasses.replace(result.verdict, answer="unsure")
    )
    with_them = with_others(unsure, trace, SITE, Alone())
    assert {each.mode for each in with_them.others} == {"write-back"}
    assert with_them.verdict.answer == "unsure"
    assert "Tried beside it: write-back: gain " in with_them.verdict.action


def test_an_unsure_verdict_on_reads_alone_tries_nothing():
    trace, result, _ = tried("gen:random,span=1GiB,read=99%,rate=60,requests=3000")
    unsure = dataclasses.replace(
        result, verdict=dataclasses.replace(result.verdict, answer="unsure")
    )
    assert with_others(unsure, trace, SITE, Alone()) is unsure


def test_an_unsure_verdict_first_asks_for_the_longer_capture_if_write_back_is_no_better(refused):
    _, result, with_them = refused
    record = Step("This captures 10m:", "sudo blktrace -d /dev/DISK -w 600 -o longer")
    unsure = dataclasses.replace(result.verdict, answer="unsure", advice=[record])
    none = [dataclasses.replace(each, answer="unsure") for each in with_them.others]
    verdict = beside(unsure, none, result.scenario, result.trace, "time")
    assert verdict.advice[0] is record
    assert verdict.advice[1].command.startswith("hybridsim advise")
    good = [dataclasses.replace(each, answer="yes", installable=True) for each in with_them.others]
    verdict = beside(unsure, good, result.scenario, result.trace, "time")
    assert verdict.advice[0].command.startswith("hybridsim replay")
