"""Notebooks run, their finding holds, their figures agree with it, and their outputs are stored."""

import json
import re

import pytest
from running_notebooks import FOLDER, executed, names, read, texts

pytest.importorskip("nbclient", reason="notebooks need hybridsim[notebooks]")
pytest.importorskip("matplotlib", reason="notebooks need hybridsim[notebooks]")

CELLS_MAX, BYTES_MAX = 10, 400_000
LETTERS_MAX = 100  # of a line of code, so that none is cut on a code host
PLACES = re.compile(r"/(home|root|tmp|Users|work)/|[A-Z]:\\")
# These need machine code that no other test needs: 40 CPU seconds each, once.
LONG = {
    "02-how-large": "two kinds of cache that can be installed",
    "06-validate": "fits an array to a capture; twins of two kinds of cache",
    "08-cloud-volume": "a machine of volumes is another than one of disks",
    "09-maxiq-guide": "jobs of fio on an array with a controller",
    "10-cloud-documents": "jobs of fio on volumes",
}
FIGURES = {  # required gids of lines, by notebook; [] for those of bars, points or pictures
    "01-should-i-cache": {
        "by_skew": ["line-with the SSD", "line-disks alone"], "warm_up": ["hit", "smooth"],
        "latencies": ["cdf-read-none", "cdf-read-warm"],
    },
    "02-how-large": {
        "misses": ["miss-ratio"], "machines": ["line-dm-cache write-back", "line-bcache write-"],
        "sized": ["line-write-through", "line-write-back"],
    },
    "03-warm-up-and-policy": {
        "served": ["dots-steady_ratio", "dots-moves_ratio"], "written": [],
        "yardstick": ["dots-learned", "mean-learned", "dots-lru", "dots-LARC"],
    },
    "04-wear-and-cost": {
        "latency": ["dots-read_ms", "dots-write_ms"], "money": [], "trade": ["points", "front"],
    },
    "05-my-trace": {
        "places": [], "again": ["reuse"], "warm_up": ["hit", "smooth"], "why": [],
    },
    "06-validate": {
        "distributions": ["line-real", "line-simulated"], "on_dm_cache": ["real-", "simulated-"],
        "on_bcache": ["real-", "simulated-"],
    },
    "07-write-your-own-policy": {
        "curves": ["line-second chance", "line-lru", "line-belady", "line-learned"],
        "fills": ["line-lru", "line-learned"],
    },
    "08-cloud-volume": {
        "panels": ["hit"], "left": [], "sizes": ["line-volume alone", "line-with the cache"],
    },
    "09-maxiq-guide": {
        "two": ["dots-published_iops", "dots-simulated_iops"], "warming": ["line-"],
        "table": ["dots-guide_minutes", "dots-rule_minutes"], "advice": [],
    },
    "10-cloud-documents": {
        "clouds": ["dots-published_iops", "dots-simulated_iops"],
        "by_depth": ["line-4 KiB", "line-64 KiB"], "minutes": [],
    },
    "11-restart": {
        "warm_up": ["warm-up-empty", "warm-up-loaded", "warm-up-SSD kept"], "latency": [],
    },
}  # fmt: skip


def test_each_notebook_has_a_test():
    assert names() == sorted(FIGURES)


@pytest.mark.parametrize("name", names())
def test_a_notebook_is_short_and_begins_with_its_finding(name):
    cells = read(name).cells  # it is valid
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(code) <= CELLS_MAX
    assert sum("parameters" in cell["metadata"].get("tags", []) for cell in code) == 1
    assert "finding_holds" in code[-1]["source"]
    assert not any("assert" in cell["source"] for cell in code)
    title, finding = cells[0]["source"].split("\n\n")[:2]
    assert title.startswith("# ")
    assert finding.startswith("**")
    assert finding.endswith("**")
    lines = [line for cell in code for line in cell["source"].splitlines()]
    assert max(map(len, lines)) <= LETTERS_MAX


