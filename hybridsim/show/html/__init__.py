"""Reports as single HTML files that load nothing: `of(document)`, or `page` of sections.

Such a file runs only its own script.  Its Content-Security-Policy allows the styles and the script
of this file, by their hashes, and embedded pictures.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from hybridsim.answers.result import plain
from hybridsim.foundation.version import __version__
from hybridsim.show.charts import Chart, Value, Values
from hybridsim.show.charts.layout import DARK, INTERVAL, LIGHT, colours, rows_of
from hybridsim.show.html.blocks import Section, charts_of
from hybridsim.show.html.drawing import of_bars, of_chart, of_heat, of_ranges
from hybridsim.show.html.sections import sections_of
from hybridsim.show.html.sections.shared import inputs_of

HERE = Path(__file__).parent
VENDOR = HERE / "vendor"
OPTION = re.compile(r"--[a-z][a-z-]*( [a-z]+)?")
TITLES = {
    "hybridsim.result": "Should this be cached?",
    "hybridsim.size": "How large must the SSD be?",
    "hybridsim.advice": "Which cache is worth it?",
    "hybridsim.fleet": "Which servers need a cache?",
    "hybridsim.bench": "How fast is this machine?",
    "hybridsim.sweep": "Which setting is best?",
    "hybridsim.comparison": "Does the model match the machine?",
}
__all__ = ["Section", "of", "page"]


def of(document: Mapping[str, Any], command: str = "") -> str:
    """Return the HTML report of a `--json` document; `command` is the command that created it."""
    family = str(document["schema"]).partition("/")[0]
    if family == "hybridsim.explore":
        from hybridsim.show.explore import explorer

        return explorer(document, _about(document))
    extended = plain(dict(document)) | {"command": command}
    return page(TITLES[family], list(sections_of(extended)), document, _about(document))


def _about(document: Mapping[str, Any]) -> str:
    """Return the trace and the machine of a document, in one line."""
    trace, scenario = inputs_of(document)
    parts = [trace.get("name"), document.get("machine") or scenario.get("summary")]
    return " · ".join(str(each) for each in parts if each)


def page(
    title: str,
    sections: Sequence[Section],
    document: Mapping[str, Any] | None = None,
    subtitle: str = "",
) -> str:
    """Return a report as HTML.  The page contains `document`, the document that `--json` writes."""
    charts = charts_of(sections)
    return rendered(
        "page.html",
        report_style(),
        f"\n{_vendored('uPlot.iife.min.js')}\n{asset('page.js')}",
        title=title,
        subtitle=subtitle,
        sections=sections,
        result=island(document) if document is not None else None,
        charts=island([_data(each) for each in charts]),
    )


def rendered(template: str, style: str, script: str, **values: Any) -> str:
    """Return a template as HTML, with its only style and its only script."""
    return _templates().get_template(template).render(
        version=__version__,
        policy=(
            f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
            "img-src data:; base-uri 'none'; form-action 'none'"
        ),
        style=Markup(style),
        script=Markup(script),
        **values,
    )  # fmt: skip


@cache
def _templates() -> Environment:
    result = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    result.globals |= {"of_chart": of_chart, "of_bars": of_bars, "of_heat": of_heat}
    result.globals["of_ranges"] = of_ranges
    result.filters["whole_options"] = whole_options
    return result


def whole_options(text: str) -> Markup:
    """Return a text as HTML in which no line ends within an option such as `--mode think`."""
    return Markup(OPTION.sub(r'<span class="whole">\g<0></span>', str(escape(text))))


def island(data: Any) -> str:
    """Return data as deflated JSON in base64: it is short, and cannot end its element."""
    text = json.dumps(plain(data), allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def _data(chart: Chart) -> dict[str, Any]:
    """Return a chart in the form that page.js reads; equal x values of several lines occur once."""
    shared: list[list[Any]] = []
    lines = []
    for line, colour in zip(chart.lines, colours([each.role for each in chart.lines])):
        x = _short(line.x)
        if x not in shared:
            shared.append(x)
        about = {name: each for name, each in vars(line).items() if name not in ("x", "role")}
        about |= {name: _short(getattr(line, name)) for name in ("y", "low", "high")}
        lines.append(about | {"x": shared.index(x), "colour": colour})
    return {
        **{name: getattr(chart, name) for name in ("gid", "title", "sync", "is_stacked")},
        "x": vars(chart.x) | {"title": chart.x.title},
        "y": vars(chart.y) | {"title": chart.y.title},
        "xs": shared,
        "lines": lines,
        "bands": [vars(each) for each in chart.bands],
        "marks": [vars(mark) | {"row": row} for mark, row in zip(chart.marks, _rows(chart))],
        "interval": INTERVAL,
    }


def _rows(chart: Chart) -> list[int]:
    """Return the rows of the labels of a chart's marks."""
    xs = [one for line in chart.lines for one in line.x if one is not None]
    ends = (chart.x.low, min(xs, default=0)), (chart.x.high, max(xs, default=1))
    low, high = (result if specified is None else specified for specified, result in ends)
    return rows_of(chart.marks, chart.x, low, high)


def _short(values: Values) -> list[Value]:
    """Return values rounded to six significant digits."""
    rounded = (float(f"{one:.6g}") if isinstance(one, float) else one for one in values)
    return [int(one) if isinstance(one, float) and one.is_integer() else one for one in rounded]


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


@cache
def report_style() -> str:
    """Return the style of all pages."""
    schemes = (("light", LIGHT), ("dark", DARK))
    light, dark = (
        "".join(f"--{scheme}{number}:{each};" for number, each in enumerate(palette))
        for scheme, palette in schemes
    )
    return f"\n:root{{{light}{dark}}}\n{_vendored('uPlot.min.css')}\n{asset('page.css')}"


@cache
def asset(name: str) -> str:
    """Return a style or a script of the pages."""
    return (HERE / "templates" / name).read_text(encoding="utf-8")


@cache
def _vendored(name: str) -> str:
    """Return a vendored file; its licence replaces its leading comment."""
    text = (VENDOR / name).read_text(encoding="utf-8").strip()
    licence = (VENDOR / "LICENSE.uPlot").read_text(encoding="utf-8").strip()
    if text.startswith("/*"):
        text = text.partition("*/")[2]
    head = f"/* uPlot 1.6.32\n{licence}\n*/\n" if name.endswith(".js") else "/* uPlot 1.6.32 */\n"
    return head + text
