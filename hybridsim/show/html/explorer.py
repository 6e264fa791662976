"""The page of an exploration: sliders, and answers that follow at once, in one file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybridsim.foundation.wording import PROBABLE, counted, percent
from hybridsim.show.explore import bands, ended
from hybridsim.show.html import asset, island, rendered, report_style

MODES = {
    "open": "Requests arrive when they did, at any load faster or slower by its factor.",
    "think": "Each request waits for those that it waited for when it was captured (mode think), "
    "so a faster load only has shorter pauses between them.",
    "closed": "A fixed number of requests is outstanding (mode closed).",
}


def explorer(document: Mapping[str, Any], subtitle: str) -> str:
    """Return the page of a `hybridsim explore --json` document."""
    return rendered(
        "explorer.html",
        f"{report_style()}\n{asset('explorer.css')}",
        f"\n{asset('explorer.js')}",
        title="What if?",
        subtitle=f"{subtitle} · {_known(document)}",
        result=island(document),
        sure=_sure(document),
        checked=_checked(document),
        notes=document["notes"],
        probable=PROBABLE,
    )


def _known(document: Mapping[str, Any]) -> str:
    """Return on what the page stands: the number of replays, and the usual band of the gain."""
    known = counted(len(document["replays"]), "replay")
    half = document["bands"].get("gain")
    return known if half is None else f"{known}, gain \N{PLUS-MINUS SIGN}{percent(half)}"


def _sure(document: Mapping[str, Any]) -> list[str]:
    machines = 1
    for axis in document["axes"]:
        machines *= len(axis["choices"])
    replays = len(document["replays"])
    words = [
        f"{counted(replays, 'replay')} stand for {counted(machines, 'machine')}. Where a machine "
        "was replayed, the page shows the figures of that replay; elsewhere it interpolates. The "
        "band is as wide as the errors that were found when each replay was left out: it should "
        f"hold some 95 of 100 figures. {bands(document['bands'])}".strip(),
        f"{MODES[document['inputs']['mode']]} Times and hit ratios are of the "
        "whole trace, from an empty cache on; the verdict is the judge's forecast, as in "
        "hybridsim replay. Prices change the costs, and so which machine is the cheapest.",
    ]
    run = document["replays_run"]
    first = []
    if run["ended"]:
        first.append(ended(run["planned"], run["ended"], run["limit_s"]))
    if document["failed"]:
        failed = document["failed"]
        words.append(f"{counted(len(failed), 'machine')} could not be replayed: {failed[0]['why']}")
    return [*first, *words]


def _checked(document: Mapping[str, Any]) -> list[list[str]]:
    titles = {each["name"]: each["title"] for each in document["quantities"]}
    rows = [
        [
            titles[each["name"]],
            f"{each['number']:,}",
            f"{each['hold']:,}",
            f"{each['close']:,}",
            "\N{EN DASH}" if each["median_off"] is None else percent(each["median_off"]),
        ]
        for each in document["checked"]
    ]
    heads = ["figure", "replays", "right or in the band", "within 3%", "median error"]
    return [heads, *rows] if rows else []
