"""The smallest SSD that meets the requirements, and all replayed sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hybridsim.foundation.units import human_size
from hybridsim.foundation.wording import NONE, latency, money, percent, ranged, span
from hybridsim.show.advice import drives
from hybridsim.show.charts.sizes import by_size
from hybridsim.show.charts.sizes import ranges as mean_ranges
from hybridsim.show.html.blocks import Block, KeyFigures, Prose, Row, Section, Table
from hybridsim.show.labels import LIKELY, mark


def section(document: Mapping[str, Any]) -> Section:
    """Return the answer, the figures of each size, and charts of them."""
    answer = document["answer"]
    tone = "yes" if answer or document["needs_no_ssd"] else "no"
    blocks: list[Block] = [Prose(_answer(document), tone)]
    if answer and not document["needs_no_ssd"]:
        blocks.append(KeyFigures(list(_figures(document))))
    blocks += [_required(document), _tried(document)]
    blocks += [*mean_ranges(document), Row(by_size(document))]
    if document["notes"]:
        blocks.append(Prose(document["notes"], "note"))
    return Section("answer", "Answer", blocks)


def _answer(document: Mapping[str, Any]) -> list[str]:
    wanted = " and ".join(document["require"])
    if document["needs_no_ssd"]:
        return [f"No SSD is needed: the disks alone meet {wanted}."]
    answer, below = document["answer"], document["below"]
    if answer is None:
        return [f"No size of SSD meets {wanted}.", *_best(document)]
    sentences = [
        f"{human_size(answer['size_bytes'])} is the smallest SSD that meets {wanted}, with "
        f"{answer['name']}."
    ]
    if not document["sure"]:
        sentences.append("No size is sure: part of an interval does not meet a requirement.")
    if below:
        failed = "; ".join(
            dict.fromkeys(
                f"{each['expr']} ({each['ranged']})"
                for each in [*below["checked"], *below["own"]]
                if not each["ok" if not below["meets"] else "sure"]
            )
        )
        does = "is not sure to" if below["meets"] else "does not"
        sentences.append(
            f"The next smaller size, {human_size(below['size_bytes'])}, {does}: {failed}."
        )
    else:
        sentences.append("It is the smallest possible cache of this kind.")
    return sentences


def _best(document: Mapping[str, Any]) -> Iterator[str]:
    for each in document["best"]:
        if each and not each["ok"]:
            size = human_size(each["size_bytes"])
            yield f"{each['expr']}: the best is {each['ranged']}, with {size}."


def _figures(document: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    answer = document["answer"]
    yield "smallest SSD", human_size(answer["size_bytes"]), answer["name"]
    bought = document.get("bought")
    if bought and bought["cost"] is not None:
        yield "to buy", drives(bought), money(bought["cost"], document["currency"])
    for each in answer["checked"]:
        yield each["expr"], each["ranged"], "surely met" if each["sure"] else "met, not surely"


def _required(document: Mapping[str, Any]) -> Table:
    shown = [("no SSD", document["alone"])]
    at = document["answer"] or document["tried"][-1]
    if not document["needs_no_ssd"]:
        shown += [(human_size(one["size_bytes"]), one["checked"])
                  for one in (document["below"], at) if one]  # fmt: skip
    rows = [
        [text, *(_checked(checked[index]) for _, checked in shown)]
        for index, text in enumerate(document["require"])
    ]
    return Table("Requirements", ["", *(name for name, _ in shown)], rows)


def _checked(checked: Mapping[str, Any]) -> str:
    return f"{checked['ranged']} {mark(checked['ok'], checked['sure'])}"


def _tried(document: Mapping[str, Any]) -> Table:
    heads = ["", "SSD", "hit", "mean read", "no SSD", "p99", "warm after", "DWPD", "meets all"]
    rows = [_row(one) for one in document["tried"]]
    strong = [row for row, one in enumerate(document["tried"]) if one == document["answer"]]
    title = f"Replayed sizes; {LIKELY}: the figures meet all requirements, not all intervals do"
    return Table(title, heads, rows, strong)


def _mean(one: Mapping[str, Any]) -> str:
    mean = one["mean"]
    known = mean and one["mean_ns"] is not None
    return ranged(mean["value"], mean["low"], mean["high"]) if known else latency(one["mean_ns"])


def _row(one: Mapping[str, Any]) -> Sequence[str]:
    warm, wear = one["warm_ns"], one["drive_writes_per_day"]
    return [
        one["name"], human_size(one["size_bytes"]), percent(one["hit"]), _mean(one),
        latency(one["alone_ns"]), latency(one["p99_ns"]),
        "not steady" if warm is None else span(warm) if warm else "at once",
        NONE if wear is None else f"{wear:.2g}",
        mark(one["meets"], one["surely"]),
    ]  # fmt: skip
