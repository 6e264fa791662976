"""What a warm start was worth, of two runs worked out by hand."""

import numpy as np
import pytest
from fakes import facts

from hybridsim.answers.life import Beginning, compared
from hybridsim.answers.metrics import Collector, Counters
from hybridsim.answers.outcome import SECOND, Outcome
from hybridsim.answers.warmup import judge
from hybridsim.foundation.codes import Op, Path, Reason


def run(hits, seconds=100, **columns):
    """Two reads a second, of which the first `hits` hit; counters after a third, two, and all."""
    number = np.arange(2 * seconds)
    hit = number < hits
    collector = Collector(SECOND)
    collector.add(
        facts(
            number * SECOND // 2,
            np.full(len(number), 1000),
            np.full(len(number), Op.READ),
            np.where(hit, Path.HIT, Path.MISS),
            np.where(hit, Reason.NONE, Reason.COLD),
        )
    )
    times = np.array([1, 2, 3]) * seconds * SECOND // 3
    return Outcome(collector, Counters({"time_ns": times, **columns}), open_loop=True)


def warm_up(curve):
    return judge(np.arange(len(curve)) * SECOND, np.array(curve), SECOND, initial=0.0)


STEADY = warm_up([0.0] * 30 + [0.8] * 170)
RISING = warm_up(np.linspace(0, 1, 200))


def worth(seconds=100, loaded=(10, 30, 30)):
    begun = run(
        6,
        seconds,
        pages_kept=[50, 50, 50],
        pages_preloaded=list(loaded),
        preload_reads=[1, 2, 3],
        warm_pages_used=[4, 8, 20],
        pages_present=[70, 80, 90],
        slow_busy_ns=[5, 6, 7],
        fast_bytes_written=[100, 200, 300],
    )
    cold = run(4, seconds, slow_busy_ns=[9, 10, 11], fast_bytes_written=[400, 500, 600])
    return compared("cache.npz", True, 500, 80, False, begun, cold, (STEADY, RISING))


def test_a_warm_start_beside_an_empty_cache():
    result = worth()
    assert (result.source, result.is_kept, result.listed, result.chosen) == (
        "cache.npz",
        True,
        500,
        80,
    )
    assert not result.remembers
    assert result.counters == {
        "pages_kept": 50, "pages_preloaded": 30, "preload_reads": 3, "warm_pages_used": 20
    }  # fmt: skip
    assert result.there == 80
    assert result.used_share == 0.25
    assert result.first_ns == 10 * SECOND  # a tenth: twenty reads
    assert result.first_hit_ratio == 0.3
    assert result.cold_first_hit_ratio == 0.2
    assert (result.disk_ns, result.cold_disk_ns) == (7, 11)
    assert (result.ssd_bytes, result.cold_ssd_bytes) == (300, 600)


def test_the_first_moments_of_a_long_run_are_a_minute():
    assert worth(seconds=900).first_ns == 60 * SECOND
    assert worth(seconds=300).first_ns == 30 * SECOND


@pytest.mark.parametrize(
    ("loaded", "thirds"), [((10, 30, 30), 2), ((30, 30, 30), 1), ((0, 1, 2), 3), ((0, 0, 0), None)]
)
def test_all_is_loaded_when_the_last_page_was_read(loaded, thirds):
    expected = None if thirds is None else thirds * 100 * SECOND // 3
    assert worth(loaded=loaded).loaded_ns == expected


def test_the_document_of_a_beginning():
    result = worth()
    as_json = result.to_dict()
    kept = {name for name in vars(result) if name not in ("warm_up", "cold_warm_up")}
    assert as_json.keys() == kept | {"reached_ns", "cold_reached_ns"}
    assert all(as_json[name] == getattr(result, name) for name in kept)
    assert as_json["reached_ns"] == {"50": 30 * SECOND, "90": 30 * SECOND, "95": 30 * SECOND}
    assert as_json["cold_reached_ns"] == {"50": None, "90": None, "95": None}


def test_nothing_there_was_nothing_used():
    nothing = {"pages_kept": 0, "pages_preloaded": 0, "warm_pages_used": 0}
    result = Beginning(**{**vars(worth()), "counters": nothing})
    assert (result.there, result.used_share) == (0, None)
