"""What if, in a notebook: `explore(trace, site)` shows sliders, and answers that follow at once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from hybridsim.answers.advice.alternatives import cache_cost
from hybridsim.answers.result import Result
from hybridsim.foundation.errors import HybridsimError, ScenarioError, UsageError
from hybridsim.foundation.in_notebooks import bar, frame_of, table_html
from hybridsim.foundation.wording import NONE, answered, latency, money, percent, span
from hybridsim.foundation.writing import write_text
from hybridsim.scenario import Scenario
from hybridsim.show.explore import sure
from hybridsim.show.html import of
from hybridsim.studies.explore.axes import AT_SIZE, Place, moved
from hybridsim.studies.explore.exploring import (
    FACTOR,
    FORECAST,
    GAIN,
    HIT,
    LOW,
    QUANTITIES,
    READ,
    READ_P99,
    SHARE,
    TIME,
    WARM,
    WEAR,
    WRITE,
    WRITE_P99,
    Estimate,
    Exploration,
)
from hybridsim.studies.explore.exploring import explore as run
from hybridsim.studies.replay import replay
from hybridsim.studies.runs import Progress
from hybridsim.studies.sweep.named_trace import AnyTrace, NamedTrace
from hybridsim.studies.sweep.store import FOLDER

if TYPE_CHECKING:
    from pandas import DataFrame

SHOWN = (HIT, READ, READ_P99, WRITE, WRITE_P99, GAIN, FORECAST, LOW, WEAR, WARM)
FRAME_PIXELS = 900  # height of the page in a notebook
SAY = {"yes": "Use this cache.", "no": "Do not buy this cache.",
       "unsure": "This capture does not decide."}  # fmt: skip


def explore(
    trace: AnyTrace,
    site: Scenario | None = None,
    *,
    points: int = 120,
    seconds: float | None = None,
    check: int = 0,
    folder: str | os.PathLike[str] = FOLDER,
    workers: int | None = 1,
    progress: bool = True,
    caches: Sequence[str] = (),
    policies: Sequence[str] = (),
    sizes: str = "",
    ssds: Sequence[str] = (),
    members: Sequence[int] = (),
    loads: Sequence[float] = (),
) -> Explorer:
    """Replay a planned set of machines; return what answers for all machines between them.

    In a notebook the result shows itself as sliders (with ipywidgets, of `hybridsim[notebooks]`) or
    as the page of `hybridsim explore`.

    >>> found = explore("gen:zipf,requests=300,span=16MiB,rate=100", points=9, caches=["page"],
    ...                 policies=["lru"], members=[4], loads=[1], progress=False)
    >>> found.at(cache="page write-back lru")["hit.whole"].value > 0
    True

    `points` is the number of replays; it ends after `seconds` with those done.  `check` further
    replays are compared with the interpolation.  `caches`, `policies`, `ssds` (names), `sizes`
    ("1GiB..64GiB"), `members` and `loads` (factors of the recorded load) are what may be changed;
    each has a default.  Results are kept in `folder`.  `workers` is the number of processes (None:
    one per core, which needs `hybridsim[cluster]`); `progress` shows a bar.

    Raises UsageError for contradicting choices, TraceError for a trace that cannot be read,
    ScenarioError for a machine that cannot be built.
    """
    with bar("replays", progress) as show:
        found = run(
            NamedTrace.of(trace), site, points=points, seconds=seconds, check=check,
            folder=folder, workers=workers, report=lambda status, _: show(status.done, status.of),
            caches=caches, policies=policies, sizes=sizes, ssds=ssds, members=members, loads=loads,
        )  # fmt: skip
    return Explorer(found)


class CancelledError(Exception):
    """The user cancelled a replay."""


class Explorer:
    """An exploration that shows itself in notebooks."""

    def __init__(self, exploration: Exploration) -> None:
        self.exploration = exploration
        self.results: dict[Place, Result] = {}  # of exact replays, by place

    def __repr__(self) -> str:
        return repr(self.exploration).replace("Exploration", "Explorer", 1)

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{escape(self.page(), quote=True)}" width="100%" '
            f'height="{FRAME_PIXELS}" style="border:0"></iframe>'
        )

    def _ipython_display_(self) -> None:
        from IPython.display import HTML, display

        display(self.widgets() if find_spec("ipywidgets") else HTML(self._repr_html_()))

    def page(self) -> str:
        """Return the page of `hybridsim explore` as HTML."""
        return of(self.exploration.to_dict())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file; raise UsageError if it cannot be written."""
        write_text(os.fspath(path), self.page())

    def frame(self) -> DataFrame:
        """Return a pandas frame with a row per replay; see Exploration.frame."""
        return self.exploration.frame()

    def at(self, **choices: str) -> dict[str, Estimate]:
        """Return the figures of a machine, by name: values with the ends of their bands.

        `choices` are names of the axes cache, size, ssd, members, load; the scenario's own for the
        others.  Times are in ns.  Raises UsageError for an unknown axis or choice.
        """
        place = self.exploration.place(**choices)
        return {name: self.exploration.estimate(name, place) for name in SHOWN}

    def over_size(self, **choices: str) -> DataFrame:
        """Return a pandas frame with a row per cache size: the figures, `_low` and `_high` ends."""
        place = self.exploration.place(**choices)
        rows: list[dict[str, Any]] = []
        for number, choice in enumerate(self.exploration.axes[AT_SIZE].choices):
            at = moved(place, {AT_SIZE: number})
            row: dict[str, Any] = {"size": choice.name, "replayed": False}
            for name in SHOWN:
                found = self.exploration.estimate(name, at)
                row |= {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
                row["replayed"] = found.is_replayed
            rows.append(row)
        return frame_of(rows)

    def replay(self, report: Callable[[Progress], None] | None = None, **choices: str) -> Result:
        """Replay one machine exactly, and add it to the exploration.

        Raises UsageError for an unknown choice, ScenarioError for a machine that cannot be built.
        """
        return self._replayed(self.exploration.place(**choices), report)

    def _replayed(self, place: Place, report: Callable[[Progress], None] | None) -> Result:
        trace = self.exploration.trace.open()
        result = replay(trace, self.exploration.scenario(place), report)
        self.results[place] = result
        self.exploration = self.exploration.with_replay(place, result)
        return result

    def widgets(self) -> Any:
        """Return the sliders as an ipywidgets box; raise UsageError without ipywidgets."""
        if find_spec("ipywidgets") is None:
            raise UsageError("sliders need ipywidgets: pip install 'hybridsim[notebooks]'")
        return _Panel(self).box

    def words(self, place: Place, ssd_price: float | None = None) -> list[tuple[str, str]]:
        """Return the figures at a place as text: names and values with their bands."""
        found = self.exploration
        answer, may_differ = found.answer(place)
        words = f"{answered(answer, found.is_certain(place))} {SAY[answer]}"
        rows = [("verdict", words + " Another answer is within the error." * may_differ)]
        is_exact = place in found.by_place
        rows.append(("figures", "of a replay" if is_exact else "interpolated, with their bands"))
        titles = {each.name: each for each in QUANTITIES}
        for name in SHOWN:
            if name == LOW:
                continue
            estimate = found.estimate(name, place)
            alone = f"alone.{name}"
            text = _worded(titles[name].unit, estimate)
            if alone in titles and estimate.value is not None:
                other = found.estimate(alone, place)
                text += f"; disks alone: {_one(titles[alone].unit, other.value)}"
            rows.append((titles[name].title, text))
        price = found.prices.price
        if ssd_price is not None:
            price = price.model_copy(update={"ssd_per_gb": ssd_price})
        try:
            cost = cache_cost(found.scenario(place), price)
        except ScenarioError:
            cost = None
        rows.append(("cost of the SSDs", money(cost, price.currency)))
        return rows


def _one(unit: str, value: float | None) -> str:
    if value is None:
        return NONE
    if unit == SHARE:
        return percent(value)
    if unit == TIME:
        return latency(value) if value < 10e9 else span(value)
    return f"{value:.2f} times" if unit == FACTOR else f"{value:.3g}"


def _worded(unit: str, estimate: Estimate) -> str:
    if estimate.value is None:
        return "unclear" if estimate.in_doubt else "unknown"
    text = _one(unit, estimate.value)
    if estimate.is_replayed:
        return text
    text += f" ({_one(unit, estimate.low)} to {_one(unit, estimate.high)})"
    return f"{text}, or unknown" if estimate.in_doubt else text


class _Panel:
    """The widgets of an explorer."""

    def __init__(self, explorer: Explorer) -> None:
        import ipywidgets

        self._explorer = explorer
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        found = explorer.exploration
        wide = {"description_width": "7em"}
        self.axes = []
        for axis, number in zip(found.axes, found.own):
            kind = ipywidgets.SelectionSlider if axis.is_ordered else ipywidgets.Dropdown
            options = [(each.name, n) for n, each in enumerate(axis.choices)]
            one = kind(options=options, value=number, description=axis.title, style=wide)
            one.layout.display = None if axis.varies else "none"
            one.observe(self._show, "value")
            self.axes.append(one)
        price = found.prices.price
        self.price = ipywidgets.FloatSlider(
            value=price.ssd_per_gb, min=0.01, max=max(1.0, 2 * price.ssd_per_gb), step=0.001,
            readout_format=".3f", description=f"SSD {price.currency}/GB", style=wide,
        )  # fmt: skip
        self.price.observe(self._show, "value")
        self.exact = ipywidgets.Button(description="Replay exactly")
        self.cancel = ipywidgets.Button(description="Cancel", disabled=True)
        self.progress = ipywidgets.FloatProgress(min=0.0, max=1.0)
        self.progress.layout.visibility = "hidden"
        self.status = ipywidgets.Label()
        self.exact.on_click(self._begin)
        self.cancel.on_click(lambda _: self._stop.set())
        self.table = ipywidgets.HTML()
        self.chart = ipywidgets.HTML()
        buttons = ipywidgets.HBox([self.exact, self.cancel, self.progress])
        note = ipywidgets.Label(sure(found))
        controls = ipywidgets.VBox([*self.axes, self.price, buttons, self.status, note])
        self.box = ipywidgets.VBox([ipywidgets.HBox([controls, self.table]), self.chart])
        self.box.panel = self  # keeps the thread's owner, and is what tests look at
        self._show()

    @property
    def place(self) -> Place:
        """The place that the sliders show."""
        return tuple(int(each.value) for each in self.axes)

    def _show(self, _: Any = None) -> None:
        rows = self._explorer.words(self.place, self.price.value)
        self.table.value = table_html(rows[0][1], rows[1:])
        self.chart.value = over_size_svg(self._explorer, self.place)

    def _begin(self, _: Any) -> None:
        """Replay the shown machine in the background."""
        if self._thread is not None and self._thread.is_alive():
            return
        self._stop.clear()
        self.exact.disabled, self.cancel.disabled = True, False
        self.progress.value, self.progress.layout.visibility = 0.0, "visible"
        self.status.value = "replaying ..."
        self._thread = threading.Thread(target=self._work, args=(self.place,), daemon=True)
        self._thread.start()

    def _work(self, place: Place) -> None:
        try:
            self._explorer._replayed(place, self._report)
            self.status.value = "replayed"
        except CancelledError:
            self.status.value = "cancelled"
        except HybridsimError as error:
            self.status.value = str(error)
        finally:
            self.exact.disabled, self.cancel.disabled = False, True
            self.progress.layout.visibility = "hidden"
        self._show()

    def _report(self, progress: Progress) -> None:
        if self._stop.is_set():
            raise CancelledError
        if progress.of_requests:
            self.progress.value = progress.requests / progress.of_requests


def over_size_svg(explorer: Explorer, place: Place) -> str:
    """Return the mean time of a read over the cache sizes, with its band, as SVG."""
    found = explorer.exploration
    choices = found.axes[AT_SIZE].choices
    values = [found.estimate(READ, moved(place, {AT_SIZE: n})) for n in range(len(choices))]
    highs = [each.high for each in values if each.high is not None]
    if not highs:
        return ""
    top, wide, tall = 1.1 * max(highs), 640, 220
    left, right, below = 64, 12, 40

    def x(number: int) -> float:
        return left + (wide - left - right) * number / max(len(choices) - 1, 1)

    def y(value: float) -> float:
        return (tall - below) * (1 - value / top) + 6

    known = [(n, each) for n, each in enumerate(values) if each.value is not None]
    line = " ".join(f"{x(n):.1f},{y(each.value or 0):.1f}" for n, each in known)
    upper = [f"{x(n):.1f},{y(each.high or 0):.1f}" for n, each in known]
    lower = [f"{x(n):.1f},{y(each.low or 0):.1f}" for n, each in reversed(known)]
    dots = "".join(
        f'<circle cx="{x(n):.1f}" cy="{y(each.value or 0):.1f}" r="3.5" fill="#d55e00"/>'
        for n, each in known if each.is_replayed
    )  # fmt: skip
    here = f'<path d="M{x(place[AT_SIZE]):.1f} 6V{tall - below + 6}" stroke="currentColor"/>'
    ends = "".join(
        f'<text x="{x(n):.1f}" y="{tall - 18}" text-anchor="middle">'
        f"{escape(choices[n].name)}</text>"
        for n in dict.fromkeys((0, len(choices) // 2, len(choices) - 1))
    )
    ticks = "".join(
        f'<text x="{left - 6}" y="{y(share * top) + 4:.1f}" text-anchor="end">'
        f"{latency(share * top) if share else 0}</text>"
        for share in (0.0, 0.45, 0.9)
    )
    return (
        f'<svg viewBox="0 0 {wide} {tall}" width="{wide}" role="img" fill="currentColor" '
        f'font-size="11" aria-label="mean time of a read by cache size">'
        f'<polygon points="{" ".join(upper + lower)}" fill="#d55e00" opacity="0.2"/>'
        f'<polyline points="{line}" fill="none" stroke="#d55e00" stroke-width="2"/>'
        f"{dots}{here}{ends}{ticks}"
        f'<text x="{wide / 2}" y="{tall - 3}" text-anchor="middle">'
        "cache size: mean time of a read, with its band</text></svg>"
    )
