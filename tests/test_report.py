"""The report for people and that for programs: both complete, both of the same figures."""

import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from fakes import SCENARIO, TRACE, Load, collected, machines, result

from hybridsim.answers.forecast import Forecast, is_certain
from hybridsim.answers.metrics import Collector, Counters
from hybridsim.answers.requirements import parse_all
from hybridsim.answers.result import Warning, conclude
from hybridsim.foundation.codes import Reason
from hybridsim.foundation.wording import (
    LAST_NS,
    NONE,
    answered,
    lasting,
    latency,
    percent,
    span,
    times,
)
from hybridsim.show.curve import draw
from hybridsim.show.terminal import render, write

SHORT = Load(seconds=300, iops=200)
CASES = {
    "warm": SHORT._replace(hit_ratio=lambda share: 0.93 * (1 - np.exp(-share * 20))),
    "rising": SHORT._replace(hit_ratio=lambda share: share),
    "useless": SHORT._replace(hit_ratio=lambda share: 0 * share, misses={Reason.COLD: 1}),
    "saturated": SHORT._replace(backlog_ns_per_s=50_000_000),
    "only writes": SHORT._replace(writes=1.0),
    "only reads": SHORT._replace(writes=0.0),
    "very short": SHORT._replace(seconds=1, iops=30),
    "one request": SHORT._replace(seconds=1, iops=1),
}
MODES = ("open", "closed", "think")


def columns(series):
    """Return all columns of the machine with the cache, those by name too."""
    for name, values in series.items():
        if name != "none":
            yield from values.values() if isinstance(values, dict) else [values]


@pytest.fixture(scope="module", params=[(case, mode) for case in CASES for mode in MODES])
def found(request):
    case, mode = request.param
    return result(CASES[case], scenario={**SCENARIO, "mode": mode})


@pytest.mark.parametrize("width", [80, 120])
def test_every_report_fits_and_holds_only_numbers(found, width):
    text = render(found, width=width, details=True)
    assert max(len(line) for line in text.splitlines()) <= width
    assert not re.search(r"\b(nan|inf|None)\b", text)
    assert text.index("VERDICT") < text.index("reads  ")
    assert "\x1b" not in text


def test_every_report_can_be_ascii(found):
    text = render(found, ascii_only=True, details=True)
    assert text.isascii()
    assert "?" not in text.replace("mean?", "")
    assert len(text.splitlines()) == len(render(found, details=True).splitlines())


def test_every_json_is_valid_and_adds_up(found):
    text = found.to_json()
    data = json.loads(text, parse_constant=lambda constant: pytest.fail(constant))
    assert data["schema"] == "hybridsim.result/1"
    assert data["verdict"]["answer"] in ("yes", "no", "unsure")
    whole = data["phases"]["whole"]["read"]
    assert sum(data["bypass"].values()) + whole["hits"]["n"] == whole["n"]
    assert sum(data["series"]["reads"]) == whole["n"]
    for name in ("read", "write", "other"):
        cold, warm = (data["phases"][phase][name] for phase in ("cold", "warm"))
        assert cold["n"] + warm["n"] == data["phases"]["whole"][name]["n"]
        assert sum(warm["bins"].values()) == warm["n"]
    lengths = {len(values) for values in columns(data["series"])}
    assert lengths == {len(data["series"]["start_ns"])}
    assert text == found.to_json()


def test_in_open_loop_both_machines_are_compared_over_the_same_requests(found):
    if found.scenario["mode"] == "open":
        for name, other in (("none", "warm"), ("none_cold", "cold"), ("none_whole", "whole")):
            plain, cached = found.phases[name].figures, found.phases[other].figures
            assert plain.reads.count == cached.reads.count
            assert plain.writes.count == cached.writes.count


def test_a_warm_report_reads_like_this():
    warnings = [Warning("drops", "1,204 events were dropped.", "See `hybridsim explain drops`.")]
    text = render(result(CASES["warm"], warnings=warnings, seed=7), details=True)
    lines = text.splitlines()
    head = "trace        db01.blk · 60.0 k requests · 1h · 70% reads · touches 812 GiB"
    assert lines[lines.index(head) + 1].strip() == "⚠ 1 warning: see `notes`"
    note = "⚠ 1,204 events were dropped. (See `hybridsim explain drops`.)"
    assert next(line for line in lines if line.startswith("notes")).endswith(note)
    assert lines[0].startswith("VERDICT      Yes. Use this cache")
    assert "gain         A request takes" in text
    for words in (
        "▲ warm", "50% after", "steady at 93%", "no cache", "cold < ", "first touch", "rated life",
        "seek 50%", "seed 7", "hybridsim explain WORD",
    ):  # fmt: skip
        assert words in text, words


