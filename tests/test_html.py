"""The report as one HTML file: self-contained, safe against its input, equal to the JSON."""

import base64
import hashlib
import json
import re
import zlib
from html.parser import HTMLParser

import pytest
from click.testing import CliRunner
from html_documents import HOSTILE, all_documents, replay_document, replayed
from hypothesis import given
from hypothesis import strategies as st

from hybridsim.cli import cli
from hybridsim.foundation.wording import latency
from hybridsim.show.charts import Axis, Chart, Line
from hybridsim.show.charts.layout import DARK, LIGHT, doublings, linear, logarithmic, stacked
from hybridsim.show.charts.replay import device_time
from hybridsim.show.html import VENDOR, Section, of, page, whole_options
from hybridsim.show.html.drawing import areas, outline, png
from hybridsim.show.terminal import render


class Parsed(HTMLParser):
    """Parser of tags with attributes, texts of headings, and scripts by id."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.scripts, self.headings, self._open = [], {}, [], None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._open = (tag, dict(attributes))

    def handle_data(self, data):
        if self._open and self._open[0] in ("script", "style"):
            key = self._open[1].get("id", self._open[0])
            self.scripts[key] = self.scripts.get(key, "") + data
        elif self._open and self._open[0] == "h2":
            self.headings.append(data)

    def handle_endtag(self, tag):
        self._open = None

    def island(self, name):
        return json.loads(zlib.decompress(base64.b64decode(self.scripts[name])))


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    documents = all_documents(tmp_path_factory.mktemp("runs"))
    return {name: (each, of(each, "hybridsim it")) for name, each in documents.items()}


@pytest.fixture(scope="module", params=["replay", "think", "no cache", "size", "bench", "compare"])
def report(request, pages):
    return pages[request.param]


def test_the_page_loads_nothing_and_its_policy_allows_only_its_own_scripts(report):
    _, text = report
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\(", text)
    parsed = Parsed(text)
    for tag, attributes in parsed.tags:
        assert tag not in ("link", "iframe", "object", "base", "form")
        assert not {name for name in attributes if name.startswith("on") or name == "style"}
        assert attributes.get("src") is None
        assert attributes.get("href", "#").startswith(("#", "data:image/png;base64,"))
    (policy,) = [each["content"] for tag, each in parsed.tags if "http-equiv" in each]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for what in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(parsed.scripts[what].encode()).digest()).decode()
        assert f"{what}-src 'sha256-{digest}'" in policy


def test_the_embedded_json_equals_the_json_output(report):
    document, text = report
    assert Parsed(text).island("result") == json.loads(json.dumps(document))


def test_the_visible_text_contains_no_nan_none_or_undefined(report):
    _, text = report
    visible = re.sub(r"<(script|style).*?</\1>", "", text, flags=re.DOTALL)
    assert not re.search(r"\b(nan|NaN|inf|None|undefined)\b", visible)


def test_every_chart_has_an_element_an_svg_and_values(report):
    _, text = report
    parsed = Parsed(text)
    places = [each["data-chart"] for tag, each in parsed.tags if "data-chart" in each]
    charts = parsed.island("charts")
    assert places == [each["gid"] for each in charts]
    assert len(set(places)) == len(places)
    ids = [each["id"] for _, each in parsed.tags if "id" in each]
    assert len(set(ids)) == len(ids)
    assert sum(tag == "svg" for tag, _ in parsed.tags) >= len(places)
    for chart in charts:
        for line in chart["lines"]:
            assert len(line["y"]) == len(chart["xs"][line["x"]])
            assert any(each is not None for each in line["y"])


def test_the_page_is_small_enough_for_an_email(report):
    _, text = report
    assert len(text.encode()) < 300_000


def points_of(path):
    """Return the points of a path of M, l, h and v commands."""
    at, points = (0.0, 0.0), []
    for command, rest in re.findall("([Mlhvz])([^Mlhvz]*)", path):
        numbers = [float(each) for each in re.findall(r"-?(?:\d+\.?\d*|\.\d+)", rest)]
        step = 1 if command in "hv" else 2
        for first in range(0, len(numbers), step):
            move = numbers[first : first + step]
            if command == "M":
                at = tuple(move)
            else:
                right = 0 if command == "v" else move[0]
                at = (at[0] + right, at[1] + (0 if command == "h" else move[-1]))
            points.append(at)
    return points


@given(st.lists(st.integers(0, 2000), min_size=2, max_size=60))
def test_the_svg_line_passes_every_point_within_a_visible_tolerance(tenths):
    points = [(58 + 1.4 * at, each / 10) for at, each in enumerate(tenths)]
    drawn = points_of(outline(points, False))
    assert drawn[0] == pytest.approx(points[0], abs=0.06)
    assert drawn[-1] == pytest.approx(points[-1], abs=0.06)
    for x, y in points:
        assert min(map(beside, drawn, drawn[1:], [(x, y)] * len(drawn))) < 0.5


def beside(start, end, point):
    """Return the distance of a point from a line segment."""
    start, end, point = (complex(*each) for each in (start, end, point))
    along = end - start
    share = ((point - start) / along).real if along else 0.0
    return abs(start + min(max(share, 0), 1) * along - point)


def test_the_svg_line_has_gaps_at_unknown_values():
    assert outline([(0, 1), (5, 2), None, (9, 2), (9, 7)], False) == "M0 1l5 1M9 2v5"
    assert outline([(0, 1), (5, 2.5), (10, 4)], False) == "M0 1l10 3"
    assert outline([(0, 1), (5, 2.5)], True) == "M0 1h5v1.5"
    assert areas([(0, 5), (4, 4.5), None], 9) == ["M0 5l4-.5v4.5h-4z"]


def test_hostile_names_are_escaped(pages):
    _, text = pages["replay"]
    assert HOSTILE in Parsed(text).island("result")["inputs"]["trace"]["name"]
    assert text.count("<img") == 0
    assert "</script><img" not in text
    assert "{{ 7 * 7 }}" in text  # template syntax in a name is not evaluated
    assert len(re.findall("<script", text)) == 3


SECTIONS = {
    "replay": ["Verdict", "Warm-up", "Latency", "Where the time goes", "Why not from the SSD",
               "SSD wear", "The trace", "What if?", "How to reproduce"],
    "no cache": ["Verdict", "Latency", "Where the time goes", "The trace", "What if?",
                 "How to reproduce"],
    "size": ["Answer", "Other sizes", "The trace", "What if?", "How to reproduce"],
    "bench": ["Maximum rates", "By queue depth", "What if?", "How to reproduce"],
    "compare": ["Agreement", "Over time", "What if?", "How to reproduce"],
}  # fmt: skip


@pytest.mark.parametrize("name", SECTIONS)
def test_a_report_has_the_sections_for_its_data(name, pages):
    assert Parsed(pages[name][1]).headings == SECTIONS[name]


def series(chart, gid):
    (line,) = [each for each in chart["lines"] if each["gid"] == gid]
    return line["y"]


def test_charts_show_the_values_of_the_json(pages):
    document, text = pages["replay"]
    charts = {each["gid"]: each for each in Parsed(text).island("charts")}
    expected = document["series"]
    assert series(charts["hit-ratio"], "hit") == pytest.approx(expected["hit"], rel=1e-5)
    for name in ("mean", "p50", "p99"):
        assert series(charts["latency"], name) == pytest.approx(expected[f"{name}_ns"], rel=1e-5)
    size = document["inputs"]["scenario"]["cache_bytes"] / 16384
    held = [each * size for each in expected["occupancy_pages"]]
    assert series(charts["occupancy"], "occupancy") == pytest.approx(held, rel=1e-5)
    for phase, role in (("none", "none"), ("cold", "cold"), ("warm", "warm")):
        read = document["phases"][phase]["read"]
        y = series(charts["cdf-read"], f"cdf-read-{role}")
        (x,) = {tuple(charts["cdf-read"]["xs"][line["x"]]) for line in charts["cdf-read"]["lines"]
                if line["gid"] == f"cdf-read-{role}"}  # fmt: skip
        assert y[-1] == 1
        half = next(a for a, b in zip(x, y) if b >= 0.5)
        assert half == pytest.approx(read["p"]["50"], rel=1e-5)
    (spent,) = [charts["disk-time-series"]]
    busy = [sum(each) for each in zip(*(line["y"] for line in spent["lines"]))]
    assert busy == pytest.approx(expected["disk_utilisation"], rel=1e-4)


def test_device_time_per_request_is_total_device_time_divided_by_requests():
    document = replay_document()
    bars = device_time(document)
    assert bars.parts[-2:] == ["queue of the disk", "SSD"]
    for (_, parts), phase in zip(bars.rows, ("none", "cold", "warm"), strict=True):
        figures = document["phases"][phase]
        at_disks = sum(figures["disk_time_ns"].values()) + figures["disk_queue_ns"]
        requests = figures["read"]["n"] + figures["write"]["n"] + figures["other"]["n"]
        assert sum(parts) == pytest.approx((at_disks + figures["ssd_time_ns"]) / requests)
        assert parts[-2] == pytest.approx(figures["disk_queue_ns"] / requests)


def test_reasons_over_time_add_up_to_all_reads_that_missed():
    counts = replay_document()["series"]
    missed = [round(n * (1 - hit)) for n, hit in zip(counts["reads"], counts["hit"])]
    assert [sum(each) for each in zip(*counts["reasons"].values())] == missed


def test_text_json_and_html_of_one_run_agree(pages):
    document, text = pages["replay"]
    words = " ".join(render(replayed(), details=True).split())
    headline = document["verdict"]["headline"]
    assert headline in words
    assert headline in text
    for phase in ("none", "cold", "warm"):
        read = document["phases"][phase]["read"]
        for value in (read["mean_ns"], read["p"]["99"], read["max_ns"]):
            assert latency(value) in words
            assert f"<td>{latency(value)}</td>" in text


def test_no_line_of_prose_ends_within_an_option_and_its_text_stays_escaped():
    assert whole_options("on both (--mode think), <b>") == (
        'on both (<span class="whole">--mode think</span>), &lt;b&gt;'
    )


def test_a_page_can_be_built_from_custom_sections():
    chart = Chart("mine", "Mine", Axis("x"), Axis("y"), [Line("l", "", [1, 2, 3], [1, None, 3])])
    text = page("Title & more", [Section("own", "Own", [chart])])
    parsed = Parsed(text)
    assert "Title &amp; more" in text
    assert parsed.island("charts")[0]["lines"][0]["y"] == [1, None, 3]
    assert "result" not in parsed.scripts


def test_vendored_files_have_the_published_checksums():
    lines = (VENDOR / "SHA256SUMS").read_text().splitlines()
    assert len(lines) == 3
    for line in lines:
        digest, name = line.split()
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest
    assert "MIT License" in (VENDOR / "LICENSE.uPlot").read_text()


def test_pages_with_charts_contain_the_licence(pages):
    assert "Copyright (c) 2022 Leon Sorokin" in pages["bench"][1]


def test_an_unwritable_report_path_gives_one_error(tmp_path):
    for name in (str(tmp_path / "none" / "a.html"), str(tmp_path), ""):
        outcome = CliRunner().invoke(cli, ["demo", "--html", name])
        assert "cannot write" in str(outcome.exception)


# Components.


def test_a_heat_map_is_a_png_with_one_pixel_per_cell():
    data = png([[0, 1], [5, 0], [0, 9]])
    assert data.startswith(b"\x89PNG")
    at = data.index(b"IDAT")
    rows = zlib.decompress(data[at + 4 : at + 4 + int.from_bytes(data[at - 4 : at])])
    assert len(rows) == 2 * (1 + 3)
    top, bottom = rows[1:4], rows[5:8]
    assert [bool(each) for each in top] == [True, False, True]
    assert [bool(each) for each in bottom] == [False, True, False]
    assert top[2] > bottom[1] > top[0] > 0


@pytest.mark.parametrize(
    ("computed", "expected"),
    [
        (linear(0, 1), [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (linear(0, 226), [0, 50, 100, 150, 200]),
        (linear(0, 5.3), [0, 1, 2, 3, 4, 5]),  # by twos there would be three
        (linear(0, 7), [0, 2, 4, 6]),
        (linear(3, 3), [3]),
        (logarithmic(0.08, 40), [0.1, 1, 10]),
        (logarithmic(1, 3), [1, 1.5, 2, 3]),
        (doublings(1, 16), [1, 2, 4, 8, 16]),
        (doublings(1.1, 1.9), [1.2, 1.4, 1.6, 1.8]),
    ],
)
def test_ticks_are_round_numbers(computed, expected):
    assert computed == expected


def test_stacked_lines_are_cumulative_and_end_at_unknown_values():
    lines = [Line("a", "a", [1, 2], [1, None]), Line("b", "b", [1, 2], [2, 2])]
    chart = stacked(Chart("s", "s", Axis("x"), Axis("y"), lines, is_stacked=True))
    assert [line.y for line in chart.lines] == [[1, None], [3, None]]


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(("palette", "ground"), [(LIGHT, "#ffffff"), (DARK, "#14171b")])
def test_line_colours_have_enough_contrast(palette, ground):
    """WCAG 2.1, 1.4.11: graphics have a contrast of 3 to 1 or nearly so."""
    for colour in palette:
        light, dark = sorted((luminance(colour), luminance(ground)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 2.8, colour
