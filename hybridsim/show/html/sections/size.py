"""The section of `size`: the smallest SSD that meets the requirements, and all replayed sizes."""

from __future__ import annotations

from collections.abc import Iterator

from hybridsim.foundation.units import human_size
from hybridsim.foundation.wording import NONE, latency, money, percent, ranged, span
from hybridsim.show.advice import drives
from hybridsim.show.charts.answers import by_size, mean_ranges
from hybridsim.show.charts.replay import Document
from hybridsim.show.html.blocks import Block, KeyFigure, KeyFigures, Prose, Row, Section, Table
from hybridsim.show.page import LIKELY, mark


def answer(document: Document) -> Section:
    """Return the answer, the figures of each size, and charts of them."""
    found = document["answer"]
    tone = "yes" if found or document["needs_no_ssd"] else "no"
    has_figures = found and not document["needs_no_ssd"]
    blocks: list[Block | None] = [
        Prose(_answer(document), tone),
        KeyFigures(list(_figures(document))) if has_figures else None,
        _required(document),
        _tried(document),
        *mean_ranges(document),
        Row(by_size(document)),
        Prose(document["notes"], "note"),
    ]
    return Section("answer", "Answer", blocks)


def _answer(document: Document) -> list[str]:
    wanted = " and ".join(document["require"])
    if document["needs_no_ssd"]:
        return [f"No SSD is needed: the disks alone meet {wanted}."]
    answer, below = document["answer"], document["below"]
    if answer is None:
        best = (each for each in document["best"] if each and not each["ok"])
        return [f"No size of SSD meets {wanted}.", *(
            f"{each['expr']}: the best is {each['ranged']}, with {human_size(each['size_bytes'])}."
            for each in best
        )]  # fmt: skip
    sentences = [
        f"{human_size(answer['size_bytes'])} is the smallest SSD that meets {wanted}, with "
        f"{answer['name']}."
    ]
    if not document["sure"]:
        sentences.append("No size is sure: part of an interval does not meet a requirement.")
    if below:
        does, key = ("is not sure to", "sure") if below["meets"] else ("does not", "ok")
        failed = dict.fromkeys(f"{each['expr']} ({each['ranged']})"
                               for each in [*below["checked"], *below["own"]]
                               if not each[key])  # fmt: skip
        size = human_size(below["size_bytes"])
        sentences.append(f"The next smaller size, {size}, {does}: {'; '.join(failed)}.")
    else:
        sentences.append("It is the smallest possible cache of this kind.")
    return sentences


def _figures(document: Document) -> Iterator[KeyFigure]:
    answer = document["answer"]
    yield "smallest SSD", human_size(answer["size_bytes"]), answer["name"]
    bought = document.get("bought")
    if bought and bought["cost"] is not None:
        yield "to buy", drives(bought), money(bought["cost"], document["currency"])
    for each in answer["checked"]:
        yield each["expr"], each["ranged"], "surely met" if each["sure"] else "met, not surely"


def _required(document: Document) -> Table:
    at = document["answer"] or document["tried"][-1]
    others = () if document["needs_no_ssd"] else (document["below"], at)
    sizes = [(human_size(one["size_bytes"]), one["checked"]) for one in others if one]
    shown = [("no SSD", document["alone"]), *sizes]
    rows = [
        [text, *(f"{(each := checked[index])['ranged']} {mark(each['ok'], each['sure'])}"
                 for _, checked in shown)]
        for index, text in enumerate(document["require"])
    ]  # fmt: skip
    return Table("Requirements", ["", *(name for name, _ in shown)], rows)


def _tried(document: Document) -> Table:
    heads = ["", "SSD", "hit", "mean read", "no SSD", "p99", "warm after", "DWPD", "meets all"]
    rows = [_row(one) for one in document["tried"]]
    strong = [row for row, one in enumerate(document["tried"]) if one == document["answer"]]
    title = f"Replayed sizes; {LIKELY}: the figures meet all requirements, not all intervals do"
    return Table(title, heads, rows, strong)


def _row(one: Document) -> list[str]:
    warm, wear, mean = one["warm_ns"], one["drive_writes_per_day"], one["mean"]
    read = latency(one["mean_ns"])
    if mean and one["mean_ns"] is not None:
        read = ranged(mean["value"], mean["low"], mean["high"])
    return [
        one["name"], human_size(one["size_bytes"]), percent(one["hit"]), read,
        latency(one["alone_ns"]), latency(one["p99_ns"]),
        "not steady" if warm is None else span(warm) if warm else "at once",
        NONE if wear is None else f"{wear:.2g}",
        mark(one["meets"], one["surely"]),
    ]  # fmt: skip