ORDER = ("VERDICT", "gain", "cost", "risks", "assumed", "next")


@pytest.mark.parametrize("width", [40, 72, 80, 120])
def test_the_first_screen_answers_in_order_and_fits(found, width):
    lines = render(found, width=width).splitlines()
    assert sum(max(-(-len(line) // width), 1) for line in lines) <= (24 if width > 40 else 40)
    heads = [line.split()[0].lower() for line in lines if line and line[0] != " "]
    places = [heads.index(label.lower()) for label in ORDER]
    assert places == sorted(places)
    commands = ("  sudo ", "  hybridsim ")
    assert all(len(line) <= width for line in lines if not line.startswith(commands))
    assert "--details" in "".join(lines)


@pytest.mark.parametrize(
    ("answer", "low", "high", "words"),
    [("yes", 1.3, 2.0, "Yes."), ("yes", 0.9, 3.0, "Probably yes."), ("no", 0.9, 1.1, "No."),
     ("no", 0.7, 1.5, "Probably not."), ("unsure", 0.5, 3.0, "Can't say yet.")],
)  # fmt: skip
def test_an_answer_is_worded_by_its_interval(answer, low, high, words):
    assert answered(answer, is_certain(answer, low, high)) == words


def test_the_first_screen_says_that_an_answer_is_only_probable():
    found = result(CASES["warm"])
    unlikely = replace(found, verdict=replace(found.verdict, answer="yes", is_certain=False))
    assert render(unlikely).startswith("VERDICT      Probably yes.")


def test_the_first_screen_states_gain_with_its_interval_price_risks_and_assumptions():
    one = result(CASES["warm"], scenario={**SCENARIO, "cache": "64 GiB", "mode": "open"})
    words = " ".join(render(one).split())
    judged = one.judgement
    assert "Yes. Use this cache: 64 GiB." in words
    assert f"90%: {judged.low:.2f} to {judged.high:.2f}" in words
    assert "The price is unknown" in words
    assert "The drives are models that were not checked against yours." in words
    assert "recorded times" in words
    cost = {
        "is_own": False,
        "ssds": "1 x 1.92 TB",
        "ssds_cost": 151.7,
        "price": {"currency": "USD", "date": "2024/25"},
    }
    words = " ".join(render(replace(one, cost=cost)).split())
    assert "$152 for 1 x 1.92 TB of SSD (prices of the catalog, 2024/25)" in words


def test_a_yes_that_misses_a_requirement_begins_with_that():
    one = result(CASES["warm"]).with_requirements(parse_all(["mean<1us"]))
    words = " ".join(render(one).split())
    assert "VERDICT Not as required. Apart from that: yes. Use this cache" in words
    assert "✗ required: mean<1us" in words


def test_a_machine_that_lost_its_cache_has_its_verdict_with_that():
    one = result(CASES["warm"])
    words = " ".join(render(replace(one, verdict=one.verdict.under("with the SSD dead"))).split())
    assert "VERDICT Yes, with the SSD dead. That is no verdict on the cache itself" in words


@pytest.mark.parametrize(
    ("held", "trend", "is_hinted"), [(100, 1.0, True), (900, 1.0, False), (100, 1.2, False)]
)
def test_a_cache_far_larger_than_what_it_held_is_said_to_be_unless_it_will_fill(
    held, trend, is_hinted
):
    one = result(CASES["warm"], scenario={**SCENARIO, "cache": "64 GiB", "mode": "open"})
    later = Forecast(2.0, 1.5, 2.5, trend, 1.0, None, "yes", 2.0)
    one = replace(one, judgement=replace(one.judgement, forecast=later))
    size, pages = 64 << 30, 1000
    rows = {"time_ns": [0, 1], "pages_present": [0, held]}
    one.cached.counters = Counters(rows)
    one = replace(one, scenario={**one.scenario, "cache_bytes": size, "cache_pages": pages})
    words = " ".join(render(one).split())
    assert ("it held 6.40 GiB at most, so a smaller one may do as well" in words) is is_hinted


def test_long_names_texts_and_commands_do_not_push_answers_off_the_first_screen():
    warnings = [Warning(str(number), "word " * 400, "") for number in range(9)]
    for case in CASES:
        one = result(
            CASES[case],
            trace={**TRACE, "name": "n" * 5000, "arguments": ["a" * 9000]},
            scenario={**SCENARIO, "cache": "c" * 3000, "summary": "s " * 2000},
            warnings=warnings,
        )
        lines = render(one).splitlines()
        assert sum(max(-(-len(line) // 80), 1) for line in lines) <= 24
        labels = [line.split()[0] for line in lines if line and line[0] != " "]
        assert labels == list(ORDER)


def test_a_row_shows_the_figures_of_its_phase():
    one = result(CASES["warm"])
    reads = one.phases["warm"].figures.reads
    row = next(line for line in render(one, details=True).splitlines() if line.startswith("warm  "))
    for number in (reads.mean_ns, reads.percentile(50), reads.percentile(99), reads.max_ns):
        assert latency(number) in row
    assert percent(one.phases["warm"].figures.hit_ratio) in row
    assert percent(one.phases["warm"].utilisation) in row


def test_an_endless_queue_has_no_latency():
    text = render(result(CASES["saturated"]), details=True)
    row = next(line for line in text.splitlines() if line.startswith("no cache  "))
    assert row.split()[-6:] == [NONE] * 5 + ["100%"]
    assert "explain saturated" in text
    assert "--mode think" in text


def test_an_empty_trace_has_a_report_too():
    empty = conclude(TRACE, SCENARIO, Collector(), {}, Collector(), {})
    assert empty.verdict.answer == "no"
    assert "VERDICT" in render(empty)
    assert "VERDICT" in render(empty, details=True)
    data = json.loads(empty.to_json())
    assert {len(values) for values in columns(data["series"])} == {0}


def test_counters_and_descriptions_may_be_missing():
    (cached, _), (plain, _) = machines(SHORT)
    bare = conclude({}, {}, collected(cached), {}, collected(plain), {})
    assert bare.wear is None
    assert "VERDICT" in render(bare)
    assert "VERDICT" in render(bare, details=True)
    json.loads(bare.to_json())


def test_streams_get_what_they_can_show(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    one = result(CASES["warm"])
    for encoding in ("ascii", "latin-1", "utf-8"):
        raw = io.BytesIO()
        with io.TextIOWrapper(raw, encoding=encoding, write_through=True) as stream:
            write(one, stream, details=True)
            text = raw.getvalue().decode(encoding)
        assert text.isascii() == (encoding != "utf-8")
        assert "\x1b" not in text
    assert "\x1b[" in render(one, colour=True)


def test_a_report_ends_its_last_line():
    stream = io.StringIO()
    write(result(CASES["warm"]), stream)
    assert stream.getvalue().endswith("\n")


def test_a_curve_goes_from_the_lower_left_to_the_upper_right():
    rising = np.linspace(0, 1, 50)
    lines = draw(rising, rising, 1.0, 1.0, 20, 4, ascii_only=True)
    assert [line.strip() for line in lines] == ["***", "*******", "*******", "***"] or (
        lines[0].rstrip().endswith("*") and lines[-1].startswith("*")
    )
    braille = draw(rising, rising, 1.0, 1.0, 20, 4, ascii_only=False)
    assert len(braille) == 4
    assert braille[0][-1] > "\u2800"
    assert braille[-1][0] > "\u2800"
    assert draw(rising, rising * 0, 1.0, 0.0, 20, 4, ascii_only=True)[-1] == "*" * 20


def test_figures_are_worded_for_the_eye():
    assert [percent(x) for x in (None, 0, 0.0001, 0.004, 0.0996, 0.5, 0.999, 0.9999, 1)] == [
        NONE, "0%", "<0.1%", "0.4%", "10%", "50%", "99.9%", ">99.9%", "100%",
    ]  # fmt: skip
    assert [times(x) for x in (1.54, 7.04, 23.4)] == ["1.5 times", "7.0 times", "23 times"]
    assert times(233159) == "over 1,000 times"
    assert [latency(x) for x in (None, 1_400_000, LAST_NS)] == [NONE, "1.40 ms", "> 17 s"]
    assert [span(x * 10**9) for x in (8, 720, 5400, 3600)] == ["8 s", "12m", "1h 30m", "1h"]
    assert [lasting(x) for x in (0.5, 5.25, 99)] == [
        "6.0 months",
        "5.2 years",
        "more than 30 years",
    ]


def test_nothing_is_drawn_where_nothing_was_read():
    times = np.array([0.5, 1.5, 2.5, 8.5, 9.5])
    (line,) = draw(times, np.ones(5), end=10.0, top=1.0, width=10, height=1, ascii_only=True)
    assert line == "****   ***"


@pytest.mark.parametrize("mode", MODES)
def test_without_a_cache_the_machine_is_shown_alone(mode):
    matches = result(SHORT, scenario={**SCENARIO, "cache_pages": 0, "mode": mode})
    assert matches.verdict.answer == "unsure"
    assert "The scenario has no cache" in matches.verdict.headline
    text = render(matches, details=True)
    assert "with cache" not in text
    assert "SSD writes" not in text
    assert "--cache page" in text
