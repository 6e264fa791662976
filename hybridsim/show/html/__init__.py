"""Reports as single HTML files that load nothing: `of(document)`, or `page` of sections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybridsim.answers.result import plain
from hybridsim.show.html.blocks import (
    Code,
    CopyJson,
    KeyFigures,
    Prose,
    Row,
    Section,
    Table,
)
from hybridsim.show.html.page import page
from hybridsim.show.html.sections import sections_of

__all__ = ["Code", "CopyJson", "KeyFigures", "Prose", "Row", "Section", "Table", "of", "page"]

TITLES = {
    "hybridsim.result": "Should this be cached?",
    "hybridsim.size": "How large must the SSD be?",
    "hybridsim.advice": "Which cache is worth it?",
    "hybridsim.fleet": "Which servers need a cache?",
    "hybridsim.bench": "How fast is this machine?",
    "hybridsim.sweep": "Which setting is best?",
    "hybridsim.comparison": "Does the model match the machine?",
}


def of(document: Mapping[str, Any], command: str = "") -> str:
    """Return the HTML report of a `--json` document; `command` is the command that created it."""
    family = str(document["schema"]).partition("/")[0]
    if family == "hybridsim.explore":
        from hybridsim.show.html.explorer import explorer

        return explorer(document, _about(document))
    extended = plain(dict(document)) | {"command": command}
    return page(TITLES[family], list(sections_of(extended)), document, _about(document))


def _about(document: Mapping[str, Any]) -> str:
    """Return the trace and the machine of a document, in one line."""
    inputs = document.get("inputs", {})
    trace, scenario = inputs.get("trace", {}), inputs.get("scenario", document.get("scenario", {}))
    parts = [trace.get("name"), document.get("machine") or scenario.get("summary")]
    return " · ".join(str(each) for each in parts if each)