@pytest.mark.parametrize("name", names())
def test_a_notebook_is_committed_with_its_outputs_and_without_noise(name):
    path = FOLDER / f"{name}.ipynb"
    assert path.stat().st_size < BYTES_MAX
    cells = json.loads(path.read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert not any(cell["execution_count"] for cell in code)
    outputs = [each for cell in code for each in cell["outputs"]]
    assert not any(each["output_type"] == "error" for each in outputs)
    assert not any(each.get("name") == "stderr" for each in outputs)
    pictures = sum("image/png" in each.get("data", {}) for each in outputs)
    assert pictures == len(FIGURES[name])
    assert "the finding holds: True" in "".join(code[-1]["outputs"][-1]["text"])
    shown = "\n".join(texts(read(name)))
    shown += "".join(str(each.get("data", {}).get("text/html")) for each in outputs)
    assert not PLACES.search(shown)
    assert not any("execution" in cell["metadata"] for cell in code)


@pytest.fixture(scope="module")
def outcomes(request):
    chosen = [each.callspec.params["name"] for each in request.session.items
              if "outcomes" in getattr(each, "fixturenames", ())
              and each.path.name == "test_notebooks.py"]  # fmt: skip
    return executed(list(dict.fromkeys(chosen)))


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=[pytest.mark.long] * (each in LONG)) for each in names()],
)
def test_notebook_figures_agree_with_the_result(outcomes, name):
    outcome = outcomes[name]
    assert outcome["wrong"] == ""
    assert outcome["result"]["finding_holds"] is True
    assert outcome["shown"] == len(FIGURES[name])
    assert outcome["figures"].keys() == FIGURES[name].keys()
    for figure, gids in FIGURES[name].items():
        drawn_well(outcome["figures"][figure], gids)
    CHECKS[name](outcome["result"], Lines(outcome["figures"]))


@pytest.mark.long
@pytest.mark.parametrize("name", names())
def test_the_stored_outputs_are_those_of_a_run(outcomes, name):
    # After a change of the model: python tests/running_notebooks.py
    assert outcomes[name]["texts"] == texts(read(name))


def drawn_well(axes, gids):
    """Check titles and labels, that every line has data, and that several lines have names."""
    lines = {gid: line for each in axes for gid, line in each["lines"].items()}
    for gid in gids:
        assert any(known.startswith(gid) for known in lines), f"{gid} is not in {list(lines)}"
    for each in axes:
        assert each["title"]
        assert each["y"] or each["x"]
        if sum(not gid.startswith(("mark-", "mean-", "dots-")) for gid in each["lines"]) > 1:
            assert len(each["legend"]) > 1
        for gid, (x, y) in each["lines"].items():
            assert len(x) == len(y) > 0, gid
        low, high = each["y_ends"]
        assert low != high


class Lines:
    """The lines of a notebook's figures."""

    def __init__(self, figures):
        self._figures = figures

    def of(self, figure, gid):
        """Return x and y of a line."""
        (outcomes,) = [each["lines"][gid] for each in self._figures[figure] if gid in each["lines"]]
        return outcomes

    def axes(self, figure):
        """Return the first axes of a figure."""
        return self._figures[figure][0]


def should_i_cache(result, lines):
    assert result["answer_skewed"] == "yes"
    assert result["answer_even"] != "yes"
    _, cached = lines.of("by_skew", "line-with the SSD")
    _, alone = lines.of("by_skew", "line-disks alone")
    assert alone[-1] / cached[-1] == pytest.approx(result["times_sooner_skewed"])
    assert alone[0] / cached[0] == pytest.approx(result["times_sooner_even"])
    assert cached == sorted(cached, reverse=True)
    assert lines.axes("warm_up")["y"] == "hit ratio (%)"
    share = lines.of("latencies", "cdf-read-warm")[1]
    assert share == sorted(share)
    assert share[-1] == pytest.approx(100)


def how_large(result, lines):
    _, y = lines.of("misses", "miss-ratio")
    assert y == sorted(y, reverse=True)  # a larger LRU cache never has more misses
    assert y[-1] == pytest.approx(100 * result["first_uses"])
    assert lines.of("misses", "mark-knee")[1] == [pytest.approx(100 * result["miss_ratio_at_knee"])]
    assert result["machines"] == 12
    assert len(lines.axes("machines")["lines"]) == 4
    tried = sum(len(x) for x, _ in lines.axes("sized")["lines"].values())
    assert tried == result["sizes_tried"]


def warm_up_and_policy(result, lines):
    ratios = list(result["yardstick"].values())
    assert lines.of("yardstick", "dots-learned")[0] == pytest.approx(ratios)
    shares = sorted(100 * each for each in result["hit_ratio"].values())
    assert sorted(lines.of("served", "dots-steady_ratio")[0]) == pytest.approx(shares)
    fills = [100 * each for each in result["fill_ratio"].values()]
    assert sorted(lines.axes("written")["bars"]) == pytest.approx(sorted(fills))


