"""Notebooks run, give the expected RESULT, and their figures agree with it."""

import json

import pytest
from running_notebooks import FOLDER, executed, names, read

pytest.importorskip("nbclient", reason="notebooks need hybridsim[notebooks]")
pytest.importorskip("matplotlib", reason="notebooks need hybridsim[notebooks]")

# These need machine code that no other test needs: 40 CPU seconds each, once.
LONG = {
    "06-validate": "fits an array to a capture; twins of two kinds of cache",
    "08-cloud-volume": "a machine of volumes is another than one of disks",
}
FIGURES = {  # required gids of lines, by notebook
    "01-should-i-cache": {
        "warm_up": ["hit", "smooth"], "sizes": ["line-"],
        "latencies": ["cdf-read-none", "cdf-read-warm"],
    },
    "02-how-large": {
        "misses": ["miss-ratio"], "front": ["points", "front"], "money": ["alternatives", "front"],
    },
    "03-warm-up-and-policy": {
        "followed": ["line-LRU", "line-LARC", "line-S3-FIFO", "line-learned"],
        "restart": ["warm-up-empty", "warm-up-loaded", "warm-up-SSD kept"],
        "yardstick": ["dots-learned", "mean-learned", "dots-lru", "dots-LARC"],
        "estimated": ["dots-learned", "mean-LARC"],
    },
    "04-wear-and-cost": {
        "writes": ["cdf-write-none"], "trade": ["points", "front"], "money": ["points", "front"],
    },
    "05-my-trace": {
        "places": [], "again": ["reuse"], "warm_up": ["hit", "smooth", "occupancy"], "why": [],
    },
    "06-validate": {
        "distributions": [], "on_dm_cache": ["real-", "simulated-"],
        "on_bcache": ["real-", "simulated-"],
    },
    "07-write-your-own-policy": {
        "curves": ["line-SecondChanceCompiled", "line-lru", "line-belady", "line-learned"],
        "fills": ["line-lru", "line-learned"],
    },
    "08-cloud-volume": {"panels": ["hit"], "sizes": ["line-volume alone", "line-with the cache"]},
}  # fmt: skip


def test_each_notebook_has_a_test():
    assert names() == sorted(FIGURES)


@pytest.mark.parametrize("name", names())
def test_a_notebook_is_committed_without_outputs_and_is_valid(name):
    cells = json.loads((FOLDER / f"{name}.ipynb").read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] or cell["execution_count"] for cell in code)
    assert sum("parameters" in cell["metadata"].get("tags", []) for cell in code) == 1
    assert "".join(code[-1]["source"]).startswith("RESULT = {")
    read(name)  # it is valid


@pytest.fixture(scope="module")
def outcomes(request):
    mark = pytest.MonkeyPatch()
    mark.setenv("HYBRIDSIM_FAST", "1")
    chosen = [each.callspec.params["name"] for each in request.session.items
              if each.name.startswith("test_notebook_figures_agree_with_the_result[")]  # fmt: skip
    yield executed(chosen)
    mark.undo()


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=[pytest.mark.long] * (each in LONG)) for each in names()],
)
def test_notebook_figures_agree_with_the_result(outcomes, name):
    outcome = outcomes[name]
    assert outcome["wrong"] == ""
    assert outcome["shown"] == len(FIGURES[name])
    assert outcome["figures"].keys() == FIGURES[name].keys()
    for figure, gids in FIGURES[name].items():
        drawn_well(outcome["figures"][figure], gids)
    CHECKS[name](outcome["result"], Lines(outcome["figures"]))


