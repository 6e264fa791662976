"""Run notebooks and extract the data of their figures; store their outputs in the files.

    python tests/running_notebooks.py [NAME ...]

runs the notebooks, by default all, and stores what they show, without times and numbers of runs.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "notebooks"
SECONDS = 1800  # timeout of a cell on a slow machine that compiles
FORGET = "get_ipython().reset(new_session=False, aggressive=False)"

# The last cell of each prints its RESULT and, for each figure by its name in the notebook, the
# axes: labels, limits, legend, and the data of the lines that have a gid.
TELL = """
import json as _json
from matplotlib.figure import Figure as _Figure

def _plain(thing):
    return thing.item() if hasattr(thing, "item") else str(thing)

def _axes_of(axes):
    legends = [each for each in (axes.get_legend(), *axes.figure.legends) if each]
    return {
        "x": axes.get_xlabel(), "y": axes.get_ylabel(),
        "x_ends": list(axes.get_xlim()), "y_ends": list(axes.get_ylim()),
        "legend": [text.get_text() for each in legends for text in each.get_texts()]
        + [each.get_text() for each in axes.texts],
        "title": axes.figure.get_suptitle(),
        "bars": [each.get_width() for each in axes.patches if each.get_gid()],
        "pictures": [each.get_gid() for each in axes.get_images()],
        "lines": {
            line.get_gid(): [list(map(float, data)) for data in line.get_data()]
            for line in axes.get_lines() if line.get_gid()
        },
    }

print(_json.dumps({
    "result": RESULT,
    "figures": {
        name: [_axes_of(axes) for axes in each.axes]
        for name, each in list(globals().items())
        if isinstance(each, _Figure) and not name.startswith("_")
    },
}, default=_plain))
"""


def names() -> list[str]:
    """Return the names of all notebooks in order."""
    return sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def read(name: str) -> Any:
    """Return a notebook as stored in its file."""
    import nbformat

    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def executed(wanted: list[str]) -> dict[str, dict[str, Any]]:
    """Run notebooks in one kernel, which imports once; each starts with an empty namespace.

    Return for each its RESULT, its figures, its errors, the number of pictures and the texts that
    it shows.
    """
    import nbformat
    from nbclient import NotebookClient

    cell = nbformat.v4.new_code_cell
    parts = {name: [cell(FORGET), *read(name).cells, cell(TELL)] for name in wanted}
    all_of_them = [each for cells in parts.values() for each in cells]
    for number, each in enumerate(all_of_them):
        each["id"] = f"cell-{number}"
    whole = nbformat.v4.new_notebook(cells=all_of_them)
    about = {"metadata": {"path": str(FOLDER)}}
    NotebookClient(whole, timeout=SECONDS, allow_errors=True, resources=about).execute()
    return {name: _result_of(cells) for name, cells in parts.items()}


def _result_of(cells: list[Any]) -> dict[str, Any]:
    outputs = [each for cell in cells for each in cell.get("outputs", [])]
    wrong = [each.text for each in outputs if each.get("name") == "stderr"]
    wrong += [f"{each.ename}: {each.evalue}" for each in outputs if each.output_type == "error"]
    printed = [each.text for each in cells[-1].outputs if each.get("name") == "stdout"]
    reported = json.loads(printed[0]) if printed else {"result": None, "figures": {}}
    shown = sum("image/png" in each.get("data", {}) for each in outputs)
    own = [each for cell in cells[1:-1] for each in cell.get("outputs", [])]
    return reported | {"wrong": "\n".join(wrong), "shown": shown, "texts": _texts(own)}


NOISE = re.compile(r" at 0x[0-9a-f]+")


def stored(name: str) -> Any:
    """Run a notebook in a kernel of its own; return it with its outputs, as stored in its file."""
    import nbformat
    from nbclient import NotebookClient

    book = read(name)
    client = NotebookClient(book, timeout=SECONDS, resources={"metadata": {"path": str(FOLDER)}})
    client.execute()
    for cell in book.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = [each for each in map(_quiet, cell.outputs) if each is not None]
    book.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    nbformat.validate(book)
    return book


def _quiet(output: Any) -> Any:
    """Return an output without what differs from run to run; None for that of a progress bar."""
    if output.output_type == "stream":
        return output if output.text.strip() else None
    if output.output_type == "execute_result":
        output.execution_count = None
    data = output.get("data", {})
    if any("widget" in each for each in data):
        return None  # a progress bar
    if "image/png" in data:
        data.pop("text/plain", None)
    text = data.get("text/plain", "")
    if "text/plain" in data:
        data["text/plain"] = NOISE.sub("", text)
    return output if any(str(each).strip() for each in data.values()) else None


def texts(book: Any) -> list[str]:
    """Return all text that the outputs of a notebook show, in order."""
    return _texts([each for cell in book.cells for each in cell.get("outputs", [])])


def _texts(outputs: list[Any]) -> list[str]:
    kept = [each for each in map(_quiet, outputs) if each is not None]
    return [
        "".join(each.get("text") or each.get("data", {}).get("text/plain", "")) for each in kept
    ]


def main() -> None:
    """Store the outputs of the notebooks named, or of all."""
    import nbformat

    for name in sys.argv[1:] or names():
        text = nbformat.writes(stored(name), indent=1)
        (FOLDER / f"{name}.ipynb").write_text(text + "\n", encoding="utf-8")
        print(f"{name}: {len(text) / 1000:,.0f} kB", flush=True)


if __name__ == "__main__":
    main()