def wear_and_cost(result, lines):
    assert result["write_ms"]["write-back"] < result["write_ms"]["write-through"] / 2
    assert lines.of("latency", "dots-write_ms")[0] == pytest.approx([*result["write_ms"].values()])
    by_price = list(result["dwpd_by_price"].values())
    assert by_price[0] > by_price[-1]
    assert sorted(lines.of("trade", "points")[0]) == pytest.approx(sorted(by_price))
    assert lines.axes("money")["bars"] == pytest.approx([*result["cost"].values()])
    assert result["prices_of"]


def my_trace(result, lines):
    assert result["requests"] == 68_691
    assert result["failed_requests"] == 2
    assert result["report_is_whole"]
    _, y = lines.of("warm_up", "smooth")
    assert y[-1] == pytest.approx(100 * result["hit_ratio"], abs=5)
    ((_, again),) = lines.axes("again")["lines"].values()
    assert again == sorted(again)
    assert any(lines.axes("places")["pictures"])


def validate(result, lines):
    assert (result["disks"], result["chunk_kib"]) == (4, 64)
    assert result["demerit"] < result["good"]
    table = (FOLDER.parent / "validate" / "results" / "README.md").read_text()
    runs = {"dm-cache": "dmcache-depth4", "bcache": "bcache-inside"}
    shares = lines.of("distributions", "line-real")[1]
    assert shares == sorted(shares)
    for name, cache in (("on_dm_cache", "dm-cache"), ("on_bcache", "bcache")):
        real, simulated = (lines.of(name, f"{side}-0")[0] for side in ("real", "simulated"))
        assert real == simulated
        assert len(real) >= 50  # seconds
        within = result["judged"][cache] - result["beyond"][cache]
        row = re.search(rf"^\| {runs[cache]} \|.*?\| (\d+)/(\d+) \|", table, re.MULTILINE)
        assert (within, result["judged"][cache]) == (int(row[1]), int(row[2]))


def write_your_own_policy(result, lines):
    assert result["agree"]
    assert max(result["hit_ratio"], key=result["hit_ratio"].get) == "belady"
    for name, share in result["hit_ratio"].items():
        x, y = lines.of("curves", f"line-{name}")
        assert len(x) == result["sizes"]
        assert y == sorted(y)  # a larger cache has more hits
        assert y[0] == pytest.approx(100 * share)
    assert result["fill_ratio"]["learned"] < result["fill_ratio"]["lru"]


def cloud_volume(result, lines):
    assert result["answer"] == "yes"
    assert result["sustained_iops"] == 300
    assert result["alone_saturated"]
    assert not result["cached_saturated"]
    _, alone = lines.of("sizes", "line-volume alone")
    _, cached = lines.of("sizes", "line-with the cache")
    assert all(a > b for a, b in zip(alone, cached, strict=True))
    assert lines.axes("left")["bars"][-1] == pytest.approx(result["to_volume"])


def maxiq_guide(result, lines):
    assert abs(result["off"][0]) < 0.2  # the target of its row, see benchmarks/maxiq.py
    assert max(map(abs, result["off"][1:])) < 0.03
    assert lines.of("two", "dots-simulated_iops")[0] == pytest.approx(result["iops"])
    assert result["prefill_s"] < result["first_run_s"] / 2
    assert result["after_prefill_iops"] == pytest.approx(result["iops"][1], rel=0.03)
    _, y = lines.of("warming", "line-")
    assert y[-1] > 5 * y[0]


def cloud_documents(result, lines):
    assert result["within"] == result["figures"] - 1
    assert result["cap_at_depth_4"] == pytest.approx(5000, rel=0.02)
    published = lines.of("clouds", "dots-published_iops")[0]
    simulated = lines.of("clouds", "dots-simulated_iops")[0]
    off = [one / two - 1 for one, two in zip(simulated, published, strict=True)]
    assert off == pytest.approx(list(result["off"].values()))


def restart(result, lines):
    ratios = result["hit_ratio"]
    assert ratios["empty"] < ratios["loaded"] <= ratios["SSD kept"]
    first = {name: lines.of("warm_up", f"warm-up-{name}")[1][0] for name in ratios}
    assert first["empty"] < first["SSD kept"]
    slowest, _, fastest = lines.axes("latency")["bars"]
    assert slowest > fastest


CHECKS = {
    "01-should-i-cache": should_i_cache,
    "02-how-large": how_large,
    "03-warm-up-and-policy": warm_up_and_policy,
    "04-wear-and-cost": wear_and_cost,
    "05-my-trace": my_trace,
    "06-validate": validate,
    "07-write-your-own-policy": write_your_own_policy,
    "08-cloud-volume": cloud_volume,
    "09-maxiq-guide": maxiq_guide,
    "10-cloud-documents": cloud_documents,
    "11-restart": restart,
}