def drawn_well(axes, gids):
    """Check that every axis has a label, every line has data, and several lines have a legend."""
    lines = {gid: line for each in axes for gid, line in each["lines"].items()}
    for gid in gids:
        assert any(known.startswith(gid) for known in lines), f"{gid} is not in {list(lines)}"
    for each in axes:
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
    assert (result["answer"], result["answer_without_skew"]) == ("yes", "no")
    assert result["mean_ns"] < result["mean_without_ns"]
    assert lines.axes("warm_up")["y"] == "hit ratio (%)"
    x, y = lines.of("sizes", "line-")
    means = list(result["mean_ns_by_size"].values())
    assert y == pytest.approx([each / 1e6 for each in means])
    assert len(x) == 3
    assert y[0] >= y[-1]
    share = lines.of("latencies", "cdf-read-warm")[1]
    assert share == sorted(share)
    assert share[-1] == pytest.approx(100)


def how_large(result, lines):
    _, y = lines.of("misses", "miss-ratio")
    assert y == sorted(y, reverse=True)  # a larger LRU cache never has more misses
    assert y[-1] == pytest.approx(100 * result["first_uses"])
    assert lines.of("misses", "mark-knee")[1] == [pytest.approx(100 * result["miss_ratio_at_knee"])]
    assert len(lines.of("front", "points")[0]) == result["sizes_tried"]
    assert sorted(lines.of("money", "alternatives")[0]) == sorted(result["cost"].values())
    assert result["mean_ns"]["hybrid"] < result["mean_ns"]["disks"]


def warm_up_and_policy(result, lines):
    for name, share in result["last_part"].items():
        x, y = lines.of("followed", f"line-{name}")
        assert len(x) == 12
        assert y[-1] == pytest.approx(100 * share)
        assert all(0 <= each <= 100 for each in y)
    assert result["fills"]["LARC"] < result["fills"]["LRU"]
    empty, loaded, kept = (result["restart_hit_ratio"][each] for each in
                           ("empty", "loaded", "SSD kept"))  # fmt: skip
    assert empty < loaded <= kept
    ratios = list(result["yardstick"].values())
    assert lines.of("yardstick", "dots-learned")[0] == pytest.approx(ratios)
    assert len(lines.of("estimated", "dots-learned")[0]) == result["cells"]


def wear_and_cost(result, lines):
    assert result["write_ms"]["write-back"] < result["write_ms"]["write-through"] / 2
    assert result["cost"]["write-back"] > result["cost"]["write-through"]
    by_price = list(result["gb_a_day_by_price"].values())
    assert by_price[0] > by_price[-1]
    assert sorted(lines.of("trade", "points")[0]) == pytest.approx(sorted(by_price))
    assert result["prices_of"]


def my_trace(result, lines):
    assert (result["requests"], result["warnings"]) == (68_691, 0)
    assert result["failed_requests"] == 2
    assert result["report_is_whole"]
    _, y = lines.of("warm_up", "smooth")
    assert y[-1] == pytest.approx(100 * result["hit_ratio"], abs=5)
    ((_, again),) = lines.axes("again")["lines"].values()
    assert again == sorted(again)
    assert any(lines.axes("places")["pictures"])


def validate(result, lines):
    assert set(result["disks"].values()) == {4}
    assert set(result["chunk_kib"].values()) == {64}
    assert all(each < result["good"] for each in result["demerit"].values())
    for side in ("real", "simulated"):
        shares = lines.of("distributions", f"line-below bcache, {side}")[1]
        assert shares == sorted(shares)
    for name, cache in (("on_dm_cache", "dm-cache"), ("on_bcache", "bcache")):
        real, simulated = (lines.of(name, f"{side}-0")[0] for side in ("real", "simulated"))
        assert real == simulated
        assert len(real) >= 50  # seconds
        assert result["judged"][cache] >= 7
        assert result["beyond"][cache] == 0  # see validate/results/README.md


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


CHECKS = {
    "01-should-i-cache": should_i_cache,
    "02-how-large": how_large,
    "03-warm-up-and-policy": warm_up_and_policy,
    "04-wear-and-cost": wear_and_cost,
    "05-my-trace": my_trace,
    "06-validate": validate,
    "07-write-your-own-policy": write_your_own_policy,
    "08-cloud-volume": cloud_volume,
}
