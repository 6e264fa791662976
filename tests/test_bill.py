"""The cost of a replayed machine, and the savings of its cache."""

from dataclasses import replace

import pytest
from html_documents import replayed
from test_html import Parsed

from hybridsim.answers.advice.alternatives import bill, pricing
from hybridsim.answers.result import plain
from hybridsim.foundation.wording import money, ranged_money
from hybridsim.scenario import Scenario
from hybridsim.show.html import of
from hybridsim.show.terminal import render
from hybridsim.studies.candidates import Candidate, purchase

SITE = """
[backing]
drive = "hgst-ultrastar-7k8"
members = 4
[cache]
drive = "samsung-pm9a3-1920gb"
size = "1GiB"
"""
PRICES = '[price]\ndate = "2026-11"\ncurrency = "EUR"\nhdd_per_gb = 0.02\nssd_per_gb = 0.10\n'


def site(tmp_path, text):
    file = tmp_path / "site.toml"
    file.write_text(text)
    return Scenario.load(file)


def with_bill(scenario):
    replay = replayed(name="db01.blk")
    costs = bill(scenario, replay)
    return replace(replay, cost=None if costs is None else costs.to_dict()), costs


def test_the_bill_counts_whole_drives_or_the_part_that_the_cache_uses(tmp_path):
    replay, costs = with_bill(site(tmp_path, SITE + PRICES))
    assert (costs.disks, costs.disks_cost) == ("4 x 8 TB", pytest.approx(4 * 8000 * 0.02, rel=1e-3))
    assert (costs.ssds, costs.ssds_cost) == ("1 x 1.92 TB", pytest.approx(1920 * 0.1, rel=1e-3))
    assert costs.ssd_cost == pytest.approx(16384 * 65536 / 1e9 * 0.1)
    before, after = (replay.phases[name].figures.reads.mean_ns for name in ("none", "warm"))
    assert costs.per_saved_ms == pytest.approx(costs.ssd_cost / ((before - after) / 1e6))


def test_the_cost_of_a_saving_has_the_interval_of_the_saving(tmp_path):
    costs = with_bill(site(tmp_path, SITE + PRICES))[1]
    low, high = costs.per_saved_range
    assert low < costs.per_saved_ms < high
    assert low == pytest.approx(costs.ssd_cost / (costs.saved.high / 1e6))
    assert costs.saved.low < costs.saved_ns < costs.saved.high
    unsure = replace(costs, saved=replace(costs.saved, low=-1.0))
    assert unsure.per_saved_range == (low, None)
    assert ranged_money(2.0, unsure.per_saved_range, "EUR").endswith(" or more)")


def test_write_back_is_billed_as_a_mirror_as_advise_does(tmp_path):
    scenario = site(tmp_path, SITE + PRICES).with_options(cache="bcache", cache_mode="write-back")
    costs = with_bill(scenario)[1]
    bought = purchase(Candidate(scenario), pricing(scenario))
    assert (costs.ssds, costs.ssds_cost) == ("2 x 1.92 TB", bought.cost)
    assert costs.ssd_cost == pytest.approx(2 * 16384 * 65536 / 1e9 * 0.1)


def test_the_report_shows_costs_and_the_source_of_the_prices(tmp_path):
    replay, costs = with_bill(site(tmp_path, SITE + PRICES))
    page = of(plain(replay.to_dict()))
    assert "Cost" in Parsed(page).headings
    assert f"<td>{money(costs.disks_cost + costs.ssds_cost, 'EUR')}</td>" in page
    assert (
        "0.02 EUR per GB of disk and 0.1 EUR per GB of SSD in 2026-11: prices of the scenario"
        in page
    )
    words = " ".join(render(replay, details=True).split())
    known = ranged_money(costs.per_saved_ms, costs.per_saved_range, "EUR")
    assert f"{known} per ms saved of reads · prices of 2026-11" in words


def test_catalog_prices_appear_in_the_report_only(tmp_path):
    replay, costs = with_bill(site(tmp_path, SITE))
    assert not costs.is_own
    page = of(plain(replay.to_dict()))
    assert "prices of the catalog, as the scenario has no [price]" in page
    assert "per ms saved" not in render(replay, details=True)


def test_no_costs_are_shown_for_unknown_prices_or_without_a_cache(tmp_path):
    cloud = site(tmp_path, '[backing]\ndrive = "aws-gp3"\nmembers = 1\nkind = "single"\n')
    assert with_bill(cloud)[1] is None
    scenario = site(tmp_path, SITE + PRICES)
    assert bill(scenario, replayed(pages=0)) is None


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        (1312, "$1,312"),
        (0.25, "$0.25"),
        (0.0047, "$0.0047"),
        (0.00001, "<$0.0001"),
        (0, "$0.00"),
        (None, "–"),
    ],
)
def test_amounts_are_rounded_for_display(amount, words):
    assert money(amount, "USD") == words
